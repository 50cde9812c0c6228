/* SPDX-License-Identifier: BSD-2-Clause */
/* A relay's beginning, its thread, and its end. */
#include "conform/relay/relay_in.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t relay_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* splitmix64: the same seed makes the same choices in the same order. */
uint32_t relay_chance(struct cf_relay *r, uint32_t n)
{
	uint64_t z = r->chance += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) % n);
}

struct piece *relay_push(struct lane *l, const void *p, size_t len, uint64_t due)
{
	struct piece *n = malloc(sizeof *n + len), **at = &l->first;

	if (!n)
		return NULL;
	*n = (struct piece){ .due = due, .len = len };
	if (len)
		memcpy(n->b, p, len);
	while (*at && (*at)->due <= due)
		at = &(*at)->next;
	n->next = *at;
	*at = n;
	l->held += len;
	return n;
}

struct piece *relay_pop(struct lane *l)
{
	struct piece *p = l->first;

	if (p) {
		l->first = p->next;
		l->held -= p->len;
	}
	return p;
}

uint64_t relay_due(struct cf_relay *r, uint64_t now)
{
	uint32_t us = r->plan.jitter_ms ? relay_chance(r, r->plan.jitter_ms * 1000 + 1) : 0;

	return now + us * 1000ull;
}

static void *run_relay(void *arg)
{
	struct cf_relay *r = arg;
	struct pollfd p[1 + RELAY_FDS];
	uint64_t next, now;
	size_t n;
	int ms;

	for (;;) {
		next = UINT64_MAX;
		p[0] = (struct pollfd){ .fd = r->stop[0], .events = POLLIN };
		n = 1 + (r->udp ? relay_udp_fds(r, p + 1, &next) : relay_tcp_fds(r, p + 1, &next));
		now = relay_now();
		ms = next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / 1000000 + 1);
		if (poll(p, (nfds_t)n, ms) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			break;
		if (r->udp)
			relay_udp_turn(r);
		else
			relay_tcp_turn(r);
	}
	return NULL;
}

static int open_front(struct cf_relay *r)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int type = r->udp ? SOCK_DGRAM : SOCK_STREAM;

	r->front = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->front < 0 || bind(r->front, (struct sockaddr *)&a, sizeof a) ||
	    (!r->udp && listen(r->front, RELAY_LINKS)) ||
	    getsockname(r->front, (struct sockaddr *)&a, &len))
		return -1;
	r->port = ntohs(a.sin_port);
	if (!r->udp)
		return 0;
	r->back = socket(r->to.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return r->back < 0 ? -1 : connect(r->back, (struct sockaddr *)&r->to, r->to_len);
}

static void shut_relay(struct cf_relay *r)
{
	relay_tcp_end(r);
	relay_udp_end(r);
	for (int i = 0; i < 2; i++)
		if (r->stop[i] >= 0)
			close(r->stop[i]);
	if (r->front >= 0)
		close(r->front);
	if (r->back >= 0)
		close(r->back);
	free(r);
}

struct cf_relay *cf_relay_new(const struct cf_relay_plan *plan, bool udp,
			      const struct sockaddr_storage *to, socklen_t to_len,
			      struct cf_trace *trace, unsigned number, char *why, size_t why_len)
{
	struct cf_relay *r = calloc(1, sizeof *r);
	int err = ENOMEM;

	if (r) {
		r->plan = *plan;
		r->udp = udp;
		r->to = *to;
		r->to_len = to_len;
		r->trace = trace;
		r->links_made = number;
		r->chance = plan->seed;
		r->begin = relay_now();
		r->stop[0] = r->stop[1] = r->front = r->back = -1;
		errno = 0;
		if (!pipe2(r->stop, O_CLOEXEC) && !open_front(r) &&
		    !(errno = pthread_create(&r->thread, NULL, run_relay, r)))
			return r;
		err = errno;
		shut_relay(r);
	}
	snprintf(why, why_len, "a relay to the target: %s", strerror(err));
	return NULL;
}

uint16_t cf_relay_port(const struct cf_relay *r)
{
	return r->port;
}

struct cf_relay_sum cf_relay_done(struct cf_relay *r)
{
	return (struct cf_relay_sum){ r->connections, r->refused, r->passed, r->lost,
				      r->doubled,     r->flipped, r->strokes };
}

const char *cf_relay_refused(struct cf_relay *r)
{
	return strerror(r->refusal);
}

void cf_relay_free(struct cf_relay *r)
{
	if (!r)
		return;
	close(r->stop[1]);
	r->stop[1] = -1;
	pthread_join(r->thread, NULL);
	shut_relay(r);
}
