/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole engines on simulated paths: goodput, path MTU, and the pause when one of two paths dies.
 * SCTP_SIM_PRINT=1 prints one line a run.
 */
#include "sctp_net_fixture.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define S    1000000000ull
#define PORT 5000
#define MBIT (1e6 / 8)

struct run {
	struct sn_net net;
	struct ddps_sctp_assoc *a, *b;
	bool up, gone;
	size_t len; /* of a message */
	uint32_t sent, to_send;
	uint64_t octets, first, last, pause, count_from;
	uint8_t seen[1 << 20]; /* by number */
	unsigned twice;
};

static struct run run;

static void send_all_sctp_speed(void)
{
	static uint8_t buf[65536];
	struct iovec iov = { buf, run.len };

	while (run.up && !run.gone && run.sent < run.to_send) {
		memcpy(buf, &run.sent, sizeof run.sent);
		if (ddps_sctp_send(run.a, 0, 7, DDPS_SCTP_UNORDERED, &iov, 1, run.net.now))
			return;
		run.sent++;
	}
}

static void take_sctp_speed_up(void *user)
{
	(void)user;
	run.up = true;
	send_all_sctp_speed();
}

static void take_sctp_speed_writable(void *user)
{
	(void)user;
	send_all_sctp_speed();
}

static void take_sctp_speed_message(void *user, const struct ddps_sctp_msg *m)
{
	uint64_t now = run.net.now;
	uint32_t n;

	(void)user;
	memcpy(&n, m->data, sizeof n);
	run.twice += run.seen[n % sizeof run.seen]++;
	run.octets += m->len;
	if (!run.first)
		run.first = now;
	else if (now - run.last > run.pause)
		run.pause = now - run.last;
	run.last = now;
}

static void take_sctp_speed_acked(void *user, uint64_t n)
{
	(void)user, (void)n;
}

static void take_sctp_speed_gone(void *user, const struct ddps_error *e)
{
	(void)user, (void)e;
	run.gone = true;
}

static void ignore_speed_upcall(void *user)
{
	(void)user;
}

static const struct ddps_sctp_up up = { .up = take_sctp_speed_up,
					.message = take_sctp_speed_message,
					.writable = take_sctp_speed_writable,
					.acked = take_sctp_speed_acked,
					.peer_shutdown = ignore_speed_upcall,
					.restarted = ignore_speed_upcall,
					.gone = take_sctp_speed_gone };

static void take_sctp_speed_accept(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	run.b = a;
	ddps_sctp_assoc_set_up(a, &up, NULL);
}

/* Both directions of link @k. */
static void both(unsigned k, void (*set)(struct sn_link *l, uint64_t x), uint64_t x)
{
	set(&run.net.node[0].link[k], x);
	set(&run.net.node[1].link[k], x);
}

static void delay_sctp_speed(struct sn_link *l, uint64_t x)
{
	l->delay = x;
}

static void jitter(struct sn_link *l, uint64_t x)
{
	l->jitter = x;
}

static void mtu(struct sn_link *l, uint64_t x)
{
	l->mtu = (unsigned)x;
}

static void dead(struct sn_link *l, uint64_t x)
{
	l->dead = x;
}

static void prepare_sctp_speed(uint64_t seed, uint64_t one_way)
{
	memset(&run, 0, sizeof run);
	sn_init(&run.net, seed);
	both(0, delay_sctp_speed, one_way);
	both(1, delay_sctp_speed, one_way);
	run.len = 1400;
	run.to_send = UINT32_MAX;
}

/* @npaths addresses on each side. */
static void connect_sctp_speed(unsigned npaths)
{
	struct ddps_sctp_param p = { .port = PORT, .mtu = 1500 };
	struct ddps_sctp_config c;
	struct ddps_sctp_port *l;
	struct sn_net *n = &run.net;

	sn_config(n, &c);
	sn_boot(n, 0, &c);
	sn_boot(n, 1, &c);
	for (unsigned i = 0; i < npaths && npaths > 1; i++)
		p.local[p.nlocal++] = n->node[1].addr[i];
	cr_assert_eq(ddps_sctp_listen(n->node[1].e, &p, take_sctp_speed_accept, NULL, &l), 0);
	for (unsigned i = 0; i < npaths && npaths > 1; i++)
		p.local[i] = n->node[0].addr[i];
	cr_assert_eq(ddps_sctp_connect(n->node[0].e, &p, n->node[1].addr, npaths, PORT,
				       n->node[1].udp, &up, NULL, n->now, &run.a),
		     0);
}

static uint64_t get_sctp_speed_size_now(unsigned path)
{
	struct ddps_sctp_path_info i;

	cr_assert_eq(ddps_sctp_path_info(run.a, path, &i), 0);
	return i.mtu;
}

/* Octets of user data a second since the first message. */
static double finish_sctp_speed(const char *name)
{
	double rate = (double)run.octets * 1e9 / (double)(run.last - run.first + 1);
	struct ddps_sctp_info i;

	ddps_sctp_info(run.a, &i);
	if (getenv("SCTP_SIM_PRINT"))
		fprintf(stderr,
			"%-28s %8.2f Mbit/s pause %7.1f ms packets %lu resent %lu T3 %lu "
			"MTU %lu\n",
			name, rate * 8e-6, (double)run.pause / 1e6, (unsigned long)i.sent_packets,
			(unsigned long)i.retransmitted, (unsigned long)i.timeouts,
			(unsigned long)get_sctp_speed_size_now(0));
	cr_expect_not(run.gone, "%s: the association has ended", name);
	cr_expect_eq(run.twice, 0, "%s: delivered twice", name);
	sn_fini(&run.net);
	return rate;
}

static void link_of(double rate, size_t queue)
{
	for (unsigned i = 0; i < 2; i++) {
		run.net.node[0].link[i].rate = rate;
		run.net.node[0].link[i].queue = queue;
	}
}

Test(sctp_speed, path_of_25_ms_with_and_without_reordering, .timeout = 60)
{
	double even = 0, uneven = 0;

	for (int jitter = 0; jitter < 2; jitter++) {
		prepare_sctp_speed(1, 12500000);
		link_of(100 * MBIT, 312500);
		run.net.node[0].link[0].jitter = jitter ? 2 * MS : 0;
		connect_sctp_speed(1);
		sn_run(&run.net, 5 * S);
		*(jitter ? &uneven : &even) =
			finish_sctp_speed(jitter ? "25 ms, jitter 2 ms" : "25 ms");
	}
	cr_expect_geq(even, 0.9 * 100 * MBIT * 1400 / 1500, "%f Mbit/s", even * 8e-6);
	cr_expect_geq(uneven, 0.9 * even, "%f Mbit/s", uneven * 8e-6);
}

/*
 * Nothing is lost, and 1 packet of 50 comes 20 ms late, which is more than reordering is waited for
 * at first: what is resent for that is found out to have been in vain, and the window returns.  Also
 * of the packet that was thought lost alone, before any other of its size has arrived.
 */
Test(sctp_speed, packets_that_are_late_do_not_keep_the_window_small, .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct ddps_sctp_path_info i;

		prepare_sctp_speed(seed, 12500000);
		link_of(100 * MBIT, 0);
		both(0, jitter, 2 * MS);
		run.net.node[0].link[0].late = 0.02;
		run.net.node[0].link[0].extra = 20 * MS;
		connect_sctp_speed(1);
		sn_run(&run.net, S);
		run.octets = 0;
		run.first = 0;
		sn_run(&run.net, 2 * S);
		cr_expect_eq(run.net.node[0].lost, 0);
		cr_assert_eq(ddps_sctp_path_info(run.a, 0, &i), 0);
		cr_expect_geq(i.cwnd, 312500, "seed %u: %u octets", (unsigned)seed,
			      (unsigned)i.cwnd);
		cr_expect_lt(i.retransmitted * 100, run.net.node[0].sent);
		cr_expect_geq(finish_sctp_speed("25 ms, jitter, some late"),
			      0.9 * 100 * MBIT * 1400 / 1500, "seed %u", (unsigned)seed);
	}
}

/* The same where "late" is many round trips: each of them is waited for, and nothing is resent. */
Test(sctp_speed, packets_that_are_many_round_trips_late, .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		prepare_sctp_speed(seed, 2 * MS);
		link_of(400 * MBIT, 0);
		run.net.node[0].link[0].late = 0.05;
		run.net.node[0].link[0].extra = 20 * MS;
		connect_sctp_speed(1);
		sn_run(&run.net, 3 * S);
		cr_expect_geq(finish_sctp_speed("4 ms, 5 % are 20 ms late"), 250 * MBIT, "seed %u",
			      (unsigned)seed);
	}
}

/* What was late on a long way is not waited for on a short one, where T3 would be next each time. */
Test(sctp_speed, lateness_does_not_outlive_its_way, .timeout = 60)
{
	uint64_t t3s;

	prepare_sctp_speed(1, 300 * MS);
	link_of(20 * MBIT, 0);
	run.net.node[0].link[0].late = 0.02;
	run.net.node[0].link[0].extra = 400 * MS;
	connect_sctp_speed(1);
	sn_run(&run.net, 20 * S);
	both(0, delay_sctp_speed, 2 * MS);
	run.net.node[0].link[0].late = 0;
	link_of(100 * MBIT, 0);
	run.net.node[0].link[0].loss = 0.002;
	sn_run(&run.net, 5 * S); /* of which the RTO is still that of the long way */
	run.octets = 0;
	run.first = run.pause = 0;
	t3s = run.a->path[0]->tx.t3s;
	sn_run(&run.net, 10 * S);
	cr_expect_leq(run.a->path[0]->tx.t3s, t3s + 1);
	cr_expect_geq(finish_sctp_speed("once 600 ms, now 4"), 60 * MBIT);
}

Test(sctp_speed, two_percent_lost_at_5_ms, .timeout = 60)
{
	double rate;

	prepare_sctp_speed(1, 2500000);
	link_of(100 * MBIT, 62500);
	run.net.node[0].link[0].loss = 0.02;
	connect_sctp_speed(1);
	sn_run(&run.net, 5 * S);
	rate = finish_sctp_speed("5 ms, 2 % loss");
	cr_expect(rate >= 0.8 * 20 * MBIT && rate <= 1.6 * 20 * MBIT, "%f Mbit/s", rate * 8e-6);
}

Test(sctp_speed, black_hole_is_passed_within_2_s, .timeout = 60)
{
	prepare_sctp_speed(1, 12500000);
	link_of(50 * MBIT, 156250);
	connect_sctp_speed(1);
	sn_run(&run.net, 2 * S);
	cr_expect_eq(get_sctp_speed_size_now(0), 1500);
	both(0, mtu, 1280);
	sn_run(&run.net, 8 * S);
	cr_expect_lt(run.pause, 2 * S, "%u ms", (unsigned)(run.pause / MS));
	cr_expect_eq(get_sctp_speed_size_now(0), 1280);
	finish_sctp_speed("1500 to 1280");
}

/* Nobody sends three packets that are too large: what is resent in silence is small. */
Test(sctp_speed, little_passes_a_black_hole, .timeout = 60)
{
	uint64_t start;

	prepare_sctp_speed(1, 12500000);
	run.to_send = 0;
	connect_sctp_speed(1);
	sn_run(&run.net, 2 * S);
	cr_expect_eq(get_sctp_speed_size_now(0), 1500);
	both(0, mtu, 1280);
	run.len = 650;
	run.to_send = 2;
	start = run.net.now;
	both(0, dead, 1); /* also for the probe of one chunk */
	send_all_sctp_speed();
	sn_run(&run.net, 150 * MS);
	both(0, dead, 0);
	sn_run(&run.net, 8 * S);
	cr_expect_eq(run.octets, 2 * 650);
	cr_expect_lt(run.last - start, S, "%u ms", (unsigned)((run.last - start) / MS));
}

/* Paths that take next to nothing: IP fragments, and all arrives. */
Test(sctp_speed, narrow_paths, .timeout = 60)
{
	static const unsigned sizes[] = { 1004, 576, 552, 296 };

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		prepare_sctp_speed(1, 5 * MS);
		both(0, mtu, sizes[i]);
		connect_sctp_speed(1);
		run.to_send = 300;
		sn_run(&run.net, 20 * S);
		cr_expect_eq(run.octets, 300 * run.len, "MTU %u: %u messages", sizes[i],
			     (unsigned)(run.octets / run.len));
		finish_sctp_speed("narrow");
		prepare_sctp_speed(1, 5 * MS);
		link_of(10 * MBIT, 62500);
		connect_sctp_speed(1);
		sn_run(&run.net, S);
		both(0, mtu, sizes[i]);
		run.to_send = run.sent + 300;
		sn_run(&run.net, 30 * S);
		cr_expect_eq(run.octets, (uint64_t)run.sent * run.len, "MTU %u: %u of %u", sizes[i],
			     (unsigned)(run.octets / run.len), run.sent);
		finish_sctp_speed("getting narrow");
	}
}

/* The primary path dies under load, comes back, and is used again; the pause is short. */
Test(sctp_speed, other_path_takes_over, .timeout = 60)
{
	struct ddps_sctp_path_info i;
	uint64_t pause;

	prepare_sctp_speed(1, 10 * MS);
	link_of(50 * MBIT, 125000);
	connect_sctp_speed(2);
	sn_run(&run.net, 3 * S);
	cr_assert(run.up);
	run.pause = 0;
	both(0, dead, 1);
	sn_run(&run.net, 5 * S);
	pause = run.pause;
	cr_expect_lt(pause, S, "%u ms", (unsigned)(pause / MS));
	cr_expect_gt(run.octets, 10000000);
	cr_assert_eq(ddps_sctp_path_info(run.a, 1, &i), 0);
	cr_expect(i.in_use);
	both(0, dead, 0);
	run.pause = 0;
	sn_run(&run.net, 60 * S);
	cr_assert_eq(ddps_sctp_path_info(run.a, 0, &i), 0);
	cr_expect(i.in_use, "the primary path is used again");
	cr_expect_lt(run.pause, S / 2, "%u ms", (unsigned)(run.pause / MS));
	run.pause = pause;
	run.to_send = run.sent;
	sn_run(&run.net, 5 * S);
	cr_expect_eq(run.octets, (uint64_t)run.sent * run.len, "nothing lost");
	finish_sctp_speed("failover");
}

/* A primary path that comes and goes every 2 s does not cost a pause each time. */
Test(sctp_speed, flapping_path_is_left_alone, .timeout = 60)
{
	struct ddps_sctp_info info;
	uint64_t dark = 0;

	prepare_sctp_speed(1, 10 * MS);
	link_of(20 * MBIT, 50000);
	connect_sctp_speed(2);
	sn_run(&run.net, 3 * S);
	for (int flap = 0; flap < 10; flap++) {
		both(0, dead, 1);
		run.pause = 0;
		sn_run(&run.net, 2 * S);
		dark = run.pause > dark ? run.pause : dark;
		both(0, dead, 0);
		sn_run(&run.net, 2 * S);
		cr_expect_lt(dark, S, "flap %d: %u ms", flap, (unsigned)(dark / MS));
	}
	ddps_sctp_info(run.a, &info);
	cr_expect_leq(info.timeouts, 5, "after the third time it is not tried so soon");
	run.pause = dark;
	run.to_send = run.sent;
	sn_run(&run.net, 10 * S);
	cr_expect_eq(run.octets, (uint64_t)run.sent * run.len, "nothing lost");
	finish_sctp_speed("flapping");
}

/* Both paths die for 3 s. */
Test(sctp_speed, all_paths_dead_for_a_while, .timeout = 60)
{
	prepare_sctp_speed(1, 10 * MS);
	link_of(20 * MBIT, 50000);
	connect_sctp_speed(2);
	sn_run(&run.net, 3 * S);
	both(0, dead, 1);
	both(1, dead, 1);
	sn_run(&run.net, 3 * S);
	both(0, dead, 0);
	both(1, dead, 0);
	sn_run(&run.net, 5 * S);
	cr_expect_lt(run.pause, 5 * S + S / 2, "%u ms", (unsigned)(run.pause / MS));
	run.to_send = run.sent;
	sn_run(&run.net, 10 * S);
	cr_expect_eq(run.octets, (uint64_t)run.sent * run.len, "nothing lost");
	finish_sctp_speed("all dead for 3 s");
}
