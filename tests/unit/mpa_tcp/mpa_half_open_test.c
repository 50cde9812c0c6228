/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that connect and say nothing: the places they take, and who has to go. */
#include "support/mpa_world.h"
#include <arpa/inet.h>

#define REQ    MPA_REQ "\0\1\0\0"
#define PLACES 16

/* A connection from another host, as it were. */
static int connect_mpa_half_open_from(const struct mpa_world *w, const char *from)
{
	struct sockaddr_in to = mpa_loopback(w->port), in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(inet_pton(AF_INET, from, &in.sin_addr), 1);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	mpa_bare_nodelay(fd);
	return fd;
}

static void open_mpa_half_open_world(struct mpa_world *w)
{
	mpa_world_init(w);
	w->lp.max_half_open = PLACES;
	w->lp.setup_ms = 0; /* only another peer makes them go */
	mpa_world_listen(w);
}

static bool is_mpa_half_open_open(int fd)
{
	uint8_t octet;

	return recv(fd, &octet, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

Test(mpa_half_open, attack_17_half_open_flood_leaves_others_alone, .description = "5044-7.1.2-25")
{
	struct mpa_world w;
	uint8_t raw[20];
	int flood[PLACES], fd;

	open_mpa_half_open_world(&w);
	for (int i = 0; i < PLACES; i++)
		flood[i] = connect_mpa_half_open_from(&w, "127.0.0.1");
	MPA_UNTIL(&w, w.env.half_open_full);
	mpa_world_settle(&w);
	cr_expect_eq(w.env.half_open_given_up, 0);
	for (int i = 0; i < PLACES; i++)
		cr_expect(is_mpa_half_open_open(flood[i]));
	fd = connect_mpa_half_open_from(&w, "127.0.0.2");
	mpa_bare_send(fd, REQ, 20);
	cr_assert_eq(mpa_bare_read(&w, fd, raw, 20), 20);
	cr_expect_eq(w.env.half_open_given_up, 1);
	cr_expect_lt(recv(flood[0], raw, 1, 0), 0, "the oldest goes");
	cr_expect_eq(errno, ECONNRESET);
	for (int i = 0; i < PLACES; i++) {
		cr_expect(i == 0 || is_mpa_half_open_open(flood[i]), "%d", i);
		close(flood[i]);
	}
	mpa_world_fini(&w);
	close(fd);
}

Test(mpa_half_open, attack_17_half_open_slow_peer_outlasts_a_flood)
{
	struct mpa_world w;
	uint8_t raw[20];
	int flood[4 * PLACES], fd;

	open_mpa_half_open_world(&w);
	fd = connect_mpa_half_open_from(&w, "127.0.0.2");
	mpa_bare_send(fd, REQ, 10);
	mpa_world_settle(&w);
	for (int i = 0; i < 4 * PLACES; i++) {
		flood[i] = connect_mpa_half_open_from(&w, "127.0.0.1");
		if (i >= PLACES - 1)
			MPA_UNTIL(&w, w.env.half_open_given_up == (uint64_t)i - PLACES + 2);
	}
	cr_expect_eq(w.env.half_open_given_up, 3 * PLACES + 1);
	cr_expect(is_mpa_half_open_open(fd));
	mpa_bare_send(fd, &REQ[10], 10);
	cr_expect_eq(mpa_bare_read(&w, fd, raw, 20), 20, "older than all, and its own address's");
	for (int i = 0; i < 4 * PLACES; i++)
		close(flood[i]);
	mpa_world_fini(&w);
	close(fd);
}

/* Who is rejected and does not leave has a place for a second: not as many as come in it. */
Test(mpa_half_open, attack_17_half_open_rejected_peers_have_places)
{
	struct mpa_world w;
	uint8_t raw[20];
	int fd[4];

	mpa_world_init(&w);
	w.lp.max_half_open = 2;
	for (int i = 0; i < 4; i++)
		w.b[i].react[UP_REQUEST] = DO_REJECT;
	mpa_world_listen(&w);
	for (int i = 0; i < 4; i++) {
		fd[i] = connect_mpa_half_open_from(&w, "127.0.0.1");
		mpa_bare_send(fd[i], REQ, 20);
		cr_assert_eq(mpa_bare_read(&w, fd[i], raw, 20), 20, "%d", i);
	}
	cr_expect_eq(w.env.half_open_given_up, 2);
	for (int i = 0; i < 2; i++) {
		cr_expect_lt(recv(fd[i], raw, 1, 0), 0, "%d had to go", i);
		cr_expect_eq(errno, ECONNRESET);
		cr_expect_eq(w.b[i].end.code, DDPS_E_LIMIT);
		cr_expect(!strncmp(w.b[i].end.text, "rejected, ", 10), "%s", w.b[i].end.text);
	}
	for (int i = 0; i < 4; i++) {
		cr_expect(i < 2 || is_mpa_half_open_open(fd[i]), "%d", i);
		close(fd[i]);
	}
	mpa_world_fini(&w);
}

/* What the application has been asked is its own: others wait in the kernel's queue. */
Test(mpa_half_open, requests_do_not_go_for_others)
{
	struct mpa_world w;
	int fd[12];

	mpa_world_init(&w);
	w.lp.max_half_open = 4;
	for (int i = 0; i < 4; i++)
		w.b[i].react[UP_REQUEST] = DO_NOTHING;
	mpa_world_listen(&w);
	for (int i = 0; i < 12; i++) { /* a burst: their Requests wait to be read */
		fd[i] = connect_mpa_half_open_from(&w, i < 4 ? "127.0.0.1" : "127.0.0.2");
		mpa_bare_send(fd[i], REQ, 20);
	}
	MPA_UNTIL(&w, w.requests == 4);
	mpa_world_settle(&w);
	cr_expect_eq(w.requests, 4);
	cr_expect_eq(w.env.half_open_given_up, 0);
	cr_expect_gt(w.env.half_open_full, 0);
	for (int i = 0; i < 12; i++) {
		cr_expect(is_mpa_half_open_open(fd[i]), "%d", i);
		close(fd[i]);
	}
	mpa_world_fini(&w);
}
