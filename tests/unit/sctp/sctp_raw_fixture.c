/* SPDX-License-Identifier: BSD-2-Clause */
#include "sctp_raw_fixture.h"

static void take_sctp_raw_answered(void *user)
{
	struct raw *r = user;

	r->answered++;
	for (; r->early && r->nearly; r->nearly--) {
		struct iovec iov = { (void *)(uintptr_t)r->early, strlen(r->early) };

		cr_assert_eq(ddps_sctp_send(r->a, 4, 17, 0, &iov, 1, r->net.now), 0);
	}
}

static void take_sctp_raw_up(void *user)
{
	((struct raw *)user)->ups++;
}

static void take_sctp_raw_message(void *user, const struct ddps_sctp_msg *m)
{
	struct raw *r = user;

	r->messages++;
	r->last = *m;
	cr_assert_leq(m->len, sizeof r->last_data);
	memcpy(r->last_data, m->data, m->len);
	r->last.data = r->last_data;
}

static void take_sctp_raw_writable(void *user)
{
	(void)user;
}

static void take_sctp_raw_acked(void *user, uint64_t n)
{
	((struct raw *)user)->acked = n;
}

static void take_sctp_raw_shutdown(void *user)
{
	((struct raw *)user)->shutdowns++;
}

static void take_sctp_raw_restarted(void *user)
{
	((struct raw *)user)->restarted++;
}

static void take_sctp_raw_gone(void *user, const struct ddps_error *e)
{
	struct raw *r = user;

	r->gone++;
	r->why = *e;
	cr_expect_eq(e->sys_errno, 0, "no system is asked: %s", e->text);
	cr_expect_str_eq(raw_state(r), "CLOSED");
	ddps_sctp_assoc_free(r->a, r->net.now);
	r->a = NULL;
}

const struct ddps_sctp_up raw_upcalls = { .answered = take_sctp_raw_answered,
					  .up = take_sctp_raw_up,
					  .message = take_sctp_raw_message,
					  .writable = take_sctp_raw_writable,
					  .acked = take_sctp_raw_acked,
					  .peer_shutdown = take_sctp_raw_shutdown,
					  .restarted = take_sctp_raw_restarted,
					  .gone = take_sctp_raw_gone };

static void take_sctp_raw_accept(void *user, struct ddps_sctp_assoc *a)
{
	struct raw *r = user;

	r->accepted++;
	r->a = a;
	ddps_sctp_assoc_set_up(a, &raw_upcalls, r);
}

/* No length counts the pad behind the last parameter or cause [9260-3.2-1]. */
static void check_ends(const uint8_t *data, size_t len)
{
	struct ddps_rbuf chunks = ddps_sc_chunks(data, len), b;
	struct ddps_sc_chunk c;
	struct ddps_sc_tlv t;

	while (ddps_sc_chunk_next(&chunks, &c) > 0) {
		size_t fixed = c.type == SC_INIT || c.type == SC_INIT_ACK ? 16 : 0;

		if (!fixed && c.type != SC_ABORT && c.type != SC_ERROR && c.type != SC_HEARTBEAT)
			continue;
		b = ddps_rbuf_init(c.val + fixed, c.vlen - fixed);
		t.all = b.p;
		t.len = 0;
		while (ddps_sc_tlv_next(&b, &t) > 0)
			;
		cr_assert_eq(t.all + t.len, c.val + c.vlen, "chunk %u", c.type);
	}
}

static void on_sent(void *user, unsigned from, const struct ddps_sctp_route *to,
		    const uint8_t *data, size_t len)
{
	struct raw *r = user;
	struct raw_packet *p = &r->log[r->n];

	(void)from;
	cr_assert(ddps_sc_crc_ok(data, len));
	check_ends(data, len);
	if (r->n == RAW_LOG)
		return;
	r->n++;
	p->to = *to;
	p->len = len;
	memcpy(p->data, data, len < sizeof p->data ? len : sizeof p->data);
}

void raw_init(struct raw *r)
{
	struct ddps_sctp_config c;
	struct ddps_sctp_param p = { .port = RAW_PORT,
				     .streams = 10,
				     .has_adaptation = true,
				     .adaptation = 1,
				     .fixed_mtu = 1500 };

	memset(r, 0, sizeof *r);
	sn_init(&r->net, 7);
	r->net.sent = on_sent;
	r->net.user = r;
	sn_config(&r->net, &c);
	sn_boot(&r->net, 0, &c);
	r->e = r->net.node[0].e;
	cr_assert_eq(ddps_sctp_listen(r->e, &p, take_sctp_raw_accept, r, &r->port), 0);
}

void raw_fini(struct raw *r)
{
	sn_fini(&r->net);
}

struct ddps_wbuf *raw_begin(struct raw *r, uint32_t tag)
{
	r->w = ddps_wbuf_init(r->buf, sizeof r->buf);
	ddps_sc_put_header(&r->w, r->from ? r->from : RAW_PEER, RAW_PORT, tag);
	return &r->w;
}

void raw_send_as_is(struct raw *r, const void *p, size_t len)
{
	r->n = 0;
	sn_inject(&r->net, 0, 0, p, len);
	sn_flush(&r->net);
}

void raw_send(struct raw *r)
{
	size_t len = (size_t)(r->w.p - r->buf);

	cr_assert(!r->w.failed);
	ddps_sc_crc_put(r->buf, len);
	raw_send_as_is(r, r->buf, len);
}

void raw_hand(struct raw *r)
{
	struct ddps_sctp_in in = { .data = r->buf, .len = (size_t)(r->w.p - r->buf) };

	cr_assert(!r->w.failed);
	ddps_sc_crc_put(r->buf, in.len);
	in.from.peer = r->net.node[1].addr[0];
	in.from.local = r->net.node[0].addr[0];
	in.from.encap = r->net.node[1].udp;
	ddps_sctp_input(r->e, &in, 1, r->net.now);
}

void raw_chunk(struct raw *r, uint32_t tag, uint8_t type, uint8_t flags, const void *val, size_t n)
{
	ddps_sc_put_chunk(raw_begin(r, tag), type, flags, val, n);
	raw_send(r);
}

void raw_put_data(struct raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn, uint8_t flags,
		  const char *text)
{
	uint8_t *at = ddps_sc_begin_chunk(&r->w, SC_DATA, flags);

	ddps_wbuf_u32(&r->w, tsn);
	ddps_wbuf_u16(&r->w, sid);
	ddps_wbuf_u16(&r->w, ssn);
	ddps_wbuf_u32(&r->w, 17);
	ddps_wbuf_bytes(&r->w, text, strlen(text));
	ddps_sc_end_chunk(&r->w, at, 0);
}

void raw_data(struct raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn, uint8_t flags,
	      const char *text)
{
	raw_begin(r, r->tag);
	raw_put_data(r, tsn, sid, ssn, flags, text);
	raw_send(r);
}

void raw_sack(struct raw *r, uint32_t cum, uint32_t rwnd)
{
	uint32_t val[3] = { htobe32(cum), htobe32(rwnd), 0 };

	raw_chunk(r, r->tag, SC_SACK, 0, val, sizeof val);
}

void raw_wait(struct raw *r, uint64_t ms)
{
	r->n = 0;
	sn_run(&r->net, ms * MS);
}

int raw_got(const struct raw *r, unsigned k, unsigned i, struct ddps_sc_chunk *c)
{
	struct ddps_sc_chunk none;
	struct ddps_rbuf b;

	if (k >= r->n)
		return -1;
	c = c ? c : &none;
	b = ddps_sc_chunks(r->log[k].data, r->log[k].len);
	do {
		if (ddps_sc_chunk_next(&b, c) <= 0)
			return -1;
	} while (i--);
	return c->type;
}

uint32_t raw_got_tag(const struct raw *r, unsigned k)
{
	struct ddps_sc_header h = { .tag = 0 };

	cr_assert_lt(k, r->n);
	ddps_sc_header(&h, r->log[k].data, r->log[k].len);
	return h.tag;
}

bool raw_any(const struct raw *r, uint8_t type, struct ddps_sc_chunk *c)
{
	struct ddps_sc_chunk none;

	for (unsigned k = 0; k < r->n; k++) {
		if (ddps_sc_contains(r->log[k].data, r->log[k].len, type, c ? c : &none))
			return true;
	}
	return false;
}

static void put_sctp_raw_init(struct raw *r, uint8_t type, uint32_t tag, uint32_t rwnd, uint16_t os,
			      uint16_t mis, uint32_t tsn, const void *params, size_t len)
{
	uint8_t *at = ddps_sc_begin_chunk(&r->w, type, 0);

	ddps_wbuf_u32(&r->w, tag);
	ddps_wbuf_u32(&r->w, rwnd);
	ddps_wbuf_u16(&r->w, os);
	ddps_wbuf_u16(&r->w, mis);
	ddps_wbuf_u32(&r->w, tsn);
	ddps_wbuf_bytes(&r->w, params, len);
	ddps_sc_end_chunk(&r->w, at, 0);
}

void raw_put_init(struct raw *r, uint32_t tag, uint32_t rwnd, uint16_t os, uint16_t mis,
		  uint32_t tsn, const void *params, size_t len)
{
	put_sctp_raw_init(r, SC_INIT, tag, rwnd, os, mis, tsn, params, len);
}

void raw_init_chunk(struct raw *r, uint32_t own, uint32_t tsn)
{
	r->own = own;
	r->next = tsn;
	raw_begin(r, 0);
	raw_put_init(r, own, 100000, 5, 5, tsn, NULL, 0);
	raw_send(r);
}

bool raw_take_init_ack(struct raw *r)
{
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;

	if (raw_got(r, 0, 0, &c) != SC_INIT_ACK || ddps_sc_decode_init(&i, &c) < 0)
		return false;
	r->tag = i.tag;
	r->tsn = i.tsn;
	cr_assert_leq(i.cookie_len, sizeof r->cookie);
	memcpy(r->cookie, i.cookie, i.cookie_len);
	r->cookie_len = i.cookie_len;
	return true;
}

void raw_echo(struct raw *r)
{
	raw_chunk(r, r->tag, SC_COOKIE_ECHO, 0, r->cookie, r->cookie_len);
}

void raw_up(struct raw *r)
{
	raw_init(r);
	raw_init_chunk(r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(r));
	raw_echo(r);
	cr_assert_eq(raw_got(r, 0, 0, NULL), SC_COOKIE_ACK);
	cr_assert_eq(r->accepted, 1);
}

void raw_answer_init(struct raw *r)
{
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;
	static const uint8_t cookie[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };

	cr_assert_eq(raw_got(r, 0, 0, &c), SC_INIT);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	r->tag = i.tag;
	r->tsn = i.tsn;
	r->own = RAW_TAG;
	r->next = RAW_TSN;
	raw_begin(r, r->tag);
	put_sctp_raw_init(r, SC_INIT_ACK, RAW_TAG, 100000, 5, 5, RAW_TSN, cookie, sizeof cookie);
	raw_send(r);
}

void raw_connect(struct raw *r)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };

	r->n = 0;
	cr_assert_eq(ddps_sctp_connect(r->e, &p, &r->net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, r, r->net.now, &r->a),
		     0);
	sn_flush(&r->net);
}

const char *raw_state(const struct raw *r)
{
	struct ddps_sctp_info i;

	if (!r->a)
		return "CLOSED";
	ddps_sctp_info(r->a, &i);
	return i.state;
}

int raw_user_send(struct raw *r, uint16_t sid, unsigned flags, const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	int err = ddps_sctp_send(r->a, sid, 17, flags, &iov, 1, r->net.now);

	r->n = 0;
	sn_flush(&r->net);
	return err;
}
