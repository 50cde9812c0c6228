/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the simulated kernel's SCTP (RFC 6458 8 and 9), and what else the system says of it. */
#include "sim/kern_sctp.h"
#include <errno.h>
#include <stdio.h>

#define OVERHEAD 64u /* of a packet with one chunk, in UDP or not */
#define UDP_PORT "/proc/sys/net/sctp/udp_port"
#define ENCAPS	 132 /* SCTP_REMOTE_UDP_ENCAPS_PORT, which not every header has */

struct encaps { /* struct sctp_udpencaps */
	sctp_assoc_t assoc;
	struct sockaddr_storage address;
	uint16_t port;
};

static void set_event(struct kern_sctp *t, const struct sctp_event *ev)
{
	ks_settle(t);
	if (!ev->se_on) {
		t->events &= ~ks_bit(ev->se_type);
		return;
	}
	t->events |= ks_bit(ev->se_type);
	if (ev->se_type == SCTP_SENDER_DRY_EVENT && !t->busy && ks_up(t))
		ks_note_dry(t);
}

/* A list as bindx and connectx have it; its port. */
static int parse_homes(const void *value, socklen_t len, struct ks_homes *h, uint16_t *port)
{
	struct sockaddr_in a;
	const uint8_t *p = value;

	h->n = 0;
	for (; len >= sizeof a && h->n < KS_HOMES; p += sizeof a, len -= (socklen_t)sizeof a) {
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

static int connect_all_kern_sctp_opt(struct kern_file *f, const void *value, socklen_t len)
{
	struct ks_homes h;
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

	if (!ks_up(t) || i == t->theirs.n)
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
		if (kern.streams && t->streams > kern.streams)
			t->streams = (uint16_t)kern.streams;
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
		return connect_all_kern_sctp_opt(f, value, len);
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
	size_t full = ks_used(t);

	if (!t->asked || t->dead)
		return kern_err(EINVAL);
	*st = (struct sctp_status){ .sstat_state = !ks_up(t)  ? SCTP_COOKIE_WAIT
						   : t->heard ? SCTP_SHUTDOWN_RECEIVED
						   : t->shut  ? SCTP_SHUTDOWN_SENT
							      : SCTP_ESTABLISHED,
				    .sstat_rwnd =
					    (uint32_t)(full < ks_window() ? ks_window() - full : 0),
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
	p->spinfo_state = kern.dark_until <= kern.now		? SCTP_ACTIVE
			  : kern.dark_until - kern.now > KS_SEC ? SCTP_INACTIVE
								: SCTP_PF;
	p->spinfo_cwnd = (uint32_t)ks_window();
	p->spinfo_rto = 200;
	p->spinfo_mtu = kern.mtu;
	return 0;
}

/* struct sctp_getaddrs, as it has been for ever: association, number, addresses. */
static int get_homes(const struct ks_homes *h, uint16_t port, uint8_t *to, socklen_t *len)
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

	ks_settle(f->sctp);
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

/* ---- kern sctp msg ---- */

/* Messages of the simulated kernel's SCTP (RFC 6458 5 and 8), and what becomes of them on their way. */

void (*kern_lie_message)(struct kern_message *m, kern_message_put *put, void *to);

static void fill_info(struct msghdr *m, const struct ks_item *it)
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
static ssize_t take_kern_message(struct kern_sctp *t, struct msghdr *m)
{
	struct ks_item *it = t->first;
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
	ks_settle(t);
	m->msg_flags = 0;
	if (ks_arrived(t))
		return take_kern_message(t, m);
	err = t->err;
	t->err = 0;
	m->msg_controllen = 0;
	if (err)
		return kern_err(err);
	return t->dead || t->heard ? 0 : kern_err(EAGAIN);
}

static void put_kern_sctp_msg(void *to, const struct kern_message *m)
{
	struct kern_sctp *t = to, *p = t->peer;
	struct ks_item *it;

	if (!p || !m->len)
		return;
	it = kern_alloc(sizeof *it + m->len);
	*it = (struct ks_item){ .at = ks_arrival(),
				.unordered = m->unordered,
				.stream = m->stream,
				.ppid = htonl(m->ppid),
				.len = m->len };
	if (!m->unordered && it->at < p->last_at)
		it->at = p->last_at;
	if (it->at < p->up_at)
		it->at = p->up_at;
	memcpy(it->octets, m->octets, m->len);
	ks_insert(p, it);
	p->unread += m->len;
	if (t->acked_at < it->at + kern.delay)
		t->acked_at = it->at + kern.delay;
	kern_wake(t->acked_at);
}

static bool gather_kern_sctp_msg(const struct msghdr *h, struct kern_message *m)
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
		ks_abort_peer(t);
		ks_end(t, ks_in_order(t), SCTP_COMM_LOST, ECONNRESET);
		return;
	}
	ks_note_change(t->peer, ks_in_order(t->peer), SCTP_RESTART);
	ks_end(t, kern.now, SCTP_COMM_LOST, ECONNRESET);
}

static ssize_t send_it(struct kern_file *f, struct kern_message *m)
{
	struct kern_sctp *t = f->sctp;

	if (m->stream >= t->streams || !m->len)
		return kern_err(EINVAL);
	if (kern.full && kern.now >= t->full_until && kern_chance(kern.f.again, &kern.n.again)) {
		t->full_until = kern.now + kern_draw() % kern.full;
		kern_wake(t->full_until);
	}
	if (ks_used(t) >= ks_window() || kern.now < t->full_until ||
	    (!kern.full && kern_chance(kern.f.again, &kern.n.again))) {
		kern_wake(kern.now + kern.delay);
		return kern_err(EAGAIN);
	}
	t->busy = true;
	if (!t->peer && !t->gone) /* nobody is there: that comes back */
		ks_end(t, ks_in_order(t), SCTP_COMM_LOST, ECONNRESET);
	if (kern.liars >> f->host & 1 && t->peer)
		kern_lie_message(m, put_kern_sctp_msg, t);
	put_kern_sctp_msg(t, m);
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

	ks_settle(t);
	if (!ks_up(t) || t->shut || t->heard) {
		int err = t->err;

		t->err = 0;
		return kern_err(err ? err : EPIPE);
	}
	if (!gather_kern_sctp_msg(h, &m))
		return kern_err(EMSGSIZE);
	memcpy(&si, CMSG_DATA(c), sizeof si);
	m.stream = si.snd_sid;
	m.ppid = ntohl(si.snd_ppid);
	m.unordered = si.snd_flags & SCTP_UNORDERED;
	len = (ssize_t)m.len;
	return send_it(f, &m) < 0 ? -1 : len;
}
