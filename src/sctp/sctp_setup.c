/* SPDX-License-Identifier: BSD-2-Clause */
/* INIT and INIT ACK (RFC 9260 5.1, 5.2.1, 5.2.2). */
#include "sctp/sctp_in.h"

/* What an INIT ACK offers: a listener's, or an association's. */
struct offer {
	uint16_t streams;
	bool has_adaptation;
	uint32_t adaptation;
	const struct ddps_sctp_addr *local;
	unsigned nlocal;
	uint32_t tag, tsn, tie_own, tie_peer;
};

/* An address of ours that the peer at @peer can learn. */
static bool in_scope(const struct ddps_sctp_addr *own, const struct ddps_sctp_addr *peer)
{
	bool link_local = own->family == 6 && own->ip[0] == 0xfe && (own->ip[1] & 0xc0) == 0x80;

	return !link_local && (!ddps_sc_loopback(own) || ddps_sc_loopback(peer));
}

/* [6951-3.2-1] With one address there is none to tell. */
static void put_addrs(struct ddps_wbuf *w, const struct ddps_sctp_addr *local, unsigned n,
		      const struct ddps_sctp_addr *peer)
{
	for (unsigned i = 0; n > 1 && i < n; i++) {
		if (in_scope(&local[i], peer))
			ddps_sc_put_addr(w, &local[i]);
	}
}

static void put_fixed(struct ddps_wbuf *w, uint32_t tag, uint32_t rwnd, uint16_t os, uint16_t mis,
		      uint32_t tsn)
{
	ddps_wbuf_u32(w, tag);
	ddps_wbuf_u32(w, rwnd);
	ddps_wbuf_u16(w, os);
	ddps_wbuf_u16(w, mis);
	ddps_wbuf_u32(w, tsn);
}

static size_t put_adaptation(struct ddps_wbuf *w, uint32_t value)
{
	value = htobe32(value);
	return ddps_sc_put_tlv(w, SC_P_ADAPTATION, &value, sizeof value);
}

/* Inside DTLS a checksum of zero is as good as one [9653-5.1-1] [9653-6-1]. */
static size_t put_zero_checksum(struct ddps_wbuf *w)
{
	uint32_t method = htobe32(DDPS_SC_ZERO_DTLS);

	return ddps_sc_put_tlv(w, SC_P_ZERO_CHECKSUM, &method, sizeof method);
}

void ddps_sc_put_init(struct ddps_sctp_assoc *a, struct ddps_wbuf *w)
{
	uint8_t *at = ddps_sc_begin_chunk(w, SC_INIT, 0);

	put_fixed(w, a->own_tag, (uint32_t)a->e->c.rwnd, a->asked, a->asked, a->own_tsn);
	put_addrs(w, a->local, a->nlocal, &a->ctl_path->peer);
	if (a->has_adaptation)
		put_adaptation(w, a->adaptation);
	if (a->sealed)
		put_zero_checksum(w);
	ddps_sc_end_chunk(w, at, 0);
}

/* The usable addresses of the peer: @source and those listed.  Returns how many, DDPS_SC_ADDRS_MAX at most. */
static unsigned peer_addrs(const struct ddps_sc_init *i, const struct ddps_sctp_addr *source,
			   struct ddps_sctp_addr *out)
{
	unsigned n = 0;

	out[n++] = *source;
	for (unsigned k = 0; k < i->naddr; k++) {
		const struct ddps_sctp_addr *a = &i->addr[k];

		if (ddps_sc_unicast(a) && in_scope(a, source) && !ddps_sc_addr_eq(a, source))
			out[n++] = *a;
	}
	return n;
}

/* ---- answering an INIT ---- */

static uint16_t get_least(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

static void fill_cookie(const struct ddps_sc_rx *rx, const struct ddps_sc_init *i,
			const struct offer *o, struct ddps_sc_cookie *ck)
{
	uint32_t life = rx->e->c.cookie_life_ms;
	struct ddps_sctp_addr all[DDPS_SC_ADDRS_MAX];
	unsigned n = peer_addrs(i, &rx->from->peer, all), k;
	size_t octets = 0;

	memset(ck, 0, offsetof(struct ddps_sc_cookie, addr));
	ck->created = rx->e->now;
	ck->life_ms = life + (i->preservative < life ? i->preservative : life);
	ck->own_tag = o->tag;
	ck->peer_tag = i->tag;
	ck->own_tsn = o->tsn;
	ck->peer_tsn = i->tsn;
	ck->peer_rwnd = i->rwnd;
	ck->tie_own = o->tie_own;
	ck->tie_peer = o->tie_peer;
	ck->in_streams = get_least(i->os, o->streams);
	ck->out_streams = get_least(i->mis, o->streams);
	ck->port = rx->h.dst;
	ck->peer_port = rx->h.src;
	ck->encap = rx->from->encap;
	ck->via = rx->from->via;
	ck->has_adaptation = i->has_adaptation;
	ck->zero_checksum = i->zero_checksum && rx->from->sealed;
	ck->adaptation = i->adaptation;
	ck->local = rx->from->local;
	ck->source = rx->from->peer;
	for (k = 1; k < n && octets + ddps_sc_cookie_addr(&all[k]) <= DDPS_SC_COOKIE_LIST; k++)
		octets += ddps_sc_cookie_addr(&all[k]);
	ck->naddr = k - 1;
	memcpy(ck->addr, all + 1, ck->naddr * sizeof all[0]);
	rx->e->st.addrs_left += n - k + i->left;
}

/* Returns the pad of the last one; @pad if there is none. */
static size_t put_reports(struct ddps_wbuf *w, const struct ddps_sc_init *i, size_t pad)
{
	struct ddps_rbuf r = ddps_rbuf_init(i->report, i->report_len);
	struct ddps_sc_tlv t;

	while (ddps_sc_tlv_next(&r, &t) > 0)
		pad = ddps_sc_put_tlv(w, SC_P_UNRECOGNIZED, t.all, t.len);
	return pad;
}

static void fresh_keys(struct ddps_sctp *e)
{
	uint8_t secret[32];

	if (!ddps_sc_keys_due(&e->keys, e->now))
		return;
	e->c.random(e->c.user, secret, sizeof secret);
	ddps_sc_keys_rotate(&e->keys, secret, e->now);
}

static void answer_init(struct ddps_sc_rx *rx, const struct ddps_sc_init *i, const struct offer *o)
{
	uint8_t buf[DDPS_SC_COOKIE_MAX + 1000], cookie[DDPS_SC_COOKIE_MAX];
	struct ddps_wbuf w = ddps_wbuf_init(buf, sizeof buf);
	struct ddps_sc_cookie ck;
	struct ddps_sctp *e = rx->e;
	size_t pad;
	uint8_t *at;

	/* Whoever floods with INITs has no more of them answered, and signed for, than that. */
	if (!ddps_sc_spend(e, &e->starts, e->c.starts_per_s, &e->st.inits_limited))
		return;
	fresh_keys(e);
	fill_cookie(rx, i, o, &ck);
	at = ddps_sc_begin_chunk(&w, SC_INIT_ACK, 0);
	put_fixed(&w, o->tag, (uint32_t)rx->e->c.rwnd, get_least(o->streams, i->mis), o->streams,
		  o->tsn);
	put_addrs(&w, o->local, o->nlocal, &rx->from->peer);
	pad = ddps_sc_put_tlv(&w, SC_P_COOKIE, cookie,
			      ddps_sc_cookie_seal(&rx->e->keys, &ck, cookie));
	pad = put_reports(&w, i, pad);
	if (o->has_adaptation)
		pad = put_adaptation(&w, o->adaptation);
	if (rx->from->sealed)
		pad = put_zero_checksum(&w);
	ddps_sc_end_chunk(&w, at, pad);
	ddps_sc_stray(rx->e, rx->from, rx->h.dst, rx->h.src, i->tag, buf, (size_t)(w.p - buf));
}

/* The cause shows the whole parameter, or is left out. */
static uint16_t host_name_cause(const struct ddps_sc_init *i)
{
	return i->host_name_len <= 256 ? SC_CAUSE_ADDRESS : 0;
}

/* [8261-6.1-5] Inside DTLS it has no addresses to list. */
static void forget_listed(const struct ddps_sc_rx *rx, struct ddps_sc_init *i)
{
	if (!rx->from->sealed)
		return;
	rx->e->st.addrs_sealed += i->naddr + i->left;
	i->naddr = i->left = 0;
}

/* What is wrong with every INIT, whatever the state; false: it was dealt with. */
static bool init_ok(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c, struct ddps_sc_init *i)
{
	int err = ddps_sc_decode_init(i, c);

	forget_listed(rx, i);
	if (err == DDPS_E_TRUNCATED || !i->tag) { /* [9260-3.3.2-8] */
		rx->e->st.malformed++;
		return false;
	}
	if (err < 0)
		ddps_sc_stray_abort(rx, i->tag, false, SC_CAUSE_VIOLATION, NULL, 0);
	else if (i->host_name) /* [9260-3.3.2-3] */
		ddps_sc_stray_abort(rx, i->tag, false, host_name_cause(i), i->host_name,
				    i->host_name_len);
	else if (!ddps_sc_init_sane(i)) /* [9260-3.3.2-11] */
		ddps_sc_stray_abort(rx, i->tag, false, SC_CAUSE_INVALID, NULL, 0);
	else
		return true;
	return false;
}

static uint32_t new_tag(struct ddps_sctp *e, uint32_t not )
{
	uint32_t t;

	do
		t = ddps_sc_random32(e);
	while (t == not );
	return t;
}

/* Nobody else knows @tag, and nobody listens here: the INIT that went to @p has come back from there.  An ABORT would
 * come back as well, and look like the peer's. */
static bool take_own_init(struct ddps_sc_path *p, uint32_t tag)
{
	struct ddps_sctp_assoc *a = p ? p->a : NULL;

	if (!a || a->state != SC_COOKIE_WAIT || tag != a->own_tag)
		return false;
	if (!ddps_sc_tries_others(p))
		ddps_sc_end(a, ddps_error_make(
				       DDPS_E_REFUSED, 0,
				       "our INIT came back: %s %u of the peer sends back what it "
				       "gets, as an echo service does, and speaks no SCTP; try "
				       "another port",
				       p->encap ? "UDP port" : "port",
				       p->encap ? p->encap : a->peer_port));
	return true;
}

void ddps_sc_init_none(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_port *l = ddps_sc_find_port(rx->e, rx->from->via, rx->h.dst);
	struct ddps_sc_init i;
	struct offer o;

	rx->e->st.init_in++;
	if (!init_ok(rx, c, &i))
		return;
	if (!l) { /* [9260-8.4-4] */
		if (!take_own_init(ddps_sc_find(rx->e, rx->from->via, rx->h.src, rx->h.dst,
						&rx->from->peer),
				   i.tag))
			ddps_sc_stray_abort(rx, i.tag, false, 0, NULL, 0);
		return;
	}
	if (rx->e->st.assocs >= rx->e->c.max_assocs) {
		rx->e->st.refused_full++;
		ddps_sc_stray_abort(rx, i.tag, false, SC_CAUSE_RESOURCE, NULL, 0);
		return;
	}
	o = (struct offer){ .streams = l->param.streams,
			    .has_adaptation = l->param.has_adaptation,
			    .adaptation = l->param.adaptation,
			    .local = l->param.local,
			    .nlocal = l->param.nlocal,
			    .tag = new_tag(rx->e, i.tag),
			    .tsn = ddps_sc_random32(rx->e) };
	answer_init(rx, &i, &o);
}

static struct offer offer_of(const struct ddps_sctp_assoc *a)
{
	return (struct offer){ .streams = a->asked,
			       .has_adaptation = a->has_adaptation,
			       .adaptation = a->adaptation,
			       .local = a->local,
			       .nlocal = a->nlocal,
			       .tag = a->own_tag,
			       .tsn = a->own_tsn,
			       .tie_own = a->tie_own,
			       .tie_peer = a->tie_peer };
}

/* [9260-5.2.1-1] Both sides opened: the same tag and TSN as in our INIT. */
void ddps_sc_init_wait(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct offer o = offer_of(rx->a);
	struct ddps_sc_init i;
	struct ddps_sc_path *p;

	if (!init_ok(rx, c, &i))
		return;
	p = ddps_sc_path_of(rx->a, &rx->from->peer);
	if (!p || p->id >= rx->a->npeers || take_own_init(p, i.tag)) /* [9260-5.2.1-2] */
		return;
	o.tie_own = o.tie_peer = 0;
	answer_init(rx, &i, &o);
}

/* [9260-5.2.2-2] Does it add addresses?  Then it is refused, and nothing changes. */
static bool adds_addresses(struct ddps_sc_rx *rx, const struct ddps_sc_init *i)
{
	uint8_t buf[24 * 20];
	struct ddps_wbuf w = ddps_wbuf_init(buf, sizeof buf);
	struct ddps_sctp_addr all[DDPS_SC_ADDRS_MAX];
	unsigned n = peer_addrs(i, &rx->from->peer, all);

	for (unsigned k = 0; k < n && w.end - w.p >= 20; k++) { /* as many as are worth telling */
		bool known = w.p > buf ? ddps_sc_path_of(rx->a, &all[k]) != NULL
				       : ddps_sc_is_mine(rx->a, &all[k]);

		if (!known)
			ddps_sc_put_addr(&w, &all[k]);
	}
	if (w.p == buf)
		return false;
	rx->e->st.restarts_refused++;
	ddps_sc_stray_abort(rx, i->tag, false, SC_CAUSE_RESTART, buf, (size_t)(w.p - buf));
	return true;
}

static void make_ties(struct ddps_sctp_assoc *a)
{
	if (a->tie_own)
		return;
	a->tie_own = ddps_sc_random32(a->e);
	a->tie_peer = ddps_sc_random32(a->e);
}

void ddps_sc_init_echoed(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sc_init i;
	struct offer o;

	if (!init_ok(rx, c, &i) || adds_addresses(rx, &i) || ddps_sc_other_program(rx, i.tag))
		return;
	make_ties(rx->a);
	o = offer_of(rx->a);
	answer_init(rx, &i, &o);
}

/* [9260-5.2.2-6] A new tag, and a new TSN: if it is a restart, it begins afresh. */
void ddps_sc_init_up(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sc_init i;
	struct offer o;

	if (!init_ok(rx, c, &i) || adds_addresses(rx, &i) || ddps_sc_other_program(rx, i.tag))
		return;
	make_ties(rx->a);
	o = offer_of(rx->a);
	o.tag = new_tag(rx->e, i.tag);
	o.tsn = ddps_sc_random32(rx->e);
	answer_init(rx, &i, &o);
}

/* [9260-9.2-18] */
void ddps_sc_init_ack_sent(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	(void)c;
	rx->a->due |= DUE_SHUTDOWN_ACK;
}

/* ---- INIT ACK ---- */

static void refuse_ack(struct ddps_sc_rx *rx, const struct ddps_sc_init *i, uint16_t cause,
		       const void *val, size_t len, const char *what)
{
	/* With tag 0 there is none to send: reflect (trap: only since the packet had our tag). */
	ddps_sc_stray_abort(rx, i->tag ? i->tag : rx->h.tag, !i->tag, cause, val, len);
	rx->e->st.violations++;
	ddps_sc_end(rx->a, ddps_error_make(DDPS_E_PROTOCOL, 0, "INIT ACK of the peer: %s", what));
}

static bool ack_ok(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c, struct ddps_sc_init *i)
{
	static const uint8_t missing[6] = { 0, 0, 0, 1, 0, SC_P_COOKIE };
	int err = ddps_sc_decode_init(i, c);

	forget_listed(rx, i);
	if (err == DDPS_E_TRUNCATED) {
		rx->e->st.malformed++;
		return false;
	}
	if (!i->tag || !ddps_sc_init_sane(i)) /* [9260-3.3.3-6] [9260-3.3.3-9] */
		refuse_ack(rx, i, SC_CAUSE_INVALID, NULL, 0, "tag, streams or window too small");
	else if (err < 0)
		refuse_ack(rx, i, SC_CAUSE_VIOLATION, NULL, 0, "malformed parameters");
	else if (i->host_name) /* [9260-3.3.3-2] */
		refuse_ack(rx, i, host_name_cause(i), i->host_name, i->host_name_len,
			   "a host name as address");
	else if (!i->cookie || !i->cookie_len)
		refuse_ack(rx, i, SC_CAUSE_MISSING, missing, sizeof missing, "no State Cookie");
	else
		return true;
	return false;
}

/* An unrecognized parameter of INIT ACK is reported with the COOKIE ECHO [9260-3.2.2-2]. */
static void keep_report(struct ddps_sctp_assoc *a, const struct ddps_sc_init *i)
{
	free(a->report);
	a->report_len = 0;
	a->report = i->report_len ? malloc(i->report_len) : NULL;
	if (!a->report) /* nothing, or no memory: the peer goes without */
		return;
	memcpy(a->report, i->report, i->report_len);
	a->report_len = (uint16_t)i->report_len;
}

static void add_paths(struct ddps_sc_rx *rx, const struct ddps_sc_init *i)
{
	struct ddps_sctp_assoc *a = rx->a;
	const struct ddps_sctp_addr *own = ddps_sc_only(a, &rx->from->local);
	struct ddps_sctp_addr all[DDPS_SC_ADDRS_MAX];
	unsigned n = peer_addrs(i, &rx->from->peer, all);

	rx->e->st.addrs_left += i->left;
	for (unsigned k = 0; own && k < a->npaths; k++) {
		if (a->path[k]->peer.family == own->family)
			a->path[k]->local = *own;
	}
	for (unsigned k = 0; k < n; k++) {
		if (!ddps_sc_path_of(a, &all[k]) &&
		    !ddps_sc_leaves_out(a, &rx->from->peer, &all[k]))
			ddps_sc_path_add(a, &all[k], own, rx->from->encap);
	}
}

void ddps_sc_init_ack(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_sc_init i;

	if (!ack_ok(rx, c, &i))
		return;
	a->cookie = malloc(i.cookie_len);
	if (!a->cookie) { /* it is sent again */
		rx->e->st.no_memory++;
		return;
	}
	memcpy(a->cookie, i.cookie, i.cookie_len);
	a->cookie_len = i.cookie_len;
	a->peer_tag = i.tag;
	a->out_streams = get_least(a->asked, i.mis);
	a->in_streams = get_least(a->asked, i.os);
	a->peer_has_adaptation = i.has_adaptation;
	a->zero_checksum = i.zero_checksum && a->sealed;
	a->peer_adaptation = i.adaptation;
	keep_report(a, &i);
	add_paths(rx, &i);
	ddps_sc_start_rx(a, i.tsn);
	ddps_sc_start_tx(a, i.rwnd);
	if (a->ctl_sent)
		ddps_sent_rtt(&a->tx, &rx->path->tx, rx->e->now - a->ctl_sent, rx->e->now);
	a->state = SC_COOKIE_ECHOED;
	if (rx->path->confirmed) /* else: there, where the INIT went [9260-5.4-5] */
		a->ctl_path = rx->path;
	a->due = DUE_ECHO;
	ddps_sc_restart_ctl(a, false);
	ddps_sc_note(a, NOTE_ANSWERED);
}
