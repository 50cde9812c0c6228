/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCTP of the kernel: one-to-one sockets (RFC 6458 4), messages and notifications as Linux brings them.
 * Packets are not played: a message that is lost is late, and everything arrives that has been taken,
 * unless the association ends.
 */
#include "sim/kern_in.h"
#include <errno.h>
#include <netinet/sctp.h>
#include <stdio.h>

#define SEC	   1000000000ull
#define HOMES	   4u
#define WINDOW_MIN 16384u
#define HEARTBEAT  (30 * SEC) /* until a peer that has gone silently is noticed */
#define INIT_TRIES (70 * SEC) /* until a peer that does not answer is given up */
#define OVERHEAD   64u	      /* of a packet with one chunk, in UDP or not */
#define UDP_PORT   "/proc/sys/net/sctp/udp_port"
#define ENCAPS	   132 /* SCTP_REMOTE_UDP_ENCAPS_PORT, which not every header has */

struct encaps { /* struct sctp_udpencaps */
	sctp_assoc_t assoc;
	struct sockaddr_storage address;
	uint16_t port;
};

struct item { /* a message, or a notification; in the order of arrival */
	struct item *next;
	uint64_t at;
	bool note, unordered;
	uint16_t stream;
	uint32_t ppid;
	size_t len, off;
	uint8_t octets[];
};

struct homes {
	unsigned host[HOMES], n;
};

/* One end; of a listener, what the ends are like that it accepts. */
struct kern_sctp {
	struct kern_sctp *peer, *next; /* next: in a listener's queue */
	struct item *first;
	size_t unread; /* octets of messages, and on their way here */
	unsigned events;
	bool linger, asked, dead, heard, shut, busy;
	bool gone;	   /* the peer's socket has been closed, in order */
	uint64_t up_at;	   /* when connect is through */
	uint64_t last_at;  /* all has arrived */
	uint64_t acked_at; /* all that was sent is acknowledged */
	uint64_t shut_at;  /* the peer's SHUTDOWN arrives */
	uint64_t end_at;
	uint16_t end_how; /* a state of SCTP_ASSOC_CHANGE */
	int end_err, err;
	bool adaptation;
	uint32_t indication;
	uint16_t encap, streams;
	unsigned peer_host, primary;
	struct homes own, theirs;
	uint16_t peer_port;
};

void (*kern_lie_message)(struct kern_message *m, kern_message_put *put, void *to);

/* ---- ends ---- */

struct kern_sctp *kern_sctp_new(void)
{
	struct kern_sctp *t = kern_alloc(sizeof *t);

	*t = (struct kern_sctp){
		.up_at = KERN_NONE, .shut_at = KERN_NONE, .end_at = KERN_NONE, .streams = 10
	};
	return t;
}

static size_t window(void)
{
	return kern.window < WINDOW_MIN ? WINDOW_MIN : kern.window;
}

/* What is lost comes again after a while. */
static uint64_t arrival(void)
{
	uint64_t at = kern_arrival();

	if (kern.dark_until > kern.now)
		at += kern.dark_until - kern.now;
	if (kern_chance(kern.f.lost, &kern.n.lost))
		at += kern.delay + sim_like(SEC);
	if (kern_chance(kern.f.late, &kern.n.late))
		at += sim_like(8 * kern.delay + 1);
	return at;
}

/* Behind all that is on its way to @t. */
static uint64_t in_order(struct kern_sctp *t)
{
	uint64_t at = arrival();

	if (at < t->last_at)
		at = t->last_at;
	t->last_at = at;
	kern_wake(at);
	return at;
}

static void insert(struct kern_sctp *t, struct item *it)
{
	struct item **p = &t->first;

	while (*p && (*p)->at <= it->at)
		p = &(*p)->next;
	it->next = *p;
	*p = it;
	if (it->at > t->last_at)
		t->last_at = it->at;
	kern_wake(it->at);
}

static unsigned bit(unsigned type)
{
	return 1u << (type - SCTP_SN_TYPE_BASE);
}

static void note(struct kern_sctp *t, uint64_t at, unsigned type, const void *p, size_t len)
{
	struct item *it;

	if (!(t->events & bit(type)))
		return;
	it = kern_alloc(sizeof *it + len);
	*it = (struct item){ .at = at, .note = true, .len = len };
	memcpy(it->octets, p, len);
	insert(t, it);
}

static void note_change(struct kern_sctp *t, uint64_t at, uint16_t state)
{
	struct sctp_assoc_change c = { .sac_type = SCTP_ASSOC_CHANGE,
				       .sac_length = sizeof c,
				       .sac_state = state,
				       .sac_inbound_streams = t->peer ? t->peer->streams : 0,
				       .sac_outbound_streams = t->streams };

	note(t, at, SCTP_ASSOC_CHANGE, &c, sizeof c);
}

static void note_path(struct kern_sctp *t, uint64_t at, unsigned host, int state)
{
	struct sctp_paddr_change c = { .spc_type = SCTP_PEER_ADDR_CHANGE,
				       .spc_length = sizeof c,
				       .spc_state = state };
	struct sockaddr_in a = kern_addr(host, t->peer_port);

	memcpy(&c.spc_aaddr, &a, sizeof a);
	note(t, at, SCTP_PEER_ADDR_CHANGE, &c, sizeof c);
}

static void note_up(struct kern_sctp *t)
{
	struct sctp_adaptation_event a = { .sai_type = SCTP_ADAPTATION_INDICATION,
					   .sai_length = sizeof a,
					   .sai_adaptation_ind = t->peer->indication };

	note_change(t, t->up_at, SCTP_COMM_UP);
	if (t->peer->adaptation)
		note(t, t->up_at, SCTP_ADAPTATION_INDICATION, &a, sizeof a);
	for (unsigned i = 1; i < t->theirs.n; i++)
		note_path(t, t->up_at + 2 * kern.delay, t->theirs.host[i], SCTP_ADDR_CONFIRMED);
}

static void note_dry(struct kern_sctp *t)
{
	struct sctp_sender_dry_event e = { .sender_dry_type = SCTP_SENDER_DRY_EVENT,
					   .sender_dry_length = sizeof e };

	note(t, kern.now, SCTP_SENDER_DRY_EVENT, &e, sizeof e);
}

static void end(struct kern_sctp *t, uint64_t at, uint16_t how, int err)
{
	if (t->dead || t->end_at <= at)
		return;
	t->end_at = at;
	t->end_how = how;
	t->end_err = err;
	kern_wake(at);
}

static void abort_peer(struct kern_sctp *t)
{
	if (t->peer)
		end(t->peer, in_order(t->peer), SCTP_COMM_LOST, ECONNRESET);
}

/* The peer's SHUTDOWN is here.  Once ours is acknowledged, it is over. */
static void hear_shutdown(struct kern_sctp *t)
{
	struct sctp_shutdown_event e = { .sse_type = SCTP_SHUTDOWN_EVENT, .sse_length = sizeof e };

	if (t->shut_at > kern.now || t->dead)
		return;
	if (!t->heard)
		note(t, kern.now, SCTP_SHUTDOWN_EVENT, &e, sizeof e);
	t->heard = true;
	if (t->acked_at > kern.now)
		return;
	if (t->peer)
		end(t->peer, kern.now + kern.delay, SCTP_SHUTDOWN_COMP, 0);
	end(t, kern.now + 2 * kern.delay, SCTP_SHUTDOWN_COMP, 0);
}

/* What has happened by now. */
static void settle(struct kern_sctp *t)
{
	if (t->busy && t->acked_at <= kern.now && !t->dead) {
		t->busy = false;
		note_dry(t);
	}
	hear_shutdown(t);
	if (t->end_at > kern.now || t->dead)
		return;
	t->dead = true;
	t->err = t->end_err;
	note_change(t, kern.now, t->end_how);
}

static bool up(const struct kern_sctp *t)
{
	return t->up_at <= kern.now && !t->dead;
}

/* ---- it begins ---- */

static void meet(struct kern_sctp *t, struct kern_sctp *c)
{
	c->peer = t;
	t->peer = c;
	c->up_at = in_order(c);
	t->last_at = c->up_at;
	t->up_at = c->up_at + kern.delay;
	c->acked_at = c->up_at;
	t->acked_at = t->up_at;
	note_up(c);
	note_up(t);
}

/* An end of the listener's, with what its socket was told. */
static struct kern_sctp *child(const struct kern_file *l, const struct kern_file *f)
{
	struct kern_sctp *c = kern_sctp_new();
	const struct kern_sctp *s = l->sctp;

	c->events = s->events;
	c->linger = s->linger;
	c->adaptation = s->adaptation;
	c->indication = s->indication;
	c->streams = s->streams;
	c->own = s->own;
	c->theirs = f->sctp->own;
	c->peer_host = f->host;
	c->peer_port = f->port;
	c->asked = true;
	return c;
}

static int nobody(struct kern_sctp *t, bool silent)
{
	if (silent && kern_draw() % 2)
		end(t, kern.now + INIT_TRIES, SCTP_CANT_STR_ASSOC, ETIMEDOUT);
	else
		end(t, in_order(t), SCTP_CANT_STR_ASSOC, ECONNREFUSED);
	return kern_err(EINPROGRESS);
}

int kern_sctp_connect(struct kern_file *f, unsigned host, uint16_t port)
{
	struct kern_file *l = kern_bound(KERN_SCTP, host, port);
	struct kern_sctp *t = f->sctp, **at;
	unsigned n = 0;
	bool silent;

	if (t->asked)
		return kern_err(t->dead || up(t) ? EISCONN : EALREADY);
	t->asked = true;
	t->peer_host = host;
	t->peer_port = port;
	if (!f->port)
		f->port = kern_free_port();
	if (!t->own.n)
		t->own = (struct homes){ { f->host }, 1 };
	for (at = l ? &l->sctp_queue : NULL; at && *at; at = &(*at)->next)
		n++;
	silent = kern.dark_until > kern.now || kern_chance(kern.f.refused, &kern.n.refused);
	if (silent || !l || n >= l->backlog) {
		t->theirs = (struct homes){ { host }, 1 };
		return nobody(t, silent);
	}
	t->theirs = l->sctp->own.n ? l->sctp->own : (struct homes){ { host }, 1 };
	*at = child(l, f);
	meet(t, *at);
	return kern_err(EINPROGRESS);
}

struct kern_sctp *kern_sctp_take(struct kern_file *l)
{
	for (struct kern_sctp **p = &l->sctp_queue; *p; p = &(*p)->next) {
		struct kern_sctp *c = *p;

		if (c->up_at > kern.now)
			continue;
		*p = c->next;
		c->next = NULL;
		return c;
	}
	return NULL;
}

/* ---- it ends ---- */

static void tell_shutdown(struct kern_sctp *t)
{
	uint64_t at;

	if (t->shut || !t->peer)
		return;
	t->shut = true;
	at = in_order(t->peer);
	if (at < t->acked_at)
		at = t->acked_at;
	t->peer->shut_at = at;
	kern_wake(at);
	kern_wake(t->peer->acked_at);
}

static bool has_message(const struct kern_sctp *t)
{
	for (const struct item *it = t->first; it; it = it->next)
		if (!it->note && it->at <= kern.now)
			return true;
	return false;
}

static void leave_peer(struct kern_sctp *t)
{
	struct kern_sctp *p = t->peer;

	if (!p)
		return;
	if (kern.mute >> kern.host & 1) {
		end(p, kern.now + HEARTBEAT, SCTP_COMM_LOST, ECONNRESET);
	} else if (!t->dead && (t->linger || has_message(t) || t->up_at > kern.now)) {
		abort_peer(t);
	} else if (!t->dead) {
		tell_shutdown(t);
		p->gone = true;
	}
	p->peer = NULL;
}

static void drop(struct kern_sctp *t)
{
	struct item *it;

	leave_peer(t);
	while ((it = t->first)) {
		t->first = it->next;
		free(it);
	}
	free(t);
}

void kern_sctp_close(struct kern_file *f)
{
	while (f->sctp_queue) {
		struct kern_sctp *t = f->sctp_queue;

		f->sctp_queue = t->next;
		t->linger = true;
		drop(t);
	}
	drop(f->sctp);
	f->sctp = NULL;
}

void kern_sctp_lost(struct kern_file *f, int err)
{
	struct kern_sctp *t = f->sctp;

	if (!t->asked || t->dead)
		return;
	abort_peer(t);
	end(t, kern.now, SCTP_COMM_LOST, err);
	settle(t);
}

int kern_sctp_shutdown(struct kern_file *f)
{
	if (!up(f->sctp))
		return kern_err(ENOTCONN);
	tell_shutdown(f->sctp);
	return 0;
}

/* ---- what there is to do ---- */

static size_t used(const struct kern_sctp *t)
{
	return t->peer ? t->peer->unread : 0;
}

static bool arrived(const struct kern_sctp *t)
{
	return t->first && t->first->at <= kern.now;
}

uint32_t kern_sctp_ready(struct kern_file *f)
{
	struct kern_sctp *t = f->sctp;
	uint32_t ev = 0;

	if (f->listening) {
		for (t = f->sctp_queue; t; t = t->next)
			ev |= t->up_at <= kern.now ? EPOLLIN : 0;
		return ev;
	}
	if (!t->asked)
		return 0;
	settle(t);
	if (t->dead)
		return EPOLLIN | EPOLLOUT | EPOLLHUP | EPOLLRDHUP | (t->err ? EPOLLERR : 0u);
	if (arrived(t))
		ev |= EPOLLIN;
	if (t->heard)
		ev |= EPOLLIN | EPOLLRDHUP;
	if (up(t) && used(t) <= window() / 2)
		ev |= EPOLLOUT;
	return ev;
}

int kern_sctp_error(struct kern_file *f)
{
	int err;

	settle(f->sctp);
	err = f->sctp->err;
	f->sctp->err = 0;
	return err;
}

/* ---- messages ---- */

static void fill_info(struct msghdr *m, const struct item *it)
{
	struct sctp_rcvinfo info = { .rcv_sid = it->stream,
				     .rcv_ppid = it->ppid,
				     .rcv_flags = it->unordered ? SCTP_UNORDERED : 0 };
	struct cmsghdr *c = CMSG_FIRSTHDR(m);

	if (it->note) {
		m->msg_controllen = 0;
		return;
	}
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof info),
			       .cmsg_level = IPPROTO_SCTP,
			       .cmsg_type = SCTP_RCVINFO };
	memcpy(CMSG_DATA(c), &info, sizeof info);
	m->msg_controllen = CMSG_SPACE(sizeof info);
}

/* The first, or a part of it. */
static ssize_t take(struct kern_sctp *t, struct msghdr *m)
{
	struct item *it = t->first;
	size_t len = it->len - it->off, most = m->msg_iov->iov_len;

	if (!it->note && (kern_brief() || kern_chance(kern.f.short_io, &kern.n.short_io)))
		most = most < 16 ? most : 16;
	if (len > most)
		len = most;
	memcpy(m->msg_iov->iov_base, it->octets + it->off, len);
	it->off += len;
	fill_info(m, it);
	m->msg_flags = it->note ? MSG_NOTIFICATION : 0;
	if (!it->note)
		t->unread -= len;
	if (it->off < it->len)
		return (ssize_t)len;
	m->msg_flags |= MSG_EOR;
	t->first = it->next;
	free(it);
	return (ssize_t)len;
}

ssize_t kern_sctp_recv(struct kern_file *f, struct msghdr *m)
{
	struct kern_sctp *t = f->sctp;
	int err;

	if (!t->asked)
		return kern_err(ENOTCONN);
	settle(t);
	m->msg_flags = 0;
	if (arrived(t))
		return take(t, m);
	err = t->err;
	t->err = 0;
	m->msg_controllen = 0;
	if (err)
		return kern_err(err);
	return t->dead || t->heard ? 0 : kern_err(EAGAIN);
}

static void put(void *to, const struct kern_message *m)
{
	struct kern_sctp *t = to, *p = t->peer;
	struct item *it;

	if (!p || !m->len)
		return;
	it = kern_alloc(sizeof *it + m->len);
	*it = (struct item){ .at = arrival(),
			     .unordered = m->unordered,
			     .stream = m->stream,
			     .ppid = htonl(m->ppid),
			     .len = m->len };
	if (!m->unordered && it->at < p->last_at)
		it->at = p->last_at;
	if (it->at < p->up_at)
		it->at = p->up_at;
	memcpy(it->octets, m->octets, m->len);
	insert(p, it);
	p->unread += m->len;
	if (t->acked_at < it->at + kern.delay)
		t->acked_at = it->at + kern.delay;
	kern_wake(t->acked_at);
}

static bool gather(const struct msghdr *h, struct kern_message *m)
{
	m->len = 0;
	for (size_t i = 0; i < h->msg_iovlen; i++) {
		if (h->msg_iov[i].iov_len > sizeof m->octets - m->len)
			return false;
		if (h->msg_iov[i].iov_len)
			memcpy(m->octets + m->len, h->msg_iov[i].iov_base, h->msg_iov[i].iov_len);
		m->len += h->msg_iov[i].iov_len;
	}
	return true;
}

/* A reset: an ABORT of either's, or the peer restarts. */
static void reset(struct kern_sctp *t)
{
	if (sim_like(3)) {
		abort_peer(t);
		end(t, in_order(t), SCTP_COMM_LOST, ECONNRESET);
		return;
	}
	note_change(t->peer, in_order(t->peer), SCTP_RESTART);
	end(t, kern.now, SCTP_COMM_LOST, ECONNRESET);
}

static ssize_t send_it(struct kern_file *f, struct kern_message *m)
{
	struct kern_sctp *t = f->sctp;

	if (m->stream >= t->streams || !m->len)
		return kern_err(EINVAL);
	if (used(t) >= window() || kern_chance(kern.f.again, &kern.n.again)) {
		kern_wake(kern.now + kern.delay);
		return kern_err(EAGAIN);
	}
	t->busy = true;
	if (!t->peer && !t->gone) /* nobody is there: that comes back */
		end(t, in_order(t), SCTP_COMM_LOST, ECONNRESET);
	if (kern.liars >> f->host & 1 && t->peer)
		kern_lie_message(m, put, t);
	put(t, m);
	if (t->peer && kern_chance(kern.f.reset, &kern.n.reset))
		reset(t);
	return (ssize_t)m->len;
}

ssize_t kern_sctp_send(struct kern_file *f, const struct msghdr *h)
{
	static struct kern_message m;
	struct msghdr copy = *h;
	struct cmsghdr *c = CMSG_FIRSTHDR(&copy);
	struct sctp_sndinfo si;
	struct kern_sctp *t = f->sctp;
	ssize_t len;

	settle(t);
	if (!up(t) || t->shut || t->heard) {
		int err = t->err;

		t->err = 0;
		return kern_err(err ? err : EPIPE);
	}
	if (!gather(h, &m))
		return kern_err(EMSGSIZE);
	memcpy(&si, CMSG_DATA(c), sizeof si);
	m.stream = si.snd_sid;
	m.ppid = ntohl(si.snd_ppid);
	m.unordered = si.snd_flags & SCTP_UNORDERED;
	len = (ssize_t)m.len;
	return send_it(f, &m) < 0 ? -1 : len;
}

/* ---- options ---- */

static void set_event(struct kern_sctp *t, const struct sctp_event *ev)
{
	settle(t);
	if (!ev->se_on) {
		t->events &= ~bit(ev->se_type);
		return;
	}
	t->events |= bit(ev->se_type);
	if (ev->se_type == SCTP_SENDER_DRY_EVENT && !t->busy && up(t))
		note_dry(t);
}

/* A list as bindx and connectx have it; its port. */
static int parse_homes(const void *value, socklen_t len, struct homes *h, uint16_t *port)
{
	struct sockaddr_in a;
	const uint8_t *p = value;

	h->n = 0;
	for (; len >= sizeof a && h->n < HOMES; p += sizeof a, len -= (socklen_t)sizeof a) {
		memcpy(&a, p, sizeof a);
		if (!kern_parse((struct sockaddr *)&a, &h->host[h->n++], port))
			return -1;
	}
	return h->n ? 0 : kern_err(EINVAL);
}

static int bind_all(struct kern_file *f, const void *value, socklen_t len)
{
	uint16_t port;

	if (parse_homes(value, len, &f->sctp->own, &port))
		return -1;
	if (port && kern_bound(KERN_SCTP, f->host, port))
		return kern_err(EADDRINUSE);
	if (!f->port)
		f->port = port ? port : kern_free_port();
	return 0;
}

static int connect_all(struct kern_file *f, const void *value, socklen_t len)
{
	struct homes h;
	uint16_t port;

	if (parse_homes(value, len, &h, &port))
		return -1;
	return kern_sctp_connect(f, h.host[0], port);
}

/* Which of the peer's addresses; theirs.n: none. */
static unsigned home_of(const struct kern_sctp *t, const void *addr)
{
	struct sockaddr_in a;
	unsigned i, host;
	uint16_t port;

	memcpy(&a, addr, sizeof a);
	if (!kern_parse((struct sockaddr *)&a, &host, &port))
		return t->theirs.n;
	for (i = 0; i < t->theirs.n && t->theirs.host[i] != host; i++)
		;
	return i;
}

static int set_primary(struct kern_sctp *t, const struct sctp_prim *p)
{
	unsigned i = home_of(t, &p->ssp_addr);

	if (!up(t) || i == t->theirs.n)
		return kern_err(EINVAL);
	t->primary = i;
	return 0;
}

int kern_sctp_set(struct kern_file *f, int opt, const void *value, socklen_t len)
{
	struct kern_sctp *t = f->sctp;
	struct encaps e;

	switch (opt) {
	case SCTP_EVENT:
		set_event(t, value);
		return 0;
	case SCTP_INITMSG:
		t->streams = ((const struct sctp_initmsg *)value)->sinit_num_ostreams;
		return 0;
	case SCTP_ADAPTATION_LAYER:
		t->adaptation = true;
		t->indication = ((const struct sctp_setadaptation *)value)->ssb_adaptation_ind;
		return 0;
	case ENCAPS:
		memcpy(&e, value, sizeof e);
		t->encap = e.port;
		return 0;
	case SCTP_SOCKOPT_BINDX_ADD:
		return bind_all(f, value, len);
	case SCTP_SOCKOPT_CONNECTX:
		return connect_all(f, value, len);
	case SCTP_PRIMARY_ADDR:
		return set_primary(t, value);
	default:
		return 0;
	}
}

void kern_sctp_linger(struct kern_file *f, bool on)
{
	f->sctp->linger = on;
}

static int get_status(const struct kern_file *f, struct sctp_status *st)
{
	const struct kern_sctp *t = f->sctp;
	struct sockaddr_in a = kern_addr(t->theirs.host[t->primary], t->peer_port);
	size_t full = used(t);

	if (!t->asked || t->dead)
		return kern_err(EINVAL);
	*st = (struct sctp_status){ .sstat_state = !up(t)     ? SCTP_COOKIE_WAIT
						   : t->heard ? SCTP_SHUTDOWN_RECEIVED
						   : t->shut  ? SCTP_SHUTDOWN_SENT
							      : SCTP_ESTABLISHED,
				    .sstat_rwnd = (uint32_t)(full < window() ? window() - full : 0),
				    .sstat_unackdata = t->busy,
				    .sstat_instrms = t->streams,
				    .sstat_outstrms = t->streams,
				    .sstat_fragmentation_point = kern.mtu - OVERHEAD };
	memcpy(&st->sstat_primary.spinfo_address, &a, sizeof a);
	return 0;
}

/* Where nothing passes, paths are suspect, and then down. */
static int get_path(const struct kern_sctp *t, struct sctp_paddrinfo *p)
{
	unsigned i = home_of(t, &p->spinfo_address);

	if (!t->asked || t->dead || i == t->theirs.n)
		return kern_err(EINVAL);
	p->spinfo_state = kern.dark_until <= kern.now	     ? SCTP_ACTIVE
			  : kern.dark_until - kern.now > SEC ? SCTP_INACTIVE
							     : SCTP_PF;
	p->spinfo_cwnd = (uint32_t)window();
	p->spinfo_rto = 200;
	p->spinfo_mtu = kern.mtu;
	return 0;
}

/* struct sctp_getaddrs, as it has been for ever: association, number, addresses. */
static int get_homes(const struct homes *h, uint16_t port, uint8_t *to, socklen_t *len)
{
	const uint32_t n = h->n;

	if (*len < 8 + n * sizeof(struct sockaddr_in))
		return kern_err(ENOMEM);
	memcpy(to + 4, &n, 4);
	for (unsigned i = 0; i < n; i++) {
		struct sockaddr_in a = kern_addr(h->host[i], port);

		memcpy(to + 8 + i * sizeof a, &a, sizeof a);
	}
	return 0;
}

int kern_sctp_get(struct kern_file *f, int opt, void *value, socklen_t *len)
{
	const struct kern_sctp *t = f->sctp;
	struct encaps e;

	settle(f->sctp);
	switch (opt) {
	case SCTP_STATUS:
		return get_status(f, value);
	case SCTP_GET_PEER_ADDR_INFO:
		return get_path(t, value);
	case SCTP_GET_PEER_ADDRS:
		return t->asked && !t->dead ? get_homes(&t->theirs, t->peer_port, value, len)
					    : kern_err(EINVAL);
	case SCTP_GET_LOCAL_ADDRS:
		return get_homes(&t->own, f->port, value, len);
	case SCTP_GET_ASSOC_STATS:
		return t->asked && !t->dead ? 0 : kern_err(EINVAL);
	case ENCAPS:
		memcpy(&e, value, sizeof e);
		e.port = t->encap;
		memcpy(value, &e, sizeof e);
		return 0;
	default:
		return kern_err(ENOPROTOOPT);
	}
}

/* ---- what the system says ---- */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	static char text[8];

	if (strcmp(path, UDP_PORT))
		return __real_fopen(path, mode);
	if (!kern.sctp || kern_fails("fopen", ENOENT))
		return NULL;
	snprintf(text, sizeof text, "%u\n", kern.sctp_udp);
	return fmemopen(text, strlen(text), "r");
}
