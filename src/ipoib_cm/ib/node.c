/* SPDX-License-Identifier: BSD-2-Clause */
/* A port: datagrams, MADs, and where a packet goes (IBA volume 1, 9.6). */
#include "ipoib_cm/ib/node_in.h"
#include <stdlib.h>
#include <string.h>

#define PKEY_DEFAULT   0xffff
#define UD_SEND	       (DDPS_IB_UD | DDPS_IB_SEND_ONLY)
#define RENEW_NS       5000000000ull /* nothing else says that the administration is another one */
#define MAD_OFF_CLASS  1
#define MAD_OFF_METHOD 3

/* ---- out ---- */

bool ddps_ib_node_put(struct ddps_ib_node *n, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	if (!n->cfg.send(n->cfg.wire, lid, group, p))
		return false;
	n->counted.tx++;
	n->counted.tx_data += DDPS_IB_COUNTED(p->len);
	n->counted.tx_groups += lid >= DDPS_MLID_FIRST;
	return true;
}

/* Return: 0, or DDPS_E_AGAIN. */
static int ud_out(struct ddps_ib_node *n, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	p->opcode = UD_SEND;
	p->migrated = true;
	if (ddps_ib_node_put(n, lid, group, p))
		return 0;
	n->stats.tx_full++;
	return DDPS_E_AGAIN;
}

void ddps_ib_node_mad(struct ddps_ib_node *n, uint16_t lid, const uint8_t *mad)
{
	struct ddps_ib_pkt p = { .pkey = PKEY_DEFAULT,
				 .qpn = DDPS_IB_GSI_QPN,
				 .psn = n->gsi_psn++ & DDPS_IB_PSN_MASK,
				 .qkey = DDPS_CM_QKEY,
				 .src_qpn = DDPS_IB_GSI_QPN,
				 .data = mad,
				 .len = DDPS_CM_MAD_LEN };

	n->stats.mad_tx += !ud_out(n, lid, 0, &p);
}

int ddps_ib_node_ud(struct ddps_ib_node *n, uint16_t lid, unsigned group, const uint8_t *gid,
		    uint32_t qpn, const void *frame, size_t len)
{
	const struct ddps_sa_mcm *link = ddps_sac_link(n->sac);
	struct ddps_ib_pkt p = { .pkey = n->cfg.pkey,
				 .qpn = qpn,
				 .psn = n->ud_psn++ & DDPS_IB_PSN_MASK,
				 .src_qpn = n->cfg.qpn,
				 .data = frame,
				 .len = len };
	struct ddps_ib_seen seen = { .tx = true,
				     .slid = n->cfg.lid,
				     .dlid = lid,
				     .from_qpn = n->cfg.qpn,
				     .to_qpn = qpn,
				     .group = lid >= DDPS_MLID_FIRST ? gid : NULL,
				     .frame = frame,
				     .len = len,
				     .from_gid = n->cfg.gid,
				     .to_gid = gid };
	int err;

	if (!link)
		return DDPS_E_AGAIN;
	if (len > 128u << (link->mtu & 0x3f))
		return DDPS_E_TOO_LONG;
	p.qkey = seen.qkey = link->qkey; /* [4391-9.1.2-1] */
	err = ud_out(n, lid, group, &p);
	n->stats.ud_tx += !err;
	if (!err && n->cfg.see)
		n->cfg.see(n->cfg.see_user, &seen);
	return err;
}

/* ---- what the interface asks for ---- */

static bool is_unicast(ddps_cm_addr lid)
{
	return lid && lid < DDPS_MLID_FIRST;
}

static int send_node_ud(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
			const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	struct ddps_ib_node *n = NODE(port);

	if (to->qpn == DDPS_IPOIB_QPN_MCAST)
		return ddps_togroup(&n->to_group, to->gid, frame, len, n->now);
	if (!path || !is_unicast(path->addr))
		return DDPS_E_ADDRESS;
	return ddps_ib_node_ud(n, (uint16_t)path->addr, 0, to->gid, to->qpn, frame, len);
}

static int join_node_group(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	return ddps_sac_join(NODE(port)->sac, mgid, NODE(port)->now);
}

static void leave_node_group(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	ddps_sac_leave(NODE(port)->sac, mgid, NODE(port)->now);
}

static int resolve_node_path(struct ddps_ipoib_port *port, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	return ddps_sac_path(NODE(port)->sac, gid, NODE(port)->now);
}

static int mad_send(struct ddps_ipoib_port *port, ddps_cm_addr to,
		    const uint8_t mad[DDPS_CM_MAD_LEN])
{
	if (!is_unicast(to))
		return DDPS_E_ADDRESS;
	ddps_ib_node_mad(NODE(port), (uint16_t)to, mad);
	return 0;
}

static const struct ddps_ipoib_port_ops ops = {
	.struct_size = sizeof(ops),
	.ud_send = send_node_ud,
	.join = join_node_group,
	.leave = leave_node_group,
	.resolve = resolve_node_path,
	.mad_send = mad_send,
	.qp_create = ddps_ib_node_qp_create,
	.qp_ready = ddps_ib_node_qp_ready,
	.qp_send = ddps_ib_node_qp_send,
	.qp_stop = ddps_ib_node_qp_stop,
	.qp_destroy = ddps_ib_node_qp_destroy,
};

/* ---- in ---- */

/* Of subnet administration: to the client, if it is for one and its port sends it, or to ours. */
static void sa_mad(struct ddps_ib_node *n, uint16_t slid, const uint8_t *mad)
{
	uint8_t method = mad[MAD_OFF_METHOD];
	bool to_client =
		method == DDPS_SA_REPORT ||
		(method & DDPS_SA_RESPONSE && method != (DDPS_SA_REPORT | DDPS_SA_RESPONSE));

	if (to_client && slid == n->cfg.sa_lid)
		ddps_sac_rx(n->sac, mad, n->now);
	else if (!to_client && n->sa)
		ddps_sa_rx(n->sa, slid, mad, n->now);
	else
		n->stats.mad_bad++;
}

/* Questions about the node itself. */
static bool is_answered(struct ddps_ib_node *n, uint16_t slid, const uint8_t *mad)
{
	struct ddps_ib_counters c = n->counted;
	struct ddps_ib_self s = { .lid = n->cfg.lid,
				  .sm_lid = n->cfg.sa_lid,
				  .pkey = n->cfg.pkey,
				  .mtu = n->cfg.mtu_max,
				  .life = n->cfg.life };
	uint8_t out[DDPS_CM_MAD_LEN];

	memcpy(s.gid, n->cfg.gid, sizeof(s.gid));
	c.rx_errors = n->stats.rx_pkey + n->stats.rx_qkey + n->stats.rx_qpn + n->stats.mad_bad;
	c.tx_discards = n->stats.tx_full;
	memcpy(out, mad, sizeof(out));
	if (!ddps_ib_agents_answer(out, &s, &c))
		return false;
	ddps_ib_node_mad(n, slid, out);
	return true;
}

static void gsi_rx(struct ddps_ib_node *n, uint16_t slid, const struct ddps_ib_pkt *p)
{
	if (p->qkey != DDPS_CM_QKEY) {
		n->stats.rx_qkey++;
		return;
	}
	n->stats.mad_rx++;
	if (p->len == DDPS_CM_MAD_LEN && p->data[MAD_OFF_CLASS] == DDPS_CM_CLASS)
		n->cfg.up->mad(n->user, slid, p->data, p->len, n->now);
	else if (p->len == DDPS_CM_MAD_LEN && p->data[MAD_OFF_CLASS] == DDPS_SA_CLASS)
		sa_mad(n, slid, p->data);
	else if (p->len != DDPS_CM_MAD_LEN || !is_answered(n, slid, p->data))
		n->stats.mad_bad++;
}

/* @group: the record of the group it came for, or NULL. */
static void ud_rx(struct ddps_ib_node *n, uint16_t slid, const struct ddps_sa_mcm *group,
		  const struct ddps_ib_pkt *p)
{
	const struct ddps_sa_mcm *link = ddps_sac_link(n->sac);
	/*
	 * The wire has no GRH, so the GID of a sender is made of its LID.  It informs the user of a
	 * port that this is not its own packet, come back from a group, though it may come from a
	 * queue pair with the same number.
	 */
	const struct ddps_ipoib_ud_from from = { .qpn = p->src_qpn,
						 .slid = slid,
						 .has_gid = group,
						 .gid = { [14] = (uint8_t)(slid >> 8),
							  (uint8_t)slid },
						 .multicast = group };
	const struct ddps_ib_seen seen = { .slid = slid,
					   .dlid = group ? group->mlid : n->cfg.lid,
					   .from_qpn = p->src_qpn,
					   .to_qpn = p->qpn,
					   .qkey = p->qkey,
					   .group = group ? group->mgid : NULL,
					   .frame = p->data,
					   .len = p->len,
					   .to_gid = group ? group->mgid : n->cfg.gid };

	if (!link || p->qkey != link->qkey) { /* [4391-9.1-1] */
		n->stats.rx_qkey++;
		return;
	}
	n->stats.ud_rx++;
	if (n->cfg.see)
		n->cfg.see(n->cfg.see_user, &seen);
	n->cfg.up->ud(n->user, &from, p->data, p->len, n->now);
}

static void group_rx(struct ddps_ib_node *n, uint16_t slid, uint16_t mlid,
		     const struct ddps_ib_pkt *p)
{
	const struct ddps_sa_mcm *group = ddps_sac_member(n->sac, mlid);

	if (slid == n->cfg.lid) /* our own, come back */
		return;
	if (!group || p->qpn != DDPS_IPOIB_QPN_MCAST)
		n->stats.rx_group++;
	else
		ud_rx(n, slid, group, p);
}

void ddps_ib_node_rx(struct ddps_ib_node *n, uint16_t slid, uint16_t mlid,
		     const struct ddps_ib_pkt *p, uint64_t now)
{
	bool ud = (p->opcode & DDPS_IB_TRANSPORT) == DDPS_IB_UD;
	bool gsi = ud && !mlid && p->qpn == DDPS_IB_GSI_QPN;

	n->now = now;
	if (n->suspect && n->suspect == slid)
		ddps_ib_node_say_hole(n);
	n->counted.rx++;
	n->counted.rx_data += DDPS_IB_COUNTED(p->len);
	n->counted.rx_groups += mlid != 0;
	if (!ddps_ib_pkey_match(p->pkey, n->cfg.pkey) &&
	    !(gsi && ddps_ib_pkey_match(p->pkey, PKEY_DEFAULT)))
		n->stats.rx_pkey++;
	else if (mlid && ud)
		group_rx(n, slid, mlid, p);
	else if (mlid)
		n->stats.rx_group++;
	else if (gsi)
		gsi_rx(n, slid, p);
	else if (!ud)
		ddps_ib_node_qp_rx(n, slid, p);
	else if (p->qpn == n->cfg.qpn)
		ud_rx(n, slid, NULL, p);
	else
		n->stats.rx_qpn++;
	ddps_ib_node_check(n);
}

/* ---- time ---- */

uint64_t ddps_ib_node_due(const struct ddps_ib_node *n)
{
	uint64_t due = ddps_sac_due(n->sac), t = ddps_ib_node_qp_due(n);

	due = t < due ? t : due;
	t = n->sa ? ddps_sa_due(n->sa) : due;
	return t < due ? t : due;
}

void ddps_ib_node_tick(struct ddps_ib_node *n, uint64_t now)
{
	n->now = now;
	if (ddps_sac_due(n->sac) <= now)
		ddps_sac_tick(n->sac, now);
	if (n->sa && ddps_sa_due(n->sa) <= now)
		ddps_sa_tick(n->sa, now);
	ddps_ib_node_qp_tick(n);
	ddps_ib_node_check(n);
}

/* ---- life ---- */

static void sa_send(void *user, uint16_t lid, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	ddps_ib_node_mad(user, lid, mad);
}

static int start_sa(struct ddps_ib_node *n)
{
	struct ddps_sa_config c = { .lid = n->cfg.lid,
				    .qkey = n->cfg.qkey,
				    .mtu = n->cfg.mtu,
				    .rate = 7, /* 40 Gbit/s: some that every adapter can */
				    .life = n->cfg.life,
				    .scope = n->cfg.scope,
				    .send = sa_send,
				    .user = n };

	if (n->cfg.sa_lid != n->cfg.lid)
		return 0;
	memcpy(c.gid, n->cfg.gid, sizeof(c.gid));
	c.pkey[0] = n->cfg.pkey | 0x8000;
	memcpy(c.pkey + 1, n->cfg.pkeys, sizeof(n->cfg.pkeys));
	n->sa = ddps_sa_new(&c);
	return n->sa ? 0 : DDPS_E_NOMEM;
}

static int start_client(struct ddps_ib_node *n)
{
	struct ddps_sac_config c = {
		.pkey = n->cfg.pkey,
		.seed = n->cfg.seed,
		.renew_ns = RENEW_NS,
		.ops = &ddps_ib_node_sac_ops,
		.user = n,
	};

	memcpy(c.gid, n->cfg.gid, sizeof(c.gid));
	if (ddps_ipoib_mgid_broadcast(c.broadcast, n->cfg.pkey, n->cfg.scope))
		return DDPS_E_INVAL;
	n->sac = ddps_sac_new(&c);
	if (!n->sac)
		return DDPS_E_NOMEM;
	ddps_ib_node_groups_new(n);
	return 0;
}

/* No partition twice; and without an administration here there is nobody to have them. */
static bool pkeys_fit(const struct ddps_ib_node_config *c)
{
	for (unsigned i = 0; i < DDPS_IB_UDP_PKEYS && c->pkeys[i]; i++) {
		if (c->lid != c->sa_lid || !(c->pkeys[i] & 0x7fff) ||
		    !((c->pkeys[i] ^ c->pkey) & 0x7fff))
			return false;
		for (unsigned k = 0; k < i; k++)
			if (!((c->pkeys[i] ^ c->pkeys[k]) & 0x7fff))
				return false;
	}
	return true;
}

static bool node_config_fits(const struct ddps_ib_node_config *c)
{
	return pkeys_fit(c) && c->lid && c->lid < DDPS_SA_LIDS && c->sa_lid &&
	       c->sa_lid < DDPS_SA_LIDS && c->qpn > DDPS_IB_GSI_QPN &&
	       c->qpn < DDPS_IPOIB_QPN_MCAST && c->pkey & 0x7fff && c->mtu >= 1 &&
	       c->mtu <= c->mtu_max && c->mtu_max <= 5 && c->life <= DDPS_CM_TIME_MAX &&
	       c->max_qps && c->max_qps <= 65536 && c->send && c->up;
}

int ddps_ib_node_new(struct ddps_ib_node **out, const struct ddps_ib_node_config *cfg)
{
	struct ddps_ib_node *n;
	int err;

	if (!node_config_fits(cfg))
		return DDPS_E_INVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return DDPS_E_NOMEM;
	n->port.ops = &ops;
	n->cfg = *cfg;
	n->ud_psn = cfg->seed;
	err = start_client(n);
	if (!err)
		err = start_sa(n);
	if (!err)
		err = ddps_ib_node_qps_new(n);
	if (err) {
		ddps_ib_node_free(n);
		return err;
	}
	*out = n;
	return 0;
}

void ddps_ib_node_free(struct ddps_ib_node *n)
{
	if (!n)
		return;
	ddps_ib_node_qps_free(n);
	ddps_togroup_drop(&n->to_group);
	ddps_sac_free(n->sac);
	ddps_sa_free(n->sa);
	free(n);
}

struct ddps_ipoib_port *ddps_ib_node_port(struct ddps_ib_node *n)
{
	return &n->port;
}

void ddps_ib_node_user(struct ddps_ib_node *n, void *user)
{
	n->user = user;
}

bool ddps_ib_node_unheard(const struct ddps_ib_node *n)
{
	return ddps_sac_unheard(n->sac);
}

const char *ddps_ib_node_why(const struct ddps_ib_node *n)
{
	return n->off ? n->off_why : n->why;
}

const char *ddps_ib_node_notice(struct ddps_ib_node *n)
{
	if (n->hole_news) {
		n->hole_news = false;
		return n->hole_text;
	}
	return n->sa ? ddps_sa_notice(n->sa) : NULL;
}

const char *ddps_ib_node_counter(const struct ddps_ib_node *n, unsigned i, uint64_t *value)
{
	static const struct ddps_sa_stats no_sa;
	const struct ddps_sac_stats *sac = ddps_sac_stats(n->sac);
	const struct ddps_sa_stats *sa = n->sa ? ddps_sa_stats(n->sa) : &no_sa;
	unsigned k = 0;

#define COUNTER(from, name)                                                                        \
	if (k++ == i) {                                                                            \
		*value = (from)->name;                                                             \
		return #name;                                                                      \
	}
#define DDPS_X(name, text) COUNTER(&n->stats, name)
	DDPS_IB_NODE_STATS(DDPS_X)
#undef DDPS_X
#define DDPS_X(name, text) COUNTER(&n->env.stats, name)
	DDPS_IB_QP_STATS(DDPS_X)
#undef DDPS_X
#define DDPS_X(name, text) COUNTER(sac, name)
	DDPS_SAC_STATS(DDPS_X)
#undef DDPS_X
#define DDPS_X(name, text) COUNTER(sa, name)
	DDPS_SA_STATS(DDPS_X)
#undef DDPS_X
	return NULL;
}
