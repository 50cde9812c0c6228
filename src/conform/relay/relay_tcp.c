/* SPDX-License-Identifier: BSD-2-Clause */
/* Octets of TCP connections, cut anew, late, or cut off. */
#include "conform/relay/relay_in.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static void set_relay_nodelay(int fd)
{
	int on = 1;

	/* Each piece in a segment of its own; failing that, pieces are larger. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* A RST goes out to whoever is still there. */
static void reset_relay_socket(int fd)
{
	struct linger now = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	close(fd);
}

static void drop_tcp_link(struct tcp_link *l)
{
	struct piece *p;

	LIST_REMOVE(l, of_relay);
	for (int i = 0; i < 2; i++) {
		if (l->dead)
			reset_relay_socket(l->fd[i]);
		else
			close(l->fd[i]);
		while ((p = relay_pop(&l->lane[i])))
			free(p);
	}
	free(l);
}

static void accept_tcp_link(struct cf_relay *r)
{
	const struct timeval patience = { .tv_sec = 5 }; /* of connect() */
	struct tcp_link *l;
	unsigned n = 0;
	int fd;

	LIST_FOREACH(l, &r->links, of_relay)
		n++;
	if (n == RELAY_LINKS || (fd = accept4(r->front, NULL, NULL, SOCK_CLOEXEC)) < 0)
		return;
	l = calloc(1, sizeof *l);
	if (l) {
		l->fd[0] = fd;
		l->fd[1] = socket(r->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
	if (l && l->fd[1] >= 0)
		(void)setsockopt(l->fd[1], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (!l || l->fd[1] < 0 || connect(l->fd[1], (struct sockaddr *)&r->to, r->to_len)) {
		r->refusal = errno;
		r->refused++;
		if (l && l->fd[1] >= 0)
			close(l->fd[1]);
		reset_relay_socket(fd);
		free(l);
		return;
	}
	set_relay_nodelay(l->fd[0]);
	set_relay_nodelay(l->fd[1]);
	l->number = r->links_made++;
	LIST_INSERT_HEAD(&r->links, l, of_relay);
	r->connections++;
}

/* ---- what comes ---- */

static void lay_tcp_pieces(struct cf_relay *r, struct lane *l, const uint8_t *b, size_t len,
			   uint64_t now)
{
	while (len) {
		size_t n = r->plan.piece ? 1 + relay_chance(r, r->plan.piece) : len;
		uint64_t due = relay_due(r, now);

		n = n < len ? n : len;
		l->last_due = due > l->last_due ? due : l->last_due;
		if (!relay_push(l, b, n, l->last_due))
			r->lost++;
		b += n;
		len -= n;
	}
}

/* The stroke, if its octet is among these; how many go in front of it. */
static size_t strike(struct cf_relay *r, struct tcp_link *l, size_t n)
{
	const struct cf_relay_plan *p = &r->plan;

	if (l->struck || p->stroke == CF_NO_STROKE || p->at >= l->seen + n)
		return n;
	l->struck = true;
	r->strokes++;
	if (p->stroke == CF_FLIP) {
		r->buf[p->at - l->seen] ^= (uint8_t)(1u << relay_chance(r, 8));
		r->flipped++;
		return n;
	}
	return (size_t)(p->at - l->seen);
}

static void read_tcp_side(struct cf_relay *r, struct tcp_link *l, int side, uint64_t now)
{
	struct lane *lane = &l->lane[side];
	ssize_t n = recv(l->fd[side], r->buf, 4096, MSG_DONTWAIT);
	bool before = l->struck;
	struct piece *mark;
	size_t front;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		l->ended[side] = true;
		l->dead |= n < 0; /* a reset is handed on as one */
		return;
	}
	if (side == 0 && l->struck && (r->plan.stroke == CF_FIN || r->plan.stroke == CF_RST))
		return; /* behind the end */
	front = side == 0 ? strike(r, l, (size_t)n) : (size_t)n;
	lay_tcp_pieces(r, lane, r->buf, front, now);
	if (l->struck && !before && r->plan.stroke != CF_FLIP) {
		mark = relay_push(lane, NULL, 0, lane->last_due);
		if (mark)
			mark->stroke = r->plan.stroke;
		if (r->plan.stroke == CF_STALL)
			lay_tcp_pieces(r, lane, r->buf + front, (size_t)n - front, now);
	}
	if (side == 0)
		l->seen += (uint64_t)n;
}

/* ---- what goes ---- */

/* Whether there was something to do. */
static bool write_tcp_side(struct cf_relay *r, struct tcp_link *l, int side, uint64_t now)
{
	struct lane *lane = &l->lane[side];
	struct piece *p = lane->first;
	ssize_t n;

	if (!p || p->due > now || l->stall > now)
		return false;
	if (p->stroke == CF_STALL)
		l->stall = now + r->plan.stall_ms * 1000000ull;
	else if (p->stroke == CF_RST)
		l->dead = true;
	else if (p->stroke == CF_FIN)
		l->ended[side] = true;
	if (p->len) {
		n = send(l->fd[!side], p->b + p->gone, p->len - p->gone,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			l->dead |= errno != EAGAIN && errno != EINTR;
			return false;
		}
		cf_trace_tcp(r->trace, side == 1, l->number, p->b + p->gone, (size_t)n);
		p->gone += (size_t)n;
		if (p->gone < p->len)
			return false;
	}
	r->passed++;
	free(relay_pop(lane));
	return true;
}

static void serve_tcp_link(struct cf_relay *r, struct tcp_link *l)
{
	for (int side = 0; side < 2; side++) {
		uint64_t now = relay_now();

		if (!l->ended[side] && l->lane[side].held < RELAY_HELD)
			read_tcp_side(r, l, side, now);
		while (!l->dead && write_tcp_side(r, l, side, now))
			;
		/* In front of a reset no FIN: it would be taken for the end. */
		if (!l->dead && l->ended[side] && !l->lane[side].first && !l->shut[side]) {
			l->shut[side] = true;
			shutdown(l->fd[!side], SHUT_WR);
		}
	}
}

void relay_tcp_turn(struct cf_relay *r)
{
	accept_tcp_link(r);
	for (struct tcp_link *l = LIST_FIRST(&r->links), *next; l; l = next) {
		next = LIST_NEXT(l, of_relay);
		serve_tcp_link(r, l);
		if (l->dead || (l->shut[0] && l->shut[1]))
			drop_tcp_link(l);
	}
}

static void watch_tcp_link(struct tcp_link *l, struct pollfd *p, uint64_t *next)
{
	uint64_t due;

	for (int side = 0; side < 2; side++)
		p[side] = (struct pollfd){ .fd = l->fd[side] };
	for (int side = 0; side < 2; side++) {
		struct lane *lane = &l->lane[side];

		if (!l->ended[side] && lane->held < RELAY_HELD)
			p[side].events |= POLLIN;
		if (!lane->first)
			continue;
		due = lane->first->due > l->stall ? lane->first->due : l->stall;
		if (due <= relay_now())
			p[!side].events |= POLLOUT;
		else if (due < *next)
			*next = due;
	}
	/* Without a wish even POLLHUP would wake us again and again. */
	for (int side = 0; side < 2; side++)
		if (!p[side].events)
			p[side].fd = -1;
}

size_t relay_tcp_fds(struct cf_relay *r, struct pollfd *p, uint64_t *next)
{
	struct tcp_link *l;
	size_t n = 0;

	p[n++] = (struct pollfd){ .fd = r->front, .events = POLLIN };
	LIST_FOREACH(l, &r->links, of_relay) {
		watch_tcp_link(l, p + n, next);
		n += 2;
	}
	if (n == RELAY_FDS)
		p[0].fd = -1; /* no room for one more */
	return n;
}

void relay_tcp_end(struct cf_relay *r)
{
	struct tcp_link *l;

	while ((l = LIST_FIRST(&r->links))) {
		l->dead = true;
		drop_tcp_link(l);
	}
}
