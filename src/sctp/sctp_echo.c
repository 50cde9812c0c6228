/* SPDX-License-Identifier: BSD-2-Clause */
/* COOKIE ECHO and COOKIE ACK: an association begins, or a peer that restarted does again. */
#include "sctp/sctp_in.h"

/*
 * When it left is not asked: COOKIE ACK has brought a sample of the RTT.  If it left more than once
 * it may not have been in the packet that arrived: unless it is acknowledged with this one it leaves
 * once more.  Its TSNs are those that it had, and as it was sent whole it may not be cut any more.
 */
static void enter_early(struct ddps_sctp_assoc *a, bool repeated)
{
	struct ddps_sent_path *p = &a->ctl_path->tx;
	size_t packet = ddps_sc_overhead(a->ctl_path);
	uint64_t pn = ddps_sent_begin(&a->tx, p, a->e->now);

	for (; a->early; a->early--) {
		struct ddps_sc_piece *pc = ddps_sc_whole_piece(STAILQ_FIRST(&a->queue));
		size_t size = DDPS_SC_DATA_HDR + ddps_sc_pad(pc->len);

		if (ddps_sent_add_new(&a->tx, (uint16_t)size, pc->len, pc) < 0)
			break;
		packet += size;
		ddps_sc_cut_done(a, pc);
	}
	ddps_sent_untimed(&a->tx);
	ddps_sent_end(&a->tx, (uint32_t)packet, !STAILQ_EMPTY(&a->queue));
	if (repeated)
		ddps_sent_refused(&a->tx, p, pn);
	if (!a->early)
		return;
	a->e->st.no_memory++;
	ddps_sc_abort_out(a, SC_CAUSE_RESOURCE, NULL, 0,
			  ddps_error_make(DDPS_E_NOMEM, 0, "no memory for what was sent"));
}

/* They were chosen when the peer offered more. */
static bool streams_fit(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sc_msg *m;

	STAILQ_FOREACH(m, &a->queue, link) {
		if (m->sid >= a->out_streams)
			return false;
	}
	return true;
}

/* It is up; what has left with COOKIE ECHO is outstanding from now on. */
static void establish_assoc(struct ddps_sctp_assoc *a)
{
	bool repeated = a->ctl_n;

	a->state = SC_ESTABLISHED;
	a->due &= (uint8_t) ~(DUE_INIT | DUE_ECHO);
	ddps_sc_stop_ctl(a);
	free(a->cookie);
	a->cookie = NULL;
	a->errors = 0;
	for (unsigned i = 0; i < a->npaths; i++)
		ddps_sc_path_start(a->path[i]);
	ddps_sc_path_pick(a);
	ddps_sc_touch(a);
	if (a->early)
		enter_early(a, repeated);
	if (!streams_fit(a))
		ddps_sc_violation(a, "offers fewer streams than before");
}

static void tell_up(struct ddps_sctp_assoc *a)
{
	a->announced = true;
	if (!a->dead)
		a->up->up(a->user);
}

void ddps_sc_cookie_ack(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_assoc *a = rx->a;

	(void)c;
	if (a->ctl_sent)
		ddps_sent_rtt(&a->tx, &rx->path->tx, rx->e->now - a->ctl_sent, rx->e->now);
	establish_assoc(a);
	tell_up(a);
}

/* T1 begins as for the first one; what was tried before counts, too. */
void ddps_sc_init_again(struct ddps_sctp_assoc *a)
{
	const unsigned tries = a->ctl_n + 1;

	free(a->cookie);
	a->cookie = NULL;
	a->peer_tag = 0;
	a->early = 0; /* the peer has dropped it */
	a->state = SC_COOKIE_WAIT;
	a->due = DUE_INIT;
	ddps_sc_restart_ctl(a, false);
	a->ctl_n = tries;
}

/* [9260-5.2.6-1] A new INIT, as often as one without an answer is sent again. */
void ddps_sc_stale(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_assoc *a = rx->a;
	size_t len;

	if (!ddps_sc_find_cause(c, SC_CAUSE_STALE, &len)) {
		ddps_sc_error_in(rx, c);
		return;
	}
	rx->e->st.cookies_stale++;
	if (a->stale++ == a->e->c.init_max_retrans) {
		ddps_sc_end(a, ddps_error_make(DDPS_E_TIMEDOUT, 0,
					       "the peer called its State Cookie stale %u times",
					       a->stale));
		return;
	}
	ddps_sc_init_again(a);
}

/* ---- taking a cookie's word ---- */

static bool has_listed(const struct ddps_sc_cookie *ck, const struct ddps_sctp_addr *addr)
{
	if (ddps_sc_addr_eq(addr, &ck->source))
		return true;
	for (unsigned i = 0; i < ck->naddr; i++) {
		if (ddps_sc_addr_eq(addr, &ck->addr[i]))
			return true;
	}
	return false;
}

static bool source_fits(const struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	return has_listed(ck, &rx->from->peer);
}

static bool local_fits(const struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	struct ddps_sctp_port *l;

	if (!ck->local.family || !rx->from->local.family ||
	    ddps_sc_addr_eq(&ck->local, &rx->from->local))
		return true;
	l = ddps_sc_find_port(rx->e, ck->via, ck->port);
	for (unsigned i = 0; l && i < l->param.nlocal; i++) {
		if (ddps_sc_addr_eq(&rx->from->local, &l->param.local[i]))
			return true;
	}
	return false;
}

static bool open_cookie(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c,
			struct ddps_sc_cookie *ck)
{
	return !ddps_sc_cookie_open(&rx->e->keys, ck, c->val, c->vlen) && ck->port == rx->h.dst &&
	       ck->peer_port == rx->h.src && ck->own_tag == rx->h.tag && ck->via == rx->from->via &&
	       source_fits(rx, ck) && local_fits(rx, ck);
}

/* [9260-5.1.5-5] */
static void stale_error(struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck, uint64_t ns)
{
	uint64_t us = (ns + 999) / 1000;
	uint32_t told = htobe32(us > UINT32_MAX ? UINT32_MAX : (uint32_t)us);
	uint8_t cause[8], chunk[12];
	struct ddps_wbuf w = ddps_wbuf_init(cause, sizeof cause);

	ddps_sc_put_tlv(&w, SC_CAUSE_STALE, &told, sizeof told);
	w = ddps_wbuf_init(chunk, sizeof chunk);
	ddps_sc_put_chunk(&w, SC_ERROR, 0, cause, sizeof cause);
	rx->e->st.cookies_stale++;
	ddps_sc_answer(rx, ck->peer_tag, chunk, sizeof chunk);
}

static bool all_known(const struct ddps_sctp_assoc *a, const struct ddps_sc_cookie *ck)
{
	if (!ddps_sc_is_mine(a, &ck->source))
		return false;
	for (unsigned i = 0; i < ck->naddr; i++) {
		if (!ddps_sc_is_mine(a, &ck->addr[i]))
			return false;
	}
	return true;
}

/* Addresses as the cookie has them.  False: no memory for those that matter now. */
static bool add_all(const struct ddps_sc_rx *rx, struct ddps_sctp_assoc *a,
		    const struct ddps_sc_cookie *ck)
{
	if (!ddps_sc_path_of(a, &ck->source)) {
		ddps_sc_path_claim(a, &ck->source);
		if (!ddps_sc_path_add(a, &ck->source, &rx->from->local, ck->encap))
			return false;
	}
	for (unsigned i = 0; i < ck->naddr; i++) {
		if (!ddps_sc_path_of(a, &ck->addr[i]) &&
		    !ddps_sc_leaves_out(a, &ck->source, &ck->addr[i]))
			ddps_sc_path_add(a, &ck->addr[i], ddps_sc_only(a, &rx->from->local),
					 ck->encap);
	}
	return ddps_sc_path_of(a, &rx->from->peer);
}

/* Tags, TSNs and streams as the cookie has them, whose addresses are known. */
static void adopt_cookie(struct ddps_sc_rx *rx, struct ddps_sctp_assoc *a,
			 const struct ddps_sc_cookie *ck)
{
	struct ddps_sc_path *p = ddps_sc_path_of(a, &ck->source);

	ddps_sc_path_front(p);
	p->confirmed = true; /* the INIT ACK went there [9260-5.4-d2] */
	rx->path = ddps_sc_path_of(a, &rx->from->peer);
	ddps_sc_set_tag(a, ck->own_tag);
	a->own_tsn = ck->own_tsn;
	a->peer_tag = ck->peer_tag;
	a->in_streams = ck->in_streams;
	a->out_streams = ck->out_streams;
	a->peer_has_adaptation = ck->has_adaptation;
	a->peer_adaptation = ck->adaptation;
	a->zero_checksum = ck->zero_checksum;
	ddps_sc_start_rx(a, ck->peer_tsn);
	ddps_sc_start_tx(a, ck->peer_rwnd);
	a->ctl_path = rx->path->confirmed ? rx->path : p;
}

static void acknowledge_echo(struct ddps_sc_rx *rx)
{
	rx->a->due |= DUE_COOKIE_ACK;
	ddps_sc_heard(rx);
}

/* ---- no association yet ---- */

static bool refuse_echo(struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	rx->e->st.refused_full++;
	ddps_sc_stray_abort(rx, ck->peer_tag, false, SC_CAUSE_RESOURCE, NULL, 0);
	return false;
}

/* It is counted. */
static bool has_share(struct ddps_sctp *e, const struct ddps_sctp_port *l,
		      const struct ddps_sctp_addr *peer)
{
	return ddps_sc_peer_get(
		e, peer, l->param.max_per_addr ? l->param.max_per_addr : e->c.max_assocs_per_addr);
}

static bool begin_from_cookie(struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	struct ddps_sctp *e = rx->e;
	struct ddps_sctp_port *l = ddps_sc_find_port(e, ck->via, ck->port);
	struct ddps_sctp_assoc *a;

	if (ddps_sc_gone_lately(e, ck->own_tag, ck->peer_tag))
		return false;
	if (!l || e->st.assocs >= e->c.max_assocs || !has_share(e, l, &ck->source))
		return refuse_echo(rx, ck);
	a = ddps_sc_assoc_new(e, &l->param);
	if (!a) {
		ddps_sc_peer_put(e, &ck->source);
		return refuse_echo(rx, ck);
	}
	a->port = ck->port;
	a->peer_port = ck->peer_port;
	a->freed = true; /* until the user has taken it */
	rx->a = a;
	if (!add_all(rx, a, ck)) {
		ddps_sc_peer_put(e, &ck->source);
		ddps_sc_release(a);
		return refuse_echo(rx, ck);
	}
	adopt_cookie(rx, a, ck);
	a->counted = true; /* the cookie's source is its first path */
	a->primary = a->path[0];
	acknowledge_echo(rx);
	establish_assoc(a);
	a->announced = true;
	a->freed = false;
	l->accept(l->user, a);
	return !a->dead;
}

/* ---- with an association: RFC 9260 table 12 ---- */

static void cookie_while_shutting(struct ddps_sc_rx *rx)
{
	static const uint8_t error[8] = { SC_ERROR, 0, 0, 8, 0, SC_CAUSE_SHUTTING, 0, 4 };
	uint8_t *at;

	rx->a->due |= DUE_SHUTDOWN_ACK; /* [9260-5.2.4-6] */
	at = ddps_sc_blob(rx->a, rx->a->ctl_path, sizeof error);
	if (at)
		memcpy(at, error, sizeof error);
}

/* The peer that was there before had others, or another UDP port. */
static void drop_others(struct ddps_sctp_assoc *a, const struct ddps_sc_cookie *ck)
{
	const struct ddps_sc_path *from = ddps_sc_path_of(a, &ck->source);
	const bool moved = from && from->encap != ck->encap;

	for (unsigned i = a->npaths; i-- > 0;) {
		if (!has_listed(ck, &a->path[i]->peer))
			ddps_sc_path_drop(a->path[i]);
		else if (moved)
			ddps_sc_path_encap(a->path[i], ck->encap);
	}
}

static bool restart_from_cookie(struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	struct ddps_sctp_assoc *a = rx->a;

	if (a->state == SC_ACK_SENT) {
		cookie_while_shutting(rx);
		return false;
	}
	if (!all_known(a, ck)) { /* it may have changed since the INIT */
		rx->e->st.restarts_refused++;
		return false;
	}
	ddps_sc_gone_add(rx->e, a->own_tag, a->peer_tag);
	ddps_sc_wipe(a);
	drop_others(a, ck);
	if (!add_all(rx, a, ck)) { /* of those that there was no room for */
		ddps_sc_abort_out(a, SC_CAUSE_RESOURCE, NULL, 0,
				  ddps_error_make(DDPS_E_NOMEM, 0,
						  "no room for the address that the peer has "
						  "begun anew from"));
		return false;
	}
	adopt_cookie(rx, a, ck);
	rx->e->st.restarts++;
	a->n_restarts++;
	a->primary = ddps_sc_path_of(a, &ck->source);
	acknowledge_echo(rx);
	establish_assoc(a);
	a->up->restarted(a->user);
	return !a->dead;
}

/* Both sides opened, and this cookie has what the peer goes by. */
static bool take_crossed_echo(struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	struct ddps_sctp_assoc *a = rx->a;
	bool unused = !a->saw_data && a->tx.next == a->own_tsn;

	if (a->state > SC_COOKIE_ECHOED && !unused)
		return false;
	if (!add_all(rx, a, ck))
		return false;
	adopt_cookie(rx, a, ck);
	acknowledge_echo(rx);
	if (a->state <= SC_COOKIE_ECHOED) {
		establish_assoc(a);
		tell_up(a);
	} else { /* adopt_cookie() has begun anew */
		for (unsigned i = 0; i < a->npaths; i++)
			ddps_sc_path_start(a->path[i]);
		ddps_sc_path_pick(a);
	}
	return !a->dead;
}

static bool take_duplicate_echo(struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	struct ddps_sctp_assoc *a = rx->a;

	if (!rx->path || ck->own_tsn != a->own_tsn || ck->peer_tsn != a->peer_tsn)
		return false;
	acknowledge_echo(rx);
	if (a->state == SC_COOKIE_ECHOED) {
		establish_assoc(a);
		tell_up(a);
	}
	return !a->dead;
}

static bool with_assoc(struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	struct ddps_sctp_assoc *a = rx->a;
	bool own = ck->own_tag == a->own_tag;
	bool peer = ck->peer_tag == a->peer_tag;
	bool ties = a->tie_own && ck->tie_own == a->tie_own && ck->tie_peer == a->tie_peer;

	rx->path = ddps_sc_path_of(a, &rx->from->peer);
	if (own && peer)
		return take_duplicate_echo(rx, ck); /* D */
	if (own)
		return take_crossed_echo(rx, ck); /* B */
	if (!peer && rx->path && ddps_sc_other_program(rx, ck->peer_tag))
		return false;
	if (!peer && ties)
		return restart_from_cookie(rx, ck); /* A */
	return false; /* C, and all that is in no row [9260-5.2.4-3] */
}

/* It was made for @a, opened by both or begun anew. */
static bool is_cookie_of(const struct ddps_sc_cookie *ck, const struct ddps_sctp_assoc *a)
{
	return ck->own_tag == a->own_tag ||
	       (a->tie_own && ck->tie_own == a->tie_own && ck->tie_peer == a->tie_peer);
}

static struct ddps_sc_path *find_at(const struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck,
				    const struct ddps_sctp_addr *addr)
{
	struct ddps_sc_path *p = ddps_sc_find(rx->e, ck->via, ck->port, ck->peer_port, addr);

	return p && (ddps_sc_path_sure(p) || is_cookie_of(ck, p->a)) ? p : NULL;
}

/* An address that another peer has merely listed makes nobody that peer. */
static struct ddps_sc_path *find_any(const struct ddps_sc_rx *rx, const struct ddps_sc_cookie *ck)
{
	struct ddps_sc_path *p = find_at(rx, ck, &rx->from->peer);

	if (!p)
		p = find_at(rx, ck, &ck->source);
	for (unsigned i = 0; !p && i < ck->naddr; i++)
		p = find_at(rx, ck, &ck->addr[i]);
	return p;
}

bool ddps_sc_cookie_echo(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp *e = rx->e;
	struct ddps_sc_cookie ck;
	struct ddps_sc_path *p;
	uint64_t stale;

	if (!open_cookie(rx, c, &ck)) {
		e->st.cookies_bad++;
		return false;
	}
	p = find_any(rx, &ck);
	rx->a = p ? p->a : NULL;
	stale = ddps_sc_cookie_stale(&ck, e->now);
	if (stale && !(p && ck.own_tag == p->a->own_tag && ck.peer_tag == p->a->peer_tag)) {
		stale_error(rx, &ck, stale);
		return false;
	}
	if (!p)
		return begin_from_cookie(rx, &ck);
	ddps_sc_touch(rx->a);
	return with_assoc(rx, &ck);
}
