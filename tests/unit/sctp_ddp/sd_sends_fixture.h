/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_SENDS_FIXTURE_H
#define SD_SENDS_FIXTURE_H
/*
 * What the native SCTP hands to the system: packets are noted instead of sent, and refused as a test
 * wants it.  On the other side are peers by hand, one association for each of their ports.
 */
#include "sctp_ddp/backend/native/sd_native.h"
#include "sd_hand_fixture.h"
#include "unit/sys_fixture.h"
#include <errno.h>
#include <netinet/udp.h>
#include <sys/epoll.h>

#define PORT   4000u /* the first peer's; the next one has the next */
#define PEERS  160u
#define TAKEN  512u
#define LENGTH 1000u /* of a message: a packet holds one */
#define NARROW 1400u /* path MTU */
#define WHOLE  (28 + 12 + 16 + LENGTH)
#define PACKET (WHOLE - 28)

/* ---- the system ---- */

/* Of the calls on @fd (-1: on any) after @good ones, @bad fail with @err. */
static struct refusal {
	int fd;
	unsigned good, bad;
	int err;
} refusal;
static unsigned calls, most_at_once; /* sends; packets or runs that one takes, 0: all */

/* A packet that the system has taken. */
struct taken {
	int fd;
	unsigned call;
	uint16_t run;	    /* the size that the system was to cut packets to, 0: none */
	uint16_t from, to;  /* SCTP ports */
	uint16_t udp;	    /* where it was sent to */
	struct in_addr own; /* where it was sent from, if that was said */
	uint32_t tsn;
	size_t len;
};
static struct taken taken[TAKEN];
static unsigned n_taken;
static void (*on_send)(int fd);

/* What the control messages ask for, and that they are well-formed. */
static inline void note_control(struct msghdr *m, struct taken *t)
{
	struct in_pktinfo own;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) {
			cr_expect_eq(c->cmsg_len, CMSG_LEN(sizeof t->run));
			memcpy(&t->run, CMSG_DATA(c), sizeof t->run);
			cr_expect_gt(t->run, 0);
		} else {
			cr_expect_eq(c->cmsg_level, IPPROTO_IP);
			cr_expect_eq(c->cmsg_type, IP_PKTINFO);
			memcpy(&own, CMSG_DATA(c), sizeof own);
			t->own = own.ipi_spec_dst;
		}
	}
}

/* One packet: its CRC says that it is whole, and all of it. */
static inline void note_packet(uint8_t *p, size_t len, struct taken t)
{
	struct ddps_rbuf r = ddps_rbuf_init(p, len);
	uint8_t crc[4];

	cr_assert_geq(len, 16);
	memcpy(crc, p + 8, 4);
	put_sd_hand_sum(p, len);
	cr_expect_arr_eq(crc, p + 8, 4, "%zu octets are no packet", len);
	t.from = ddps_rbuf_u16(&r);
	t.to = ddps_rbuf_u16(&r);
	t.len = len;
	if (p[12] == C_DATA && len >= 20)
		t.tsn = (uint32_t)p[16] << 24 | (uint32_t)p[17] << 16 | (uint32_t)p[18] << 8 |
			p[19];
	cr_assert_lt(n_taken, TAKEN);
	taken[n_taken++] = t;
}

static inline void note_sd_sends(int fd, struct msghdr *m)
{
	static uint8_t buf[PKT_MAX];
	struct taken t = { .fd = fd, .call = calls };
	struct sockaddr_in to;
	size_t len = 0, at, n;

	cr_assert_eq(m->msg_namelen, sizeof to);
	memcpy(&to, m->msg_name, sizeof to);
	cr_expect_eq(to.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	t.udp = ntohs(to.sin_port);
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		cr_assert_leq(m->msg_iov[i].iov_len, sizeof buf - len);
		memcpy(buf + len, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		len += m->msg_iov[i].iov_len;
	}
	note_control(m, &t);
	for (at = 0; at < len; at += n) {
		n = t.run && t.run < len - at ? t.run : len - at;
		note_packet(buf + at, n, t);
	}
}

static inline bool does_sd_sends_refuse(int fd, int flags)
{
	struct refusal *r = &refusal;

	cr_expect_eq(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	calls++;
	cr_assert_lt(calls, 10000);
	if (on_send)
		on_send(fd);
	if (!r->bad || (r->fd >= 0 && r->fd != fd))
		return false;
	if (r->good) {
		r->good--;
		return false;
	}
	r->bad--;
	errno = r->err;
	return true;
}

static inline ssize_t take_one_sd_sends(int fd, const struct msghdr *m, int flags)
{
	struct msghdr copy = *m;
	size_t len = 0;

	if (does_sd_sends_refuse(fd, flags))
		return -1;
	note_sd_sends(fd, &copy);
	for (size_t i = 0; i < m->msg_iovlen; i++)
		len += m->msg_iov[i].iov_len;
	return (ssize_t)len;
}

static inline int take_many(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	if (does_sd_sends_refuse(fd, flags))
		return -1;
	if (most_at_once && n > most_at_once)
		n = most_at_once;
	for (unsigned i = 0; i < n; i++)
		note_sd_sends(fd, &m[i].msg_hdr);
	return (int)n;
}

/* Nothing is refused, and all is noted anew. */
static inline void note_sends(void)
{
	refusal = (struct refusal){ .fd = -1 };
	calls = n_taken = most_at_once = 0;
	on_send = NULL;
	sys_instead.sendmsg = take_one_sd_sends;
	sys_instead.sendmmsg = take_many;
}

static inline void refuse_sd_sends(unsigned good, unsigned bad, int err)
{
	refusal = (struct refusal){ .fd = -1, .good = good, .bad = bad, .err = err };
}

#define EVER 1000000u

static inline void do_sd_sends_send(void)
{
	sys_instead.sendmsg = NULL;
	sys_instead.sendmmsg = NULL;
}

/* ---- the peers ---- */

static struct wire *wires[PEERS];
static struct ddps_sd_assoc *assocs[PEERS];
static unsigned n_peers;

static inline struct ddps_sn_env *env(void)
{
	return srv.ep->ne;
}

static inline void to_server(struct wire *x, const struct server *s)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, s->encap);

	cr_assert_eq(connect(x->fd, (struct sockaddr *)&sa, len), 0);
	x->dport = ntohs(((const struct sockaddr_in *)&s->sa)->sin_port);
}

static inline struct ddps_sctp_route get_sd_sends_way(const struct ddps_sd_assoc *a)
{
	struct ddps_sctp_path_info p;

	cr_assert_eq(ddps_sctp_path_info(a->sa, 0, &p), 0);
	return (struct ddps_sctp_route){ .peer = p.peer, .encap = p.encap, .via = a->sock->via };
}

/* A router takes no more than @mtu octets on the way to peer @i. */
static inline void narrow_sd_sends(unsigned i, uint32_t mtu)
{
	const struct ddps_sctp_route r = get_sd_sends_way(assocs[i]);
	uint8_t quote[8];
	struct ddps_wbuf w = ddps_wbuf_init(quote, sizeof quote);

	ddps_wbuf_u16(&w, wires[i]->dport);
	ddps_wbuf_u16(&w, wires[i]->sport);
	ddps_wbuf_u32(&w, wires[i]->my_tag);
	ddps_sctp_icmp(env()->e, &r, DDPS_SCTP_ICMP_TOO_BIG, mtu, quote, sizeof quote,
		       ddps_sn_now(env()));
}

static inline struct side *side_of(struct server *s)
{
	return &s->peers[(s->accepted - 1) % MAX_PEERS];
}

/* One more peer, of endpoint @s. */
static inline void add_sd_sends_peer(struct server *s)
{
	struct wire *x = malloc(sizeof *x);
	const unsigned had = s->accepted;

	cr_assert(x && n_peers < PEERS);
	wire_init(x, (uint16_t)(PORT + n_peers));
	to_server(x, s);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	begin_cookie(x);
	finish_sd_hand(x);
	expect_sd_hand(x, C_COOKIE_ACK);
	WAIT_FOR(s->accepted == had + 1, &sn);
	wires[n_peers] = x;
	assocs[n_peers++] = side_of(s)->a;
	narrow_sd_sends(n_peers - 1, NARROW);
}

/* All that is to be said without a message is said. */
static inline void be_quiet(void)
{
	do_sd_sends_send();
	while (ddps_sctp_pending(env()->e))
		ddps_sn_flush(env());
	note_sends();
}

/* An endpoint with @n peers, and what leaves is noted from here on. */
static inline void begin_with(unsigned n)
{
	n_peers = 0;
	start_sd_hand();
	while (n_peers < n)
		add_sd_sends_peer(&srv);
	be_quiet();
}

static inline void end_sd_sends(void)
{
	do_sd_sends_send();
	for (unsigned i = 0; i < n_peers; i++) {
		close(wires[i]->fd);
		free(wires[i]);
	}
	stop_sd_hand(NULL);
}

/* ---- what leaves ---- */

/* A message for peer @i, which waits for a flush. */
static inline void post_sd_sends(unsigned i, size_t len)
{
	uint8_t msg[8192];
	struct iovec iov = { msg, len };

	cr_assert_leq(len, sizeof msg);
	fill_sd_backend(msg, len, (uint16_t)i);
	cr_assert_eq(B->send(assocs[i], 0, 16, &iov, 1), 0);
}

static inline void flush_sd_sends(void)
{
	ddps_sn_flush(env());
}

/* Packets with DATA that were taken of those for peer @i; they are in order, and each is there once. */
static inline unsigned got(unsigned i)
{
	unsigned n = 0;
	uint32_t tsn = 0;

	for (unsigned k = 0; k < n_taken; k++) {
		const struct taken *t = &taken[k];

		if (t->to != PORT + i || !t->tsn)
			continue;
		if (n)
			cr_expect_eq(t->tsn, tsn + 1, "%u comes after %u", t->tsn, tsn);
		tsn = t->tsn;
		n++;
	}
	return n;
}

/* The system has room again on @s. */
static inline void make_room(struct ddps_sn_sock *s)
{
	refusal.bad = 0;
	ddps_sn_readable(s, EPOLLOUT);
}

#endif
