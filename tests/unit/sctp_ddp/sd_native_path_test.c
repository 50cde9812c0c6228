/* SPDX-License-Identifier: BSD-2-Clause */
/* Links that take little, and packets on their way out: one by one and in runs. */
#include "sctp_ddp/backend/sd_route.h"
#include "sd_native_fixture.h"
#include "unit/sys_fixture.h"
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

/* Octets of a message for a packet of IPv4. */
#define OF(mtu) ((size_t)(mtu)-28 - 12 - 16)

static void send_when_there_is_room(struct side *s, uint16_t stream, size_t len)
{
	unsigned before;
	int err;

	do {
		before = s->writable;
		err = send_one_sd_pair(s, stream, SEGMENT, len);
		cr_assert(!err || err == DDPS_E_AGAIN, "%s", ddps_strerror(err));
		if (err)
			WAIT_FOR(s->writable > before || s->gone, &cn, &sn);
	} while (err && !s->gone);
}

/* Both directions, whole and in fragments of SCTP. */
static void exchange_sd_native_path(struct side *a, struct side *b, unsigned n, size_t len)
{
	unsigned had_a = a->messages, had_b = b->messages;

	for (unsigned i = 0; i < n; i++) {
		send_when_there_is_room(a, 1, len);
		send_when_there_is_room(b, 2, len);
	}
	WAIT_FOR((a->messages == had_a + n && b->messages == had_b + n) || a->gone || b->gone, &cn,
		 &sn);
	cr_expect_eq(a->gone + b->gone, 0, "%s%s", a->end.text, b->end.text);
	cr_expect_not(a->bad || b->bad);
}

static void set_loopback_mtu(int mtu)
{
	if (!narrow_loopback(mtu))
		cr_skip_test("no network of its own");
	set_sd_pair_up(AF_INET);
	exchange_sd_native_path(&cli, &srv.peers[0], 50, 100);
	exchange_sd_native_path(&cli, &srv.peers[0], 50, 1400);
	exchange_sd_native_path(&cli, &srv.peers[0], 10, 60000);
	stop_sd_pair();
}

Test(sd_native_path, attack_2_a_path_of_552_octets)
{
	set_loopback_mtu(552);
}

Test(sd_native_path, attack_2_a_path_of_296_octets)
{
	set_loopback_mtu(296);
}

/* One ICMP message "fragmentation needed, MTU 600" about a datagram of ours, from nobody. */
static void forge_icmp(const struct sockaddr_storage *to, int udp)
{
	struct {
		struct icmphdr icmp;
		struct iphdr ip;
		struct udphdr udp;
	} m = { .icmp = { .type = ICMP_DEST_UNREACH,
			  .code = ICMP_FRAG_NEEDED,
			  .un.frag.mtu = htons(600) },
		.ip = { .version = 4,
			.ihl = 5,
			.ttl = 64,
			.tot_len = htons(1000),
			.protocol = IPPROTO_UDP,
			.saddr = htonl(INADDR_LOOPBACK),
			.daddr = htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	struct sockaddr_in own;
	socklen_t len = sizeof own;
	uint32_t sum = 0;
	uint16_t half;

	cr_assert_geq(fd, 0);
	cr_assert_eq(getsockname(udp, (struct sockaddr *)&own, &len), 0);
	m.udp.uh_sport = own.sin_port;
	m.udp.uh_dport = htons(9);
	for (size_t i = 0; i < sizeof m; i += 2) {
		memcpy(&half, (uint8_t *)&m + i, 2);
		sum += half;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	m.icmp.checksum = (uint16_t) ~(sum + (sum >> 16));
	cr_assert_eq(sendto(fd, &m, sizeof m, 0, (const struct sockaddr *)to,
			    sizeof(struct sockaddr_in)),
		     (ssize_t)sizeof m);
	close(fd);
}

/* What the kernel believes of the path, as one datagram of anybody made it do, is not asked. */
Test(sd_native_path, attack_2_the_route_is_as_it_was_configured)
{
	struct sockaddr_storage to;
	int fd, mtu = 0;
	socklen_t len = sizeof mtu;

	if (!narrow_loopback(1000))
		cr_skip_test("no network of its own");
	get_sd_backend_loopback(&to, AF_INET, 9);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)), 0);
	forge_icmp(&to, fd);
	cr_assert_eq(getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len), 0);
	cr_expect_eq(mtu, 600, "%d: the kernel believes it", mtu);
	close(fd);
	cr_expect_eq(ddps_sd_route_mtu(&to), 1000);
	to.ss_family = AF_UNIX;
	cr_expect_eq(ddps_sd_route_mtu(&to), 0);
}

static size_t get_widest_sd_native_path(struct side *s)
{
	B->info(s->a, &s->info);
	return s->info.max_user_data;
}

/* A link that takes less than it did, and the layer above learns of it. */
Test(sd_native_path, attack_7_a_size_that_changes_is_reported, .description = "5043-9-1")
{
	if (!narrow_loopback(1500))
		cr_skip_test("no network of its own");
	set_sd_pair_up(AF_INET);
	while (get_widest_sd_native_path(&cli) < OF(1500))
		exchange_sd_native_path(&cli, &srv.peers[0], 1, 1000);
	exchange_sd_native_path(&cli, &srv.peers[0], 1, OF(1500));
	set_sd_native_loopback(1280);
	cli.paths = 0;
	exchange_sd_native_path(&cli, &srv.peers[0], 5, OF(1500));
	WAIT_FOR(cli.paths > 0, &cn, &sn);
	cr_expect_leq(get_widest_sd_native_path(&cli), OF(1280));
	exchange_sd_native_path(&cli, &srv.peers[0], 5, OF(1280));
	stop_sd_pair();
}

static unsigned in_fragments; /* packets that the system may fragment */

static int df_of(int fd)
{
	int how = -1;
	socklen_t len = sizeof how;

	cr_assert_eq(getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &how, &len), 0);
	return how;
}

static ssize_t look_at_df(int fd, const struct msghdr *m, int flags)
{
	int how = df_of(fd);

	in_fragments += how == IP_PMTUDISC_DONT;
	if (how != IP_PMTUDISC_DONT)
		cr_expect_eq(how, IP_PMTUDISC_PROBE);
	return sys_sendmsg(fd, m, flags);
}

/* What has its TSN when the link becomes narrower cannot be cut any more; all else is. */
Test(sd_native_path, fragments_of_ip_are_for_one_packet, .description = "9260-6.9-5")
{
	if (!narrow_loopback(1500))
		cr_skip_test("no network of its own");
	set_sd_pair_up(AF_INET);
	while (get_widest_sd_native_path(&cli) < OF(1500))
		exchange_sd_native_path(&cli, &srv.peers[0], 1, 1000);
	set_sd_native_loopback(1280);
	sys_instead.sendmsg = look_at_df;
	exchange_sd_native_path(&cli, &srv.peers[0], 1, OF(1500));
	sys_instead.sendmsg = NULL;
	cr_expect_gt(in_fragments, 0);
	cr_expect_eq(df_of(cli.a->sock->io.fd), IP_PMTUDISC_PROBE);
	cr_expect_eq(df_of(srv.peers[0].a->sock->io.fd), IP_PMTUDISC_PROBE);
	stop_sd_pair();
}

/* ---- transfers ---- */

#define LEN   1100u
#define COUNT 4000u

static unsigned sent;

static void send_path_messages(struct side *s)
{
	int err = 0;

	/* every seventh is shorter */
	while (!err && sent < COUNT) {
		err = send_one_sd_pair(s, (uint16_t)(sent % 3), SEGMENT,
				       LEN - (sent % 7 == 6 ? 100 : 0));
		sent += !err;
	}
	cr_assert(!err || err == DDPS_E_AGAIN, "%s", ddps_strerror(err));
}

static void path_of_1500(int family)
{
	if (!narrow_loopback(1500))
		cr_skip_test("no network of its own");
	set_sd_pair_up(family);
}

static void transfer_sd_native_path(struct side *from, struct side *to)
{
	sent = 0;
	from->on_writable = send_path_messages;
	send_path_messages(from);
	WAIT_FOR(to->messages == COUNT, &cn, &sn);
	cr_expect_eq(to->octets, COUNT * LEN - COUNT / 7 * 100);
	cr_expect(!to->bad);
}

/* Whether the kernel takes runs of packets as one is as it was: nothing was refused. */
static void with_runs(int family)
{
	bool knows;

	path_of_1500(family);
	knows = cli.a->sock->gso;
	transfer_sd_native_path(&cli, &srv.peers[0]);
	cr_expect_eq(cli.a->sock->gso, knows);
	transfer_sd_native_path(&srv.peers[0], &cli);
	cr_expect_eq(srv.peers[0].a->sock->gso, knows);
	stop_sd_pair();
}

Test(sd_native_path, a_transfer_in_runs, .timeout = 60)
{
	with_runs(AF_INET);
}

Test(sd_native_path, a_transfer_in_runs_over_ipv6, .timeout = 60)
{
	with_runs(AF_INET6);
}

/* The kernel cuts up nothing without a checksum of its own: EINVAL, or EIO on some devices. */
Test(sd_native_path, a_transfer_whose_runs_are_refused, .timeout = 60)
{
	int on = 1;

	path_of_1500(AF_INET);
	if (!cli.a->sock->gso)
		cr_skip_test("the kernel does not know runs");
	cr_assert_eq(setsockopt(cli.a->sock->io.fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
	transfer_sd_native_path(&cli, &srv.peers[0]);
	cr_expect(!cli.a->sock->gso);
	stop_sd_pair();
}

Test(sd_native_path, a_kernel_that_does_not_know_runs, .timeout = 60)
{
	path_of_1500(AF_INET);
	cli.a->sock->gso = false;
	transfer_sd_native_path(&cli, &srv.peers[0]);
	cr_expect(!cli.a->sock->gso);
	stop_sd_pair();
}

/* ---- when they leave ---- */

static void send_twice(void *user)
{
	struct side *s = user;

	cr_assert_eq(send_one_sd_pair(s, 0, SEGMENT, LEN), 0);
	cr_assert_eq(send_one_sd_pair(s, 0, SEGMENT, LEN), 0);
	cr_expect(ddps_sctp_pending(s->a->ne->e));
}

/* What is sent waits for the rest of the round, and for no timer. */
Test(sd_native_path, packets_leave_before_the_loop_sleeps)
{
	struct ddps_task task = { .fn = send_twice, .user = &cli };

	set_sd_pair_up(AF_INET);
	ddps_task_post(cn.env.loop, &task);
	cr_assert_geq(ddps_loop_run(cn.env.loop), 0);
	WAIT_FOR(srv.peers[0].messages == 2, &sn);
	stop_sd_pair();
}

/* Outside the loop there is no rest of a round. */
Test(sd_native_path, a_post_leaves_immediately)
{
	set_sd_pair_up(AF_INET);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, LEN), 0);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	stop_sd_pair();
}

/* Its deadline has moved away, and is kept when it comes. */
Test(sd_native_path, a_timer_that_is_early_is_set_again)
{
	struct ddps_sn_env *ne;

	set_sd_pair_up(AF_INET);
	ne = cli.a->ne;
	WAIT_FOR(ddps_sn_is_idle(ne) && ddps_sctp_deadline(ne->e) - ddps_now() > 1000000000u, &cn,
		 &sn);
	ddps_timer_stop(cn.env.loop, &ne->timer);
	ne->timer.fn(ne->timer.user);
	cr_assert(ddps_timer_runs(&ne->timer));
	cr_expect_eq(ne->timer.due, ddps_sctp_deadline(ne->e));
	stop_sd_pair();
}

static void send_and_free(void *user)
{
	struct side *s = user;

	cr_assert_eq(send_one_sd_pair(s, 0, SEGMENT, LEN), 0);
	B->free(s->a);
}

/* An association that goes while packets wait for it takes them along, and says so. */
Test(sd_native_path, free_next_to_packets_that_wait)
{
	struct side *s = &srv.peers[0];
	struct ddps_task task = { .fn = send_and_free, .user = &cli };

	set_sd_pair_up(AF_INET);
	ddps_task_post(cn.env.loop, &task);
	cr_assert_geq(ddps_loop_run(cn.env.loop), 0);
	WAIT_FOR(s->gone, &sn);
	cr_expect_eq(s->end.code, DDPS_E_RESET);
	stop_sd_pair();
}

Test(sd_native_path, many_associations_leave_nothing)
{
	start_sd_pair(AF_INET);
	for (int i = 0; i < 40; i++) {
		unsigned n = srv.accepted;

		cli = (struct side){ 0 };
		cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
		WAIT_FOR(cli.up && srv.accepted > n, &cn, &sn);
		if (i & 1)
			B->shutdown(cli.a);
		else
			B->abort(cli.a);
		WAIT_FOR(cli.gone && srv.peers[n % MAX_PEERS].gone, &cn, &sn);
		B->free(cli.a);
		B->free(srv.peers[n % MAX_PEERS].a);
		srv.peers[n % MAX_PEERS] = (struct side){ .b = B };
	}
	cr_expect_eq(srv.ep->sock->refs, 1);
	cr_expect(TAILQ_EMPTY(&srv.ep->ne->assocs));
	cr_expect(TAILQ_EMPTY(&((struct ddps_sn_env *)cn.ctx)->assocs));
	stop_sd_pair();
}

/* Only what is acknowledged is said to be. */
Test(sd_native_path, acknowledged_is_reported_when_it_is, .description = "5043-6.6-3 5043-6.6-4")
{
	set_sd_pair_up(AF_INET);
	cr_assert_eq(send_one_sd_pair(&cli, 0, CONTROL, 100), 0);
	/* the peer's loop does not run: no acknowledgement can come */
	for (int i = 0; i < 20; i++)
		cr_assert_geq(ddps_loop_run(cn.env.loop), 0);
	cr_expect_eq(cli.acked, 0);
	WAIT_FOR(cli.acked == 1, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, 1);
	for (int i = 0; i < 50 && send_one_sd_pair(&cli, 3, SEGMENT, 20000) == 0; i++)
		;
	cr_assert_gt(cli.handed, 2);
	WAIT_FOR(cli.acked == cli.handed, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, cli.handed);
	stop_sd_pair();
}
