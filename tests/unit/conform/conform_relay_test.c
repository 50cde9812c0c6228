/* SPDX-License-Identifier: BSD-2-Clause */
/* A relay of the tester's over TCP, turn by turn: the test is the partner and the target. */
#include "conform/relay/relay_in.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define TURNS 2000

static struct cf_relay r;
static int target, partner = -1, other = -1; /* listens; the two ends of a connection */

static int get_conform_relay_listener(struct sockaddr_storage *a, socklen_t *len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memset(a, 0, sizeof *a);
	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*len = sizeof *v4;
	cr_assert_eq(bind(fd, (struct sockaddr *)a, *len), 0);
	cr_assert_eq(listen(fd, 64), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)a, len), 0);
	return fd;
}

static struct sockaddr_storage front;
static socklen_t front_len;

static void set_conform_relay_up(void)
{
	memset(&r, 0, sizeof r);
	target = get_conform_relay_listener(&r.to, &r.to_len);
	r.front = get_conform_relay_listener(&front, &front_len);
	r.trace = cf_trace_new();
}

static int connect_relay_partner(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&front, front_len), 0);
	return fd;
}

static void join_conform_relay(void)
{
	partner = connect_relay_partner();
	relay_tcp_turn(&r);
	other = accept4(target, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(other, 0);
}

static void take_conform_relay_down(void)
{
	relay_tcp_end(&r);
	cf_trace_free(r.trace);
	close(r.front);
	close(target);
	close(partner);
	close(other);
}

/* Turns until @fd has something to read, or has ended.  Return: what recv() does. */
static ssize_t read_relayed(int fd, void *b, size_t len)
{
	for (unsigned i = 0; i < TURNS; i++) {
		struct pollfd p = { fd, POLLIN, 0 };

		relay_tcp_turn(&r);
		if (poll(&p, 1, 1) == 1)
			break;
	}
	return recv(fd, b, len, MSG_DONTWAIT);
}

Test(conform_relay, a_connection_without_memory_is_refused)
{
	char b[8];

	set_conform_relay_up();
	partner = connect_relay_partner();
	mem_fail(1);
	relay_tcp_turn(&r);
	cr_expect(mem_failed());
	cr_expect_eq(r.refused, 1);
	cr_expect_eq(r.connections, 0);
	cr_expect_eq(read_relayed(partner, b, sizeof b), -1);
	cr_expect_eq(errno, ECONNRESET);
	take_conform_relay_down();
}

Test(conform_relay, sixteen_connections_at_a_time)
{
	struct pollfd p[RELAY_FDS];
	uint64_t next = UINT64_MAX;
	int fd[RELAY_LINKS + 1];

	set_conform_relay_up();
	for (unsigned i = 0; i <= RELAY_LINKS; i++) {
		fd[i] = connect_relay_partner();
		relay_tcp_turn(&r);
	}
	cr_expect_eq(r.connections, RELAY_LINKS);
	cr_expect_eq(relay_tcp_fds(&r, p, &next), RELAY_FDS);
	cr_expect_eq(p[0].fd, -1, "the next one waits");
	cr_expect_eq(next, UINT64_MAX);
	for (unsigned i = 0; i <= RELAY_LINKS; i++)
		close(fd[i]);
	take_conform_relay_down();
}

/* Octets that find no memory are lost, and so is a stroke; the rest goes on. */
Test(conform_relay, pieces_without_memory)
{
	char b[8];

	set_conform_relay_up();
	join_conform_relay();
	cr_assert_eq(send(partner, "lost", 4, 0), 4);
	mem_fail(1);
	relay_tcp_turn(&r);
	cr_expect(mem_failed());
	cr_expect_eq(r.lost, 1);
	r.plan.stroke = CF_FIN;
	r.plan.at = 4;
	cr_assert_eq(send(partner, "gone", 4, 0), 4);
	mem_fail(1);
	relay_tcp_turn(&r);
	cr_expect(mem_failed());
	cr_expect_eq(r.strokes, 1);
	cr_assert_eq(send(other, "back", 4, 0), 4);
	cr_expect_eq(read_relayed(partner, b, sizeof b), 4);
	cr_expect_eq(memcmp(b, "back", 4), 0);
	take_conform_relay_down();
}

/* What comes behind the end of a stream that was cut is not handed on. */
Test(conform_relay, what_is_behind_an_end)
{
	static const enum cf_stroke end[] = { CF_FIN, CF_RST };

	for (unsigned i = 0; i < 2; i++) {
		char b[16];

		set_conform_relay_up();
		r.plan.stroke = end[i];
		r.plan.at = 2;
		r.plan.jitter_ms = 2;
		join_conform_relay();
		cr_assert_eq(send(partner, "abcd", 4, 0), 4);
		r.plan.jitter_ms = 1;
		relay_tcp_turn(&r); /* the end waits for its time, and here is more */
		cr_assert_eq(send(partner, "efgh", 4, 0), 4);
		if (!LIST_EMPTY(&r.links))
			relay_tcp_turn(&r);
		if (!i) {
			cr_expect_eq(read_relayed(other, b, sizeof b), 2);
			cr_expect_eq(memcmp(b, "ab", 2), 0);
			cr_expect_eq(read_relayed(other, b, sizeof b), 0, "its end");
		} else {
			ssize_t n = read_relayed(other, b, sizeof b);

			cr_expect(n == 2 || (n < 0 && errno == ECONNRESET), "%zd", n);
			cr_expect(LIST_EMPTY(&r.links));
		}
		cr_expect_eq(r.strokes, 1);
		take_conform_relay_down();
	}
}

/* As much waits as may; then nothing more is read, until it goes on. */
Test(conform_relay, a_target_that_does_not_read)
{
	static char b[65536];
	struct pollfd p[RELAY_FDS];
	uint64_t next = UINT64_MAX;
	size_t in = 0, out = 0;
	ssize_t n;

	set_conform_relay_up();
	join_conform_relay();
	for (unsigned i = 0; i < TURNS && !(LIST_FIRST(&r.links)->lane[0].held >= RELAY_HELD);
	     i++) {
		n = send(partner, b, sizeof b, MSG_DONTWAIT);
		in += n > 0 ? (size_t)n : 0;
		relay_tcp_turn(&r);
	}
	cr_assert_geq(LIST_FIRST(&r.links)->lane[0].held, RELAY_HELD);
	cr_expect_eq(relay_tcp_fds(&r, p, &next), 3);
	cr_expect_eq(p[1].fd, -1, "nothing more is read of the partner");
	cr_expect(p[2].events & POLLOUT);
	shutdown(partner, SHUT_WR);
	while ((n = read_relayed(other, b, sizeof b)) > 0)
		out += (size_t)n;
	cr_expect_eq(n, 0);
	cr_expect_eq(out, in, "all of it, and then the end");
	take_conform_relay_down();
}

/* A reset is handed on as one, whether it is read or what is sent meets it. */
Test(conform_relay, a_target_that_resets)
{
	const struct linger now = { .l_onoff = 1 };

	for (unsigned i = 0; i < 2; i++) {
		char b[8];

		set_conform_relay_up();
		join_conform_relay();
		cr_assert_eq(setsockopt(other, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
		close(other);
		other = -1;
		LIST_FIRST(&r.links)->ended[1] = i; /* then it is not read */
		if (i)
			cr_assert_eq(send(partner, "abcd", 4, 0), 4);
		cr_expect_eq(read_relayed(partner, b, sizeof b), -1, "%u", i);
		cr_expect_eq(errno, ECONNRESET, "%u", i);
		cr_expect(LIST_EMPTY(&r.links));
		take_conform_relay_down();
	}
}
