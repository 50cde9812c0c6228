/* SPDX-License-Identifier: BSD-2-Clause */
/* What each event counts; and it counts nothing else. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_counted, .fini = fini);

static void send_sctp_counted_heartbeat(void)
{
	raw_chunk(&r, r.tag, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
}

static void send_stray_chunk(void)
{
	r.from = 7000;
	raw_init_chunk(&r, 77, 1);
	r.from = 0;
}

static void known_again(void)
{
	raw_init_chunk(&r, 77, 1);
}

static void wrong_sum(void)
{
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ACK, 0, NULL, 0);
	ddps_sc_crc_put(r.buf, (size_t)(r.w.p - r.buf));
	r.buf[8] ^= 1;
	raw_send_as_is(&r, r.buf, (size_t)(r.w.p - r.buf));
}

static void send_too_short_chunk(void)
{
	raw_send_as_is(&r, r.buf, DDPS_SC_HDR - 1);
}

static void wrong_tag(void)
{
	raw_chunk(&r, r.tag ^ 1, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
}

static void out_of_the_blue(void)
{
	r.from = 7000;
	send_sctp_counted_heartbeat();
	r.from = 0;
}

static void send_unknown_sctp_counted(void)
{
	raw_chunk(&r, r.tag, 0xc5, 0, "abc", 3);
}

static void put_cause_error(void)
{
	raw_chunk(&r, r.tag, SC_ERROR, 0, "\0\6\0\4", 4);
}

static void an_abort(void)
{
	raw_chunk(&r, r.tag, SC_ABORT, 0, NULL, 0);
}

static void an_abort_with_a_wrong_t(void)
{
	raw_chunk(&r, r.tag, SC_ABORT, SC_FLAG_T, NULL, 0);
}

static void a_lie(void)
{
	raw_sack(&r, r.tsn + 5, 100000);
}

static void a_sack_cut_short(void)
{
	raw_chunk(&r, r.tag, SC_SACK, 0, "\0\0\0\0\0\0\0\0", 8);
}

static void a_shutdown_cut_short(void)
{
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, "abc", 3);
}

static void a_shutdown_too_long(void)
{
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, "abcdefgh", 8);
}

static void the_user_aborts(void)
{
	ddps_sctp_abort(r.a, NULL, r.net.now);
	raw_wait(&r, 1);
}

static void a_cookie_of_nobody(void)
{
	raw_chunk(&r, r.tag, SC_COOKIE_ECHO, 0, "cookie", 6);
}

static void a_cookie_that_is_old(void)
{
	struct ddps_sc_chunk c;

	r.from = 7000;
	raw_init_chunk(&r, 78, 1);
	raw_take_init_ack(&r);
	r.net.now += 61000 * MS;
	raw_echo(&r);
	cr_expect_eq(raw_got(&r, 0, 0, &c), SC_ERROR);
	cr_expect_eq(c.flags, 0);
	r.from = 0;
}

static void far_ahead(void)
{
	raw_data(&r, r.next + 70000, 0, 0, 7, "x");
}

static void another_port(void)
{
	r.net.node[1].udp++;
	send_sctp_counted_heartbeat();
}

static void quote(enum ddps_sctp_icmp what, uint32_t tag)
{
	struct ddps_sctp_route to = { .peer = r.net.node[1].addr[0], .encap = 9899 };
	uint8_t q[8];
	struct ddps_wbuf w = ddps_wbuf_init(q, sizeof q);

	ddps_wbuf_u16(&w, RAW_PORT);
	ddps_wbuf_u16(&w, RAW_PEER);
	ddps_wbuf_u32(&w, tag);
	ddps_sctp_icmp(r.e, &to, what, 1400, q, sizeof q, r.net.now);
	if (what != DDPS_SCTP_ICMP_UNREACH && tag == RAW_TAG)
		cr_expect(ddps_sctp_pending(r.e), "there may be something to send");
}

static void too_big(void)
{
	quote(DDPS_SCTP_ICMP_TOO_BIG, RAW_TAG);
}

static void take_sctp_counted_port_away(void)
{
	quote(DDPS_SCTP_ICMP_UNREACH_PORT, RAW_TAG);
}

static void take_sctp_counted_host_away(void)
{
	quote(DDPS_SCTP_ICMP_UNREACH, RAW_TAG);
}

static void no_port_for_another_tag(void)
{
	quote(DDPS_SCTP_ICMP_UNREACH_PORT, RAW_TAG + 1);
}

static void no_memory_for_another(void)
{
	struct ddps_sctp_param p = { .port = 0 };
	struct ddps_sctp_assoc *a;

	mem_fail(1);
	cr_expect_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, 9, 9899, &sn_deaf, NULL,
				       r.net.now, &a),
		     DDPS_E_NOMEM);
	mem_fail(0);
}

static const struct {
	const char *name;
	void (*event)(void);
	int assocs;
	struct ddps_sctp_stats more;
} is[] = {
	{ "heartbeat", send_sctp_counted_heartbeat, 0, { .packets_in = 1, .packets_out = 1 } },
	{ "stranger",
	  send_stray_chunk,
	  0,
	  { .packets_in = 1, .packets_out = 1, .out_of_the_blue = 1, .init_in = 1 } },
	{ "INIT of a known one",
	  known_again,
	  0,
	  { .packets_in = 1, .packets_out = 1, .init_in = 1 } },
	{ "wrong sum", wrong_sum, 0, { .packets_in = 1, .bad_crc = 1 } },
	{ "too short", send_too_short_chunk, 0, { .packets_in = 1, .malformed = 1 } },
	{ "wrong tag", wrong_tag, 0, { .packets_in = 1, .bad_tag = 1 } },
	{ "out of the blue",
	  out_of_the_blue,
	  0,
	  { .packets_in = 1, .packets_out = 1, .out_of_the_blue = 1, .aborts_out = 1 } },
	{ "unknown chunk",
	  send_unknown_sctp_counted,
	  0,
	  { .packets_in = 1, .packets_out = 1, .unknown_chunks = 1 } },
	{ "ERROR", put_cause_error, 0, { .packets_in = 1, .errors_in = 1 } },
	{ "ABORT", an_abort, -1, { .packets_in = 1, .aborts_in = 1 } },
	{ "ABORT, T", an_abort_with_a_wrong_t, 0, { .packets_in = 1, .bad_tag = 1 } },
	{ "lie",
	  a_lie,
	  -1,
	  { .packets_in = 1, .packets_out = 1, .violations = 1, .aborts_out = 1 } },
	{ "short SACK", a_sack_cut_short, 0, { .packets_in = 1, .malformed = 1 } },
	{ "short SHUTDOWN", a_shutdown_cut_short, 0, { .packets_in = 1, .malformed = 1 } },
	{ "long SHUTDOWN", a_shutdown_too_long, 0, { .packets_in = 1, .malformed = 1 } },
	{ "abort", the_user_aborts, -1, { .packets_out = 1, .aborts_out = 1 } },
	{ "cookie", a_cookie_of_nobody, 0, { .packets_in = 1, .cookies_bad = 1 } },
	{ "old cookie",
	  a_cookie_that_is_old,
	  0,
	  { .packets_in = 2,
	    .packets_out = 2,
	    .out_of_the_blue = 1,
	    .init_in = 1,
	    .cookies_stale = 1 } },
	{ "far ahead", far_ahead, 0, { .packets_in = 1, .packets_out = 1, .window_drops = 1 } },
	{ "another port",
	  another_port,
	  0,
	  { .packets_in = 1, .packets_out = 1, .ports_learned = 1 } },
	{ "no memory", no_memory_for_another, 0, { .no_memory = 1 } },
	{ "too big", too_big, 0, { .icmp_believed = 1 } },
	{ "no port", take_sctp_counted_port_away, 0, { .icmp_believed = 1 } },
	{ "no host", take_sctp_counted_host_away, 0, { .icmp_ignored = 1 } },
	{ "no port, another tag", no_port_for_another_tag, 0, { .icmp_ignored = 1 } },
};

Test(sctp_counted, one_event_after_the_other)
{
	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		struct ddps_sctp_stats was, now;

		if (i)
			raw_fini(&r);
		raw_up(&r);
		ddps_sctp_stats(r.e, &was);
		is[i].event();
		ddps_sctp_stats(r.e, &now);
		cr_expect_eq((int)(now.assocs - was.assocs), is[i].assocs, "%s", is[i].name);
		cr_expect_eq(now.held, was.held);
#define DDPS_X(c)                                                                                  \
	cr_expect_eq(now.c - was.c, is[i].more.c, "%s: " #c " %llu", is[i].name,                   \
		     (unsigned long long)(now.c - was.c));
		DDPS_SCTP_COUNTERS(DDPS_X)
#undef DDPS_X
	}
}

/* ---- what a peer is informed of at an end that is nobody's fault ---- */

/* Nothing but the chunk's head: there is no cause for it [9260-3.3.7]. */
static void aborted_without_cause(const char *why)
{
	struct ddps_sc_chunk c;

	for (unsigned i = 0; i < 2000 && !r.gone; i++)
		raw_wait(&r, 1000);
	cr_assert_eq(r.gone, 1, "%s", why);
	cr_assert(raw_any(&r, SC_ABORT, &c), "%s", why);
	cr_expect_eq(c.vlen, 0, "%s: %zu", why, c.vlen);
	cr_expect_eq(c.flags, 0);
	cr_expect_eq(raw_got_tag(&r, r.n - 1), RAW_TAG);
}

Test(sctp_counted, an_abort_after_silence_names_no_cause)
{
	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "is anybody there?"), 0);
	aborted_without_cause("DATA");
	raw_fini(&r);
	raw_up(&r);
	ddps_sctp_shutdown(r.a, r.net.now);
	aborted_without_cause("SHUTDOWN");
	raw_fini(&r);
	raw_up(&r);
	ddps_sctp_shutdown(r.a, r.net.now);
	for (unsigned i = 0; i < 299; i++) { /* alive, but it does not end [9260-9.2-5] */
		raw_wait(&r, 1000);
		cr_assert_eq(r.gone, 0, "%u s", i);
		send_sctp_counted_heartbeat();
	}
	aborted_without_cause("T5");
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
}

/* A peer that answers all but SHUTDOWN ACK is asked as often as one that answers nothing. */
Test(sctp_counted, shutdown_acks_that_nobody_answers)
{
	uint32_t cum;
	unsigned n = 0;

	raw_up(&r);
	cum = htobe32(r.tsn - 1);
	raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
	n += raw_any(&r, SC_SHUTDOWN_ACK, NULL);
	for (unsigned i = 0; i < 400 && !r.gone; i++) {
		raw_wait(&r, 1000);
		for (unsigned k = 0; k < r.n; k++)
			n += raw_got(&r, k, 0, NULL) == SC_SHUTDOWN_ACK;
		if (r.a)
			r.a->errors = 0; /* as an answered heartbeat would have it */
	}
	cr_assert_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
	cr_expect(n >= 8 && n <= 11, "%u", n);
}
