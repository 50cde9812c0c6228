/* SPDX-License-Identifier: BSD-2-Clause */
/* How much the native SCTP reads from a socket in a turn, in which portions, and what it does besides. */
#include "sctp_ddp/backend/native/sd_native.h"
#include "sd_hand_fixture.h"
#include "unit/sys_fixture.h"
#include <errno.h>
#include <netinet/udp.h>
#include <sys/epoll.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

TestSuite(sd_native_read, .timeout = 60);

#define CALLS  32u
#define ALL    1000 /* as many as are asked for */
#define PACKET 16u

/* What is there, call by call: datagrams, or below 0 an errno; then nothing.  Each has so many
 * packets that came together, or is 0: one that came alone. */
struct portion {
	int n;
	unsigned packets;
};

static const struct portion *there;
static unsigned portions, calls, asked[CALLS];
static unsigned of_errors; /* looks into the queue of errors */

/* The last packet is a short one. */
static void come_together(struct mmsghdr *m, int packets)
{
	const int size = PACKET;
	struct cmsghdr *c;

	m->msg_len = (unsigned)packets * PACKET - PACKET / 2;
	m->msg_hdr.msg_controllen = CMSG_SPACE(sizeof size);
	c = CMSG_FIRSTHDR(&m->msg_hdr);
	*c = (struct cmsghdr){ .cmsg_level = IPPROTO_UDP,
			       .cmsg_type = UDP_GRO,
			       .cmsg_len = CMSG_LEN(sizeof size) };
	memcpy(CMSG_DATA(c), &size, sizeof size);
}

static void put_read_packets(struct mmsghdr *m, unsigned packets)
{
	const struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(4000) };

	memcpy(m->msg_hdr.msg_name, &from, sizeof from);
	m->msg_len = PACKET;
	m->msg_hdr.msg_controllen = 0;
	if (packets)
		come_together(m, (int)packets);
	memset(m->msg_hdr.msg_iov->iov_base, 0, m->msg_len);
}

static int give_portion(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	struct portion p = { -EAGAIN, 0 };

	(void)fd;
	cr_assert_eq(flags, MSG_DONTWAIT);
	cr_assert_lt(calls, CALLS);
	if (calls < portions)
		p = there[calls];
	asked[calls++] = n;
	if (p.n < 0) {
		errno = -p.n;
		return -1;
	}
	n = (unsigned)p.n < n ? (unsigned)p.n : n;
	for (unsigned i = 0; i < n; i++)
		put_read_packets(&m[i], p.packets);
	return (int)n;
}

static ssize_t have_no_sd_native_read_error(int fd, struct msghdr *m, int flags)
{
	(void)fd;
	(void)m;
	cr_assert(flags & MSG_ERRQUEUE);
	of_errors++;
	errno = EAGAIN;
	return -1;
}

static struct ddps_sn_sock *get_sd_native_read_sock(void)
{
	return srv.ep->sock;
}

/* A turn of the socket, with @n portions there. */
static void turn_sd_native_read(uint32_t events, const struct portion *p, unsigned n)
{
	there = p;
	portions = n;
	calls = of_errors = 0;
	sys_instead.recvmmsg = give_portion;
	sys_instead.recvmsg = have_no_sd_native_read_error;
	ddps_sn_readable(get_sd_native_read_sock(), events);
	sys_instead.recvmmsg = NULL;
	sys_instead.recvmsg = NULL;
}

#define TURN(events, ...)                                                                          \
	turn_sd_native_read(events, (const struct portion[]){ __VA_ARGS__ },                       \
			    sizeof((const struct portion[]){ __VA_ARGS__ }) /                      \
				    sizeof(struct portion))

/* The next turn is one of whoever goes by datagrams like these. */
static void after(unsigned heavy)
{
	get_sd_native_read_sock()->heavy = heavy;
	get_sd_native_read_sock()->waited = false;
}

/* ---- how many at a time ---- */

static const struct first_row {
	unsigned heavy, asked;
} first_rows[] = {
	{ 0, DDPS_SN_BATCH }, { 511, DDPS_SN_BATCH },
	{ 512, 7 },	      { 1023, 4 },
	{ 2047, 2 },	      { 2048, 1 },
	{ 4095, 1 },	      { 4096, 1 },
	{ 100000, 1 },
};

/* Together they are what a turn takes, if they are like those before; one there is always. */
Test(sd_native_read, how_many_are_asked_for)
{
	start_sd_hand();
	for (unsigned i = 0; i < sizeof first_rows / sizeof *first_rows; i++) {
		after(first_rows[i].heavy);
		TURN(EPOLLIN, { -EAGAIN, 0 });
		cr_expect_eq(calls, 1);
		cr_expect_eq(asked[0], first_rows[i].asked, "%u: %u", first_rows[i].heavy,
			     asked[0]);
	}
	stop_sd_hand(NULL);
}

Test(sd_native_read, a_stranger_sends_one_datagram_first)
{
	start_sd_hand();
	get_sd_native_read_sock()->waited = false;
	TURN(EPOLLIN, { -EAGAIN, 0 });
	cr_expect_eq(asked[0], 1);
	stop_sd_hand(NULL);
}

static const struct weight_row {
	unsigned heavy;
	struct portion p;
	unsigned then;
} weight_rows[] = {
	{ 0, { 1, 0 }, 1 },	 /* a datagram is one packet at least */
	{ 0, { 5, 0 }, 1 },	 /* it is the mean that counts */
	{ 0, { 1, 40 }, 40 },	 /* the heaviest immediately */
	{ 40, { 2, 41 }, 41 },	 /* each */
	{ 41, { 2, 41 }, 41 },	 /* as it was */
	{ 801, { 1, 0 }, 701 },	 /* it recedes by an eighth */
	{ 880, { 3, 80 }, 780 }, /* of what it is more */
	{ 8, { 3, 2 }, 8 },	 /* less than an eighth is none */
	{ 2000, { 1, 3000 }, 3000 },
};

Test(sd_native_read, what_the_next_ones_are_taken_for)
{
	start_sd_hand();
	for (unsigned i = 0; i < sizeof weight_rows / sizeof *weight_rows; i++) {
		after(weight_rows[i].heavy);
		turn_sd_native_read(EPOLLIN, &weight_rows[i].p, 1);
		cr_expect_eq(get_sd_native_read_sock()->heavy, weight_rows[i].then, "%u: %u", i,
			     get_sd_native_read_sock()->heavy);
	}
	stop_sd_hand(NULL);
}

/* Each portion is weighed by itself. */
Test(sd_native_read, a_light_portion_after_a_heavy_one)
{
	start_sd_hand();
	after(0);
	TURN(EPOLLIN, { ALL, 100 }, { ALL, 0 }, { 1, 101 });
	cr_expect_eq(calls, 3);
	cr_expect_eq(get_sd_native_read_sock()->heavy, 101);
	after(0);
	TURN(EPOLLIN, { ALL, 100 }, { ALL, 0 });
	cr_expect_eq(get_sd_native_read_sock()->heavy, 100 - 99 / 8);
	stop_sd_hand(NULL);
}

/* ---- how much in a turn ---- */

static const struct portion endless[8] = {
	{ ALL, 0 }, { ALL, 0 }, { ALL, 0 }, { ALL, 0 },
	{ ALL, 0 }, { ALL, 0 }, { ALL, 0 }, { ALL, 0 },
};

static unsigned sum_sd_native_read(unsigned n)
{
	unsigned all = 0;

	for (unsigned i = 0; i < n; i++)
		all += asked[i];
	return all;
}

Test(sd_native_read, a_turn_takes_32_datagrams)
{
	start_sd_hand();
	after(0);
	turn_sd_native_read(EPOLLIN, endless, 8);
	cr_expect_eq(calls, 4, "%u", calls);
	cr_expect_eq(sum_sd_native_read(calls), 32);
	cr_expect_not(get_sd_native_read_sock()->empty);
	stop_sd_hand(NULL);
}

/* One more portion is begun for the last of them. */
Test(sd_native_read, the_thirty_second_datagram_is_taken)
{
	start_sd_hand();
	after(1300);
	turn_sd_native_read(EPOLLIN, endless, 8);
	cr_expect_eq(asked[0], 3);
	cr_expect_eq(sum_sd_native_read(calls - 1), 31, "%u", sum_sd_native_read(calls - 1));
	stop_sd_hand(NULL);
}

/* 4096 messages and packets: no portion is begun when there is nothing left of it. */
Test(sd_native_read, a_turn_takes_so_much_work)
{
	start_sd_hand();
	after(0);
	TURN(EPOLLIN, { ALL, 500 }, { ALL, 95 }, { ALL, 2 }, { ALL, 0 });
	cr_expect_eq(calls, 3, "%u", calls);
	cr_expect_eq(asked[1], 1, "96 are left");
	cr_expect_eq(asked[2], 1, "1 is left");
	after(0);
	TURN(EPOLLIN, { ALL, 512 }, { ALL, 0 });
	cr_expect_eq(calls, 1);
	after(0);
	TURN(EPOLLIN, { ALL, 600 }, { ALL, 0 });
	cr_expect_eq(calls, 1);
	cr_expect_not(get_sd_native_read_sock()->empty, "who knows");
	stop_sd_hand(NULL);
}

Test(sd_native_read, fewer_than_were_asked_for_are_the_last)
{
	start_sd_hand();
	after(0);
	TURN(EPOLLIN, { ALL, 0 }, { 7, 0 }, { ALL, 0 });
	cr_expect_eq(calls, 2);
	cr_expect(get_sd_native_read_sock()->empty);
	TURN(EPOLLIN, { 1, 0 }, { ALL, 0 });
	cr_expect_eq(calls, 1);
	cr_expect_eq(asked[0], DDPS_SN_BATCH, "nobody waited");
	TURN(EPOLLIN, { 1, 0 }, { ALL, 0 });
	cr_expect_eq(asked[0], DDPS_SN_BATCH, "and after a single one neither");
	stop_sd_hand(NULL);
}

/* What was waited for is had without another look at the socket. */
Test(sd_native_read, one_that_was_waited_for_comes_alone)
{
	start_sd_hand();
	after(0);
	TURN(EPOLLIN, { -EAGAIN, 0 });
	cr_expect_eq(asked[0], DDPS_SN_BATCH);
	cr_expect(get_sd_native_read_sock()->empty);
	TURN(EPOLLIN, { ALL, 0 }, { ALL, 0 });
	cr_expect_eq(calls, 1);
	cr_expect_eq(asked[0], 1);
	cr_expect_not(get_sd_native_read_sock()->empty, "there may be more");
	TURN(EPOLLIN, { 2, 0 });
	cr_expect_eq(asked[0], DDPS_SN_BATCH);

	TURN(EPOLLIN, { -EAGAIN, 0 });
	TURN(EPOLLIN, { -EAGAIN, 0 });
	cr_expect_eq(asked[0], 1, "in vain again");
	TURN(EPOLLIN | EPOLLERR, { ALL, 0 }, { 3, 0 });
	cr_expect_eq(calls, 2, "all that is there comes before an error");
	cr_expect_eq(asked[0], DDPS_SN_BATCH);
	stop_sd_hand(NULL);
}

/* ---- errors ---- */

static const struct error_row {
	uint32_t events;
	struct portion p[2];
	unsigned calls, of_errors;
} error_rows[] = {
	{ EPOLLIN, { { -EAGAIN, 0 }, { 3, 0 } }, 1, 0 },
	{ EPOLLIN, { { -EINTR, 0 }, { 3, 0 } }, 1, 0 },
	{ EPOLLIN, { { 3, 0 }, { 3, 0 } }, 1, 0 },
	{ EPOLLIN, { { -ECONNREFUSED, 0 }, { 3, 0 } }, 2, 1 },
	{ EPOLLIN, { { -ECONNREFUSED, 0 }, { -EHOSTUNREACH, 0 } }, 2, 1 },
	{ EPOLLERR, { { -EAGAIN, 0 }, { 3, 0 } }, 2, 1 },
	{ EPOLLERR, { { 3, 0 }, { 3, 0 } }, 1, 1 },
};

/* A call reports an error once, and not what there is to be read. */
Test(sd_native_read, an_error_in_the_place_of_datagrams)
{
	start_sd_hand();
	for (unsigned i = 0; i < sizeof error_rows / sizeof *error_rows; i++) {
		const struct error_row *r = &error_rows[i];

		after(0);
		turn_sd_native_read(r->events, r->p, 2);
		cr_expect_eq(calls, r->calls, "%u: %u", i, calls);
		cr_expect_eq(of_errors, r->of_errors, "%u: %u", i, of_errors);
		cr_expect_not(get_sd_native_read_sock()->errors);
	}
	stop_sd_hand(NULL);
}

/* Turns of a flood until its errors are looked at. */
static unsigned turns_to_errors(void)
{
	unsigned turns = 0;

	do {
		after(0);
		turn_sd_native_read(EPOLLIN | EPOLLERR, endless, 8);
		turns++;
	} while (!of_errors && turns < 20);
	return turns;
}

/* Once they were, they are put off as many times again. */
Test(sd_native_read, a_flood_puts_errors_off_each_time)
{
	start_sd_hand();
	cr_expect_eq(turns_to_errors(), 9);
	cr_expect_eq(turns_to_errors(), 9);
	for (int i = 0; i < 3; i++)
		turn_sd_native_read(EPOLLIN | EPOLLERR, endless, 8);
	cr_expect_eq(of_errors, 0);
	TURN(EPOLLIN | EPOLLERR, { 1, 0 });
	cr_expect_eq(of_errors, 1, "nothing else is there");
	cr_expect_eq(turns_to_errors(), 9);
	stop_sd_hand(NULL);
}

/* ---- between portions ---- */

static struct wire *peer;
static unsigned answered[CALLS]; /* packets that had left before each call */

static int note_answers(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	struct ddps_sctp_stats st;

	ddps_sctp_stats(srv.ep->ne->e, &st);
	cr_assert_lt(calls, CALLS);
	answered[calls++] = (unsigned)st.packets_out;
	return sys_recvmmsg(fd, m, n, flags);
}

static void send_heartbeat(void)
{
	static const uint8_t info[] = { 0, 1, 0, 8, 1, 2, 3, 4 };

	begin_sd_hand(peer, peer->peer_tag);
	put_sd_hand_chunk(peer, C_HEARTBEAT, 0, info, sizeof info);
	finish_sd_hand(peer);
}

/* A peer need not wait for the end of the turn. */
Test(sd_native_read, answers_leave_before_more_is_read)
{
	start_sd_hand();
	peer = wire_up(ddp, sizeof ddp);
	run_hand_node();
	for (int i = 0; i < 3; i++)
		send_heartbeat();
	after(100000); /* one at a time */
	calls = 0;
	sys_instead.recvmmsg = note_answers;
	ddps_sn_readable(get_sd_native_read_sock(), EPOLLIN);
	sys_instead.recvmmsg = NULL;
	cr_assert_eq(calls, 4);
	for (unsigned i = 1; i < 4; i++)
		cr_expect_eq(answered[i], answered[0] + i, "%u: %u", i, answered[i]);
	stop_sd_hand(peer);
}

/* ---- looks in vain ---- */

/* Whether there was a flush: it counts octets anew. */
static bool does_sd_native_read_flush(uint32_t events, struct portion p)
{
	srv.ep->ne->fresh = 1;
	after(0);
	turn_sd_native_read(events, &p, 1);
	return !srv.ep->ne->fresh;
}

/* There are many such looks: they are cheap. */
Test(sd_native_read, a_look_in_vain_is_all)
{
	const struct portion none = { -EAGAIN, 0 }, one = { 1, 0 }, error = { -ECONNREFUSED, 0 };

	start_sd_hand();
	cr_expect_not(does_sd_native_read_flush(EPOLLIN, none));
	cr_expect_not(does_sd_native_read_flush(0, none));
	cr_expect(does_sd_native_read_flush(EPOLLIN, one));
	cr_expect(does_sd_native_read_flush(EPOLLIN, error));
	cr_expect(does_sd_native_read_flush(EPOLLERR, none));
	cr_expect(does_sd_native_read_flush(EPOLLIN | EPOLLOUT, none));
	stop_sd_hand(NULL);
}

/* No timer runs while a socket is full; it does again as soon as there is room. */
Test(sd_native_read, room_again_where_nothing_waits_to_be_sent)
{
	start_sd_hand();
	peer = wire_up(ddp, sizeof ddp);
	run_hand_node();
	get_sd_native_read_sock()->full = true;
	get_sd_native_read_sock()->ne->nfull++;
	ddps_io_set(sn.env.loop, &get_sd_native_read_sock()->io, EPOLLIN | EPOLLOUT);
	ddps_sn_flush(srv.ep->ne);
	cr_assert_not(ddps_timer_runs(&srv.ep->ne->timer));
	TURN(EPOLLIN, { 1, 0 });
	cr_expect(get_sd_native_read_sock()->full);
	cr_expect_eq(get_sd_native_read_sock()->io.events, EPOLLIN | EPOLLOUT);
	TURN(EPOLLOUT, { -EAGAIN, 0 });
	cr_expect_not(get_sd_native_read_sock()->full);
	cr_expect_eq(get_sd_native_read_sock()->io.events, EPOLLIN);
	cr_expect(ddps_timer_runs(&srv.ep->ne->timer));
	stop_sd_hand(peer);
}
