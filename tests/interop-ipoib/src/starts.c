/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many nodes of ours that start towards Linux, each as if it had never been there: both ends ask for a
 * connection at about the same time.  Each must have one connection of its own within two seconds,
 * and in the end one of its own and one of Linux's, no more.
 *
 *	ipoib-starts WIRE-NET FIRST COUNT SA LINK-NET TARGET STARTS
 *	ipoib-starts 10.77.0 20 50 1 10.88.0 2 1000
 *
 * Hosts FIRST to FIRST + COUNT - 1 of WIRE-NET are addresses of this host.
 */
#include <ddpsess/ib_udp.h>
#include <ddpsess/ipoib_if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS	   1000000ull
#define SEC	   (1000 * MS)
#define NODES	   100u
#define TOGETHER   10u	      /* start simultaneously */
#define UP_WITHIN  (2 * SEC)  /* own connection */
#define END_WITHIN (60 * SEC) /* Linux's: it asks again seconds later, if a message was lost */
#define EVERY	   (20 * MS)  /* a packet */

struct node {
	struct ddps_ib_udp *u;
	struct ddps_ipoib_if *f;
	uint8_t ip[4];
	uint64_t begun, up_at, next;
};

static struct node node[NODES];
static unsigned n_nodes;
static uint8_t target[4], wire[4], sa;
static uint32_t life; /* of a node: its queue pair numbers */

static uint64_t read_starts_guest_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

static void put_starts_guest_sum(uint8_t *at, const uint8_t *p, size_t len)
{
	uint32_t s = 0;

	at[0] = at[1] = 0;
	for (size_t i = 0; i < len; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	s = (s & 0xffff) + (s >> 16);
	s += s >> 16;
	at[0] = (uint8_t)(~s >> 8);
	at[1] = (uint8_t)~s;
}

/* An echo request of 84 octets. */
static void send_echo(struct node *n, uint64_t now)
{
	uint8_t p[84] = { 0x45, 0, 0, sizeof p, 0, 0, 0, 0, 64, 1, [20] = 8 };

	memcpy(p + 12, n->ip, 4);
	memcpy(p + 16, target, 4);
	put_starts_guest_sum(p + 10, p, 20);
	put_starts_guest_sum(p + 22, p + 20, sizeof p - 20);
	(void)ddps_ipoib_if_send(n->f, p, sizeof p, now);
}

static void deliver_to_starts_guest(void *user, const void *packet, size_t len)
{
	(void)user;
	(void)packet;
	(void)len;
}

static bool make_starts_guest(struct node *n, uint8_t host, uint32_t seed)
{
	const struct ddps_ipoib_if_calls calls = { sizeof(calls), deliver_to_starts_guest, NULL,
						   n };
	struct ddps_ipoib_if_config f;
	struct ddps_ib_udp_config c;
	char why[300] = "the interface";

	ddps_ib_udp_config_init(&c);
	memcpy(c.ip4, wire, 3);
	c.ip4[3] = host;
	memcpy(c.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = host }, 16);
	c.sa_lid = sa;
	c.qpn = 2 + (++life * 7919 + seed) % 0xfffff0;
	c.seed = seed + life;
	c.up = ddps_ipoib_if_up();
	if (ddps_ib_udp_new(&n->u, &c, why, sizeof why)) {
		fprintf(stderr, "%s\n", why);
		return false;
	}
	ddps_ipoib_if_config_init(&f);
	f.me.addr = (struct ddps_ipoib_lladdr){ .flags = DDPS_IPOIB_RC, .qpn = c.qpn };
	memcpy(f.me.addr.gid, c.gid, 16);
	f.me.pkey = c.pkey;
	f.me.rx_mtu = 65524;
	f.has_ip4 = true;
	memcpy(f.ip4, n->ip, 4);
	f.prefix4 = 24;
	f.retry_count = f.rnr_retry = 7;
	f.ca_guid = (uint64_t)host << 32 | life;
	f.seed = c.seed;
	f.probe_ns = 1000000; /* the run is about starts, not about addresses */
	if (ddps_ipoib_if_new(&n->f, &f, ddps_ib_udp_port(n->u), &calls))
		return false;
	ddps_ib_udp_user(n->u, n->f);
	(void)ddps_ib_udp_run(n->u, read_starts_guest_clock());
	return !ddps_ipoib_if_start(n->f, read_starts_guest_clock());
}

/* One turn of all nodes that there are. */
static void turn_starts_guest(void)
{
	struct pollfd fds[NODES * DDPS_IB_UDP_FDS];
	uint64_t now;

	for (unsigned i = 0; i < n_nodes; i++)
		ddps_ib_udp_fds(node[i].u, fds + i * DDPS_IB_UDP_FDS);
	(void)poll(fds, n_nodes * DDPS_IB_UDP_FDS, 2);
	now = read_starts_guest_clock();
	for (unsigned i = 0; i < n_nodes; i++) {
		(void)ddps_ib_udp_run(node[i].u, now);
		if (ddps_ipoib_if_deadline(node[i].f) <= now)
			ddps_ipoib_if_tick(node[i].f, now);
	}
}

/* Connections that are up, own ones and those of Linux. */
static void count_starts_guest(const struct node *n, unsigned up[2])
{
	struct ddps_ipoib_if_conn_info c;
	int res;

	up[0] = up[1] = 0;
	for (unsigned k = 0; (res = ddps_ipoib_if_conn_info(n->f, k, &c)) >= 0; k++)
		if (res && c.up)
			up[!c.active]++;
}

/* Traffic of some nodes until each has what it should.  Return: whether that came in time. */
static bool start_starts_guest(struct node *first, unsigned n, uint64_t *slowest)
{
	uint64_t begun = read_starts_guest_clock(), now = begun;
	unsigned good = 0, up[2];

	while (good < n && now < begun + END_WITHIN) {
		turn_starts_guest();
		now = read_starts_guest_clock();
		good = 0;
		for (unsigned i = 0; i < n; i++) {
			struct node *at = &first[i];

			count_starts_guest(at, up);
			if (!at->up_at && up[0])
				at->up_at = now;
			good += up[0] == 1 && up[1] == 1;
			if (at->next <= now) {
				at->next = now + EVERY;
				send_echo(at, now);
			}
		}
	}
	for (unsigned i = 0; i < n; i++) {
		uint64_t took = first[i].up_at ? first[i].up_at - begun : END_WITHIN;

		count_starts_guest(&first[i], up);
		*slowest = took > *slowest ? took : *slowest;
		if (up[0] == 1 && up[1] == 1 && took <= UP_WITHIN)
			continue;
		printf("host %u: %u own connections and %u of Linux, the first after %u ms\n",
		       first[i].ip[3], up[0], up[1], (unsigned)(took / MS));
		return false;
	}
	return true;
}

static bool run_starts_guest_round(unsigned first, unsigned n, uint32_t seed, uint64_t *slowest)
{
	uint64_t until = read_starts_guest_clock() + END_WITHIN;
	unsigned joined = 0;
	bool good = true;

	for (n_nodes = 0; n_nodes < n; n_nodes++) {
		struct node *at = &node[n_nodes];

		*at = (struct node){ 0 };
		memcpy(at->ip, target, 3);
		at->ip[3] = (uint8_t)(first + n_nodes);
		if (!make_starts_guest(at, at->ip[3], seed))
			return false;
	}
	while (joined < n && read_starts_guest_clock() < until) {
		turn_starts_guest();
		joined = 0;
		for (unsigned i = 0; i < n; i++)
			joined += ddps_ipoib_if_state(node[i].f) == DDPS_IPOIB_IF_UP;
	}
	if (joined < n)
		printf("%u of %u join\n", joined, n);
	good = joined == n;
	for (unsigned i = 0; good && i < n; i += TOGETHER)
		good = start_starts_guest(&node[i], n - i < TOGETHER ? n - i : TOGETHER, slowest);
	for (unsigned i = 0; i < n; i++)
		ddps_ipoib_if_stop(node[i].f, read_starts_guest_clock());
	for (until = read_starts_guest_clock() + SEC;
	     read_starts_guest_clock() < until;) /* DREQs are answered */
		turn_starts_guest();
	for (unsigned i = 0; i < n; i++) {
		ddps_ipoib_if_free(node[i].f);
		ddps_ib_udp_free(node[i].u);
	}
	return good;
}

static bool net(uint8_t to[4], const char *text)
{
	unsigned a, b, c;

	if (sscanf(text, "%u.%u.%u", &a, &b, &c) != 3)
		return false;
	memcpy(to, (uint8_t[4]){ (uint8_t)a, (uint8_t)b, (uint8_t)c, 0 }, 4);
	return true;
}

int main(int argc, char **argv)
{
	uint64_t slowest = 0;
	unsigned starts, done = 0, first, n;

	if (argc != 8 || !net(wire, argv[1]) || !net(target, argv[5]))
		return 2;
	first = (unsigned)atoi(argv[2]);
	n = (unsigned)atoi(argv[3]);
	sa = (uint8_t)atoi(argv[4]);
	target[3] = (uint8_t)atoi(argv[6]);
	starts = (unsigned)atoi(argv[7]);
	if (!n || n > NODES || !first || first + n > 255)
		return 2;
	while (done < starts) {
		unsigned now = starts - done < n ? starts - done : n;

		if (!run_starts_guest_round(first, now, (uint32_t)read_starts_guest_clock(),
					    &slowest))
			return 1;
		done += now;
	}
	printf("%u starts, the slowest %u ms until it could send\n", done,
	       (unsigned)(slowest / MS));
	return 0;
}
