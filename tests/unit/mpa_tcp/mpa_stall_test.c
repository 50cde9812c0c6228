/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA while the layer above holds a segment back: the receiver, then real sockets. */
#include "support/mpa_world.h"

/* ---- the receiver ---- */

/* All of @p, resumed whenever it stalls. */
static void feed_mpa_stall(struct mpa_rec *r, const uint8_t *p, size_t n, size_t max,
			   uint32_t *seed)
{
	while (n) {
		size_t done = mpa_rec_read(r, p, n, max ? max : 1 + mpa_random(seed) % 3000);

		p += done;
		n -= done;
		while (r->rx.stalled) {
			cr_assert_not(ddps_mpa_rx_at_boundary(&r->rx));
			cr_assert_gt(ddps_mpa_rx_kept(&r->rx), 0);
			cr_assert_eq(ddps_mpa_rx_resume(&r->rx, &r->e), 0);
		}
	}
}

Test(mpa_stall, however_often_the_same_comes_out)
{
	static const size_t pieces[] = { 1, 7, 19, 500, 0, 100000 };
	uint8_t *pattern = mpa_pattern(3000, 3);

	for (unsigned mode = 0; mode < 8; mode++) {
		struct mpa_ref ref = { .crc = mode & 1, .markers = mode & 2 };
		uint32_t seed = 5;

		for (unsigned i = 0; i < 40; i++)
			mpa_ref_fpdu(&ref, pattern, 18 + mpa_random(&seed) % 2500);
		for (size_t j = 0; j < sizeof pieces / sizeof pieces[0]; j++) {
			struct mpa_rec a, b;

			mpa_rec_init(&a, mode & 1, mode & 2);
			mpa_rec_init(&b, mode & 1, mode & 2);
			b.hold_every = 2 + mode / 4;
			a.direct_hdr = b.direct_hdr = mode & 4 ? 18 : 0;
			feed_mpa_stall(&a, ref.out.p, ref.out.len, pieces[j], &seed);
			feed_mpa_stall(&b, ref.out.p, ref.out.len, pieces[j], &seed);
			cr_expect_eq(a.segments, 40);
			cr_expect_eq(b.segments, 40);
			cr_assert_eq(a.got.len, b.got.len);
			cr_expect_eq(memcmp(a.got.p, b.got.p, a.got.len), 0);
			cr_expect(b.holds || (mode & 4));
			cr_expect(ddps_mpa_rx_at_boundary(&b.rx));
			cr_expect_null(b.rx.hold);
			cr_expect_eq(ddps_mpa_rx_kept(&b.rx), 0);
			mpa_rec_fini(&a);
			mpa_rec_fini(&b);
		}
		free(ref.out.p);
	}
	free(pattern);
}

Test(mpa_stall, a_fault_behind_it_is_found_in_its_turn)
{
	struct mpa_octets o = { 0 }, f = mpa_fpdu(mpa_send1, 18);
	struct mpa_rec r;

	mpa_octets_add(&o, f.p, f.len);
	mpa_octets_add(&o, f.p, f.len);
	o.p[o.len - 1] ^= 1;
	mpa_rec_init(&r, true, false);
	r.hold_every = 1;
	mpa_rec_feed(&r, o.p, o.len, 100000, 0);
	cr_expect_eq(r.holds, 1);
	cr_expect(r.rx.stalled);
	cr_expect_eq(r.err, 0);
	cr_expect_eq(ddps_mpa_rx_resume(&r.rx, &r.e), 0);
	cr_expect(r.rx.stalled);
	r.hold_every = 0;
	cr_expect_eq(ddps_mpa_rx_resume(&r.rx, &r.e), DDPS_E_CRC);
	cr_expect_eq(r.segments, 1);
	cr_expect(r.rx.dead);
	cr_expect_null(r.rx.hold);
	mpa_rec_fini(&r);
	free(o.p);
	free(f.p);
}

/* ---- sockets ---- */

Test(mpa_stall, tcp_slows_the_sender_down_and_sending_goes_on)
{
	uint8_t *pattern = mpa_pattern(30000, 3);
	struct mpa_world w;
	struct mpa_side *b = &w.b[0];
	unsigned sent;

	mpa_world_init(&w);
	mpa_world_pair(&w);
	b->holding = true;
	b->take = 1;
	mpa_send_segments(&w.a, pattern, 30000, 2000);
	mpa_world_settle(&w); /* until neither can go on */
	sent = w.a.done;
	cr_expect_lt(sent, 2000, "60 MB are more than the sockets hold");
	cr_expect_eq(b->segments, 1);
	cr_expect_eq(b->holds, 1);
	cr_expect_gt(b->llp->ops->held(b->llp), 0);
	cr_expect_leq(b->llp->ops->held(b->llp), DDPS_SCRATCH_LEN + 65536);
	mpa_send_segments(b, pattern, 30000, 100);
	MPA_UNTIL(&w, w.a.segments == 100);
	for (unsigned i = 0; i < 5; i++) { /* one at a time */
		b->take = 1;
		b->llp->ops->resume(b->llp);
		cr_expect_eq(b->segments, 1 + i, "from the loop only");
		MPA_UNTIL(&w, b->segments == 2 + i && b->holds >= 2 + i);
	}
	b->holding = false;
	b->llp->ops->resume(b->llp);
	MPA_UNTIL(&w, b->segments == 2000);
	mpa_expect_received(b, pattern, 30000, 2000);
	cr_expect_eq(w.a.done, 2000);
	mpa_world_fini(&w);
	free(pattern);
}

static size_t get_mpa_held(const struct mpa_side *b)
{
	return b->llp->ops->held(b->llp);
}

/* After a second what follows is read ahead, up to a bound; all comes in its turn. */
Test(mpa_stall, reading_ahead_is_bounded)
{
	const size_t most = 8u << 20;
	uint8_t *pattern = mpa_pattern(30000, 3);
	struct mpa_world w;
	struct mpa_side *b = &w.b[0];

	mpa_world_init(&w);
	mpa_world_pair(&w);
	b->holding = true;
	mpa_send_segments(&w.a, pattern, 30000, 2000);
	MPA_UNTIL(&w, get_mpa_held(b) >= most);
	mpa_world_settle(&w);
	cr_expect_leq(get_mpa_held(b), most + DDPS_SCRATCH_LEN + 65536);
	cr_expect_lt(w.a.done, 2000, "60 MB are more than all buffers hold");
	cr_expect_eq(w.env.aheads, 1);
	for (unsigned i = 1; i < 4; i++) { /* one at a time */
		b->take = 1;
		b->llp->ops->resume(b->llp);
		MPA_UNTIL(&w, b->segments == i && b->holds > i);
	}
	b->holding = false;
	b->llp->ops->resume(b->llp);
	MPA_UNTIL(&w, b->segments == 2000);
	mpa_expect_received(b, pattern, 30000, 2000);
	cr_expect_eq(w.env.aheads, 0);
	mpa_world_fini(&w);
	free(pattern);
}

/* Others have all the buffers: what follows stays in TCP. */
Test(mpa_stall, not_all_read_ahead)
{
	uint8_t *pattern = mpa_pattern(30000, 3);
	struct mpa_world w;

	mpa_world_init(&w);
	mpa_world_pair(&w);
	w.env.aheads = 16;
	w.b[0].holding = true;
	mpa_send_segments(&w.a, pattern, 30000, 2000);
	mpa_world_settle(&w);
	MPA_UNTIL(&w, ((struct ddps_mpa_conn *)w.b[0].llp)->deadline == DDPS_MPA_T_STALL);
	ddps_mpa_ahead_read((struct ddps_mpa_conn *)w.b[0].llp);
	mpa_world_settle(&w);
	cr_expect_leq(get_mpa_held(&w.b[0]), DDPS_SCRATCH_LEN + 65536);
	mpa_world_fini(&w);
	cr_expect_eq(w.env.aheads, 16);
	free(pattern);
}

/* What is more than its side takes is given up a while after the close, though the peer's process may be gone. */
Test(mpa_stall, a_peer_that_gives_up_is_seen, .timeout = 60)
{
	uint8_t *pattern = mpa_pattern(30000, 3);
	struct mpa_world w;
	struct mpa_side *b = &w.b[0];

	mpa_world_init(&w);
	w.a.p.close_ms = 100;
	w.answer_param.keepalive_ms = 60000;
	mpa_world_pair(&w);
	w.env.aheads = 16;
	b->holding = true;
	mpa_send_segments(&w.a, pattern, 30000, 30);
	MPA_UNTIL(&w, w.a.done == 30);
	w.a.llp->ops->shutdown(w.a.llp);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_TIMEDOUT, "%s", w.a.end.text);
	MPA_UNTIL(&w, b->called[UP_CLOSED]);
	cr_expect_eq(b->end.code, DDPS_E_RESET, "%s", b->end.text);
	mpa_world_fini(&w);
	free(pattern);
}

/* One FPDU came to b[0], which does not take it. */
static int open_stalled_conn(struct mpa_world *w)
{
	int fd;

	mpa_world_init(w);
	fd = mpa_bare_initiator(w);
	w->b[0].holding = true;
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(w, w->b[0].holds);
	return fd;
}

Test(mpa_stall, a_close_behind_it_waits_its_turn)
{
	struct mpa_world w;
	int fd = open_stalled_conn(&w);

	mpa_bare_fpdu(fd, mpa_send1, 18);
	shutdown(fd, SHUT_WR);
	mpa_world_settle(&w);
	cr_expect_eq(w.b[0].called[UP_PEER_CLOSED], 0);
	w.b[0].holding = false;
	w.b[0].llp->ops->resume(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSED]);
	cr_expect_eq(w.b[0].segments, 2);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_stall, a_reset_is_noticed_immediately)
{
	struct mpa_world w;
	int fd = open_stalled_conn(&w);

	mpa_bare_reset(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET, "%s", w.b[0].end.text);
	cr_expect_eq(w.b[0].segments, 0);
	mpa_world_fini(&w);
}

/* Behind the peer's close all is here: its reset takes nothing of that away. */
Test(mpa_stall, contact_06_a_reset_behind_the_close_takes_nothing_away)
{
	for (int seen = 0; seen < 2; seen++) {
		struct mpa_world w;
		int fd = open_stalled_conn(&w);

		mpa_bare_fpdu(fd, mpa_send1, 18);
		shutdown(fd, SHUT_WR);
		if (seen)
			MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSING]);
		mpa_bare_reset(fd);
		mpa_world_settle(&w);
		cr_expect_gt(w.b[0].called[UP_PEER_CLOSING], 0);
		cr_expect_eq(w.b[0].called[UP_CLOSED], 0, "%s", w.b[0].end.text);
		w.b[0].llp->ops->kick(w.b[0].llp);
		w.b[0].llp->ops->resume(w.b[0].llp);
		mpa_world_settle(&w);
		cr_expect_eq(w.b[0].called[UP_CLOSED], 0, "it stalls again");
		w.b[0].holding = false;
		w.b[0].llp->ops->resume(w.b[0].llp);
		MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
		cr_expect_eq(w.b[0].segments, 2);
		cr_expect_eq(w.b[0].called[UP_PEER_CLOSED], 1);
		cr_expect_eq(w.b[0].end.code, 0, "%s", w.b[0].end.text);
		mpa_world_fini(&w);
	}
}

/* The same if it is sending that meets the reset. */
Test(mpa_stall, contact_06_nor_if_sending_meets_it)
{
	uint8_t *pattern = mpa_pattern(100, 3);
	struct mpa_world w;
	int fd = open_stalled_conn(&w);

	shutdown(fd, SHUT_WR);
	mpa_bare_reset(fd);
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	mpa_world_settle(&w);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 0, "%s", w.b[0].end.text);
	w.b[0].holding = false;
	w.b[0].llp->ops->resume(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].segments, 1);
	mpa_world_fini(&w);
	free(pattern);
}

Test(mpa_stall, the_first_message_counts_though_it_waits,
     .description = "5044-7.1.2-15 5044-7.1.2-26")
{
	uint8_t *pattern = mpa_pattern(100, 3), raw[108];
	struct ddps_mpa_conn *c;
	struct mpa_world w;
	int fd = open_stalled_conn(&w);

	c = (struct ddps_mpa_conn *)w.b[0].llp;
	cr_expect_eq(c->deadline, DDPS_MPA_T_STALL);
	cr_expect_eq(c->state, DDPS_MPA_FULL);
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, sizeof raw), (ssize_t)sizeof raw);
	mpa_world_fini(&w);
	close(fd);
	free(pattern);
}

Test(mpa_stall, abort_and_free_leave_nothing)
{
	struct mpa_world w;
	int fd = open_stalled_conn(&w);

	w.b[0].llp->ops->abort(w.b[0].llp);
	w.b[0].llp->ops->resume(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_CLOSED);
	mpa_world_fini(&w);
	close(fd);
	fd = open_stalled_conn(&w);
	w.b[0].llp->ops->resume(w.b[0].llp);
	mpa_world_fini(&w); /* frees it with the task still to run */
	close(fd);
}

Test(mpa_stall, a_shutdown_has_its_deadline)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	w.answer_param.close_ms = 50;
	fd = mpa_bare_initiator(&w);
	w.b[0].holding = true;
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].holds);
	shutdown(fd, SHUT_WR);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_TIMEDOUT, "%s", w.b[0].end.text);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_stall, freed_when_it_is_shown_again)
{
	struct mpa_world w;
	int fd = open_stalled_conn(&w);

	mpa_bare_fpdu(fd, mpa_send1, 18);
	w.b[0].holding = false;
	w.b[0].react[UP_RX] = DO_FREE;
	w.b[0].llp->ops->resume(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].segments);
	mpa_world_settle(&w);
	cr_expect_eq(w.b[0].segments, 1);
	mpa_world_fini(&w);
	close(fd);
}
