/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usrsctp backend from its sockets up to usrsctp, for which fake_usrsctp.c stands in: endpoints
 * and connects of two contexts, over UDP and raw, datagrams of many peers in any number a read.
 * A model says which of them usrsctp gets, and as whose; what goes out must have its checksum and
 * go to whom it is for.  Peers without association leave nothing behind.
 */
#include "fake_udp.h"
#include "fake_usrsctp.h"
#include "fuzz.h"
#include "sctp_ddp/sd_wire.h"
#include <errno.h>
#include <sys/epoll.h>

#define STEPS_MAX    250
#define CONTEXTS     2
#define ENDS	     32
#define CHECKSUM_END 12
#define PEERS_MAX    1024
#define EPOCH	     (UINT64_C(1) << 60) /* ns */

struct context {
	struct ddps_env env;
	void *ue;
	struct ddps_sd_endpoint *ep[ENDS];
	unsigned neps;
};

/* An association as its user knows it. */
struct end {
	struct ddps_sd_assoc *a; /* NULL: freed */
	bool up, gone, free_inside;
	unsigned messages;
};

/* What usrsctp knows a peer of a carrier by. */
struct peer {
	uint64_t serial;
	struct sockaddr_in from;
	uintptr_t id;
	uint32_t number; /* of the latest packet to it */
};

static struct world {
	struct context ctx[CONTEXTS];
	struct end end[ENDS];
	unsigned nends;
	struct fake_usrsctp *sctp;
	uint64_t now;
	struct fake_udp *udp;
	struct ddps_us_carrier *c;		       /* that reads */
	const struct fake_datagram *due[FAKE_UDP_MAX]; /* those of its datagrams for usrsctp */
	unsigned ndue, seen;
	struct peer peer[PEERS_MAX];
	unsigned npeers;
	uint8_t last[64]; /* sent */
	size_t last_len;
} w;

/* The cookies of the stand-in are not sealed; the guard has tests of its own. */
bool __wrap_ddps_us_guard(struct ddps_us_handle *h, uint8_t *pkt, size_t *len);
bool __wrap_ddps_us_guard(struct ddps_us_handle *h, uint8_t *pkt, size_t *len)
{
	(void)h;
	(void)pkt;
	(void)len;
	return true;
}

/* ---- what goes out ---- */

/* CRC32c, bit by bit, of a packet whose checksum field counts as 0; as it goes on the wire. */
static uint32_t plain_checksum(const uint8_t *p, size_t len)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < len; i++) {
		crc ^= i >= 8 && i < 12 ? 0 : p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static uint32_t le32_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t be32_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static struct peer *peer_by_tag(const struct ddps_us_carrier *c, uint32_t tag)
{
	for (unsigned i = 0; i < w.npeers; i++)
		if ((uint32_t)w.peer[i].id == tag && w.peer[i].serial == c->serial)
			return &w.peer[i];
	return NULL;
}

static const struct ddps_us_carrier *carrier_of(int fd)
{
	for (unsigned i = 0; i < CONTEXTS; i++) {
		struct ddps_us_env *ue = w.ctx[i].ue;
		struct ddps_us_carrier *c = ue ? ue->carriers : NULL;

		for (; c; c = c->next)
			if (c->io.fd == fd)
				return c;
	}
	return NULL;
}

static void on_sent(int fd, const struct msghdr *m, const uint8_t *pkt, size_t len)
{
	const struct ddps_us_carrier *c = carrier_of(fd);
	struct sockaddr_in to;
	struct peer *p;

	FUZZ_CHECK(c && len >= FAKE_OUT);
	FUZZ_CHECK(le32_at(pkt + 8) == plain_checksum(pkt, len));
	w.last_len = len < sizeof w.last ? len : sizeof w.last;
	memcpy(w.last, pkt, w.last_len);
	if (c->connected) {
		FUZZ_CHECK(!m->msg_name && (uint32_t)c->peer->id == be32_at(pkt + 4));
		return;
	}
	p = peer_by_tag(c, be32_at(pkt + 4));
	FUZZ_CHECK(p && m->msg_namelen >= sizeof to);
	memcpy(&to, m->msg_name, sizeof to);
	FUZZ_CHECK(to.sin_family == AF_INET && to.sin_addr.s_addr == p->from.sin_addr.s_addr);
	FUZZ_CHECK(c->raw || to.sin_port == p->from.sin_port);
	FUZZ_CHECK(be32_at(pkt + 16) > p->number); /* in order */
	p->number = be32_at(pkt + 16);
}

/* ---- what usrsctp is to get ---- */

static const struct ddps_us_carrier *owner_of(uint16_t port)
{
	for (unsigned i = 0; i < CONTEXTS; i++) {
		struct ddps_us_env *ue = w.ctx[i].ue;

		if (!ue)
			continue;
		for (struct ddps_sd_endpoint *e = ue->endpoints; e; e = e->next)
			if (e->port->num == port)
				return e->port->carrier;
		for (struct ddps_sd_assoc *a = ue->assocs; a; a = a->next)
			if (a->port->num == port)
				return a->port->carrier;
	}
	return NULL;
}

/* The octets of the SCTP packet in a datagram; NULL: there is none for this carrier. */
static const uint8_t *model(const struct ddps_us_carrier *c, const struct fake_datagram *d,
			    size_t *len)
{
	size_t skip = c->raw ? (size_t)(d->octets[0] & 15) * 4 : 0;
	const struct ddps_us_carrier *owner;
	const uint8_t *p = d->octets + skip;

	if (d->cut || (c->raw && (d->len < 20 || d->octets[0] >> 4 != 4 || skip < 20)))
		return NULL;
	if (d->len < skip + 16 || (!p[0] && !p[1]) || (!p[2] && !p[3]))
		return NULL;
	*len = d->len - skip;
	owner = owner_of((uint16_t)(p[2] << 8 | p[3]));
	if ((owner && owner != c) || (!owner && c->raw))
		return NULL;
	return le32_at(p + 8) == plain_checksum(p, *len) ? p : NULL;
}

static bool same_peer(const struct peer *p, const struct ddps_us_carrier *c,
		      const struct sockaddr_in *from)
{
	return p->serial == c->serial && p->from.sin_addr.s_addr == from->sin_addr.s_addr &&
	       (c->raw || p->from.sin_port == from->sin_port);
}

/* A peer keeps its number, and no other has it. */
static void check_id(uintptr_t id, const struct sockaddr_in *from)
{
	bool known = false;

	if (w.c->connected) {
		FUZZ_CHECK(id == w.c->peer->id);
		return;
	}
	for (unsigned i = 0; i < w.npeers; i++) {
		known |= w.peer[i].id == id;
		FUZZ_CHECK((w.peer[i].id == id) == same_peer(&w.peer[i], w.c, from));
	}
	if (known)
		return;
	FUZZ_CHECK(w.npeers < PEERS_MAX);
	w.peer[w.npeers++] = (struct peer){ w.c->serial, *from, id, 0 };
}

static void on_input(uintptr_t id, const uint8_t *pkt, size_t len)
{
	const struct fake_datagram *d;
	const uint8_t *want;
	size_t want_len = 0;

	/* an association that comes of one changes nothing for those behind it */
	FUZZ_CHECK(w.c && w.seen < w.ndue);
	d = w.due[w.seen++];
	want = model(w.c, d, &want_len);
	FUZZ_CHECK(want && want_len == len && !memcmp(want, pkt, len));
	check_id(id, &d->from);
}

/* Handles are those of associations, and that of a connect. */
static void check_handles(void)
{
	for (unsigned i = 0; i < w.npeers; i++) {
		const struct ddps_us_handle *h = ddps_us_handle_find(w.peer[i].id);
		unsigned users = 0;

		for (unsigned k = 0; k < CONTEXTS; k++) {
			struct ddps_us_env *ue = w.ctx[k].ue;

			for (struct ddps_sd_assoc *a = ue ? ue->assocs : NULL; a; a = a->next)
				users += a->h->id == w.peer[i].id;
		}
		FUZZ_CHECK(h ? h->refs == users : !users);
		FUZZ_CHECK(!h || users);
	}
}

/* ---- the layer above ---- */

static void leave(struct end *e)
{
	struct ddps_sd_assoc *a = e->a;

	e->a = NULL;
	ddps_sd_usrsctp.free(a);
}

static void up_comm_up(void *user)
{
	struct end *e = user;

	FUZZ_CHECK(e->a && !e->up && !e->gone);
	e->up = true;
	if (e->free_inside)
		leave(e);
}

static void up_message(void *user, uint16_t stream, uint32_t ppid, bool unordered,
		       const uint8_t *data, size_t len)
{
	struct end *e = user;
	const uint8_t *want;
	size_t want_len;

	FUZZ_CHECK(e->a && e->up && !e->gone && !e->a->life.paused);
	FUZZ_CHECK(stream == 1 && !ppid && unordered);
	want = fake_usrsctp_message(e->a->so, &want_len);
	FUZZ_CHECK(len == want_len && !memcmp(data, want, len));
	e->messages++;
	if (e->free_inside)
		leave(e);
}

static void up_event(void *user)
{
	struct end *e = user;

	FUZZ_CHECK(e->a && e->up && !e->gone);
	if (e->free_inside)
		leave(e);
}

static void up_gone(void *user, const struct ddps_error *err)
{
	struct end *e = user;

	(void)err;
	FUZZ_CHECK(e->a && !e->gone);
	e->gone = true;
	if (e->free_inside)
		leave(e);
}

static const struct ddps_sd_assoc_up assoc_up = {
	.comm_up = up_comm_up,
	.message = up_message,
	.writable = up_event,
	.dry = up_event,
	.peer_shutdown = up_event,
	.restarted = up_event,
	.gone = up_gone,
};

static void on_accepted(void *user, struct ddps_sd_assoc *a)
{
	struct end *e = &w.end[w.nends];

	(void)user;
	if (w.nends == ENDS) {
		ddps_sd_usrsctp.free(a);
		return;
	}
	w.nends++;
	*e = (struct end){ .a = a, .up = true };
	ddps_sd_usrsctp.set_up(a, &assoc_up, e);
}

static void on_failed(void *user, const struct ddps_error *e)
{
	(void)user;
	(void)e;
}

static const struct ddps_sd_listen_up listen_up = { on_accepted, on_failed };

/* ---- the script ---- */

static void run(void)
{
	for (unsigned i = 0; i < CONTEXTS; i++)
		for (int n = 0; ddps_loop_run(w.ctx[i].env.loop) > 0; n++)
			FUZZ_CHECK(n < 10000);
	check_handles();
}

static struct sockaddr_in at(unsigned host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host) };
}

/* A carrier of either context; NULL: there is none. */
static struct ddps_us_carrier *choose_carrier(unsigned nr)
{
	struct ddps_us_env *ue = w.ctx[nr & 1].ue;
	struct ddps_us_carrier *c = ue ? ue->carriers : NULL;

	for (nr >>= 1; c && c->next && nr; nr--)
		c = c->next;
	return c;
}

static void listen_step(unsigned b)
{
	struct context *ctx = &w.ctx[b & 1];
	struct ddps_us_carrier *share = choose_carrier(b & 1);
	struct ddps_uri uri = { .encap = b & 2 ? DDPS_URI_ENCAP_OFF : 0 };
	struct sockaddr_in sa = at(0, (uint16_t)(7000 + (b >> 4 & 3)));

	if (ctx->neps == ENDS)
		return;
	if (!(b & 2) && (b & 4) && share && !share->connected && !share->raw)
		uri.encap = ddps_us_carrier_port(share);
	if (!ddps_sd_usrsctp.listen(&ctx->env, &ctx->ue, &uri, (struct sockaddr *)&sa, sizeof sa, 4,
				    &listen_up, ctx, &ctx->ep[ctx->neps]))
		ctx->neps++;
}

static void connect_step(unsigned b)
{
	struct context *ctx = &w.ctx[b & 1];
	struct ddps_uri uri = { .encap = b & 2 ? DDPS_URI_ENCAP_OFF : 9899 };
	struct sockaddr_in sa = at(0, (uint16_t)(7000 + (b >> 4 & 3)));
	struct end *e = &w.end[w.nends];

	if (w.nends == ENDS)
		return;
	*e = (struct end){ .free_inside = b & 8 };
	if (!ddps_sd_usrsctp.connect(&ctx->env, &ctx->ue, &uri, (struct sockaddr *)&sa, sizeof sa,
				     b & 4 ? 5 : 5000, &assoc_up, e, &e->a))
		w.nends++;
}

/* The port of an association's own, so that packets find it. */
static uint16_t choose_port(const struct ddps_us_carrier *c, unsigned nr)
{
	if (nr & 8)
		return (uint16_t)(nr & 4 ? 0 : 7100);
	for (const struct ddps_sd_assoc *a = c->ue->assocs; a; a = a->next)
		if (c->connected && a->h->carrier == c)
			return a->port->num;
	return (uint16_t)(7000 + (nr & 3));
}

static void datagram(struct fake_datagram *d, struct ddps_rbuf *in, const struct ddps_us_carrier *c)
{
	static const uint8_t types[] = { SCTP_INITIATION, SCTP_COOKIE_ECHO,  SCTP_COOKIE_ACK,
					 SCTP_DATA,	  SCTP_DATA,	     SCTP_ABORT_ASSOCIATION,
					 SCTP_SHUTDOWN,	  SCTP_SELECTIVE_ACK };
	unsigned who = ddps_rbuf_u8(in), what = ddps_rbuf_u8(in), odd = ddps_rbuf_u8(in);
	size_t n, ip = c->raw ? (odd & 0x10 ? odd & 15 : 5) * 4u : 0;
	const uint8_t *body = fuzz_some(in, odd >> 6 ? odd >> 3 & 31 : 0, &n);
	uint8_t *p = d->octets + ip;
	struct ddps_wbuf buf = ddps_wbuf_init(p, sizeof d->octets - ip);
	uint32_t sum;

	*d = (struct fake_datagram){ .from = at(1 + (who & 3), (uint16_t)(9899 + (who >> 2 & 1))) };
	d->to.s_addr = htonl(INADDR_LOOPBACK + (who >> 7));
	if (c->raw) {
		d->octets[0] = (uint8_t)((odd & 0x20 ? 0x60 : 0x40) | ip / 4);
		d->from.sin_port = 0;
	}
	ddps_wbuf_u16(&buf, who & 8 ? 7000 : (uint16_t)(what & 0x80 ? 0 : 7001));
	ddps_wbuf_u16(&buf, choose_port(c, what >> 3 & 15));
	ddps_wbuf_u64(&buf, 0);
	ddps_wbuf_u8(&buf, types[what & 7]);
	ddps_wbuf_u8(&buf, (uint8_t)(who >> 4 & 7)); /* octets a read of DATA */
	ddps_wbuf_u16(&buf, (uint16_t)(n + 4));
	ddps_wbuf_bytes(&buf, body, n);
	n += FAKE_HDR;
	if ((odd & 0xc7) == 2)
		n = who % n;
	sum = plain_checksum(p, n);
	for (int i = 0; i < 4 && n >= CHECKSUM_END; i++)
		p[8 + i] = (uint8_t)(sum >> 8 * i);
	if ((odd & 0xc7) == 1)
		p[8 + (who & 3)] ^= 1;
	d->cut = (odd & 0xc7) == 3;
	d->len = (odd & 0xc7) == 4 ? n : ip + n;
}

/* Some datagrams at once. */
static void read_step(unsigned b, struct ddps_rbuf *in)
{
	struct ddps_us_carrier *c = choose_carrier(b >> 4);
	struct fake_udp *u = w.udp;
	size_t len;

	if (!c)
		return;
	w.c = c;
	u->fd = c->io.fd;
	u->taken = w.ndue = w.seen = 0;
	for (u->nd = 0; u->nd < 1 + (b & 3) * 3; u->nd++)
		datagram(&u->d[u->nd], in, c);
	for (unsigned i = 0; i < u->nd; i++)
		if (model(c, &u->d[i], &len))
			w.due[w.ndue++] = &u->d[i];
	u->fail_recv = b & 8 ? ECONNREFUSED : 0;
	u->gro = b & 4;
	if (b & 8) { /* it says that nobody is there, of the latest packet or one like it */
		u->icmp_there = true;
		u->icmp = u->d[0];
		u->icmp.len = w.last_len;
		memcpy(u->icmp.octets, w.last, w.last_len);
		u->icmp.octets[u->d[0].len % FAKE_OUT] ^= b & 1;
	}
	c->io.fn(c->io.user, b & 8 ? EPOLLERR : EPOLLIN);
	if (!(b & 8))
		FUZZ_CHECK(u->taken == u->nd && w.seen == w.ndue);
	u->fail_recv = 0;
	u->icmp_there = false;
	u->fd = -1;
	w.c = NULL;
	check_handles();
}

static void end_step(struct end *e, unsigned op)
{
	const struct iovec iov[2] = { { (char[]){ "abc" }, 3 }, { (char[]){ "d" }, 1 } };
	struct ddps_sd_assoc_info info;

	if (!e->a)
		return;
	switch (op & 7) {
	case 0:
	case 1:
		if (e->up && !e->gone)
			ddps_sd_usrsctp.send(e->a, 1, DDPS_SD_PPID_SEGMENT, iov, op & 8 ? 2 : 1);
		break;
	case 2:
		ddps_sd_usrsctp.pause(e->a, op & 8);
		break;
	case 3:
		if (e->up && !e->gone)
			ddps_sd_usrsctp.ask_dry(e->a);
		break;
	case 4:
		ddps_sd_usrsctp.shutdown(e->a);
		break;
	case 5:
		ddps_sd_usrsctp.abort(e->a);
		break;
	case 6:
		leave(e);
		break;
	default:
		e->free_inside = op & 8;
		ddps_sd_usrsctp.info(e->a, &info);
		FUZZ_CHECK(info.max_user_data >= 500 && info.max_user_data < 65536);
		break;
	}
}

/* The network, the clock, and usrsctp's own mind. */
static void fate(unsigned arg)
{
	static const int errors[] = { EAGAIN, EMSGSIZE, ECONNREFUSED, ENETUNREACH };
	struct context *ctx = &w.ctx[arg >> 3 & 1];
	struct ddps_us_env *ue = ctx->ue;

	switch (arg & 7) {
	case 0:
		w.udp->fail_send = errors[arg >> 3 & 3];
		break;
	case 1:
		w.sctp->full = true;
		break;
	case 2: /* its lock is held whenever it acts */
		if (!ue)
			break;
		ddps_us_lock(ue);
		fake_usrsctp_room();
		ddps_us_unlock();
		break;
	case 3: /* to somebody who may be gone */
		if (!ue || !w.npeers)
			break;
		ddps_us_lock(ue);
		fake_usrsctp_late(w.peer[(arg >> 4) % w.npeers].id, SCTP_HEARTBEAT_REQUEST);
		ddps_us_unlock();
		break;
	case 4:
		if (ctx->neps)
			ddps_sd_usrsctp.endpoint_free(ctx->ep[--ctx->neps]);
		break;
	default:
		w.now += (UINT64_C(1) << (arg >> 3 & 15)) * 1000000;
		fuzz_time_set(w.now);
		break;
	}
}

static void step(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), arg;

	switch (b & 7) {
	case 0:
		listen_step(ddps_rbuf_u8(in));
		break;
	case 1:
		connect_step(ddps_rbuf_u8(in));
		break;
	case 2:
	case 3:
	case 4:
		read_step(b >> 3 | (b & 1 ? 0x20 : 0), in);
		break;
	case 5:
	case 6:
		arg = ddps_rbuf_u8(in);
		if (w.nends)
			end_step(&w.end[(w.nends - 1 - (arg >> 4) % w.nends)], arg);
		break;
	default:
		fate(ddps_rbuf_u8(in));
		break;
	}
	if (!(b & 0x80))
		run();
}

static void on_log(void *user, enum ddps_log_level level, const char *facility, const char *text)
{
	(void)user;
	if (getenv("FUZZ_TRACE"))
		ddps_log_stderr(NULL, level, facility, text);
}

static uint8_t scratch[DDPS_SCRATCH_LEN];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);

	memset(&w, 0, sizeof w);
	w.sctp = fake_usrsctp_reset();
	w.sctp->input = on_input;
	w.udp = fake_udp_reset();
	w.udp->sent = on_sent;
	w.now = EPOCH;
	fuzz_random_reset();
	fuzz_time_set(w.now);
	for (unsigned i = 0; i < CONTEXTS; i++) {
		w.ctx[i].env.scratch = scratch;
		w.ctx[i].env.log = (struct ddps_log){ on_log, NULL };
		FUZZ_CHECK(!ddps_loop_new(&w.ctx[i].env.loop));
	}
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		step(&in);
	run();
	for (unsigned i = 0; i < CONTEXTS; i++) {
		ddps_sd_usrsctp.fini(&w.ctx[i].env, w.ctx[i].ue);
		w.ctx[i].ue = NULL;
		check_handles();
		ddps_loop_free(w.ctx[i].env.loop);
	}
	fuzz_time_set(0);
	return 0;
}
