/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports with sockets on loopback addresses of their own: two interfaces, and packets of nobody. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <ddpsess/ib_udp.h>
#include <ddpsess/ipoib_if.h>
#include "ipoib_cm/ib/pkt.h"
#include "ipoib_cm/ports/port_ib_wire.h"
#include "support/clock.h"
#include "support/ip4.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include "support/icrc.h"

#define MS 1000000ull

struct peer {
	struct ddps_ib_udp *u;
	struct ddps_ipoib_if *f;
	unsigned n_rx;
	size_t len;
};

static struct peer peer[2];
static uint8_t net[4]; /* of this process */

static void deliver_to_ib_udp(void *user, const void *packet, size_t len)
{
	struct peer *p = user;
	const uint8_t *at = packet;

	for (size_t i = 20; i < len; i++)
		cr_assert_eq(at[i], (uint8_t)(i * 7 + i / 251), "octet %zu", i);
	p->n_rx++;
	p->len = len;
}

static void make_ib_udp_config(struct ddps_ib_udp_config *c, unsigned i)
{
	ddps_ib_udp_config_init(c);
	memcpy(c->ip4, net, 3);
	c->ip4[3] = (uint8_t)(1 + i);
	memcpy(c->gid, (uint8_t[16]){ 0xfe, 0x80, [15] = (uint8_t)(1 + i) }, 16);
	c->sa_lid = 1;
	c->qpn = 0x48 + i;
	c->up = ddps_ipoib_if_up();
}

static void make_ib_udp(unsigned i)
{
	struct ddps_ipoib_if_calls calls = { sizeof(calls), deliver_to_ib_udp, NULL, &peer[i] };
	struct ddps_ipoib_if_config f;
	struct ddps_ib_udp_config c;
	char why[300];

	make_ib_udp_config(&c, i);
	cr_assert_eq(ddps_ib_udp_new(&peer[i].u, &c, why, sizeof(why)), 0, "%s", why);
	ddps_ipoib_if_config_init(&f);
	f.me.addr = (struct ddps_ipoib_lladdr){ .flags = DDPS_IPOIB_RC, .qpn = c.qpn };
	memcpy(f.me.addr.gid, c.gid, 16);
	f.me.pkey = c.pkey;
	f.me.rx_mtu = 65524;
	f.has_ip4 = true;
	memcpy(f.ip4, (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + i) }, 4);
	f.prefix4 = 24;
	f.retry_count = f.rnr_retry = 7;
	f.ca_guid = 1 + i;
	f.seed = i;
	f.probe_ns = 10 * MS;
	cr_assert_eq(ddps_ipoib_if_new(&peer[i].f, &f, ddps_ib_udp_port(peer[i].u), &calls), 0);
	ddps_ib_udp_user(peer[i].u, peer[i].f);
	(void)ddps_ib_udp_run(peer[i].u, read_clock_ns());
	cr_assert_eq(ddps_ipoib_if_start(peer[i].f, read_clock_ns()), 0);
}

/* Addresses that no other test has: by the process, and where they are taken, the next. */
static void init(void)
{
	unsigned at = (unsigned)getpid();
	struct ddps_ib_udp_config c;
	struct ddps_ib_udp *u;
	char why[300];
	int err = -1;

	for (unsigned i = 0; i < 50 && err; i++, at += 7919) {
		memcpy(net, (uint8_t[4]){ 127, (uint8_t)(100 + at % 100), (uint8_t)(at / 100), 0 },
		       4);
		make_ib_udp_config(&c, 0);
		err = ddps_ib_udp_new(&u, &c, why, sizeof(why));
	}
	cr_assert_eq(err, 0, "%s", why);
	ddps_ib_udp_free(u);
	memset(peer, 0, sizeof(peer));
	make_ib_udp(0);
	make_ib_udp(1);
}

static void fini(void)
{
	for (unsigned i = 0; i < 2; i++) {
		ddps_ipoib_if_free(peer[i].f);
		ddps_ib_udp_free(peer[i].u);
	}
}

/* One turn of both, which sleeps until there is something, at most 20 ms. */
static void turn_ib_udp(void)
{
	struct pollfd fds[2 * DDPS_IB_UDP_FDS];
	uint64_t now;

	for (unsigned i = 0; i < 2; i++)
		ddps_ib_udp_fds(peer[i].u, fds + i * DDPS_IB_UDP_FDS);
	(void)poll(fds, 2 * DDPS_IB_UDP_FDS, 20);
	now = read_clock_ns();
	for (unsigned i = 0; i < 2; i++) {
		(void)ddps_ib_udp_run(peer[i].u, now);
		if (ddps_ipoib_if_deadline(peer[i].f) <= now)
			ddps_ipoib_if_tick(peer[i].f, now);
	}
}

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t end = read_clock_ns() + 20000 * MS;                                       \
		while (!(condition)) {                                                             \
			cr_assert_lt(read_clock_ns(), end, #condition);                            \
			turn_ib_udp();                                                             \
		}                                                                                  \
	} while (0)

static uint64_t count_ib_udp(unsigned i, const char *name)
{
	const char *at;
	uint64_t v;

	for (unsigned k = 0; (at = ddps_ib_udp_counter(peer[i].u, k, &v)); k++)
		if (!strcmp(at, name))
			return v;
	cr_assert(false, "no counter %s", name);
	return 0;
}

static void send_ib_udp_ip(unsigned from, unsigned to, size_t len)
{
	static uint8_t p[65536];

	for (size_t i = 20; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
	ip4_between(p, len, 0, from, to);
	cr_assert_eq(ddps_ipoib_if_send(peer[from].f, p, len, read_clock_ns()), 0);
}

static bool is_ib_udp_up(unsigned i)
{
	struct ddps_ipoib_if_addr_info a;

	return ddps_ipoib_if_state(peer[i].f) == DDPS_IPOIB_IF_UP &&
	       ddps_ipoib_if_addr_info(peer[i].f, 0, &a) == 1 && a.held;
}

Test(ib_udp, interfaces_talk_over_sockets, .init = init, .fini = fini)
{
	cr_expect_eq(ddps_ib_udp_lid(peer[1].u), 2);
	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	send_ib_udp_ip(0, 1, 60000);
	UNTIL(peer[1].n_rx == 1);
	send_ib_udp_ip(1, 0, 60000);
	UNTIL(peer[0].n_rx == 1);
	cr_expect_eq(peer[0].len, 60000);
	UNTIL(count_ib_udp(0, "qp_tx") > 30); /* and acknowledges the other one */
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(count_ib_udp(i, "wire_icrc"), 0);
		cr_expect_eq(count_ib_udp(i, "wire_bad"), 0);
		cr_expect_eq(count_ib_udp(i, "wire_tx_failed"), 0);
	}
}

/* A program that has the UDP port of an MLID at the second port's address; -1: it cannot. */
static int another_program(uint16_t mlid)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(mlid) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), keep;

	cr_assert_geq(fd, 0);
	memcpy(&a.sin_addr, net, 3);
	((uint8_t *)&a.sin_addr)[3] = 2;
	if (!bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	keep = errno;
	close(fd);
	errno = keep;
	return -1;
}

/* From the join on nobody else gets it, and whoever has it before keeps the node from joining. */
Test(ib_udp, contact_32_the_port_of_a_group, .init = init, .fini = fini)
{
	const uint64_t now = read_clock_ns();
	int fd;

	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	cr_expect_str_empty(ddps_ib_udp_why(peer[1].u));
	cr_expect_eq(another_program(0xc000), -1, "before anything was sent to it");
	cr_expect_eq(errno, EADDRINUSE);
	ddps_ipoib_if_stop(peer[1].f, now);
	fd = another_program(0xc000);
	cr_expect_geq(fd, 0, "given back");
	cr_assert_eq(ddps_ipoib_if_start(peer[1].f, now), 0);
	UNTIL(*ddps_ib_udp_why(peer[1].u));
	cr_expect(strstr(ddps_ib_udp_why(peer[1].u), "UDP port 49152 of 127."));
	cr_expect(strstr(ddps_ib_udp_why(peer[1].u), strerror(EADDRINUSE)));
	cr_expect(strstr(ddps_ib_udp_why(peer[1].u), "net.ipv4.ip_local_reserved_ports"));
	cr_expect(!is_ib_udp_up(1));
	close(fd);
	UNTIL(is_ib_udp_up(1));
	send_ib_udp_ip(1, 0, 100);
	UNTIL(peer[0].n_rx == 1);
}

/* A MAD to the second port, from some address; @flip: the bit to make wrong, -1: none. */
/* Once a node has shown that it does not number its packets, those to it leave in one buffer. */
Test(ib_udp, packets_leave_together, .init = init, .fini = fini)
{
	uint64_t calls, packets;

	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	for (unsigned i = 1; i <= 100; i++) {
		send_ib_udp_ip(0, 1, 3000 + 4 * i);
		UNTIL(peer[1].n_rx == i);
		send_ib_udp_ip(1, 0, 3000);
		UNTIL(peer[0].n_rx == i);
	}
	for (unsigned i = 0; i < 2; i++) {
		calls = count_ib_udp(i, "wire_tx_calls");
		packets = count_ib_udp(i, "wire_tx");
		send_ib_udp_ip(i, 1 - i, 65000);
		UNTIL(peer[1 - i].n_rx == 101);
		cr_expect_gt(count_ib_udp(i, "wire_tx") - packets, 30);
		cr_expect_lt(count_ib_udp(i, "wire_tx_calls") - calls, 10);
		cr_expect_eq(count_ib_udp(i, "wire_icrc"), 0);
		cr_expect_eq(count_ib_udp(i, "wire_tx_failed"), 0);
	}
}

/* What is sent in the turn that brought a message carries its acknowledgement along: one call, two packets. */
Test(ib_udp, an_answer_carries_the_acknowledgement, .init = init, .fini = fini)
{
	struct pollfd fds[DDPS_IB_UDP_FDS];
	uint64_t calls, packets;

	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	send_ib_udp_ip(0, 1, 3000);
	UNTIL(peer[1].n_rx == 1);
	send_ib_udp_ip(1, 0, 3000);
	UNTIL(peer[0].n_rx == 1);
	for (unsigned i = 0; i < 3; i++)
		turn_ib_udp(); /* until nothing is owed */
	send_ib_udp_ip(0, 1, 100);
	ddps_ib_udp_fds(peer[0].u, fds);
	ddps_ib_udp_fds(peer[1].u, fds);
	cr_assert_geq(poll(fds, DDPS_IB_UDP_FDS, 20000), 1);
	(void)ddps_ib_udp_run(peer[1].u, read_clock_ns());
	cr_assert_eq(peer[1].n_rx, 2);
	calls = count_ib_udp(1, "wire_tx_calls");
	packets = count_ib_udp(1, "wire_tx");
	send_ib_udp_ip(1, 0, 100);
	ddps_ib_udp_fds(peer[1].u, fds);
	cr_expect_eq(count_ib_udp(1, "wire_tx_calls") - calls, 1);
	cr_expect_eq(count_ib_udp(1, "wire_tx") - packets, 2);
	(void)ddps_ib_udp_run(peer[0].u, read_clock_ns());
	cr_expect_eq(peer[0].n_rx, 2);
	cr_expect_eq(count_ib_udp(0, "qp_again"), 0);
}

/* A message of many packets waits for its turn in the window, and no more than is of use. */
Test(ib_udp, says_when_connections_are_behind, .init = init, .fini = fini)
{
	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	send_ib_udp_ip(0, 1, 60000);
	UNTIL(peer[1].n_rx == 1);
	for (unsigned i = 0; i < 80; i++) { /* the other one does not run meanwhile */
		if (i < 60)
			cr_expect(!ddps_ib_udp_busy(peer[0].u), "%u messages", i);
		send_ib_udp_ip(0, 1, 2000);
	}
	cr_expect(ddps_ib_udp_busy(peer[0].u));
	UNTIL(peer[1].n_rx == 81);
	UNTIL(!ddps_ib_udp_busy(peer[0].u));
	for (unsigned i = 0; i < 3; i++)
		turn_ib_udp();		   /* all of that is acknowledged */
	for (unsigned i = 0; i < 9; i++) { /* two windows are 8 of these */
		cr_expect(!ddps_ib_udp_busy(peer[0].u), "%u long messages", i);
		send_ib_udp_ip(0, 1, 65000);
	}
	cr_expect(ddps_ib_udp_busy(peer[0].u));
	UNTIL(peer[1].n_rx == 90);
	cr_expect_eq(ddps_ipoib_if_stats(peer[0].f)->tx_failed, 0);
}

static uint64_t note_ib_udp_ended(unsigned i)
{
	return ddps_ipoib_if_stats(peer[i].f)->conn_down;
}

Test(ib_udp, what_was_sent_leaves_before_the_end, .init = init, .fini = fini)
{
	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	send_ib_udp_ip(1, 0, 60000);
	UNTIL(peer[0].n_rx == 1);
	cr_assert_eq(note_ib_udp_ended(0), 0);
	ddps_ipoib_if_stop(peer[1].f, read_clock_ns()); /* a DREQ */
	ddps_ipoib_if_free(peer[1].f);
	ddps_ib_udp_free(peer[1].u);
	peer[1] = (struct peer){ 0 };
	for (uint64_t end = read_clock_ns() + 20000 * MS; !note_ib_udp_ended(0);) {
		cr_assert_lt(read_clock_ns(), end);
		(void)ddps_ib_udp_run(peer[0].u, read_clock_ns());
	}
}

static unsigned n_taken;

static void take_ib_udp_packet_test(void *user, uint16_t slid, uint16_t mlid,
				    const struct ddps_ib_pkt *p, uint64_t now)
{
	(void)user, (void)mlid, (void)p, (void)now;
	cr_assert_eq(slid, 9);
	n_taken++;
}

/* @n packets of node 9, whose ICRC is right for identification @id. */
static void bring_udp_packets(struct ib_wire *w, uint16_t id, unsigned n)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl((w->ip & ~0xffu) | 9) },
			   to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(w->ip),
				  .sin_port = htons(w->udp_port) };
	socklen_t len = sizeof(from);
	struct ddps_ib_udp_hdr h = {
		.src = ntohl(from.sin_addr.s_addr), .dst = w->ip, .dport = w->udp_port, .id = id
	};
	uint8_t b[28] = { 0x64, 0, 0xff, 0xff, 0, 0, 0, 1 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&from, &len), 0);
	h.sport = ntohs(from.sin_port);
	icrc_put(&h, b, sizeof(b) - 4);
	for (unsigned want = n_taken + n; n_taken < want;) {
		cr_assert_gt(sendto(fd, b, sizeof(b), 0, (struct sockaddr *)&to, sizeof(to)), 0);
		for (unsigned was = n_taken; n_taken == was;)
			(void)ddps_ib_wire_read(w, 0);
	}
	close(fd);
}

/* An adapter or Linux's driver has numbers, and looks at ours: it gets packets one by one. */
Test(ib_udp, who_numbers_packets_gets_them_one_by_one)
{
	static struct ib_wire w = { .udp_port = 7199, .rx = take_ib_udp_packet_test };
	unsigned at = (unsigned)getpid();
	uint32_t where;

	w.ip = 127u << 24 | (100 + at % 100) << 16 | (at / 100 % 256) << 8 | 3;
	w.broadcast = 0x7fffffff;
	cr_assert_eq(ddps_ib_wire_open(&w, &where), 0);
	bring_udp_packets(&w, 0, 63);
	cr_expect_eq(w.plain[9], 63);
	bring_udp_packets(&w, 5, 1);
	cr_expect_eq(w.plain[9], 0, "not in a row");
	bring_udp_packets(&w, 0, 80);
	cr_expect_eq(w.plain[9], 64);
	bring_udp_packets(&w, 7, 254); /* pieces of buffers have numbers, too */
	cr_expect_eq(w.plain[9], 64);
	bring_udp_packets(&w, 0, 1);
	bring_udp_packets(&w, 7, 255);
	cr_expect_eq(w.plain[9], 0, "another node has taken its place");
	ddps_ib_wire_close(&w);
}

static void send_stray_packet(uint8_t third, uint8_t last, int flip, size_t len)
{
	struct sockaddr_in from = { .sin_family = AF_INET }, to = from;
	socklen_t from_len = sizeof(from);
	struct ddps_ib_udp_hdr h = { .dport = DDPS_IB_UDP_PORT };
	uint8_t b[300] = { 0x64, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 1 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	const int no_fragments = IP_PMTUDISC_PROBE;

	from.sin_addr.s_addr = htonl((uint32_t)net[0] << 24 | (uint32_t)net[1] << 16 |
				     (uint32_t)third << 8 | last);
	to.sin_addr.s_addr =
		htonl((uint32_t)net[0] << 24 | (uint32_t)net[1] << 16 | (uint32_t)net[2] << 8 | 2);
	to.sin_port = htons(DDPS_IB_UDP_PORT);
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &no_fragments,
				sizeof(no_fragments)),
		     0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&from, &from_len), 0);
	h.src = ntohl(from.sin_addr.s_addr);
	h.dst = ntohl(to.sin_addr.s_addr);
	h.sport = ntohs(from.sin_port);
	if (len >= 16)
		icrc_put(&h, b, len - 4);
	if (flip >= 0)
		b[flip / 8] ^= (uint8_t)(1u << flip % 8);
	cr_assert_eq(sendto(fd, b, len, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)len);
	close(fd);
}

Test(ib_udp, packets_that_are_not_right_are_dropped, .init = init, .fini = fini)
{
	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	send_stray_packet(net[2], 9, -1, 280);
	UNTIL(count_ib_udp(1, "mad_bad") == 1); /* it came through; its class is 0 */
	send_stray_packet(net[2], 9, 8 * 100, 280);
	UNTIL(count_ib_udp(1, "wire_icrc") == 1);
	/* Another subnet; whoever tests IPoIB meanwhile is one, too, and broadcasts on the loopback interface. */
	send_stray_packet((uint8_t)(net[2] + 1), 9, -1, 280);
	UNTIL(count_ib_udp(1, "wire_stranger") >= 1);
	send_stray_packet(net[2], 9, -1, 12);
	UNTIL(count_ib_udp(1, "wire_bad") == 1);
	send_stray_packet(net[2], 9, 8, 280); /* another version */
	UNTIL(count_ib_udp(1, "wire_bad") == 2);
	cr_expect_eq(count_ib_udp(1, "mad_bad"), 1, "the others did not");
}

Test(ib_udp, refuses_bad_configurations, .init = init, .fini = fini)
{
	struct ddps_ib_udp_config c;
	struct ddps_ib_udp *u;
	char why[300];

#define REFUSED(change, error)                                                                     \
	do {                                                                                       \
		make_ib_udp_config(&c, 2);                                                         \
		change;                                                                            \
		why[0] = '\0';                                                                     \
		cr_expect_eq(ddps_ib_udp_new(&u, &c, why, sizeof(why)), error, #change);           \
	} while (0)
	REFUSED(c.ip4[3] = 0, DDPS_E_INVAL);
	REFUSED(c.ip4[3] = 255, DDPS_E_INVAL);
	REFUSED(c.up = NULL, DDPS_E_INVAL);
	REFUSED(c.struct_size = 3, DDPS_E_INVAL);
	REFUSED(c.mtu = 6, DDPS_E_INVAL);
	REFUSED(c.life = 32, DDPS_E_INVAL);
	REFUSED(c.sa_lid = 0, DDPS_E_INVAL);
	REFUSED(c.pkey = 0, DDPS_E_INVAL);
	REFUSED(c.max_qps = 0, DDPS_E_INVAL);
	cr_expect(strstr(why, "limit"));
	REFUSED(c.udp_port = 0, DDPS_E_INVAL);
	REFUSED(c.ip4[3] = 1, DDPS_E_SYSTEM); /* the first port's */
	cr_expect_eq(errno, EADDRINUSE);
	cr_expect(strstr(why, "in use"), "%s", why);
	REFUSED(memcpy(c.ip4, ((uint8_t[]){ 192, 0, 2, 1 }), 4), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EADDRNOTAVAIL);
	ddps_ib_udp_free(NULL);
}

/* ---- what the system does not give ---- */

static int try_open_udp_port(char why[300])
{
	struct ddps_ib_udp_config c;
	struct ddps_ib_udp *u = NULL;
	int err;

	make_ib_udp_config(&c, 0);
	c.ip4[3] = 77;
	c.sa_lid = 77;
	memcpy(c.broadcast, (uint8_t[4]){ 127, 255, 255, 255 }, 4);
	err = ddps_ib_udp_new(&u, &c, why, 300);
	cr_expect_eq(!u, err != 0);
	ddps_ib_udp_free(u);
	return err;
}

Test(ib_udp, networks_that_are_not_known, .init = init, .fini = fini)
{
	char why[300] = "";

	cr_expect_eq(try_open_udp_port(why), 0, "%s", why);
	sys_fail("getifaddrs", 0, 1, ENOMEM); /* of which MTU it is */
	cr_expect_eq(try_open_udp_port(why), DDPS_E_INVAL);
	cr_expect(strstr(why, "MTU below"), "%s", why);
	sys_fail("getifaddrs", 1, 1, ENOMEM); /* whether there is a loopback device: it will show */
	cr_expect_eq(try_open_udp_port(why), 0, "%s", why);
	cr_expect_eq(sys_failed(), 1);
	sys_fail("ioctl", 0, 1000, EPERM);
	cr_expect_eq(try_open_udp_port(why), DDPS_E_INVAL);
	cr_expect_gt(sys_failed(), 0);
	sys_fail("socket", 2, 1000, EMFILE); /* those of the port are there */
	cr_expect_eq(try_open_udp_port(why), DDPS_E_INVAL);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(try_open_udp_port(why), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EMFILE);
	sys_fail(NULL, 0, 0, 0);
}

Test(ib_udp, each_allocation_may_fail, .init = init, .fini = fini)
{
	const long live = mem_live();
	char why[300];
	unsigned n = 1;

	for (;; n++) {
		int err;

		cr_assert_lt(n, 30);
		mem_fail(n);
		err = try_open_udp_port(why);
		if (!mem_failed()) {
			cr_expect_eq(err, 0);
			break;
		}
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u", n);
		cr_expect(strstr(why, "out of memory"), "allocation %u: %s", n, why);
		cr_expect_eq(mem_live(), live, "allocation %u", n);
	}
	mem_fail(0);
	cr_expect_gt(n, 5);
}

/* What found no room waits for the socket, and goes when there is some. */
Test(ib_udp, packets_wait_for_room, .init = init, .fini = fini)
{
	struct pollfd fds[DDPS_IB_UDP_FDS];

	UNTIL(is_ib_udp_up(0) && is_ib_udp_up(1));
	send_ib_udp_ip(0, 1, 100);
	UNTIL(peer[1].n_rx == 1);
	sys_fail("sendmmsg", 0, 1000000, EAGAIN);
	send_ib_udp_ip(0, 1, 100);
	ddps_ib_udp_fds(peer[0].u, fds);
	cr_expect_eq(fds[0].events, POLLIN | POLLOUT);
	cr_expect_eq(fds[1].events, POLLIN);
	(void)ddps_ib_udp_run(peer[0].u, read_clock_ns());
	cr_expect_eq(peer[1].n_rx, 1);
	sys_fail(NULL, 0, 0, 0);
	UNTIL(peer[1].n_rx == 2);
	ddps_ib_udp_fds(peer[0].u, fds);
	cr_expect_eq(fds[0].events, POLLIN);
}
