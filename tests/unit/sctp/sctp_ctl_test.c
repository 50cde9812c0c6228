/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP packets without DATA of their own: what fits into them, and those that the system hands back. */
#include "sctp_raw_fixture.h"
#include "sctp/sctp_build.h"

static struct raw r;
static struct ddps_sctp_out out;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_ctl, .fini = fini);

static void take_out_ctl_packets(void)
{
	static struct iovec iov[64];
	static uint8_t head[65536];

	out.iov = iov;
	out.iov_max = 64;
	out.head = head;
	out.head_max = sizeof head;
	out.max_segs = 1;
	out.max_len = 65507;
	cr_assert_eq(ddps_sctp_output(r.e, &out, r.net.now), 1);
}

static void flush_sctp_ctl(void)
{
	r.n = 0;
	sn_flush(&r.net);
}

static void begin_sctp_ctl(uint32_t fixed_mtu)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = fixed_mtu };

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	flush_sctp_ctl();
}

/* An association that the peer has opened, on a path that takes packets of @fixed_mtu. */
static void bring_sctp_ctl_up(uint32_t fixed_mtu)
{
	raw_init(&r);
	r.port->param.fixed_mtu = fixed_mtu;
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	cr_assert_eq(r.accepted, 1);
}

/* ---- COOKIE ECHO ---- */

static unsigned data_chunks(void)
{
	struct ddps_sc_chunk c;
	unsigned n = 0;

	for (unsigned i = 0; raw_got(&r, 0, i, &c) >= 0; i++)
		n += c.type == SC_DATA;
	return n;
}

/* With the first one what fills a packet, then what passes nearly anywhere. */
Test(sctp_ctl, what_goes_with_a_cookie, .description = "9260-5.1-7")
{
	static const struct {
		size_t len;
		unsigned first, again;
	} row[] = { { 1436, 1, 0 }, { 1437, 0, 0 }, { 513, 1, 0 }, { 512, 1, 1 } };
	static char text[1500];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		memset(text, 'x', row[i].len);
		text[row[i].len] = 0;
		begin_sctp_ctl(1500);
		r.early = text;
		r.nearly = 1;
		raw_answer_init(&r);
		cr_expect_eq(data_chunks(), row[i].first, "%zu", row[i].len);
		raw_wait(&r, 1100);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
		cr_expect_eq(data_chunks(), row[i].again, "%zu", row[i].len);
		raw_fini(&r);
	}
	raw_init(&r);
}

/* What INIT ACK has to say has room for 1500 octets at least; they may be used up, and no more. */
Test(sctp_ctl, no_more_than_the_least_window, .description = "9260-5.1-7")
{
	static char text[751];

	memset(text, 'x', 750);
	begin_sctp_ctl(9000);
	r.early = text;
	r.nearly = 3;
	raw_answer_init(&r);
	cr_expect_eq(r.log[0].len, 12 + 8 + 2 * (16 + 752));
}

/* INIT ACK with a cookie of @len octets. */
static void answer_sctp_ctl(size_t len)
{
	static uint8_t params[2000];
	struct ddps_wbuf w = ddps_wbuf_init(params, 4);
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;

	ddps_wbuf_u16(&w, SC_P_COOKIE);
	ddps_wbuf_u16(&w, (uint16_t)(4 + len));
	memset(params + 4, 'c', len);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	r.tag = i.tag;
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, params, 4 + len);
	r.buf[12] = SC_INIT_ACK;
	raw_hand(&r);
}

Test(sctp_ctl, a_cookie_is_padded_with_zeros, .description = "9260-3.2-1")
{
	for (size_t len = 5; len <= 8; len++) {
		begin_sctp_ctl(1500);
		answer_sctp_ctl(len);
		flush_sctp_ctl();
		cr_assert_eq(raw_got(&r, 0, 0, NULL), SC_COOKIE_ECHO);
		cr_assert_eq(r.log[0].len, 12 + 4 + 8);
		for (size_t i = 0; i < 8; i++)
			cr_expect_eq(r.log[0].data[16 + i], i < len ? 'c' : 0, "%zu: %zu", len, i);
		raw_fini(&r);
	}
	raw_init(&r);
}

/* One that does not fit goes nevertheless, in fragments: the peer has sent it whole. */
Test(sctp_ctl, a_cookie_that_no_packet_takes)
{
	for (size_t len = 1456; len <= 1460; len += 4) {
		begin_sctp_ctl(1500);
		answer_sctp_ctl(len);
		take_out_ctl_packets();
		cr_expect_eq(out.len, 16 + len);
		cr_expect_eq(out.fragment, len > 1456, "%zu", len);
		raw_fini(&r);
	}
	raw_init(&r);
}

/* ---- what is large ---- */

static void send_sctp_ctl_heartbeat(size_t len)
{
	static const uint8_t zero[4000];

	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, zero, len - 4);
	raw_hand(&r);
}

Test(sctp_ctl, an_answer_that_fills_its_packet)
{
	bring_sctp_ctl_up(4028);
	for (size_t len = 3988; len <= 3992; len += 4) {
		send_sctp_ctl_heartbeat(len);
		take_out_ctl_packets();
		cr_expect_eq(out.len, 12 + len);
		cr_expect_eq(out.fragment, len > 3988, "%zu", len);
	}
}

/* However many there were. */
Test(sctp_ctl, large_answers_one_after_another)
{
	bring_sctp_ctl_up(1500);
	for (unsigned i = 0; i < 70; i++) {
		send_sctp_ctl_heartbeat(3104);
		flush_sctp_ctl();
		cr_assert_eq(r.n, 1, "%u", i);
		cr_expect_eq(r.log[0].data[12], SC_HEARTBEAT_ACK);
		cr_expect_eq(r.a->nblobs, 0);
	}
}

/* ---- a SACK, and DATA ---- */

static void put_one(uint32_t tsn, uint16_t ssn)
{
	struct iovec iov = { "mine", 4 };

	raw_begin(&r, r.tag);
	raw_put_data(&r, tsn, 0, ssn, 3, "x");
	raw_hand(&r);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	flush_sctp_ctl();
}

/* One that reports gaps has its own packet; the next one rides with DATA again. */
Test(sctp_ctl, a_sack_is_alone_once, .description = "9260-6.1-16")
{
	bring_sctp_ctl_up(1500);
	raw_data(&r, RAW_TSN, 0, 0, 3, "x");
	cr_expect(raw_any(&r, SC_SACK, NULL));
	put_one(RAW_TSN + 2, 2);
	cr_expect_eq(r.n, 2);
	cr_expect(raw_any(&r, SC_SACK, NULL) && raw_any(&r, SC_DATA, NULL));
	put_one(RAW_TSN + 1, 1);
	cr_expect_eq(r.n, 1);
	cr_expect(raw_any(&r, SC_SACK, NULL) && raw_any(&r, SC_DATA, NULL));
}

/* ---- PAD ---- */

Test(sctp_ctl, a_probe_is_zeros, .description = "8899-6.2-1")
{
	struct ddps_sc_chunk c;
	unsigned n = 0;

	bring_sctp_ctl_up(0);
	while (!raw_any(&r, SC_PAD, &c)) {
		cr_assert_lt(n++, 100);
		raw_wait(&r, 1000);
	}
	cr_expect_eq(c.flags, 0);
	for (size_t i = 0; i < c.vlen; i++)
		cr_assert_eq(c.val[i], 0);
}

/* Octets of an SCTP packet over IPv@family with @more to follow, on a link of that MTU. */
static size_t stretched(uint8_t family, uint16_t link, size_t more)
{
	struct ddps_sc_path p = { .peer = { .family = family } };
	struct iovec iov[4];
	uint8_t head[64];
	struct ddps_sctp_out o = { .iov = iov };
	struct ddps_sc_build b = { .p = &p, .out = &o, .size = DDPS_SC_HDR };

	p.tx.pmtu.lim.max = link;
	b.w = ddps_wbuf_init(head, sizeof head);
	b.run = b.head = head;
	ddps_sc_stretch(&b, more);
	return b.size;
}

/* So that IPv6 has it fragmented here it is more than the link takes, if it would have fit. */
Test(sctp_ctl, what_is_made_larger_than_the_link)
{
	static const struct {
		uint8_t family;
		uint16_t link;
		size_t more, size;
	} row[] = {
		{ 6, 1500, 1000, 1500 + 12 - 40 - 1000 },
		{ 6, 1500, 1448, 12 + 12 },
		{ 6, 1500, 1452, 12 },
		{ 4, 1500, 1000, 12 },
		{ 6, 60000, 1000, 60000 + 12 - 40 - 1000 },
		{ 6, 60001, 1000, 12 },
		{ 6, 60004, 1000, 12 },
	};

	raw_init(&r);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		cr_expect_eq(stretched(row[i].family, row[i].link, row[i].more), row[i].size, "%zu",
			     i);
}

/* ---- what the system hands back ---- */

static void hand_back(uint8_t type)
{
	take_out_ctl_packets();
	ddps_sctp_unsent(r.e, &out, r.net.now);
	flush_sctp_ctl();
	cr_expect_eq(r.n, 1, "%u", type);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), type);
}

Test(sctp_ctl, what_had_no_room_comes_again)
{
	uint32_t cum;

	bring_sctp_ctl_up(1500);
	raw_begin(&r, r.tag);
	raw_put_data(&r, RAW_TSN, 0, 0, 3, "x");
	raw_hand(&r);
	hand_back(SC_SACK);
	cum = htobe32(r.tsn - 1);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_SHUTDOWN, 0, &cum, sizeof cum);
	raw_hand(&r);
	hand_back(SC_SHUTDOWN_ACK);
}

/* The peer would wait for them until it asks again. */
Test(sctp_ctl, answers_that_had_no_room_come_again)
{
	static const uint8_t info[5] = { 1, 2, 3, 4, 5 };
	struct ddps_sc_chunk c;

	bring_sctp_ctl_up(1500);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, sizeof info);
	ddps_sc_put_chunk(&r.w, 0xc3, 0, info, sizeof info); /* unknown: to be reported */
	raw_hand(&r);
	hand_back(SC_HEARTBEAT_ACK);
	cr_assert(raw_any(&r, SC_HEARTBEAT_ACK, &c));
	cr_expect_eq(c.vlen, sizeof info);
	cr_expect_arr_eq(c.val, info, sizeof info);
	cr_expect(raw_any(&r, SC_ERROR, NULL));
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
	raw_hand(&r);
	hand_back(SC_COOKIE_ACK);
}

/* Nothing else waits when it comes back. */
Test(sctp_ctl, what_was_too_large_comes_again)
{
	struct iovec iov = { "mine", 4 };

	bring_sctp_ctl_up(1500);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	take_out_ctl_packets();
	cr_expect(out.data);
	flush_sctp_ctl();
	cr_expect_eq(r.n, 0);
	cr_expect_not(ddps_sctp_pending(r.e));
	ddps_sctp_refused(r.e, &out, 1400, r.net.now);
	cr_expect(ddps_sctp_pending(r.e));
	flush_sctp_ctl();
	cr_expect(raw_any(&r, SC_DATA, NULL));
}

/* An answer to a stranger waits for room, too: he may ask no more than a few times. */
Test(sctp_ctl, what_is_of_no_association_comes_again)
{
	struct iovec iov = { "mine", 4 };

	bring_sctp_ctl_up(1500);
	raw_data(&r, RAW_TSN, 0, 0, 3, "x");
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	take_out_ctl_packets();
	cr_expect_eq(out.port, RAW_PORT);
	flush_sctp_ctl();
	raw_begin(&r, 77);
	r.buf[1] ^= 1; /* of another port */
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, NULL, 0);
	raw_hand(&r);
	take_out_ctl_packets();
	cr_expect_eq(out.port, 0);
	ddps_sctp_unsent(r.e, &out, r.net.now);
	take_out_ctl_packets();
	cr_expect_eq(out.port, 0);
	ddps_sctp_unsent(r.e, &out, r.net.now);
	flush_sctp_ctl();
	cr_expect_eq(r.n, 1);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_ABORT);
	cr_expect_eq(raw_got_tag(&r, 0), 77);
}

/* So does the end of an association that is there no more. */
Test(sctp_ctl, an_abort_that_had_no_room_comes_again)
{
	bring_sctp_ctl_up(1500);
	ddps_sctp_abort(r.a, "enough", r.net.now);
	hand_back(SC_ABORT);
}

/* Not without bound, nor memory: none waits in the place of another. */
Test(sctp_ctl, answers_that_wait_are_few)
{
	struct ddps_sctp_stats st;
	unsigned n = 0;

	bring_sctp_ctl_up(1500);
	for (unsigned i = 0; i < 256; i++) {
		raw_begin(&r, 77);
		r.buf[1] ^= 1;
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, NULL, 0);
		raw_hand(&r);
	}
	take_out_ctl_packets();
	raw_begin(&r, 78);
	r.buf[1] ^= 1;
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, NULL, 0);
	raw_hand(&r);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.answers_limited, 0);
	ddps_sctp_unsent(r.e, &out, r.net.now);
	ddps_sctp_stats(r.e, &st);
	cr_expect_eq(st.answers_limited, 1);
	for (; ddps_sctp_output(r.e, &out, r.net.now); n++)
		cr_expect_eq(out.port, 0);
	cr_expect_eq(n, 256);
}
