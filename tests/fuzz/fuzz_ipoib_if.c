/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An IPoIB interface between a stack above, whose packets the script makes, and a fabric from
 * which anything may come: frames, ARP, neighbour discovery, ICMP, CM messages.  A CM agent plays
 * an honest peer where the script lets it, so that connections come up.
 */
#include "fuzz.h"
#include "ipoib_cm/wire/wire.h"
#include <ddpsess/ipoib_if.h>
#include <ddpsess/ipoib_port.h>

#define STEPS_MAX 250
#define QPS	  64
#define PENDING	  16
#define MS	  UINT64_C(1000000)
#define LINK_MTU  2048u
#define RX_MTU	  4096u
#define OUR_QPN	  0x48u
#define FRAME_MAX 5000u

static const uint8_t our_gid[16] = { 0xfe, 0x80, [14] = 1, [15] = 1 };

enum what { PATH, JOIN, MAD };

struct pending {
	enum what what;
	uint8_t gid[16], mad[DDPS_CM_MAD_LEN];
	ddps_cm_addr to;
};

struct rig {
	struct ddps_ipoib_port port; /* first */
	struct ddps_ipoib_if *f;
	struct ddps_cm *peer;
	uint64_t now;
	struct pending pending[PENDING];
	unsigned npending;
	struct {
		bool used, ready, stopped;
		uint32_t rx_mtu;
	} qp[QPS];   /* number: 0x400 + index */
	bool refuse; /* operations of the port fail */
};

static uint8_t buf[FRAME_MAX];

/* ---- the port ---- */

static void later(struct rig *g, enum what what, const uint8_t *gid, const uint8_t *mad,
		  ddps_cm_addr to)
{
	struct pending *p = &g->pending[g->npending];

	if (g->npending == PENDING)
		return; /* lost on the way */
	g->npending++;
	*p = (struct pending){ .what = what, .to = to };
	if (gid)
		memcpy(p->gid, gid, sizeof p->gid);
	if (mad)
		memcpy(p->mad, mad, sizeof p->mad);
}

static int port_ud(struct ddps_ipoib_port *port, const struct ddps_ipoib_lladdr *to,
		   const struct ddps_ipoib_path *path, const void *frame, size_t len)
{
	struct rig *g = (struct rig *)port;

	FUZZ_CHECK(len >= DDPS_IPOIB_ENCAP_LEN && len <= LINK_MTU);
	FUZZ_CHECK(!path == (to->qpn == DDPS_IPOIB_QPN_MCAST) && to->qpn <= DDPS_IPOIB_QPN_MAX);
	free(fuzz_exact(frame, len));
	return g->refuse ? DDPS_E_AGAIN : 0;
}

static int port_join(struct ddps_ipoib_port *port, const uint8_t *mgid)
{
	FUZZ_CHECK(mgid[0] == 0xff);
	later((struct rig *)port, JOIN, mgid, NULL, 0);
	return 0;
}

static void port_leave(struct ddps_ipoib_port *port, const uint8_t *mgid)
{
	(void)port;
	FUZZ_CHECK(mgid[0] == 0xff);
}

static int port_resolve(struct ddps_ipoib_port *port, const uint8_t *gid)
{
	struct rig *g = (struct rig *)port;

	if (g->refuse)
		return DDPS_E_AGAIN;
	later(g, PATH, gid, NULL, 0);
	return 0;
}

static int port_mad(struct ddps_ipoib_port *port, ddps_cm_addr to, const uint8_t *mad)
{
	struct ddps_cm_mad m;

	FUZZ_CHECK(!ddps_cm_mad_decode(&m, mad, DDPS_CM_MAD_LEN));
	later((struct rig *)port, MAD, NULL, mad, to);
	return 0;
}

static int port_qp_create(struct ddps_ipoib_port *port, uint8_t transport, uint32_t rx_mtu,
			  uint32_t *qpn)
{
	struct rig *g = (struct rig *)port;

	FUZZ_CHECK(transport == DDPS_CM_RC || transport == DDPS_CM_UC);
	for (unsigned i = 0; i < QPS && !g->refuse; i++) {
		if (g->qp[i].used)
			continue;
		g->qp[i].used = true;
		g->qp[i].ready = g->qp[i].stopped = false;
		g->qp[i].rx_mtu = rx_mtu;
		*qpn = 0x400 + i;
		return 0;
	}
	return DDPS_E_LIMIT;
}

static unsigned get_ipoib_if_fuzz_qp(const struct rig *g, uint32_t qpn)
{
	FUZZ_CHECK(qpn >= 0x400 && qpn < 0x400 + QPS && g->qp[qpn - 0x400].used);
	return qpn - 0x400;
}

static int port_qp_ready(struct ddps_ipoib_port *port, uint32_t qpn,
			 const struct ddps_ipoib_qp_to *to)
{
	struct rig *g = (struct rig *)port;
	unsigned i = get_ipoib_if_fuzz_qp(g, qpn);

	FUZZ_CHECK(!g->qp[i].stopped && !g->qp[i].ready && to->qpn <= DDPS_IPOIB_QPN_MAX);
	g->qp[i].ready = !g->refuse;
	return g->refuse ? DDPS_E_INVAL : 0;
}

static int port_qp_send(struct ddps_ipoib_port *port, uint32_t qpn, const void *frame, size_t len)
{
	struct rig *g = (struct rig *)port;
	unsigned i = get_ipoib_if_fuzz_qp(g, qpn);

	FUZZ_CHECK(g->qp[i].ready && !g->qp[i].stopped && len <= RX_MTU);
	free(fuzz_exact(frame, len));
	return g->refuse ? DDPS_E_AGAIN : 0;
}

static void port_qp_stop(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct rig *g = (struct rig *)port;

	g->qp[get_ipoib_if_fuzz_qp(g, qpn)].stopped = true;
}

static void port_qp_destroy(struct ddps_ipoib_port *port, uint32_t qpn)
{
	struct rig *g = (struct rig *)port;

	g->qp[get_ipoib_if_fuzz_qp(g, qpn)].used = false;
}

static const struct ddps_ipoib_port_ops ops = {
	.struct_size = sizeof(ops),
	.ud_send = port_ud,
	.join = port_join,
	.leave = port_leave,
	.resolve = port_resolve,
	.mad_send = port_mad,
	.qp_create = port_qp_create,
	.qp_ready = port_qp_ready,
	.qp_send = port_qp_send,
	.qp_stop = port_qp_stop,
	.qp_destroy = port_qp_destroy,
};

/* ---- above ---- */

static void take_ipoib_if_fuzz_delivery(void *user, const void *packet, size_t len)
{
	const uint8_t *p = fuzz_exact(packet, len);

	(void)user;
	FUZZ_CHECK(len >= 20);
	FUZZ_CHECK(p[0] >> 4 == 4 ? (size_t)(p[2] << 8 | p[3]) == len
				  : len >= 40 && (size_t)(p[4] << 8 | p[5]) + 40 == len);
	free((void *)(uintptr_t)p);
}

/* ---- the peer ---- */

/* Node @i has GID fe80::1:i+1 and addresses 10.0.1.i+1 and fe80::1:i+1; 0 is this side. */
static void node_gid(uint8_t *gid, unsigned i)
{
	memcpy(gid, our_gid, 16);
	gid[15] = (uint8_t)(i + 1);
}

static struct ddps_ipoib_lladdr node_addr(unsigned i, uint8_t flags)
{
	struct ddps_ipoib_lladdr a = { .flags = flags & 0xc0, .qpn = OUR_QPN + i };

	node_gid(a.gid, i);
	return a;
}

static void peer_priv(uint8_t *out, unsigned v)
{
	const struct ddps_ipoib_priv priv = { .qpn = OUR_QPN + 1, .rx_mtu = v ? v * 64 : 3000 };

	FUZZ_CHECK(!ddps_ipoib_priv_encode(out, &priv));
}

static void peer_outs(struct rig *g, const struct ddps_cm_outs *outs, unsigned v)
{
	struct ddps_cm_outs o = *outs, answer = { 0 };
	struct ddps_cm_rep rep = { .qpn = 0x500 + v % 4, .starting_psn = v };
	const struct ddps_cm_report *r = o.report;

	for (unsigned i = 0; i < o.n_send; i++)
		ddps_ipoib_if_up()->mad(g->f, 1, o.send[i].mad, DDPS_CM_MAD_LEN, g->now);
	if (!o.n_report)
		return;
	peer_priv(rep.private_data, v);
	if (r->state == DDPS_CM_ST_REQ_RCVD)
		ddps_cm_reply(g->peer, r->id, &rep, g->now, &answer);
	else if (r->state == DDPS_CM_ST_REP_RCVD)
		ddps_cm_ready(g->peer, r->id, NULL, g->now, &answer);
	else if (r->state == DDPS_CM_ST_DREQ_RCVD)
		ddps_cm_closed(g->peer, r->id, g->now, &answer);
	for (unsigned i = 0; i < answer.n_send; i++)
		ddps_ipoib_if_up()->mad(g->f, 1, answer.send[i].mad, DDPS_CM_MAD_LEN, g->now);
}

static void peer_connects(struct rig *g, unsigned v)
{
	struct ddps_cm_connect c = { .packet_life = 14, .to = 1 };
	struct ddps_cm_outs o = { 0 };
	uint32_t id;

	FUZZ_CHECK(!ddps_ipoib_service_id(&c.req.service_id, v & 1, OUR_QPN));
	c.req.qpn = 0x500 + v % 4;
	c.req.transport = v & 2 ? DDPS_CM_UC : DDPS_CM_RC;
	c.req.pkey = 0xffff;
	c.req.local_cm_timeout = c.req.remote_cm_timeout = 16;
	c.req.max_cm_retries = 3;
	node_gid(c.req.primary.local_gid, 1 + (v >> 2 & 1));
	node_gid(c.req.primary.remote_gid, 0);
	peer_priv(c.req.private_data, v & 0x80 ? v & 0x7f : 0);
	if (!ddps_cm_connect(g->peer, &c, g->now, &id, &o))
		peer_outs(g, &o, v);
}

/* What the port was asked for has happened, for good or ill. */
static void serve_ipoib_if_fuzz(struct rig *g, unsigned v)
{
	struct pending p;
	struct ddps_ipoib_path path = { .addr = 1, .mtu = 4, .life = 14, .dlid = 3 };
	struct ddps_cm_outs o = { 0 };
	unsigned at;

	if (!g->npending)
		return;
	at = v & 8 ? g->npending - 1 : 0;
	p = g->pending[at];
	g->pending[at] = g->pending[--g->npending];
	switch (p.what) {
	case PATH:
		ddps_ipoib_if_up()->path(g->f, p.gid, v % 8 == 7 ? NULL : &path, g->now);
		break;
	case JOIN:
		ddps_ipoib_if_up()->joined(g->f, p.gid, v % 8 == 7 ? DDPS_E_TIMEDOUT : 0,
					   v % 8 == 6 ? v : LINK_MTU, g->now);
		break;
	case MAD:
		if (v % 8 == 7)
			p.mad[v * 3 % DDPS_CM_MAD_LEN] ^= (uint8_t)v;
		if (!ddps_cm_rx(g->peer, p.mad, sizeof p.mad, 1, g->now, &o) && v % 8 != 6)
			peer_outs(g, &o, v >> 4);
		break;
	}
}

/* ---- frames ---- */

static size_t add_to_ipoib_if_fuzz(size_t at, const void *p, size_t n)
{
	if (n)
		memcpy(buf + at, p, n);
	return at + n;
}

static size_t make_arp(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), odd = ddps_rbuf_u8(in);
	struct ddps_ipoib_arp a = { .op = b & 1 ? 1 : 2, .sender_ip = { 10, 0, 1 } };

	if (odd == 0xff)
		a.op = ddps_rbuf_u8(in);
	a.sender = node_addr(b >> 2 & 3, (uint8_t)odd);
	a.target = node_addr(0, 0);
	a.sender_ip[3] = (uint8_t)((b >> (odd & 1 ? 4 : 2) & 3) + 1);
	memcpy(a.target_ip, a.sender_ip, 4);
	a.target_ip[3] = odd & 2 ? 9 : 1;
	FUZZ_CHECK(!ddps_ipoib_arp_encode(buf + DDPS_IPOIB_ENCAP_LEN, &a));
	ddps_ipoib_encap_encode(buf, DDPS_IPOIB_TYPE_ARP);
	if (odd & 4)
		buf[DDPS_IPOIB_ENCAP_LEN + ddps_rbuf_u8(in) % DDPS_IPOIB_ARP_LEN] ^= (uint8_t)b;
	return DDPS_IPOIB_ENCAP_LEN + DDPS_IPOIB_ARP_LEN - (odd & 8 ? b : 0) % 60;
}

/* The checksum of an ICMPv6 message in an IPv6 packet. */
static void seal6(uint8_t *p, size_t len)
{
	uint32_t sum = (uint32_t)(len - 40) + 58;

	p[42] = p[43] = 0;
	for (size_t i = 8; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	p[42] = (uint8_t)(~sum >> 8);
	p[43] = (uint8_t)~sum;
}

/* A neighbour solicitation or advertisement with options. */
static size_t make_nd(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), odd = ddps_rbuf_u8(in), node = 1 + (b >> 2 & 1);
	uint8_t gid[16], option[DDPS_IPOIB_ND_LEN], *p = buf + DDPS_IPOIB_ENCAP_LEN;
	struct ddps_ipoib_lladdr a = node_addr(node, (uint8_t)odd);
	size_t len = 64, n;
	const uint8_t *more;

	ddps_ipoib_encap_encode(buf, DDPS_IPOIB_TYPE_IPV6);
	memset(p, 0, 64);
	p[0] = 0x60;
	p[6] = 58;
	p[7] = odd == 0xff ? 64 : 255;
	node_gid(gid, node);
	if (!(odd & 1))
		memcpy(p + 8, gid, 16);
	memcpy(p + 24, our_gid, 16);
	p[40] = b & 1 ? 135 : 136;
	memcpy(p + 48, b & 1 ? our_gid : gid, 16);
	if (odd & 2) {
		more = fuzz_some(in, ddps_rbuf_u8(in) % 64, &n);
		len = add_to_ipoib_if_fuzz(DDPS_IPOIB_ENCAP_LEN + len, more, n) -
		      DDPS_IPOIB_ENCAP_LEN;
	}
	FUZZ_CHECK(!ddps_ipoib_nd_encode(option,
					 b & 1 ? DDPS_IPOIB_ND_SOURCE : DDPS_IPOIB_ND_TARGET, &a));
	if (!(odd & 4))
		len = add_to_ipoib_if_fuzz(DDPS_IPOIB_ENCAP_LEN + len, option, sizeof option) -
		      DDPS_IPOIB_ENCAP_LEN;
	p[4] = (uint8_t)((len - 40) >> 8);
	p[5] = (uint8_t)(len - 40);
	seal6(p, len);
	if (odd & 8)
		p[ddps_rbuf_u8(in) % len] ^= (uint8_t)(odd >> 4);
	return DDPS_IPOIB_ENCAP_LEN + len;
}

/* An IP packet of either version, behind an encapsulation header. */
static size_t make_ip(struct ddps_rbuf *in, bool out)
{
	unsigned b = ddps_rbuf_u8(in), odd = ddps_rbuf_u8(in), node = 1 + (b >> 1 & 3);
	uint8_t *p = buf + DDPS_IPOIB_ENCAP_LEN;
	size_t len = (b & 0x80 ? 64u : 8u) * (odd + 1) % (FRAME_MAX - 64) + 40, n;
	const uint8_t *data;

	memset(p, 0, len);
	ddps_ipoib_encap_encode(buf, b & 1 ? DDPS_IPOIB_TYPE_IPV6 : DDPS_IPOIB_TYPE_IPV4);
	if (b & 1) {
		p[0] = 0x60;
		p[4] = (uint8_t)((len - 40) >> 8);
		p[5] = (uint8_t)(len - 40);
		p[6] = b & 0x20 ? 58 : 17;
		p[7] = 64;
		node_gid(p + 8, out ? 0 : node);
		node_gid(p + 24, out ? node : 0);
		p[24] = b & 0x10 ? 0xff : p[24];
	} else {
		p[0] = 0x45;
		p[2] = (uint8_t)(len >> 8);
		p[3] = (uint8_t)len;
		p[6] = b & 0x08 ? 0x40 : 0;
		p[8] = 64;
		p[9] = b & 0x20 ? 1 : 17;
		memcpy(p + 12, (uint8_t[]){ 10, 0, 1, (uint8_t)(out ? 1 : node + 1) }, 4);
		memcpy(p + 16,
		       (uint8_t[]){ b & 0x10 ? 224 : 10, 0, 1, (uint8_t)(out ? node + 1 : 1) }, 4);
	}
	if (b & 0x40) { /* other octets of the header */
		data = fuzz_some(in, 3, &n);
		for (size_t i = 0; n == 3 && i < 2; i++)
			p[data[0] % 48] ^= data[1 + i];
	}
	return DDPS_IPOIB_ENCAP_LEN + len;
}

static size_t make_raw(struct ddps_rbuf *in)
{
	size_t n;
	const uint8_t *p = fuzz_some(in, ddps_rbuf_u8(in), &n);

	return add_to_ipoib_if_fuzz(0, p, n);
}

static void frame_in(struct rig *g, struct ddps_rbuf *in, unsigned kind)
{
	unsigned b = ddps_rbuf_u8(in);
	struct ddps_ipoib_ud_from from = { .qpn = OUR_QPN + (b & 3),
					   .has_gid = b & 4,
					   .multicast = b & 8 };
	size_t len = kind == 0	 ? make_arp(in)
		     : kind == 1 ? make_nd(in)
		     : kind == 2 ? make_ip(in, false)
				 : make_raw(in);
	uint8_t *exact = fuzz_exact(buf, len);

	node_gid(from.gid, b & 3);
	if (b & 0x40)
		ddps_ipoib_if_up()->qp(g->f, 0x400 + (b >> 4 & 3), exact, len, g->now);
	else
		ddps_ipoib_if_up()->ud(g->f, &from, exact, len, g->now);
	free(exact);
}

static void mad_in(struct rig *g, struct ddps_rbuf *in)
{
	size_t n = 0;
	const uint8_t *p = fuzz_some(in, ddps_rbuf_u8(in) + 1u, &n);
	uint8_t *exact = fuzz_exact(p, n);

	ddps_ipoib_if_up()->mad(g->f, 1, exact, n, g->now);
	free(exact);
}

static void packet_out(struct rig *g, struct ddps_rbuf *in, bool raw)
{
	size_t len = raw ? make_raw(in) : make_ip(in, true) - DDPS_IPOIB_ENCAP_LEN;
	uint8_t *exact = fuzz_exact(raw ? buf : buf + DDPS_IPOIB_ENCAP_LEN, len);

	ddps_ipoib_if_send(g->f, exact, len, g->now);
	free(exact);
}

/* ---- time ---- */

static void tick_ipoib_if_fuzz(struct rig *g, unsigned v)
{
	uint64_t due = ddps_ipoib_if_deadline(g->f);
	struct ddps_cm_outs o;

	if (v & 1 && due != DDPS_CM_NEVER && due > g->now)
		g->now = due;
	else
		g->now += MS << (v >> 1) % 16;
	for (int i = 0; ddps_ipoib_if_deadline(g->f) <= g->now; i++) {
		FUZZ_CHECK(i < 1000);
		ddps_ipoib_if_tick(g->f, g->now);
	}
	while (ddps_cm_tick(g->peer, g->now, &o))
		peer_outs(g, &o, v >> 4);
}

static void misc(struct rig *g, unsigned v)
{
	const uint8_t gid[16] = { 0xff, 0x12, 0x40 };

	switch (v & 7) {
	case 0:
		ddps_ipoib_if_stop(g->f, g->now);
		break;
	case 1:
		ddps_ipoib_if_start(g->f, g->now);
		break;
	case 2:
		ddps_ipoib_if_up()->qp_error(g->f, 0x400 + (v >> 4), DDPS_E_TIMEDOUT, g->now);
		break;
	case 3:
		ddps_ipoib_if_up()->link(g->f, v & 8, g->now);
		break;
	case 4:
		g->refuse = !g->refuse;
		break;
	case 5:
		ddps_ipoib_if_up()->joined(g->f, gid, v & 8 ? DDPS_E_TIMEDOUT : 0, v << 8, g->now);
		break;
	default:
		peer_connects(g, v >> 3 | (v << 7 & 0x80));
		break;
	}
}

static void step_ipoib_if_fuzz(struct rig *g, struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in);

	switch (b & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
		frame_in(g, in, b & 3);
		break;
	case 4:
	case 5:
		packet_out(g, in, b >= 0xf0);
		break;
	case 6:
		mad_in(g, in);
		break;
	case 7:
	case 8:
		tick_ipoib_if_fuzz(g, ddps_rbuf_u8(in));
		break;
	case 9:
		misc(g, ddps_rbuf_u8(in));
		break;
	default:
		serve_ipoib_if_fuzz(g, b >> 4);
		break;
	}
}

static void init_ipoib_if_fuzz_rig(struct rig *g, unsigned flags)
{
	const struct ddps_cm_config cm = {
		.struct_size = sizeof(cm), .ca_guid = 2, .tid_high = 9, .id_seed = 7, .max_conns = 8
	};
	struct ddps_ipoib_if_config cfg = { .struct_size = sizeof(cfg),
					    .me = { .pkey = 0xffff, .rx_mtu = RX_MTU },
					    .has_ip4 = true,
					    .ip4 = { 10, 0, 1, 1 },
					    .prefix4 = 24,
					    .n_ip6 = 1,
					    .passive = flags & 1,
					    .prefer_uc = flags & 2,
					    .form = flags & 4 ? DDPS_IPOIB_SID_LINUX
							      : DDPS_IPOIB_SID_RFC,
					    .max_nbr = 4,
					    .max_peers = 3,
					    .max_qps = 4,
					    .queue_octets = 8192,
					    .ca_guid = 1,
					    .seed = 5 };
	const struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
						   .deliver = take_ipoib_if_fuzz_delivery,
						   .user = g };
	struct ddps_cm_listener l = { .pkey = 0xffff };

	*g = (struct rig){ .port = { &ops }, .now = 1000 * MS };
	cfg.me.addr = node_addr(0, flags & 8 ? 0 : flags & 0x10 ? 0xc0 : 0x80);
	memcpy(cfg.ip6[0], our_gid, 16);
	FUZZ_CHECK(!ddps_ipoib_if_new(&g->f, &cfg, &g->port, &calls));
	FUZZ_CHECK(!ddps_cm_new(&g->peer, &cm));
	node_gid(l.gid, 1);
	for (unsigned form = 0; form < 2; form++) { /* only one of the two, so some REQs fail */
		FUZZ_CHECK(!ddps_ipoib_service_id(&l.service_id, (enum ddps_ipoib_sid_form)form,
						  OUR_QPN + 1));
		FUZZ_CHECK(form == (flags >> 5 & 1) || !ddps_cm_listen(g->peer, &l));
	}
	ddps_ipoib_if_start(g->f, g->now);
	serve_ipoib_if_fuzz(g, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	static struct rig g;

	init_ipoib_if_fuzz_rig(&g, ddps_rbuf_u8(&in));
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		step_ipoib_if_fuzz(&g, &in);
	ddps_ipoib_if_stop(g.f, g.now);
	for (int i = 0; !ddps_ipoib_if_at_rest(g.f); i++) {
		FUZZ_CHECK(i < 10000 && ddps_ipoib_if_deadline(g.f) != DDPS_CM_NEVER);
		tick_ipoib_if_fuzz(&g, 1);
	}
	ddps_ipoib_if_free(g.f);
	for (unsigned i = 0; i < QPS; i++)
		FUZZ_CHECK(!g.qp[i].used);
	ddps_cm_free(g.peer);
	return 0;
}
