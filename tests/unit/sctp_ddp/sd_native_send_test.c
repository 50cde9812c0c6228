/* SPDX-License-Identifier: BSD-2-Clause */
/* How packets of the native SCTP are handed to the system, and what becomes of those that it refuses. */
#include "sd_sends_fixture.h"
#include <fcntl.h>

TestSuite(sd_native_send, .timeout = 60);

static struct ddps_sn_sock *get_sd_native_send_sock(void)
{
	return srv.ep->sock;
}

/* @n messages for peer @i, a packet each. */
static void post_some_sd_native_send(unsigned i, unsigned n)
{
	while (n--)
		post_sd_sends(i, LENGTH);
}

/* ---- one packet, several, and runs ---- */

Test(sd_native_send, a_packet_is_handed_over_with_its_addresses)
{
	struct in_addr own = { htonl(INADDR_LOOPBACK) };
	struct sockaddr_in at;
	socklen_t len = sizeof at;

	begin_with(1);
	cr_assert_eq(getsockname(wires[0]->fd, (struct sockaddr *)&at, &len), 0);
	post_sd_sends(0, LENGTH);
	flush_sd_sends();
	cr_expect_eq(calls, 1);
	cr_assert_eq(n_taken, 1);
	cr_expect_eq(taken[0].fd, get_sd_native_send_sock()->io.fd);
	cr_expect_eq(taken[0].from, srv.ep->port);
	cr_expect_eq(taken[0].to, PORT);
	cr_expect_eq(taken[0].udp, ntohs(at.sin_port));
	cr_expect_eq(taken[0].own.s_addr, own.s_addr, "where the peer has found us");
	cr_expect_eq(taken[0].run, 0);
	cr_expect_eq(taken[0].len, PACKET);
	end_sd_sends();
}

Test(sd_native_send, packets_to_several_leave_in_one_call)
{
	begin_with(3);
	for (unsigned n = 2; n <= 3; n++) {
		for (int gso = 0; gso < 2; gso++) {
			get_sd_native_send_sock()->gso = gso;
			note_sends();
			for (unsigned i = 0; i < n; i++)
				post_sd_sends(i, LENGTH);
			flush_sd_sends();
			cr_expect_eq(calls, 1);
			cr_assert_eq(n_taken, n);
			for (unsigned i = 0; i < n; i++) {
				cr_expect_eq(got(i), 1, "%u", i);
				cr_expect_eq(taken[i].run, 0, "one packet is no run");
			}
		}
	}
	end_sd_sends();
}

/* The call may take fewer than there are: the rest is for the next one. */
Test(sd_native_send, a_call_that_takes_a_part)
{
	begin_with(5);
	most_at_once = 2;
	for (unsigned i = 0; i < 5; i++)
		post_sd_sends(i, LENGTH);
	flush_sd_sends();
	cr_expect_eq(calls, 3);
	cr_expect_eq(n_taken, 5);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(got(i), 1, "%u", i);
	end_sd_sends();
}

Test(sd_native_send, the_system_cuts_a_run)
{
	begin_with(1);
	get_sd_native_send_sock()->gso = true;
	for (unsigned n = 2; n <= 3; n++) {
		note_sends();
		post_some_sd_native_send(0, n);
		flush_sd_sends();
		cr_expect_eq(calls, 1);
		cr_expect_eq(got(0), n);
		cr_expect_eq(taken[0].run, PACKET);
	}
	end_sd_sends();
}

/* It knows no runs: each packet by itself, and what is behind them. */
Test(sd_native_send, a_run_leaves_packet_by_packet)
{
	begin_with(3);
	get_sd_native_send_sock()->gso = false;
	post_sd_sends(0, LENGTH);
	post_some_sd_native_send(1, 2);
	post_sd_sends(1, 300); /* the last one may be shorter */
	post_sd_sends(2, LENGTH);
	errno = 0; /* of no call of these */
	flush_sd_sends();
	cr_expect_eq(calls, 1 + 3 + 1);
	cr_expect_eq(n_taken, 5);
	cr_expect_eq(got(0), 1);
	cr_expect_eq(got(1), 3);
	cr_expect_eq(got(2), 1);
	for (unsigned k = 0; k < n_taken; k++)
		cr_expect_eq(taken[k].run, 0);
	cr_expect_not(get_sd_native_send_sock()->errors);
	end_sd_sends();
}

/* Whatever the parts of packets are: padding is one, and there were more parts before. */
Test(sd_native_send, a_packet_of_a_run_has_all_of_its_parts)
{
	static const size_t sizes[] = { LENGTH - 3, LENGTH - 2, LENGTH - 1 };

	begin_with(4);
	get_sd_native_send_sock()->gso = false;
	post_some_sd_native_send(0, 3);
	flush_sd_sends();
	for (unsigned i = 0; i < 3; i++) {
		post_sd_sends(i + 1, sizes[i]);
		post_sd_sends(i + 1, sizes[i]);
		flush_sd_sends();
		cr_expect_eq(got(i + 1), 2);
		cr_expect_eq(taken[n_taken - 1].len, PACKET);
	}
	note_sends();
	post_sd_sends(1, LENGTH);
	post_sd_sends(1, 300);
	flush_sd_sends();
	cr_expect_eq(got(1), 2);
	cr_expect_eq(taken[n_taken - 1].len, 28 + 300);
	end_sd_sends();
}

/* ---- refused ---- */

static const struct refused_row {
	int err;
	unsigned tries;
	bool full, errors;
} refused_rows[] = {
	{ EAGAIN, 2, true, false },
	{ EMSGSIZE, 2, false, false },
	/* any other may be the ICMP error of a packet before: each of two calls is made again */
	{ ECONNREFUSED, 4, false, true },
	{ EHOSTUNREACH, 4, false, true },
	{ EIO, 4, false, true },
};

Test(sd_native_send, a_packet_that_is_refused_is_not_tried_for_ever)
{
	for (unsigned i = 0; i < sizeof refused_rows / sizeof *refused_rows; i++) {
		const struct refused_row *r = &refused_rows[i];

		begin_with(1);
		get_sd_native_send_sock()->gso = true;
		refuse_sd_sends(0, EVER, r->err);
		post_sd_sends(0, LENGTH);
		flush_sd_sends();
		cr_expect_eq(calls, r->tries, "%s: %u", strerror(r->err), calls);
		cr_expect_eq(get_sd_native_send_sock()->full, r->full, "%s", strerror(r->err));
		cr_expect_eq(get_sd_native_send_sock()->errors, r->errors, "%s", strerror(r->err));
		cr_expect(get_sd_native_send_sock()->gso, "it was no run");
		end_sd_sends();
	}
}

/* A packet by itself: its try was in vain because of one before. */
Test(sd_native_send, an_error_of_another_packet_is_looked_for)
{
	begin_with(1);
	get_sd_native_send_sock()->gso = false;
	refuse_sd_sends(1, 1, ECONNREFUSED);
	post_some_sd_native_send(0, 3);
	flush_sd_sends();
	cr_expect_eq(calls, 4);
	cr_expect_eq(got(0), 3);
	cr_expect(get_sd_native_send_sock()->errors);
	end_sd_sends();
}

Test(sd_native_send, an_error_of_another_packet_does_not_part_those_of_a_call)
{
	begin_with(3);
	refuse_sd_sends(0, 1, ECONNREFUSED);
	for (unsigned i = 0; i < 3; i++)
		post_sd_sends(i, LENGTH);
	flush_sd_sends();
	cr_expect_eq(calls, 2);
	cr_expect_eq(n_taken, 3);
	cr_expect(get_sd_native_send_sock()->errors);
	end_sd_sends();
}

/* One of a run is lost: that concerns no other. */
Test(sd_native_send, a_packet_of_a_run_that_cannot_be_sent)
{
	begin_with(1);
	get_sd_native_send_sock()->gso = false;
	refuse_sd_sends(0, 2, EHOSTUNREACH);
	post_some_sd_native_send(0, 3);
	flush_sd_sends();
	cr_expect_eq(calls, 2 + 2);
	cr_expect_eq(got(0), 2);
	cr_expect_not(get_sd_native_send_sock()->full);
	end_sd_sends();
}

/* ---- runs that are refused ---- */

static const struct run_row {
	int err;
	unsigned bad, packets; /* so many calls fail */
	bool gso;	       /* it is believed still that the system cuts runs */
} run_rows[] = {
	{ EIO, 2, 2, false },	      { EIO, 2, 3, false },	    { EINVAL, 2, 2, false },
	{ ENOPROTOOPT, 2, 2, false }, { EOPNOTSUPP, 2, 2, false },  { EAGAIN, 1, 3, true },
	{ EMSGSIZE, 1, 3, true },     { EHOSTUNREACH, 2, 3, true },
};

Test(sd_native_send, a_run_that_is_refused_leaves_packet_by_packet)
{
	for (unsigned i = 0; i < sizeof run_rows / sizeof *run_rows; i++) {
		const struct run_row *r = &run_rows[i];

		begin_with(2);
		get_sd_native_send_sock()->gso = true;
		refuse_sd_sends(0, r->bad, r->err);
		post_some_sd_native_send(0, r->packets);
		post_sd_sends(1, LENGTH);
		flush_sd_sends();
		cr_expect_eq(get_sd_native_send_sock()->gso, r->gso, "%s", strerror(r->err));
		cr_expect_eq(got(0), r->packets, "%s: %u", strerror(r->err), got(0));
		cr_expect_eq(got(1), 1, "%s: what is behind it", strerror(r->err));
		cr_expect_eq(calls, r->bad + r->packets + 1, "%s: %u", strerror(r->err), calls);
		cr_expect_eq(ddps_sctp_pending(env()->e), 0, "%s: nothing is to go again",
			     strerror(r->err));
		end_sd_sends();
	}
}

/* ---- no room ---- */

/* All that had no room leaves when there is some, once each, and no timer is waited for. */
Test(sd_native_send, what_had_no_room_leaves_when_there_is_some)
{
	static const unsigned rows[] = { 1, 2, 3, DDPS_SN_OUTS, DDPS_SN_OUTS + 1, 12 };

	for (unsigned r = 0; r < sizeof rows / sizeof *rows; r++) {
		const unsigned n = rows[r];

		begin_with(n);
		refuse_sd_sends(0, EVER, EAGAIN);
		for (unsigned i = 0; i < n; i++)
			post_sd_sends(i, LENGTH);
		flush_sd_sends();
		cr_expect_eq(calls, 2, "nothing more is tried: %u", calls);
		cr_expect_eq(get_sd_native_send_sock()->io.events, EPOLLIN | EPOLLOUT);
		flush_sd_sends();
		cr_expect_eq(calls, 2);
		make_room(get_sd_native_send_sock());
		cr_expect_eq(n_taken, n);
		for (unsigned i = 0; i < n; i++)
			cr_expect_eq(got(i), 1, "%u of %u", i, n);
		cr_expect_eq(get_sd_native_send_sock()->io.events, EPOLLIN);
		end_sd_sends();
	}
}

/* Room for a part of a run: all of it goes again. */
Test(sd_native_send, a_run_that_has_room_for_a_part)
{
	begin_with(2);
	get_sd_native_send_sock()->gso = false;
	refuse_sd_sends(1, EVER, EAGAIN);
	post_some_sd_native_send(0, 3);
	post_sd_sends(1, LENGTH);
	flush_sd_sends();
	cr_expect_eq(calls, 2);
	cr_expect_eq(n_taken, 1);
	n_taken = 0;
	make_room(get_sd_native_send_sock());
	cr_expect_eq(got(0), 3);
	cr_expect_eq(got(1), 1);
	end_sd_sends();
}

static struct server second;

/* A second socket of the context, with peers of its own behind @first of the other's. */
static void begin_with_second(unsigned first, unsigned others)
{
	begin_with(first);
	do_sd_sends_send();
	cr_assert_eq(try_listen(&second, &sn, B, AF_INET, 0, 0), 0);
	while (n_peers < first + others)
		add_sd_sends_peer(&second);
	cr_assert_neq(second.ep->sock, get_sd_native_send_sock());
	be_quiet();
}

/* ... and those that leave by another socket leave. */
Test(sd_native_send, a_full_socket_is_not_in_the_way_of_another)
{
	struct ddps_sn_sock *full;

	begin_with_second(2, 3);
	full = second.ep->sock;
	refuse_sd_sends(0, EVER, EAGAIN);
	refusal.fd = full->io.fd;
	post_sd_sends(2, LENGTH);
	post_sd_sends(0, LENGTH);
	post_sd_sends(1, LENGTH);
	post_sd_sends(3, LENGTH);
	post_sd_sends(4, LENGTH);
	flush_sd_sends();
	cr_expect_eq(calls, 2 + 1);
	cr_expect_eq(n_taken, 2);
	cr_expect(full->full && !get_sd_native_send_sock()->full);
	make_room(full);
	cr_expect_eq(n_taken, 5);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(got(i), 1, "%u", i);
	end_sd_sends();
}

/* What was to leave then would be had again only to be given back. */
Test(sd_native_send, nothing_is_made_while_any_socket_is_full)
{
	struct ddps_sctp_stats before, after;

	begin_with_second(1, 1);
	refuse_sd_sends(0, EVER, EAGAIN);
	post_sd_sends(1, LENGTH);
	flush_sd_sends();
	cr_assert(second.ep->sock->full);
	ddps_sctp_stats(env()->e, &before);
	post_sd_sends(0, LENGTH);
	flush_sd_sends();
	ddps_sctp_stats(env()->e, &after);
	cr_expect_eq(after.packets_out, before.packets_out);
	cr_expect_not(ddps_timer_runs(&env()->timer), "the socket will tell");
	make_room(second.ep->sock);
	cr_expect_eq(got(0), 1);
	cr_expect_eq(got(1), 1);
	end_sd_sends();
}

static unsigned taken_for(unsigned i)
{
	unsigned n = 0;

	for (unsigned k = 0; k < n_taken; k++)
		n += taken[k].to == PORT + i;
	return n;
}

/* Nobody uses the other socket any more, but its last words are not out: it stays until then. */
Test(sd_native_send, a_socket_stays_for_its_last_words)
{
	begin_with_second(1, 1);
	refuse_sd_sends(0, EVER, EAGAIN);
	refusal.fd = get_sd_native_send_sock()->io.fd;
	post_sd_sends(0, LENGTH);
	flush_sd_sends();
	cr_assert(get_sd_native_send_sock()->full);
	n_taken = 0;
	B->endpoint_free(second.ep);
	B->free(assocs[1]);
	flush_sd_sends();
	cr_expect_eq(n_taken, 0);
	make_room(get_sd_native_send_sock());
	cr_expect_eq(taken_for(0), 1);
	cr_expect_eq(taken_for(1), 1, "an ABORT");
	flush_sd_sends();
	cr_expect_not(env()->unused);
	end_sd_sends();
}

/* Not longer than the context. */
Test(sd_native_send, a_socket_does_not_outlive_its_context)
{
	int fd;

	begin_with_second(1, 1);
	refuse_sd_sends(0, EVER, EAGAIN);
	refusal.fd = get_sd_native_send_sock()->io.fd;
	fd = second.ep->sock->io.fd;
	post_sd_sends(0, LENGTH);
	flush_sd_sends();
	B->endpoint_free(second.ep);
	B->free(assocs[1]);
	flush_sd_sends();
	cr_assert(fcntl(fd, F_GETFD) >= 0);
	end_sd_sends();
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
}

/* By two sockets in turn: each call is of one. */
Test(sd_native_send, a_call_is_of_one_socket)
{
	begin_with_second(2, 2);
	for (unsigned i = 0; i < 2; i++) {
		post_sd_sends(i, LENGTH);
		post_sd_sends(2 + i, LENGTH);
	}
	flush_sd_sends();
	cr_expect_eq(calls, 4);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(got(i), 1, "%u", i);
	for (unsigned k = 0; k < n_taken; k++)
		cr_expect_eq(taken[k].fd,
			     (taken[k].to < PORT + 2 ? get_sd_native_send_sock() : second.ep->sock)
				     ->io.fd);
	end_sd_sends();
}

/* ---- too large for the link ---- */

/* What the link does not take, the engine has back immediately. */
Test(sd_native_send, a_packet_that_is_too_large_is_made_again)
{
	begin_with(2);
	most_at_once = 1;
	refuse_sd_sends(1, 2, EMSGSIZE);
	post_sd_sends(0, LENGTH);
	post_sd_sends(1, LENGTH);
	flush_sd_sends();
	cr_expect_eq(calls, 3);
	cr_expect_eq(got(0), 1);
	cr_expect_eq(got(1), 0);
	cr_expect(ddps_sctp_pending(env()->e));
	flush_sd_sends();
	cr_expect_eq(got(0), 1);
	cr_expect_eq(got(1), 1);
	end_sd_sends();
}

Test(sd_native_send, a_run_of_packets_that_are_too_large_is_made_again)
{
	begin_with(1);
	get_sd_native_send_sock()->gso = false;
	refuse_sd_sends(0, 1, EMSGSIZE);
	post_some_sd_native_send(0, 3);
	flush_sd_sends();
	cr_expect_eq(calls, 1, "the others are no smaller");
	flush_sd_sends();
	cr_expect_eq(got(0), 3);
	end_sd_sends();
}

/* Where no route is known nobody can say what would pass. */
Test(sd_native_send, what_no_route_is_known_for_is_lost)
{
	begin_with(1);
	refuse_sd_sends(0, 2, EMSGSIZE);
	sys_fail("send", 0, 1, ENETUNREACH);
	post_sd_sends(0, LENGTH);
	flush_sd_sends();
	cr_expect_eq(sys_failed(), 1);
	cr_expect_not(ddps_sctp_pending(env()->e));
	cr_expect(ddps_timer_runs(&env()->timer));
	end_sd_sends();
}
