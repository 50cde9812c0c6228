/* SPDX-License-Identifier: BSD-2-Clause */
/* The soft port: its formats, what it refuses, and packets over its sessions. */
#include "common/loop.h"
#include <ddpsess/ipoib_if.h>
#include "ipoib/soft/soft.h"
#include "ipoib/soft/soft_wire.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ddpsess/wr.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEC 1000000000ull

static const struct ddps_soft_header sample = {
	DDPS_SOFT_UD, 0x48, 0x49, { 0xfe, 0x80, [15] = 1 }, { 0xfe, 0x80, [15] = 2 }
};

Test(ipoib_soft, header)
{
	static const uint8_t hex[DDPS_SOFT_HEADER_LEN] = {
		0x64, 0x49, 0x70, 0x31, 1, 0, 0, 0, 0, 0, 0, 0x48, 0, 0, 0, 0x49,
		0xfe, 0x80, 0,	  0,	0, 0, 0, 0, 0, 0, 0, 0,	   0, 0, 0, 1,
		0xfe, 0x80, 0,	  0,	0, 0, 0, 0, 0, 0, 0, 0,	   0, 0, 0, 2
	};
	struct ddps_soft_header h = { 0 };
	uint8_t buf[DDPS_SOFT_HEADER_LEN];

	ddps_soft_header_encode(buf, &sample);
	cr_assert_arr_eq(buf, hex, sizeof(hex));
	cr_assert_eq(ddps_soft_header_decode(&h, buf, sizeof(buf)), 0);
	cr_assert_eq(memcmp(&h, &sample, sizeof(h)), 0);
	for (size_t len = 0; len < sizeof(buf); len++) {
		uint8_t *p = malloc(len ? len : 1);

		memcpy(p, buf, len);
		cr_assert_eq(ddps_soft_header_decode(&h, p, len), DDPS_E_TRUNCATED);
		free(p);
	}
}

Test(ipoib_soft, header_illegal)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} bad[] = { { 0, 0 }, { 3, 0x32 }, { 4, 0 }, { 4, 4 }, { 4, 2 }, { 8, 1 }, { 12, 1 } };
	struct ddps_soft_header h, mad = sample, group = sample;
	uint8_t buf[DDPS_SOFT_HEADER_LEN + 257] = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ddps_soft_header_encode(buf, &sample);
		buf[bad[i].at] = bad[i].value;
		cr_expect_eq(ddps_soft_header_decode(&h, buf, DDPS_SOFT_HEADER_LEN),
			     DDPS_E_PROTOCOL, "octet %u", bad[i].at);
	}
	mad.kind = DDPS_SOFT_MAD;
	ddps_soft_header_encode(buf, &mad);
	cr_expect_eq(ddps_soft_header_decode(&h, buf, DDPS_SOFT_HEADER_LEN + 255),
		     DDPS_E_TRUNCATED);
	cr_expect_eq(ddps_soft_header_decode(&h, buf, DDPS_SOFT_HEADER_LEN + 256), 0);
	cr_expect_eq(ddps_soft_header_decode(&h, buf, DDPS_SOFT_HEADER_LEN + 257),
		     DDPS_E_TRUNCATED);
	group.kind = DDPS_SOFT_GROUP;
	group.to_qpn = DDPS_IPOIB_QPN_MCAST;
	ddps_soft_header_encode(buf, &group);
	cr_expect_eq(ddps_soft_header_decode(&h, buf, DDPS_SOFT_HEADER_LEN), DDPS_E_PROTOCOL,
		     "a group's GID starts with ff");
}

Test(ipoib_soft, open)
{
	struct ddps_soft_open o = { 2, 0xfffffe, { 1 }, { 2 } }, back = { 0 };
	uint8_t buf[DDPS_SOFT_OPEN_LEN + 1];

	ddps_soft_open_encode(buf, &o);
	cr_assert_eq(ddps_soft_open_decode(&back, buf, DDPS_SOFT_OPEN_LEN), 0);
	cr_assert_eq(memcmp(&o, &back, sizeof(o)), 0);
	for (size_t len = 0; len <= sizeof(buf); len++)
		if (len != DDPS_SOFT_OPEN_LEN)
			cr_assert_eq(ddps_soft_open_decode(&back, buf, len), DDPS_E_TRUNCATED);
	buf[7] = 1;
	cr_assert_eq(ddps_soft_open_decode(&back, buf, DDPS_SOFT_OPEN_LEN), DDPS_E_PROTOCOL);
	buf[7] = 2;
	buf[0] ^= 1;
	cr_assert_eq(ddps_soft_open_decode(&back, buf, DDPS_SOFT_OPEN_LEN), DDPS_E_PROTOCOL);
}

/* ---- two interfaces ---- */

struct node {
	struct ddps_soft *s;
	struct ddps_ipoib_if *f;
	uint8_t gid[16];
	size_t last_len;
	unsigned n_rx;
	uint8_t last[65536];
};

static void deliver(void *user, const void *packet, size_t len)
{
	struct node *n = user;

	n->n_rx++;
	n->last_len = len;
	memcpy(n->last, packet, len);
}

static struct sockaddr_storage loopback(uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&a, &in, sizeof(in));
	return a;
}

static uint16_t group_port; /* of IP multicast; 0: none */

static struct sockaddr_storage group_address(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_storage a = { 0 };

	cr_assert_eq(inet_pton(AF_INET, text, &in.sin_addr), 1);
	memcpy(&a, &in, sizeof(in));
	return a;
}

static void node_open(struct node *n, uint8_t nr, const char *scheme, uint8_t flags)
{
	struct ddps_ipoib_if_calls calls = { .struct_size = sizeof(calls),
					     .deliver = deliver,
					     .user = n };
	struct ddps_ipoib_if_config c = {
		.struct_size = sizeof(c), .has_ip4 = true, .prefix4 = 24, .seed = nr
	};
	struct ddps_soft_config sc = { .qpn = 0x48, .link_mtu = 2048, .seed = nr * 1000u };
	char why[200];

	n->gid[0] = 0xfe;
	n->gid[1] = 0x80;
	n->gid[15] = nr;
	memcpy(sc.gid, n->gid, 16);
	sc.udp = loopback(0);
	if (group_port)
		sc.group = group_address("239.192.0.1", group_port);
	sc.listen = scheme;
	sc.up = ddps_ipoib_if_up();
	cr_assert_eq(ddps_ipoib_soft_new(&n->s, &sc, why, sizeof(why)), 0, "%s", why);
	memcpy(c.me.addr.gid, n->gid, 16);
	c.me.addr.qpn = 0x48;
	c.me.addr.flags = flags;
	c.me.pkey = 0xffff;
	c.me.rx_mtu = flags ? 65524 : 2048;
	memcpy(c.ip4, (uint8_t[]){ 10, 0, 0, nr }, 4);
	cr_assert_eq(ddps_ipoib_if_new(&n->f, &c, ddps_ipoib_soft_port(n->s), &calls), 0);
	ddps_ipoib_soft_user(n->s, n->f);
	cr_assert_eq(ddps_ipoib_if_start(n->f, ddps_now()), 0);
}

static void node_close(struct node *n)
{
	ddps_ipoib_if_free(n->f);
	ddps_ipoib_soft_free(n->s);
}

static void know(struct node *n, const struct node *other, char *uri)
{
	struct ddps_soft_peer p = { .udp = loopback(ddps_ipoib_soft_udp_port(other->s)) };

	memcpy(p.gid, other->gid, 16);
	if (ddps_ipoib_soft_uri(other->s, uri, 200) > 0)
		p.uri = uri;
	cr_assert_eq(ddps_ipoib_soft_add(n->s, &p), 0);
	cr_assert_eq(ddps_ipoib_soft_add(n->s, &p), DDPS_E_INVAL, "it is there already");
}

static void turn(struct node *n)
{
	uint64_t now = ddps_now();

	(void)ddps_ipoib_soft_run(n->s, now);
	if (ddps_ipoib_if_deadline(n->f) <= now)
		ddps_ipoib_if_tick(n->f, now);
}

static void turns(struct node *a, struct node *b)
{
	struct pollfd fds[2 * DDPS_SOFT_FDS];

	turn(a);
	turn(b);
	ddps_ipoib_soft_fds(a->s, fds);
	ddps_ipoib_soft_fds(b->s, fds + DDPS_SOFT_FDS);
	(void)poll(fds, 2 * DDPS_SOFT_FDS, 5);
}

static size_t packet(uint8_t *p, uint8_t from, uint8_t to, size_t len, bool df)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7);
	memcpy(p,
	       (uint8_t[20]){ 0x45,
			      0,
			      (uint8_t)(len >> 8),
			      (uint8_t)len,
			      0,
			      1,
			      df ? 0x40 : 0,
			      0,
			      64,
			      17,
			      0,
			      0,
			      10,
			      0,
			      0,
			      from,
			      10,
			      0,
			      0,
			      to },
	       20);
	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	p[10] = (uint8_t)(~sum >> 8);
	p[11] = (uint8_t)~sum;
	return len;
}

static unsigned conns(const struct node *n)
{
	struct ddps_ipoib_if_conn_info info;
	unsigned up = 0;
	int res;

	for (unsigned i = 0; (res = ddps_ipoib_if_conn_info(n->f, i, &info)) >= 0; i++)
		up += res == 1 && info.up;
	return up;
}

static void until_rx(struct node *a, struct node *b, struct node *at, unsigned n)
{
	uint64_t end = ddps_now() + 20 * SEC;

	while (at->n_rx < n && ddps_now() < end)
		turns(a, b);
	cr_assert_geq(at->n_rx, n);
}

/* A small packet starts the connection, a large one goes over it unchanged. */
static void large_packet(const char *scheme)
{
	struct node *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	uint64_t end = ddps_now() + 20 * SEC;
	char uri[2][200];
	uint8_t *p = malloc(65520);

	node_open(a, 1, scheme, DDPS_IPOIB_RC);
	node_open(b, 2, scheme, DDPS_IPOIB_RC);
	know(a, b, uri[0]);
	know(b, a, uri[1]);
	while ((ddps_ipoib_if_state(a->f) != DDPS_IPOIB_IF_UP ||
		ddps_ipoib_if_state(b->f) != DDPS_IPOIB_IF_UP) &&
	       ddps_now() < end)
		turns(a, b);
	(void)ddps_ipoib_if_send(a->f, p, packet(p, 1, 2, 100, false), ddps_now());
	until_rx(a, b, b, 1);
	while ((!conns(a) || !conns(b)) && ddps_now() < end)
		turns(a, b);
	cr_assert_eq(conns(a), 1);
	b->n_rx = 0;
	(void)ddps_ipoib_if_send(a->f, p, packet(p, 1, 2, 65520, true), ddps_now());
	until_rx(a, b, b, 1);
	cr_assert_eq(b->last_len, 65520);
	cr_assert_arr_eq(b->last, p, 65520);
	(void)ddps_ipoib_if_send(b->f, p, packet(p, 2, 1, 65520, true), ddps_now());
	until_rx(a, b, a, 1);
	cr_assert_arr_eq(a->last, p, 65520);
	cr_assert_eq(ddps_ipoib_soft_stats(a->s)->session_up, 1);
	node_close(b); /* killed: the other side finds out by the session's end */
	end = ddps_now() + 20 * SEC;
	while (conns(a) && ddps_now() < end)
		turns(a, a);
	cr_assert_eq(conns(a), 0);
	node_close(a);
	free(a);
	free(b);
	free(p);
}

Test(ipoib_soft, large_packet_tcp, .timeout = 90)
{
	large_packet("tcp://127.0.0.1:0");
}

Test(ipoib_soft, large_packet_sctp, .timeout = 90)
{
	large_packet("sctp://127.0.0.1:0?backend=native&encap=0");
}

Test(ipoib_soft, strangers, .timeout = 60)
{
	struct node *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct ddps_soft_header h = { .kind = DDPS_SOFT_UD, .from_qpn = 3, .to_qpn = 0x48 };
	const struct ddps_soft_stats *st;
	uint64_t end = ddps_now() + 20 * SEC;
	uint8_t buf[DDPS_SOFT_HEADER_LEN];
	struct sockaddr_storage to;
	char uri[200];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	node_open(a, 1, NULL, 0);
	node_open(b, 2, NULL, 0);
	know(a, b, uri);
	st = ddps_ipoib_soft_stats(a->s);
	to = loopback(ddps_ipoib_soft_udp_port(a->s));
	memcpy(h.from, b->gid, 16); /* a peer's GID, not its address */
	memcpy(h.to, a->gid, 16);
	ddps_soft_header_encode(buf, &h);
	for (size_t len = 0; len <= sizeof(buf); len++)
		cr_assert_eq(sendto(fd, buf, len, 0, (struct sockaddr *)&to,
				    sizeof(struct sockaddr_in)),
			     (ssize_t)len);
	while (st->rx_bad + st->rx_stranger < sizeof(buf) + 1 && ddps_now() < end)
		turns(a, a);
	cr_assert_eq(st->rx_bad, sizeof(buf));
	cr_assert_eq(st->rx_stranger, 1);
	cr_assert_eq(ddps_ipoib_if_stats(a->f)->rx_short, 0, "nothing was passed up");
	close(fd);
	node_close(a);
	node_close(b);
	free(a);
	free(b);
}

/* A port that nobody has now, for a group: it cannot be 0 and told afterwards. */
static uint16_t free_port(void)
{
	struct sockaddr_storage a = loopback(0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(struct sockaddr_in)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(((struct sockaddr_in *)&a)->sin_port);
}

/* They have not heard of each other: only IP multicast can bring b's ARP request to a. */
Test(ipoib_soft, groups_by_ip_multicast, .timeout = 60)
{
	struct node *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	uint64_t end = ddps_now() + 20 * SEC;
	char uri[2][200];
	uint64_t strangers;
	uint8_t p[100];

	group_port = free_port();
	node_open(a, 1, NULL, 0);
	node_open(b, 2, NULL, 0);
	while ((ddps_ipoib_if_state(a->f) != DDPS_IPOIB_IF_UP ||
		ddps_ipoib_if_state(b->f) != DDPS_IPOIB_IF_UP) &&
	       ddps_now() < end)
		turns(a, b);
	(void)ddps_ipoib_if_send(b->f, p, packet(p, 2, 1, 100, false), ddps_now());
	while (!ddps_ipoib_soft_stats(a->s)->rx_stranger && ddps_now() < end)
		turns(a, b);
	cr_assert_geq(ddps_ipoib_soft_stats(a->s)->rx_stranger, 1, "no peer of a's list");
	know(a, b, uri[0]);
	know(b, a, uri[1]);
	strangers = ddps_ipoib_soft_stats(a->s)->rx_stranger;
	(void)ddps_ipoib_if_send(a->f, p, packet(p, 1, 2, 100, false), ddps_now());
	until_rx(a, b, b, 1);
	cr_expect_arr_eq(b->last, p, 100);
	cr_expect_eq(ddps_ipoib_soft_stats(a->s)->rx_bad, 0);
	cr_expect_eq(ddps_ipoib_soft_stats(a->s)->rx_stranger, strangers, "its own is none");
	node_close(a);
	node_close(b);
	free(a);
	free(b);
}

Test(ipoib_soft, refuses_groups_that_are_none)
{
	struct ddps_soft_config c = { .qpn = 0x48, .link_mtu = 2048, .up = ddps_ipoib_if_up() };
	struct ddps_soft *s = NULL;
	char why[200];

	c.udp = loopback(0);
	c.group = group_address("10.0.0.1", 7000);
	cr_expect_eq(ddps_ipoib_soft_new(&s, &c, why, sizeof(why)), DDPS_E_INVAL);
	cr_expect(strstr(why, "10.0.0.1:7000 is no IP multicast address"), "%s", why);
	c.group.ss_family = AF_INET6;
	cr_expect_eq(ddps_ipoib_soft_new(&s, &c, why, sizeof(why)), DDPS_E_INVAL);
	cr_expect_null(s);
}

/* Over IPv6 the interface is found by the address. */
Test(ipoib_soft, group_of_ipv6)
{
	struct ddps_soft_config c = { .qpn = 0x48, .link_mtu = 2048, .up = ddps_ipoib_if_up() };
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in6 group = { .sin6_family = AF_INET6 };
	struct ddps_soft *s = NULL;
	char why[200];

	group.sin6_port = htons(free_port());
	cr_assert_eq(inet_pton(AF_INET6, "ff02::4:1", &group.sin6_addr), 1);
	memcpy(&c.udp, &own, sizeof(own));
	memcpy(&c.group, &group, sizeof(group));
	if (ddps_ipoib_soft_new(&s, &c, why, sizeof(why)) == DDPS_E_SYSTEM)
		cr_skip("no IPv6 here: %s", why);
	cr_assert_not_null(s, "%s", why);
	ddps_ipoib_soft_free(s);
}

Test(ipoib_soft, queue_pairs_have_limits)
{
	struct ddps_soft_config c = {
		.qpn = 0x48, .link_mtu = 2048, .max_qps = 2, .up = ddps_ipoib_if_up()
	};
	struct ddps_ipoib_port *port;
	struct ddps_soft *s = NULL;
	uint32_t qpn[3];
	char why[200];

	c.udp = loopback(0);
	cr_assert_eq(ddps_ipoib_soft_new(&s, &c, why, sizeof(why)), 0, "%s", why);
	port = ddps_ipoib_soft_port(s);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 0, qpn), DDPS_E_LIMIT);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 65525, qpn), DDPS_E_LIMIT);
	cr_expect_eq(port->ops->qp_create(port, 3, 2048, qpn), DDPS_E_UNSUPPORTED);
	cr_assert_eq(port->ops->qp_create(port, DDPS_CM_RC, 65524, qpn), 0);
	cr_assert_eq(port->ops->qp_create(port, DDPS_CM_UC, 1, qpn + 1), 0);
	cr_expect_neq(qpn[0], qpn[1]);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 2048, qpn + 2), DDPS_E_LIMIT);
	port->ops->qp_destroy(port, qpn[0]);
	cr_expect_eq(port->ops->qp_create(port, DDPS_CM_RC, 2048, qpn + 2), 0);
	ddps_ipoib_soft_free(s);
}

/* ---- sessions that nobody has asked for by a REQ ---- */

/* Asks for @count sessions at once with that private data.  Return: how many are established;
 * the others are rejected. */
static unsigned ask_sessions(struct node *n, struct ddps_ctx *ctx, struct ddps_pd *pd,
			     struct ddps_cq *cq, const char *uri, const void *priv, size_t len,
			     unsigned count)
{
	uint64_t end = ddps_now() + 20 * SEC;
	unsigned answers = 0, yes = 0;
	struct ddps_conn_param p;
	struct ddps_ep_attr a;
	struct ddps_event ev;
	struct ddps_ep *ep[2];

	cr_assert_leq(count, 2);
	ddps_ep_attr_init(&a);
	a.pd = pd;
	a.send_cq = a.recv_cq = cq;
	ddps_conn_param_init(&p);
	p.private_data = priv;
	p.private_data_len = len;
	for (unsigned i = 0; i < count; i++) {
		cr_assert_eq(ddps_ep_new(ctx, &a, &ep[i]), 0);
		cr_assert_eq(ddps_connect(ep[i], uri, &p), 0);
	}
	for (unsigned i = 0; i < 100; i++) /* so that they come together */
		(void)ddps_progress(ctx, 0);
	while (answers < count && ddps_now() < end) {
		turns(n, n);
		(void)ddps_progress(ctx, 0);
		if (ddps_event_get(ctx, &ev) != 1)
			continue;
		answers++;
		yes += ev.type == DDPS_EV_ESTABLISHED;
		cr_expect(ev.type == DDPS_EV_ESTABLISHED || ev.type == DDPS_EV_REJECTED);
	}
	cr_assert_eq(answers, count);
	for (unsigned i = 0; i < count; i++)
		ddps_ep_free(ep[i]);
	return yes;
}

Test(ipoib_soft, sessions_of_no_queue_pair_are_refused, .timeout = 60)
{
	struct node *a = calloc(1, sizeof(*a));
	struct ddps_soft_open o = { 2, 3, { 0xfe, 0x80, [15] = 2 }, { 0xfe, 0x80, [15] = 1 } };
	uint8_t priv[DDPS_SOFT_OPEN_LEN];
	struct ddps_ipoib_port *port;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	char uri[200];

	node_open(a, 1, "tcp://127.0.0.1:0", DDPS_IPOIB_RC);
	cr_assert_gt(ddps_ipoib_soft_uri(a->s, uri, sizeof(uri)), 0);
	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	cr_assert_eq(ddps_pd_new(ctx, &pd), 0);
	cr_assert_eq(ddps_cq_new(ctx, 64, &cq), 0);
	cr_expect_eq(ask_sessions(a, ctx, pd, cq, uri, NULL, 0, 1), 0);
	ddps_soft_open_encode(priv, &o);
	cr_expect_eq(ask_sessions(a, ctx, pd, cq, uri, priv, sizeof(priv), 1), 0);
	/* one that exists, but that no REQ has joined to a peer */
	port = ddps_ipoib_soft_port(a->s);
	cr_assert_eq(port->ops->qp_create(port, DDPS_CM_RC, 2048, &o.to_qpn), 0);
	ddps_soft_open_encode(priv, &o);
	cr_expect_eq(ask_sessions(a, ctx, pd, cq, uri, priv, sizeof(priv), 1), 0);
	cr_expect_eq(ddps_ipoib_soft_stats(a->s)->session_refused, 3);
	cr_expect_eq(ddps_ipoib_soft_stats(a->s)->session_up, 0);
	ddps_ctx_free(ctx);
	node_close(a);
	free(a);
}

/* The same towards a queue pair that waits for its session: only what its REQ said will do. */
Test(ipoib_soft, only_the_session_of_the_req_is_taken, .timeout = 60)
{
	struct node *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct ddps_soft_open o = { 77, 0, { 0xfe, 0x80, [15] = 2 }, { 0xfe, 0x80, [15] = 1 } };
	struct ddps_ipoib_qp_to to = { .qpn = 77, .rx_mtu = 2048, .path = { .addr = 1 } };
	uint8_t priv[DDPS_SOFT_OPEN_LEN];
	struct ddps_ipoib_port *port;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	char uri[2][200];

	node_open(a, 1, "tcp://127.0.0.1:0", DDPS_IPOIB_RC);
	node_open(b, 2, NULL, 0);
	know(a, b, uri[1]);
	cr_assert_gt(ddps_ipoib_soft_uri(a->s, uri[0], 200), 0);
	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	cr_assert_eq(ddps_pd_new(ctx, &pd), 0);
	cr_assert_eq(ddps_cq_new(ctx, 64, &cq), 0);
	port = ddps_ipoib_soft_port(a->s);
	cr_assert_eq(port->ops->qp_create(port, DDPS_CM_RC, 2048, &o.to_qpn), 0);
	cr_assert_eq(port->ops->qp_ready(port, o.to_qpn, &to), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct ddps_soft_open bad = o;

		bad.from_qpn += i == 0;
		bad.from[15] = i == 1 ? 3 : 2;
		bad.to[15] = i == 2 ? 9 : 1;
		ddps_soft_open_encode(priv, &bad);
		cr_expect_eq(ask_sessions(a, ctx, pd, cq, uri[0], priv, sizeof(priv), 1), 0,
			     "case %u", i);
	}
	cr_expect_eq(ddps_ipoib_soft_stats(a->s)->session_refused, 3);
	ddps_soft_open_encode(priv, &o);
	/* a second one, while the first is not up yet, gets an answer too */
	cr_expect_eq(ask_sessions(a, ctx, pd, cq, uri[0], priv, sizeof(priv), 2), 1);
	cr_expect_eq(ddps_ipoib_soft_stats(a->s)->session_refused, 4);
	ddps_ctx_free(ctx);
	node_close(a);
	node_close(b);
	free(a);
	free(b);
}
