/* SPDX-License-Identifier: BSD-2-Clause */
/* What the client of subnet administration says, passed on; frames that wait for a group. */
#include "ipoib_cm/ib/node_in.h"
#include <stdlib.h>
#include <string.h>

static void on_send(void *user, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	struct ddps_ib_node *n = user;

	ddps_ib_node_mad(n, n->cfg.sa_lid, mad);
}

static void on_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
		      const struct ddps_sa_mcm *rec, uint64_t now)
{
	struct ddps_ib_node *n = user;

	/* a group with longer packets than the network carries is no group for this port */
	if (rec && (rec->mtu & 0x3f) > n->cfg.mtu_max) {
		rec = NULL;
		err = DDPS_E_LIMIT;
	}
	n->cfg.up->joined(n->user, mgid, err, rec ? 128u << (rec->mtu & 0x3f) : 0, now);
}

static void on_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN], const struct ddps_sa_pr *pr,
		    uint64_t now)
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

void ddps_ib_node_drop_held(struct ddps_ib_node *n, unsigned group)
{
	struct ib_held *h = &n->held[group];

	while (h->n)
		free(h->frame[--h->n].data);
}

static void on_open(void *user, unsigned group, bool there, uint64_t now)
{
	struct ddps_ib_node *n = user;
	struct ib_held h = n->held[group];

	(void)now;
	(void)there;
	n->held[group].n = 0;
	for (unsigned i = 0; i < h.n; i++) {
		/* an entry that was given to another group since has another MGID; what was not
		 * found may go to the routers */
		(void)ddps_ib_node_to_group(n, h.frame[i].data,
					    h.frame[i].data + DDPS_IPOIB_GID_LEN, h.frame[i].len);
		free(h.frame[i].data);
	}
}

const struct ddps_sac_ops ddps_ib_node_sac_ops = { on_send, on_joined, on_path, on_open };

/* The MGID goes before the frame.  Return: 0: it will be sent, or DDPS_E_AGAIN. */
static int hold(struct ddps_ib_node *n, unsigned group, const uint8_t *mgid, const void *frame,
		size_t len)
{
	struct ib_held *h = &n->held[group];
	uint8_t *copy;

	if (h->n == DDPS_IB_HELD_MAX || len > DDPS_IB_MTU_MAX)
		return DDPS_E_AGAIN;
	copy = malloc(DDPS_IPOIB_GID_LEN + len);
	if (!copy)
		return DDPS_E_AGAIN;
	memcpy(copy, mgid, DDPS_IPOIB_GID_LEN);
	memcpy(copy + DDPS_IPOIB_GID_LEN, frame, len);
	h->frame[h->n].data = copy;
	h->frame[h->n++].len = len;
	n->stats.ud_held++;
	return 0;
}

/* Whether an IP packet for a group may leave the link, by the scope of its destination. */
static bool beyond_link(const uint8_t *frame, size_t len)
{
	const uint8_t *ip = frame + DDPS_IPOIB_ENCAP_LEN;
	unsigned type = len < DDPS_IPOIB_ENCAP_LEN ? 0 : (unsigned)frame[0] << 8 | frame[1];

	if (type == DDPS_IPOIB_TYPE_IPV4 && len >= DDPS_IPOIB_ENCAP_LEN + 20)
		return ip[16] >> 4 == 14 && (ip[16] != 224 || ip[17] || ip[18]);
	if (type == DDPS_IPOIB_TYPE_IPV6 && len >= DDPS_IPOIB_ENCAP_LEN + 40)
		return ip[24] == 0xff && (ip[25] & 15) > 2;
	return false;
}

/* The group of all routers, 224.0.0.2 or ff02::2, by a group of the same IP version. */
static void routers_of(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t *like)
{
	memcpy(mgid, like, DDPS_IPOIB_GID_LEN);
	memset(mgid + 6, 0, 10);
	mgid[15] = 2;
}

int ddps_ib_node_to_group(struct ddps_ib_node *n, const uint8_t *mgid, const void *frame,
			  size_t len)
{
	uint8_t routers[DDPS_IPOIB_GID_LEN];
	const struct ddps_sa_mcm *rec;
	unsigned group;
	int err = ddps_sac_open(n->sac, mgid, n->now, &rec, &group);

	if (err == DDPS_E_ADDRESS && beyond_link(frame, len)) { /* [4391-10-2] */
		routers_of(routers, mgid);
		err = ddps_sac_open(n->sac, routers, n->now, &rec, &group);
	}
	if (!err)
		return ddps_ib_node_ud(n, rec->mlid, group, rec->mgid, DDPS_IPOIB_QPN_MCAST, frame,
				       len);
	if (err == DDPS_E_AGAIN)
		return hold(n, group, mgid, frame, len);
	n->stats.ud_no_group++;
	return err;
}
