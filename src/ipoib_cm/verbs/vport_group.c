/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups and paths: what the client of subnet administration says, done with the adapter. */
#include "ipoib_cm/verbs/vport_in.h"
#include <errno.h>
#include <string.h>

#define CODE 0x3f

static bool is_vport_broadcast(const struct ddps_ib_verbs *v, const uint8_t *mgid)
{
	uint8_t b[DDPS_IPOIB_GID_LEN] = { 0 };

	(void)ddps_ipoib_mgid_broadcast(b, v->cfg.pkey, v->cfg.scope);
	return !memcmp(b, mgid, sizeof(b));
}

static struct vp_attached *find_attached(struct ddps_ib_verbs *v, const uint8_t *mgid)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (v->attached[i].used && !memcmp(v->attached[i].mgid, mgid, DDPS_IPOIB_GID_LEN))
			return &v->attached[i];
	return NULL;
}

static void detach_group(struct ddps_ib_verbs *v, struct vp_attached *a)
{
	union ibv_gid gid;

	memcpy(gid.raw, a->mgid, sizeof(gid.raw));
	(void)v->lib.detach_mcast(v->ud, &gid, a->mlid);
	if (v->info.roce)
		(void)ddps_vport_roce_group(v, a->mgid, false);
	a->used = false;
}

/* The adapter gives the queue pair what comes for the group: after the join, under its MLID. */
static int attach_group(struct ddps_ib_verbs *v, const struct ddps_sa_mcm *rec)
{
	struct vp_attached *a = find_attached(v, rec->mgid);
	union ibv_gid gid;
	int err;

	if (a && a->mlid == rec->mlid)
		return 0;
	if (a)
		detach_group(v, a);
	for (unsigned i = 0; i < DDPS_SAC_GROUPS && !a; i++)
		a = v->attached[i].used ? NULL : &v->attached[i];
	if (!a) /* as many as the client has groups */
		return DDPS_E_LIMIT;
	memcpy(gid.raw, rec->mgid, sizeof(gid.raw));
	err = v->info.roce ? ddps_vport_roce_group(v, rec->mgid, true) : 0;
	if (!err) {
		err = v->lib.attach_mcast(v->ud, &gid, rec->mlid);
		if (err && v->info.roce)
			(void)ddps_vport_roce_group(v, rec->mgid, false);
	}
	if (err) {
		char text[DDPS_IPOIB_GID_TEXT];

		ddps_ipoib_gid_print(text, rec->mgid);
		ddps_vport_say(v, "%s does not attach to group %s, MLID 0x%04x: %s", v->info.device,
			       text, rec->mlid, strerror(err));
		errno = err;
		return DDPS_E_SYSTEM;
	}
	*a = (struct vp_attached){ .used = true, .mlid = rec->mlid };
	memcpy(a->mgid, rec->mgid, sizeof(a->mgid));
	return 0;
}

/* What the broadcast group says is so for the link [4391-9.1.2-1]. */
static int take_link(struct ddps_ib_verbs *v, const struct ddps_sa_mcm *rec)
{
	int err = ddps_vport_ud_qkey(v, rec->qkey);

	if (err)
		return err;
	v->link = *rec;
	v->has_link = true;
	return 0;
}

/* ---- what the client says ---- */

static void send_vport_sa(void *user, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	ddps_vport_sa_send(user, mad);
}

static void take_vport_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
			      const struct ddps_sa_mcm *rec, uint64_t now)
{
	struct ddps_ib_verbs *v = user;

	if (err == DDPS_E_TIMEDOUT)
		ddps_vport_say(
			v,
			"the subnet administration at LID %u does not answer; try: is opensm "
			"running there (sminfo)?",
			v->info.sm_lid);
	else if (err)
		ddps_vport_say(v,
			       "the subnet administration refuses; try: does the partition of "
			       "P_Key 0x%04x have ipoib set (opensm's partitions.conf)?",
			       v->cfg.pkey);
	if (rec && (rec->mtu & CODE) > v->info.mtu) {
		ddps_vport_say(v, "a group with an MTU of %u octets, above the port's",
			       128u << (rec->mtu & CODE));
		err = DDPS_E_LIMIT;
	}
	if (rec && !err && is_vport_broadcast(v, mgid))
		err = take_link(v, rec);
	if (rec && !err)
		err = attach_group(v, rec);
	v->cfg.up->joined(v->user, mgid, err, rec && !err ? 128u << (rec->mtu & CODE) : 0, now);
}

/* Hop Limit above 0: the way has a GRH [4391-9.1.2-2] [4391-9.1.2-3]. */
static void take_vport_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			    const struct ddps_sa_pr *pr, uint64_t now)
{
	struct ddps_ib_verbs *v = user;
	struct ddps_ipoib_path path;
	struct vp_way w;

	if (!pr) {
		v->cfg.up->path(v->user, gid, NULL, now);
		return;
	}
	w = (struct vp_way){ .dlid = v->info.roce ? 0 : pr->dlid,
			     .sl = pr->sl,
			     .bits = (uint8_t)(pr->slid & ((1u << v->info.lmc) - 1)),
			     .rate = pr->rate & CODE,
			     .grh = pr->hop || v->grh_required || v->info.roce };
	if (w.grh) {
		w.hop = pr->hop;
		w.tclass = pr->tclass;
		w.flow = pr->flow;
		memcpy(w.gid, gid, sizeof(w.gid));
	}
	path = (struct ddps_ipoib_path){ .addr = ddps_vport_addr(v, &w, v->pkey_index),
					 .slid = v->info.roce ? VP_LID_ROCE : pr->slid,
					 .dlid = v->info.roce ? VP_LID_ROCE : pr->dlid,
					 .sl = pr->sl,
					 .traffic_class = pr->tclass,
					 .hop_limit = pr->hop,
					 .rate = pr->rate & CODE,
					 .flow_label = pr->flow,
					 .mtu = pr->mtu & CODE,
					 .life = pr->life & CODE };
	if (path.mtu > v->info.mtu)
		path.mtu = v->info.mtu;
	v->cfg.up->path(v->user, gid, &path, now);
}

static void open_vport_group(void *user, unsigned group, bool there, uint64_t now)
{
	(void)there;
	ddps_togroup_open(&((struct ddps_ib_verbs *)user)->to_group, group, now);
}

static const struct ddps_sac_ops sac_ops = { send_vport_sa, take_vport_joined, take_vport_path,
					     open_vport_group, NULL };

/* A multicast packet always has a GRH. */
static int send_to_vport_group(void *user, const struct ddps_sa_mcm *rec, unsigned group,
			       const void *frame, size_t len)
{
	struct vp_way w = { .dlid = rec->mlid, /* RoCE does not look at it */
			    .sl = rec->sl,
			    .rate = rec->rate & CODE,
			    .grh = true,
			    .hop = rec->hop,
			    .tclass = rec->tclass,
			    .flow = rec->flow };

	(void)group;
	memcpy(w.gid, rec->mgid, sizeof(w.gid));
	return ddps_vport_ud_send(user, &w, rec->mgid, DDPS_IPOIB_QPN_MCAST, frame, len);
}

/* ---- what the interface asks for ---- */

int ddps_vport_join(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	return ddps_sac_join(VPORT(port)->sac, mgid, VPORT(port)->now);
}

void ddps_vport_leave(struct ddps_ipoib_port *port, const uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	struct vp_attached *a = find_attached(VPORT(port), mgid);

	if (a)
		detach_group(VPORT(port), a);
	ddps_sac_leave(VPORT(port)->sac, mgid, VPORT(port)->now);
}

int ddps_vport_resolve(struct ddps_ipoib_port *port, const uint8_t gid[DDPS_IPOIB_GID_LEN])
{
	return ddps_sac_path(VPORT(port)->sac, gid, VPORT(port)->now);
}

/* ---- life ---- */

int ddps_vport_groups_new(struct ddps_ib_verbs *v)
{
	struct ddps_sac_config c = {
		.pkey = v->info.pkey, .seed = v->cfg.seed, .ops = &sac_ops, .user = v
	};

	memcpy(c.gid, v->info.gid, sizeof(c.gid));
	/* config_fits() has looked at both */
	(void)ddps_ipoib_mgid_broadcast(c.broadcast, v->cfg.pkey, v->cfg.scope);
	v->sac = ddps_sac_new(&c);
	if (!v->sac)
		return DDPS_E_NOMEM;
	v->to_group = (struct ddps_togroup){ .sac = v->sac,
					     .send = send_to_vport_group,
					     .user = v,
					     .n_held = &v->stats.ud_held,
					     .n_none = &v->stats.ud_no_group };
	return 0;
}

void ddps_vport_groups_free(struct ddps_ib_verbs *v)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		if (v->attached[i].used)
			detach_group(v, &v->attached[i]);
	ddps_togroup_drop(&v->to_group);
	ddps_sac_free(v->sac);
	v->sac = NULL;
}
