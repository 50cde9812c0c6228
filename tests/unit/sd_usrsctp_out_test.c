/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches of packets: what makes a run, how one is cut up, and transfers with and without runs. */
#include "sd_usrsctp_fixture.h"
#include <netinet/udp.h>

/* ---- runs ---- */

static struct ddps_us_handle one, other;
static struct ddps_us_out_pkt pkt[DDPS_US_OUT_MAX];
static uint32_t octets;

static unsigned run(unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++)
		pkt[i] = (struct ddps_us_out_pkt){ &one, len };
	octets = 0;
	return ddps_us_gso_run(pkt, n, &octets);
}

Test(sd_usrsctp_out, a_packet_alone_is_a_run)
{
	cr_expect_eq(run(1, 1472), 1);
	cr_expect_eq(octets, 1472);
}

Test(sd_usrsctp_out, equal_packets_are_a_run_up_to_64)
{
	for (unsigned n = DDPS_US_GSO_MAX - 1; n <= DDPS_US_GSO_MAX + 1; n++) {
		unsigned want = n < DDPS_US_GSO_MAX ? n : DDPS_US_GSO_MAX;

		cr_expect_eq(run(n, 28), want);
		cr_expect_eq(octets, want * 28);
	}
}

Test(sd_usrsctp_out, a_run_is_no_longer_than_a_datagram)
{
	/* 65507 is 41 * 1597 + 30 */
	run(42, 1597);
	for (uint32_t last = 29; last <= 31; last++) {
		unsigned want = last <= 30 ? 42 : 41;

		pkt[41].len = last;
		cr_expect_eq(ddps_us_gso_run(pkt, 42, &octets), want);
		cr_expect_eq(octets, 41 * 1597 + (want == 42 ? last : 0));
	}
}

Test(sd_usrsctp_out, a_shorter_packet_ends_a_run_and_is_in_it)
{
	run(6, 1472);
	pkt[2].len = 1471;
	cr_expect_eq(ddps_us_gso_run(pkt, 6, &octets), 3);
	cr_expect_eq(octets, 2 * 1472 + 1471);
	pkt[2].len = 1472;
	cr_expect_eq(ddps_us_gso_run(pkt, 6, &octets), 6);
	pkt[2].len = 1473; /* a longer one begins the next */
	cr_expect_eq(ddps_us_gso_run(pkt, 6, &octets), 2);
	cr_expect_eq(octets, 2 * 1472);
}

Test(sd_usrsctp_out, another_peer_ends_a_run)
{
	run(4, 100);
	pkt[3].h = &other;
	cr_expect_eq(ddps_us_gso_run(pkt, 4, &octets), 3);
	pkt[1].h = &other;
	cr_expect_eq(ddps_us_gso_run(pkt, 4, &octets), 1);
	cr_expect_eq(octets, 100);
}

/* ---- cutting up ---- */

static void expect_cut(size_t total, int seg, unsigned count, size_t last)
{
	size_t off = 0, at = 0, len, got = 0;
	unsigned n = 0;

	while ((len = ddps_us_gro_next(total, seg, &off))) {
		cr_assert_eq(off, at + len);
		cr_assert_leq(off, total);
		at = off;
		got = len;
		n++;
	}
	cr_expect_eq(at, total);
	cr_expect_eq(n, count, "%zu octets by %d: %u", total, seg, n);
	cr_expect_eq(got, last, "%zu octets by %d: last %zu", total, seg, got);
}

Test(sd_usrsctp_out, datagrams_are_cut_to_the_size_that_is_said)
{
	expect_cut(0, 0, 0, 0);
	expect_cut(0, 1472, 0, 0);
	expect_cut(1471, 1472, 1, 1471);
	expect_cut(1472, 1472, 1, 1472);
	expect_cut(1473, 1472, 2, 1);
	expect_cut(2944, 1472, 2, 1472);
	expect_cut(64768, 1472, 44, 1472);
	expect_cut(65535, 1, 65535, 1);
}

Test(sd_usrsctp_out, a_size_that_makes_no_sense_cuts_nothing)
{
	expect_cut(3000, 0, 1, 3000); /* not said: one datagram */
	expect_cut(3000, -1, 1, 3000);
	expect_cut(3000, INT32_MIN, 1, 3000);
	expect_cut(3000, INT32_MAX, 1, 3000);
}

/* ---- transfers ---- */

#define PATH  1472u /* Ethernet, with UDP */
#define LEN   1444u
#define COUNT 4000u

static unsigned sent;

static void more(struct side *s)
{
	int err = 0;

	/* every seventh is shorter */
	while (!err && sent < COUNT) {
		err = send_one(s, (uint16_t)(sent % 3), SEGMENT, LEN - (sent % 7 == 6 ? 100 : 0));
		sent += !err;
	}
	cr_assert(!err || err == DDPS_E_AGAIN, "%s", ddps_strerror(err));
}

static void path_of_1500(int family)
{
	set_up(family);
	ddps_us_lock(cli.a->ue);
	cli.a->h->payload = PATH;
	ddps_us_assoc_payload(cli.a, PATH);
	ddps_us_unlock();
}

static void transfer(void)
{
	struct side *s = &srv.peers[0];

	sent = 0;
	cli.on_writable = more;
	more(&cli);
	WAIT_FOR(s->messages == COUNT, &cn, &sn);
	cr_expect_eq(s->octets, COUNT * LEN - COUNT / 7 * 100);
	cr_expect(!s->bad);
	cr_expect_eq(cli.a->ue->drops, 0);
}

static void with_runs(int family)
{
	bool knows;

	path_of_1500(family);
	knows = cli.a->h->carrier->gso;
	transfer();
	cr_expect_eq(cli.a->h->carrier->gso, knows); /* nothing was refused */
	if (knows)
		cr_expect_geq(cli.a->ue->runs, COUNT / DDPS_US_GSO_MAX);
	stop();
}

Test(sd_usrsctp_out, a_transfer_in_runs, .timeout = 60)
{
	with_runs(AF_INET);
}

Test(sd_usrsctp_out, a_transfer_in_runs_over_ipv6, .timeout = 60)
{
	with_runs(AF_INET6);
}

/* A server's socket has no peer of its own: addresses go with each run. */
Test(sd_usrsctp_out, a_transfer_in_runs_from_the_server, .timeout = 60)
{
	struct side *s = &srv.peers[0];
	bool knows;

	set_up(AF_INET);
	ddps_us_lock(s->a->ue);
	s->a->h->payload = PATH;
	ddps_us_assoc_payload(s->a, PATH);
	knows = s->a->h->carrier->gso;
	ddps_us_unlock();
	sent = 0;
	s->on_writable = more;
	more(s);
	WAIT_FOR(cli.messages == COUNT, &cn, &sn);
	cr_expect(!cli.bad);
	cr_expect_eq(s->a->h->carrier->gso, knows);
	if (knows)
		cr_expect_geq(s->a->ue->runs, COUNT / DDPS_US_GSO_MAX);
	stop();
}

/* The kernel cuts up nothing without a checksum of its own: EINVAL, or EIO on some devices. */
Test(sd_usrsctp_out, a_transfer_whose_runs_are_refused, .timeout = 60)
{
	int on = 1;

	path_of_1500(AF_INET);
	cr_assert_eq(setsockopt(cli.a->h->carrier->io.fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on),
		     0);
	transfer();
	cr_expect(!cli.a->h->carrier->gso);
	cr_expect_eq(cli.a->ue->runs, 0);
	stop();
}

Test(sd_usrsctp_out, a_kernel_that_does_not_know_runs, .timeout = 60)
{
	path_of_1500(AF_INET);
	cli.a->h->carrier->gso = false;
	transfer();
	cr_expect_eq(cli.a->ue->runs, 0);
	stop();
}

static void send_twice(void *user)
{
	struct ddps_us_env *ue = user;

	cr_assert_eq(send_one(&cli, 0, SEGMENT, LEN), 0);
	cr_assert_eq(send_one(&cli, 0, SEGMENT, LEN), 0);
	cr_expect_eq(ue->out.n, 2);
}

/* What is sent waits for the rest of the round, and for no timer. */
Test(sd_usrsctp_out, packets_leave_before_the_loop_sleeps)
{
	struct ddps_task task = { .fn = send_twice };
	struct ddps_us_env *ue;

	path_of_1500(AF_INET);
	task.user = ue = cli.a->ue;
	ddps_task_post(cn.env.loop, &task);
	cr_assert_geq(ddps_loop_run(cn.env.loop), 0);
	cr_expect_eq(ue->out.n, 0);
	cr_expect_eq(ue->out.used, 0);
	WAIT_FOR(srv.peers[0].messages == 2, &sn);
	stop();
}

/* Outside the loop there is no rest of a round. */
Test(sd_usrsctp_out, a_post_leaves_at_once)
{
	path_of_1500(AF_INET);
	cr_assert_eq(send_one(&cli, 0, SEGMENT, LEN), 0);
	cr_expect_eq(cli.a->ue->out.n, 0);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	stop();
}

static void send_and_free(void *user)
{
	struct ddps_us_env *ue = user;

	cr_assert_eq(send_one(&cli, 0, SEGMENT, LEN), 0);
	cr_expect_eq(ue->out.n, 1);
	B->free(cli.a);
}

/* A packet on its way out does not outlive the peer that it is for. */
Test(sd_usrsctp_out, free_sends_what_was_collected)
{
	struct side *s = &srv.peers[0];
	struct ddps_task task = { .fn = send_and_free };

	path_of_1500(AF_INET);
	task.user = cli.a->ue;
	ddps_task_post(cn.env.loop, &task);
	cr_assert_geq(ddps_loop_run(cn.env.loop), 0);
	WAIT_FOR(s->gone, &sn); /* the ABORT came behind it */
	cr_expect_eq(s->end.code, DDPS_E_RESET);
	stop();
}

/* One more than fits has the others leave first. */
Test(sd_usrsctp_out, a_batch_takes_as_many_packets_as_it_has_room_for, .timeout = 60)
{
	static uint8_t p[DDPS_US_OUT_MAX];
	struct ddps_us_handle *h;
	struct ddps_us_env *ue;

	path_of_1500(AF_INET);
	ue = cli.a->ue;
	h = cli.a->h;
	ddps_us_lock(ue);
	for (unsigned i = 0; i < DDPS_US_OUT_MAX; i++) {
		ddps_us_transmit(h, p, 28, true); /* port 0: nobody takes it */
		cr_expect_eq(ue->out.n, i + 1);
	}
	ddps_us_transmit(h, p, 28, true);
	cr_expect_eq(ue->out.n, 1); /* the others left */
	ddps_us_unlock();
	cr_expect_eq(ue->out.n, 0);
	cr_expect_eq(ue->drops, 0);
	stop();
}

/* Who waits for the last acknowledgement of a bulk transfer does not wait long. */
Test(sd_usrsctp_out, a_last_packet_is_acknowledged_soon)
{
	struct sctp_sack_info i = { .sack_assoc_id = SCTP_CURRENT_ASSOC };
	socklen_t len = sizeof i;

	set_up(AF_INET);
	cr_assert_eq(usrsctp_getsockopt(srv.peers[0].a->so, IPPROTO_SCTP, SCTP_DELAYED_SACK, &i,
					&len),
		     0);
	cr_expect_leq(i.sack_delay, 20);
	cr_expect_eq(i.sack_freq, 2); /* RFC 9260 6.2 */
	stop();
}
