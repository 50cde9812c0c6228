/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that become narrower and tell nobody, and drop fragments that are as large as well. */
#include <criterion/criterion.h>
#include "sctp_net_fixture.h"

#define PORT 5000
#define S    1000000000ull

static struct {
	struct sn_net net;
	struct ddps_sctp_param param;
	struct ddps_sctp_assoc *a, *b;
	unsigned to_send, received, gone;
	uint64_t last, pause;
	struct ddps_error why;
} run;

/* As the layer above does: no message is larger than a chunk. */
static void send_all_sctp_shrinks(void *user)
{
	static uint8_t buf[65536];
	struct iovec iov = { buf, 0 };

	(void)user;
	while (run.a && run.to_send) {
		iov.iov_len = ddps_sctp_max_chunk(run.a);
		if (ddps_sctp_send(run.a, 0, 7, DDPS_SCTP_UNORDERED, &iov, 1, run.net.now) < 0)
			return;
		run.to_send--;
	}
}

static void take_sctp_shrinks_message(void *user, const struct ddps_sctp_msg *m)
{
	(void)user, (void)m;
	if (run.last && run.net.now - run.last > run.pause)
		run.pause = run.net.now - run.last;
	run.last = run.net.now;
	run.received++;
}

static void take_sctp_shrinks_acked(void *user, uint64_t n)
{
	(void)n;
	send_all_sctp_shrinks(user);
}

static void ignore_shrinks_upcall(void *user)
{
	(void)user;
}

static void take_sctp_shrinks_gone(void *user, const struct ddps_error *e)
{
	struct ddps_sctp_assoc **a = user;

	run.gone++;
	if (a == &run.a)
		run.why = *e;
	ddps_sctp_assoc_free(*a, run.net.now);
	*a = NULL;
}

static const struct ddps_sctp_up up = { .up = ignore_shrinks_upcall,
					.message = take_sctp_shrinks_message,
					.writable = send_all_sctp_shrinks,
					.acked = take_sctp_shrinks_acked,
					.peer_shutdown = ignore_shrinks_upcall,
					.restarted = ignore_shrinks_upcall,
					.gone = take_sctp_shrinks_gone };

static void take_sctp_shrinks_accept(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	run.b = a;
	ddps_sctp_assoc_set_up(a, &up, &run.b);
}

/* @net: first octet of both addresses; the hosts' own interfaces take @host. */
static void open_on_sctp_shrinks(uint8_t net, uint16_t host, unsigned path)
{
	struct ddps_sctp_port *l;
	struct ddps_sctp_config c;

	memset(&run, 0, sizeof run);
	sn_init(&run.net, 1);
	sn_config(&run.net, &c);
	c.hb_interval_ms = 10000;
	c.rto_max_ms = 10000;
	for (unsigned i = 0; i < 2; i++) {
		run.net.node[i].addr[0] = sn_v4(net, 0, 0, (uint8_t)(1 + i));
		run.net.node[i].link[0].delay = 1000000;
		run.net.node[i].link[0].mtu = path;
		run.net.node[i].link[0].blunt = true;
		sn_boot(&run.net, i, &c);
	}
	run.param = (struct ddps_sctp_param){ .port = PORT, .mtu = host, .host_mtu = host };
	cr_assert_eq(ddps_sctp_listen(run.net.node[1].e, &run.param, take_sctp_shrinks_accept, NULL,
				      &l),
		     0);
	run.param.port = 0;
	cr_assert_eq(ddps_sctp_connect(run.net.node[0].e, &run.param, run.net.node[1].addr, 1, PORT,
				       run.net.node[1].udp, &up, &run.a, run.net.now, &run.a),
		     0);
}

static uint32_t get_sctp_shrinks_size_now(void)
{
	struct ddps_sctp_path_info i;

	cr_assert_eq(ddps_sctp_path_info(run.a, 0, &i), 0);
	return i.mtu;
}

static void shrink(unsigned mtu)
{
	for (unsigned i = 0; i < 2; i++)
		run.net.node[i].link[0].mtu = mtu;
}

/* @n messages more, of which the path becomes narrower after some. */
static void send_some_sctp_shrinks(unsigned n, unsigned mtu)
{
	unsigned all = run.received + n;

	run.to_send = n;
	send_all_sctp_shrinks(NULL);
	while (run.received < all - n / 2)
		cr_assert(sn_step(&run.net, run.net.now + 5 * S));
	shrink(mtu);
	run.pause = 0;
	for (uint64_t end = run.net.now + 60 * S;
	     run.received < all && run.net.now < end && !run.gone;)
		sn_step(&run.net, end);
	cr_assert_eq(run.gone, 0, "%s", run.why.text);
	cr_expect_eq(run.received, all);
	cr_expect_lt(run.pause, 10 * S, "%llu ms", (unsigned long long)run.pause / 1000000);
}

/* A switch of 1500 or less between two hosts of 9000. */
Test(sctp_shrinks, contact_13_jumbo_frames_end_in_mid_transfer, .description = "9260-6.9-4")
{
	static const unsigned is[] = { 1500, 1400, 1280, 1200 };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		open_on_sctp_shrinks(10, 9000, 9000);
		sn_run(&run.net, 2 * S);
		cr_assert_eq(get_sctp_shrinks_size_now(), 9000,
			     "packets are as large as they were");
		send_some_sctp_shrinks(4000, is[i]);
		cr_expect_leq(get_sctp_shrinks_size_now(), is[i]);
		sn_fini(&run.net);
	}
}

/* Its packets are full nevertheless. */
Test(sctp_shrinks, contact_13_jumbo_packets_hold_several_chunks)
{
	open_on_sctp_shrinks(10, 9000, 9000);
	sn_run(&run.net, 2 * S);
	run.net.node[0].max_packet = 0;
	run.to_send = 100;
	send_all_sctp_shrinks(NULL);
	sn_run(&run.net, S);
	cr_expect_eq(run.received, 100);
	cr_expect_gt(run.net.node[0].max_packet, 8000);
	sn_fini(&run.net);
}

/* A relay within the host, which the interface's MTU says nothing of. */
Test(sctp_shrinks, contact_13_a_relay_of_this_host)
{
	static const unsigned is[] = { 9000, 2000, 1280 };

	for (unsigned i = 0; i < sizeof is / sizeof *is; i++) {
		open_on_sctp_shrinks(127, 65535, is[i]);
		while (!run.b)
			cr_assert(sn_step(&run.net, run.net.now + S));
		send_some_sctp_shrinks(100, is[i]);
		sn_run(&run.net, 60 * S);
		cr_expect(get_sctp_shrinks_size_now() <= is[i] &&
				  get_sctp_shrinks_size_now() + 60 > is[i],
			  "%u: %u", is[i], get_sctp_shrinks_size_now());
		send_some_sctp_shrinks(100, is[i]);
		sn_fini(&run.net);
	}
}

/* What cannot be helped has a name, and is not waited for until the user loses patience. */
Test(sctp_shrinks, contact_13_what_does_not_pass_any_more_is_reported)
{
	uint64_t at;

	open_on_sctp_shrinks(10, 1500, 1500);
	sn_run(&run.net, 2 * S);
	cr_assert_eq(get_sctp_shrinks_size_now(), 1500);
	run.to_send = 4000;
	send_all_sctp_shrinks(NULL);
	while (run.received < 1000)
		cr_assert(sn_step(&run.net, run.net.now + 5 * S));
	shrink(1300);
	at = run.net.now;
	while (!run.gone && run.net.now < at + 60 * S)
		sn_step(&run.net, at + 60 * S);
	cr_assert_geq(run.gone, 1);
	cr_expect_lt(run.net.now - at, 45 * S);
	cr_expect_eq(run.why.code, DDPS_E_RESET);
	cr_expect(strstr(run.why.text, "no longer carries packets of 1500 octets"), "%s",
		  run.why.text);
	sn_fini(&run.net);
}

/* A path that is dead says nothing of sizes. */
Test(sctp_shrinks, contact_13_silence_is_no_size)
{
	open_on_sctp_shrinks(10, 1500, 1500);
	sn_run(&run.net, 2 * S);
	run.to_send = 4000;
	send_all_sctp_shrinks(NULL);
	while (run.received < 1000)
		cr_assert(sn_step(&run.net, run.net.now + 5 * S));
	shrink(0);
	for (uint64_t end = run.net.now + 200 * S; !run.gone && run.net.now < end;)
		sn_step(&run.net, end);
	cr_expect(strstr(run.why.text, "has not answered"), "%s", run.why.text);
	sn_fini(&run.net);
}
