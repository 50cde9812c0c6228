/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef IB_VERBS_FIXTURE_H
#define IB_VERBS_FIXTURE_H
/* Ports of adapters on the fabric of fabric/fake.h, with interfaces above them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <ddpsess/ipoib_if.h>
#include "fabric/fake.h"
#include "support/ip4.h"

/* not each file of tests needs all of it */
#pragma GCC diagnostic ignored "-Wunused-function"

#define MS  1000000ull
#define SEC (1000 * MS)

struct peer {
	struct ddps_ib_verbs *v;
	struct ddps_ipoib_if *f;
	unsigned n_rx, n_see, n_see_uc;
	uint8_t see_from[2][16], see_to[2][16]; /* GIDs of the last datagram that came, that left */
	size_t len;
	int join_err; /* of the last join */
	unsigned n_link, n_joined;
	bool link;
	char link_why[200]; /* as it was when the interface was informed that the link is gone */
	int qp_err;
	uint32_t qp_failed;
	unsigned n_path, n_no_path;
	struct ddps_ipoib_path path; /* the last one */
};

static struct peer peer[FAKES];
static uint8_t flags; /* the modes of interfaces */
static char why[400];
static uint8_t link_mtu; /* on RoCE; 0: the default */
static uint32_t link_qkey;
static size_t octets; /* of messages, each way */

static void deliver_to_ib_verbs(void *user, const void *packet, size_t len)
{
	struct peer *p = user;
	const uint8_t *at = packet;

	for (size_t i = 20; i < len; i++)
		cr_assert_eq(at[i], (uint8_t)(i * 7 + i / 251), "octet %zu", i);
	p->n_rx++;
	p->len = len;
}

/* ---- what the port says, noted and passed on ---- */

static void take_ib_verbs_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
			     size_t len, uint64_t now)
{
	ddps_ipoib_if_up()->ud(((struct peer *)user)->f, from, frame, len, now);
}

static void take_ib_verbs_mad(void *user, ddps_cm_addr from, const void *mad, size_t len,
			      uint64_t now)
{
	ddps_ipoib_if_up()->mad(((struct peer *)user)->f, from, mad, len, now);
}

static void take_ib_verbs_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	ddps_ipoib_if_up()->qp(((struct peer *)user)->f, qpn, frame, len, now);
}

static void take_ib_verbs_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	((struct peer *)user)->qp_err = err;
	((struct peer *)user)->qp_failed = qpn;
	ddps_ipoib_if_up()->qp_error(((struct peer *)user)->f, qpn, err, now);
}

static void take_ib_verbs_path(void *user, const uint8_t *gid, const struct ddps_ipoib_path *path,
			       uint64_t now)
{
	struct peer *p = user;

	p->n_path += path != NULL;
	p->n_no_path += path == NULL;
	if (path)
		p->path = *path;
	ddps_ipoib_if_up()->path(p->f, gid, path, now);
}

static void take_ib_verbs_joined(void *user, const uint8_t *mgid, int err, uint32_t mtu,
				 uint64_t now)
{
	((struct peer *)user)->join_err = err;
	((struct peer *)user)->n_joined += !err;
	ddps_ipoib_if_up()->joined(((struct peer *)user)->f, mgid, err, mtu, now);
}

static void take_ib_verbs_link(void *user, bool up, uint64_t now)
{
	((struct peer *)user)->n_link++;
	((struct peer *)user)->link = up;
	if (!up)
		snprintf(((struct peer *)user)->link_why, sizeof(((struct peer *)user)->link_why),
			 "%s", ddps_ib_verbs_why(((struct peer *)user)->v));
	ddps_ipoib_if_up()->link(((struct peer *)user)->f, up, now);
}

static const struct ddps_ipoib_up up_calls = {
	sizeof(struct ddps_ipoib_up), take_ib_verbs_ud,	  take_ib_verbs_mad,	take_ib_verbs_qp,
	take_ib_verbs_qp_error,	      take_ib_verbs_path, take_ib_verbs_joined, take_ib_verbs_link
};

static void on_see(void *user, const struct ddps_ib_seen *s)
{
	cr_expect_gt(s->len, 4);
	if (!s->connected && s->from_gid) {
		memcpy(((struct peer *)user)->see_from[s->tx], s->from_gid, 16);
		memcpy(((struct peer *)user)->see_to[s->tx], s->to_gid, 16);
	}
	((struct peer *)user)->n_see++;
	((struct peer *)user)->n_see_uc += s->uc;
}

/* ---- life ---- */

static struct ddps_ib_verbs_config make_ib_verbs_config(unsigned i)
{
	struct ddps_ib_verbs_config c;

	ddps_ib_verbs_config_init(&c);
	c.device = fake[i].name;
	c.seed = 7 + i;
	c.up = &up_calls;
	c.see = on_see;
	c.see_user = &peer[i];
	c.rx_octets = c.tx_octets = octets;
	c.mtu = link_mtu;
	c.qkey = link_qkey;
	return c;
}

static int try_open_ib_verbs(unsigned i)
{
	struct ddps_ib_verbs_config c = make_ib_verbs_config(i);

	return ddps_vport_new(&peer[i].v, &c, &fake_lib, why, sizeof(why));
}

static void make_ib_verbs(unsigned i)
{
	struct ddps_ipoib_if_calls calls = { sizeof(calls), deliver_to_ib_verbs, NULL, &peer[i] };
	const struct ddps_ib_verbs_info *info;
	struct ddps_ipoib_if_config f;

	cr_assert_eq(try_open_ib_verbs(i), 0, "%s", why);
	info = ddps_ib_verbs_info(peer[i].v);
	ddps_ipoib_if_config_init(&f);
	f.me.addr = (struct ddps_ipoib_lladdr){ .flags = flags, .qpn = info->qpn };
	memcpy(f.me.addr.gid, info->gid, 16);
	f.me.pkey = info->pkey;
	f.me.rx_mtu = 65524;
	f.has_ip4 = true;
	memcpy(f.ip4, (uint8_t[4]){ 10, 0, 0, (uint8_t)(1 + i) }, 4);
	f.prefix4 = 24;
	f.retry_count = f.rnr_retry = 7;
	f.ca_guid = info->node_guid;
	f.seed = i;
	f.probe_ns = MS;
	cr_assert_eq(ddps_ipoib_if_new(&peer[i].f, &f, ddps_ib_verbs_port(peer[i].v), &calls), 0);
	ddps_ib_verbs_user(peer[i].v, &peer[i]);
	(void)ddps_ib_verbs_run(peer[i].v, fake_now);
	cr_assert_eq(ddps_ipoib_if_start(peer[i].f, fake_now), 0);
}

static void init(void)
{
	fake_init();
	fake_sa_start(0x0b1b);
	flags = DDPS_IPOIB_RC;
	octets = 1 << 20;
	memset(peer, 0, sizeof(peer));
}

static void fini(void)
{
	for (unsigned i = 0; i < FAKES; i++) {
		if (peer[i].f)
			ddps_ipoib_if_stop(peer[i].f, fake_now);
		ddps_ipoib_if_free(peer[i].f);
		ddps_ib_verbs_free(peer[i].v);
	}
	fake_fini();
}

static void turn_ib_verbs(void)
{
	fake_now += MS;
	if (fake_sa && ddps_sa_due(fake_sa) <= fake_now)
		ddps_sa_tick(fake_sa, fake_now);
	for (unsigned i = 0; i < FAKES; i++) {
		if (!peer[i].v)
			continue;
		for (unsigned k = 0; ddps_ib_verbs_run(peer[i].v, fake_now); k++)
			cr_assert_lt(k, 100);
		if (peer[i].f && ddps_ipoib_if_deadline(peer[i].f) <= fake_now)
			ddps_ipoib_if_tick(peer[i].f, fake_now);
	}
}

static void run_ib_verbs(uint64_t ns)
{
	for (uint64_t end = fake_now + ns; fake_now < end;)
		turn_ib_verbs();
}

/* Until nothing is on its way to that port. */
static void settle_ib_verbs(unsigned i)
{
	do
		turn_ib_verbs();
	while (fake[i].n_wc[0] || fake[i].n_wc[1] || fake[i].n_mad);
}

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t end = fake_now + 60 * SEC;                                                \
		while (!(condition)) {                                                             \
			cr_assert_lt(fake_now, end, #condition);                                   \
			turn_ib_verbs();                                                           \
		}                                                                                  \
	} while (0)

static uint64_t count_ib_verbs(unsigned i, const char *name)
{
	const char *at;
	uint64_t v;

	for (unsigned k = 0; (at = ddps_ib_verbs_counter(peer[i].v, k, &v)); k++)
		if (!strcmp(at, name))
			return v;
	cr_assert(false, "no counter %s", name);
	return 0;
}

static void send_ib_verbs_ip(unsigned from, unsigned to, size_t len)
{
	static uint8_t p[65536];

	for (size_t i = 20; i < len; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
	ip4_between(p, len, 0, from, to);
	cr_assert_eq(ddps_ipoib_if_send(peer[from].f, p, len, fake_now), 0);
}

static bool is_ib_verbs_up(unsigned i)
{
	struct ddps_ipoib_if_addr_info a;

	return ddps_ipoib_if_state(peer[i].f) == DDPS_IPOIB_IF_UP &&
	       ddps_ipoib_if_addr_info(peer[i].f, 0, &a) == 1 && a.held;
}

static void two_up(void)
{
	make_ib_verbs(0);
	make_ib_verbs(1);
	UNTIL(is_ib_verbs_up(0) && is_ib_verbs_up(1));
	for (unsigned i = 0; i < 5; i++) /* each announces its address twice, 2 ms apart */
		turn_ib_verbs();
}

static unsigned count_ib_verbs_conns(unsigned i)
{
	struct ddps_ipoib_if_conn_info info;
	unsigned n = 0;
	int res;

	for (unsigned k = 0; (res = ddps_ipoib_if_conn_info(peer[i].f, k, &info)) >= 0; k++)
		n += res && info.up;
	return n;
}

/* The queue pair of the connection that is up. */
static struct fake_qp *conn(unsigned i)
{
	for (unsigned k = 0; k < FAKE_QPS; k++)
		if (fake[i].qp[k].used && fake[i].qp[k].init.srq &&
		    fake[i].qp[k].state == IBV_QPS_RTS)
			return &fake[i].qp[k];
	cr_assert(false, "no connection");
	return NULL;
}

static void connect_two_interfaces(void)
{
	two_up();
	send_ib_verbs_ip(0, 1, 60000);
	UNTIL(peer[1].n_rx == 1 && count_ib_verbs_conns(0) == 1 && count_ib_verbs_conns(1) == 1);
}

static inline void init_roce(void)
{
	init();
	fake_make_roce();
}

static inline void expect_reason(unsigned i, const char *what)
{
	cr_expect(strstr(ddps_ib_verbs_why(peer[i].v), what), "'%s' says nothing of '%s'",
		  ddps_ib_verbs_why(peer[i].v), what);
}

#endif
