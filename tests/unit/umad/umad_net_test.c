/* SPDX-License-Identifier: BSD-2-Clause */
/* MADs of a program over UDP: questions, answers in segments, nodes that come later, and peers that lie. */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <ddpsess/ib_udp.h>
#include "umad/um.h"

#define AGENT	 1
#define PROGRAM	 9
#define HOSTILE	 66
#define SEGMENTS 0x80 /* method of an answer: GetTableResp is 0x92 */

static char net[INET_ADDRSTRLEN - 4];
static struct um *u, *peer;
static struct ddps_ib_udp *sa;
static pthread_t sa_thread;
static atomic_bool over;

static void ignore_um_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
			 size_t len, uint64_t now)
{
	(void)user, (void)from, (void)frame, (void)len, (void)now;
}

static void ignore_um_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	(void)user, (void)from, (void)mad, (void)len, (void)now;
}

static void ignore_um_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	(void)user, (void)qpn, (void)frame, (void)len, (void)now;
}

static void ignore_um_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	(void)user, (void)qpn, (void)err, (void)now;
}

static void ignore_um_path(void *user, const uint8_t *gid, const struct ddps_ipoib_path *p,
			   uint64_t now)
{
	(void)user, (void)gid, (void)p, (void)now;
}

static void ignore_um_joined(void *user, const uint8_t *mgid, int err, uint32_t mtu, uint64_t now)
{
	(void)mgid, (void)mtu, (void)now;
	*(bool *)user |= !err;
}

static void ignore_um_link(void *user, bool up, uint64_t now)
{
	(void)user, (void)up, (void)now;
}

static const struct ddps_ipoib_up quiet = { sizeof(quiet),    ignore_um_ud,    ignore_um_mad,
					    ignore_um_qp,     ignore_um_error, ignore_um_path,
					    ignore_um_joined, ignore_um_link };

/* A node of the library; LID 1 has the administration.  Return: DDPS_E_SYSTEM: the address is taken. */
static int make_um_node(struct ddps_ib_udp **out, uint8_t lid, bool *joined)
{
	struct ddps_ib_udp_config c;
	uint8_t broadcast[16];
	char why[300];
	int err;

	ddps_ib_udp_config_init(&c);
	cr_assert_eq(sscanf(net, "%hhu.%hhu.%hhu", &c.ip4[0], &c.ip4[1], &c.ip4[2]), 3);
	c.ip4[3] = lid;
	c.gid[0] = 0xfe;
	c.gid[1] = 0x80;
	c.gid[15] = lid;
	c.sa_lid = 1;
	c.qpn = 0x40;
	c.up = &quiet;
	err = ddps_ib_udp_new(out, &c, why, sizeof(why));
	if (err)
		return err;
	ddps_ib_udp_user(*out, joined);
	(void)ddps_ib_udp_run(*out, um_clock());
	cr_assert_eq(ddps_ipoib_mgid_broadcast(broadcast, 0xffff, 2), 0);
	return ddps_ib_udp_port(*out)->ops->join(ddps_ib_udp_port(*out), broadcast);
}

static void run_um_node(struct ddps_ib_udp *n)
{
	struct pollfd fds[DDPS_IB_UDP_FDS];

	ddps_ib_udp_fds(n, fds);
	(void)poll(fds, DDPS_IB_UDP_FDS, 5);
	(void)ddps_ib_udp_run(n, um_clock());
}

static void *serve_um_sa(void *arg)
{
	(void)arg;
	while (!over)
		run_um_node(sa);
	return NULL;
}

static int open_um(struct um **out, unsigned lid, const char *gid, char *why, size_t why_len)
{
	char text[100];
	int err;

	*out = calloc(1, sizeof(**out));
	cr_assert_not_null(*out);
	snprintf(text, sizeof(text), "%s.%u:4791,%s.1,%s", net, lid, net, gid);
	cr_assert_eq(um_read(*out, text, why, why_len), 0, "%s", why);
	err = um_open(*out, why, why_len);
	(*out)->agent[AGENT] = (struct um_agent){ .used = true, .rmpp = true };
	return err;
}

static void free_um(struct um *m)
{
	um_close(m);
	free(m);
}

/* Of a /24 of the loopback net that no other test has. */
static void setup(void)
{
	static bool joined;
	unsigned at = (unsigned)getpid() + 7;
	char why[300];
	int err = -1;

	for (unsigned i = 0; i < 50 && err; i++, at += 7919) {
		snprintf(net, sizeof(net), "127.%u.%u", 30 + at % 60, at / 60 % 256);
		err = make_um_node(&sa, 1, &joined);
	}
	cr_assert_eq(err, 0);
	over = false;
	cr_assert_eq(pthread_create(&sa_thread, NULL, serve_um_sa, NULL), 0);
	cr_assert_eq(open_um(&u, PROGRAM, "fe80::9", why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(open_um(&peer, HOSTILE, "fe80::66", why, sizeof(why)), 0, "%s", why);
}

static void teardown(void)
{
	free_um(u);
	free_um(peer);
	over = true;
	pthread_join(sa_thread, NULL);
	ddps_ib_udp_free(sa);
}

#define UmTest(name) Test(umad_net, name, .init = setup, .fini = teardown)

/* ---- MADs ---- */

static void begin_um_mad(uint8_t *mad, uint8_t class, uint8_t method, uint16_t attr, uint32_t tid)
{
	memset(mad, 0, DDPS_CM_MAD_LEN);
	mad[0] = mad[2] = 1;
	mad[1] = class;
	mad[3] = method;
	mad[11] = (uint8_t)u->key; /* overwritten when it is asked */
	mad[14] = (uint8_t)(tid >> 8);
	mad[15] = (uint8_t)tid;
	mad[16] = (uint8_t)(attr >> 8);
	mad[17] = (uint8_t)attr;
}

static int ask_um(uint16_t lid, const uint8_t *mad, int timeout_ms)
{
	const struct ib_user_mad head = { .addr.lid = htobe16(lid) };

	return um_send(u, AGENT, &head, mad, DDPS_CM_MAD_LEN, timeout_ms, 0);
}

/* The next message for the program, at most so long.  Return: NULL: none; else the caller frees it. */
static struct um_message *next_um(int ms)
{
	const uint64_t end = um_clock() + (uint64_t)ms * 1000000;
	struct pollfd fd[2] = { { .fd = u->poll, .events = POLLIN },
				{ .fd = peer->poll, .events = POLLIN } };

	struct um_message *m;

	while (TAILQ_EMPTY(&u->queue) && um_clock() < end) {
		(void)poll(fd, 2, 5);
		um_run(peer);
		um_run(u);
	}
	m = TAILQ_FIRST(&u->queue);
	if (!m)
		return NULL;
	TAILQ_REMOVE(&u->queue, m, of_queue);
	u->queued--;
	return m;
}

static void send_um_raw(struct um *from, uint16_t lid, const uint8_t *mad)
{
	const struct ib_user_mad head = { .addr.lid = htobe16(lid) };
	uint8_t out[DDPS_CM_MAD_LEN];

	memcpy(out, mad, sizeof(out)); /* an answer: its transaction ID stays */
	cr_assert_eq(um_send(from, AGENT, &head, out, sizeof(out), 0, 0), 0);
}

static void expect_um(uint8_t method, uint32_t status, const char *what)
{
	struct um_message *m = next_um(3000);

	cr_assert_not_null(m, "%s: nothing", what);
	cr_expect_eq(m->head.status, status, "%s: status %u", what, m->head.status);
	cr_expect_eq(m->mad[3], method, "%s: method %#x", what, m->mad[3]);
	free(m);
}

UmTest(contact_34_a_node_and_the_network_answer)
{
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct um_message *m;

	begin_um_mad(mad, DDPS_SMP_CLASS, 1, 0x11, 5);
	cr_assert_eq(ask_um(1, mad, 2000), 0);
	expect_um(0x81, 0, "NodeInfo of LID 1");
	begin_um_mad(mad, DDPS_SMP_CLASS, 1, 0x11, 6);
	cr_assert_eq(ask_um(UM_SWITCH, mad, 2000), 0);
	m = next_um(1000);
	cr_assert_not_null(m);
	cr_expect_eq(m->mad[64 + 2], 2, "a switch");
	cr_expect_eq(m->mad[4], 0, "no directed route, so no direction");
	free(m);
	begin_um_mad(mad, DDPS_PMA_CLASS, 1, 0x12, 7);
	mad[65] = 3;
	cr_assert_eq(ask_um(UM_SWITCH, mad, 2000), 0);
	expect_um(0x81, 0, "counters of the network");
	begin_um_mad(mad, DDPS_PMA_CLASS, 2, 0x12, 8);
	cr_assert_eq(ask_um(UM_SWITCH, mad, 100), 0);
	expect_um(2, ETIMEDOUT, "nobody sets anything");
	begin_um_mad(mad, DDPS_SMP_CLASS, 1, 0x11, 9);
	cr_expect_eq(ask_um(256, mad, 100), -EHOSTUNREACH);
	cr_expect_eq(ask_um(0, mad, 100), -EHOSTUNREACH);
	cr_assert_eq(ask_um(77, mad, 50), 0);
	expect_um(1, ETIMEDOUT, "nobody is there");
}

static void ask_directed(uint8_t to, uint32_t tid)
{
	uint8_t mad[DDPS_CM_MAD_LEN];

	begin_um_mad(mad, DDPS_SMP_DR_CLASS, 1, 0x11, tid);
	mad[7] = 2;
	mad[129] = 1;
	mad[130] = to;
	cr_assert_eq(ask_um(0xffff, mad, 1000), 0);
}

UmTest(contact_34_a_node_that_comes_later_is_seen)
{
	struct ddps_ib_udp *late = NULL;
	uint64_t end = um_clock() + 10000000000u;
	bool joined = false, seen = false;

	ask_directed(5, 1);
	expect_um(1, ETIMEDOUT, "nobody yet");
	cr_assert_eq(make_um_node(&late, 5, &joined), 0);
	while (!joined && um_clock() < end)
		run_um_node(late);
	cr_assert(joined);
	for (uint32_t tid = 2; !seen && um_clock() < end; tid++) {
		struct um_message *m = NULL;

		ask_directed(5, tid);
		while (!m && um_clock() < end) {
			run_um_node(late);
			m = next_um(1);
		}
		seen = m && !m->head.status && m->mad[3] == 0x81;
		free(m);
	}
	cr_expect(seen);
	ddps_ib_udp_free(late);
}

UmTest(contact_35_a_gid_in_use_is_refused)
{
	struct um *other;
	char why[300] = "";

	cr_expect_eq(open_um(&other, 10, "fe80::1", why, sizeof(why)), -1);
	cr_expect_eq(errno, EADDRINUSE);
	cr_expect_not_null(strstr(why, "LID 1 has the GID fe80::1 already; try: another GID"), "%s",
			   why);
	free_um(other);
}

/* ---- who lies ---- */

/* The answer that the hostile node may give, when it was asked. */
static void answer_as_asked(uint8_t *mad, uint32_t tid)
{
	const uint32_t upper = htobe32(u->key | AGENT);

	begin_um_mad(mad, DDPS_SA_CLASS, 0x92, DDPS_SA_NODE_RECORD, tid);
	mad[2] = 2;
	memcpy(mad + 8, &upper, sizeof(upper));
}

static void ask_hostile(uint16_t lid, uint32_t tid)
{
	uint8_t mad[DDPS_CM_MAD_LEN];

	begin_um_mad(mad, DDPS_SA_CLASS, 0x12, DDPS_SA_NODE_RECORD, tid);
	mad[2] = 2;
	cr_assert_eq(ask_um(lid, mad, 300), 0);
}

UmTest(contact_34_answers_to_nothing_are_dropped)
{
	uint8_t mad[DDPS_CM_MAD_LEN];

	ask_hostile(77, 1); /* which is not there */
	answer_as_asked(mad, 1);
	send_um_raw(peer, PROGRAM, mad); /* another LID answers for it */
	answer_as_asked(mad, 2);
	send_um_raw(peer, PROGRAM, mad);
	answer_as_asked(mad, 1);
	mad[8] ^= 0x40; /* of another process */
	send_um_raw(peer, PROGRAM, mad);
	expect_um(0x12, ETIMEDOUT, "the only thing that comes");
	cr_expect_null(next_um(20));
}

UmTest(contact_34_segments_that_lie)
{
	static const struct {
		struct ddps_rmpp r;
		uint32_t status; /* of what the program gets */
		uint8_t method;
	} lie[] = {
		{ { 2, 1, 1, 0 }, EPROTO, 0x12 },     /* an ACK instead of data */
		{ { 4, 1, 0, 0 }, EPROTO, 0x12 },     /* ABORT */
		{ { 9, 1, 1, 0 }, EPROTO, 0x12 },     /* no known type */
		{ { 1, 7, 0, 20 }, ETIMEDOUT, 0x12 }, /* segment 0 */
		{ { 1, 5, UINT32_MAX, 20 },
		  ETIMEDOUT,
		  0x12 },			      /* the last one, without the others */
		{ { 1, 7, 1, UINT32_MAX }, 0, 0x92 }, /* longer than a MAD: cut */
		{ { 1, 7, 1, 0 }, 0, 0x92 },	      /* shorter than nothing: whole */
	};
	uint8_t mad[DDPS_CM_MAD_LEN];

	for (uint32_t i = 0; i < sizeof(lie) / sizeof(*lie); i++) {
		ask_hostile(HOSTILE, 100 + i);
		answer_as_asked(mad, 100 + i);
		ddps_sa_rmpp_put(mad, &lie[i].r);
		mad[24] = 1;
		send_um_raw(peer, PROGRAM, mad);
		expect_um(lie[i].method, lie[i].status, "a lie");
		cr_expect_eq(u->queued, 0);
	}
}

/* The program does not read, or there is no end of segments: both are bounded. */
UmTest(contact_34_what_is_kept_is_bounded)
{
	struct ddps_rmpp r = { .type = 1, .flags = 1 };
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct um_message *m;

	u->agent[AGENT].mgmt_class = 0x32;
	u->agent[AGENT].methods[0] = UINT64_MAX;
	begin_um_mad(mad, 0x32, 7, 1, 1); /* TRAP_REPRESS: as it is, to whoever wants it */
	for (unsigned i = 0; i < UM_QUEUE + 200; i++) {
		send_um_raw(peer, PROGRAM, mad);
		um_run(u);
	}
	for (unsigned i = 0; i < 200; i++)
		um_run(u);
	cr_expect_eq(u->queued, UM_QUEUE);
	while ((m = next_um(0)))
		free(m);
	ask_hostile(HOSTILE, 1);
	for (r.segment = 1; TAILQ_EMPTY(&u->queue) && r.segment < 1000; r.segment++) {
		answer_as_asked(mad, 1);
		ddps_sa_rmpp_put(mad, &r);
		send_um_raw(peer, PROGRAM, mad);
		um_run(u);
		um_run(peer);
		for (unsigned i = 0; i < UM_PENDING && r.segment == 100; i++) {
			struct um_pending *p = &u->pending[i];

			if (!p->used) /* as if there had been 4 MiB but for a few */
				continue;
			p->table = realloc(p->table, UM_TABLE);
			cr_assert_not_null(p->table);
			p->len = UM_TABLE - 10 * DDPS_SA_RECORD_LEN;
		}
	}
	expect_um(0x12, ENOMEM, "no table without end");
}

UmTest(contact_34_octets_at_random)
{
	uint32_t rng = 1;
	uint8_t mad[DDPS_CM_MAD_LEN];
	struct um_message *m;

	u->agent[AGENT].mgmt_class = DDPS_SA_CLASS;
	u->agent[AGENT].methods[0] = UINT64_MAX;
	for (unsigned i = 0; i < 3000; i++) {
		if (i % 50 == 0)
			ask_hostile(HOSTILE, 1 + i % 7);
		answer_as_asked(mad, 1 + i % 7);
		for (unsigned k = 0; k < 1 + i % 40; k++) {
			rng = rng * 1664525u + 1013904223u;
			mad[(rng >> 8) % (i % 2 ? 64 : sizeof(mad))] = (uint8_t)(rng >> 24);
		}
		send_um_raw(peer, PROGRAM, mad);
		while ((m = next_um(0)))
			free(m);
		um_run(peer);
	}
	begin_um_mad(mad, DDPS_SMP_CLASS, 1, 0x11, 5);
	while ((m = next_um(400)))
		free(m);
	cr_assert_eq(ask_um(1, mad, 2000), 0);
	expect_um(0x81, 0, "it works as before");
}

/* ---- what cannot be ---- */

Test(umad_net, contact_34_settings_that_cannot_be)
{
	static const char *const bad[] = { "",
					   "127.0.0.9",
					   "127.0.0.9:4791,127.0.0.1",
					   "127.0.0.9:0,127.0.0.1,fe80::9",
					   "127.0.0.9:65536,127.0.0.1,fe80::9",
					   "127.0.0.9:4791,127.0.1.1,fe80::9",
					   "127.0.0.900:4791,127.0.0.1,fe80::9",
					   "127.0.0.9:4791,127.0.0.1,fe80:::9",
					   "127.0.0.9:4791,127.0.0.1,gid" };
	struct um *m = calloc(1, sizeof(*m));
	char why[300];

	cr_assert_not_null(m);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		why[0] = '\0';
		cr_expect_eq(um_read(m, bad[i], why, sizeof(why)), -1, "%s", bad[i]);
		cr_expect_not_null(strstr(why, "try: sessctl run --fabric"), "%s", why);
	}
	cr_expect_eq(um_read(m, NULL, why, sizeof(why)), -1);
	free(m);
}
