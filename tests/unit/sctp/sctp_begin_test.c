/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole engines on a simulated path: what an association begins with, what a request and its answer
 * cost, and how long they wait behind bulk data.
 */
#include "sctp_net_fixture.h"
#include "support/clock.h"
#include <criterion/criterion.h>

#define S    1000000000ull
#define PORT 5000
#define MBIT (1e6 / 8)

static struct {
	struct sn_net net;
	struct ddps_sctp_assoc *a, *b; /* the last one; at the other end */
	struct ddps_sctp_param param;
	bool up;
	size_t size;	  /* of packets, when it came up */
	uint32_t to_send; /* messages of 1400 octets still to be sent */
	uint64_t received, last, pause;
	unsigned answers, questions;
	uint64_t all_acked;
	struct ddps_sctp_assoc *owes; /* an answer, or the next question */
} run;

static uint64_t get_sctp_begin_size_now(void)
{
	struct ddps_sctp_path_info i;

	cr_assert_eq(ddps_sctp_path_info(run.a, 0, &i), 0);
	return i.mtu;
}

static int send_one_sctp_begin(struct ddps_sctp_assoc *a, size_t len)
{
	static uint8_t buf[1400];
	struct iovec iov = { buf, len };

	return ddps_sctp_send(a, 0, 7, DDPS_SCTP_UNORDERED, &iov, 1, run.net.now);
}

static void send_all_sctp_begin(void *user)
{
	(void)user;
	while (run.to_send && send_one_sctp_begin(run.a, 1400) == 0)
		run.to_send--;
}

static void take_sctp_begin_up(void *user)
{
	(void)user;
	run.up = true;
	run.size = get_sctp_begin_size_now();
}

static void take_sctp_begin_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)user, (void)m;
	if (run.last && run.net.now - run.last > run.pause)
		run.pause = run.net.now - run.last;
	run.last = run.net.now;
	run.received++;
}

static void take_sctp_begin_acked(void *user, uint64_t n)
{
	(void)user, (void)n;
}

static void ignore_begin_upcall(void *user)
{
	(void)user;
}

static void take_sctp_begin_gone(void *user, const struct ddps_error *e)
{
	(void)user;
	cr_assert_fail("the association has ended: %s", e->text);
}

static const struct ddps_sctp_up up = { .up = take_sctp_begin_up,
					.message = take_sctp_begin_message,
					.writable = send_all_sctp_begin,
					.acked = take_sctp_begin_acked,
					.peer_shutdown = ignore_begin_upcall,
					.restarted = ignore_begin_upcall,
					.gone = take_sctp_begin_gone };

static void take_sctp_begin_accept(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	run.b = a;
	ddps_sctp_assoc_set_up(a, &up, NULL);
}

/* Two engines, one of which listens, on a path that takes packets of @mtu and @one_way ns. */
static void prepare_sctp_begin(uint64_t one_way, unsigned mtu, uint32_t grace_us)
{
	struct ddps_sctp_port *l;
	struct ddps_sctp_config c;

	memset(&run, 0, sizeof run);
	sn_init(&run.net, 1);
	sn_config(&run.net, &c);
	c.sack_grace_us = grace_us;
	for (unsigned i = 0; i < 2; i++) {
		run.net.node[i].link[0].delay = one_way;
		run.net.node[i].link[0].mtu = mtu;
		sn_boot(&run.net, i, &c);
	}
	run.param = (struct ddps_sctp_param){ .port = PORT, .mtu = mtu };
	cr_assert_eq(ddps_sctp_listen(run.net.node[1].e, &run.param, take_sctp_begin_accept, NULL,
				      &l),
		     0);
	run.param.port = 0;
}

/* One more association; the size that its packets begin with. */
static size_t begin_sctp_begin(void)
{
	struct sn_net *n = &run.net;

	run.up = false;
	cr_assert_eq(ddps_sctp_connect(n->node[0].e, &run.param, n->node[1].addr, 1, PORT,
				       n->node[1].udp, &up, NULL, n->now, &run.a),
		     0);
	while (!run.up)
		cr_assert(sn_step(n, n->now + 10 * S));
	return run.size;
}

/* ---- the size to begin with ---- */

/* @net: first octet of both addresses; @host: what the user says of the loopback interface. */
static size_t first_size(unsigned net, uint32_t host, unsigned rtts)
{
	prepare_sctp_begin(10000, 65535, 0);
	run.net.node[0].addr[0] = sn_v4(net, 0, 0, 1);
	run.net.node[1].addr[0] = sn_v4(net, 0, 0, 2);
	run.param.host_mtu = host;
	begin_sctp_begin();
	sn_run(&run.net, rtts * 20000ull);
	run.size = get_sctp_begin_size_now();
	sn_fini(&run.net);
	return run.size;
}

/* The MTU of the loopback interface is likely to be that of the whole way: it is asked first.
 * The base size is used until it is answered, as it is elsewhere. */
Test(sctp_begin, large_packets_within_the_host, .timeout = 60)
{
	cr_expect_eq(first_size(127, 65535, 0), 1200);
	cr_expect_eq(first_size(127, 65535, 1), 65532);
	cr_expect_eq(first_size(127, 9000, 1), 9000);
	cr_expect_eq(first_size(127, 0, 1), 1200);
	cr_expect_eq(first_size(10, 65535, 1), 1200);
}

/* What one association found is where the next one to that address begins, for 10 minutes. */
Test(sctp_begin, path_mtu_is_remembered, .timeout = 60)
{
	prepare_sctp_begin(12500000, 1500, 0);
	cr_expect_eq(begin_sctp_begin(), 1200);
	sn_run(&run.net, 2 * S);
	cr_expect_eq(get_sctp_begin_size_now(), 1500);
	cr_expect_eq(begin_sctp_begin(), 1500);
	sn_run(&run.net, 601 * S);
	cr_expect_eq(begin_sctp_begin(), 1200, "after 10 minutes");
	sn_fini(&run.net);
}

/* The path has changed since: what is remembered is a black hole, is found out in time, and is not
 * remembered any more. */
Test(sctp_begin, wrong_memory_is_repaired, .timeout = 60)
{
	prepare_sctp_begin(12500000, 1500, 0);
	for (unsigned i = 0; i < 2; i++) {
		run.net.node[i].link[0].rate = 50 * MBIT;
		run.net.node[i].link[0].queue = 156250;
	}
	begin_sctp_begin();
	sn_run(&run.net, 2 * S);
	for (unsigned i = 0; i < 2; i++)
		run.net.node[i].link[0].mtu = 1280;
	cr_expect_eq(begin_sctp_begin(), 1500);
	run.last = run.net.now;
	run.to_send = 3000;
	send_all_sctp_begin(NULL);
	sn_run(&run.net, 5 * S);
	cr_expect_eq(run.received, 3000);
	cr_expect_lt(run.pause, 2 * S, "%u ms", (unsigned)(run.pause / MS));
	cr_expect_eq(get_sctp_begin_size_now(), 1280);
	cr_expect_eq(begin_sctp_begin(), 1280);
	sn_fini(&run.net);
}

/* ---- what is left of the last one ---- */

static void quiet_gone(void *user, const struct ddps_error *e)
{
	(void)user, (void)e;
}

static const struct ddps_sctp_up quiet_up = { .up = ignore_begin_upcall,
					      .message = take_sctp_begin_message,
					      .writable = ignore_begin_upcall,
					      .acked = take_sctp_begin_acked,
					      .peer_shutdown = ignore_begin_upcall,
					      .restarted = ignore_begin_upcall,
					      .gone = quiet_gone };

/* What the most messages and associations took once is not kept for ever. */
Test(sctp_begin, without_associations_no_memory_is_kept, .timeout = 60)
{
	prepare_sctp_begin(10000, 1500, 0);
	for (int i = 0; i < 2; i++) {
		begin_sctp_begin();
		ddps_sctp_assoc_set_up(run.b, &quiet_up, NULL);
		run.received = 0;
		run.to_send = 1000;
		send_all_sctp_begin(NULL);
		sn_run(&run.net, S);
		cr_expect_eq(run.received, 1000);
		cr_expect_gt(run.net.node[0].e->pool.kept, 0);
		ddps_sctp_assoc_free(run.a, run.net.now);
		sn_run(&run.net, S);
		ddps_sctp_assoc_free(run.b, run.net.now);
		sn_run(&run.net, S);
		for (unsigned k = 0; k < 2; k++) {
			cr_expect_eq(run.net.node[k].e->st.assocs, 0);
			cr_expect_eq(run.net.node[k].e->pool.kept, 0);
			cr_expect_eq(run.net.node[k].e->heap.cap, 0);
		}
	}
	sn_fini(&run.net);
}

/* ---- request and answer ---- */

/* The side that connected counts and asks again; the other one answers. */
static void ping_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)m;
	if (user != &run.a)
		run.owes = run.b;
	else if (++run.answers < run.questions)
		run.owes = run.a;
}

static void ping_acked(void *user, uint64_t n)
{
	if (user == &run.b && n == run.questions)
		run.all_acked = run.net.now;
}

static const struct ddps_sctp_up ping_up = { .up = ignore_begin_upcall,
					     .message = ping_message,
					     .writable = ignore_begin_upcall,
					     .acked = ping_acked,
					     .peer_shutdown = ignore_begin_upcall,
					     .restarted = ignore_begin_upcall,
					     .gone = take_sctp_begin_gone };

/* As a user does who takes what came when the engine has sent what it had. */
static void ping_run(uint64_t until)
{
	cr_assert_eq(send_one_sctp_begin(run.a, 64), 0);
	while (sn_step(&run.net, until)) {
		if (run.owes)
			cr_assert_eq(send_one_sctp_begin(run.owes, 64), 0);
		run.owes = NULL;
	}
}

static uint64_t packets_of_both(void)
{
	return run.net.node[0].sent + run.net.node[1].sent;
}

/* [9260-6.1-16] The SACK that each request asks for leaves with the answer; the last one, which has
 * nothing to leave with, as soon as the grace is over. */
Test(sctp_begin, answers_carry_the_acknowledgements, .timeout = 60, .description = "9260-6.1-16")
{
	uint64_t before, last;

	prepare_sctp_begin(10000, 1500, 100);
	begin_sctp_begin();
	sn_run(&run.net, 3 * S); /* with its path MTU found */
	run.questions = 1000;
	ddps_sctp_assoc_set_up(run.a, &ping_up, &run.a);
	ddps_sctp_assoc_set_up(run.b, &ping_up, &run.b);
	before = packets_of_both();
	last = run.net.now + 1000 * 20000;
	ping_run(run.net.now + S);
	cr_expect_eq(run.answers, 1000);
	/* the first DATA of a direction is acknowledged immediately, the last one alone */
	cr_expect_leq(packets_of_both() - before, 2000 + 3, "%lu packets",
		      (unsigned long)(packets_of_both() - before));
	cr_expect_leq(run.all_acked, last + 150000, "%lu ns late",
		      (unsigned long)(run.all_acked - last));
	cr_expect_geq(run.all_acked, last + 100000);
	sn_fini(&run.net);
}

static void ask_for_ack(void *user, const struct ddps_sctp_msg *m)
{
	(void)m;
	cr_assert_eq(user, &run.b);
	ddps_sctp_sack_now(run.b);
}

/* Of a message that says so, and not of the one before it. */
Test(sctp_begin, a_user_that_will_not_answer_has_the_acknowledgement_sent, .timeout = 60)
{
	struct ddps_sctp_up last_up = ping_up;
	uint64_t sent;

	prepare_sctp_begin(10000, 1500, 100);
	begin_sctp_begin();
	sn_run(&run.net, 3 * S);
	last_up.message = ask_for_ack;
	for (run.questions = 1; run.questions <= 3; run.questions++) {
		run.all_acked = 0;
		ddps_sctp_assoc_set_up(run.a, &ping_up, &run.b); /* whose acked() counts */
		ddps_sctp_assoc_set_up(run.b, run.questions < 3 ? &quiet_up : &last_up, &run.b);
		sent = run.net.now;
		cr_assert_eq(send_one_sctp_begin(run.a, 64), 0);
		sn_run(&run.net, S);
		/* the first DATA is acknowledged immediately, the second behind the grace */
		cr_expect_eq(run.all_acked - sent, run.questions == 2 ? 120000 : 20000, "%u",
			     run.questions);
	}
	sn_fini(&run.net);
}

/* ---- one session next to others ---- */

static struct {
	bool bulk;	   /* stream 0 sends all that it may */
	uint64_t every;	   /* between two pings on stream 1 */
	uint64_t asked_at; /* 0: none is under way */
	bool due;	   /* a ping that could not be sent yet */
	uint64_t took[2000];
	unsigned n;
} beside;

static void pump(void *user)
{
	static uint8_t buf[1400];
	struct iovec ping = { buf, 64 }, bulk = { buf, 1400 };

	(void)user;
	/* Sessions have their turns, one message each. */
	if (beside.due &&
	    ddps_sctp_send(run.a, 1, 7, DDPS_SCTP_UNORDERED, &ping, 1, run.net.now) == 0)
		beside.due = false;
	while (beside.bulk && !beside.due &&
	       ddps_sctp_send(run.a, 0, 7, DDPS_SCTP_UNORDERED, &bulk, 1, run.net.now) == 0)
		;
}

static void beside_message(void *user, const struct ddps_sctp_msg *m)
{
	run.received += m->len;
	if (user == &run.b && m->stream == 1) {
		cr_assert_eq(send_one_sctp_begin(run.b, 64), 0);
	} else if (user == &run.a && beside.asked_at) {
		if (beside.n < 2000)
			beside.took[beside.n++] = run.net.now - beside.asked_at;
		beside.asked_at = 0;
	}
}

static const struct ddps_sctp_up beside_up = { .up = ignore_begin_upcall,
					       .message = beside_message,
					       .writable = pump,
					       .acked = take_sctp_begin_acked,
					       .peer_shutdown = ignore_begin_upcall,
					       .restarted = ignore_begin_upcall,
					       .gone = take_sctp_begin_gone };

static void pings_beside(uint64_t ns, uint64_t every)
{
	uint64_t until = run.net.now + ns, next = run.net.now;

	memset(beside.took, 0, sizeof beside.took);
	beside.n = 0;
	while (run.net.now < until) {
		while (sn_step(&run.net, next))
			;
		next += every;
		if (!beside.asked_at) {
			beside.asked_at = run.net.now;
			beside.due = true;
		}
		pump(NULL);
	}
	qsort(beside.took, beside.n, sizeof *beside.took, compare_u64);
}

static uint64_t srtt_now(void)
{
	struct ddps_sctp_path_info i;

	cr_assert_eq(ddps_sctp_path_info(run.a, 0, &i), 0);
	return i.srtt_ns;
}

/* A message of another session is behind what leaves in half a millisecond, no more: its answer
 * comes within one round trip and 1 ms, bulk data or not. */
Test(sctp_begin, bulk_data_leaves_room_for_others, .timeout = 60)
{
	static const struct {
		uint64_t one_way;
		double rate;
		size_t queue;
	} path[] = { { 12500000, 100 * MBIT, 312500 }, { 20000, 500 * MBIT, 65536 } };

	for (unsigned i = 0; i < 2; i++) {
		prepare_sctp_begin(path[i].one_way, 1500, 100);
		for (unsigned k = 0; k < 2; k++) {
			run.net.node[k].link[0].rate = path[i].rate;
			run.net.node[k].link[0].queue = path[i].queue;
		}
		begin_sctp_begin();
		memset(&beside, 0, sizeof beside);
		ddps_sctp_assoc_set_up(run.a, &beside_up, &run.a);
		ddps_sctp_assoc_set_up(run.b, &beside_up, &run.b);
		beside.bulk = true;
		pings_beside(2 * S, 10 * MS);
		run.received = 0;
		pings_beside(2 * S, 10 * MS);
		cr_expect_gt(beside.n, 20);
		cr_expect_lt(beside.took[beside.n * 9 / 10], srtt_now() + MS, "%u us, RTT %u us",
			     (unsigned)(beside.took[beside.n * 9 / 10] / 1000),
			     (unsigned)(srtt_now() / 1000));
		cr_expect_gt((double)run.received / 2, 0.9 * path[i].rate * 1400 / 1500);
		sn_fini(&run.net);
	}
}
