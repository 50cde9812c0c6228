/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets out, in batches; the engine's clock. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define REFILLS 16 /* in one turn of the loop */

/* Batches of a turn of the loop, of DDPS_SN_OUTS sends each; then others have theirs. */
#define ROUNDS 16

#define HELD_LONG 100000u /* ns; who polls looks again in a hundredth of it */
#define WARY	  1024u	  /* posts that leave immediately, after one that was held for longer */

/* One send: its header, addresses and control messages. */
struct message {
	struct sockaddr_in6 to;
	union ddps_sd_cmsg ctrl;
};

static void set_native_dest(struct ddps_sn_dest *d, const struct ddps_sctp_route *to, int family)
{
	struct sockaddr_storage ss;
	struct msghdr m = { 0 };

	d->peer = to->peer;
	d->local = to->local;
	d->encap = to->encap;
	d->len = ddps_sn_sockaddr(&to->peer, to->encap, family, &ss);
	memcpy(&d->to, &ss, sizeof d->to);
	if (to->local.family) {
		ddps_sn_sockaddr(&to->local, 0, family, &ss);
		ddps_sd_sock_source(&m, &d->ctrl, &ss);
	}
	d->ctrl_len = m.msg_controllen;
}

/* As the system wants it: mostly as it was for the packets before. */
static inline struct ddps_sn_dest *find_native_dest(struct ddps_sn_sock *s,
						    const struct ddps_sctp_route *to)
{
	struct ddps_sn_dest *d = &s->dest;

	if (!d->len || d->encap != to->encap || !ddps_sc_addr_eq(&d->peer, &to->peer) ||
	    !ddps_sc_addr_eq(&d->local, &to->local))
		set_native_dest(d, to, s->family);
	return d;
}

static void address_native_out(struct ddps_sn_sock *s, const struct ddps_sctp_out *o,
			       struct message *x, struct msghdr *m)
{
	const struct ddps_sn_dest *d = find_native_dest(s, &o->to);

	x->to = d->to;
	if (d->ctrl_len)
		memcpy(x->ctrl.buf, d->ctrl.buf, DDPS_SD_SOURCE_LEN);
	*m = (struct msghdr){ .msg_name = &x->to,
			      .msg_namelen = d->len,
			      .msg_iov = o->iov,
			      .msg_iovlen = o->niov,
			      .msg_control = d->ctrl_len ? &x->ctrl : NULL,
			      .msg_controllen = d->ctrl_len };
}

/* ---- one by one ---- */

/* The kernel takes no more until it has room. */
static void wait_for_room(struct ddps_sn_sock *s)
{
	s->ne->nfull += !s->full;
	s->full = true;
	ddps_io_set(s->ne->env->loop, &s->io, EPOLLIN | EPOLLOUT);
}

/* Whether @m left.  An error may be an ICMP error of an earlier packet: this one was not sent. */
bool ddps_sn_send_packet(struct ddps_sn_sock *s, const struct msghdr *m)
{
	for (int tries = 0; tries < 2; tries++) {
		if (!ddps_loop_owns(s->ne->env->loop))
			return false;
		if (sendmsg(s->io.fd, m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return true;
		if (errno == EAGAIN || errno == EMSGSIZE)
			break;
		s->errors = true;
	}
	if (errno == EAGAIN)
		wait_for_room(s);
	return false;
}

unsigned ddps_sn_parts_of(const struct ddps_sctp_out *o, unsigned first)
{
	unsigned n = 0;

	for (size_t len = 0; first + n < o->niov && len < o->seg_size; n++)
		len += o->iov[first + n].iov_len;
	return n;
}

static void take_send_refusal(struct ddps_sn_sock *s, const struct ddps_sctp_out *o,
			      const struct sockaddr_storage *to)
{
	uint32_t mtu = ddps_sd_sock_mtu(to);

	if (s->dtls)
		mtu = mtu > DDPS_DTLS_OVERHEAD ? mtu - DDPS_DTLS_OVERHEAD : 0;
	if (mtu)
		ddps_sctp_refused(s->ne->e, o, mtu, ddps_sn_now(s->ne));
}

/* Packet by packet.  Returns whether the path's link takes packets of this size. */
static bool send_singly(struct ddps_sn_sock *s, const struct ddps_sctp_out *o,
			const struct msghdr *like)
{
	struct msghdr m = *like;

	for (unsigned i = 0; i < o->niov; i += (unsigned)m.msg_iovlen) {
		m.msg_iov = o->iov + i;
		m.msg_iovlen = ddps_sn_parts_of(o, i);
		if (ddps_sn_send_packet(s, &m))
			continue;
		if (errno == EMSGSIZE)
			return false;
		if (s->full)
			break;
	}
	return true;
}

/* false: too long for the link. */
static bool send_alone(struct ddps_sn_sock *s, const struct ddps_sctp_out *o, struct message *x)
{
	struct msghdr m;
	bool ok;

	address_native_out(s, o, x, &m);
	if (o->fragment)
		ddps_sd_sock_set_df(s->io.fd, s->family, false);
	ok = send_singly(s, o, &m);
	if (o->fragment)
		ddps_sd_sock_set_df(s->io.fd, s->family, true);
	return ok;
}

/* ---- together ---- */

bool ddps_sn_no_gso(int err)
{
	return err == EIO || err == EINVAL || err == ENOPROTOOPT || err == EOPNOTSUPP;
}

static bool fits_batch(const struct ddps_sn_sock *s, const struct ddps_sctp_out *o)
{
	return !o->fragment && (o->nsegs == 1 || s->gso);
}

static int send_these(struct ddps_sn_sock *s, struct mmsghdr *m, unsigned n)
{
	const int fd = s->io.fd;

	if (!ddps_loop_owns_at(s->ne->env->loop, s->ne->now)) /* read just before */
		return -1;
	if (n > 1)
		return sendmmsg(fd, m, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sendmsg(fd, &m->msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1; /* takes less */
}

/* As many of @o as go in one call through @s; returns how many are done with, 1 at least.  @failed: the errno of
 * such a call, or 0; @large: set for those that are too long. */
static unsigned send_native_batch(struct ddps_sn_sock *s, const struct ddps_sctp_out *o, unsigned n,
				  int failed, bool *large)
{
	struct message x[DDPS_SN_OUTS];
	struct mmsghdr m[DDPS_SN_OUTS];
	unsigned k = 0;
	int sent;

	while (k < n && ddps_sn_sock_to(s->ne, &o[k].to) == s && fits_batch(s, &o[k])) {
		address_native_out(s, &o[k], &x[k], &m[k].msg_hdr);
		if (o[k].nsegs > 1)
			ddps_sd_sock_segment(&m[k].msg_hdr, &x[k].ctrl, (uint16_t)o[k].seg_size);
		k++;
	}
	errno = failed;
	sent = failed ? -1 : k ? send_these(s, m, k) : 0;
	if (sent < 0 && errno != EAGAIN && errno != EMSGSIZE) { /* perhaps for an ICMP error */
		s->errors = true;
		sent = send_these(s, m, k);
	}
	if (sent > 0)
		return (unsigned)sent;
	if (k && o->nsegs > 1 && ddps_sn_no_gso(errno))
		s->gso = false;
	*large = !send_alone(s, o, x);
	return 1;
}

/* @failed: the errno with which the first was tried, or 0. */
static void send_native_packets(struct ddps_sn_env *ne, unsigned n, int failed)
{
	bool large[DDPS_SN_OUTS] = { false }, left[DDPS_SN_OUTS] = { false }, all = true;
	struct sockaddr_storage to;
	struct ddps_sn_sock *s;

	for (unsigned i = 0, done; i < n; i += done) {
		s = ddps_sn_sock_to(ne, &ne->out[i].to);
		done = 1;
		if (s && s->dtls) {
			if (!s->dtls->udp->full)
				ddps_sn_dtls_send(s, &ne->out[i], &large[i]);
			left[i] = s->dtls->udp->full;
		} else {
			if (s && !s->full)
				done = send_native_batch(s, &ne->out[i], n - i, i ? 0 : failed,
							 &large[i]);
			left[i] = s && s->full;
		}
		all &= !left[i] && !large[i];
	}
	/* only now: the engine moves what the packets refer to */
	for (unsigned i = 0; i < n && !all; i++) {
		if (left[i])
			ddps_sctp_unsent(ne->e, &ne->out[i], ne->now);
		s = large[i] ? ddps_sn_sock_to(ne, &ne->out[i].to) : NULL;
		if (!s)
			continue;
		ddps_sn_sockaddr(&ne->out[i].to.peer, 0, s->family, &to);
		take_send_refusal(s, &ne->out[i], &to);
	}
}

/* The straight way of one packet.  1: it has left; 0: it was not tried; less: why it has not left. */
static int send_one_native(struct ddps_sn_env *ne, struct ddps_sctp_out *o)
{
	struct ddps_sn_sock *s = ddps_sn_sock_to(ne, &o->to);
	struct ddps_sn_dest *d;
	struct msghdr m;

	if (!s || s->dtls || s->full || o->fragment || o->nsegs > 1 ||
	    !ddps_loop_owns_at(ne->env->loop, ne->now)) /* read just before */
		return 0;
	d = find_native_dest(s, &o->to);
	m = (struct msghdr){ .msg_name = &d->to,
			     .msg_namelen = d->len,
			     .msg_iov = o->iov,
			     .msg_iovlen = o->niov,
			     .msg_control = d->ctrl_len ? &d->ctrl : NULL,
			     .msg_controllen = d->ctrl_len };
	return sendmsg(s->io.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 1;
}

/* ---- when ---- */

static unsigned collect_native_outs(struct ddps_sn_env *ne, uint64_t now)
{
	unsigned n = 0;

	do {
		ne->out[n].max_len = ne->ndtls ? DDPS_SN_INSIDE : DDPS_SN_OCTETS;
		if (!ddps_sctp_output(ne->e, &ne->out[n], now))
			break;
		n++;
	} while (n < DDPS_SN_OUTS && ddps_sctp_pending(ne->e));
	return n;
}

static void arm_native_timer(struct ddps_sn_env *ne)
{
	const uint64_t due = ddps_sctp_deadline(ne->e);

	ne->due = due;
	if (due == UINT64_MAX || ne->nfull) /* then the sockets will tell */
		ddps_timer_stop(ne->env->loop, &ne->timer);
	/* Traffic moves the deadline on and on: a timer that is early costs one look, setting it
	 * anew for each packet a system call each. */
	else if (!ddps_timer_runs(&ne->timer) || ne->timer.due > due)
		ddps_timer_start(ne->env->loop, &ne->timer, due);
}

static void judge_wait(struct ddps_sn_env *ne)
{
	if (ne->held_at && ddps_now() - ne->held_at > HELD_LONG)
		ne->wary = WARY;
	ne->held_at = 0;
	ne->fresh = 0;
}

/* What is to leave, as far as the kernel takes it. */
static __attribute__((noinline)) void flush_pending(struct ddps_sn_env *ne)
{
	bool in_turn = ddps_loop_running(ne->env->loop), waits;
	unsigned n = DDPS_SN_OUTS;
	int sent;

	for (int i = 0; n == DDPS_SN_OUTS && ddps_sctp_pending(ne->e) && !ne->nfull; i++) {
		if (in_turn && i == ROUNDS) {
			ddps_task_post(ne->env->loop, &ne->flush);
			break;
		}
		n = collect_native_outs(ne, ddps_sn_now(ne));
		sent = n == 1 ? send_one_native(ne, &ne->out[0]) : 0;
		if (sent <= 0)
			send_native_packets(ne, n, -sent);
	}
	waits = ne->nfull || n == DDPS_SN_OUTS;
	if (!waits || !ddps_sctp_pending(ne->e)) /* else last words may wait */
		ddps_sn_close_unused(ne);
}

void ddps_sn_flush(struct ddps_sn_env *ne)
{
	judge_wait(ne);
	if (ddps_sctp_pending(ne->e)) /* mostly not: each turn asks more than once */
		flush_pending(ne);
	else
		ddps_sn_close_unused(ne);
	arm_native_timer(ne);
}

void ddps_sn_turn(struct ddps_sn_env *ne)
{
	ddps_sn_flush(ne);
	ddps_sn_serve_due(ne);
}

bool ddps_sn_is_idle(struct ddps_sn_env *ne)
{
	return !ne->unused && !ddps_sctp_pending(ne->e) &&
	       ddps_sctp_deadline(ne->e) > ddps_sn_now(ne);
}

void ddps_sn_serve_due(struct ddps_sn_env *ne)
{
	for (int i = 0; i < REFILLS && ne->due <= ne->now; i++) {
		ddps_sctp_tick(ne->e, ddps_sn_now(ne));
		ddps_sn_flush(ne);
	}
}

void ddps_sn_poke(struct ddps_sn_env *ne)
{
	if (ddps_loop_running(ne->env->loop))
		ddps_task_post(ne->env->loop, &ne->flush);
	else /* a post: nothing else will come */
		ddps_sn_flush(ne);
}

/*
 * What was posted while other packets are under way may wait for more, until they fill a send or
 * whoever polls has nothing else to take: then one packet leaves where there were several, or one call sends
 * those of several associations.  A message behind which nothing is under way leaves
 * immediately, if no other has since a socket was read, and for a while all do of a program that did not poll in
 * time.
 */
static bool may_wait(struct ddps_sn_env *ne, const struct ddps_sctp_assoc *a)
{
	if (ne->fresh >= DDPS_SN_OCTETS || !ddps_loop_polled(ne->env->loop) ||
	    !(ne->left || ddps_sctp_under_way(a)))
		return false;
	if (ne->wary) {
		ne->wary--;
		return false;
	}
	if (!ne->held_at)
		ne->held_at = ddps_now();
	return true;
}

void ddps_sn_posted(struct ddps_sn_env *ne, const struct ddps_sctp_assoc *a)
{
	if (ddps_loop_running(ne->env->loop) || may_wait(ne, a)) {
		ddps_task_post(ne->env->loop, &ne->flush);
	} else {
		ne->left = true;
		ddps_sn_flush(ne);
	}
}

void ddps_sn_tick(void *user)
{
	struct ddps_sn_env *ne = user;

	if (ddps_sn_is_idle(ne)) { /* what it was set for has moved away */
		arm_native_timer(ne);
		return;
	}
	if (ddps_sctp_deadline(ne->e) <= ne->now)
		ddps_sctp_tick(ne->e, ne->now);
	ddps_sn_turn(ne);
}
