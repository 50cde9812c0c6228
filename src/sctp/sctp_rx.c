/* SPDX-License-Identifier: BSD-2-Clause */
/* DATA (RFC 9260 6.2): what is taken, what is not, and what is held against the window. */
#include "sctp/sctp_in.h"
#include <string.h>

#define SHORT 4096u /* octets of a packet that may be a request */
/* Octets: who receives so much in a period counts until the next one has ended. */
#define MUCH 65536u

/* ---- the window ---- */

/* What waits below the engine has one place, whatever the windows say.  Of it each network that receives much has as
 * much as another one, whatever number of associations it has.  A SACK may report another window than the one before
 * (RFC 9260 3.3.2). */
static void share_inbox(struct ddps_sctp *e, unsigned net)
{
	unsigned nets = e->nets > e->nets_before ? e->nets : e->nets_before;
	unsigned n =
		e->takers[net] > e->takers_before[net] ? e->takers[net] : e->takers_before[net];
	size_t each = nets && e->c.inbox ? e->c.inbox / nets / (n ? n : 1) : UINT32_MAX;

	e->share[net] = each > UINT32_MAX	       ? UINT32_MAX
			: each > DDPS_SCTP_SHARE_LEAST ? (uint32_t)each
						       : DDPS_SCTP_SHARE_LEAST;
}

void ddps_sc_share_inbox(struct ddps_sctp *e)
{
	for (unsigned net = 0; net < DDPS_SC_NETS; net++)
		share_inbox(e, net);
}

static void begin_period(struct ddps_sctp *e)
{
	const bool recent = e->now - e->period_at < 2 * DDPS_SC_PERIOD;

	e->nets_before = recent ? e->nets : 0;
	if (recent)
		memcpy(e->takers_before, e->takers, sizeof e->takers);
	else
		memset(e->takers_before, 0, sizeof e->takers);
	memset(e->takers, 0, sizeof e->takers);
	e->nets = 0;
	e->period++;
	e->period_at = e->now;
	ddps_sc_share_inbox(e);
}

/* It has received DATA.  Those that receive little leave their share to the others. */
static void count_taker(struct ddps_sctp_assoc *a, size_t len)
{
	struct ddps_sctp *e = a->e;

	if (e->now - e->period_at >= DDPS_SC_PERIOD)
		begin_period(e);
	if (a->took_in != e->period) {
		a->took_in = e->period;
		a->took = 0;
		a->net = (uint8_t)ddps_sc_net_of(e, &a->primary->peer, DDPS_SC_NETS);
	}
	if (a->took >= MUCH)
		return;
	a->took += (uint32_t)len;
	if (a->took < MUCH)
		return;
	if (e->takers[a->net]++) {
		share_inbox(e, a->net);
	} else {
		e->nets++;
		ddps_sc_share_inbox(e);
	}
}

/* May @len octets more be held? */
static bool may_hold_data(struct ddps_sctp_assoc *a, size_t len, bool fills)
{
	struct ddps_sctp *e = a->e;
	/* What fills a gap sets free what waits behind it, so it may pass both bounds: by as much
	 * again, since a peer can leave a gap and fill it with what waits for something else. */
	size_t times = fills ? 2 : 1;

	if (e->st.held + len + DDPS_SC_ITEM > e->c.max_held * times) {
		e->st.held_full++;
		return false;
	}
	return a->held + a->kept + len + DDPS_SC_ITEM <= e->c.rwnd * times;
}

void ddps_sc_charge(struct ddps_sctp_assoc *a, size_t len)
{
	a->held += len + DDPS_SC_ITEM;
	a->e->st.held += len + DDPS_SC_ITEM;
}

void ddps_sc_uncharge(struct ddps_sctp_assoc *a, size_t len)
{
	a->held -= len + DDPS_SC_ITEM;
	a->e->st.held -= len + DDPS_SC_ITEM;
}

/* ---- a chunk ---- */

static void note_dup(struct ddps_sc_rx *rx, uint32_t tsn)
{
	struct ddps_sctp_assoc *a = rx->a;

	rx->dup = true;
	a->n_dups++;
	if (!a->dups)
		a->dups = calloc(DDPS_SC_DUPS, sizeof *a->dups);
	if (a->dups && a->ndups < DDPS_SC_DUPS) /* without memory the peer is not told */
		a->dups[a->ndups++] = tsn;
}

static void drop_for_window(struct ddps_sc_rx *rx)
{
	rx->dropped = true;
	rx->e->st.window_drops++;
}

static void no_user_data(struct ddps_sctp_assoc *a, uint32_t tsn)
{
	uint32_t wire = htobe32(tsn);

	a->e->st.violations++;
	ddps_sc_abort_out(a, SC_CAUSE_NO_DATA, &wire, sizeof wire, /* [9260-6.2-27] */
			  ddps_error_make(DDPS_E_PROTOCOL, 0, "the peer sent DATA without data"));
}

static bool is_whole_message(const struct ddps_sc_data *d)
{
	return (d->flags & (SC_DATA_B | SC_DATA_E)) == (SC_DATA_B | SC_DATA_E);
}

/* Its octets find a place: 0; DDPS_E_AGAIN: no room now; else as ddps_sc_whole(). */
static int place_data(struct ddps_sctp_assoc *a, const struct ddps_sc_data *d)
{
	bool fills = ddps_sc_tsn_lt(d->tsn, a->map.high);
	struct ddps_sctp_msg m = { .stream = d->sid,
				   .ssn = d->ssn,
				   .ppid = d->ppid,
				   .unordered = d->flags & SC_DATA_U,
				   .data = d->p,
				   .len = d->len };
	int err = ddps_sc_fragment_fits(a, d);

	if (err < 0)
		return err;
	if (!is_whole_message(d)) {
		if (!may_hold_data(a, d->len, fills))
			return DDPS_E_AGAIN;
		return ddps_sc_fragment(a, d);
	}
	if (ddps_sc_would_hold(a, &m) && !may_hold_data(a, d->len, fills))
		return DDPS_E_AGAIN;
	return ddps_sc_whole(a, &m);
}

/* A chunk that is new and in the window. */
static void take_data(struct ddps_sc_rx *rx, const struct ddps_sc_data *d)
{
	struct ddps_sctp_assoc *a = rx->a;
	bool gap_before = a->map.high != a->map.cum;
	int err = 0;

	/* While nothing may be delivered, or the window is used up, nothing above is taken. */
	if (ddps_sc_is_shut(a) && !ddps_sc_tsn_lt(d->tsn, a->map.high)) { /* [9260-6.2-2] */
		drop_for_window(rx);
		return;
	}
	if (d->sid >= a->in_streams) { /* [9260-6.5-2] */
		uint16_t val[2] = { htobe16(d->sid), 0 };

		ddps_sc_report(rx, SC_CAUSE_STREAM, val, sizeof val);
		rx->gap = true; /* a SACK with the ERROR, without delay */
	} else {
		err = place_data(a, d);
	}
	if (a->dead)
		return;
	if (err == DDPS_E_PROTOCOL) {
		ddps_sc_violation(a, "fragments or sequence numbers make no sense");
	} else if (err == DDPS_E_LIMIT) {
		ddps_sc_abort_out(a, SC_CAUSE_RESOURCE, NULL, 0,
				  ddps_error_make(DDPS_E_LIMIT, 0,
						  "a message of more than %zu octets, or than the "
						  "receive window of %zu can make whole",
						  a->e->c.max_message, a->e->c.rwnd));
	} else if (err < 0) {
		drop_for_window(rx);
	} else {
		ddps_sc_map_mark(&a->map, d->tsn); /* cannot fail: see ddps_sc_data() */
		rx->fresh = true;
		a->n_chunks_in++;
		rx->gap |= gap_before || a->map.high != a->map.cum;
	}
}

void ddps_sc_data(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_sc_data d;
	enum ddps_sc_map_what seen;

	if (ddps_sc_decode_data(&d, c) < 0) {
		ddps_sc_violation(a, "DATA that is too short");
		return;
	}
	if (!d.len) {
		no_user_data(a, d.tsn);
		return;
	}
	rx->data = true;
	rx->now_flag |= d.flags & SC_DATA_I;
	seen = ddps_sc_map_ask(&a->map, d.tsn);
	if (seen == DDPS_SC_DUP) {
		note_dup(rx, d.tsn);
		return;
	}
	if (seen == DDPS_SC_BEYOND) {
		drop_for_window(rx);
		return;
	}
	if (ddps_sc_map_reserve(&a->map, d.tsn) < 0) {
		rx->e->st.no_memory++;
		drop_for_window(rx);
		return;
	}
	take_data(rx, &d);
}

/* ---- after a packet ---- */

/* [9260-6.2-7] When to acknowledge. */
void ddps_sc_rx_done(struct ddps_sc_rx *rx)
{
	struct ddps_sctp_assoc *a = rx->a;
	bool first = rx->fresh && !a->saw_data;
	uint64_t delay;

	if (!rx->data)
		return;
	count_taker(a, rx->len);
	a->saw_data |= rx->fresh;
	a->sack_path = rx->path;
	if (a->state == SC_SENT) { /* [9260-9.2-9] [9260-9.2-10] */
		/* The SACK says what SHUTDOWN cannot: gaps, duplicates, the window. */
		a->due |= DUE_SHUTDOWN | DUE_SACK;
		if (rx->path->confirmed) /* T2 begins anew: no timeout would look for another */
			a->ctl_path = rx->path;
		ddps_sc_restart_ctl(a, false);
		return;
	}
	a->sack_packets++;
	delay = rx->e->c.sack_delay_ms * MS;
	delay -= delay / 4096 * rx->path->tx.late; /* earlier: 9260-6.2-7, 9260-6.2-12 */
	if (rx->now_flag) /* of bulk data: the sender's window may be full */
		delay = rx->len <= SHORT ? rx->e->c.sack_grace_us * 1000ull : 0;
	if (first || !delay || rx->gap || rx->dropped || (rx->dup && !rx->fresh) ||
	    a->sack_packets >= 2 || a->delay_sack_never)
		ddps_sc_want_sack(a);
	else /* the first packet since the last SACK */
		a->sack_at = rx->e->now + delay;
}
