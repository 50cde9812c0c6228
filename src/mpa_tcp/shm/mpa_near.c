/* SPDX-License-Identifier: BSD-2-Clause */
/* From TCP to shared memory on one host. */
#include "mpa_tcp/shm/mpa_near.h"
#include "common/own.h"
#include "common/system/user.h"
#include "mpa_tcp/shm/mpa_shm_conn.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLERS_MOST 8 /* of other users, that are turned away before the responder is missed */

struct ddps_mpa_near {
	struct ddps_mpa_conn *c;
	struct ddps_mpa_shm *t;		   /* from the responder's call on */
	struct ddps_shm_memory *memory;	   /* passed */
	const struct ddps_shm_memory *far; /* the peer's */
	struct ddps_io io;		   /* initiator: of the name, then of the responder */
};

static struct ddps_mpa_near *make_near(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_near *n = calloc(1, sizeof *n);

	if (!n)
		return NULL;
	n->c = c;
	n->io.fd = ddps_own(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (n->io.fd < 0) {
		free(n);
		return NULL;
	}
	ddps_shm_guard(n->io.fd);
	c->near = n;
	return n;
}

void ddps_mpa_near_drop(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_near *n = c->near;

	if (!n)
		return;
	c->near = NULL;
	ddps_io_del(c->env->loop, &n->io);
	ddps_mpa_shm_let_go(c->env, n->io.fd);
	ddps_shm_unmap(n->memory);
	ddps_shm_unmap(n->far);
	free(n->t);
	free(n);
}

/* Where the initiator is found: the connection, as it has no other in this namespace.  0: it is too long. */
static socklen_t get_near_name(const struct ddps_mpa_conn *c, struct sockaddr_un *un)
{
	const union ddps_mpa_addr *from = c->initiator ? &c->local : &c->peer;
	const union ddps_mpa_addr *to = c->initiator ? &c->peer : &c->local;
	char a[72], b[72];
	size_t n;

	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	ddps_mpa_addr_text(from, a, sizeof a);
	ddps_mpa_addr_text(to, b, sizeof b);
	n = (size_t)snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "ddpsess/%s-%s", a, b);
	if (n >= sizeof un->sun_path - 1)
		return 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* Only sockets have two addresses; what is inside TLS stays there.  Not where anybody may bring more of what blocks
 * whoever closes it. */
static bool wants_near(const struct ddps_mpa_conn *c)
{
	return c->p.shm && c->tcp == &ddps_mpa_sockets && !ddps_own_is_crowded();
}

/* Whether @fd's other end is of this process's user. */
static bool take_near_peer(struct ddps_mpa_shm *t, int fd)
{
	socklen_t len = sizeof t->peer;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &t->peer, &len) &&
	       ddps_user_is_own(t->peer.uid);
}

static void tell_near(const struct ddps_mpa_conn *c, const char *what)
{
	char peer[72];

	ddps_mpa_addr_text(&c->peer, peer, sizeof peer);
	ddps_log(&c->env->log, DDPS_LOG_INFO, "mpa", "%s: %s", peer, what);
}

static void stay_with_tcp(struct ddps_mpa_conn *c, const char *why)
{
	tell_near(c, why);
	ddps_mpa_near_drop(c);
}

/* ---- the move ---- */

/* The session has @n's memory in place of TCP. */
static void move_to_memory(struct ddps_mpa_near *n)
{
	struct ddps_mpa_conn *c = n->c;
	struct ddps_mpa_shm *t = n->t;

	ddps_io_del(c->env->loop, &n->io);
	c->tcp->close(c);
	c->tcp = &ddps_mpa_shm_tcp;
	c->shm = t;
	c->io = (struct ddps_io){ .fd = n->io.fd };
	ddps_mpa_shm_attach(t, n->memory);
	ddps_mpa_shm_meet(t, n->far);
	c->near = NULL;
	free(n);
	tell_near(c, "the peer is on this host: through shared memory from now on");
	if (ddps_mpa_shm_link(t) < 0)
		ddps_mpa_conn_fail(c, DDPS_E_SYSTEM, errno, "epoll: %s", strerror(errno));
	else
		ddps_mpa_setup_moved(c);
}

/* ---- the initiator ---- */

void ddps_mpa_near_offer(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_near *n = wants_near(c) ? make_near(c) : NULL;
	struct sockaddr_un un;
	socklen_t len;

	if (!n)
		return;
	c->tcp->local(c);
	len = get_near_name(c, &un);
	if (!len || bind(n->io.fd, (struct sockaddr *)&un, len) < 0 ||
	    listen(n->io.fd, CALLERS_MOST) < 0)
		stay_with_tcp(c, "shared memory: no name to be found at: over TCP");
}

/* The responder's socket, or -1: nobody of this user has come. */
static int accept_near(struct ddps_mpa_near *n)
{
	for (int i = 0; i <= CALLERS_MOST; i++) {
		int fd = ddps_own(accept4(n->io.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));

		if (fd < 0 || take_near_peer(n->t, fd))
			return fd;
		ddps_mpa_shm_let_go(n->c->env, fd);
	}
	return -1;
}

/* The responder takes the memory and has moved, or has gone. */
static void take_near_answer(void *user, uint32_t events)
{
	struct ddps_mpa_near *n = user;
	struct ddps_mpa_conn *c = n->c;
	const char *why;

	(void)events;
	n->far = ddps_shm_take(n->io.fd, &why);
	if (!n->far && !why[0] && errno == EAGAIN)
		return;
	if (n->far)
		move_to_memory(n);
	else if (why[0])
		ddps_mpa_conn_fail(c, DDPS_E_PROTOCOL, 0, "shared memory: %s; it is refused", why);
	else
		stay_with_tcp(c, "the peer does not take shared memory: over TCP");
	if (c->open)
		ddps_mpa_conn_ready(c, 0);
}

/* 0, or -1: no memory, or it cannot be passed. */
static int pass_near_memory(struct ddps_mpa_near *n)
{
	int fd, err = -1;

	n->memory = ddps_shm_make(&fd);
	if (!n->memory)
		return -1;
	err = ddps_shm_pass(n->io.fd, ddps_own(fd));
	ddps_own_close(fd);
	return err;
}

bool ddps_mpa_near_pass(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_near *n = c->near;
	int fd;

	if (!n)
		return false;
	n->t = ddps_mpa_shm_part(c);
	fd = n->t ? accept_near(n) : -1;
	if (fd >= 0) {
		ddps_shm_guard(fd);
		ddps_mpa_shm_let_go(c->env, n->io.fd);
		n->io = (struct ddps_io){ .fd = fd, .fn = take_near_answer, .user = n };
		if (!pass_near_memory(n) && !ddps_io_set(c->env->loop, &n->io, EPOLLIN))
			return true;
		stay_with_tcp(c, "shared memory cannot be passed: over TCP");
	}
	if (c->near)
		stay_with_tcp(c,
			      "the peer does not ask for shared memory; it has to be on this host, "
			      "of this user, and to want it: over TCP");
	return false;
}

bool ddps_mpa_near_waits(const struct ddps_mpa_conn *c)
{
	return c->near && c->near->memory;
}

/* ---- the responder ---- */

/* The initiator has used TCP already, or this side has: there it stays. */
static bool is_move_late(const struct ddps_mpa_conn *c)
{
	return c->state != DDPS_MPA_FENCED || c->startup || c->want_close ||
	       c->rd != DDPS_MPA_RD_OPEN || c->wr != DDPS_MPA_WR_OPEN || ddps_mpa_rx_kept(&c->rx);
}

static void take_near_memory(void *user, uint32_t events)
{
	struct ddps_mpa_near *n = user;
	struct ddps_mpa_conn *c = n->c;
	const char *why;

	(void)events;
	n->far = ddps_shm_take(n->io.fd, &why);
	if (!n->far && !why[0] && errno == EAGAIN)
		return;
	if (n->far && !is_move_late(c) && !pass_near_memory(n)) {
		move_to_memory(n);
		ddps_mpa_conn_watch(c);
		return;
	}
	stay_with_tcp(c, n->far ? "shared memory: it came too late, or there is none here: over TCP"
			 : why[0] ? why
				  : "the peer passes no memory: over TCP");
}

void ddps_mpa_near_call(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_near *n = wants_near(c) ? make_near(c) : NULL;
	struct sockaddr_un un;
	socklen_t len;

	if (!n)
		return;
	n->io.fn = take_near_memory;
	n->io.user = n;
	n->t = ddps_mpa_shm_part(c);
	len = get_near_name(c, &un);
	if (!n->t || !len || connect(n->io.fd, (struct sockaddr *)&un, len) < 0)
		stay_with_tcp(c,
			      "the peer does not offer shared memory; it has to be on this host, "
			      "and to want it: over TCP");
	else if (!take_near_peer(n->t, n->io.fd))
		stay_with_tcp(c, "shared memory: the peer is of another user: over TCP");
	else if (ddps_io_set(c->env->loop, &n->io, EPOLLIN) < 0)
		stay_with_tcp(c, "shared memory: epoll fails: over TCP");
}
