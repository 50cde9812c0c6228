/* SPDX-License-Identifier: BSD-2-Clause */
/* What a connection that is gone still has to say: sealed octets, close_notify, an alert. */
#include "common/own.h"
#include "mpa_tcp/mpa_tls.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#define LATE_MOST   64u /* connections, of one context */
#define LATE_UNREAD 65536u

struct ddps_mpa_late {
	TAILQ_ENTRY(ddps_mpa_late) link;
	struct ddps_env *env;
	struct ddps_io io;
	struct ddps_timer timer;
	uint8_t *octets;
	size_t at, len;
	size_t unread; /* of the peer's, thrown away */
	bool fin;      /* ours was sent */
	bool peer_fin, stranger;
};

TAILQ_HEAD(ddps_mpa_lates, ddps_mpa_late);

struct ddps_mpa_late_list {
	struct ddps_mpa_lates all;
	unsigned n;
};

static void end_late(struct ddps_mpa_late *l)
{
	struct ddps_mpa_late_list *list = l->env->late;

	TAILQ_REMOVE(&list->all, l, link);
	list->n--;
	ddps_timer_stop(l->env->loop, &l->timer);
	ddps_io_del(l->env->loop, &l->io);
	if (ddps_own_forked(
		    l->io.fd)) /* a child may have a copy, with which close() alone would end nothing */
		(void)shutdown(l->io.fd, SHUT_RDWR);
	ddps_own_close(l->io.fd);
	free(l->octets);
	free(l);
}

static void late_is_over(void *user)
{
	end_late(user);
}

/* false: the peer has gone. */
static bool write_late(struct ddps_mpa_late *l)
{
	while (l->at < l->len) {
		ssize_t n = send(l->io.fd, l->octets + l->at, l->len - l->at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM;
		l->at += (size_t)n;
	}
	if (!l->fin)
		shutdown(l->io.fd, SHUT_WR);
	l->fin = true;
	return true;
}

/* One that sends on is read no further. */
static bool is_late_heard(const struct ddps_mpa_late *l)
{
	return l->peer_fin || l->unread >= LATE_UNREAD;
}

/* With octets of the peer's unread, close() would be a reset, which takes along what is on its way to it.
 * false: the peer has gone. */
static bool read_late(struct ddps_mpa_late *l)
{
	uint8_t octets[4096];
	ssize_t n = recv(l->io.fd, octets, sizeof octets, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	l->unread += (size_t)n;
	l->peer_fin = !n;
	return true;
}

static void serve_late(void *user, uint32_t events)
{
	struct ddps_mpa_late *l = user;
	bool here = write_late(l);

	if (here && (events & ~(uint32_t)EPOLLOUT) && !is_late_heard(l))
		here = read_late(l);
	/* The peer's end is none of ours: what waits for it goes on. */
	if (!here || (l->fin && is_late_heard(l)) ||
	    ddps_io_set(l->env->loop, &l->io,
			(is_late_heard(l) ? 0u : EPOLLIN) | (l->fin ? 0u : EPOLLOUT)) < 0)
		end_late(l);
}

/* Of those that have said all, or that nobody knew, the oldest leaves. */
static void make_late_place(struct ddps_mpa_late_list *list)
{
	struct ddps_mpa_late *l;

	if (list->n < LATE_MOST)
		return;
	TAILQ_FOREACH(l, &list->all, link)
		if (l->fin || l->stranger) {
			end_late(l);
			return;
		}
}

static struct ddps_mpa_late_list *lates_of(struct ddps_env *env)
{
	struct ddps_mpa_late_list *list = env->late;

	if (list)
		return list;
	list = calloc(1, sizeof *list);
	if (list)
		TAILQ_INIT(&list->all);
	env->late = list;
	return list;
}

bool ddps_mpa_late_take(struct ddps_mpa_conn *c, uint8_t *octets, size_t at, size_t len,
			uint32_t ms)
{
	struct ddps_mpa_late_list *list = lates_of(c->env);
	struct ddps_mpa_late *l;

	if (list)
		make_late_place(list);
	l = list && list->n < LATE_MOST ? calloc(1, sizeof *l) : NULL;
	if (!l)
		return false;
	*l = (struct ddps_mpa_late){ .env = c->env, .octets = octets, .at = at, .len = len };
	l->stranger = c->startup != NULL;
	l->io = (struct ddps_io){ .fd = c->io.fd, .fn = serve_late, .user = l };
	l->timer = (struct ddps_timer){ .fn = late_is_over, .user = l };
	ddps_io_del(c->env->loop, &c->io);
	c->io.fd = -1;
	TAILQ_INSERT_TAIL(&list->all, l, link);
	list->n++;
	ddps_timer_after(c->env->loop, &l->timer, ms);
	serve_late(l, EPOLLIN);
	return true;
}

enum ddps_left ddps_mpa_late_wind_up(struct ddps_env *env, bool all)
{
	const struct ddps_mpa_late_list *list = env->late;
	const struct ddps_mpa_late *l;

	(void)all;
	if (list)
		TAILQ_FOREACH(l, &list->all, link)
			if (!l->fin)
				return DDPS_LEFT_WORK;
	return DDPS_LEFT_NOTHING;
}

void ddps_mpa_late_fini(struct ddps_env *env)
{
	struct ddps_mpa_late_list *list = env->late;

	while (list && !TAILQ_EMPTY(&list->all))
		end_late(TAILQ_FIRST(&list->all));
	free(list);
	env->late = NULL;
}
