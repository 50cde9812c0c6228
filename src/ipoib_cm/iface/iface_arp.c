/* SPDX-License-Identifier: BSD-2-Clause */
/* Address resolution for IPv4: ARP with hardware type 32, in datagrams only [4755-7-4]. */
#include <string.h>
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

bool ddps_ipoib_lladdr_ok(const struct ddps_ipoib_if *f, const struct ddps_ipoib_lladdr *a)
{
	static const uint8_t none[DDPS_IPOIB_GID_LEN];

	return a->qpn && a->qpn != DDPS_IPOIB_QPN_MCAST && a->gid[0] != 0xff &&
	       memcmp(a->gid, none, sizeof(none)) != 0 &&
	       ddps_ipoib_lladdr_cmp(a, &f->cfg.me.addr) != 0;
}

void ddps_ipoib_arp_send(struct ddps_ipoib_if *f, uint16_t op, const uint8_t own[4],
			 const uint8_t target[4], const struct ddps_ipoib_node *n)
{
	struct ddps_ipoib_arp arp = { .op = op, .sender = f->cfg.me.addr };
	uint8_t octets[DDPS_IPOIB_ARP_LEN];

	memcpy(arp.sender_ip, own, 4);
	memcpy(arp.target_ip, target, 4);
	if (n)
		arp.target = n->lladdr;
	if (!ddps_ipoib_arp_encode(octets, &arp))
		(void)ddps_ipoib_tx_ud(f, n, f->broadcast, DDPS_IPOIB_TYPE_ARP, octets,
				       sizeof(octets));
}

/* An address that a single other host can have; @probe: 0.0.0.0, which is not learned. */
static bool sender_ok(const struct ddps_ipoib_if *f, const struct ddps_ipoib_arp *arp, bool *probe)
{
	static const uint8_t none[4];
	const uint8_t *ip = arp->sender_ip;

	*probe = arp->op == DDPS_IPOIB_ARP_REQUEST && memcmp(ip, none, 4) == 0;
	if (!ddps_ipoib_lladdr_ok(f, &arp->sender))
		return false;
	return *probe || (ip[0] && ip[0] != 127 && ip[0] < 224 && !ddps_ipoib_is_own(f, false, ip));
}

void ddps_ipoib_arp_in(struct ddps_ipoib_if *f, const void *packet, size_t len)
{
	struct ddps_ipoib_ip ip = { 0 };
	struct ddps_ipoib_arp arp;
	struct ddps_ipoib_nbr *b;
	bool probe, for_us;

	if (!ddps_ipoib_serves(f, false))
		return;
	if (len != DDPS_IPOIB_ARP_LEN || ddps_ipoib_arp_decode(&arp, packet, len) ||
	    (arp.op != DDPS_IPOIB_ARP_REQUEST && arp.op != DDPS_IPOIB_ARP_REPLY)) {
		f->stats.rx_bad_arp++;
		return;
	}
	if (ddps_ipoib_lladdr_cmp(&arp.sender, &f->cfg.me.addr) == 0)
		return; /* our own, back from the group */
	if (ddps_ipoib_lladdr_ok(f, &arp.sender) &&
	    ddps_ipoib_dup_in(f, false, arp.sender_ip, &arp.sender, false))
		return;
	if (!sender_ok(f, &arp, &probe)) {
		f->stats.rx_bad_arp++;
		return;
	}
	if (probe)
		(void)ddps_ipoib_dup_in(f, false, arp.target_ip, &arp.sender, true);
	for_us = ddps_ipoib_is_held(f, false, arp.target_ip);
	memcpy(ip.a, arp.sender_ip, 4);
	if (probe && for_us) /* who else has it: a group reply says, without a neighbour to keep */
		ddps_ipoib_arp_send(f, DDPS_IPOIB_ARP_REPLY, arp.target_ip, arp.sender_ip, NULL);
	if (probe)
		return;
	/* An unrequested reply makes no neighbour, it only corrects one. */
	b = ddps_ipoib_nbr_learn(f, &ip, &arp.sender, for_us && arp.op == DDPS_IPOIB_ARP_REQUEST);
	if (b && for_us && arp.op == DDPS_IPOIB_ARP_REQUEST)
		ddps_ipoib_nbr_owe(f, b, arp.target_ip);
}
