/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The soft port, which carries IPoIB over IP: datagrams of peers and strangers, requests of
 * sessions, messages on them, and the calls of an interface.  The session API is soft_session.c's.
 * A model says what goes up and out; each request of a session is answered once.
 */
#include "fuzz.h"
#include "soft_session.h"
#include <errno.h>
#include <netinet/in.h>

#define STEPS_MAX 300
#define PEERS	  3 /* the last one takes no sessions */
#define QPS	  4
#define QPN	  0x48u
#define LINK_MTU  200u
#define GROUPS	  4
#define NOW	  1000

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *from,
			socklen_t *len);

static struct world {
	struct ddps_soft *s;
	struct soft_session *x;
	uint32_t qp[QPS]; /* 0: free */
	/* one datagram that comes in */
	struct sockaddr_in src;
	uint8_t dgram[DDPS_SOFT_HEADER_LEN + LINK_MTU + DDPS_CM_MAD_LEN];
	size_t dgram_len;
	bool dgram_there;
	/* what has gone up since it was last looked at */
	unsigned n_ud, n_mad, n_qp, n_error, n_path, n_joined, n_sent;
	const uint8_t *want; /* the frame that is due, and its length */
	size_t want_len;
	uint32_t want_qpn;
	unsigned queries, joins;
	bool member[GROUPS], destroy_inside;
	int fail_send;
	uint8_t frame[LINK_MTU + DDPS_CM_MAD_LEN];
} w;

static const uint8_t me[16] = { 0xfe, 0x80, [15] = 9 };

static void gid_of(uint8_t gid[16], unsigned nr)
{
	memcpy(gid, me, 16);
	gid[15] = (uint8_t)nr;
}

static void mgid_of(uint8_t gid[16], unsigned nr)
{
	memset(gid, 0, 16);
	gid[0] = 0xff;
	gid[15] = (uint8_t)(nr % GROUPS);
}

/* ---- sockets ---- */

ssize_t __wrap_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *from,
			socklen_t *len)
{
	(void)fd;
	FUZZ_CHECK(flags & MSG_TRUNC && *len >= sizeof w.src);
	if (!w.dgram_there) {
		errno = EAGAIN;
		return -1;
	}
	w.dgram_there = false;
	FUZZ_CHECK(w.dgram_len <= n);
	memcpy(buf, w.dgram, w.dgram_len);
	memcpy(from, &w.src, sizeof w.src);
	*len = sizeof w.src;
	return (ssize_t)w.dgram_len;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	const struct sockaddr_in *to = m->msg_name;
	struct ddps_soft_header h;

	(void)fd;
	(void)flags;
	FUZZ_CHECK(m->msg_iovlen == 2 && m->msg_iov[0].iov_len == DDPS_SOFT_HEADER_LEN);
	if (w.fail_send) {
		errno = w.fail_send;
		return -1;
	}
	FUZZ_CHECK(ddps_soft_header_decode(&h, m->msg_iov[0].iov_base,
					   DDPS_SOFT_HEADER_LEN + m->msg_iov[1].iov_len) == 0);
	FUZZ_CHECK(!memcmp(h.from, me, 16));
	FUZZ_CHECK(h.from_qpn == (h.kind == DDPS_SOFT_MAD ? 1 : QPN));
	FUZZ_CHECK(h.kind == DDPS_SOFT_GROUP || ntohs(to->sin_port) == 5000 + h.to[15]);
	FUZZ_CHECK(m->msg_iov[1].iov_len == w.want_len &&
		   !memcmp(m->msg_iov[1].iov_base, w.want, w.want_len));
	w.n_sent++;
	return (ssize_t)(DDPS_SOFT_HEADER_LEN + w.want_len);
}

/* ---- up ---- */

static void up_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t now)
{
	FUZZ_CHECK(user == &w && now == NOW && from->has_gid && from->gid[15] < PEERS);
	FUZZ_CHECK(len == w.want_len && !memcmp(frame, w.want, len));
	w.n_ud++;
}

static void up_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t now)
{
	FUZZ_CHECK(user == &w && now == NOW && from >= 1 && from <= PEERS);
	FUZZ_CHECK(len == DDPS_CM_MAD_LEN && w.want_len == len && !memcmp(mad, w.want, len));
	w.n_mad++;
}

static void destroy(uint32_t qpn)
{
	struct ddps_ipoib_port *port = ddps_ipoib_soft_port(w.s);

	port->ops->qp_destroy(port, qpn);
	for (unsigned i = 0; i < QPS; i++)
		if (w.qp[i] == qpn)
			w.qp[i] = 0;
}

static bool is_mine(uint32_t qpn)
{
	for (unsigned i = 0; i < QPS; i++)
		if (qpn && w.qp[i] == qpn)
			return true;
	return false;
}

static void up_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t now)
{
	FUZZ_CHECK(user == &w && now == NOW && is_mine(qpn) && qpn == w.want_qpn);
	FUZZ_CHECK(len == w.want_len && !memcmp(frame, w.want, len));
	w.n_qp++;
	if (w.destroy_inside)
		destroy(qpn);
}

static void up_qp_error(void *user, uint32_t qpn, int err, uint64_t now)
{
	FUZZ_CHECK(user == &w && now == NOW && is_mine(qpn) && err < 0);
	w.n_error++;
	if (w.destroy_inside)
		destroy(qpn);
}

static void up_path(void *user, const uint8_t *gid, const struct ddps_ipoib_path *path,
		    uint64_t now)
{
	bool known = gid[15] < PEERS && !memcmp(gid, me, 15);

	FUZZ_CHECK(user == &w && now == NOW && known == (path != NULL));
	FUZZ_CHECK(!path || path->addr == gid[15] + UINT64_C(1));
	w.n_path++;
}

static void up_joined(void *user, const uint8_t *mgid, int err, uint32_t mtu, uint64_t now)
{
	FUZZ_CHECK(user == &w && now == NOW && mgid[0] == 0xff && !err && mtu == LINK_MTU);
	w.n_joined++;
}

static const struct ddps_ipoib_up ups = { .struct_size = sizeof(ups),
					  .ud = up_ud,
					  .mad = up_mad,
					  .qp = up_qp,
					  .qp_error = up_qp_error,
					  .path = up_path,
					  .joined = up_joined };

/* ---- the script ---- */

static void run(void)
{
	for (int n = 0; ddps_ipoib_soft_run(w.s, NOW); n++)
		FUZZ_CHECK(n < 1000);
	FUZZ_CHECK(w.n_path == w.queries && w.n_joined == w.joins);
}

/* 0: bad, 1: a stranger, 2: of a group we are not in, 3: to be given up, 4: a MAD. */
static int model(void)
{
	const uint8_t *p = w.dgram;
	uint32_t from = (uint32_t)p[8] << 24 | (uint32_t)p[9] << 16 | (uint32_t)p[10] << 8 | p[11];
	uint32_t to = (uint32_t)p[12] << 24 | (uint32_t)p[13] << 16 | (uint32_t)p[14] << 8 | p[15];
	bool group = p[4] == 2;

	if (w.dgram_len < 48 || memcmp(p, "dIp1", 4) != 0 || p[4] < 1 || p[4] > 3 ||
	    from >= 0xffffff)
		return 0;
	if (group ? to != 0xffffff || p[32] != 0xff : to >= 0xffffff)
		return 0;
	if (p[4] == 3 && w.dgram_len != 48 + 256)
		return 0;
	if (memcmp(p + 16, me, 15) != 0 || p[31] >= PEERS ||
	    ntohl(w.src.sin_addr.s_addr) != INADDR_LOOPBACK ||
	    ntohs(w.src.sin_port) != 5000 + p[31])
		return 1;
	if (group) {
		uint8_t gid[16];

		mgid_of(gid, p[47]);
		return !memcmp(gid, p + 32, 16) && w.member[p[47] % GROUPS] ? 3 : 2;
	}
	if (memcmp(p + 32, me, 16) != 0 || (p[4] == 1 && to != QPN))
		return 1;
	return p[4] == 3 ? 4 : 3;
}

static void datagram_step(struct ddps_rbuf *in)
{
	const struct ddps_soft_stats before = *ddps_ipoib_soft_stats(w.s), *after;
	unsigned what = ddps_rbuf_u8(in), who = ddps_rbuf_u8(in), odd = ddps_rbuf_u8(in);
	struct ddps_soft_header h = { .kind = 1 + what % 3, .from_qpn = 0x50, .to_qpn = QPN };
	unsigned ud = w.n_ud, mad = w.n_mad;
	size_t n, len = h.kind == DDPS_SOFT_MAD ? DDPS_CM_MAD_LEN : what;
	const uint8_t *body = fuzz_some(in, odd & 0x80 ? odd & 31 : 0, &n);
	int want;

	gid_of(h.from, who & 3);
	memcpy(h.to, me, 16);
	if (h.kind == DDPS_SOFT_GROUP) {
		mgid_of(h.to, who >> 2);
		h.to_qpn = DDPS_IPOIB_QPN_MCAST;
	}
	memset(w.dgram, (int)who, sizeof w.dgram);
	ddps_soft_header_encode(w.dgram, &h);
	w.dgram_len = DDPS_SOFT_HEADER_LEN + len;
	if (n && odd & 0x40)
		memcpy(w.dgram + DDPS_SOFT_HEADER_LEN, body, n);
	else if (n >= 2)
		w.dgram[body[0] % 48] = body[1];
	if ((odd & 0xe0) == 0x20)
		w.dgram_len = w.dgram_len * (odd & 31) / 32;
	w.src = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_port = htons((uint16_t)(5000 + (who & 3))),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if ((odd & 0xe0) == 0x40)
		w.src.sin_port = htons((uint16_t)(5000 + (odd & 3)));
	w.dgram_there = true;
	w.want = w.dgram + DDPS_SOFT_HEADER_LEN;
	w.want_len = w.dgram_len - DDPS_SOFT_HEADER_LEN;
	want = model();
	run();
	after = ddps_ipoib_soft_stats(w.s);
	FUZZ_CHECK(after->rx_bad - before.rx_bad == (want == 0));
	FUZZ_CHECK(after->rx_stranger - before.rx_stranger == (want == 1));
	FUZZ_CHECK(after->rx_group - before.rx_group == (want == 2));
	FUZZ_CHECK(w.n_ud - ud == (want == 3) && w.n_mad - mad == (want == 4));
}

static struct soft_qp *qp_of(uint32_t qpn)
{
	struct soft_qp *q = w.s->qp;

	while (q && q->qpn != qpn)
		q = q->next;
	return q;
}

/* Somebody opens a session; who it is and for which queue pair may be true. */
static void request_step(struct ddps_rbuf *in)
{
	unsigned who = ddps_rbuf_u8(in), odd = ddps_rbuf_u8(in);
	const struct soft_qp *q = qp_of(w.qp[who >> 4 & 3]);
	struct ddps_soft_open o = { .from_qpn = 0x60 + (who >> 2 & 3),
				    .to_qpn = w.qp[who >> 4 & 3] };
	struct ddps_event ev = { .type = DDPS_EV_CONNECT_REQUEST, .request = (void *)w.x };
	uint64_t refused = ddps_ipoib_soft_stats(w.s)->session_refused;
	bool want;

	gid_of(o.from, who & 3);
	memcpy(o.to, me, 16);
	ddps_soft_open_encode(ev.private_data, &o);
	ev.private_data_len = DDPS_SOFT_OPEN_LEN;
	want = q && q->ready && !q->stopped && !q->active && q->ep && !q->ep->used &&
	       q->to_qpn == o.from_qpn && q->peer == (who & 3);
	if (odd & 0x80) {
		ev.private_data[(odd & 0x3f) % DDPS_SOFT_OPEN_LEN] ^= 1;
		ev.private_data_len -= odd >> 6 & 1;
		want = false;
	}
	w.x->asked = w.x->answered = w.x->accepted = false;
	soft_session_event(&ev);
	run();
	FUZZ_CHECK(w.x->asked && w.x->answered && w.x->accepted == want);
	FUZZ_CHECK(ddps_ipoib_soft_stats(w.s)->session_refused - refused == !want);
}

static void session_step(struct ddps_rbuf *in)
{
	static const enum ddps_event_type types[] = { DDPS_EV_ESTABLISHED, DDPS_EV_ESTABLISHED,
						      DDPS_EV_FAILED,	   DDPS_EV_CLOSED,
						      DDPS_EV_TERMINATED,  DDPS_EV_PEER_CLOSED };
	unsigned b = ddps_rbuf_u8(in), errors = w.n_error;
	enum ddps_event_type type = types[(b & 15) % 6];
	struct soft_qp *q = qp_of(w.qp[b >> 4 & 3]);
	bool end = type != DDPS_EV_ESTABLISHED && type != DDPS_EV_TERMINATED;

	if (!q || !q->ep || !q->ep->used || (type == DDPS_EV_ESTABLISHED && q->ep->up))
		return;
	q->ep->ended |= type != DDPS_EV_ESTABLISHED;
	soft_session_event(&(struct ddps_event){ .type = type, .ep = q->ep, .user = q });
	run();
	FUZZ_CHECK(w.n_error - errors == end);
}

/* A message of the peer, or our oldest ones have left. */
static void message_step(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), len = ddps_rbuf_u8(in), before = w.n_qp;
	struct soft_qp *q = qp_of(w.qp[b & 3]);
	struct ddps_ep *ep = q ? q->ep : NULL;
	bool good = !(b & 0x40);

	if (!ep || !ep->up || ep->ended)
		return;
	if (b & 0x80) {
		for (unsigned n = len; n && ep->first_send < ep->next_send; n--)
			soft_session_done(ep, &(struct ddps_wc){ .wr_id = UINT64_C(1) << 63 |
									  ep->first_send++ });
		run();
		return;
	}
	if (!ep->nrecv)
		return;
	w.want_len = len < ep->recv_len ? len : ep->recv_len;
	w.want_qpn = q->qpn;
	memset(w.frame, (int)b, w.want_len);
	w.want = w.frame;
	memcpy(ep->recv_at[0], w.frame, w.want_len);
	soft_session_received(ep,
			      &(struct ddps_wc){ .wr_id = ep->recv_id[0],
						 .op = DDPS_OP_RECV,
						 .status = good ? DDPS_WC_SUCCESS : DDPS_WC_FLUSHED,
						 .len = (uint32_t)w.want_len });
	len = ep->nrecv;
	run();
	FUZZ_CHECK(w.n_qp - before == good);
	FUZZ_CHECK(!good || w.destroy_inside || ep->nrecv == len + 1); /* posted again */
}

/* ---- the interface's calls ---- */

static void qp_ready(uint32_t qpn, unsigned arg)
{
	struct ddps_ipoib_port *port = ddps_ipoib_soft_port(w.s);
	struct soft_qp *q = qp_of(qpn);
	struct ddps_ipoib_qp_to to = { .qpn = 0x60 + (arg >> 2 & 3),
				       .rx_mtu = arg & 0x20 ? 100 : 0,
				       .active = arg & 0x10,
				       .path.addr = arg & 3 };
	bool fit = q && !q->ready && !q->stopped && !q->mem;

	if (q && q->mem && !q->ready)
		return; /* it has failed to become so: for qp_destroy() only */
	FUZZ_CHECK(!port->ops->qp_ready(port, qpn, &to) ==
		   (fit && (arg & 3) && (!to.active || (arg & 3) != PEERS)));
}

static void qp_send(uint32_t qpn, unsigned len)
{
	struct ddps_ipoib_port *port = ddps_ipoib_soft_port(w.s);
	struct soft_qp *q = qp_of(qpn);
	int err, want = 0;

	if (!q || !q->ready || q->stopped)
		want = DDPS_E_STATE;
	else if (len > q->tx_mtu)
		want = DDPS_E_TOO_LONG;
	else if (q->tx_id - (q->ep->next_send ? q->ep->first_send : 0) == q->tx_slots)
		want = DDPS_E_AGAIN;
	memset(w.frame, q ? (int)(uint8_t)q->tx_id : 0, len + 1);
	err = port->ops->qp_send(port, qpn, w.frame, len + !len);
	FUZZ_CHECK(err == want);
}

static void qp_step(struct ddps_rbuf *in)
{
	struct ddps_ipoib_port *port = ddps_ipoib_soft_port(w.s);
	unsigned b = ddps_rbuf_u8(in), arg = ddps_rbuf_u8(in);
	uint32_t *qpn = &w.qp[b & 3], got;

	switch (b >> 2 & 7) {
	case 0:
	case 1:
		if (*qpn || port->ops->qp_create(port, arg & 1 ? DDPS_CM_RC : DDPS_CM_UC,
						 arg < 0xf0 ? 60 + arg : 65524, &got))
			break;
		FUZZ_CHECK(!is_mine(got) && got != QPN && got > 1);
		*qpn = got;
		break;
	case 2:
	case 3:
		qp_ready(*qpn, arg);
		break;
	case 4:
		qp_send(*qpn, arg);
		break;
	case 5:
		for (unsigned i = 0; i < arg; i++)
			qp_send(*qpn, 1);
		break;
	case 6:
		port->ops->qp_stop(port, *qpn);
		break;
	default:
		destroy(*qpn);
		break;
	}
}

static void ud_step(unsigned b, unsigned arg)
{
	struct ddps_ipoib_port *port = ddps_ipoib_soft_port(w.s);
	struct ddps_ipoib_lladdr to = { .qpn = b & 1 ? DDPS_IPOIB_QPN_MCAST : 0x70 };
	struct ddps_ipoib_path path = { .addr = b >> 1 & 7 };
	uint64_t lost = ddps_ipoib_soft_stats(w.s)->tx_lost;
	unsigned sent = w.n_sent, want = b & 1 ? PEERS : 1;
	int err = 0;

	if (b & 1)
		mgid_of(to.gid, b >> 1);
	memset(w.frame, (int)arg, arg);
	w.want = w.frame;
	w.want_len = arg;
	if (arg > LINK_MTU)
		err = DDPS_E_TOO_LONG;
	else if (!(b & 1) && (!path.addr || path.addr > PEERS))
		err = DDPS_E_ADDRESS;
	want = err ? 0 : want;
	FUZZ_CHECK(port->ops->ud_send(port, &to, &path, w.frame, arg) == err);
	FUZZ_CHECK(w.n_sent - sent == (w.fail_send ? 0 : want));
	FUZZ_CHECK(ddps_ipoib_soft_stats(w.s)->tx_lost - lost == (w.fail_send ? want : 0));
}

static void call_step(struct ddps_rbuf *in)
{
	struct ddps_ipoib_port *port = ddps_ipoib_soft_port(w.s);
	unsigned b = ddps_rbuf_u8(in), arg = ddps_rbuf_u8(in);
	uint8_t gid[16];

	switch (b & 7) {
	case 0:
	case 1:
		ud_step(b >> 3, arg);
		break;
	case 2:
		mgid_of(gid, arg);
		FUZZ_CHECK(!port->ops->join(port, gid));
		w.member[arg % GROUPS] = true;
		w.joins++;
		break;
	case 3:
		mgid_of(gid, arg);
		port->ops->leave(port, gid);
		w.member[arg % GROUPS] = false;
		break;
	case 4:
		gid_of(gid, arg % 8);
		gid[3] = (uint8_t)(arg >> 7);
		FUZZ_CHECK(!port->ops->resolve(port, gid));
		w.queries++;
		break;
	case 5:
		w.want = w.frame;
		w.want_len = DDPS_CM_MAD_LEN;
		FUZZ_CHECK(port->ops->mad_send(port, arg & 7, w.frame) ==
			   ((arg & 7) >= 1 && (arg & 7) <= PEERS ? 0 : DDPS_E_ADDRESS));
		break;
	case 6:
		w.fail_send = arg & 1 ? ENETUNREACH : 0;
		break;
	default:
		w.destroy_inside = arg & 1;
		break;
	}
	run();
}

static void set_up(void)
{
	struct sockaddr_in local = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ddps_soft_config c = { .qpn = QPN,
				      .link_mtu = LINK_MTU,
				      .listen = "tcp://127.0.0.1:0",
				      .max_qps = QPS - 1,
				      .seed = QPN - 1,
				      .up = &ups,
				      .user = &w };
	char why[200];

	memset(&w, 0, sizeof w);
	w.x = soft_session_reset(me);
	memcpy(c.gid, me, 16);
	memcpy(&c.udp, &local, sizeof local);
	FUZZ_CHECK(!ddps_ipoib_soft_new(&w.s, &c, why, sizeof why));
	for (unsigned i = 0; i < PEERS; i++) {
		struct ddps_soft_peer p = { .uri = i < PEERS - 1 ? "tcp://peer" : NULL };

		local.sin_port = htons((uint16_t)(5000 + i));
		gid_of(p.gid, i);
		memcpy(&p.udp, &local, sizeof local);
		FUZZ_CHECK(!ddps_ipoib_soft_add(w.s, &p));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);

	set_up();
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++) {
		switch (ddps_rbuf_u8(&in) & 7) {
		case 0:
		case 1:
			datagram_step(&in);
			break;
		case 2:
			request_step(&in);
			break;
		case 3:
			session_step(&in);
			break;
		case 4:
			message_step(&in);
			break;
		case 5:
			call_step(&in);
			break;
		default:
			qp_step(&in);
			break;
		}
	}
	ddps_ipoib_soft_free(w.s);
	soft_session_end();
	return 0;
}
