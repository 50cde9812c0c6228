/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCTP of the kernel: one-to-one sockets (RFC 6458 4), messages and notifications as Linux brings them.
 * Packets are not played: a message that is lost is late, and everything arrives that has been taken,
 * unless the association ends.
 */
#include "sim/kern_sctp.h"
#include <errno.h>

#define WINDOW_MIN 16384u
#define HEARTBEAT  (30 * KS_SEC) /* until a peer that has gone silently is noticed */
#define INIT_TRIES (70 * KS_SEC) /* until a peer that does not answer is given up */

/* ---- ends ---- */

struct kern_sctp *kern_sctp_new(void)
{
	struct kern_sctp *t = kern_alloc(sizeof *t);

	*t = (struct kern_sctp){
		.up_at = KERN_NONE, .shut_at = KERN_NONE, .end_at = KERN_NONE, .streams = 10
	};
	return t;
}

size_t ks_window(void)
{
	return kern.window < WINDOW_MIN ? WINDOW_MIN : kern.window;
}

uint64_t ks_arrival(void)
{
	uint64_t at = kern_arrival();

	if (kern.dark_until > kern.now)
		at += kern.dark_until - kern.now;
	if (kern_chance(kern.f.lost, &kern.n.lost))
		at += kern.delay + sim_like(KS_SEC);
	if (kern_chance(kern.f.late, &kern.n.late))
		at += sim_like(8 * kern.delay + 1);
	return at;
}

uint64_t ks_in_order(struct kern_sctp *t)
{
	uint64_t at = ks_arrival();

	if (at < t->last_at)
		at = t->last_at;
	t->last_at = at;
	kern_wake(at);
	return at;
}

void ks_insert(struct kern_sctp *t, struct ks_item *it)
{
	struct ks_item **p = &t->first;

	while (*p && (*p)->at <= it->at)
		p = &(*p)->next;
	it->next = *p;
	*p = it;
	if (it->at > t->last_at)
		t->last_at = it->at;
	kern_wake(it->at);
}

unsigned ks_bit(unsigned type)
{
	return 1u << (type - SCTP_SN_TYPE_BASE);
}

static void note_kern_sctp(struct kern_sctp *t, uint64_t at, unsigned type, const void *p,
			   size_t len)
{
	struct ks_item *it;

	if (!(t->events & ks_bit(type)))
		return;
	it = kern_alloc(sizeof *it + len);
	*it = (struct ks_item){ .at = at, .note = true, .len = len };
	memcpy(it->octets, p, len);
	ks_insert(t, it);
}

void ks_note_change(struct kern_sctp *t, uint64_t at, uint16_t state)
{
	struct sctp_assoc_change c = { .sac_type = SCTP_ASSOC_CHANGE,
				       .sac_length = sizeof c,
				       .sac_state = state,
				       .sac_inbound_streams = t->peer ? t->peer->streams : 0,
				       .sac_outbound_streams = t->streams };

	note_kern_sctp(t, at, SCTP_ASSOC_CHANGE, &c, sizeof c);
}

static void note_path(struct kern_sctp *t, uint64_t at, unsigned host, int state)
{
	struct sctp_paddr_change c = { .spc_type = SCTP_PEER_ADDR_CHANGE,
				       .spc_length = sizeof c,
				       .spc_state = state };
	struct sockaddr_in a = kern_addr(host, t->peer_port);

	memcpy(&c.spc_aaddr, &a, sizeof a);
	note_kern_sctp(t, at, SCTP_PEER_ADDR_CHANGE, &c, sizeof c);
}

static void note_up(struct kern_sctp *t)
{
	struct sctp_adaptation_event a = { .sai_type = SCTP_ADAPTATION_INDICATION,
					   .sai_length = sizeof a,
					   .sai_adaptation_ind = t->peer->indication };

	ks_note_change(t, t->up_at, SCTP_COMM_UP);
	if (t->peer->adaptation)
		note_kern_sctp(t, t->up_at, SCTP_ADAPTATION_INDICATION, &a, sizeof a);
	for (unsigned i = 1; i < t->theirs.n; i++)
		note_path(t, t->up_at + 2 * kern.delay, t->theirs.host[i], SCTP_ADDR_CONFIRMED);
}

void ks_note_dry(struct kern_sctp *t)
{
	struct sctp_sender_dry_event e = { .sender_dry_type = SCTP_SENDER_DRY_EVENT,
					   .sender_dry_length = sizeof e };

	note_kern_sctp(t, kern.now, SCTP_SENDER_DRY_EVENT, &e, sizeof e);
}

void ks_end(struct kern_sctp *t, uint64_t at, uint16_t how, int err)
{
	if (t->dead || t->end_at <= at)
		return;
	t->end_at = at;
	t->end_how = how;
	t->end_err = err;
	kern_wake(at);
}

void ks_abort_peer(struct kern_sctp *t)
{
	if (t->peer)
		ks_end(t->peer, ks_in_order(t->peer), SCTP_COMM_LOST, ECONNRESET);
}

/* The peer's SHUTDOWN is here.  Once ours is acknowledged, it is over. */
static void hear_shutdown(struct kern_sctp *t)
{
	struct sctp_shutdown_event e = { .sse_type = SCTP_SHUTDOWN_EVENT, .sse_length = sizeof e };

	if (t->shut_at > kern.now || t->dead)
		return;
	if (!t->heard)
		note_kern_sctp(t, kern.now, SCTP_SHUTDOWN_EVENT, &e, sizeof e);
	t->heard = true;
	if (t->acked_at > kern.now)
		return;
	if (t->peer)
		ks_end(t->peer, kern.now + kern.delay, SCTP_SHUTDOWN_COMP, 0);
	ks_end(t, kern.now + 2 * kern.delay, SCTP_SHUTDOWN_COMP, 0);
}

void ks_settle(struct kern_sctp *t)
{
	if (t->busy && t->acked_at <= kern.now && !t->dead) {
		t->busy = false;
		ks_note_dry(t);
	}
	hear_shutdown(t);
	if (t->end_at > kern.now || t->dead)
		return;
	t->dead = true;
	t->err = t->end_err;
	ks_note_change(t, kern.now, t->end_how);
}

bool ks_up(const struct kern_sctp *t)
{
	return t->up_at <= kern.now && !t->dead;
}

/* ---- it begins ---- */

static void meet(struct kern_sctp *t, struct kern_sctp *c)
{
	c->peer = t;
	t->peer = c;
	c->up_at = ks_in_order(c);
	t->last_at = c->up_at;
	t->up_at = c->up_at + kern.delay;
	c->acked_at = c->up_at;
	t->acked_at = t->up_at;
	note_up(c);
	note_up(t);
}

/* An end of the listener's, with what its socket was given. */
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
		ks_end(t, kern.now + INIT_TRIES, SCTP_CANT_STR_ASSOC, ETIMEDOUT);
	else
		ks_end(t, ks_in_order(t), SCTP_CANT_STR_ASSOC, ECONNREFUSED);
	return kern_err(EINPROGRESS);
}

int kern_sctp_connect(struct kern_file *f, unsigned host, uint16_t port)
{
	struct kern_file *l = kern_bound(KERN_SCTP, host, port);
	struct kern_sctp *t = f->sctp, **at;
	unsigned n = 0;
	bool silent;

	if (t->asked)
		return kern_err(t->dead || ks_up(t) ? EISCONN : EALREADY);
	t->asked = true;
	t->peer_host = host;
	t->peer_port = port;
	if (!f->port)
		f->port = kern_free_port();
	if (!t->own.n)
		t->own = (struct ks_homes){ { f->host }, 1 };
	for (at = l ? &l->sctp_queue : NULL; at && *at; at = &(*at)->next)
		n++;
	silent = kern.dark_until > kern.now || kern_chance(kern.f.refused, &kern.n.refused);
	if (silent || !l || n >= l->backlog) {
		t->theirs = (struct ks_homes){ { host }, 1 };
		return nobody(t, silent);
	}
	t->theirs = l->sctp->own.n ? l->sctp->own : (struct ks_homes){ { host }, 1 };
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
	at = ks_in_order(t->peer);
	if (at < t->acked_at)
		at = t->acked_at;
	t->peer->shut_at = at;
	kern_wake(at);
	kern_wake(t->peer->acked_at);
}

static bool has_message(const struct kern_sctp *t)
{
	for (const struct ks_item *it = t->first; it; it = it->next)
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
		ks_end(p, kern.now + HEARTBEAT, SCTP_COMM_LOST, ECONNRESET);
	} else if (!t->dead && (t->linger || has_message(t) || t->up_at > kern.now)) {
		kern.torn++;
		ks_abort_peer(t);
	} else if (!t->dead) {
		tell_shutdown(t);
		p->gone = true;
	}
	p->peer = NULL;
}

static void drop_kern_sctp(struct kern_sctp *t)
{
	struct ks_item *it;

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
		drop_kern_sctp(t);
	}
	drop_kern_sctp(f->sctp);
	f->sctp = NULL;
}

void kern_sctp_lost(struct kern_file *f, int err)
{
	struct kern_sctp *t = f->sctp;

	if (!t->asked || t->dead)
		return;
	ks_abort_peer(t);
	ks_end(t, kern.now, SCTP_COMM_LOST, err);
	ks_settle(t);
}

int kern_sctp_shutdown(struct kern_file *f)
{
	if (!ks_up(f->sctp))
		return kern_err(ENOTCONN);
	tell_shutdown(f->sctp);
	return 0;
}

/* ---- what there is to do ---- */

size_t ks_used(const struct kern_sctp *t)
{
	return t->peer ? t->peer->unread : 0;
}

bool ks_arrived(const struct kern_sctp *t)
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
	ks_settle(t);
	if (t->dead)
		return EPOLLIN | EPOLLOUT | EPOLLHUP | EPOLLRDHUP | (t->err ? EPOLLERR : 0u);
	if (ks_arrived(t))
		ev |= EPOLLIN;
	if (t->heard)
		ev |= EPOLLIN | EPOLLRDHUP;
	if (ks_up(t) && ks_used(t) <= ks_window() / 2 && kern.now >= t->full_until)
		ev |= EPOLLOUT;
	return ev;
}

int kern_sctp_error(struct kern_file *f)
{
	int err;

	ks_settle(f->sctp);
	err = f->sctp->err;
	f->sctp->err = 0;
	return err;
}
