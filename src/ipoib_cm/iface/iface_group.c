/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups that the host listens to: read from the reports that its stack sends (IGMP, RFC 2236 and
 * 3376; MLD, RFC 2710 and 3810), since a packet device learns it in no other way.
 */
#include <string.h>
#include "common/bytes.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define IGMP1_REPORT 0x12
#define IGMP2_REPORT 0x16
#define IGMP2_LEAVE  0x17
#define IGMP3_REPORT 0x22
#define ICMP6	     58
#define MLD1_REPORT  131
#define MLD1_DONE    132
#define MLD2_REPORT  143
#define IS_INCLUDE   1 /* types of records (RFC 3376 4.2.12, RFC 3810 5.2.12) */
#define TO_INCLUDE   3
#define BLOCK_OLD    6
#define IP6_HEADER   40
#define NONE	     UINT32_MAX

static bool make_if_mgid(const struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip,
			 uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	uint16_t pkey = f->cfg.me.pkey;

	return ip->v6 ? !ddps_ipoib_mgid_ipv6(mgid, ip->a, pkey, f->cfg.scope)
		      : !ddps_ipoib_mgid_ipv4(mgid, ip->a, pkey, f->cfg.scope);
}

static uint32_t find_listened(const struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	for (uint32_t i = 0; i < f->n_group; i++)
		if (f->group[i].ip.v6 == ip->v6 && !memcmp(f->group[i].ip.a, ip->a, sizeof(ip->a)))
			return i;
	return NONE;
}

bool ddps_ipoib_listens(const struct ddps_ipoib_if *f, const uint8_t *mgid)
{
	for (uint32_t i = 0; i < f->n_group; i++)
		if (!memcmp(f->group[i].mgid, mgid, DDPS_IPOIB_GID_LEN))
			return true;
	return false;
}

/* IPv6 groups that differ in scope have one MGID; the groups of every host are joined already. */
static bool has_mgid(const struct ddps_ipoib_if *f, const uint8_t *mgid)
{
	return ddps_ipoib_listens(f, mgid) || ddps_ipoib_is_own_group(f, mgid);
}

static void begin_listening(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	struct ddps_ipoib_listened g = { .ip = *ip };

	if (find_listened(f, ip) != NONE || !make_if_mgid(f, ip, g.mgid))
		return;
	if (f->n_group == DDPS_IPOIB_IF_GROUPS) {
		f->stats.group_full++;
		return;
	}
	if (f->state == DDPS_IPOIB_IF_UP && !has_mgid(f, g.mgid)) /* [4391-10-7] [4392-4.2.2-1] */
		f->stats.join_failed += f->port->ops->join(f->port, g.mgid) != 0;
	f->group[f->n_group++] = g;
}

static void end_listening(struct ddps_ipoib_if *f, const struct ddps_ipoib_ip *ip)
{
	uint32_t i = find_listened(f, ip);
	struct ddps_ipoib_listened g;

	if (i == NONE)
		return;
	g = f->group[i];
	f->group[i] = f->group[--f->n_group];
	if (f->state == DDPS_IPOIB_IF_UP && !has_mgid(f, g.mgid)) /* [4391-10-10] */
		f->port->ops->leave(f->port, g.mgid);
}

/* Records of a report of the newer versions, @n of them. */
static void records(struct ddps_ipoib_if *f, struct ddps_rbuf *r, bool v6, uint16_t n)
{
	size_t size = v6 ? 16 : 4;

	while (n--) {
		struct ddps_ipoib_ip ip = { .v6 = v6 };
		uint8_t type = ddps_rbuf_u8(r), aux = ddps_rbuf_u8(r);
		uint16_t sources = ddps_rbuf_u16(r);
		const uint8_t *group = ddps_rbuf_take(r, size);

		if (!group || !ddps_rbuf_take(r, sources * size + aux * 4u))
			return;
		memcpy(ip.a, group, size);
		if (type == BLOCK_OLD)
			continue; /* of a group that is listened to */
		if ((type == IS_INCLUDE || type == TO_INCLUDE) && !sources)
			end_listening(f, &ip);
		else
			begin_listening(f, &ip);
	}
}

static void take_host_report(struct ddps_ipoib_if *f, struct ddps_rbuf *r, bool v6)
{
	uint8_t type = ddps_rbuf_u8(r);
	struct ddps_ipoib_ip ip = { .v6 = v6 };
	const uint8_t *group;

	(void)ddps_rbuf_take(r, v6 ? 5 : 3);
	if (type == (v6 ? MLD2_REPORT : IGMP3_REPORT)) {
		if (!v6)
			(void)ddps_rbuf_u16(r);
		records(f, r, v6, ddps_rbuf_u16(r));
		return;
	}
	if (v6)
		(void)ddps_rbuf_u16(r);
	group = ddps_rbuf_take(r, v6 ? 16 : 4);
	if (!group)
		return;
	memcpy(ip.a, group, v6 ? 16 : 4);
	if (type == (v6 ? MLD1_DONE : IGMP2_LEAVE))
		end_listening(f, &ip);
	else if (v6 ? type == MLD1_REPORT : type == IGMP1_REPORT || type == IGMP2_REPORT)
		begin_listening(f, &ip);
}

void ddps_ipoib_group_report(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(packet, len);

	if (packet[0] >> 4 == 4) {
		if (ddps_rbuf_take(&r, (packet[0] & 15u) * 4))
			take_host_report(f, &r, false);
	} else if (ddps_rbuf_take(&r, IP6_HEADER) && ddps_rbuf_u8(&r) == ICMP6 &&
		   ddps_rbuf_take(&r, ddps_rbuf_u8(&r) * 8u + 6)) {
		take_host_report(f, &r, true);
	}
}

void ddps_ipoib_groups(struct ddps_ipoib_if *f, bool join)
{
	for (uint32_t i = 0; i < f->n_group; i++)
		if (join)
			f->stats.join_failed += f->port->ops->join(f->port, f->group[i].mgid) != 0;
		else
			f->port->ops->leave(f->port, f->group[i].mgid);
}
