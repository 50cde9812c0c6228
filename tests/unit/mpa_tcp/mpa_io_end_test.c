/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA over real TCP sockets on loopback: every kind of end. */
#include "support/mpa_world.h"
#include <fcntl.h>
#include <sys/mman.h>

Test(mpa_io_end, half_close, .description = "5044-7.2-1 5044-7.2-d1")
{
	uint8_t *pattern = mpa_pattern(100, 3), raw[109];
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	cr_expect(w.b[0].llp->half_close);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	shutdown(fd, SHUT_WR);
	MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSED]);
	cr_expect_eq(w.b[0].segments, 1);
	mpa_world_settle(&w);
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 108), 108);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 0);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 1), 0);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, 0);
	cr_expect_eq(w.b[0].called[UP_PEER_CLOSED], 1);
	mpa_world_fini(&w);
	close(fd);
	free(pattern);
}

Test(mpa_io_end, shutdown_sends_what_is_queued_first, .description = "5044-7.2-d1 5044-A.1-d1")
{
	uint8_t *pattern = mpa_pattern(30000, 3);
	struct mpa_world w;

	mpa_world_init(&w);
	mpa_world_pair(&w);
	w.b[0].react[UP_PEER_CLOSED] = DO_SHUTDOWN;
	mpa_send_segments(&w.a, pattern, 30000, 1000);
	w.a.llp->ops->shutdown(w.a.llp);
	w.a.llp->ops->shutdown(w.a.llp);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED] && w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, 0);
	cr_expect_eq(w.b[0].end.code, 0);
	cr_expect_eq(w.a.done, 1000);
	cr_expect_eq(w.b[0].segments, 1000);
	cr_expect_eq(w.b[0].called[UP_PEER_CLOSED], 1);
	mpa_world_fini(&w);
	free(pattern);
}

/* A program may have closed its standard input: then a socket has that number. */
Test(mpa_io_end, descriptor_0_is_as_good_as_any)
{
	uint8_t *pattern = mpa_pattern(100, 3);

	for (unsigned k = 0; k < 3; k++) { /* the listener's, the initiator's, the responder's */
		struct mpa_world w;

		mpa_world_init(&w);
		if (k == 0)
			close(0);
		mpa_world_listen(&w);
		if (k == 1)
			close(0);
		mpa_world_connect(&w, w.port, true, "\0\1\0\1", 4);
		if (k == 2)
			close(0);
		MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
		cr_expect_geq(fcntl(0, F_GETFD), 0, "%u", k);
		mpa_send_segments(&w.a, pattern, 100, 1);
		MPA_UNTIL(&w, w.b[0].segments);
		w.b[0].react[UP_PEER_CLOSED] = DO_SHUTDOWN;
		w.a.llp->ops->shutdown(w.a.llp);
		MPA_UNTIL(&w, w.a.called[UP_CLOSED] && w.b[0].called[UP_CLOSED]);
		mpa_world_fini(&w);
		cr_expect_lt(fcntl(0, F_GETFD), 0, "%u", k);
		cr_assert_eq(open("/dev/null", O_RDONLY), 0);
	}
	free(pattern);
}

/* Whoever was rejected does not wait for the peer. */
Test(mpa_io_end, rejected_side_ends_while_the_peer_stays, .description = "5044-7.1.2-13")
{
	struct mpa_world w;
	uint8_t raw;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_responder(&w, MPA_REP "\x60\1\0\0", 20);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect(w.a.setup.reject);
	cr_expect_eq(w.a.end.code, 0);
	cr_expect_eq(mpa_bare_read(&w, fd, &raw, 1), 0);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_end, both_shut_down_simultaneously)
{
	struct mpa_world w;

	mpa_world_init(&w);
	mpa_world_pair(&w);
	w.a.llp->ops->shutdown(w.a.llp);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED] && w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, 0);
	cr_expect_eq(w.b[0].end.code, 0);
	mpa_world_fini(&w);
}

Test(mpa_io_end, peer_goes_inside_an_fpdu, .description = "5044-8-1 5044-4.3-11")
{
	struct mpa_octets o = mpa_fpdu(mpa_send1, 18);

	for (size_t n = 1; n < o.len; n++) {
		for (unsigned reset = 0; reset < 2; reset++) {
			struct mpa_world w;
			int fd;

			mpa_world_init(&w);
			fd = mpa_bare_initiator(&w);
			mpa_bare_send(fd, o.p, o.len);
			mpa_bare_send(fd, o.p, n);
			if (reset)
				mpa_bare_reset(fd);
			else
				shutdown(fd, SHUT_WR);
			MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
			cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
			cr_expect(strstr(w.b[0].end.text, "truncated"), "%s", w.b[0].end.text);
			cr_expect(w.b[0].end.has_triple && w.b[0].end.triple.code == 1);
			cr_expect_eq(w.b[0].segments, 1);
			cr_expect_eq(w.b[0].called[UP_PEER_CLOSED], 0);
			mpa_world_fini(&w);
			if (!reset)
				close(fd);
		}
	}
	free(o.p);
}

Test(mpa_io_end, lone_marker_before_the_fin, .description = "5044-7.2-1")
{
	struct mpa_ref ref = { .crc = true, .markers = true };
	uint8_t *pattern = mpa_pattern(502, 3), reply[20];

	mpa_ref_fpdu(&ref, pattern, 502);
	mpa_octets_add(&ref.out, "\0\0\0\0", 4);
	for (size_t n = 512; n <= 516; n++) {
		struct mpa_world w;
		int fd;

		mpa_world_init(&w);
		w.answer_param.markers = true;
		mpa_world_listen(&w);
		fd = mpa_bare_connect(&w);
		mpa_bare_send(fd, MPA_REQ "\x40\1\0\0", 20);
		cr_assert_eq(mpa_bare_read(&w, fd, reply, 20), 20);
		cr_expect_eq(reply[16], 0xc0);
		mpa_bare_send(fd, ref.out.p, n);
		shutdown(fd, SHUT_WR);
		MPA_UNTIL(&w, w.b[0].called[UP_CLOSED] || w.b[0].called[UP_PEER_CLOSED]);
		cr_expect_eq(w.b[0].called[UP_PEER_CLOSED], n == 512 || n == 516);
		mpa_expect_received(&w.b[0], pattern, 502, 1);
		mpa_world_fini(&w);
		close(fd);
	}
	free(ref.out.p);
	free(pattern);
}

Test(mpa_io_end, reset_at_a_boundary, .description = "5044-8-1")
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	mpa_bare_reset(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].segments, 1, "what came before it counts");
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
	cr_expect_eq(w.b[0].end.sys_errno, ECONNRESET);
	mpa_world_fini(&w);
}

Test(mpa_io_end, failed_send_does_not_lose_what_the_peer_said)
{
	uint8_t *pattern = mpa_pattern(100, 3);
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	/* a Terminate and a reset, both there before we look again */
	mpa_bare_fpdu(fd, mpa_send1, 18);
	mpa_bare_reset(fd);
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 0, "not from inside kick()");
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].segments, 2);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
	cr_expect_eq(w.b[0].done, 0);
	mpa_world_fini(&w);
	free(pattern);
}

Test(mpa_io_end, reset_after_the_peers_close)
{
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	shutdown(fd, SHUT_WR);
	MPA_UNTIL(&w, w.b[0].called[UP_PEER_CLOSED]);
	mpa_bare_reset(fd);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_RESET);
	mpa_world_fini(&w);
}

Test(mpa_io_end, close_deadline)
{
	uint8_t *pattern = mpa_pattern(100, 3), raw[200];
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	w.answer_param.close_ms = 50;
	fd = mpa_bare_initiator(&w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	mpa_send_segments(&w.b[0], pattern, 100, 1);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_TIMEDOUT);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 108), 108);
	cr_expect_eq(recv(fd, raw, 1, 0), 0, "our FIN");
	cr_expect_eq(send(fd, "x", 1, MSG_NOSIGNAL), -1, "and an abort behind it");
	mpa_world_fini(&w);
	close(fd);
	free(pattern);
}

/* A process that was stopped for longer than close_ms reads on: what the kernel has had arrives. */
Test(mpa_io_end, the_close_deadline_loses_nothing_of_the_kernels)
{
	enum { N = 200, ONE = 1008 };
	uint8_t *pattern = mpa_pattern(1000, 3), *raw = malloc(N * ONE);
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	w.answer_param.close_ms = 200;
	fd = mpa_bare_initiator(&w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	mpa_send_segments(&w.b[0], pattern, 1000, N);
	MPA_UNTIL(&w, w.b[0].pulled == N);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_TIMEDOUT);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, N * ONE), N * ONE);
	cr_expect_eq(recv(fd, raw, 1, 0), 0, "our FIN, and no reset");
	mpa_world_fini(&w);
	close(fd);
	free(raw);
	free(pattern);
}

Test(mpa_io_end, attack_15_the_close_deadline_is_not_put_off_by_what_the_peer_sends)
{
	struct mpa_octets one = mpa_fpdu(mpa_send1, 18);
	uint64_t start = ddps_now();
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	w.answer_param.close_ms = 60;
	fd = mpa_bare_initiator(&w);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	while (!w.b[0].called[UP_CLOSED] && ddps_now() - start < 10000000000u) {
		send(fd, one.p, one.len, MSG_NOSIGNAL); /* until it is reset */
		mpa_world_turn(&w, -1);
	}
	cr_assert_eq(w.b[0].called[UP_CLOSED], 1, "it lasts as long as the peer sends");
	cr_expect_eq(w.b[0].end.code, DDPS_E_TIMEDOUT);
	free(one.p);
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_io_end, memory_that_cannot_be_read_ends_it)
{
	uint8_t *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *pattern = mpa_pattern(1000, 3);
	struct mpa_world w;

	if (mpa_under_valgrind())
		cr_skip_test("not what valgrind can watch");
	mpa_world_init(&w);
	w.a.p = w.answer_param = mpa_param(false, false);
	mpa_world_pair(&w);
	w.a.bad = gone;
	mpa_send_segments(&w.a, pattern, 1000, 1);
	cr_expect_eq(w.a.called[UP_CLOSED], 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_SYSTEM);
	cr_expect_eq(w.a.end.sys_errno, EFAULT);
	mpa_world_fini(&w);
	munmap(gone, 4096);
	free(pattern);
}

Test(mpa_io_end, kick_before_open_is_remembered)
{
	uint8_t *pattern = mpa_pattern(100, 3), raw[108];
	struct mpa_world w;
	int fd;

	mpa_world_init(&w);
	w.a.react[UP_ANSWER] = DO_NOTHING;
	fd = mpa_bare_responder(&w, MPA_REP "\x40\1\0\0", 20);
	mpa_send_segments(&w.a, pattern, 100, 1);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	cr_expect(mpa_bare_silent(&w, fd));
	w.a.llp->ops->open(w.a.llp);
	w.a.llp->ops->open(w.a.llp);
	cr_expect_eq(w.a.pulled, 0, "open() does not call up");
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 108), 108);
	mpa_world_fini(&w);
	close(fd);
	free(pattern);
}

Test(mpa_io_end, abort_resets)
{
	struct mpa_world w;
	uint8_t octet;
	int fd;

	mpa_world_init(&w);
	fd = mpa_bare_initiator(&w);
	mpa_bare_fpdu(fd, mpa_send1, 18);
	MPA_UNTIL(&w, w.b[0].segments == 1);
	w.b[0].llp->ops->abort(w.b[0].llp);
	w.b[0].llp->ops->abort(w.b[0].llp);
	w.b[0].llp->ops->shutdown(w.b[0].llp);
	w.b[0].llp->ops->kick(w.b[0].llp);
	cr_expect_eq(recv(fd, &octet, 1, 0), -1);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(w.b[0].called[UP_CLOSED], 0);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_CLOSED);
	mpa_world_fini(&w);
	close(fd);
}

/* The layer above ends it from inside any upcall; sanitizers watch. */
Test(mpa_io_end, ended_in_every_upcall)
{
	static const enum mpa_upcall ups[] = { UP_RX, UP_DONE, UP_FAULT, UP_PEER_CLOSED,
					       UP_CLOSED };
	static const enum mpa_reaction how[] = { DO_FREE, DO_ABORT, DO_SHUTDOWN };
	uint8_t *pattern = mpa_pattern(1000, 3);
	struct mpa_octets o = mpa_fpdu(pattern, 1000);

	for (unsigned i = 0; i < 15; i++) {
		enum mpa_upcall up = ups[i / 3];
		struct mpa_world w;
		struct mpa_side *s;
		int fd;

		mpa_world_init(&w);
		fd = mpa_bare_initiator(&w);
		s = &w.b[0];
		s->react[up] = how[i % 3];
		mpa_send_segments(s, pattern, 1000, 200);
		for (int n = 0; n < 5; n++)
			mpa_bare_send(fd, o.p, o.len);
		if (up == UP_FAULT)
			mpa_bare_send(fd, "\0\1x\0junk", 8);
		else
			mpa_bare_send(fd, o.p, o.len);
		shutdown(fd, SHUT_WR);
		MPA_UNTIL(&w, s->called[up] || (up == UP_CLOSED && s->called[UP_PEER_CLOSED]));
		if (up == UP_CLOSED) {
			s->llp->ops->abort(s->llp);
			MPA_UNTIL(&w, s->called[UP_CLOSED]);
		}
		mpa_world_settle(&w);
		if (s->react[up] == DO_FREE && up != UP_CLOSED)
			cr_expect_eq(s->called[UP_CLOSED], 0);
		if (up == UP_RX && s->react[up] != DO_SHUTDOWN)
			cr_expect_eq(s->called[UP_RX], 1);
		if (s->react[up] == DO_ABORT) {
			MPA_UNTIL(&w, s->called[UP_CLOSED]);
			cr_expect_eq(s->end.code, DDPS_E_CLOSED);
		}
		mpa_world_fini(&w);
		close(fd);
	}
	free(o.p);
	free(pattern);
}

Test(mpa_io_end, bad_segment_from_above_ends_it)
{
	uint8_t *pattern = mpa_pattern(1000, 3);
	struct mpa_world w;

	mpa_world_init(&w);
	mpa_world_pair(&w);
	mpa_send_segments(&w.a, pattern, 0, 1);
	cr_expect_eq(w.a.called[UP_CLOSED], 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.code, DDPS_E_INVAL);
	mpa_world_fini(&w);
	free(pattern);
}
