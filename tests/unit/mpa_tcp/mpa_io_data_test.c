/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA over real TCP sockets on loopback: FPDUs, the fence, faults. */
#include "mpa_tcp/mpa_conn.h"
#include "mpa_tcp/mpa_mulpdu.h"
#include "support/mpa_world.h"
#include <netinet/tcp.h>

/* ---- transfer ---- */

Test(mpa_io_data, both_ways_in_every_mode,
     .description = "5044-3-2 5044-3-8 5044-4.4-9 5044-4.3-1 5044-5.1-3 5044-5.1-4 5044-7.1.2-14")
{
	uint8_t *pattern = mpa_pattern(64768, 3);
	static const struct {
		size_t len;
		unsigned n;
	} load[] = { { 18, 3000 }, { 1442, 3000 }, { 30000, 300 } };

	for (unsigned mode = 0; mode < 8; mode++) {
		for (size_t i = 0; i < 3; i++) {
			struct mpa_world w;

			mpa_world_init(&w);
			w.a.p = mpa_param(mode & 1, mode & 2);
			w.answer_param = mpa_param(mode & 1, mode & 4);
			mpa_world_pair(&w);
			mpa_send_segments(&w.b[0], pattern, load[i].len, load[i].n);
			mpa_send_segments(&w.a, pattern, load[i].len, load[i].n);
			MPA_UNTIL(&w, w.a.segments == load[i].n && w.b[0].segments == load[i].n);
			mpa_expect_received(&w.a, pattern, load[i].len, load[i].n);
			mpa_expect_received(&w.b[0], pattern, load[i].len, load[i].n);
			cr_expect_eq(w.a.done, load[i].n);
			cr_expect_eq(w.b[0].done, load[i].n);
			mpa_world_fini(&w);
		}
	}
	free(pattern);
}

static bool tried_directly(const struct mpa_side *s)
{
	return ((struct ddps_mpa_conn *)s->llp)->io.eager;
}

/* Whoever polls tries a connection's socket without asking epoll first: one that has data to come. */
Test(mpa_io_data, only_an_open_stream_is_tried_directly)
{
	struct mpa_world w;

	mpa_world_init(&w);
	w.b[0].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	mpa_world_connect(&w, w.port, true, "\0\1\0\1", 4);
	MPA_UNTIL(&w, w.b[0].called[UP_REQUEST]);
	cr_expect_not(tried_directly(&w.a));
	cr_expect_not(tried_directly(&w.b[0]));
	cr_assert_eq(mpa_answer(&w.b[0], false), 0);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	mpa_world_settle(&w);
	cr_expect(tried_directly(&w.a));
	cr_expect(tried_directly(&w.b[0]));
	mpa_world_fini(&w);
}

Test(mpa_io_data, direct_placement_without_crc)
{
	uint8_t *pattern = mpa_pattern(64768, 3);
	struct mpa_world w;
	unsigned directs = 0;

	mpa_world_init(&w);
	w.a.p = w.answer_param = mpa_param(false, false);
	mpa_world_pair(&w);
	w.b[0].place = malloc(65536);
	mpa_send_segments(&w.a, pattern, 30000, 500);
	MPA_UNTIL(&w, w.b[0].segments == 500);
	mpa_expect_received(&w.b[0], pattern, 30000, 500);
	directs = w.b[0].directs;
	cr_expect_gt(directs, 0);
	mpa_world_fini(&w);
	free(pattern);
}

Test(mpa_io_data, mulpdu_follows_emss_and_cap, .description = "5044-4.5-d1 5044-5.1-d1 5044-3-2")
{
	struct mpa_world w;
	int mss = 1000;
	socklen_t len = sizeof mss;
	int fd;

	mpa_world_init(&w);
	mpa_world_listen(&w);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, len), 0);
	struct sockaddr_in in = mpa_loopback(w.port);

	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	mpa_bare_send(fd, MPA_REQ "\xc0\1\0\0", 20);
	MPA_UNTIL(&w, w.requests);
	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len), 0);
	/* with markers, as the peer asked for them */
	cr_expect_eq(w.b[0].llp->ops->mulpdu(w.b[0].llp), ddps_mpa_mulpdu((size_t)mss, true, 0));
	mpa_world_fini(&w);
	close(fd);

	mpa_world_init(&w);
	w.a.p.max_mulpdu = 700;
	mpa_world_pair(&w);
	cr_expect_eq(w.a.llp->ops->mulpdu(w.a.llp), 700);
	mpa_world_fini(&w);
}

Test(mpa_io_data, idle_sessions_are_small)
{
	struct mpa_world w;
	struct ddps_mpa_conn *c;
	uint8_t *pattern = mpa_pattern(30000, 3);

	mpa_world_init(&w);
	mpa_world_pair(&w);
	mpa_send_segments(&w.a, pattern, 30000, 100);
	MPA_UNTIL(&w, w.b[0].segments == 100);
	mpa_world_settle(&w);
	cr_expect_lt(sizeof *c, 1536, "%zu", sizeof *c);
	for (int i = 0; i < 2; i++) {
		c = (struct ddps_mpa_conn *)(i ? w.a.llp : w.b[0].llp);
		cr_expect_null(c->startup);
		cr_expect_null(c->tx.batch);
		cr_expect_null(c->rx.part);
	}
	mpa_world_fini(&w);
	free(pattern);
}

/* ---- the Reply and what follows it ---- */

Test(mpa_io_data, fpdus_right_behind_the_reply, .description = "5044-7.1.2-10 5044-7.1.2-14")
{
	for (unsigned later = 0; later < 2; later++) {
		struct mpa_octets o = { 0 }, f = mpa_fpdu(mpa_send1, 18);
		struct mpa_world w;
		int fd;

		mpa_octets_add(&o, MPA_REP "\x40\1\0\0", 20);
		mpa_octets_add(&o, f.p, f.len);
		mpa_octets_add(&o, f.p, f.len);
		mpa_world_init(&w);
		if (later)
			w.a.react[UP_ANSWER] = DO_NOTHING;
		fd = mpa_bare_responder(&w, o.p, o.len);
		if (later) {
			MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
			mpa_bare_send(fd, f.p, f.len);
			mpa_bare_reset(fd); /* and even a reset loses nothing */
			mpa_world_settle(&w);
			cr_expect_eq(w.a.segments, 0);
			cr_expect_eq(w.a.called[UP_CLOSED], 0);
			w.a.llp->ops->open(w.a.llp);
			MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
			cr_expect_eq(w.a.segments, 3);
			cr_expect_eq(w.a.end.code, DDPS_E_RESET);
		} else {
			MPA_UNTIL(&w, w.a.segments == 2);
			close(fd);
		}
		mpa_world_fini(&w);
		free(f.p);
		free(o.p);
	}
}

/* ---- the fence ---- */

Test(mpa_io_data, responder_is_fenced_until_the_first_fpdu,
     .description = "5044-7.1.2-15 5044-7.1.2-d1 5044u-5-1")
{
	uint8_t *pattern = mpa_pattern(100, 3), raw[400];
	struct mpa_octets o = mpa_fpdu(pattern, 100);
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_send_segments(&w.b[0], pattern, 100, 3);
	cr_expect(mpa_bare_silent(&w, fd));
	cr_expect_eq(w.b[0].pulled, 0);
	/* not even a part opens it */
	mpa_bare_send(fd, o.p, o.len - 1);
	cr_expect(mpa_bare_silent(&w, fd));
	mpa_bare_send(fd, o.p + o.len - 1, 1);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 3 * o.len), (ssize_t)(3 * o.len));
	for (int i = 0; i < 3; i++)
		cr_expect_arr_eq(raw + (size_t)i * o.len, o.p, o.len);
	cr_expect_eq(w.b[0].segments, 1);
	mpa_world_fini(&w);
	close(fd);
	free(o.p);
	free(pattern);
}

Test(mpa_io_data, fpdu_that_is_refused_above_opens_the_fence, .description = "5044-7.1.2-15")
{
	uint8_t *pattern = mpa_pattern(100, 3), raw[400];
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	w.b[0].react[UP_RX] = DO_REFUSE;
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 108), 108);
	cr_expect_eq(w.b[0].segments, 1, "what follows is dropped");
	cr_expect_eq(w.b[0].called[UP_FAULT], 0);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 1), 0);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	shutdown(fd, SHUT_WR);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	mpa_world_fini(&w);
	close(fd);
	free(pattern);
}

Test(mpa_io_data, invalid_first_fpdu_keeps_the_fence_closed,
     .description = "5044-7.1.2-15 5044-8-9 5044-8-2")
{
	uint8_t *pattern = mpa_pattern(100, 3), octet;
	struct mpa_octets o = mpa_fpdu(mpa_send1, 18);
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	o.p[4] ^= 1;
	mpa_bare_send(fd, o.p, o.len);
	MPA_UNTIL(&w, w.b[0].called[UP_FAULT]);
	cr_expect_eq(w.b[0].fault.code, DDPS_E_CRC);
	cr_expect(w.b[0].fault.peer[0]);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	w.b[0].llp->ops->kick(w.b[0].llp);
	cr_expect(mpa_bare_silent(&w, fd), "TCP stays open, nothing is said");
	cr_expect_eq(w.b[0].segments, 0);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	cr_expect_eq(mpa_bare_read(&w, fd, &octet, 1), 0);
	close(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	cr_expect_eq(w.b[0].pulled, 0);
	mpa_world_fini(&w);
	free(o.p);
	free(pattern);
}

Test(mpa_io_data, peer_closes_before_its_first_fpdu, .description = "5044-7.1.2-15 5044-7.2-1")
{
	uint8_t *pattern = mpa_pattern(100, 3);

	for (unsigned i = 0; i < 3; i++) {
		struct mpa_world w;
		int fd;

		mpa_world_init(&w);
		fd = mpa_bare_initiator(&w);
		if (i == 1)
			mpa_send_segments(&w.b[0], pattern, 100, 1);
		shutdown(fd, SHUT_WR);
		if (i == 0) { /* nothing queued: an orderly end */
			w.b[0].react[UP_PEER_CLOSED] = DO_SHUTDOWN;
			MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
			cr_expect_eq(w.b[0].called[UP_PEER_CLOSED], 1);
			cr_expect_eq(w.b[0].end.code, 0);
		} else { /* queued before or after: it can never leave */
			if (i == 2) {
				MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSED]);
				mpa_send_segments(&w.b[0], pattern, 100, 1);
			}
			MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
			cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
			cr_expect_eq(w.b[0].pulled, 0);
		}
		mpa_world_fini(&w);
		close(fd);
	}
	free(pattern);
}

Test(mpa_io_data, shutdown_behind_the_fence)
{
	uint8_t *pattern = mpa_pattern(100, 3), raw[109];
	struct mpa_world w;
	int fd;

	/* nothing to send: FIN immediately */
	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 1), 0);
	close(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	mpa_world_fini(&w);

	/* something: it waits for the fence */
	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	cr_expect(mpa_bare_silent(&w, fd));
	mpa_bare_fpdu(fd, mpa_send1, 18);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 109), 108);
	close(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	mpa_world_fini(&w);
	free(pattern);
}

/* ---- faults ---- */

Test(mpa_io_data, fault_leaves_the_send_half_alive,
     .description = "5044-8-1 5044-8-2 5044-8-8 5044-8-9 5044-8-d2")
{
	uint8_t *pattern = mpa_pattern(22, 3), raw[29];
	struct mpa_octets o = mpa_fpdu(mpa_send1, 18);
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	o.p[o.len - 1] ^= 1;
	mpa_bare_send(fd, o.p, o.len);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].called[UP_FAULT]);
	cr_expect_eq(w.b[0].fault.code, DDPS_E_CRC);
	cr_expect_eq(w.b[0].segments, 1);
	/* a Terminate, then the end; unread input does not make it a reset */
	mpa_send_segments(&w.b[0], pattern, 22, 1);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 29), 28);
	close(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	cr_expect_eq(w.b[0].called[UP_FAULT], 1);
	cr_expect_eq(w.b[0].segments, 1);
	mpa_world_fini(&w);
	free(o.p);
	free(pattern);
}
