/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets are taken (RFC 9260 8.4, 8.5), and which chunk in which state. */
#include "sctp/sctp_in.h"

#define UP(h) [SC_ESTABLISHED] = (h), [SC_PENDING] = (h)
#define ALL(h)                                                                                     \
	[SC_COOKIE_WAIT] = (h), [SC_COOKIE_ECHOED] = (h),                                          \
	UP(h), [SC_SENT] = (h), [SC_RECEIVED] = (h), [SC_ACK_SENT] = (h)
#define ECHOED_ON(h)                                                                               \
	[SC_COOKIE_ECHOED] = (h), UP(h), [SC_SENT] = (h), [SC_RECEIVED] = (h), [SC_ACK_SENT] = (h)

/* A cell left out: the chunk is ignored. */
static ddps_sc_handler *const rule[15][SC_NSTATES] = {
	[SC_DATA] = { [SC_COOKIE_ECHOED] = ddps_sc_taken,
		      UP(ddps_sc_data),
		      [SC_SENT] = ddps_sc_data },
	[SC_INIT] = { [SC_COOKIE_WAIT] = ddps_sc_init_wait,
		      [SC_COOKIE_ECHOED] = ddps_sc_init_echoed,
		      UP(ddps_sc_init_up),
		      [SC_SENT] = ddps_sc_init_up,
		      [SC_RECEIVED] = ddps_sc_init_up,
		      [SC_ACK_SENT] = ddps_sc_init_ack_sent },
	[SC_INIT_ACK] = { [SC_COOKIE_WAIT] = ddps_sc_init_ack },
	[SC_SACK] = { [SC_COOKIE_ECHOED] = ddps_sc_taken,
		      UP(ddps_sc_sack_in),
		      [SC_RECEIVED] = ddps_sc_sack_in },
	[SC_HEARTBEAT] = { ECHOED_ON(ddps_sc_heartbeat) },
	[SC_HEARTBEAT_ACK] = { UP(ddps_sc_heartbeat_ack), [SC_SENT] = ddps_sc_heartbeat_ack,
			       [SC_RECEIVED] = ddps_sc_heartbeat_ack,
			       [SC_ACK_SENT] = ddps_sc_heartbeat_ack },
	[SC_ABORT] = { ALL(ddps_sc_abort_in) },
	[SC_SHUTDOWN] = { UP(ddps_sc_shutdown_est), [SC_SENT] = ddps_sc_shutdown_sent,
			  [SC_RECEIVED] = ddps_sc_shutdown_received,
			  [SC_ACK_SENT] = ddps_sc_shutdown_again },
	/* in the states before these: for_assoc() */
	[SC_SHUTDOWN_ACK] = { [SC_SENT] = ddps_sc_shutdown_ack,
			      [SC_ACK_SENT] = ddps_sc_shutdown_ack },
	[SC_ERROR] = { [SC_COOKIE_ECHOED] = ddps_sc_stale,
		       UP(ddps_sc_error_in),
		       [SC_SENT] = ddps_sc_error_in,
		       [SC_RECEIVED] = ddps_sc_error_in,
		       [SC_ACK_SENT] = ddps_sc_error_in },
	[SC_COOKIE_ACK] = { [SC_COOKIE_ECHOED] = ddps_sc_cookie_ack },
	[SC_SHUTDOWN_COMPLETE] = { [SC_ACK_SENT] = ddps_sc_shutdown_complete },
};

static ddps_sc_handler *rule_for(enum ddps_sc_state s, uint8_t type)
{
	return type < 15 ? rule[type][s] : NULL;
}

static bool is_chunk_known(uint8_t type)
{
	return type == SC_PAD || (type <= SC_SHUTDOWN_COMPLETE && type != 12 && type != 13);
}

/* [9260-3-1] */
static bool must_be_alone(uint8_t type)
{
	return type == SC_INIT || type == SC_INIT_ACK || type == SC_SHUTDOWN_COMPLETE;
}

void ddps_sc_report(struct ddps_sc_rx *rx, uint16_t cause, const void *val, size_t len)
{
	struct ddps_wbuf w =
		ddps_wbuf_init(rx->report + rx->report_len, sizeof rx->report - rx->report_len);
	size_t pad;

	if (len > 128)
		len = 128; /* what there is of it is enough */
	pad = ddps_sc_put_tlv(&w, cause, val, len);
	if (w.failed)
		return;
	rx->report_len = (size_t)(w.p - rx->report);
	rx->report_pad = pad;
}

/* All that is to be reported about one packet leaves in one chunk [9260-12.4-2]. */
static void send_error_report(struct ddps_sc_rx *rx)
{
	struct ddps_wbuf w;
	uint8_t *at;

	/* Before an INIT ACK there is no tag that a packet of ours could have [9260-8.5.1-1]. */
	if (!rx->report_len || rx->a->state == SC_COOKIE_WAIT)
		return;
	at = ddps_sc_blob(rx->a, rx->path, 4 + rx->report_len);
	if (!at)
		return;
	w = ddps_wbuf_init(at, 4 + rx->report_len);
	ddps_sc_put_chunk(&w, SC_ERROR, 0, rx->report, rx->report_len - rx->report_pad);
}

/* False: stop. */
static bool unknown_chunk(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c)
{
	rx->e->st.unknown_chunks++;
	if (c->type & 0x40)
		ddps_sc_report(rx, SC_CAUSE_CHUNK, c->all, c->len);
	return c->type & 0x80;
}

static void walk_chunks(struct ddps_sc_rx *rx, struct ddps_rbuf r)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_sc_chunk c;
	unsigned n = 0, others = 0;
	bool errors = false;
	ddps_sc_handler *h;

	if (ddps_sc_straight_cum(rx, &r))
		n = others = 1;
	while (!a->dead && ddps_rbuf_left(&r) >= 4) {
		if (*r.p == SC_DATA)
			n += ddps_sc_straight_data(rx, &r);
		if (a->dead || ddps_sc_chunk_next(&r, &c) <= 0)
			break;
		if (c.type != SC_DATA && ++others > rx->e->c.max_chunks) {
			rx->e->st.malformed++;
			break;
		}
		n++;
		if (!is_chunk_known(c.type)) {
			if (!unknown_chunk(rx, &c))
				break;
			continue;
		}
		if (must_be_alone(c.type) && (n > 1 || ddps_rbuf_left(&r) >= 4))
			break;
		errors |= c.type == SC_ERROR;
		h = rule_for(a->state, c.type);
		if (h)
			h(rx, &c);
	}
	if (errors) /* never answered */
		rx->report_len = 0;
	if (!a->dead) {
		ddps_sc_rx_done(rx);
		send_error_report(rx);
		ddps_sc_touch(a); /* again: an upcall that asked for output had it settled */
	}
}

void ddps_sc_heard(struct ddps_sc_rx *rx)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_sc_path *p = rx->path;

	a->last_heard = p;
	a->n_packets_in++;
	a->tx.asked_at = 0;
	if (rx->from->seen) { /* others of its connection may be elsewhere [8261-6.1-2] */
		p->roam = rx->from->seen;
		ddps_sc_roam(p);
	}
	if (!rx->from->sealed && p->encap != rx->from->encap) { /* [6951-5.4-1] [6951-5.4-2] */
		rx->e->st.ports_learned++;
		ddps_sc_path_encap(p, rx->from->encap);
	}
	if (rx->from->local.family && (a->nlocal < 2 || !p->local.family))
		p->local = rx->from->local;
	if (a->state == SC_SENT && a->ctl_n) { /* [9260-9.2-5] */
		a->ctl_n = 0;
		a->errors = 0;
	}
	if (a->state >= SC_ESTABLISHED) /* what is to leave then is lost: asked for anyway */
		ddps_sent_alive(&a->tx, &p->tx, rx->e->now);
}

/* Only a chunk with the T bit may have the tag that we use for the peer: they look [9260-8.5.1-4]. */
static void reflected(struct ddps_sc_rx *rx)
{
	struct ddps_sc_chunk c;

	if (ddps_sc_came_back(rx))
		return;
	if (ddps_sc_contains(rx->pkt, rx->len, SC_ABORT, &c))
		ddps_sc_abort_in(rx, &c);
	else if (rx->a->state == SC_ACK_SENT &&
		 ddps_sc_contains(rx->pkt, rx->len, SC_SHUTDOWN_COMPLETE, &c))
		ddps_sc_shutdown_complete(rx, &c);
	else
		rx->e->st.bad_tag++;
}

static void for_assoc(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *first)
{
	struct ddps_sctp_assoc *a = rx->a;
	struct ddps_sc_chunk c;

	ddps_sc_touch(a);
	if (first->type == SC_INIT) { /* its tag is 0, and it is alone: checked */
		rx->e->st.init_in++;
		rule_for(a->state, SC_INIT)(rx, first);
		return;
	}
	if (a->state <= SC_COOKIE_ECHOED &&
	    ddps_sc_contains(rx->pkt, rx->len, SC_SHUTDOWN_ACK, &c)) {
		ddps_sc_shutdown_ack_early(rx);
		return;
	}
	if (rx->h.tag == a->own_tag) {
		ddps_sc_heard(rx);
		walk_chunks(rx, ddps_sc_chunks(rx->pkt, rx->len));
	} else if (a->state > SC_COOKIE_WAIT && rx->h.tag == a->peer_tag) {
		reflected(rx);
	} else {
		rx->e->st.bad_tag++;
	}
}

static void cookie_echo(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *first)
{
	struct ddps_rbuf r = ddps_sc_chunks(rx->pkt, rx->len);
	struct ddps_sc_chunk c;

	if (!ddps_sc_cookie_echo(rx, first))
		return;
	ddps_sc_chunk_next(&r, &c);
	walk_chunks(rx, r);
}

/* [9260-5.1.2-4] The first of the addresses listed that is one of an association; @sure: and is known to be. */
static struct ddps_sc_path *find_listed(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c,
					bool sure)
{
	struct ddps_sc_init i;
	struct ddps_sc_path *p = NULL;

	if (ddps_sc_decode_init(&i, c) < 0)
		return NULL;
	for (unsigned n = 0; n < i.naddr && !p; n++) {
		p = ddps_sc_find(rx->e, rx->from->via, rx->h.dst, rx->h.src, &i.addr[n]);
		if (p && sure && !ddps_sc_path_sure(p))
			p = NULL;
	}
	return p;
}

/*
 * Whose path a packet is from.  Of an INIT only an address that is surely the peer's decides: otherwise
 * whoever lists the addresses of another host, and keeps it from answering, would shut that host out (RFC 5062).
 */
static struct ddps_sc_path *find_packet_path(struct ddps_sc_rx *rx,
					     const struct ddps_sc_chunk *first)
{
	struct ddps_sc_path *p =
		ddps_sc_find(rx->e, rx->from->via, rx->h.dst, rx->h.src, &rx->from->peer);

	if (rx->from->sealed) /* it lists none */
		return p;
	if (first->type == SC_INIT && !(p && ddps_sc_path_sure(p)))
		return find_listed(rx, first, true);
	if (!p && first->type == SC_INIT_ACK)
		return find_listed(rx, first, false);
	return p;
}

/* [9260-8.5.1-1] Tag 0 and an INIT that is alone go together, or the packet goes. */
static bool tag_fits(const struct ddps_sc_rx *rx, const struct ddps_sc_chunk *first)
{
	bool alone = ddps_sc_pad(first->len) + 4 > rx->len - DDPS_SC_HDR;

	if (first->type == SC_INIT)
		return !rx->h.tag && alone;
	return rx->h.tag != 0;
}

/* [9260-6.8-2] [9653-5.3-2]; what DTLS has authenticated need not have one, in a packet out of the blue neither
 * [9653-5.3-1] [9653-5.3-3] */
static bool is_sctp_checksum_right(struct ddps_sctp *e, const struct ddps_sctp_route *from,
				   const uint8_t *pkt, size_t len)
{
	static const uint8_t zero[4];

	if (!from->sealed || memcmp(pkt + 8, zero, sizeof zero))
		return ddps_sc_crc_ok(pkt, len);
	e->st.zero_crc++;
	return true;
}

static void show_tap(const struct ddps_sc_rx *rx)
{
	const struct ddps_sctp *e = rx->e;

	if (e->c.tap)
		e->c.tap(e->c.user, e->now, false, rx->from,
			 &(struct iovec){ (void *)(uintptr_t)rx->pkt, rx->len }, 1);
}

/*
 * The straight way of a packet that came with the one before it, @last, and is for the same association, which
 * has taken that.  Chunks that begin anything, or end it, take the other way.
 */
static bool is_like_last(const struct ddps_sc_rx *rx, const uint8_t *last)
{
	const uint8_t *first = rx->pkt + DDPS_SC_HDR;
	size_t left = rx->len - DDPS_SC_HDR, len;

	if (!rx->path || rx->e->sent.stepwise || rx->len < DDPS_SC_HDR + 4 || rx->len > 65535 ||
	    memcmp(rx->pkt, last, 8) != 0 || (first[0] != SC_DATA && first[0] != SC_SACK))
		return false;
	len = (size_t)(first[2] << 8 | first[3]);
	return rx->a == rx->path->a && !rx->a->dead && rx->a->state == SC_ESTABLISHED &&
	       rx->h.tag == rx->a->own_tag && len >= 4 && len <= left;
}

void ddps_sc_packet(struct ddps_sc_rx *rx, const uint8_t *pkt, size_t len)
{
	const uint8_t *last = rx->pkt;
	struct ddps_sctp *e = rx->e;
	struct ddps_rbuf r;
	struct ddps_sc_chunk first;
	bool like_last;

	memset(&rx->data, 0,
	       offsetof(struct ddps_sc_rx, report) - offsetof(struct ddps_sc_rx, data));
	rx->pkt = pkt;
	rx->len = len;
	like_last = is_like_last(rx, last);
	if (!like_last && (len > 65535 || ddps_sc_header(&rx->h, pkt, len) < 0 ||
			   !ddps_sc_unicast(&rx->from->peer))) {
		rx->path = NULL;
		e->st.malformed++;
		return;
	}
	if (!is_sctp_checksum_right(e, rx->from, pkt, len)) {
		if (!like_last)
			rx->path = NULL;
		e->st.bad_crc++;
		return;
	}
	show_tap(rx);
	if (like_last) {
		ddps_sc_touch(rx->a);
		ddps_sc_heard(rx);
		walk_chunks(rx, ddps_sc_chunks(pkt, len));
		return;
	}
	rx->path = NULL;
	rx->a = NULL;
	r = ddps_sc_chunks(pkt, len);
	if (ddps_sc_chunk_next(&r, &first) <= 0 || !tag_fits(rx, &first)) {
		e->st.malformed++;
		return;
	}
	if (first.type == SC_COOKIE_ECHO) {
		cookie_echo(rx, &first);
	} else if ((rx->path = find_packet_path(rx, &first))) {
		rx->a = rx->path->a;
		for_assoc(rx, &first);
	} else {
		ddps_sc_oob(rx, &first);
	}
	if (first.type != SC_DATA && first.type != SC_SACK) /* paths may come and go by others */
		rx->path = NULL;
}
