/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces on a fabric in memory. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ipoib_net_fixture.h"

static void take_ipoib_net_delivery(void *user, const void *packet, size_t len)
{
	struct net_node *n = user;

	cr_assert_leq(len, LAST_MAX);
	n->n_rx++;
	n->last_len = len;
	memcpy(n->last, packet, len);
}

static void take_ipoib_net_trace(void *user, bool tx, ddps_cm_addr addr, const void *mad,
				 size_t len, uint64_t now)
{
	struct net_node *n = user;
	struct ddps_cm_mad m;

	(void)now;
	if (!tx)
		return;
	cr_assert(addr && len == DDPS_CM_MAD_LEN);
	cr_assert_eq(ddps_cm_mad_decode(&m, mad, len), 0);
	n->reqs += m.hdr.attr_id == DDPS_CM_REQ;
	n->reps += m.hdr.attr_id == DDPS_CM_REP;
	n->dreqs += m.hdr.attr_id == DDPS_CM_DREQ;
	if (m.hdr.attr_id == DDPS_CM_REQ)
		n->last_req = m;
	if (m.hdr.attr_id == DDPS_CM_REP)
		n->last_rep = m;
	if (m.hdr.attr_id == DDPS_CM_REJ) {
		n->rejs++;
		n->last_rej = m;
	}
}

void net_init(struct net *t, unsigned n, uint64_t seed, uint8_t flags)
{
	const struct ddps_ipoib_sim_config sim = {
		.struct_size = sizeof(sim),
		.seed = seed,
		.nodes = n,
		.link_mtu = 2048,
		.faults = { .min_delay = 1000, .max_delay = 5000 },
	};

	memset(t, 0, sizeof(*t));
	cr_assert_leq(n, NET_MAX);
	t->n = n;
	cr_assert_eq(ddps_ipoib_sim_new(&t->sim, &sim), 0);
	for (unsigned i = 0; i < n; i++) {
		struct net_node *node = &t->node[i];
		struct ddps_ipoib_if_config *c = &node->cfg;
		const uint8_t gid[16] = { 0xfe,
					  0x80,
					  [9] = 2,
					  [10] = 0xc9,
					  [11] = 3,
					  [14] = (uint8_t)((i + 1) >> 8),
					  [15] = (uint8_t)(i + 1) };

		ddps_ipoib_if_config_init(c);
		node->net = t;
		node->nr = i;
		c->me.addr.flags = flags;
		c->me.addr.qpn = 0x48 + i;
		memcpy(c->me.addr.gid, gid, 16);
		c->me.pkey = 0xffff;
		c->me.rx_mtu = flags ? RX_MTU_CM : RX_MTU_UD;
		c->has_ip4 = true;
		memcpy(c->ip4, (uint8_t[]){ 10, 0, (uint8_t)((i + 1) >> 8), (uint8_t)(i + 1) }, 4);
		c->prefix4 = 16;
		c->n_ip6 = 1;
		memcpy(c->ip6[0], gid, 16);
		ddps_ipoib_iid(c->ip6[0] + 8, gid + 8, false);
		c->ca_guid = 0x1000 + i;
		c->seed = (uint32_t)(seed * 31 + i);
		c->cm_timeout = 12; /* about 17 ms */
		c->probe_ns = MS;
		c->policy.backoff_ns = 100 * MS;
		node->last = malloc(LAST_MAX);
		cr_assert_not_null(node->last);
	}
}

void net_fini(struct net *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		ddps_ipoib_if_free(t->node[i].f);
		free(t->node[i].last);
	}
	ddps_ipoib_sim_free(t->sim);
}

void net_start(struct net *t, unsigned i)
{
	struct net_node *n = &t->node[i];
	const struct ddps_ipoib_if_calls c = { sizeof(c), take_ipoib_net_delivery,
					       take_ipoib_net_trace, n };

	cr_assert_eq(ddps_ipoib_sim_if_start(&n->f, t->sim, i, &n->cfg, &c), 0);
}

void net_start_all(struct net *t)
{
	for (unsigned i = 0; i < t->n; i++)
		net_start(t, i);
	net_run(t, 10 * MS);
}

void net_kill(struct net *t, unsigned i)
{
	ddps_ipoib_sim_if_kill(t->node[i].f, t->sim, i);
	t->node[i].f = NULL;
}

void net_run(struct net *t, uint64_t for_ns)
{
	ddps_ipoib_sim_run(t->sim, ddps_ipoib_sim_now(t->sim) + for_ns);
}

uint16_t net_cksum(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

size_t net_packet4(const struct net *t, uint8_t *p, unsigned from, unsigned to, size_t len, bool df)
{
	uint16_t sum;

	memset(p, 0, len);
	p[0] = 0x45;
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
	p[5] = 7;
	p[6] = df ? 0x40 : 0;
	p[8] = 64;
	p[9] = 17;
	memcpy(p + 12, t->node[from].cfg.ip4, 4);
	memcpy(p + 16, t->node[to].cfg.ip4, 4);
	sum = net_cksum(p, 20, 0);
	p[10] = (uint8_t)(sum >> 8);
	p[11] = (uint8_t)sum;
	for (size_t i = 20; i < len; i++)
		p[i] = (uint8_t)(i * 7);
	return len;
}

size_t net_packet6(const struct net *t, uint8_t *p, unsigned from, unsigned to, size_t len)
{
	memset(p, 0, len);
	p[0] = 0x60;
	p[4] = (uint8_t)((len - 40) >> 8);
	p[5] = (uint8_t)(len - 40);
	p[6] = 17;
	p[7] = 64;
	memcpy(p + 8, t->node[from].cfg.ip6[0], 16);
	memcpy(p + 24, t->node[to].cfg.ip6[0], 16);
	return len;
}

void net_send4(struct net *t, unsigned from, unsigned to, size_t len, bool df)
{
	static _Thread_local uint8_t p[LAST_MAX];

	net_packet4(t, p, from, to, len, df);
	cr_assert_eq(ddps_ipoib_if_send(t->node[from].f, p, len, ddps_ipoib_sim_now(t->sim)), 0);
}

void net_send6(struct net *t, unsigned from, unsigned to, size_t len)
{
	static _Thread_local uint8_t p[LAST_MAX];

	net_packet6(t, p, from, to, len);
	cr_assert_eq(ddps_ipoib_if_send(t->node[from].f, p, len, ddps_ipoib_sim_now(t->sim)), 0);
}

const struct ddps_ipoib_if_stats *net_stats(const struct net *t, unsigned i)
{
	return ddps_ipoib_if_stats(t->node[i].f);
}

unsigned net_conns(const struct net *t, unsigned i)
{
	struct ddps_ipoib_if_conn_info info;
	unsigned n = 0;
	int r;

	for (unsigned nr = 0; (r = ddps_ipoib_if_conn_info(t->node[i].f, nr, &info)) >= 0; nr++)
		n += r && info.up;
	return n;
}

bool net_nbr(const struct net *t, unsigned i, unsigned to, bool ip6,
	     struct ddps_ipoib_if_nbr_info *info)
{
	const struct ddps_ipoib_if_config *c = &t->node[to].cfg;
	int r;

	for (unsigned nr = 0; (r = ddps_ipoib_if_nbr_info(t->node[i].f, nr, info)) >= 0; nr++)
		if (r && info->ip6 == ip6 &&
		    memcmp(info->ip, ip6 ? c->ip6[0] : c->ip4, ip6 ? 16 : 4) == 0)
			return true;
	return false;
}
