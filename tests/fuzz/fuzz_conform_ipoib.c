/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tester for IPoIB nodes: one of its cases against a target that does what it likes.  The input
 * says what comes whenever the tester waits: the right answer to something that it sent, that answer
 * with octets changed, cut or twice, unrequested messages, or nothing until time is over.
 *
 * Sockets and the clock are this file's (the Makefile wraps the calls), so nothing really waits.
 */
#include "conform/ipoib/peer.h"
#include "fuzz.h"
#include <errno.h>
#include <poll.h>
#include <string.h>

#define NOW	  (1ull << 62)
#define NS_PER_MS 1000000ull
#define SENT	  8 /* packets of the tester that are not answered yet */
#define POLLS_MAX 100000
#define OWN	  0x0a4d0001u /* 10.77.0.1 */
#define LID	  2
#define QPN	  0x49u
#define TARGET	  0x0a580002u /* 10.88.0.2 */

int __wrap_socket(int family, int type, int protocol);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
ssize_t __wrap_sendto(int fd, const void *b, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_recvfrom(int fd, void *b, size_t len, int flags, struct sockaddr *from,
			socklen_t *from_len);

struct sent {
	struct ci_pkt p; /* data: into b */
	uint8_t b[CI_PKT_MAX];
};

static struct world {
	struct ci ci;
	struct ddps_rbuf in;
	uint64_t now;
	unsigned polls;
	uint32_t id; /* the target's communication IDs */
	struct sent sent[SENT];
	unsigned n_sent;
	bool waiting; /* a packet can be received */
	struct ci_addr at;
	size_t len;
	uint8_t b[CI_PKT_MAX];
} * w;

static const struct ci_case *const tables[] = {
	ci_cases_link,	ci_cases_arp,	 ci_cases_ud,	 ci_cases_passive,
	ci_cases_stray, ci_cases_active, ci_cases_end,	 ci_cases_cross,
	ci_cases_data,	ci_cases_sweep,	 ci_cases_whole,
};

static const uint8_t gid[CI_GID] = { 0xfe, 0x80, [15] = LID };

/* ---- what the target says ---- */

static void spoil_octets(uint8_t *b, size_t len, unsigned how)
{
	for (; how && len; how--) {
		size_t at = ddps_rbuf_u16(&w->in) % len;

		b[at] = (uint8_t)(b[at] ^ ddps_rbuf_u8(&w->in));
	}
}

/* @how: octets to change, then bits for another sender, a wrong ICRC and a cut. */
static void send_target_packet(struct ci_pkt *p, bool group, unsigned how)
{
	uint8_t data[4096];

	FUZZ_CHECK(p->len <= sizeof data);
	if (p->len)
		memcpy(data, p->data, p->len);
	spoil_octets(data, p->len, how & 3);
	p->data = data;
	p->spoil = how & 8 && how & 16;
	w->at = (struct ci_addr){ .src = (OWN & ~0xffu) | (how & 4 && how & 32 ? 3 : LID),
				  .dst = group ? OWN | 0xff : OWN,
				  .sport = group ? CI_MLID : 4791,
				  .dport = 4791 };
	w->len = ci_pkt_build(w->b, p, &w->at);
	if (how & 8 && how & 32)
		w->len -= ddps_rbuf_u8(&w->in) % w->len;
	w->waiting = true;
}

static struct ci_pkt make_target_ud(uint32_t qpn, const uint8_t *b, size_t len)
{
	return (struct ci_pkt){ .op = CI_UD | CI_ONLY,
				.pkey = 0xffff,
				.qpn = qpn,
				.qkey = qpn == 1 ? 0x80010000 : w->ci.qkey,
				.src_qpn = qpn == 1 ? 1 : QPN,
				.data = b,
				.len = len };
}

static size_t put_target_arp(uint8_t *b, unsigned op, uint32_t ip, const uint8_t lla[CI_LLA])
{
	memset(b, 0, 60);
	cf_put32(b, CI_ARP << 16);
	cf_put32(b + 4, 32u << 16 | 0x0800);
	cf_put32(b + 8, (uint32_t)CI_LLA << 24 | 4u << 16 | op);
	b[12] = CI_RC_FLAG;
	ci_put24(b + 13, QPN);
	memcpy(b + 16, gid, CI_GID);
	cf_put32(b + 32, TARGET);
	if (lla)
		memcpy(b + 36, lla, CI_LLA);
	cf_put32(b + 56, ip);
	return 60;
}

static void private(uint8_t *m)
{
	cf_put32(m + ci_priv_at(m), QPN);
	cf_put32(m + ci_priv_at(m) + 4, 65524);
}

static void put_target_request(uint8_t *m)
{
	ci_mad(m, 7, 3, CI_REQ, ++w->id);
	cf_put32(m + CM_LOCAL, w->id);
	m[REQ_SID] = 1;
	ci_put24(m + REQ_SID + 5, w->ci.me.qpn);
	cf_put64(m + REQ_GUID, 7);
	ci_put24(m + REQ_QPN, 0x1000 + w->id);
	m[REQ_LOCAL_TIME] = 18 << 3 | 7;
	cf_put16(m + REQ_PKEY, 0xffff);
	m[REQ_MTU] = 4 << 4 | 7;
	m[REQ_RETRIES] = 15 << 4;
	cf_put16(m + REQ_LLID, LID);
	cf_put16(m + REQ_RLID, w->ci.lid);
	memcpy(m + REQ_LGID, gid, CI_GID);
	memcpy(m + REQ_RGID, w->ci.me.lla + 4, CI_GID);
	m[REQ_RATE] = 3;
	m[REQ_SL] = 8;
	m[REQ_ACK_TIME] = 19 << 3;
	private(m);
}

/* The subnet administration's answer, where that is not the tester. */
static bool administered(uint8_t *m, const uint8_t *q)
{
	memcpy(m, q, CI_MAD);
	if (q[M_METHOD] & 0x80)
		return false;
	m[M_METHOD] = SA_GET_RESP;
	if (ci_attr(m) == SA_PATH) {
		cf_put16(m + PR_DLID, LID);
		m[PR_MTU] = 0x84;
		m[PR_LIFE] = 0x92;
	} else {
		cf_put32(m + MC_QKEY, 0x0b1b);
		cf_put16(m + MC_MLID, CI_MLID);
		m[MC_MTU] = 0x84;
	}
	return true;
}

/* Return: whether there is an answer to message @q. */
static bool managed(uint8_t *m, const uint8_t *q)
{
	if (q[M_CLASS] == 3)
		return administered(m, q);
	switch (ci_attr(q)) {
	case CI_REQ:
		ci_mad(m, 7, 3, CI_REP, cf_get64(q + M_TID));
		cf_put32(m + CM_LOCAL, ++w->id);
		ci_put24(m + REP_QPN, 0x1000 + w->id);
		cf_put64(m + REP_GUID, 7);
		m[REP_RNR] = 7 << 5;
		private(m);
		break;
	case CI_REP:
		ci_mad(m, 7, 3, CI_RTU, cf_get64(q + M_TID));
		cf_put32(m + CM_LOCAL, cf_get32(q + CM_REMOTE));
		private(m);
		break;
	case CI_DREQ:
		ci_drep(m, q);
		return true;
	default:
		return false;
	}
	cf_put32(m + CM_REMOTE, cf_get32(q + CM_LOCAL));
	return true;
}

/* An echo request, encapsulation first, becomes its reply. */
static bool echoed(uint8_t *b, const uint8_t *q, size_t len)
{
	if (len < CI_ENCAP + 28 || cf_get16(q) != CI_IP4 || q[CI_ENCAP + 9] != 1)
		return false;
	memcpy(b, q, len);
	memcpy(b + CI_ENCAP + 12, q + CI_ENCAP + 16, 4);
	memcpy(b + CI_ENCAP + 16, q + CI_ENCAP + 12, 4);
	b[CI_ENCAP + 20] = 0;
	return true;
}

/* A neighbour solicitation becomes an advertisement. */
static bool advertised(uint8_t *b, const uint8_t *q, size_t len)
{
	if (len != CI_ENCAP + 88 || cf_get16(q) != CI_IP6)
		return false;
	memcpy(b, q, len);
	memcpy(b + CI_ENCAP + 8, w->ci.target.ip6, 16);
	memcpy(b + CI_ENCAP + 24, q + CI_ENCAP + 8, 16);
	b[CI_ENCAP + 40] = 136;
	b[CI_ENCAP + 64] = 2;
	memcpy(b + CI_ENCAP + 68, w->ci.target.lla, CI_LLA);
	return true;
}

/* The right answer to one of its packets.  Return: whether there is one. */
static bool answer_tester(const struct ci_pkt *q, unsigned how)
{
	uint8_t b[4096];
	struct ci_pkt p = make_target_ud(w->ci.me.qpn, b, q->len);

	if ((q->op & CI_TRANSPORT) == CI_RC) {
		p = (struct ci_pkt){ .op = CI_ACK, .pkey = 0xffff, .psn = q->psn, .syndrome = 31 };
		for (unsigned i = 0; i < CI_QPS; i++)
			if (w->ci.qp[i].used && w->ci.qp[i].peer == q->qpn)
				p.qpn = w->ci.qp[i].qpn;
		if (q->op == CI_ACK)
			return false;
	} else if (q->qpn == 1) {
		p = make_target_ud(1, b, CI_MAD);
		if (q->len != CI_MAD || !managed(b, q->data))
			return false;
	} else if (q->len == 60 && cf_get16(q->data) == CI_ARP && q->data[11] == 1) {
		p.len = put_target_arp(b, 2, cf_get32(q->data + 32), q->data + 12);
	} else if (!echoed(b, q->data, q->len) && !advertised(b, q->data, q->len)) {
		return false;
	}
	send_target_packet(&p, false, how);
	return true;
}

static struct ci_qp *newest_qp(void)
{
	struct ci_qp *qp = NULL;

	for (unsigned i = 0; i < CI_QPS; i++)
		if (w->ci.qp[i].used)
			qp = &w->ci.qp[i];
	return qp;
}

/* What nobody asked for. */
static void speak_unasked(unsigned what, unsigned how)
{
	static const unsigned ops[] = { CI_FIRST, CI_MIDDLE, CI_LAST, CI_ONLY, CI_ACK, 5, 10, 31 };
	uint8_t b[4096] = { 0 };
	struct ci_pkt p = make_target_ud(1, b, CI_MAD);
	const struct ci_conn *c = w->ci.n_conns ? &w->ci.conn[w->ci.n_conns - 1] : NULL;
	struct ci_qp *qp = newest_qp();

	if (what == 0) {
		put_target_request(b);
	} else if (what == 1 || what == 2) {
		ci_mad(b, 7, 3, what == 1 ? CI_DREQ : CI_REJ + ddps_rbuf_u8(&w->in) % 16, ++w->id);
		cf_put32(b + CM_LOCAL, c ? c->peer_id : 1);
		cf_put32(b + CM_REMOTE, c ? c->id : 1);
		spoil_octets(b + 32, 4, 2);
	} else if (what == 3) {
		ci_mad(b, 3, ddps_rbuf_u8(&w->in), ddps_rbuf_u8(&w->in), ++w->id);
		memcpy(b + MC_MGID, w->ci.group[0].mgid, CI_GID);
		memcpy(b + MC_PORT, gid, CI_GID);
		b[MC_SCOPE] = 1;
	} else if (what == 4) {
		p = make_target_ud(w->ci.me.qpn, b, put_target_arp(b, 1, w->ci.me.ip, NULL));
	} else if (what == 5 && qp) {
		p = (struct ci_pkt){ .op = (uint8_t)ops[ddps_rbuf_u8(&w->in) & 7],
				     .pkey = 0xffff,
				     .qpn = qp->qpn,
				     .psn = qp->epsn,
				     .ack_req = true,
				     .syndrome = ddps_rbuf_u8(&w->in),
				     .data = b,
				     .len = ddps_rbuf_u16(&w->in) % 2049 };
		cf_put16(b, CI_IP4);
	} else { /* any octets at all */
		p.op = ddps_rbuf_u8(&w->in);
		p.qpn = ddps_rbuf_u8(&w->in);
		p.data = fuzz_some(&w->in, ddps_rbuf_u8(&w->in), &p.len);
	}
	send_target_packet(&p, what == 4, how);
}

/* The next that comes.  Return: whether something does. */
static bool serve_next_arrival(void)
{
	unsigned b = ddps_rbuf_u8(&w->in), how = b & 0x40 ? ddps_rbuf_u8(&w->in) : 0;

	if (w->in.failed)
		return false;
	if (b < 0x80 && w->n_sent) { /* the oldest one is answered, perhaps not for the last time */
		struct sent s = w->sent[0];

		s.p.data = s.b + (s.p.data - w->sent[0].b);
		if (!(b & 0x20)) {
			memmove(w->sent, w->sent + 1, --w->n_sent * sizeof *w->sent);
			for (unsigned i = 0; i < w->n_sent; i++)
				w->sent[i].p.data -= sizeof *w->sent;
		}
		return b & 0x10 ? false : answer_tester(&s.p, how);
	}
	if (b < 0x90)
		return false;
	speak_unasked(b & 7, how);
	return true;
}

/* ---- the system ---- */

int __wrap_socket(int family, int type, int protocol)
{
	(void)family, (void)type, (void)protocol;
	errno = EMFILE;
	return -1;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	FUZZ_CHECK(++w->polls < POLLS_MAX);
	for (nfds_t i = 0; i < n; i++)
		fds[i].revents = 0;
	if (!w->waiting && fuzz_more(&w->in))
		(void)serve_next_arrival();
	if (n == 2 && w->waiting) {
		fds[w->at.dst != OWN].revents = POLLIN;
		return 1;
	}
	w->now += ms > 0 ? (unsigned)ms * NS_PER_MS : NS_PER_MS;
	fuzz_time_set(w->now);
	return 0;
}

ssize_t __wrap_sendto(int fd, const void *b, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	struct sent *s = &w->sent[w->n_sent];

	(void)fd, (void)flags;
	FUZZ_CHECK(to && to_len == sizeof(struct sockaddr_in) && len <= CI_PKT_MAX);
	if (w->n_sent == SENT)
		return (ssize_t)len;
	memcpy(s->b, b, len);
	w->n_sent += !ci_pkt_parse(&s->p, s->b, len);
	return (ssize_t)len;
}

ssize_t __wrap_recvfrom(int fd, void *b, size_t len, int flags, struct sockaddr *from,
			socklen_t *from_len)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(w->at.src),
				       .sin_port = htons(w->at.sport) };

	(void)fd, (void)flags;
	if (!w->waiting) {
		errno = EAGAIN;
		return -1;
	}
	w->waiting = false;
	FUZZ_CHECK(w->len <= len && *from_len == sizeof a);
	memcpy(b, w->b, w->len);
	memcpy(from, &a, sizeof a);
	return (ssize_t)w->len;
}

/* ---- a run ---- */

static void check_tester(const struct ci *ci)
{
	const struct ci_ev *e;
	unsigned n = 0;

	TAILQ_FOREACH(e, &ci->ev, of_all) {
		n++;
		FUZZ_CHECK(e->kind != CI_EV_SA || !ci->sa); /* who should take it? */
	}
	FUZZ_CHECK(n == ci->n_ev && n <= CI_KEPT);
	FUZZ_CHECK(ci->n_conns <= CI_CONNS && ci->n_log <= CI_LOG && ci->n_nodes <= CI_NODES);
	FUZZ_CHECK(memchr(ci->left.why, 0, sizeof ci->left.why));
	for (unsigned i = 0; i < CI_QPS; i++)
		FUZZ_CHECK(ci->qp[i].in_len <= CI_MSG_MAX && ci->qp[i].mtu <= 4096);
}

static void known(struct ci *ci)
{
	put_target_arp(ci->frame, 1, 0, NULL);
	memcpy(ci->target.lla, ci->frame + 12, CI_LLA);
	ci->target.qpn = QPN;
	ci->target.ip = TARGET;
	ci->target.has_ip6 = true;
	memcpy(ci->target.ip6, gid, 16);
	ci->target.lid = ci->target.lid ? ci->target.lid : LID;
	ci->target.known = true;
	ci->sid_form = 1;
}

static void start_tester(struct ci *ci, bool sa)
{
	ci->plan = (struct ci_plan){ .wire_ip = OWN,
				     .broadcast = OWN | 0xff,
				     .port = 4791,
				     .sa_lid = sa ? 1 : LID,
				     .gid = { 0xfe, 0x80, [15] = 1 },
				     .ip = 0x0a580064,
				     .ips = 64,
				     .target = TARGET,
				     .pkey = 0xffff,
				     .qkey = 0x0b1b,
				     .mtu = 4,
				     .life = 18,
				     .limit_ms = 2000 };
	ci->lid = 1;
	ci->sa = sa;
	ci->unicast = 100;
	ci->multicast = 101;
	TAILQ_INIT(&ci->ev);
	ci->next_id = 1;
	ci->rx_mtu = CI_RX_MTU;
	ci->trace = cf_trace_new();
	if (sa) {
		ci_sa_start(ci);
	} else {
		ci_sa_join(ci);
		ci_sa_path(ci, gid);
	}
	known(ci);
}

static const struct ci_case *choose_fuzzed_case(unsigned i)
{
	const struct ci_case *c;

	for (;;)
		for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
			for (c = tables[t]; c->name; c++)
				if (!i--)
					return c;
}

static void execute(const struct ci_case *c, bool sa)
{
	if (!setjmp(w->ci.left.to)) {
		start_tester(&w->ci, sa);
		c->run(&w->ci);
	}
	check_tester(&w->ci);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	const struct ci_case *c = choose_fuzzed_case(ddps_rbuf_u8(&in));
	bool sa = ddps_rbuf_u8(&in) & 1 || c->needs & CI_NEEDS_SA;

	w = calloc(1, sizeof *w);
	FUZZ_CHECK(w);
	w->in = in;
	w->now = NOW;
	fuzz_time_set(NOW);
	execute(c, sa);
	if (!setjmp(w->ci.left.to))
		ci_sweep(&w->ci);
	check_tester(&w->ci);
	ci_forget(&w->ci);
	for (unsigned i = 0; i < CI_QPS; i++)
		free(w->ci.qp[i].in);
	cf_trace_free(w->ci.trace);
	free(w);
	return 0;
}
