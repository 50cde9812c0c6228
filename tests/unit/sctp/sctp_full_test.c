/* SPDX-License-Identifier: BSD-2-Clause */
/* What is full: packets, their memory, queues, ports, the turn of one tick. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

TestSuite(sctp_full, .fini = fini);

/* ---- a caller with little room ---- */

static struct ddps_sctp_out out;
static uint8_t flat[1 << 17];

/* The next packets, with as little room as a caller may give; they arrive nowhere. */
static bool take_full_packets(unsigned iov_max, size_t head_max)
{
	static struct iovec iov[64];
	static uint8_t head[DDPS_SCTP_HEAD_MIN];
	size_t at = 0;

	cr_assert(iov_max <= 64 && head_max <= sizeof head);
	out = (struct ddps_sctp_out){ .iov = iov,
				      .iov_max = iov_max,
				      .head = head,
				      .head_max = head_max,
				      .max_segs = 64,
				      .max_len = 65507 };
	if (!ddps_sctp_output(r.e, &out, r.net.now))
		return false;
	cr_assert_leq(out.niov, iov_max);
	for (unsigned i = 0; i < out.niov; at += iov[i++].iov_len)
		memcpy(flat + at, iov[i].iov_base, iov[i].iov_len);
	cr_assert_eq(at, out.len);
	for (size_t p = 0; p < at; p += out.seg_size)
		cr_assert(ddps_sc_crc_ok(flat + p, at - p < out.seg_size ? at - p : out.seg_size));
	return true;
}

/* How many chunks of @type are in what was taken; the last one in @c. */
static unsigned count_sctp_full_chunks(uint8_t type, struct ddps_sc_chunk *c)
{
	struct ddps_sc_chunk one;
	unsigned n = 0;

	for (size_t p = 0; p < out.len; p += out.seg_size) {
		size_t left = out.len - p;
		struct ddps_rbuf b =
			ddps_sc_chunks(flat + p, left < out.seg_size ? left : out.seg_size);

		while (ddps_sc_chunk_next(&b, &one) > 0) {
			if (one.type != type)
				continue;
			n++;
			*c = one;
		}
	}
	return n;
}

/* All that waits: TSNs in order, beginning with @tsn.  Returns how many calls it took. */
static unsigned check_sctp_full_order(uint32_t tsn, unsigned count)
{
	unsigned calls = 0, seen = 0;
	struct ddps_sc_chunk one;
	struct ddps_sc_data d;

	for (; take_full_packets(DDPS_SCTP_IOV_MIN, DDPS_SCTP_HEAD_MIN); calls++) {
		for (size_t p = 0; p < out.len; p += out.seg_size) {
			size_t left = out.len - p;
			struct ddps_rbuf b =
				ddps_sc_chunks(flat + p, left < out.seg_size ? left : out.seg_size);

			while (ddps_sc_chunk_next(&b, &one) > 0) {
				cr_assert_eq(one.type, SC_DATA);
				cr_assert_eq(ddps_sc_decode_data(&d, &one), 0);
				cr_expect_eq(d.tsn, tsn + seen++);
				cr_expect_eq(d.len, 200);
			}
		}
	}
	cr_expect_eq(seen, count);
	return calls;
}

/* Payloads of 192 octets and more are led to: of 200, seven would fit by their octets. */
Test(sctp_full, iovecs_of_new_data_and_of_what_is_resent)
{
	static const uint8_t text[200];
	const struct iovec iov = { (void *)(uintptr_t)text, sizeof text };

	raw_up(&r);
	for (unsigned i = 0; i < 14; i++)
		cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
	cr_expect_eq(check_sctp_full_order(r.tsn, 14), 2);
	ddps_sent_path_lost(&r.a->tx, &r.a->path[0]->tx);
	ddps_sc_touch(r.a);
	cr_expect_eq(check_sctp_full_order(r.tsn, 14), 2);
	raw_sack(&r, r.tsn + 13, 100000);
	cr_expect_eq(r.acked, 14);
}

/* An association whose packets may have 9000 octets: INIT has left. */
static void begin_jumbo(void)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 9000 };

	raw_init(&r);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	sn_flush(&r.net);
}

static void up_jumbo(void)
{
	begin_jumbo();
	raw_answer_init(&r);
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	cr_assert_eq(r.ups, 1);
}

/* What leaves with COOKIE ECHO: the peer's least window takes seven, and each is one piece. */
Test(sctp_full, iovecs_of_early_data, .description = "9260-5.1-7")
{
	static char text[201];
	struct ddps_sc_chunk c;
	struct ddps_sc_init i;
	static const uint8_t cookie[] = { 0, SC_P_COOKIE, 0, 8, 'c', 'o', 'o', 'k' };
	unsigned first;

	memset(text, 'x', 200);
	begin_jumbo();
	r.early = text;
	r.nearly = 8;
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
	r.tag = i.tag;
	raw_begin(&r, r.tag);
	raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, cookie, sizeof cookie);
	r.buf[12] = SC_INIT_ACK;
	raw_hand(&r);
	cr_assert(take_full_packets(DDPS_SCTP_IOV_MIN, DDPS_SCTP_HEAD_MIN));
	cr_expect_eq(count_sctp_full_chunks(SC_COOKIE_ECHO, &c), 1);
	first = count_sctp_full_chunks(SC_DATA, &c);
	cr_expect_eq(first, 7);
	cr_expect_eq(r.a->early, first);
	raw_chunk(&r, r.tag, SC_COOKIE_ACK, 0, NULL, 0);
	cr_expect_eq(r.a->tx.next, i.tsn + 8, "the other one follows");
}

/* ---- control chunks ---- */

/* A HEARTBEAT of @len octets in all, to be answered. */
static void send_sctp_full_heartbeat(size_t len)
{
	static uint8_t info[4000];

	info[1] = 1;
	info[2] = (uint8_t)((len - 4) >> 8);
	info[3] = (uint8_t)(len - 4);
	raw_begin(&r, r.tag);
	ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, len - 4);
	raw_hand(&r);
}

static void send_full_data(void)
{
	raw_begin(&r, r.tag);
	raw_put_data(&r, r.next++, 0, 0, SC_DATA_U | 3, "x");
	raw_hand(&r);
}

/* The answers, and a SACK that is due: which of them the first packet has. */
Test(sctp_full, what_fits_next_to_a_sack)
{
	static const struct {
		size_t one, two;
		unsigned answers, sacks;
	} row[] = {
		{ 100, 0, 1, 1 },     { 1000, 1000, 2, 1 }, { 2000, 2056, 2, 0 },
		{ 2000, 2052, 2, 1 }, { 2000, 2084, 2, 0 }, { 2000, 2088, 1, 1 },
		{ 3000, 1000, 2, 1 },
	};
	struct ddps_sc_chunk c;

	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		up_jumbo();
		send_sctp_full_heartbeat(row[i].one);
		if (row[i].two)
			send_sctp_full_heartbeat(row[i].two);
		send_full_data();
		cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
		cr_expect_eq(count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c), row[i].answers, "%u", i);
		cr_expect_eq(count_sctp_full_chunks(SC_SACK, &c), row[i].sacks, "%u", i);
		if (row[i].answers == 1 + (row[i].two != 0) && row[i].sacks) {
			cr_expect_not(take_full_packets(64, DDPS_SCTP_HEAD_MIN), "%u", i);
		} else {
			cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
			cr_expect_eq(count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c) + row[i].answers,
				     2, "%u", i);
			cr_expect_eq(count_sctp_full_chunks(SC_SACK, &c) + row[i].sacks, 1, "%u",
				     i);
		}
		if (i + 1 < sizeof row / sizeof *row)
			fini();
	}
}

/* The same where the path is narrower than the caller's memory. */
Test(sctp_full, what_fits_next_to_a_sack_of_1500_octets)
{
	struct ddps_sc_chunk c;

	for (size_t len = 1428; len <= 1436; len += 4) { /* with 12, and 28: 1472 and more */
		if (len > 1428)
			fini();
		raw_up(&r);
		send_sctp_full_heartbeat(len);
		raw_begin(&r, r.tag);
		raw_put_data(&r, RAW_TSN, 0, 0, SC_DATA_U | 3, "x");
		raw_hand(&r);
		cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
		cr_expect_eq(count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c), 1);
		cr_expect_eq(count_sctp_full_chunks(SC_SACK, &c), len < 1432, "%zu", len);
	}
}

/* Gap blocks of a SACK next to an answer: as many as 1500 octets take, and none behind that. */
Test(sctp_full, how_many_blocks_fit_next_to_an_answer)
{
	static const struct {
		size_t answer;
		unsigned blocks;
	} row[] = { { 1400, 16 }, { 1452, 3 }, { 1460, 1 }, { 1464, 0 }, { 1600, 0 } };
	struct ddps_sc_chunk c;

	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		up_jumbo();
		send_sctp_full_heartbeat(row[i].answer);
		for (unsigned n = 0; n < 30; n++, r.next++)
			send_full_data();
		cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
		cr_expect_eq(count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c), 1);
		cr_assert_eq(count_sctp_full_chunks(SC_SACK, &c), 1, "%u", i);
		cr_expect_eq(c.val[9], row[i].blocks, "%u: %u", i, c.val[9]);
		cr_expect_eq(c.val[11], 0);
		if (i + 1 < sizeof row / sizeof *row)
			fini();
	}
}

Test(sctp_full, answers_that_do_not_fit_together, .description = "9260-6.10-1")
{
	struct ddps_sc_chunk c;

	raw_up(&r);
	send_sctp_full_heartbeat(800);
	send_sctp_full_heartbeat(700); /* too much for 1500 octets */
	send_sctp_full_heartbeat(600); /* and this is not */
	cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
	cr_expect_eq(count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c), 2);
	cr_expect_eq(out.len, 12 + 800 + 600);
	cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
	cr_expect_eq(count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c), 1);
	cr_expect_eq(out.len, 12 + 700);
	cr_expect_not(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
}

/* Those that are larger than a caller's memory for headers leave alone, before or behind others. */
Test(sctp_full, a_large_answer_leaves_alone)
{
	struct ddps_sc_chunk c;

	up_jumbo();
	send_sctp_full_heartbeat(100);
	send_sctp_full_heartbeat(3004);
	send_sctp_full_heartbeat(104);
	cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
	cr_expect_eq(out.len, 12 + 100 + 104);
	cr_assert(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
	cr_expect_eq(count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c), 1);
	cr_expect_eq(out.len, 12 + 3004);
	cr_expect_not(out.fragment);
	cr_expect_not(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
}

Test(sctp_full, sixty_four_control_chunks_wait)
{
	struct ddps_sc_chunk c;
	unsigned n = 0;

	raw_up(&r);
	for (unsigned i = 0; i < 66; i++)
		send_sctp_full_heartbeat(40);
	cr_expect_eq(r.e->st.no_memory, 2);
	while (take_full_packets(64, DDPS_SCTP_HEAD_MIN))
		n += count_sctp_full_chunks(SC_HEARTBEAT_ACK, &c);
	cr_expect_eq(n, 64);
	send_sctp_full_heartbeat(40);
	cr_expect(take_full_packets(64, DDPS_SCTP_HEAD_MIN));
	cr_expect_eq(r.e->st.no_memory, 2);
}

/* ---- packets of no association ---- */

Test(sctp_full, two_hundred_and_fifty_six_answers_wait)
{
	unsigned n = 0;

	raw_init(&r);
	for (unsigned i = 0; i < 258; i++) {
		raw_begin(&r, 77);
		ddps_sc_put_chunk(&r.w, SC_SHUTDOWN_ACK, 0, NULL, 0);
		raw_hand(&r);
	}
	cr_expect_eq(r.e->st.answers_limited, 2);
	while (take_full_packets(64, DDPS_SCTP_HEAD_MIN))
		n++;
	cr_expect_eq(n, 256);
	raw_chunk(&r, 77, SC_SHUTDOWN_ACK, 0, NULL, 0);
	cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN_COMPLETE);
}

Test(sctp_full, no_packet_is_longer_than_65535_octets)
{
	static uint8_t big[65540];
	struct ddps_sctp_in in = { .data = big };

	raw_init(&r);
	in.from.peer = r.net.node[1].addr[0];
	for (in.len = 65535; in.len <= 65536; in.len++) {
		struct ddps_wbuf w = ddps_wbuf_init(big, sizeof big);

		ddps_sc_put_header(&w, RAW_PEER, RAW_PORT, 77);
		big[12] = SC_SHUTDOWN_ACK;
		big[15] = 4;
		ddps_sc_crc_put(big, in.len);
		ddps_sctp_input(r.e, &in, 1, r.net.now);
		cr_expect_eq(r.e->st.malformed, in.len > 65535);
		cr_expect_eq(r.e->st.out_of_the_blue, 1);
	}
}

/* ---- ports ---- */

Test(sctp_full, every_port_is_taken)
{
	static struct ddps_sctp_port *l[16384];
	struct ddps_sctp_param p = { .streams = 1 };
	struct ddps_sctp_assoc *a;

	raw_init(&r);
	for (unsigned i = 0; i < 16384; i++) {
		p.port = (uint16_t)(49152 + i);
		cr_assert_eq(ddps_sctp_listen(r.e, &p, r.port->accept, &r, &l[i]), 0);
	}
	p.port = 0;
	cr_expect_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     DDPS_E_BUSY);
	cr_expect_eq(r.e->st.assocs, 0);
	ddps_sctp_unlisten(l[777]);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &r.a),
		     0);
	cr_expect_eq(r.a->port, 49152 + 777);
	/* an association has it now, with that peer */
	cr_expect_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899,
				       &raw_upcalls, &r, r.net.now, &a),
		     DDPS_E_BUSY);
	cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER + 1, 9899,
				       &raw_upcalls, &r, r.net.now, &a),
		     0);
	cr_expect_eq(a->port, 49152 + 777);
}

/* ---- a turn ---- */

static unsigned gone;

static void count_gone(void *user, const struct ddps_error *e)
{
	(void)user;
	cr_expect_eq(e->code, DDPS_E_RESET);
	gone++;
}

Test(sctp_full, two_hundred_and_fifty_six_are_reported_in_one_turn)
{
	static struct ddps_sctp_up up;
	static uint8_t packet[300][16];
	static struct ddps_sctp_in in[300];

	up = raw_upcalls;
	up.gone = count_gone;
	gone = 0;
	raw_init(&r);
	for (unsigned i = 0; i < 300; i++) {
		struct ddps_wbuf w = ddps_wbuf_init(packet[i], sizeof packet[i]);

		r.from = (uint16_t)(10000 + i);
		raw_init_chunk(&r, RAW_TAG + i, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		raw_echo(&r);
		cr_assert_eq(r.accepted, i + 1);
		ddps_sctp_assoc_set_up(r.a, &up, NULL);
		ddps_sc_put_header(&w, r.from, RAW_PORT, r.tag);
		ddps_sc_put_chunk(&w, SC_ABORT, 0, NULL, 0);
		ddps_sc_crc_put(packet[i], sizeof packet[i]);
		in[i] = (struct ddps_sctp_in){ .data = packet[i], .len = sizeof packet[i] };
		in[i].from.peer = r.net.node[1].addr[0];
		in[i].from.local = r.net.node[0].addr[0];
		in[i].from.encap = r.net.node[1].udp;
	}
	ddps_sctp_input(r.e, in, 300, r.net.now);
	cr_expect_eq(r.e->st.aborts_in, 300);
	cr_expect_eq(gone, 256);
	cr_expect_eq(ddps_sctp_deadline(r.e), r.e->now, "the others now");
	ddps_sctp_tick(r.e, r.net.now);
	cr_expect_eq(gone, 300);
	cr_expect_gt(ddps_sctp_deadline(r.e), r.e->now);
	cr_expect_eq(r.e->st.assocs, 300, "until each is let go");
}

/* An engine whose clock has just begun. */
Test(sctp_full, the_first_millisecond)
{
	struct ddps_sctp_config c;
	struct ddps_sctp_param p = { .port = 9, .streams = 1 };
	struct ddps_sctp_assoc *a;
	struct ddps_sctp *e;

	raw_init(&r);
	sn_config(&r.net, &c);
	c.rto_initial_ms = 1;
	cr_assert_eq(ddps_sctp_new(&c, 0, &e), 0);
	cr_assert_eq(ddps_sctp_connect(e, &p, &r.net.node[1].addr[0], 1, 7, 9899, &sn_deaf, NULL, 0,
				       &a),
		     0);
	ddps_sctp_tick(e, 999999); /* nothing is late: no rest */
	cr_expect_eq(e->sent.rest_to, 0);
	ddps_sctp_tick(e, 1000000);
	cr_expect_eq(e->sent.rest_to, 0);
	ddps_sctp_tick(e, 5000000);
	cr_expect_eq(e->sent.rest_to, 5000000);
	cr_expect_geq(e->sent.rest_from, 1000000);
	ddps_sctp_free(e);
}

/* Freed in the middle of its queues. */
Test(sctp_full, an_engine_goes_with_all_that_waits)
{
	struct ddps_sctp_param p = { .streams = 1 };
	struct ddps_sctp_assoc *a[3];
	long before = mem_live();

	raw_init(&r);
	for (unsigned turn = 0; turn < 2; turn++) {
		if (turn)
			raw_init(&r);
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1,
						       (uint16_t)(RAW_PEER + i), 9899, &sn_deaf,
						       NULL, r.net.now, &a[i]),
				     0);
		if (turn) { /* they wait to send, and one waits to be looked at */
			ddps_sctp_tick(r.e, r.net.now);
			cr_expect(a[0]->in_tx && a[1]->in_tx && a[2]->in_tx);
			ddps_sctp_pause(a[0], true, r.net.now);
			ddps_sctp_pause(a[1], false, r.net.now);
			cr_expect(a[1]->noted && a[0]->touched && a[1]->touched);
		}
		fini();
		cr_expect_eq(mem_live(), before);
	}
	raw_init(&r);
}
