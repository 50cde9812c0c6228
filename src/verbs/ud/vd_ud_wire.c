/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes over UDP (docs/verbs.md), and what verbs make of it. */
#include "verbs/ud/vd_ud_in.h"
#include <arpa/inet.h>
#include <string.h>

#define VERSION 1

static const uint8_t magic[4] = "ddUD";

static void put_ud_u16(uint8_t *at, uint16_t n)
{
	n = htons(n);
	memcpy(at, &n, sizeof n);
}

static void put_ud_u32(uint8_t *at, uint32_t n)
{
	n = htonl(n);
	memcpy(at, &n, sizeof n);
}

static uint16_t get_ud_u16(const uint8_t *at)
{
	uint16_t n;

	memcpy(&n, at, sizeof n);
	return ntohs(n);
}

static uint32_t get_ud_u32(const uint8_t *at)
{
	uint32_t n;

	memcpy(&n, at, sizeof n);
	return ntohl(n);
}

void ud_put(const struct ud_header *h, uint8_t to[UD_HEADER])
{
	memset(to, 0, UD_HEADER);
	memcpy(to, magic, sizeof magic);
	to[4] = VERSION;
	to[5] = (uint8_t)h->type;
	if (h->type == UD_REQ || h->type == UD_REP) {
		memcpy(to + 8, &h->ask, sizeof h->ask);
		to[16] = h->status;
		to[17] = h->pd_len;
		put_ud_u32(to + 20, h->src);
		put_ud_u32(to + 24, h->qkey);
		return;
	}
	to[6] = h->flags;
	put_ud_u32(to + 8, h->dest);
	put_ud_u32(to + 12, h->src);
	put_ud_u32(to + 16, h->qkey);
	memcpy(to + 20, &h->imm, sizeof h->imm);
	put_ud_u16(to + 24, h->seq);
	put_ud_u16(to + 26, h->ack_port);
}

/* A request is as long as the longest answer at least: no stranger gets more octets than were sent. */
size_t ud_cm_len(enum ud_type type, size_t pd_len)
{
	return UD_HEADER + (type == UD_REQ && pd_len < UD_PD_REP ? UD_PD_REP : pd_len);
}

static bool get_ud_cm(const uint8_t *from, size_t len, struct ud_header *h)
{
	memcpy(&h->ask, from + 8, sizeof h->ask);
	h->status = from[16];
	h->pd_len = from[17];
	h->src = get_ud_u32(from + 20);
	h->qkey = get_ud_u32(from + 24);
	return !from[6] && !from[18] && !from[19] && h->src <= VD_QPN_MASK &&
	       h->pd_len <= (h->type == UD_REQ ? UD_PD_REQ : UD_PD_REP) &&
	       len == ud_cm_len(h->type, h->pd_len);
}

bool ud_get(const uint8_t *from, size_t len, struct ud_header *h)
{
	memset(h, 0, sizeof *h);
	if (len < UD_HEADER || memcmp(from, magic, sizeof magic) || from[4] != VERSION || from[7])
		return false;
	h->type = (enum ud_type)from[5];
	if (h->type == UD_REQ || h->type == UD_REP)
		return get_ud_cm(from, len, h);
	h->flags = from[6];
	h->dest = get_ud_u32(from + 8);
	h->src = get_ud_u32(from + 12);
	h->qkey = get_ud_u32(from + 16);
	memcpy(&h->imm, from + 20, sizeof h->imm);
	h->seq = get_ud_u16(from + 24);
	h->ack_port = get_ud_u16(from + 26);
	if (h->flags & ~UD_F_ALL || h->dest > VD_QPN_MASK || h->src > VD_QPN_MASK)
		return false;
	return h->type == UD_DATA ? len <= UD_HEADER + UD_MTU
				  : h->type == UD_ACK && len == UD_HEADER && !h->flags;
}

/* ---- addresses ---- */

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

void ud_from_sockaddr(const struct sockaddr *sa, struct ud_addr *a)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)sa;

	*a = (struct ud_addr){ 0 };
	if (sa->sa_family == AF_INET6) {
		a->ip = a6->sin6_addr;
		a->port = ntohs(a6->sin6_port);
		a->ifindex = a6->sin6_scope_id;
		return;
	}
	memcpy(a->ip.s6_addr, mapped, sizeof mapped);
	memcpy(a->ip.s6_addr + 12, &a4->sin_addr, 4);
	a->port = ntohs(a4->sin_port);
}

socklen_t ud_to_sockaddr(const struct ud_addr *a, sa_family_t family, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *a4 = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof *ss);
	ss->ss_family = family;
	if (family == AF_INET6) {
		a6->sin6_addr = a->ip;
		a6->sin6_port = htons(a->port);
		a6->sin6_scope_id = IN6_IS_ADDR_V4MAPPED(&a->ip) ? 0 : a->ifindex;
		return sizeof *a6;
	}
	memcpy(&a4->sin_addr, a->ip.s6_addr + 12, 4);
	a4->sin_port = htons(a->port);
	return sizeof *a4;
}

bool ud_is_group(const struct in6_addr *ip)
{
	return IN6_IS_ADDR_V4MAPPED(ip) ? (ip->s6_addr[12] & 0xf0) == 0xe0
					: IN6_IS_ADDR_MULTICAST(ip);
}

bool ud_is_link_local(const struct in6_addr *ip)
{
	return IN6_IS_ADDR_LINKLOCAL(ip);
}

/*
 * The length is that of what InfiniBand has behind a GRH: BTH, DETH, payload, ICRC.  The octets of a
 * datagram are read so that its message begins where this ends: its header makes room.
 */
void ud_put_grh(uint8_t to[UD_GRH], const struct in6_addr *from, const struct in6_addr *dest,
		size_t payload)
{
	memset(to, 0, UD_GRH);
	to[0] = 0x60;
	put_ud_u16(to + 4, (uint16_t)(12 + 8 + ((payload + 3) & ~(size_t)3) + 4));
	to[6] = 0x1b; /* NxtHdr: BTH */
	to[7] = 64;
	memcpy(to + 8, from, sizeof *from);
	memcpy(to + 24, dest, sizeof *dest);
}
