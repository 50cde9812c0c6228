/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams. */
#include "sim/kern_in.h"
#include <errno.h>

struct chunk {
	struct chunk *next;
	uint64_t at;
	size_t len, off;
	uint8_t octets[];
};

/* One end. */
struct kern_tcp {
	struct kern_tcp *peer, *next; /* next: in a listener's queue */
	struct kern_file *listener;
	struct chunk *first, **last;
	size_t unread;		     /* and on their way here */
	uint64_t up_at, last_at;     /* up_at: when connect is through */
	uint64_t fin_at, rst_at;     /* when these arrive; KERN_NONE: they do not */
	bool fin_sent, linger, dead; /* dead: informed of it */
	int err;
	unsigned peer_host, who;
	uint16_t peer_port;
	void *lies; /* of kern_lie_stream() */
};

bool (*kern_lie_stream)(void **state, const uint8_t *p, size_t len, kern_put *put, void *to);

static struct kern_tcp *tcp_new(unsigned peer_host, uint16_t peer_port)
{
	struct kern_tcp *t = kern_alloc(sizeof *t);

	*t = (struct kern_tcp){ .up_at = KERN_NONE, .fin_at = KERN_NONE, .rst_at = KERN_NONE };
	t->last = &t->first;
	t->peer_host = peer_host;
	t->peer_port = peer_port;
	return t;
}

static uint64_t in_order(struct kern_tcp *t)
{
	uint64_t at = kern_arrival();

	if (kern.dark_until > kern.now) /* sent again when the light is on */
		at += kern.dark_until - kern.now;
	if (at < t->last_at)
		at = t->last_at;
	t->last_at = at;
	kern_wake(at);
	return at;
}

static void tell_fin(struct kern_tcp *t)
{
	if (t->fin_sent)
		return;
	t->fin_sent = true;
	if (t->peer)
		t->peer->fin_at = in_order(t->peer);
	else if (t->rst_at == KERN_NONE) /* nobody is there: that comes back */
		t->rst_at = in_order(t);
}

static void tell_rst(struct kern_tcp *t)
{
	if (!t->peer || t->peer->rst_at != KERN_NONE)
		return;
	t->peer->rst_at = in_order(t->peer);
	kern.torn++;
}

static void drop_kern_tcp(struct kern_tcp *t)
{
	struct chunk *c;

	if (!t)
		return;
	if (kern.mute >> kern.host & 1)
		;
	else if (t->linger || t->unread)
		tell_rst(t);
	else
		tell_fin(t);
	if (t->peer)
		t->peer->peer = NULL;
	while ((c = t->first)) {
		t->first = c->next;
		free(c);
	}
	free(t->lies);
	free(t);
}

void kern_tcp_close(struct kern_file *f)
{
	while (f->queue) {
		struct kern_tcp *t = f->queue;

		f->queue = t->next;
		t->linger = true;
		drop_kern_tcp(t);
	}
	drop_kern_tcp(f->tcp);
	f->tcp = NULL;
}

static void settle_kern_tcp(struct kern_tcp *t)
{
	if (t->rst_at <= kern.now && !t->dead) {
		t->dead = true;
		if (!t->err)
			t->err = t->fin_at <= t->rst_at ? EPIPE : ECONNRESET;
	}
}

static bool connected(const struct kern_tcp *t)
{
	return t->up_at <= kern.now;
}

static size_t space(const struct kern_tcp *t)
{
	size_t used = t->peer ? t->peer->unread : 0;

	return used < kern.window ? kern.window - used : 0;
}

uint32_t kern_tcp_ready(struct kern_file *f)
{
	struct kern_tcp *t = f->tcp;
	uint32_t ev = 0;

	if (f->listening) {
		for (t = f->queue; t; t = t->next)
			ev |= t->up_at <= kern.now ? EPOLLIN : 0;
		return ev;
	}
	if (!t)
		return EPOLLOUT | EPOLLHUP;
	settle_kern_tcp(t);
	if (t->dead)
		return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP;
	if (!connected(t))
		return 0;
	if (t->first && t->first->at <= kern.now)
		ev |= EPOLLIN;
	if (t->fin_at <= kern.now)
		ev |= EPOLLIN | EPOLLRDHUP;
	if (t->fin_at <= kern.now && t->fin_sent)
		ev |= EPOLLHUP;
	if (space(t) >= kern.window / 3 || t->fin_sent)
		ev |= EPOLLOUT;
	return ev;
}

/* What comes of a connect is known now, and seen by and by. */
int kern_tcp_connect(struct kern_file *f, unsigned host, uint16_t port)
{
	struct kern_file *l = kern_bound(KERN_TCP, host, port);
	struct kern_tcp *t = tcp_new(host, port), *c, **end;
	unsigned n = 0;

	f->tcp = t;
	if (!f->port)
		f->port = kern_free_port();
	if (kern.dark_until > kern.now || kern_chance(kern.f.refused, &kern.n.refused)) {
		if (kern_draw() % 2)
			return kern_err(EINPROGRESS); /* nobody answers */
		l = NULL;
	}
	for (end = l ? &l->queue : NULL; end && *end; end = &(*end)->next)
		n++;
	if (!l || !l->listening || n >= l->backlog) {
		t->err = kern_draw() % 4 ? ECONNREFUSED : EHOSTUNREACH;
		t->rst_at = in_order(t);
		return kern_err(EINPROGRESS);
	}
	c = tcp_new(f->host, f->port);
	c->peer = t;
	t->peer = c;
	c->who = f->who < KERN_HOSTS ? host : f->who ^ 1;
	c->up_at = in_order(c);
	t->last_at = c->up_at;
	t->up_at = c->up_at + kern.delay;
	kern_wake(t->up_at);
	*end = c;
	return kern_err(EINPROGRESS);
}

void kern_tcp_disconnect(struct kern_file *f)
{
	if (!f->tcp)
		return;
	f->tcp->linger = true;
	drop_kern_tcp(f->tcp);
	f->tcp = NULL;
}

void kern_tcp_lost(struct kern_file *f, int err)
{
	if (!f->tcp || f->listening)
		return;
	tell_rst(f->tcp);
	f->tcp->dead = true;
	f->tcp->err = err;
}

int kern_tcp_error(struct kern_file *f)
{
	int err;

	if (!f->tcp)
		return 0;
	settle_kern_tcp(f->tcp);
	err = f->tcp->dead ? f->tcp->err : 0;
	f->tcp->err = 0;
	return err;
}

size_t kern_tcp_unread(struct kern_file *f)
{
	size_t n = 0;

	for (const struct chunk *c = f->tcp ? f->tcp->first : NULL; c && c->at <= kern.now;
	     c = c->next)
		n += c->len - c->off;
	return n;
}

/* What is on its way to the peer; a FIN counts as one octet. */
size_t kern_tcp_unacked(struct kern_file *f)
{
	const struct kern_tcp *to = f->tcp ? f->tcp->peer : NULL;
	size_t n = 0;

	if (!to)
		return 0;
	for (const struct chunk *c = to->first; c; c = c->next)
		n += c->at > kern.now ? c->len - c->off : 0;
	return n + (to->fin_at != KERN_NONE && to->fin_at > kern.now);
}

int kern_tcp_shutdown(struct kern_file *f, int how)
{
	if (!f->tcp || f->tcp->dead)
		return f->listening ? 0 : kern_err(ENOTCONN);
	if (how != SHUT_RD)
		tell_fin(f->tcp);
	return 0;
}

struct kern_tcp *kern_tcp_take(struct kern_file *l, struct sockaddr_in *peer)
{
	for (struct kern_tcp **t = &l->queue; *t; t = &(*t)->next) {
		struct kern_tcp *c = *t;

		if (c->up_at > kern.now)
			continue;
		*t = c->next;
		c->next = NULL;
		*peer = kern_addr(c->peer_host, c->peer_port);
		return c;
	}
	return NULL;
}

unsigned kern_tcp_who(const struct kern_tcp *t)
{
	return t->who;
}

/* At most @len octets of the next chunk. */
static size_t take_some(struct kern_tcp *t, uint8_t *to, size_t len)
{
	struct chunk *c = t->first;

	if (!c || c->at > kern.now)
		return 0;
	if (len > c->len - c->off)
		len = c->len - c->off;
	memcpy(to, c->octets + c->off, len);
	c->off += len;
	t->unread -= len;
	if (c->off == c->len) {
		t->first = c->next;
		if (!t->first)
			t->last = &t->first;
		free(c);
	}
	return len;
}

/* The sender, which waits for so much room or more, learns of what was just read. */
static void tell_room(const struct kern_tcp *t, size_t read)
{
	size_t least = kern.window / 3;

	if (t->peer && space(t->peer) >= least && space(t->peer) < least + read)
		kern_wake(kern.now + kern.delay);
}

static size_t total(const struct iovec *iov, int n)
{
	size_t len = 0;

	while (n--)
		len += iov++->iov_len;
	return len;
}

ssize_t kern_tcp_recv(struct kern_file *f, const struct iovec *iov, int n)
{
	struct kern_tcp *t = f->tcp;
	size_t most = total(iov, n), done = 0;

	if (!t)
		return kern_err(ENOTCONN);
	settle_kern_tcp(t);
	if (kern_brief())
		most = most ? 1 : 0;
	else if (most && t->first && t->first->at <= kern.now &&
		 kern_chance(kern.f.short_io, &kern.n.short_io))
		most = 1 + sim_like(most);
	for (int i = 0; i < n && done < most; i++) {
		for (size_t at = 0, k; at < iov[i].iov_len && done < most; at += k, done += k) {
			size_t len = iov[i].iov_len - at;

			k = take_some(t, (uint8_t *)iov[i].iov_base + at,
				      len < most - done ? len : most - done);
			if (!k)
				goto out;
		}
	}
out:
	if (done) {
		tell_room(t, done);
		return (ssize_t)done;
	}
	if (t->dead) {
		int err = t->err;

		t->err = 0;
		return err ? kern_err(err) : 0;
	}
	return t->fin_at <= kern.now ? 0 : kern_err(EAGAIN);
}

static void put_kern_tcp(struct kern_tcp *to, const struct iovec *iov, size_t len)
{
	struct chunk *c = kern_alloc(sizeof *c + len);
	size_t at = 0;

	for (; at < len; iov++) {
		size_t k = iov->iov_len < len - at ? iov->iov_len : len - at;

		memcpy(c->octets + at, iov->iov_base, k);
		at += k;
	}
	if (kern_chance(kern.f.corrupt, &kern.n.corrupt))
		c->octets[sim_like(len)] ^= (uint8_t)(1u << sim_like(8));
	*c = (struct chunk){ .at = in_order(to), .len = len };
	*to->last = c;
	to->last = &c->next;
	to->unread += len;
}

static void put_octets(void *to, const uint8_t *p, size_t len)
{
	const struct iovec iov = { (void *)(uintptr_t)p, len };

	if (len)
		put_kern_tcp(to, &iov, len);
}

static void put_lies(struct kern_tcp *t, const struct iovec *iov, size_t len)
{
	for (; len; iov++) {
		size_t k = iov->iov_len < len ? iov->iov_len : len;

		len -= k;
		if (kern_lie_stream(&t->lies, iov->iov_base, k, put_octets, t->peer))
			continue;
		tell_fin(t);
		return;
	}
}

ssize_t kern_tcp_send(struct kern_file *f, const struct iovec *iov, int n)
{
	struct kern_tcp *t = f->tcp;
	size_t len = total(iov, n), room;

	if (!t)
		return kern_err(EPIPE);
	settle_kern_tcp(t);
	if (t->dead || t->fin_sent) {
		int err = t->err;

		t->err = 0;
		return kern_err(err ? err : EPIPE);
	}
	if (!connected(t) || kern_chance(kern.f.again, &kern.n.again)) {
		kern_wake(kern.now + kern.delay);
		return kern_err(EAGAIN);
	}
	/* It lasts for a moment, and the socket is not full: it can be written to as before. */
	if (kern_chance(kern.f.nobufs, &kern.n.nobufs))
		return kern_err(kern_draw() % 2 ? ENOBUFS : ENOMEM);
	room = space(t);
	if (!room)
		return kern_err(EAGAIN);
	if (len > room)
		len = room;
	if (kern_brief())
		len = len ? 1 : 0;
	else if (len && kern_chance(kern.f.short_io, &kern.n.short_io))
		len = 1 + sim_like(len);
	if (!len)
		return 0;
	if (t->peer && kern.liars >> f->host & 1)
		put_lies(t, iov, len);
	else if (t->peer)
		put_kern_tcp(t->peer, iov, len);
	else if (t->rst_at == KERN_NONE) /* nobody is there: that comes back */
		t->rst_at = in_order(t);
	if (t->peer && kern_chance(kern.f.reset, &kern.n.reset)) {
		tell_rst(t);
		t->rst_at = in_order(t);
	}
	return (ssize_t)len;
}

void kern_tcp_linger(struct kern_file *f, bool on)
{
	if (f->tcp)
		f->tcp->linger = on;
}

bool kern_tcp_lingers(const struct kern_file *f)
{
	return f->tcp && f->tcp->linger;
}
