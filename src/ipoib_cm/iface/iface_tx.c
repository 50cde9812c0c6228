/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of an IP packet out: to a group, as datagram, or on a connection. */
#include <stdlib.h>
#include <string.h>
#include "common/bytes.h"
#include "ipoib_cm/iface/iface_in.h"
#include "ipoib_cm/wire/wire.h"

#define IP4_SRC	 12
#define IP6_SRC	 8
#define IP4_DST	 16
#define IP6_DST	 24
#define IP4_DF	 0x40
#define IP4_FLAG 6

static bool is_v4(const uint8_t *packet)
{
	return packet[0] >> 4 == 4;
}

/* IPv4 without Don't Fragment */
static bool may_split(const uint8_t *packet)
{
	return is_v4(packet) && !(packet[IP4_FLAG] & IP4_DF);
}

static uint16_t type_of(const uint8_t *packet)
{
	return is_v4(packet) ? DDPS_IPOIB_TYPE_IPV4 : DDPS_IPOIB_TYPE_IPV6; /* [4755-4-2] */
}

/* What the port gets: the packet where it is, if it has room before it. */
static inline uint8_t *make_frame(const struct ddps_ipoib_if *f, const void *packet, size_t len)
{
	if (packet == f->roomy)
		return f->roomy - DDPS_IPOIB_ENCAP_LEN;
	memcpy(f->frame + DDPS_IPOIB_ENCAP_LEN, packet, len);
	return f->frame;
}

static int send_ud_frame(struct ddps_ipoib_if *f, const struct ddps_ipoib_lladdr *to,
			 const struct ddps_ipoib_path *path, uint16_t type, const void *packet,
			 size_t len)
{
	uint8_t *frame = make_frame(f, packet, len);
	int err;

	ddps_ipoib_encap_encode(frame, type);
	err = f->port->ops->ud_send(f->port, to, path, frame, DDPS_IPOIB_ENCAP_LEN + len);
	f->stats.tx_failed += err != 0;
	return err;
}

int ddps_ipoib_tx_ud(struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n,
		     const uint8_t mgid[DDPS_IPOIB_GID_LEN], uint16_t type, const void *packet,
		     size_t len)
{
	struct ddps_ipoib_lladdr group = { .qpn = DDPS_IPOIB_QPN_MCAST };

	if (n) /* [4391-9.1.1-3] */
		return send_ud_frame(f, &n->lladdr, &n->path, type, packet, len);
	memcpy(group.gid, mgid, sizeof(group.gid));
	return send_ud_frame(f, &group, NULL, type, packet, len);
}

/* ---- Groups ---- */

struct group_send {
	struct ddps_ipoib_if *f;
	uint8_t mgid[DDPS_IPOIB_GID_LEN];
	uint16_t type;
};

static void group_emit(void *arg, const void *packet, size_t len)
{
	struct group_send *g = arg;

	if (!ddps_ipoib_tx_ud(g->f, NULL, g->mgid, g->type, packet, len))
		g->f->stats.tx_mcast++;
}

static uint32_t read_ip4(const uint8_t ip[4])
{
	return (uint32_t)ip[0] << 24 | (uint32_t)ip[1] << 16 | (uint32_t)ip[2] << 8 | ip[3];
}

static bool is_broadcast_of(const uint8_t own[4], unsigned prefix, uint32_t ip)
{
	return prefix && prefix <= 30 && ip == (read_ip4(own) | UINT32_MAX >> prefix);
}

/* All ones in the host part of one of the interface's subnets. */
static bool is_subnet_broadcast(const struct ddps_ipoib_if *f, uint32_t ip)
{
	if (f->cfg.has_ip4 && !(f->gone & 1) && is_broadcast_of(f->cfg.ip4, f->cfg.prefix4, ip))
		return true;
	for (unsigned i = 0; i < f->n_more; i++)
		if (!f->more[i].ip.v6 && is_broadcast_of(f->more[i].ip.a, f->more[i].prefix, ip))
			return true;
	return false;
}

static bool is_to_group(const struct ddps_ipoib_if *f, const uint8_t *packet)
{
	const uint32_t ip = read_ip4(packet + IP4_DST);

	if (!is_v4(packet))
		return packet[IP6_DST] == 0xff;
	return ip >> 28 == 0xe || ip == UINT32_MAX || is_subnet_broadcast(f, ip);
}

static void find_packet_group(const struct ddps_ipoib_if *f, const uint8_t *packet,
			      uint8_t mgid[DDPS_IPOIB_GID_LEN])
{
	const uint16_t pkey = f->cfg.me.pkey;

	if (!is_v4(packet))
		(void)ddps_ipoib_mgid_ipv6(mgid, packet + IP6_DST, pkey, f->cfg.scope);
	else if (ddps_ipoib_mgid_ipv4(mgid, packet + IP4_DST, pkey, f->cfg.scope))
		memcpy(mgid, f->broadcast, DDPS_IPOIB_GID_LEN);
}

/* [4755-2.1-1] [4755-7-3]: never on a connection. */
static void send_to_group(struct ddps_ipoib_if *f, const uint8_t *packet, size_t len)
{
	const struct ddps_ipoib_dst_mtu d = { .ud = f->ud_mtu };
	struct group_send g = { .f = f, .type = type_of(packet) };
	uint32_t mtu;

	find_packet_group(f, packet, g.mgid);
	switch (ddps_ipoib_mtu_fit(&d, len, may_split(packet), true, &mtu)) {
	case DDPS_IPOIB_FIT_SEND:
		group_emit(&g, packet, len);
		break;
	case DDPS_IPOIB_FIT_FRAGMENT:
		f->stats.tx_fragments +=
			(unsigned)ddps_ipoib_frag4(packet, len, mtu, group_emit, &g);
		break;
	default:
		f->stats.tx_too_big++;
	}
}

/* ---- One node ---- */

uint32_t ddps_ipoib_tx_mtu(const struct ddps_ipoib_if *f, const struct ddps_ipoib_node *n,
			   struct ddps_ipoib_qp **qp)
{
	uint32_t id;

	*qp = NULL;
	if (ddps_ipoib_peer_usable(&n->link.peer, &id))
		*qp = ddps_ipoib_conn_by_id(f, id);
	if (*qp && (!(*qp)->up || !(*qp)->to_send || (*qp)->stopped))
		*qp = NULL;
	return *qp && (*qp)->mtu ? (*qp)->mtu : f->ud_mtu;
}

/* Neighbour discovery stays off connections [4755-7-4]; the stack above may bring its own. */
static bool is_nd(const uint8_t *packet, size_t len)
{
	return !is_v4(packet) && len > 40 && packet[6] == 58 && packet[40] >= 133 &&
	       packet[40] <= 137;
}

/* Return: whether the packet has its way; else the connection is broken. */
static bool send_on_conn(struct ddps_ipoib_if *f, struct ddps_ipoib_qp *qp, const void *packet,
			 size_t len)
{
	uint8_t *frame = make_frame(f, packet, len);
	int err;

	ddps_ipoib_encap_encode(frame, type_of(packet)); /* [4755-4-1] */
	err = f->port->ops->qp_send(f->port, qp->qpn, frame, DDPS_IPOIB_ENCAP_LEN + len);
	if (!err) {
		f->qp_last = qp;
		/* On UC nobody says whether it arrives: the peer may have ended the
		 * connection unheard, so only what comes from it counts. */
		if (qp->transport != DDPS_CM_UC)
			ddps_ipoib_qp_is_used(f, qp);
		f->stats.tx_conn++;
		return true;
	}
	if (err == DDPS_E_AGAIN) {
		f->stats.tx_failed++;
		return true;
	}
	f->stats.conn_error++;
	ddps_ipoib_conn_broken(f, qp);
	return false;
}

/* By @qp, the connection that serves now; NULL: by none. */
static void emit_one(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, struct ddps_ipoib_qp *qp,
		     const void *packet, size_t len)
{
	int err;

	if (qp && !is_nd(packet, len) && send_on_conn(f, qp, packet, len))
		return;
	if (len > f->ud_mtu) {
		f->stats.tx_failed++;
		return;
	}
	err = send_ud_frame(f, &n->lladdr, &n->path, type_of(packet), packet, len);
	f->stats.tx_ud += !err;
	if (err == DDPS_E_ADDRESS) /* the port does not know the way any more */
		ddps_ipoib_node_doubt(f, n);
}

struct node_send {
	struct ddps_ipoib_if *f;
	struct ddps_ipoib_node *n;
};

static void node_emit(void *arg, const void *packet, size_t len)
{
	struct node_send *s = arg;
	struct ddps_ipoib_qp *qp; /* the fragment before may have found it broken */

	ddps_ipoib_tx_mtu(s->f, s->n, &qp);
	emit_one(s->f, s->n, qp, packet, len);
}

static bool connecting(const struct ddps_ipoib_node *n)
{
	return n->link.peer.own == DDPS_IPOIB_OWN_REQ_OUT || n->link.peer.n_pending;
}

static void send_to_node(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n, const uint8_t *packet,
			 size_t len)
{
	struct node_send s = { f, n };
	struct ddps_ipoib_qp *qp = NULL;
	const uint32_t mtu = LIST_FIRST(&n->qps) ? ddps_ipoib_tx_mtu(f, n, &qp) : f->ud_mtu;

	if (!qp && n->link.remote.flags) /* one that serves is all that traffic asks for */
		ddps_ipoib_conn_traffic(f, n);
	if (len <= mtu) {
		emit_one(f, n, qp, packet, len);
	} else if (!qp && connecting(n)) {
		/* Datagrams serve while a connection is made; what does not fit one waits for it. */
		n->held = !ddps_ipoib_queue_put(f, &n->hold, packet, len) || n->held;
	} else if (may_split(packet)) {
		f->stats.tx_fragments +=
			(unsigned)ddps_ipoib_frag4(packet, len, mtu, node_emit, &s);
	} else {
		f->stats.tx_too_big++;
		ddps_ipoib_too_big(f, packet, len, mtu);
	}
}

void ddps_ipoib_tx_queue(struct ddps_ipoib_if *f, struct ddps_ipoib_node *n,
			 struct ddps_ipoib_queue *q)
{
	struct ddps_ipoib_queue now = *q;
	uint64_t unused = 0;

	q->n = 0; /* some of them may have to be queued again */
	for (unsigned i = 0; i < now.n; i++)
		send_to_node(f, n, now.pkt[i].data, now.pkt[i].len);
	ddps_ipoib_queue_drop(f, &now, &unused);
}

/* From an address of ours that another node may have. */
static bool is_from_young(struct ddps_ipoib_if *f, const uint8_t *packet)
{
	const bool v6 = !is_v4(packet);
	const uint8_t *src = packet + (v6 ? IP6_SRC : IP4_SRC);

	return ddps_ipoib_is_own(f, v6, src) && !ddps_ipoib_is_held(f, v6, src);
}

static void send_whole(struct ddps_ipoib_if *f, const uint8_t *p, size_t len)
{
	struct ddps_ipoib_node *n;

	if (ddps_ipoib_may_report(p))
		ddps_ipoib_group_report(f, p, len);
	if (f->state != DDPS_IPOIB_IF_UP) {
		f->stats.tx_down++;
		return;
	}
	if (f->n_young && is_from_young(f, p)) { /* RFC 5227 2.1.1, RFC 4862 5.4 */
		f->stats.tx_young++;
		return;
	}
	if (is_to_group(f, p)) {
		send_to_group(f, p, len);
		return;
	}
	n = ddps_ipoib_nbr_way(f, !is_v4(p), p + (is_v4(p) ? IP4_DST : IP6_DST), p, len);
	if (n)
		send_to_node(f, n, p, len);
	ddps_ipoib_conn_settle(f);
}

int ddps_ipoib_if_send(struct ddps_ipoib_if *f, const void *packet, size_t len, uint64_t now)
{
	f->now = now;
	if (!ddps_ipoib_ip_ok(packet, len)) {
		f->stats.tx_bad++;
		return DDPS_E_INVAL;
	}
	send_whole(f, packet, len);
	ddps_ipoib_check(f);
	return 0;
}

int ddps_ipoib_if_send_frame(struct ddps_ipoib_if *f, void *frame, size_t len, uint64_t now)
{
	int err;

	f->roomy = (uint8_t *)frame + DDPS_IPOIB_ENCAP_LEN;
	err = ddps_ipoib_if_send(f, f->roomy, len, now);
	f->roomy = NULL;
	return err;
}
