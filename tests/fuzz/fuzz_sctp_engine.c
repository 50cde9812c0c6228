/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets into the SCTP engine in every state: a set-up in either role, then whatever the input
 * says: DATA, SACK, other chunks and plain octets, with right tags and wrong ones, in between what
 * a user does, and time.
 */
#include "fuzz.h"
#include "mutate.h"
#include "sctp_rig.h"

#define STEPS_MAX 300
#define PORT	  5000
#define PEER	  6000
#define RWND	  65536u

static const struct ddps_sctp_addr peer = { .family = 4, .ip = { 10, 0, 0, 2 } };

struct world {
	struct ddps_sctp *e;
	struct ddps_sctp_assoc *a;
	uint64_t now, seed;
	uint32_t tag, tsn, own, next; /* theirs: the engine's; ours */
	uint8_t cookie[DDPS_SC_COOKIE_MAX];
	size_t cookie_len;
	bool init_seen, busy;
};

static void no_surprise(void *user, void *buf, size_t len)
{
	sctp_octets(&((struct world *)user)->seed, buf, len);
}

/* ---- the user ---- */

static void ignore_engine_upcall(void *user)
{
	(void)user;
}

static void take_sctp_engine_fuzz_message(void *user, const struct ddps_sctp_msg *m)
{
	uint8_t *copy = fuzz_exact(m->data, m->len); /* all of it can be read */

	(void)user;
	FUZZ_CHECK(m->len);
	free(copy);
}

static void take_sctp_engine_fuzz_acked(void *user, uint64_t n)
{
	struct world *w = user;

	FUZZ_CHECK(n <= ddps_sctp_sent(w->a));
}

static void take_sctp_engine_fuzz_gone(void *user, const struct ddps_error *e)
{
	struct world *w = user;

	(void)e;
	ddps_sctp_assoc_free(w->a, w->now);
	w->a = NULL;
}

static const struct ddps_sctp_up up = { .up = ignore_engine_upcall,
					.message = take_sctp_engine_fuzz_message,
					.writable = ignore_engine_upcall,
					.acked = take_sctp_engine_fuzz_acked,
					.peer_shutdown = ignore_engine_upcall,
					.restarted = ignore_engine_upcall,
					.gone = take_sctp_engine_fuzz_gone };

static void take_sctp_engine_fuzz_accept(void *user, struct ddps_sctp_assoc *a)
{
	struct world *w = user;

	if (w->a) {
		ddps_sctp_assoc_free(a, w->now);
		return;
	}
	w->a = a;
	ddps_sctp_assoc_set_up(a, &up, w);
}

/* ---- the peer ---- */

/* What is needed to go on as a peer would. */
static void look_at_engine_packet(void *user, const uint8_t *p, size_t len)
{
	struct world *w = user;
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;

	FUZZ_CHECK(len >= 16);
	if (ddps_sc_contains(p, len, SC_INIT, &c) && !ddps_sc_decode_init(&i, &c)) {
		w->tag = i.tag;
		w->tsn = i.tsn;
	}
	if (ddps_sc_contains(p, len, SC_INIT_ACK, &c) && !ddps_sc_decode_init(&i, &c)) {
		w->tag = i.tag;
		w->tsn = i.tsn;
		w->cookie_len = i.cookie_len;
		memcpy(w->cookie, i.cookie, i.cookie_len);
	}
}

static void flush_engine(struct world *w)
{
	sctp_output(w->e, w->now, look_at_engine_packet, w);
}

static void give_to_engine(struct world *w, const struct ddps_wbuf *b, uint8_t *buf)
{
	size_t len = (size_t)(b->p - buf);
	struct ddps_sctp_in in = { .from = { .peer = peer, .encap = 9899 }, .len = len };

	ddps_sc_crc_put(buf, len);
	in.data = fuzz_exact(buf, len);
	ddps_sctp_input(w->e, &in, 1, w->now);
	free(in.data);
	flush_engine(w);
}

static void give_chunk_to_engine(struct world *w, uint32_t tag, uint8_t type, uint8_t flags,
				 const void *p, size_t n)
{
	static uint8_t buf[4096];
	struct ddps_wbuf b = ddps_wbuf_init(buf, sizeof buf);

	ddps_sc_put_header(&b, PEER, PORT, tag);
	ddps_sc_put_chunk(&b, type, flags, p, n);
	give_to_engine(w, &b, buf);
}

static void init(struct world *w, uint8_t type, uint32_t tag)
{
	uint8_t body[24];
	struct ddps_wbuf b = ddps_wbuf_init(body, sizeof body);

	ddps_wbuf_u32(&b, w->own);
	ddps_wbuf_u32(&b, 100000);
	ddps_wbuf_u32(&b, 0x00080008);
	ddps_wbuf_u32(&b, w->next);
	if (type == SC_INIT_ACK)
		ddps_sc_put_tlv(&b, SC_P_COOKIE, "cook", 4);
	give_chunk_to_engine(w, tag, type, 0, body, (size_t)(b.p - body));
}

/* -128..127, to be added to a number that wraps. */
static uint32_t near_number(struct ddps_rbuf *in)
{
	uint8_t v = ddps_rbuf_u8(in);

	return v < 128 ? v : UINT32_MAX - (255u - v);
}

static void give_data_to_engine(struct world *w, struct ddps_rbuf *in)
{
	uint8_t how = ddps_rbuf_u8(in), body[300] = { 0 };
	struct ddps_wbuf b = ddps_wbuf_init(body, sizeof body);
	uint32_t off = near_number(in);

	ddps_wbuf_u32(&b, w->next + off);
	ddps_wbuf_u16(&b, how >> 5);
	ddps_wbuf_u16(&b, ddps_rbuf_u8(in));
	ddps_wbuf_u32(&b, 17);
	if (!off)
		w->next++;
	give_chunk_to_engine(w, w->tag, SC_DATA, how & 15, body, 12 + ddps_rbuf_u8(in));
}

static void give_sack_to_engine(struct world *w, struct ddps_rbuf *in)
{
	uint8_t body[64] = { 0 }, n = ddps_rbuf_u8(in) & 7;
	struct ddps_wbuf b = ddps_wbuf_init(body, sizeof body);

	ddps_wbuf_u32(&b, w->tsn + near_number(in));
	ddps_wbuf_u32(&b, (uint32_t)ddps_rbuf_u8(in) << 9);
	ddps_wbuf_u16(&b, n);
	ddps_wbuf_u16(&b, n & 1);
	for (unsigned i = 0; i < n; i++) {
		ddps_wbuf_u16(&b, ddps_rbuf_u8(in));
		ddps_wbuf_u16(&b, ddps_rbuf_u8(in));
	}
	if (n & 1)
		ddps_wbuf_u32(&b, w->tsn);
	give_chunk_to_engine(w, w->tag, SC_SACK, 0, body, (size_t)(b.p - body));
}

static void give_octets_to_engine(struct world *w, struct ddps_rbuf *in, bool raw)
{
	uint8_t type = ddps_rbuf_u8(in), flags = ddps_rbuf_u8(in);
	size_t n;
	const uint8_t *p = fuzz_some(in, ddps_rbuf_u8(in), &n);
	static uint8_t buf[512];
	struct ddps_wbuf b = ddps_wbuf_init(buf, sizeof buf);

	if (!raw) {
		give_chunk_to_engine(w, flags & 0x80 ? w->own : w->tag, type, flags & 15, p, n);
		return;
	}
	ddps_sc_put_header(&b, PEER, PORT, type & 1 ? w->tag : type & 2 ? 0 : w->own);
	ddps_wbuf_bytes(&b, p, n);
	give_to_engine(w, &b, buf);
}

/* ---- a run ---- */

static void call_engine_as_user(struct world *w, uint8_t what)
{
	static const uint8_t text[5000];
	struct iovec iov = { (void *)(uintptr_t)text, 1 + (size_t)(what & 0xf0) * 20 };

	if (!w->a)
		return;
	switch (what & 7) {
	case 0:
		ddps_sctp_pause(w->a, what & 8, w->now);
		break;
	case 1:
		ddps_sctp_hold_stream(w->a, what >> 5, what & 8, w->now);
		break;
	case 2:
		ddps_sctp_shutdown(w->a, w->now);
		break;
	case 3:
		ddps_sctp_keep(w->a, (what & 8) ? 30000 : -30000, w->now);
		break;
	default:
		ddps_sctp_send(w->a, what >> 5, 1, what & 8 ? DDPS_SCTP_UNORDERED : 0, &iov, 1,
			       w->now);
	}
	flush_engine(w);
}

static void take_engine_step(struct world *w, struct ddps_rbuf *in)
{
	uint8_t what = ddps_rbuf_u8(in);

	switch (what & 7) {
	case 0:
		give_data_to_engine(w, in);
		break;
	case 1:
		give_sack_to_engine(w, in);
		break;
	case 2:
	case 3:
		give_octets_to_engine(w, in, what & 1);
		break;
	case 4:
		call_engine_as_user(w, ddps_rbuf_u8(in));
		break;
	case 5:
		w->now += 1ull << (what >> 3);
		ddps_sctp_tick(w->e, w->now);
		flush_engine(w);
		break;
	case 6:
		give_chunk_to_engine(w, w->tag, SC_COOKIE_ECHO, 0, w->cookie, w->cookie_len);
		break;
	default:
		w->own += what >> 4;
		init(w, what & 8 ? SC_INIT_ACK : SC_INIT, what & 8 ? w->tag : 0);
	}
}

static void check_engine_counts(const struct world *w)
{
	struct ddps_sctp_stats st;

	ddps_sctp_stats(w->e, &st);
	FUZZ_CHECK(st.assocs <= 3 && st.held <= 3 * (2 * RWND + 65536));
	FUZZ_CHECK(w->a || !st.held || st.assocs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	struct world w = { .now = 1000000000, .seed = 1, .own = 0x11223344, .next = 1000 };
	struct ddps_sctp_param p = { .port = PORT, .streams = 8 };
	struct ddps_sctp_port *l;
	struct ddps_sctp_config c;

	ddps_sctp_defaults(&c);
	c.random = no_surprise;
	c.user = &w;
	c.rwnd = RWND;
	FUZZ_CHECK(!ddps_sctp_new(&c, w.now, &w.e));
	FUZZ_CHECK(!ddps_sctp_listen(w.e, &p, take_sctp_engine_fuzz_accept, &w, &l));
	switch (ddps_rbuf_u8(&in) & 3) {
	case 0:
		break;
	case 1:
		FUZZ_CHECK(!ddps_sctp_connect(w.e, &p, &peer, 1, PEER, 9899, &up, &w, w.now, &w.a));
		flush_engine(&w);
		break;
	default:
		init(&w, SC_INIT, 0);
		give_chunk_to_engine(&w, w.tag, SC_COOKIE_ECHO, 0, w.cookie, w.cookie_len);
		FUZZ_CHECK(w.a);
	}
	for (unsigned n = 0; n < STEPS_MAX && fuzz_more(&in); n++) {
		take_engine_step(&w, &in);
		check_engine_counts(&w);
	}
	ddps_sctp_free(w.e);
	return 0;
}

/* ---- scripts as take_engine_step() reads them ---- */

static size_t get_sctp_engine_fuzz_step_len(const uint8_t *p, size_t n)
{
	size_t len = 1;

	switch (p[0] & 7) {
	case 0:
		len = 5;
		break;
	case 1:
		len = 4 + (n > 1 ? 2u * (p[1] & 7) : 0);
		break;
	case 2:
	case 3:
		len = 4 + (n > 3 ? p[3] : 0);
		break;
	case 4:
		len = 2;
		break;
	default:
		break;
	}
	return len < n ? len : n;
}

/* A packet of chunks, with a right tag; other steps keep their kind. */
static size_t change_sctp_engine_fuzz_step(uint8_t *p, size_t n, struct fuzz_dice *d)
{
	if (n && (p[0] & 7) != 3)
		return 1 + (n > 1 ? LLVMFuzzerMutate(p + 1, n - 1, n - 1) : 0);
	if (n < 4) {
		p[0] = 3;
		p[1] = fuzz_roll(d, 4) ? 1 : (uint8_t)fuzz_roll(d, 4);
		p[2] = 0;
		n = 4;
	}
	n = fuzz_mutate_chunks(p + 4, n - 4, 255, d);
	p[3] = (uint8_t)n;
	return 4 + n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static const struct fuzz_script script = { 1, get_sctp_engine_fuzz_step_len,
						   change_sctp_engine_fuzz_step };

	return fuzz_mutate_script(&script, data, size, max, seed);
}
