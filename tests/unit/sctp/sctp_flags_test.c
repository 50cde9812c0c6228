/* SPDX-License-Identifier: BSD-2-Clause */
/* What each chunk of the engine has in common, and what the engine leaves behind. */
#include "sctp_raw_fixture.h"
#include "unit/mem_fixture.h"
#include <ddpsess/err.h>

static struct raw r;

/* Flags that are not defined are 0; so are the pads. */
static void look_at_sctp_flags(void)
{
	for (unsigned k = 0; k < r.n; k++) {
		struct ddps_rbuf b = ddps_sc_chunks(r.log[k].data, r.log[k].len);
		struct ddps_sc_chunk c;

		while (ddps_sc_chunk_next(&b, &c) > 0) {
			cr_assert_eq(c.flags & ~(c.type == SC_DATA ? 0x0f : 0), 0, "type %u: %x",
				     c.type, c.flags);
			for (size_t i = c.len; i & 3; i++)
				cr_assert_eq(c.val[c.vlen + i - c.len], 0);
		}
		cr_assert_eq(r.log[k].len & 3, 0);
	}
}

static void run_one_sctp_flags(uint8_t type, const void *val, size_t n, int answer)
{
	raw_chunk(&r, r.tag, type, 0, val, n);
	look_at_sctp_flags();
	if (answer >= 0)
		cr_expect(raw_any(&r, (uint8_t)answer, NULL), "%d", answer);
}

Test(sctp_flags, those_that_nobody_defined_are_0, .description = "9260-3.2-d5 9260-3.2-1")
{
	uint32_t cum;

	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	look_at_sctp_flags();
	cr_assert(raw_take_init_ack(&r));
	raw_echo(&r);
	look_at_sctp_flags();
	run_one_sctp_flags(SC_HEARTBEAT, "\0\1\0\7abc", 7, SC_HEARTBEAT_ACK);
	run_one_sctp_flags(0xc5, "what?", 5, SC_ERROR);
	raw_data(&r, RAW_TSN + 1, 0, 1, 7, "bc");
	look_at_sctp_flags();
	cr_expect(raw_any(&r, SC_SACK, NULL));
	cr_assert_eq(raw_user_send(&r, 0, 0, "hello"), 0);
	look_at_sctp_flags();
	cr_expect(raw_any(&r, SC_DATA, NULL));
	raw_sack(&r, r.tsn, 100000);
	for (unsigned i = 0; i < 40 && !raw_any(&r, SC_HEARTBEAT, NULL); i++)
		raw_wait(&r, 1000);
	look_at_sctp_flags();
	cr_expect(raw_any(&r, SC_HEARTBEAT, NULL));
	cum = htobe32(r.tsn);
	run_one_sctp_flags(SC_SHUTDOWN, &cum, sizeof cum, SC_SHUTDOWN_ACK);
	raw_fini(&r);

	raw_init(&r);
	raw_connect(&r);
	look_at_sctp_flags();
	raw_answer_init(&r);
	look_at_sctp_flags();
	cr_expect(raw_any(&r, SC_COOKIE_ECHO, NULL));
	run_one_sctp_flags(SC_COOKIE_ACK, NULL, 0, -1);
	ddps_sctp_shutdown(r.a, r.net.now);
	raw_wait(&r, 1);
	look_at_sctp_flags();
	cr_expect(raw_any(&r, SC_SHUTDOWN, NULL));
	run_one_sctp_flags(SC_SHUTDOWN_ACK, NULL, 0, SC_SHUTDOWN_COMPLETE);
	raw_fini(&r);
}

/* Whoever connects finds no memory: it is informed, and nothing is left of it. */
static bool can_connect_sctp_flags(unsigned n)
{
	struct ddps_sctp_param p = { .port = RAW_PORT, .streams = 10, .fixed_mtu = 1500 };
	struct ddps_sctp_assoc *a = NULL;
	bool poor;
	int err;

	raw_init(&r);
	mem_fail(n);
	err = ddps_sctp_connect(r.e, &p, &r.net.node[1].addr[0], 1, RAW_PEER, 9899, &raw_upcalls,
				&r, r.net.now, &a);
	poor = mem_failed();
	mem_fail(0);
	cr_expect_eq(err, poor ? DDPS_E_NOMEM : 0, "allocation %u: %d", n, err);
	cr_expect_eq(!a, poor);
	cr_expect_eq(r.e->st.assocs, !poor);
	raw_fini(&r);
	return poor;
}

Test(sctp_flags, an_attempt_without_memory)
{
	long before;
	unsigned n = 1;

	raw_init(&r);
	raw_fini(&r);
	before = mem_live();
	while (can_connect_sctp_flags(n))
		n++;
	cr_expect_geq(n, 2);
	cr_expect_eq(mem_live(), before);
}

/* Answers that wait to be sent go with the association, with the engine, or when they have left. */
Test(sctp_flags, answers_that_never_leave_are_freed)
{
	static uint8_t info[3400] = { 0, 1, 3400 >> 8, 3400 & 255 };
	long before;

	raw_init(&r);
	raw_fini(&r);
	before = mem_live();
	for (unsigned i = 0; i < 6; i++) {
		raw_up(&r);
		raw_begin(&r, r.tag);
		if (i & 1)
			ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, sizeof info);
		else
			ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
		raw_hand(&r);
		if (i / 2 == 1)
			sn_flush(&r.net);
		if (i / 2 == 2)
			ddps_sctp_tick(r.e, r.net.now);
		raw_fini(&r);
		cr_expect_eq(mem_live(), before, "%u", i);
	}
}

/* What left with the last packets is kept no longer than those. */
Test(sctp_flags, what_has_left_is_freed_with_the_next_call)
{
	static uint8_t info[3400] = { 0, 1, 3400 >> 8, 3400 & 255 };

	raw_up(&r);
	for (unsigned i = 0; i < 2; i++) {
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, sizeof info);
		raw_hand(&r);
		sn_flush(&r.net);
		cr_assert_not(STAILQ_EMPTY(&r.e->spent));
		if (i) {
			ddps_sctp_tick(r.e, r.net.now);
		} else {
			raw_begin(&r, r.tag);
			raw_hand(&r);
		}
		cr_expect(STAILQ_EMPTY(&r.e->spent));
	}
	raw_fini(&r);
}

/* A cookie is good from each of the addresses that its INIT listed. */
Test(sctp_flags, a_cookie_from_each_address_of_the_peer)
{
	for (unsigned at = 0; at < 4; at++) {
		uint8_t list[4 * 8] = { 0 };
		struct ddps_sctp_in in = { .data = r.buf };

		raw_init(&r);
		for (unsigned i = 0; i < 4; i++) {
			const uint8_t one_of[8] = {
				0, SC_P_IPV4, 0, 8, 10, 9, 9, (uint8_t)(9 + i)
			};

			memcpy(list + 8 * i, one_of, 8);
		}
		memcpy(list + 8 * at + 4, r.net.node[1].addr[1].ip, 4);
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, list, sizeof list);
		raw_send(&r);
		cr_assert(raw_take_init_ack(&r));
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_COOKIE_ECHO, 0, r.cookie, r.cookie_len);
		in.len = (size_t)(r.w.p - r.buf);
		in.from.peer = r.net.node[1].addr[1];
		in.from.local = r.net.node[0].addr[0];
		in.from.encap = r.net.node[1].udp;
		ddps_sc_crc_put(r.buf, in.len);
		ddps_sctp_input(r.e, &in, 1, r.net.now);
		cr_expect_eq(r.accepted, 1, "%u", at);
		raw_fini(&r);
	}
}

/* An adaptation of another length than its own is none. */
Test(sctp_flags, an_adaptation_has_four_octets)
{
	for (unsigned n = 0; n <= 8; n++) {
		uint8_t p[64], val[8] = { 0, 0, 0, 7, 7, 7, 7, 7 };
		struct ddps_wbuf w = ddps_wbuf_init(p, sizeof p);
		uint8_t *at = ddps_sc_begin_chunk(&w, SC_INIT, 0);
		struct ddps_sc_chunk c;
		struct ddps_sc_init i;
		struct ddps_rbuf b;

		for (int k = 0; k < 4; k++)
			ddps_wbuf_u32(&w, 77);
		ddps_sc_put_tlv(&w, SC_P_ADAPTATION, val, n);
		ddps_sc_end_chunk(&w, at, 0);
		b = ddps_rbuf_init(p, (size_t)(w.p - p));
		cr_assert_eq(ddps_sc_chunk_next(&b, &c), 1);
		cr_assert_eq(ddps_sc_decode_init(&i, &c), 0);
		cr_expect_eq(i.has_adaptation, n == 4);
		cr_expect_eq(i.adaptation, n == 4 ? 7 : 0);
	}
}

/* Timers of many associations differ, by less than a sixteenth, and are never early. */
Test(sctp_flags, control_timers_are_later_never_earlier, .description = "9260-6.3.3-d1")
{
	uint64_t least = UINT64_MAX, most = 0, rto;

	raw_up(&r);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t ns;

		ddps_sc_restart_ctl(r.a, false);
		ns = r.a->ctl_at - r.e->now;
		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	rto = r.a->ctl_rto;
	cr_expect_eq(least, rto);
	cr_expect_eq(most, rto + rto / 16 * 15 / 16);
	ddps_sc_stop_ctl(r.a);
	raw_fini(&r);
}

/* Messages that wait, some of them cut, go with the association. */
Test(sctp_flags, messages_that_never_leave_are_freed)
{
	static const uint8_t text[30000];
	const struct iovec iov = { (void *)(uintptr_t)text, sizeof text };
	long before;

	raw_init(&r);
	raw_fini(&r);
	before = mem_live();
	for (unsigned i = 0; i < 2; i++) {
		raw_up(&r);
		cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &iov, 1, r.net.now), 0);
		if (i)
			sn_flush(&r.net);
		raw_fini(&r);
		cr_expect_eq(mem_live(), before, "%u", i);
	}
}

/* With a SACK at its end or without: a run has as many packets as were asked for, and no more. */
Test(sctp_flags, a_run_has_no_more_packets_than_were_asked_for)
{
	static uint8_t head[1 << 16], text[12000];
	static struct iovec iov[256];
	const struct iovec data = { text, sizeof text };

	for (unsigned i = 0; i < 12; i++) {
		unsigned segs = i / 2 + 1, n = 0, sacks = 0;
		struct ddps_sctp_out out = { .iov = iov,
					     .iov_max = 256,
					     .head = head,
					     .head_max = sizeof head,
					     .max_segs = segs,
					     .max_len = 65536 };

		raw_up(&r);
		cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &data, 1, r.net.now), 0);
		if (i & 1) {
			raw_begin(&r, r.tag);
			raw_put_data(&r, RAW_TSN + 1, 0, 0, 7, "a gap");
			raw_hand(&r);
		}
		while (ddps_sctp_output(r.e, &out, r.net.now)) {
			cr_assert_leq(out.nsegs, segs);
			cr_assert_leq(out.len, out.nsegs * out.seg_size);
			cr_assert_gt(out.len, (out.nsegs - 1) * out.seg_size);
			n += out.nsegs;
			sacks += out.sack || !out.data;
		}
		cr_expect_geq(n, 8);
		cr_expect_eq(sacks, i & 1, "%u", i);
		raw_fini(&r);
	}
}

/* What the device refused is remembered for others who go there. */
Test(sctp_flags, a_size_that_was_refused_is_remembered)
{
	static uint8_t head[DDPS_SCTP_HEAD_MIN];
	struct iovec iov[DDPS_SCTP_IOV_MIN], data = { "some", 4 };
	struct ddps_sctp_out out = { .iov = iov,
				     .iov_max = DDPS_SCTP_IOV_MIN,
				     .head = head,
				     .head_max = sizeof head,
				     .max_segs = 1,
				     .max_len = 65536 };

	raw_up(&r);
	cr_assert_eq(ddps_sctp_send(r.a, 0, 17, 0, &data, 1, r.net.now), 0);
	cr_assert_eq(ddps_sctp_output(r.e, &out, r.net.now), 1);
	cr_assert(out.data);
	ddps_sctp_refused(r.e, &out, 1303, r.net.now);
	cr_expect_eq(r.a->path[0]->tx.pmtu.size, 1300);
	cr_expect_eq(ddps_sc_way_size(r.e, &r.a->path[0]->peer), 1300);
	raw_fini(&r);
}

Test(sctp_flags, a_packet_with_a_wrong_sum_is_counted, .description = "9260-6.8-2")
{
	raw_up(&r);
	for (unsigned i = 0; i < 3; i++) {
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
		ddps_sc_crc_put(r.buf, (size_t)(r.w.p - r.buf));
		r.buf[15] ^= 1;
		raw_send_as_is(&r, r.buf, (size_t)(r.w.p - r.buf));
		cr_expect_eq(r.n, 0);
		cr_expect_eq(r.e->st.bad_crc, i + 1);
	}
	raw_fini(&r);
}
