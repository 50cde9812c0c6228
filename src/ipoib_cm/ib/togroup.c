/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams to groups, and those that wait for their group. */
#include "ipoib_cm/ib/sac.h"
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX 4096

/* The MGID goes before the frame.  Return: 0: it will be sent, or DDPS_E_AGAIN. */
static int hold_group_frame(struct ddps_togroup *t, unsigned group, const uint8_t *mgid,
			    const void *frame, size_t len)
{
	unsigned *n = &t->held[group].n;
	uint8_t *copy;

	if (*n == DDPS_IB_HELD_MAX || len > FRAME_MAX)
		return DDPS_E_AGAIN;
	copy = malloc(DDPS_IPOIB_GID_LEN + len);
	if (!copy)
		return DDPS_E_AGAIN;
	memcpy(copy, mgid, DDPS_IPOIB_GID_LEN);
	memcpy(copy + DDPS_IPOIB_GID_LEN, frame, len);
	t->held[group].frame[*n].data = copy;
	t->held[group].frame[(*n)++].len = len;
	(*t->n_held)++;
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

int ddps_togroup(struct ddps_togroup *t, const uint8_t *mgid, const void *frame, size_t len,
		 uint64_t now)
{
	uint8_t routers[DDPS_IPOIB_GID_LEN];
	const struct ddps_sa_mcm *rec;
	unsigned group;
	int err = ddps_sac_open(t->sac, mgid, now, &rec, &group);

	if (err == DDPS_E_ADDRESS && beyond_link(frame, len)) { /* [4391-10-2] */
		routers_of(routers, mgid);
		err = ddps_sac_open(t->sac, routers, now, &rec, &group);
	}
	if (!err)
		return t->send(t->user, rec, group, frame, len);
	if (err == DDPS_E_AGAIN)
		return hold_group_frame(t, group, mgid, frame, len);
	(*t->n_none)++;
	return err;
}

void ddps_togroup_open(struct ddps_togroup *t, unsigned group, uint64_t now)
{
	const unsigned n = t->held[group].n;
	__typeof__(t->held[group]) h = t->held[group];

	t->held[group].n = 0;
	for (unsigned i = 0; i < n; i++) {
		/* an entry that was given to another group since has another MGID; what was not
		 * found may go to the routers */
		(void)ddps_togroup(t, h.frame[i].data, h.frame[i].data + DDPS_IPOIB_GID_LEN,
				   h.frame[i].len, now);
		free(h.frame[i].data);
	}
}

void ddps_togroup_drop(struct ddps_togroup *t)
{
	for (unsigned i = 0; i < DDPS_SAC_GROUPS; i++)
		while (t->held[i].n)
			free(t->held[i].frame[--t->held[i].n].data);
}
