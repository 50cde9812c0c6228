/* SPDX-License-Identifier: BSD-2-Clause */
/* SHUTDOWN (RFC 9260 9.2), ABORT (9.1), ERROR. */
#include "sctp/sctp_in.h"

static const struct ddps_error ended; /* code 0: as asked */

static void start_guard(struct ddps_sctp_assoc *a)
{
	const struct ddps_sctp_config *c = &a->e->c;
	uint64_t ms = c->shutdown_guard_ms ? c->shutdown_guard_ms : 5ull * c->rto_max_ms;

	if (a->guard_at == DDPS_SC_NEVER)
		a->guard_at = a->e->now + ddps_sent_late(&a->path[0]->tx, ms * MS);
}

static void to_sent(struct ddps_sctp_assoc *a)
{
	a->state = SC_SENT;
	a->due |= DUE_SHUTDOWN;
	a->ctl_path = a->data_path;
	ddps_sc_restart_ctl(a, false);
	start_guard(a);
}

static void to_ack_sent(struct ddps_sctp_assoc *a)
{
	a->state = SC_ACK_SENT;
	a->due = (uint8_t)((a->due & ~(DUE_SHUTDOWN | DUE_SACK)) | DUE_SHUTDOWN_ACK);
	a->sack_at = DDPS_SC_NEVER;
	a->ctl_path = a->last_heard->confirmed ? a->last_heard : a->data_path;
	ddps_sc_restart_ctl(a, false);
	start_guard(a);
}

void ddps_sc_shut_step(struct ddps_sctp_assoc *a)
{
	if (a->state != SC_PENDING && a->state != SC_RECEIVED)
		return;
	if (!ddps_sc_all_acked(a))
		return;
	if (a->state == SC_PENDING)
		to_sent(a);
	else
		to_ack_sent(a);
}

/* The cumulative TSN ack of a SHUTDOWN; false: malformed, or the association is gone. */
static bool take_cum(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_rbuf r = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sent_sack s = { .cum = ddps_rbuf_u32(&r), .shutdown = true };

	if (r.failed || ddps_rbuf_left(&r)) {
		rx->e->st.malformed++;
		return false;
	}
	ddps_sc_take_sack(rx->a, &s);
	return !rx->a->dead;
}

void ddps_sc_shutdown_est(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	if (!take_cum(rx, c))
		return;
	rx->a->state = SC_RECEIVED;
	ddps_sc_note(rx->a, NOTE_SHUTDOWN);
}

void ddps_sc_shutdown_received(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	take_cum(rx, c);
}

void ddps_sc_shutdown_sent(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	if (c->vlen == 4)
		to_ack_sent(rx->a); /* [9260-9.2-21] */
}

void ddps_sc_shutdown_again(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	(void)c;
	rx->a->due |= DUE_SHUTDOWN_ACK;
}

void ddps_sc_shutdown_ack(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	static const uint8_t complete[4] = { SC_SHUTDOWN_COMPLETE, 0, 0, 4 };
	struct ddps_sctp_assoc *a = rx->a;

	(void)c;
	ddps_sc_stray(rx->e, rx->from, a->port, a->peer_port, a->peer_tag, complete,
		      sizeof complete);
	ddps_sc_end(a, ended);
}

/* The peer still had an association from before [9260-9.2-19]; rx->path may be any of a's. */
void ddps_sc_shutdown_ack_early(struct ddps_sc_rx *rx)
{
	static const uint8_t complete[4] = { SC_SHUTDOWN_COMPLETE, SC_FLAG_T, 0, 4 };

	ddps_sc_answer(rx, rx->h.tag, complete, sizeof complete);
}

/* [9260-8.5.1-4] The T bit says whose tag the packet has. */
static bool tag_right(const struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	if (c->flags & SC_FLAG_T)
		return rx->a->state > SC_COOKIE_WAIT && rx->h.tag == rx->a->peer_tag;
	return rx->h.tag == rx->a->own_tag;
}

void ddps_sc_shutdown_complete(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	if (tag_right(rx, c))
		ddps_sc_end(rx->a, ended);
	else
		rx->e->st.bad_tag++;
}

/* ---- ABORT ---- */

static const char *cause_text(uint16_t cause)
{
	static const char *const text[] = {
		[SC_CAUSE_STREAM] = "invalid stream identifier",
		[SC_CAUSE_MISSING] = "missing mandatory parameter",
		[SC_CAUSE_STALE] = "stale cookie",
		[SC_CAUSE_RESOURCE] = "out of resource",
		[SC_CAUSE_ADDRESS] = "unresolvable address",
		[SC_CAUSE_CHUNK] = "unrecognized chunk type",
		[SC_CAUSE_INVALID] = "invalid mandatory parameter",
		[SC_CAUSE_PARAMS] = "unrecognized parameters",
		[SC_CAUSE_NO_DATA] = "no user data",
		[SC_CAUSE_SHUTTING] = "cookie received while shutting down",
		[SC_CAUSE_RESTART] = "restart with new addresses",
		[SC_CAUSE_USER] = "its user's wish",
		[SC_CAUSE_VIOLATION] = "protocol violation",
		[SC_CAUSE_ENCAP] = "another program of the host has this SCTP port",
	};

	return cause < sizeof text / sizeof *text && text[cause] ? text[cause] : "no cause given";
}

void ddps_sc_abort_in(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_rbuf r = ddps_rbuf_init(c->val, c->vlen);
	struct ddps_sc_tlv t = { .type = 0 };
	bool setting_up = a->state <= SC_COOKIE_ECHOED;
	struct ddps_error why;

	if (!tag_right(rx, c)) {
		rx->e->st.bad_tag++;
		return;
	}
	rx->e->st.aborts_in++;
	/* Its SHUTDOWN COMPLETE is lost or late: it knows of the association no more. */
	if (a->state == SC_ACK_SENT && (c->flags & SC_FLAG_T)) {
		ddps_sc_end(a, ended);
		return;
	}
	ddps_sc_tlv_next(&r, &t);
	if (setting_up && t.type == SC_CAUSE_ENCAP && ddps_sc_other_port(a))
		return;
	if (ddps_sc_tries_others(rx->path))
		return;
	why = ddps_error_make(setting_up ? DDPS_E_REFUSED : DDPS_E_RESET, 0,
			      "peer aborted the SCTP association: %s", cause_text(t.type));
	why.by_peer = !setting_up;
	ddps_sc_end(a, why);
}

void ddps_sc_abort_out(struct ddps_sctp_assoc *a, uint16_t cause, const void *val, size_t len,
		       struct ddps_error why)
{
	uint8_t buf[400];
	struct ddps_wbuf w = ddps_wbuf_init(buf, sizeof buf);
	struct ddps_sctp_route to;
	size_t pad = 0;
	uint8_t *at;

	if (a->dead)
		return;
	if (a->state > SC_COOKIE_WAIT) {
		at = ddps_sc_begin_chunk(&w, SC_ABORT, 0);
		if (cause)
			pad = ddps_sc_put_tlv(&w, cause, val, len > 256 ? 256 : len);
		ddps_sc_end_chunk(&w, at, pad);
		to = (struct ddps_sctp_route){ .peer = a->data_path->peer,
					       .local = a->data_path->local,
					       .encap = a->data_path->encap,
					       .via = a->via,
					       .sealed = a->sealed };
		a->e->st.aborts_out++;
		ddps_sc_stray(a->e, &to, a->port, a->peer_port, a->peer_tag, buf,
			      (size_t)(w.p - buf));
	}
	ddps_sc_end(a, why);
}

void ddps_sc_violation(struct ddps_sctp_assoc *a, const char *what)
{
	a->e->st.violations++;
	ddps_sc_abort_out(a, SC_CAUSE_VIOLATION, what, strlen(what),
			  ddps_error_make(DDPS_E_PROTOCOL, 0, "violation of SCTP by the peer: %s",
					  what));
}

/* ---- ERROR: never fatal by itself, never answered ---- */

void ddps_sc_error_in(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	(void)c;
	rx->e->st.errors_in++;
}
