/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets out of the blue (RFC 9260 8.4), answers without association, and ICMP (10). */
#include "sctp/sctp_in.h"
#include <arpa/inet.h>

#define ASKED_NS (1000 * MS) /* who was asked is not asked again; an RTO at first */

bool ddps_sc_contains(const uint8_t *pkt, size_t len, uint8_t type, struct ddps_sc_chunk *c)
{
	struct ddps_rbuf r = ddps_sc_chunks(pkt, len);

	while (ddps_sc_chunk_next(&r, c) > 0) {
		if (c->type == type)
			return true;
	}
	return false;
}

bool ddps_sc_spend(struct ddps_sctp *e, struct ddps_sc_bucket *b, unsigned rate, uint64_t *limited)
{
	b->tokens += (double)(e->now - b->at) * rate / 1e9;
	if (b->tokens > rate)
		b->tokens = rate;
	b->at = e->now;
	if (b->tokens < 1) {
		++*limited;
		return false;
	}
	b->tokens -= 1;
	return true;
}

void ddps_sc_answer(struct ddps_sc_rx *rx, uint32_t tag, const void *chunks, size_t len)
{
	struct ddps_sctp *e = rx->e;

	if (ddps_sc_spend(e, &e->answers, e->c.answers_per_s, &e->st.answers_limited))
		ddps_sc_stray(e, rx->from, rx->h.dst, rx->h.src, tag, chunks, len);
}

void ddps_sc_stray_abort(struct ddps_sc_rx *rx, uint32_t tag, bool refl, uint16_t cause,
			 const void *val, size_t len)
{
	uint8_t buf[600];
	struct ddps_wbuf w = ddps_wbuf_init(buf, sizeof buf);
	uint8_t *at = ddps_sc_begin_chunk(&w, SC_ABORT, refl ? SC_FLAG_T : 0);
	size_t pad = 0;

	if (cause)
		pad = ddps_sc_put_tlv(&w, cause, val, len);
	ddps_sc_end_chunk(&w, at, pad);
	rx->e->st.aborts_out++;
	ddps_sc_answer(rx, tag, buf, (size_t)(w.p - buf));
}

/* A walk over all chunks that ends in the middle of one: malformed. */
static bool chunks_fit(const struct ddps_sc_rx *rx)
{
	struct ddps_rbuf r = ddps_sc_chunks(rx->pkt, rx->len);
	struct ddps_sc_chunk c;
	int more;

	while ((more = ddps_sc_chunk_next(&r, &c)) > 0)
		;
	return more == 0;
}

static bool has_chunk(const struct ddps_sc_rx *rx, uint8_t type)
{
	struct ddps_sc_chunk c;

	return ddps_sc_contains(rx->pkt, rx->len, type, &c);
}

static bool has_stale(const struct ddps_sc_rx *rx)
{
	struct ddps_sc_chunk c;
	size_t len;

	return ddps_sc_contains(rx->pkt, rx->len, SC_ERROR, &c) &&
	       ddps_sc_find_cause(&c, SC_CAUSE_STALE, &len);
}

/* The rows of 8.4; [9260-8.4-1] and COOKIE ECHO were seen to before. */
void ddps_sc_oob(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *first)
{
	static const uint8_t complete[4] = { SC_SHUTDOWN_COMPLETE, SC_FLAG_T, 0, 4 };

	rx->e->st.out_of_the_blue++;
	if (!chunks_fit(rx) || has_chunk(rx, SC_ABORT))
		return;
	/* Of a peer of ours, from an address that it did not list, or that there was no room for: it would
	 * have to believe an answer with its tag.  [9260-5.1.2-2] */
	if (ddps_sc_has_tag(rx->e, rx->from->via, rx->h.dst, rx->h.src, rx->h.tag)) {
		rx->e->st.strange_addrs++;
		return;
	}
	if (first->type == SC_INIT)
		ddps_sc_init_none(rx, first);
	else if (has_chunk(rx, SC_SHUTDOWN_ACK))
		ddps_sc_answer(rx, rx->h.tag, complete, sizeof complete);
	else if (!has_chunk(rx, SC_SHUTDOWN_COMPLETE) && !has_chunk(rx, SC_COOKIE_ACK) &&
		 !has_stale(rx))
		ddps_sc_stray_abort(rx, rx->h.tag, true, 0, NULL, 0);
}

/* ---- ICMP ---- */

/* [9260-10-5] [9260-10-6] The association that sent what is quoted. */
static struct ddps_sc_path *quoted(struct ddps_sctp *e, const struct ddps_sctp_route *r,
				   const uint8_t *quote, size_t len)
{
	struct ddps_rbuf b = ddps_rbuf_init(quote, len);
	uint16_t src = ddps_rbuf_u16(&b), dst;
	uint32_t tag, init_tag;
	uint8_t type;
	struct ddps_sc_path *p;

	dst = ddps_rbuf_u16(&b);
	tag = ddps_rbuf_u32(&b);
	if (b.failed)
		return NULL;
	p = ddps_sc_find(e, r->via, src, dst, &r->peer);
	if (!p || p->encap != r->encap)
		return NULL;
	if (tag)
		return tag == p->a->peer_tag ? p : NULL; /* that is 0 before INIT ACK */
	ddps_rbuf_take(&b, 4);
	type = ddps_rbuf_u8(&b);
	ddps_rbuf_take(&b, 3);
	init_tag = ddps_rbuf_u32(&b);
	return !b.failed && type == SC_INIT && init_tag == p->a->own_tag ? p : NULL;
}

/* Whether the peer is known to have another address, of which it is not known that nobody is there. */
static bool has_others(const struct ddps_sc_path *p)
{
	const struct ddps_sctp_assoc *a = p->a;

	for (unsigned i = 0; i < a->npaths; i++) {
		if (a->path[i] != p && a->path[i]->confirmed &&
		    a->path[i]->state != DDPS_SCTP_INACTIVE)
			return true;
	}
	return false;
}

static void end_refused(const struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;
	char at[INET6_ADDRSTRLEN] = "its port";
	struct ddps_error why;

	if (a->state == SC_COOKIE_WAIT) {
		why = ddps_error_make(DDPS_E_REFUSED, 0,
				      "nothing takes SCTP at the peer's address or port");
		if (a->npeers > 1)
			why = ddps_error_make(DDPS_E_REFUSED, 0,
					      "nothing takes SCTP at any of the peer's addresses");
		ddps_sc_end(a, why);
		return;
	}
	if (a->npaths > 1)
		inet_ntop(p->peer.family == 6 ? AF_INET6 : AF_INET, p->peer.ip, at, sizeof at);
	ddps_sc_end(a, ddps_error_make(DDPS_E_RESET, 0,
				       "peer is gone: nothing takes SCTP at %s any more%s", at,
				       a->npaths > 1 ? ", the last of its addresses" : ""));
}

/* A program that has ended had perhaps other associations, which send nothing: each of them asks now, not
 * when its next heartbeat is due.  Each of them may bring such news then, and that is no reason to ask again. */
static void ask_all_of_program(struct ddps_sctp *e, const struct ddps_sctp_route *r)
{
	struct ddps_sc_path *p;

	if (!e->chains)
		return;
	LIST_FOREACH(p, ddps_sc_program_of(e, &r->peer, r->encap), program) {
		if (p->encap != r->encap || !ddps_sc_addr_eq(&p->peer, &r->peer))
			continue;
		p->asked = e->now;
		ddps_sc_ask_paths(p->a);
	}
}

/* Nobody is there: another address has its turn. */
static void leave_refused_path(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;

	ddps_sc_path_refused(p);
	if (p == a->ctl_path)
		ddps_sc_move_ctl(a);
	if (a->state <= SC_COOKIE_ECHOED && p == a->primary)
		a->primary = a->ctl_path;
}

bool ddps_sc_tries_others(struct ddps_sc_path *p)
{
	if (p->a->state != SC_COOKIE_WAIT || !has_others(p))
		return false;
	if (p->state != DDPS_SCTP_INACTIVE)
		leave_refused_path(p);
	return true;
}

/* One address says nothing of another: there may be a different host, or this one's is not ours to reach.
 * Of an address that the peer only claims it says nothing at all. */
static void end_unreachable_path(struct ddps_sc_path *p)
{
	struct ddps_sctp_assoc *a = p->a;

	if (a->state != SC_COOKIE_WAIT && a->e->c.icmp_grace) {
		if (a->npaths > 1 && p->state == DDPS_SCTP_ACTIVE)
			ddps_sc_path_error(p);
	} else if (p->confirmed && !has_others(p)) {
		end_refused(p);
	} else if (p->state != DDPS_SCTP_INACTIVE) {
		leave_refused_path(p);
	}
}

void ddps_sctp_icmp(struct ddps_sctp *e, const struct ddps_sctp_route *r, enum ddps_sctp_icmp what,
		    uint32_t mtu, const uint8_t *quote, size_t len, uint64_t now)
{
	struct ddps_sc_path *p;
	bool known;

	ddps_sc_time(e, now);
	p = quoted(e, r, quote, len);
	if (!p || what == DDPS_SCTP_ICMP_UNREACH ||
	    (what == DDPS_SCTP_ICMP_UNREACH_PORT && !p->encap)) { /* [9260-10-2] */
		e->st.icmp_ignored++;
		return;
	}
	e->st.icmp_believed++;
	ddps_sc_touch(p->a);
	if (what == DDPS_SCTP_ICMP_TOO_BIG) {
		ddps_sent_mtu_changed(&p->a->tx, &p->tx,
				      ddps_pmtu_ptb(&p->tx.pmtu,
						    (uint16_t)(mtu > 65535 ? 65535 : mtu), e->now));
		return;
	}
	known = !p->confirmed || p->state == DDPS_SCTP_INACTIVE || e->c.icmp_grace ||
		(p->asked && e->now - p->asked < ASKED_NS);
	end_unreachable_path(p);
	if (!known)
		ask_all_of_program(e, r);
}
