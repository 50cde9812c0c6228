/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's limits and states, both sides of each. */
#include "sctp_paths_fixture.h"
#include "sctp/send/tx_in.h"
#include <ddpsess/err.h>

TestSuite(sctp_limits, .fini = fini);

/* The measure of staleness is in microseconds, and 0 would say that it is not stale. */
Test(sctp_limits, how_stale_a_cookie_is, .description = "9260-5.1.5-5")
{
	static const uint64_t is[][2] = {
		{ 1, 1 }, { 999, 1 }, { 1000, 1 }, { 1001, 2 }, { 5000000, 5000 }
	};
	struct ddps_sc_chunk c;

	for (unsigned i = 0; i < 5; i++) {
		uint32_t us;

		if (i)
			raw_fini(&r);
		raw_init(&r);
		raw_init_chunk(&r, RAW_TAG, RAW_TSN);
		cr_assert(raw_take_init_ack(&r));
		sn_run(&r.net, 60000 * MS + is[i][0]);
		raw_echo(&r);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ERROR);
		cr_assert_eq(c.vlen, 8);
		memcpy(&us, c.val + 4, 4);
		cr_expect_eq(be32toh(us), is[i][1], "%u: %u", i, be32toh(us));
	}
}

Test(sctp_limits, a_cookie_is_good_to_the_end_of_its_life, .description = "9260-5.1.5-4")
{
	raw_init(&r);
	raw_init_chunk(&r, RAW_TAG, RAW_TSN);
	cr_assert(raw_take_init_ack(&r));
	sn_run(&r.net, 60000 * MS);
	raw_echo(&r);
	cr_expect_eq(r.accepted, 1);
}

Test(sctp_limits, a_repeated_shutdown_is_answered_again, .description = "9260-9.2-13")
{
	uint32_t cum;

	raw_up(&r);
	cum = htobe32(r.tsn - 1);
	for (unsigned i = 0; i < 3; i++) {
		raw_chunk(&r, r.tag, SC_SHUTDOWN, 0, &cum, sizeof cum);
		cr_expect_eq(raw_got(&r, 0, 0, NULL), SC_SHUTDOWN_ACK, "%u", i);
		cr_expect_eq(r.n, 1);
	}
	cr_expect_str_eq(raw_state(&r), "SHUTDOWN-ACK-SENT");
}

Test(sctp_limits, how_long_a_host_name_is_shown, .description = "9260-3.3.2-3")
{
	static uint8_t host[260] = { 0, 11 };
	struct ddps_sc_chunk c;

	raw_init(&r);
	for (unsigned n = 252; n <= 260; n++) {
		host[2] = (uint8_t)(n >> 8);
		host[3] = (uint8_t)n;
		raw_begin(&r, 0);
		raw_put_init(&r, RAW_TAG, 100000, 5, 5, RAW_TSN, host, n);
		raw_send(&r);
		cr_assert_eq(raw_got(&r, 0, 0, &c), SC_ABORT);
		if (n > 256) {
			cr_expect_eq(c.vlen, 0);
			continue;
		}
		cr_assert_geq(c.vlen, n + 4);
		cr_expect_eq((unsigned)(c.val[2] << 8 | c.val[3]), n + 4);
		cr_expect_eq(memcmp(c.val + 4, host, n), 0);
	}
}

Test(sctp_limits, packets_are_counted)
{
	struct ddps_sctp_stats was, is;

	raw_up(&r);
	for (unsigned i = 0; i < 3; i++) {
		ddps_sctp_stats(r.e, &was);
		raw_chunk(&r, r.tag, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
		ddps_sctp_stats(r.e, &is);
		cr_expect_eq(is.packets_in, was.packets_in + 1);
		cr_expect_eq(is.packets_out, was.packets_out + r.n);
		cr_expect_eq(r.n, 1);
	}
}

/* Several packets that came together, as the system hands them over. */
Test(sctp_limits, a_run_of_packets_is_taken_apart)
{
	static const size_t segs[] = { 0, 1, 2, 3 };

	for (unsigned i = 0; i < 4; i++) {
		struct ddps_sctp_in in = { .data = r.buf };
		struct ddps_sctp_stats was, is;
		size_t one;

		if (i)
			raw_fini(&r);
		raw_up(&r);
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
		one = (size_t)(r.w.p - r.buf);
		ddps_sc_crc_put(r.buf, one);
		for (unsigned k = 1; k < 3; k++)
			memcpy(r.buf + k * one, r.buf, one);
		in.len = segs[i] ? segs[i] * one : one;
		in.seg_size = segs[i] ? one : 0;
		if (i == 3)
			in.len -= 4; /* the last one is cut */
		in.from.peer = r.net.node[1].addr[0];
		in.from.local = r.net.node[0].addr[0];
		in.from.encap = r.net.node[1].udp;
		ddps_sctp_stats(r.e, &was);
		ddps_sctp_input(r.e, &in, 1, r.net.now);
		ddps_sctp_stats(r.e, &is);
		cr_expect_eq(is.packets_in - was.packets_in, segs[i] ? segs[i] : 1);
		r.n = 0;
		sn_flush(&r.net);
		cr_expect_eq(r.n > 0, true);
	}
}

/* What an earlier packet left in it is not taken for this one's. */
Test(sctp_limits, what_is_to_be_sent_is_all_new)
{
	static uint8_t head[DDPS_SCTP_HEAD_MIN];
	struct iovec iov[DDPS_SCTP_IOV_MIN];
	struct ddps_sctp_out out = { .iov = iov,
				     .iov_max = DDPS_SCTP_IOV_MIN,
				     .head = head,
				     .head_max = sizeof head,
				     .max_segs = 1,
				     .max_len = 65536 };

	raw_up(&r);
	for (unsigned i = 0; i < 2; i++) {
		raw_begin(&r, i ? r.tag : 0);
		if (i)
			ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
		else
			raw_put_init(&r, 7, 100000, 5, 5, RAW_TSN, NULL, 0);
		r.from = (uint16_t)(i ? 0 : 6001);
		raw_hand(&r);
		out.fragment = out.probe = out.data = out.sack = true;
		out.pn = 9;
		out.port = 9;
		out.niov = out.nsegs = 7;
		cr_assert_eq(ddps_sctp_output(r.e, &out, r.net.now), 1);
		cr_expect_not(out.fragment || out.probe || out.data || out.sack || out.pn);
		cr_expect(out.nsegs == 1 && out.niov >= 1);
		cr_expect_eq(out.len, out.seg_size);
		cr_expect_eq(ddps_sctp_output(r.e, &out, r.net.now), 0);
		cr_expect(!out.niov && !out.nsegs && !out.len && !out.seg_size);
	}
}

/* With one path nothing else was used meanwhile: what is known of it holds. */
Test(sctp_limits, where_a_path_that_is_back_begins_anew)
{
	static const enum ddps_sctp_path_state was[] = { DDPS_SCTP_ACTIVE, DDPS_SCTP_DOUBTFUL,
							 DDPS_SCTP_INACTIVE };

	open_both_paths();
	for (unsigned i = 0; i < 6; i++) {
		struct ddps_sc_path *p = r.a->path[1];
		bool anew = i == 2; /* of two, one that had failed */

		r.a->npaths = i < 3 ? 2 : 1;
		r.a->fixed_mtu = 0;
		p->tx.pmtu.state = DDPS_PMTU_DONE;
		p->tx.pmtu.size = 1400;
		p->state = was[i % 3];
		p->errors = 3;
		ddps_sc_path_good(p);
		cr_expect_eq(p->state, DDPS_SCTP_ACTIVE);
		cr_expect_eq(p->errors, 0);
		cr_expect_eq(p->tx.pmtu.state, anew ? DDPS_PMTU_BASE : DDPS_PMTU_DONE, "%u", i);
		r.a->npaths = 2;
	}
}

Test(sctp_limits, answers_come_from_where_they_were_asked)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ddps_sctp_addr other, *here, *is;

		if (i)
			raw_fini(&r);
		raw_up(&r);
		other = r.net.node[0].addr[1];
		here = &r.net.node[0].addr[0];
		is = &r.a->path[0]->local;
		r.a->nlocal = i & 1 ? 2 : 1;
		*is = i & 2 ? other : (struct ddps_sctp_addr){ 0 };
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, "\0\1\0\10four", 8);
		raw_hand(&r);
		cr_expect(is_same_paths_address(is, i == 3 ? &other : here), "%u", i);
		r.a->nlocal = 1;
	}
}

/* A SACK reports as many gaps as its packet has room for, whatever stands before it. */
Test(sctp_limits, a_sack_fits_into_its_packet, .description = "9260-3.3.4-1")
{
	static uint8_t info[1300] = { 0, 1 };
	struct ddps_sc_chunk c;

	raw_up(&r);
	for (uint32_t i = 0; i < 400; i++)
		raw_data(&r, RAW_TSN + 2 + 2 * i, 0, 0, 7, "x");
	for (unsigned n = 8; n <= 1300; n += 4) {
		info[2] = (uint8_t)(n >> 8);
		info[3] = (uint8_t)n;
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, SC_HEARTBEAT, 0, info, n);
		raw_put_data(&r, RAW_TSN + 2, 0, 0, 7, "x");
		raw_send(&r);
		for (unsigned k = 0; k < r.n; k++)
			cr_assert_leq(r.log[k].len + 28, 1500, "%u: %zu", n, r.log[k].len);
		cr_assert(raw_any(&r, SC_HEARTBEAT_ACK, NULL));
		cr_assert(raw_any(&r, SC_SACK, &c));
		cr_assert_geq(c.vlen, 12);
	}
}

Test(sctp_limits, what_may_wait_to_be_sent)
{
	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "some"), 0);
	cr_assert_gt(r.a->buffered, 0);
	r.e->c.send_buffer = r.a->buffered;
	cr_expect_eq(raw_user_send(&r, 0, 0, "more"), DDPS_E_AGAIN);
	r.e->c.send_buffer = r.a->buffered + 1;
	cr_expect_eq(raw_user_send(&r, 0, 0, "more"), 0);
	r.e->c.send_buffer = 1 << 20;
	r.e->c.unsent = r.a->unsent;
	cr_expect_eq(raw_user_send(&r, 0, 0, "more"), DDPS_E_AGAIN);
	r.e->c.unsent++;
	cr_expect_eq(raw_user_send(&r, 0, 0, "more"), 0);
}

/* Whatever a path was, used again it is as one that was never used. */
Test(sctp_limits, a_path_that_is_used_again_knows_nothing)
{
	struct ddps_sent_path *p, fresh;

	open_both_paths();
	p = &r.a->path[1]->tx;
	ddps_sent_path_again(&r.a->tx, p);
	fresh = *p;
	p->srtt = p->rttvar = p->min_rtt = p->rto = 7;
	p->min_at = p->min_cur = p->min_last = 7;
	p->rack_pn = p->rack_rtt = p->fack = 7;
	p->reo_mult = 7;
	p->reord_seen = p->recovery = p->tlp_out = p->probe = p->force = p->dsack_round_set = true;
	p->sampled = false;
	p->undo_pending = 7;
	p->frto = 2;
	p->reo_at = p->pto_at = p->pace_at = p->silent_at = p->nudge_at = p->alive_at = 7;
	p->backoff = 7;
	p->epi_pn = 0;
	p->cc.cwnd = p->cc.ssthresh = 7;
	ddps_sent_path_again(&r.a->tx, p);
	cr_expect_eq(memcmp(p, &fresh, sizeof fresh), 0);
	cr_expect_eq(p->epi_pn, p->next_pn);
	cr_expect(p->sampled && p->reo_mult == 1 && !p->frto && !p->srtt && !p->min_rtt);
	cr_expect(!p->rttvar && !p->min_at && !p->min_cur && !p->min_last && !p->rack_pn);
	cr_expect(!p->rack_rtt && !p->fack && !p->undo_pending && !p->backoff && !p->reo_at);
	cr_expect(!p->pto_at && !p->pace_at && !p->silent_at && !p->nudge_at && !p->alive_at);
	cr_expect(!p->reord_seen && !p->recovery && !p->tlp_out && !p->probe && !p->force);
	cr_expect_not(p->dsack_round_set);
	cr_expect_eq(p->rto, r.e->sent.rto_initial);
}

/* A SACK of @n blocks, all of them {1, 1}, but for the last: that acknowledges what was never sent. */
static void sack_with_a_lie(unsigned n)
{
	static uint8_t buf[8192];
	struct ddps_wbuf b = ddps_wbuf_init(buf, sizeof buf);
	static uint16_t val[6 + 2 * 2000];
	const uint32_t head[2] = { htobe32(r.tsn - 1), htobe32(100000) };

	cr_assert_leq(n, 2000);
	memcpy(val, head, sizeof head);
	val[4] = htobe16((uint16_t)n);
	for (unsigned i = 0; i < 2 * n; i++)
		val[6 + i] = htobe16(i == 2 * n - 1 ? 9 : 1);
	ddps_sc_put_header(&b, RAW_PEER, RAW_PORT, r.tag);
	ddps_sc_put_chunk(&b, SC_SACK, 0, val, 12 + 4u * n);
	cr_assert_not(b.failed);
	ddps_sc_crc_put(buf, (size_t)(b.p - buf));
	raw_send_as_is(&r, buf, (size_t)(b.p - buf));
}

/* As many blocks of a SACK are looked at as any of use would have; others do no harm. */
Test(sctp_limits, how_many_blocks_of_a_sack_are_read, .description = "9260-12.4-3")
{
	static const struct {
		unsigned blocks;
		bool read;
	} is[] = { { 1, true }, { 1023, true }, { 1024, true }, { 1025, false }, { 2000, false } };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		if (i)
			fini();
		raw_up(&r);
		cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
		sack_with_a_lie(is[i].blocks);
		cr_expect_eq(r.gone, is[i].read, "%u", is[i].blocks);
		if (is[i].read)
			continue;
		cr_expect_eq(r.a->tx.bad_blocks, 1, "they are not in order");
		cr_expect_eq(r.a->tx.cum, r.tsn - 1);
		raw_sack(&r, r.tsn, 100000);
		cr_expect_eq(r.a->tx.cum, r.tsn, "nothing else has changed");
	}
}
