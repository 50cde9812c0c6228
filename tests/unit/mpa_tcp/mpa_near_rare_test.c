/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions over TCP on the way to shared memory, where calls and allocations fail. */
#include "mpa_tcp/shm/mpa_near.h"
#include "support/mpa_world.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include "unit/linger_fixture.h"
#include <fcntl.h>

static struct mpa_world w;
static uint8_t pattern[1000];
static unsigned calls_failed; /* in the last session */
static long live;

static void init(void)
{
	live = mem_live();
	mpa_world_init(&w);
	w.a.p.shm = w.answer_param.shm = true;
	w.a.p.setup_ms = 1000;
	mpa_world_listen(&w);
}

static void fini(void)
{
	mpa_world_fini(&w);
	cr_expect_eq(mem_live(), live);
}

TestSuite(mpa_near_rare, .init = init, .fini = fini, .timeout = 60);

static unsigned count_left_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void free_near_side(struct mpa_side *s)
{
	if (s->llp)
		s->llp->ops->free(s->llp);
	free(s->in.p);
	memset(s, 0, sizeof *s);
}

static bool is_through_memory(const struct mpa_side *s)
{
	struct ddps_conn_info info = { 0 };

	s->llp->ops->info(s->llp, &info);
	return info.transport == DDPS_TRANSPORT_SHM;
}

/* A session with data both ways, after which nothing is left.  Return whether it was through memory. */
static bool play_session(void)
{
	const struct ddps_llp_param p = w.a.p;
	const unsigned fds = count_left_descriptors();
	bool moved;

	mpa_world_connect(&w, w.port, true, "\0\1\0\1", 4);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER] || w.a.called[UP_CLOSED]);
	cr_assert(w.a.called[UP_ANSWER], "%s", w.a.end.text);
	mpa_send_segments(&w.a, pattern, 500, 2);
	MPA_UNTIL(&w, w.b[0].segments == 2);
	mpa_send_segments(&w.b[0], pattern, 500, 1);
	MPA_UNTIL(&w, w.a.segments == 1);
	moved = is_through_memory(&w.a);
	cr_expect_eq(is_through_memory(&w.b[0]), moved);
	calls_failed = sys_failed();
	sys_fail(NULL, 0, 0, 0);
	free_near_side(&w.a);
	free_near_side(&w.b[0]);
	mpa_world_settle(&w);
	w.requests = 0;
	w.a.w = &w;
	w.a.p = p;
	cr_expect(await_count(count_left_descriptors, fds));
	return moved;
}

/* The first @good are TCP's, or the other side's. */
static void check_stays(const char *call, unsigned good, int err)
{
	sys_fail(call, good, 1, err);
	cr_expect_not(play_session(), "%s, %u", call, good);
	cr_expect_eq(calls_failed, 1, "%s, %u", call, good);
}

Test(mpa_near_rare, calls_that_fail_leave_it_on_tcp)
{
	cr_expect(play_session());
	check_stays("socket", 1, EMFILE);     /* where the initiator would be found */
	check_stays("socket", 2, EMFILE);     /* the responder's */
	check_stays("bind", 0, EADDRINUSE);   /* the name is somebody's */
	check_stays("listen", 0, EOPNOTSUPP); /* of it */
	check_stays("connect", 1, EAGAIN);    /* others have come */
	check_stays("fallocate", 0, ENOMEM);
	check_stays("mmap", 0, ENOMEM); /* the initiator's */
	check_stays("mmap", 1, ENOMEM); /* the responder's of it */
	check_stays("mmap", 2, ENOMEM); /* of its own */
	check_stays("sendmsg", 0, EIO); /* that passes it */
	check_stays("sendmsg", 1, EIO); /* the responder's */
	check_stays("recvmsg", 0, ECONNRESET);
	cr_expect(play_session());
}

/* Those for TCP end the session, as they do without memory: this begins behind them. */
Test(mpa_near_rare, allocations_that_fail_leave_it_on_tcp)
{
	unsigned n = 0, stays = 0;
	bool failed, up;

	do {
		const struct ddps_llp_param p = w.a.p;

		mem_fail(++n);
		w.a.llp = NULL;
		if (n < 3) { /* the connection and its start */
			struct sockaddr_in in = mpa_loopback(w.port);
			struct ddps_uri uri = { .scheme = "tcp" };
			struct ddps_setup setup = { .enhanced = true,
						    .pd = (const uint8_t *)"\0\1\0\1",
						    .pd_len = 4 };

			cr_expect_eq(ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in,
							       sizeof in, &setup, &w.a.p, &mpa_up,
							       &w.a, &w.a.llp),
				     DDPS_E_NOMEM);
			failed = mem_failed();
			continue;
		}
		mpa_world_connect(&w, w.port, true, "\0\1\0\1", 4);
		MPA_UNTIL(&w, w.a.called[UP_ANSWER] || w.a.called[UP_CLOSED]);
		failed = mem_failed();
		up = w.a.called[UP_ANSWER];
		mem_fail(0);
		stays += failed && up && !is_through_memory(&w.a);
		if (!failed)
			cr_expect(up && is_through_memory(&w.a));
		free_near_side(&w.a);
		mpa_world_settle(&w);
		for (unsigned i = 0; i < w.requests; i++)
			free_near_side(&w.b[i]);
		w.requests = 0;
		w.a.w = &w;
		w.a.p = p;
		mpa_world_settle(&w);
	} while (failed);
	cr_expect_geq(stays, 2, "of the initiator and of the responder: %u", stays);
}

/* As long as epoll does not take a descriptor somebody says so, or the session stays where it is. */
Test(mpa_near_rare, no_session_waits_for_a_descriptor_that_is_not_watched)
{
	const struct ddps_llp_param p = w.a.p;
	const unsigned fds = count_left_descriptors();
	struct sockaddr_in in = mpa_loopback(w.port);
	const struct ddps_uri uri = { .scheme = "tcp" };
	const struct ddps_setup setup = { .enhanced = true,
					  .pd = (const uint8_t *)"\0\1\0\1",
					  .pd_len = 4 };
	unsigned good = 0, ends = 0;
	bool failed = true;

	for (; failed; good++) {
		sys_fail("epoll_ctl", good, 1, ENOSPC);
		if (!ddps_mpa_provider.connect(&w.env, &uri, (struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp)) {
			ddps_llp_attach(w.a.llp, &mpa_data, &w.a);
			MPA_UNTIL(&w, w.a.called[UP_ANSWER] || w.a.called[UP_CLOSED]);
			mpa_world_settle(&w);
			ends += w.a.end.code == DDPS_E_SYSTEM || w.b[0].end.code == DDPS_E_SYSTEM;
		}
		failed = sys_failed();
		sys_fail(NULL, 0, 0, 0);
		free_near_side(&w.a);
		free_near_side(&w.b[0]);
		mpa_world_settle(&w);
		w.requests = 0;
		w.a.w = &w;
		w.a.p = p;
		cr_expect_eq(count_left_descriptors(), fds, "%u", good);
	}
	cr_expect_geq(ends, 2, "of the initiator and of the responder, who have moved");
}

/* A name that is cut would be that of other connections, too. */
Test(mpa_near_rare, addresses_that_are_too_long_for_a_name)
{
	unsigned named = 0, unnamed = 0;

	for (uint32_t scope = 1; scope < 1000000000; scope *= 10) {
		struct sockaddr_in6 peer = { .sin6_family = AF_INET6,
					     .sin6_port = htons(1),
					     .sin6_scope_id = scope };
		struct ddps_mpa_conn *c;
		char text[72];

		memset(&peer.sin6_addr, 0xfe, sizeof peer.sin6_addr);
		peer.sin6_addr.s6_addr[1] = 0x80; /* of a link */
		c = ddps_mpa_conn_new(&w.env, &ddps_mpa_sockets, (struct sockaddr *)&peer);
		cr_assert(c);
		c->io.fd = -1;
		c->initiator = true;
		c->p.shm = true;
		c->local = c->peer;
		ddps_mpa_addr_text(&c->peer, text, sizeof text);
		ddps_mpa_near_offer(c);
		cr_expect_eq(c->near != NULL, 9 + 2 * strlen(text) < 107, "%s", text);
		*(c->near ? &named : &unnamed) += 1;
		ddps_mpa_near_drop(c);
		c->open = false;
		ddps_mpa_conn_destroy(c);
	}
	cr_expect(named && unnamed);
}
