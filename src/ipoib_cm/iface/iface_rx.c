/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of an IP packet in, from the UD QP or a connection: checked once, here. */
#include <string.h>
#include "common/bytes.h"
#include "ipoib_cm/cm/cm_own.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define IP4_HDR 20
#define IP6_HDR 40
#define IP4_SRC 12
#define IP6_SRC 8

bool ddps_ipoib_ip_ok(const uint8_t *packet, size_t len)
{
	struct ddps_rbuf r;
	size_t ihl;

	if (len < IP4_HDR)
		return false;
	if (packet[0] >> 4 == 4) {
		ihl = (size_t)(packet[0] & 15) * 4;
		r = ddps_rbuf_init(packet + 2, 2);
		return ihl >= IP4_HDR && ihl <= len && ddps_rbuf_u16(&r) == len;
	}
	if (packet[0] >> 4 != 6 || len < IP6_HDR)
		return false;
	r = ddps_rbuf_init(packet + 4, 2);
	return ddps_rbuf_u16(&r) == len - IP6_HDR; /* jumbograms exceed what a message can be */
}

/* Who sends from another LID than the path to it ends at has moved. */
static void look_at_lid(struct ddps_ipoib_if *f, const uint8_t *packet)
{
	const bool v6 = packet[0] >> 4 == 6;
	const struct ddps_ipoib_nbr *b =
		ddps_ipoib_nbr_at(f, v6, packet + (v6 ? IP6_SRC : IP4_SRC));

	if (b && b->node && b->node->path.dlid != f->from_lid)
		ddps_ipoib_node_seen(f, b->node);
}

/*
 * [4755-7-2] Whatever mode it came by.  Return: whether it was legal; what was not has been
 * counted and has changed nothing else.
 */
static bool accept(struct ddps_ipoib_if *f, const void *frame, size_t len, uint64_t *count)
{
	const uint8_t *packet;
	size_t packet_len;
	uint16_t type;

	if (ddps_ipoib_encap_decode(&type, &packet, &packet_len, frame, len)) {
		f->stats.rx_short++;
		return false;
	}
	switch (type) {
	case DDPS_IPOIB_TYPE_ARP: /* also from a connection: be liberal */
		ddps_ipoib_arp_in(f, packet, packet_len);
		return true;
	case DDPS_IPOIB_TYPE_IPV4:
	case DDPS_IPOIB_TYPE_IPV6:
		break;
	default:
		f->stats.rx_type++;
		return false;
	}
	if (!ddps_ipoib_ip_ok(packet, packet_len) ||
	    (packet[0] >> 4 == 4) != (type == DDPS_IPOIB_TYPE_IPV4)) {
		f->stats.rx_bad_ip++;
		return false;
	}
	++*count;
	if (f->from_lid)
		look_at_lid(f, packet);
	if (packet[0] >> 4 == 4 || !ddps_ipoib_nd_in(f, packet, packet_len))
		f->calls.deliver(f->calls.user, packet, packet_len);
	return true;
}

void ddps_ipoib_rx_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
		      size_t len, uint64_t now)
{
	struct ddps_ipoib_if *f = user;
	const struct ddps_ipoib_lladdr *me = &f->cfg.me.addr;

	f->now = now;
	if (f->state != DDPS_IPOIB_IF_UP) {
		f->stats.rx_down++;
		return;
	}
	/* A group gives its sender the packet back. */
	if (from->multicast && from->qpn == me->qpn &&
	    (!from->has_gid || memcmp(from->gid, me->gid, sizeof(me->gid)) == 0))
		return;
	if (len > f->ud_mtu + DDPS_IPOIB_ENCAP_LEN) {
		f->stats.rx_too_long++;
		return;
	}
	f->from_qpn = from->qpn;
	f->from_lid = from->slid;
	f->from_gid = from->has_gid ? from->gid : NULL;
	(void)accept(f, frame, len, &f->stats.rx_ud);
	f->from_lid = 0;
	f->from_gid = NULL;
}

void ddps_ipoib_rx_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	struct ddps_ipoib_if *f = user;
	struct ddps_ipoib_qp *qp = ddps_ipoib_conn_by_qpn(f, qpn);
	uint32_t id;

	f->now = now;
	if (!qp || qp->stopped || !qp->id) {
		f->stats.rx_unknown_qp++;
		return;
	}
	if (len > f->cfg.me.rx_mtu) { /* more than a receive could hold: fatal for it */
		f->stats.rx_too_long++;
		ddps_ipoib_conn_broken(f, qp);
		return;
	}
	id = qp->id;
	if (!accept(f, frame, len, &f->stats.rx_conn))
		return;
	qp = ddps_ipoib_conn_by_id(f, id); /* the packet may have ended it */
	if (!qp || qp->stopped)
		return;
	qp->used_at = now;
	if (!qp->up)
		(void)ddps_cm_data_seen(f->cm, id);
}
