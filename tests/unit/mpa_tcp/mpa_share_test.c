/* SPDX-License-Identifier: BSD-2-Clause */
/* Fairness is about work: what one session may take of a turn, whatever its FPDUs are like. */
#include "support/mpa_world.h"

TestSuite(mpa_share, .timeout = 60);

#define FLOOD 2000u /* FPDUs of 24 octets: the kernel takes them all */

/* ---- the receiver ---- */

/* All of @p in turns of @share segments each. */
static void feed_mpa_share(struct mpa_rec *r, const uint8_t *p, size_t n, size_t max,
			   unsigned share, uint32_t *seed)
{
	while (n || r->rx.cut || r->rx.stalled) {
		unsigned before = r->segments;

		ddps_mpa_rx_turn(&r->rx, share);
		if (r->rx.cut || r->rx.stalled) {
			cr_assert_not(ddps_mpa_rx_at_boundary(&r->rx));
			cr_assert_eq(ddps_mpa_rx_resume(&r->rx, &r->e), 0);
		}
		if (n && r->rx.share && !r->rx.cut && !r->rx.stalled) {
			size_t len = max ? max : 1 + mpa_random(seed) % 3000;
			size_t done = mpa_rec_read(r, p, n, len);

			p += done;
			n -= done;
		}
		cr_assert_leq(r->segments - before, share);
	}
}

Test(mpa_share, attack_16_however_often_it_is_cut_the_same_comes_out)
{
	static const size_t pieces[] = { 7, 500, 0, 100000 };
	uint8_t *pattern = mpa_pattern(3000, 3);

	for (unsigned mode = 0; mode < 16; mode++) {
		struct mpa_ref ref = { .crc = mode & 1, .markers = mode & 2 };
		uint32_t seed = 5;

		for (unsigned i = 0; i < 60; i++)
			mpa_ref_fpdu(&ref, pattern,
				     18 + mpa_random(&seed) % (mode & 4 ? 60 : 2500));
		for (unsigned k = 0; k < 4 * 5; k++) {
			struct mpa_rec a, b;

			mpa_rec_init(&a, mode & 1, mode & 2);
			mpa_rec_init(&b, mode & 1, mode & 2);
			b.hold_every = mode & 8 ? 3 : 0;
			a.direct_hdr = b.direct_hdr = mode & 4 ? 0 : 18;
			mpa_rec_feed(&a, ref.out.p, ref.out.len, 100000, seed);
			feed_mpa_share(&b, ref.out.p, ref.out.len, pieces[k % 4], 1 + k / 4, &seed);
			cr_expect_eq(b.segments, 60);
			cr_assert_eq(a.got.len, b.got.len);
			cr_expect_eq(memcmp(a.got.p, b.got.p, a.got.len), 0);
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

/* It asks for less when there is more in it than a turn shows, and for more when there is not. */
Test(mpa_share, attack_16_so_much_is_read_as_a_turn_shows)
{
	struct mpa_octets one = mpa_fpdu(mpa_send1, 18), many = { 0 };
	struct iovec iov[DDPS_MPA_RX_IOV];
	struct mpa_rec r;

	for (unsigned i = 0; i < 20000; i++)
		mpa_octets_add(&many, one.p, one.len);
	mpa_rec_init(&r, true, false);
	for (size_t at = 0; at < many.len;) {
		ddps_mpa_rx_turn(&r.rx, 100);
		if (r.rx.cut)
			cr_assert_eq(ddps_mpa_rx_resume(&r.rx, &r.e), 0);
		if (!r.rx.cut && r.rx.share)
			at += mpa_rec_read(&r, many.p + at, many.len - at, SIZE_MAX);
	}
	cr_assert_eq(ddps_mpa_rx_want(&r.rx, r.scratch, r.scratch_len, iov), 1);
	cr_expect_leq(iov[0].iov_len, 8192u);
	free(many.p);
	free(one.p);
	mpa_rec_fini(&r);
}

/* ---- sessions on real sockets ---- */

static int join_mpa_share(struct mpa_world *w)
{
	int fd = mpa_bare_connect(w);
	uint8_t reply[20];

	mpa_bare_send(fd, MPA_REQ "\x40\x01\0\0", 20);
	cr_assert_eq(mpa_bare_read(w, fd, reply, 20), 20);
	return fd;
}

static void flood_with_fpdus(int fd, unsigned n)
{
	struct mpa_octets one = mpa_fpdu(mpa_send1, 18), many = { 0 };

	for (unsigned i = 0; i < n; i++)
		mpa_octets_add(&many, one.p, one.len);
	mpa_bare_send(fd, many.p, many.len);
	free(many.p);
	free(one.p);
}

/* @n sessions, each with @each FPDUs to read. */
static void begin_mpa_floods(struct mpa_world *w, int *fd, unsigned n, unsigned each)
{
	mpa_world_init(w);
	mpa_world_listen(w);
	for (unsigned i = 0; i < n; i++)
		fd[i] = join_mpa_share(w);
	mpa_world_settle(w);
	for (unsigned i = 0; i < n; i++)
		flood_with_fpdus(fd[i], each);
}

static void end_mpa_floods(struct mpa_world *w, const int *fd, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fd[i]);
	mpa_world_fini(w);
}

/* What is read and not shown is copied.  So sixteen sessions show what packets of 1500 octets bring. */
Test(mpa_share, sixteen_show_in_a_turn_what_they_have_read)
{
	enum { SESSIONS = 16, EACH = 300 };
	struct mpa_world w;
	int fd[SESSIONS];

	begin_mpa_floods(&w, fd, SESSIONS, EACH);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	for (unsigned i = 0; i < SESSIONS; i++)
		cr_expect_eq(w.b[i].segments, EACH, "session %u", i);
	end_mpa_floods(&w, fd, SESSIONS);
}

/* More than that share what a turn shows of all: 8192 segments. */
Test(mpa_share, twenty_show_an_equal_part_of_a_turn)
{
	enum { SESSIONS = 20, EACH = 600, PART = 8192 / SESSIONS };
	struct mpa_world w;
	int fd[SESSIONS];

	begin_mpa_floods(&w, fd, SESSIONS, EACH);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	for (unsigned i = 0; i < SESSIONS; i++)
		cr_expect_eq(w.b[i].segments, PART, "session %u: %u", i, w.b[i].segments);
	for (unsigned turns = 0; turns < 3; turns++)
		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	for (unsigned i = 0; i < SESSIONS; i++)
		cr_expect_eq(w.b[i].segments, EACH, "session %u: %u", i, w.b[i].segments);
	end_mpa_floods(&w, fd, SESSIONS);
}

/* Three flood, one sends a single FPDU: that is served in the first turn, and no turn is long. */
Test(mpa_share, attack_16_tiny_fpdus_take_no_more_of_a_turn_than_their_share)
{
	struct mpa_world w;
	unsigned turns = 0, all = 3 * FLOOD + 1, seen[4] = { 0 }, sum = 0;
	int fd[4];

	mpa_world_init(&w);
	mpa_world_listen(&w);
	for (unsigned i = 0; i < 4; i++)
		fd[i] = join_mpa_share(&w);
	mpa_world_settle(&w);
	for (unsigned i = 0; i < 3; i++)
		flood_with_fpdus(fd[i], FLOOD);
	flood_with_fpdus(fd[3], 1);
	for (; sum < all && turns < 1000; turns++) {
		unsigned before = sum;

		cr_assert_geq(ddps_loop_run(w.env.loop), 0);
		sum = 0;
		for (unsigned i = 0; i < 4; i++) {
			cr_expect_leq(w.b[i].segments - seen[i], 512, "turn %u, session %u", turns,
				      i);
			seen[i] = w.b[i].segments;
			sum += seen[i];
		}
		cr_expect_leq(sum - before, 2048, "turn %u", turns);
		cr_expect(turns || seen[3], "the one that sent a single message waited");
	}
	cr_expect_eq(sum, all);
	cr_expect_leq(turns, 3 * FLOOD / 512 + 3);
	for (unsigned i = 0; i < 4; i++)
		close(fd[i]);
	mpa_world_fini(&w);
}

/* Nor does a sender, however small its FPDUs are: the rest has its turn. */
Test(mpa_share, a_turn_sends_so_many_fpdus)
{
	uint8_t *pattern = mpa_pattern(18, 3);
	struct mpa_world w;

	mpa_world_init(&w);
	mpa_world_pair(&w);
	mpa_world_settle(&w);
	mpa_send_segments(&w.a, pattern, 18, 10000);
	cr_expect_geq(w.a.pulled, 2048);
	cr_expect_leq(w.a.pulled, 2048 + 128, "%u, a batch more at most", w.a.pulled);
	MPA_UNTIL(&w, w.b[0].segments == 10000);
	mpa_world_fini(&w);
	free(pattern);
}

/* What was read and not shown is shown although the socket is empty, and its close is in order. */
Test(mpa_share, attack_16_the_rest_is_shown_before_the_end)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	flood_with_fpdus(fd, FLOOD);
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	cr_expect_leq(w.b[0].segments, 512u);
	MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSED]);
	cr_expect_eq(w.b[0].segments, FLOOD);
	cr_expect_eq(w.b[0].end.code, 0);
	close(fd);
	mpa_world_fini(&w);
}

/* The same when the peer is gone before: what it sent comes first. */
Test(mpa_share, attack_16_a_flood_and_a_reset)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	flood_with_fpdus(fd, FLOOD);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	mpa_bare_reset(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_gt(w.b[0].segments, 0u);
	mpa_world_fini(&w);
}

Test(mpa_share, attack_16_freed_while_more_is_kept)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	flood_with_fpdus(fd, FLOOD);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	cr_expect_gt(w.b[0].llp->ops->held(w.b[0].llp), 0u);
	w.b[0].llp->ops->free(w.b[0].llp);
	w.b[0].llp = NULL;
	mpa_world_settle(&w);
	close(fd);
	mpa_world_fini(&w);
}

/* While others are busy set-ups have a share of their own: several are taken in a turn. */
Test(mpa_share, attack_16_set_ups_do_not_wait_for_a_turn_each)
{
	struct mpa_world w;
	int fd[2], late[8];

	mpa_world_init(&w);
	mpa_world_listen(&w);
	for (unsigned i = 0; i < 2; i++)
		fd[i] = join_mpa_share(&w);
	mpa_world_settle(&w);
	for (unsigned i = 0; i < 2; i++)
		flood_with_fpdus(fd[i], FLOOD);
	for (unsigned i = 0; i < 8; i++)
		late[i] = mpa_bare_connect(&w);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	/* Those that were taken end as soon as a wrong frame is read. */
	for (unsigned i = 0; i < 8; i++)
		mpa_bare_send(late[i], "GET / HTTP/1.0\r\n\r\n  ", 20);
	cr_assert_geq(ddps_loop_run(w.env.loop), 0);
	for (unsigned i = 0; i < 8; i++) {
		char octet;

		errno = 0;
		cr_expect_leq(recv(late[i], &octet, 1, MSG_DONTWAIT | MSG_PEEK), 0);
		cr_expect(errno != EAGAIN, "%u was not taken yet", i);
		close(late[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		close(fd[i]);
	mpa_world_fini(&w);
}
