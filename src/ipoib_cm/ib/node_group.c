/* SPDX-License-Identifier: BSD-2-Clause */
/* What the client of subnet administration says, passed on. */
#include "ipoib_cm/ib/node_in.h"
#include <stdio.h>
#include <string.h>

static void send_node_mad(void *user, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_ib_node *n = user;

	ddps_ib_node_mad(n, n->cfg.sa_lid, mad);
}

static void take_node_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
			     const struct ddps_sa_mcm *rec, uint64_t now)
{
	struct ddps_ib_node *n = user;

	if (err == DDPS_E_TIMEDOUT || err == DDPS_E_REJECTED) /* the administration's reason */
		n->why[0] = '\0';
	if (err == DDPS_E_BUSY) {
		char text[DDPS_IPOIB_GID_TEXT];

		ddps_ipoib_gid_print(text, n->cfg.gid);
		snprintf(n->why, sizeof(n->why),
			 "the administration at LID %u refuses it: another node has the GID %s; "
			 "try: another --gid",
			 n->cfg.sa_lid, text);
	}
	n->cfg.up->joined(n->user, mgid, err, rec ? 128u << (rec->mtu & 0x3f) : 0, now);
}

static void take_node_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			   const struct ddps_sa_pr *pr, uint64_t now)
{
	struct ddps_ib_node *n = user;
	struct ddps_ipoib_path path = { 0 };

	/* [4391-9.1.2-2] [4391-9.1.2-3]; the wire has addresses for these LIDs only */
	if (pr && pr->dlid < DDPS_SA_LIDS)
		path = (struct ddps_ipoib_path){ .addr = pr->dlid,
						 .slid = pr->slid,
						 .dlid = pr->dlid,
						 .sl = pr->sl,
						 .traffic_class = pr->tclass,
						 .hop_limit = pr->hop,
						 .rate = pr->rate & 0x3f,
						 .flow_label = pr->flow,
						 .mtu = pr->mtu & 0x3f,
						 .life = pr->life & 0x3f };
	n->cfg.up->path(n->user, gid, path.addr ? &path : NULL, now);
}

static void open_node_group(void *user, unsigned group, bool there, uint64_t now)
{
	(void)there;
	ddps_togroup_open(&((struct ddps_ib_node *)user)->to_group, group, now);
}

/* @whose: a group's or the link's MTU, which is @mtu (code). */
static void say_too_long(const struct ddps_ib_node *n, const char *whose, uint8_t mtu, char *why,
			 size_t why_len)
{
	snprintf(why, why_len,
		 "%s MTU is %u, and the network carries packets of %u; try: a larger MTU "
		 "of the network, or a smaller one of the link (--link-mtu)",
		 whose, 128u << mtu, 128u << n->cfg.mtu_max);
}

bool ddps_ib_node_network(struct ddps_ib_node *n, uint8_t mtu_max, const char *why, uint64_t now)
{
	const struct ddps_sa_mcm *link = ddps_sac_link(n->sac);
	const uint8_t mtu = link ? link->mtu & 0x3f : n->off ? n->needed : 0;
	const bool off = *why || mtu > mtu_max;

	n->now = now;
	n->cfg.mtu_max = mtu_max;
	if (*why)
		snprintf(n->off_why, sizeof(n->off_why), "%s", why);
	else if (off)
		say_too_long(n, "the link's", mtu, n->off_why, sizeof(n->off_why));
	if (off)
		n->needed = mtu;
	if (off != n->off) {
		n->off = off;
		n->why[0] = '\0';
		n->cfg.up->link(n->user, !off, now);
	}
	return off;
}

/* The administration may have been started again, with an MTU that the network does carry. */
static void note_needed_mtu(struct ddps_ib_node *n, const struct ddps_sa_mcm *rec)
{
	uint8_t broadcast[DDPS_IPOIB_GID_LEN];

	if (!ddps_ipoib_mgid_broadcast(broadcast, n->cfg.pkey, n->cfg.scope) &&
	    !memcmp(broadcast, rec->mgid, sizeof(broadcast)))
		n->needed = rec->mtu & 0x3f;
}

/* A group with longer packets than the network carries is no group for this port. */
static int hold_node_group(void *user, unsigned group, const struct ddps_sa_mcm *rec)
{
	struct ddps_ib_node *n = user;

	if (rec && n->off)
		note_needed_mtu(n, rec);
	if (rec && (n->off || (rec->mtu & 0x3f) > n->cfg.mtu_max)) {
		say_too_long(n, "its", rec->mtu & 0x3f, n->why, sizeof(n->why));
		return DDPS_E_LIMIT;
	}
	return n->cfg.hold ? n->cfg.hold(n->cfg.wire, group, rec ? rec->mlid : 0, n->why,
					 sizeof(n->why))
			   : 0;
}

const struct ddps_sac_ops ddps_ib_node_sac_ops = { send_node_mad, take_node_joined, take_node_path,
						   open_node_group, hold_node_group };

static int send_to_node_group(void *user, const struct ddps_sa_mcm *rec, unsigned group,
			      const void *frame, size_t len)
{
	return ddps_ib_node_ud(user, rec->mlid, group, rec->mgid, DDPS_IPOIB_QPN_MCAST, frame, len);
}

void ddps_ib_node_groups_new(struct ddps_ib_node *n)
{
	n->to_group = (struct ddps_togroup){ .sac = n->sac,
					     .send = send_to_node_group,
					     .user = n,
					     .n_held = &n->stats.ud_held,
					     .n_none = &n->stats.ud_no_group };
}
