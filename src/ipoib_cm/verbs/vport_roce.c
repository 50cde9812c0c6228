/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RoCE has instead of a subnet administration: nobody.  Every GID is reached by itself, every
 * group is there, and what an administration would say of the link is in the configuration.  So the
 * queries of the client are answered here, in the port's next turn.
 */
#include "ipoib_cm/verbs/vport_in.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define QKEY_DEFAULT 0x0b1bu
#define LIFE	     16 /* 268 ms, as Linux's rdma_cm has it for RoCE */
#define RATE	     3	/* 10 Gbit/s; nothing is held to it */
#define EXACTLY	     (DDPS_SEL_EXACTLY << 6)
#define TABLE_MAX    1024

/* ---- the GID ---- */

static bool is_gid_link_local(const uint8_t *gid)
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* An IPv4 one, ::ffff:a.b.c.d, has other groups than those of RFC 4391. */
static bool is_ip6(const uint8_t *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff }, none[16];

	return memcmp(gid, mapped, sizeof(mapped)) != 0 && memcmp(gid, none, sizeof(none)) != 0;
}

static bool read_gid_entry(struct ddps_ib_verbs *v, uint32_t index, struct ibv_gid_entry *e)
{
	return !v->lib.query_gid_ex(v->ctx, v->info.port, index, e, 0, sizeof(*e)) &&
	       e->gid_type == IBV_GID_TYPE_ROCE_V2 && is_ip6(e->gid.raw);
}

static int no_gid(struct ddps_ib_verbs *v)
{
	if (v->cfg.gid_index)
		ddps_vport_say(v,
			       "GID %u of %s:%u is no IPv6 address of RoCE version 2; try: "
			       "/sys/class/infiniband/%s/ports/%u/gid_attrs/types",
			       v->cfg.gid_index, v->info.device, v->info.port, v->info.device,
			       v->info.port);
	else
		ddps_vport_say(v,
			       "%s:%u has no GID of RoCE version 2 that is a link-local address; "
			       "try: is IPv6 on for its network device (ip -6 address)?",
			       v->info.device, v->info.port);
	return DDPS_E_ADDRESS;
}

int ddps_vport_roce_gid(struct ddps_ib_verbs *v)
{
	bool fixed = v->cfg.gid_index || v->info.qpn; /* asked for, or chosen before */
	uint32_t i = v->info.qpn ? v->info.gid_index : v->cfg.gid_index;
	struct ibv_gid_entry e = { .gid_index = 0 };

	if (!v->lib.query_gid_ex) {
		ddps_vport_say(v, "libibverbs says nothing of RoCE's GIDs; try: rdma-core 34 or "
				  "later");
		return DDPS_E_UNSUPPORTED;
	}
	for (uint32_t end = fixed ? i + 1 : TABLE_MAX; i < end && i <= UINT8_MAX; i++)
		if (read_gid_entry(v, i, &e) && (fixed || is_gid_link_local(e.gid.raw))) {
			memcpy(v->info.gid, e.gid.raw, sizeof(v->info.gid));
			v->info.gid_index = (uint8_t)i;
			v->ifindex = e.ndev_ifindex;
			return 0;
		}
	return no_gid(v);
}

/* ---- groups ---- */

int ddps_vport_roce_group(struct ddps_ib_verbs *v, const uint8_t mgid[DDPS_IPOIB_GID_LEN],
			  bool join)
{
	/* the adapter takes the packets; that they are for this host its IP layer has to know */
	return v->lib.netdev_group(&v->netdev, v->ifindex, mgid, join);
}

void ddps_vport_roce_free(struct ddps_ib_verbs *v)
{
	if (v->netdev >= 0)
		close(v->netdev);
	v->netdev = -1;
}

/* ---- answers ---- */

static void put_roce_path(const struct ddps_ib_verbs *v, uint8_t *mad, const uint8_t *query)
{
	struct ddps_sa_pr r;

	ddps_sa_pr_get(&r, query);
	r.dlid = r.slid = 1; /* the client wants some; on_path() of vport_group.c drops them */
	r.hop = is_gid_link_local(r.dgid) ? 1 : 64;
	r.mtu = EXACTLY | v->info.mtu;
	r.rate = EXACTLY | RATE;
	r.life = EXACTLY | LIFE;
	ddps_sa_pr_put(mad, &r);
}

static void put_group(const struct ddps_ib_verbs *v, uint8_t *mad, const uint8_t *query)
{
	struct ddps_sa_mcm r;

	ddps_sa_mcm_get(&r, query);
	r.qkey = v->cfg.qkey ? v->cfg.qkey : QKEY_DEFAULT;
	r.mtu = EXACTLY | (v->cfg.mtu ? v->cfg.mtu : v->info.mtu);
	r.rate = EXACTLY | RATE;
	r.life = EXACTLY | LIFE;
	r.pkey = v->info.pkey;
	r.mlid = DDPS_MLID_FIRST;
	r.scope = v->cfg.scope;
	r.hop = 1;
	r.tclass = r.sl = 0;
	r.flow = 0;
	ddps_sa_mcm_put(mad, &r);
}

void ddps_vport_roce_query(struct ddps_ib_verbs *v, const uint8_t query[DDPS_CM_MAD_LEN])
{
	uint8_t *mad = v->answers.mad[(v->answers.first + v->answers.n) % VP_ANSWERS];
	struct ddps_sa_head h;

	if (v->answers.n == VP_ANSWERS || ddps_sa_mad_head(&h, query) ||
	    (h.method != DDPS_SA_GET && h.method != DDPS_SA_SET))
		return; /* the client asks again; to a Delete it wants no answer */
	h.method = DDPS_SA_GET_RESP;
	h.status = DDPS_SA_OK;
	ddps_sa_mad_begin(mad, &h);
	if (h.attr == DDPS_SA_PATH_RECORD)
		put_roce_path(v, mad, query);
	else if (h.attr == DDPS_SA_MCMEMBER_RECORD)
		put_group(v, mad, query);
	v->answers.n++;
}

void ddps_vport_roce_run(struct ddps_ib_verbs *v)
{
	/* those that come of these wait for the next turn */
	for (unsigned n = v->answers.n; n > 0; n--) {
		uint8_t mad[DDPS_CM_MAD_LEN];

		memcpy(mad, v->answers.mad[v->answers.first], sizeof(mad));
		v->answers.first = (v->answers.first + 1) % VP_ANSWERS;
		v->answers.n--;
		ddps_sac_rx(v->sac, mad, v->now);
	}
}
