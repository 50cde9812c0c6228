/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the simulated kernel's SCTP (RFC 6458 5 and 8), and what becomes of them on their way. */
#include "sim/kern_sctp.h"
#include <errno.h>

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
