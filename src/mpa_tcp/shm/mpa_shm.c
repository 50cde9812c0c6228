/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA's octets through shared memory: the struct ddps_mpa_tcp. */
#include "common/own.h"
#include "mpa_tcp/shm/mpa_shm_conn.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BELLS_MOST 16		 /* that lie unread: far fewer than a socket takes */
#define LOOKS_MOST 8		 /* at more than a socket takes of them */
#define ROOM	   (16u * 1024)	 /* a writer that waits wants so much */
#define EMSS	   (128u * 1024) /* there are no segments: as much as an FPDU can have */

static struct ddps_mpa_shm *shm_of(const struct ddps_mpa_conn *c)
{
	return c->shm;
}

void ddps_mpa_shm_attach(struct ddps_mpa_shm *t, struct ddps_shm_memory *memory)
{
	t->memory = memory;
	ddps_shm_open_reader(&t->in, memory);
	ddps_shm_open_writer(&t->out, memory);
}

static void take_looked_at(void *user, bool looked_at);

void ddps_mpa_shm_meet(struct ddps_mpa_shm *t, const struct ddps_shm_memory *far)
{
	t->far = far;
	ddps_shm_meet(&t->in, far);
	ddps_shm_meet(&t->out, far);
	t->sign = (struct ddps_sign){ &far->words.head, &far->words.end, take_looked_at };
	t->c->io.sign = &t->sign;
	if (ddps_shm_wakes(&t->out)) /* it has not seen yet what is written */
		ddps_mpa_shm_ring(t);
}

/* ---- bells ---- */

/* One that the socket does not take any more is not needed: the peer has others to read.  One for which the system has
 * no memory is: nobody else wakes him. */
void ddps_mpa_shm_ring(struct ddps_mpa_shm *t)
{
	struct ddps_loop *loop = t->c->env->loop;

	if (ddps_loop_owns(loop) && send(t->c->io.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
	    (errno == ENOBUFS || errno == ENOMEM || errno == EINTR))
		ddps_timer_after(loop, &t->again, DDPS_SHM_AGAIN_MS);
}

/* Descriptors that come with a bell are not taken; whoever moves octets next ends the session. */
static void read_bells(struct ddps_mpa_shm *t)
{
	ssize_t n = ddps_loop_owns(t->c->env->loop) ? 1 : -EBADF;

	/* An urgent octet ends what one call reads. */
	for (unsigned i = 0; i < LOOKS_MOST && n > 0; i++)
		n = ddps_shm_bells(t->c->io.fd, 256);
	t->in.said = t->out.said = 0;
	if (n == -EPROTO)
		t->passed = t->in.bad = t->out.bad = true;
	else if (!n || (n < 0 && n != -EAGAIN && n != -EINTR))
		t->gone = true;
}

/* A peer rings once for each time that this side says that it sleeps.  Before, not behind it: a bell that was read
 * wakes nobody. */
static void make_room_for_bells(struct ddps_mpa_shm *t)
{
	if (t->in.said + t->out.said >= BELLS_MOST)
		read_bells(t);
}

/* ---- what there is ---- */

/* The peer writes the memory as it likes; of what it says of its indices nothing is left to believe.  Nor of one that
 * passes descriptors. */
static void end_bad(struct ddps_mpa_shm *t)
{
	t->drop = true;
	ddps_mpa_conn_fail(t->c, DDPS_E_PROTOCOL, 0,
			   t->passed ? "the peer has passed descriptors where none are taken"
				     : "the peer has written an impossible index into the shared "
				       "memory");
}

static bool is_broken(const struct ddps_mpa_shm *t)
{
	const enum ddps_shm_end end = ddps_shm_ended(&t->in);

	return end == DDPS_SHM_RESET || (t->gone && end != DDPS_SHM_FIN);
}

/* DDPS_MPA_* bits. */
static unsigned look_around(struct ddps_mpa_shm *t)
{
	const enum ddps_shm_end end = ddps_shm_ended(&t->in);
	unsigned ready = 0;

	if (ddps_shm_filled(&t->in) || end || t->gone || t->in.bad)
		ready |= DDPS_MPA_IN;
	if (end)
		ready |= DDPS_MPA_PEER_FIN;
	if (is_broken(t))
		ready |= DDPS_MPA_BROKEN;
	if ((t->events & DDPS_MPA_OUT) &&
	    (ddps_shm_room(&t->out) >= ROOM || t->out.bad || t->gone || end == DDPS_SHM_RESET))
		ready |= DDPS_MPA_OUT;
	return ready & (t->events | DDPS_MPA_BROKEN);
}

/* Something is there, which is to be shown. */
static void show_soon(struct ddps_mpa_shm *t)
{
	struct ddps_loop *loop = t->c->env->loop;

	if (t->c->io.sight)
		ddps_io_again(loop, &t->c->io);
	else
		ddps_task_post(loop, &t->task);
}

/* Nothing is there: have the peer say so when that changes.  It may have changed meanwhile.  Whoever polls sees that
 * octets have come, and looks for room himself. */
static void rest(struct ddps_mpa_shm *t)
{
	bool there = false;

	if (t->quiet)
		return;
	if (t->c->io.sight) {
		if (t->events & DDPS_MPA_OUT)
			show_soon(t);
		return;
	}
	make_room_for_bells(t);
	there = t->passed;
	if (t->events & (DDPS_MPA_IN | DDPS_MPA_PEER_FIN))
		there |= ddps_shm_await_octets(&t->in) && look_around(t);
	if (t->events & DDPS_MPA_OUT)
		there |= ddps_shm_await_room(&t->out, ROOM);
	if (there)
		show_soon(t);
}

/* To be seen to, or waited for. */
static void show_or_rest(struct ddps_mpa_shm *t)
{
	if (!t->quiet && look_around(t))
		show_soon(t);
	else
		rest(t);
}

void ddps_mpa_shm_show(struct ddps_mpa_shm *t)
{
	const unsigned ready = t->quiet ? 0 : look_around(t);

	if (ready)
		ddps_mpa_conn_ready(t->c, ready);
	else
		rest(t);
}

static void shm_io(void *user, uint32_t events)
{
	struct ddps_mpa_conn *c = user;
	struct ddps_mpa_shm *t = shm_of(c);

	c->io.moved = false;
	if (!t->far && !ddps_mpa_shm_take_hello(t))
		return;
	if (!ddps_loop_trying(c->env->loop)) {
		t->gone |= (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
		/* A bell for nothing, or one that brings what nobody takes. */
		if (c->io.sight || !look_around(t))
			read_bells(t);
	}
	ddps_mpa_shm_show(t);
}

/* The peer need not ring while the loop looks at its words. */
static void take_looked_at(void *user, bool looked_at)
{
	struct ddps_mpa_shm *t = shm_of(user);

	if (looked_at) {
		ddps_shm_awake_reader(&t->in);
		ddps_shm_awake_writer(&t->out);
	} else {
		show_or_rest(t);
	}
}

int ddps_mpa_shm_link(struct ddps_mpa_shm *t)
{
	struct ddps_mpa_conn *c = t->c;

	t->linked = true;
	ddps_shm_guard(c->io.fd);
	c->io.fn = shm_io;
	c->io.user = c;
	return ddps_io_set(c->env->loop, &c->io, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

/* ---- moving ---- */

/* There are no packets to show: an IPv4 connection of this host is made up for them, unless there was one to begin
 * with.  The memory's address is as good a port as any. */
static void show_packet(const struct ddps_mpa_conn *c, bool sent, const struct iovec *iov, int k,
			size_t n)
{
	const struct ddps_mpa_shm *t = shm_of(c);
	const struct in_addr here = { htonl(INADDR_LOOPBACK) };
	const uint16_t port = (uint16_t)(0x8000u | (((uintptr_t)t->memory >> 12) & 0x7FFFu));
	const struct sockaddr_in caller = { AF_INET, htons(port), here, { 0 } };
	const struct sockaddr_in listener = { AF_INET, htons(1), here, { 0 } };
	const struct ddps_packet p = {
		.transport = DDPS_TRANSPORT_TCP,
		.sent = sent,
		.local = ddps_mpa_has_moved(c)
				 ? &c->local.sa
				 : (const struct sockaddr *)(c->initiator ? &caller : &listener),
		.peer = ddps_mpa_has_moved(c)
				? &c->peer.sa
				: (const struct sockaddr *)(c->initiator ? &listener : &caller),
		.iov = iov,
		.niov = k,
		.len = n,
	};

	ddps_env_show(c->env, &p);
}

/* Nothing more comes: 0, the peer's FIN, or a negative errno. */
static int get_end(const struct ddps_mpa_shm *t)
{
	switch (ddps_shm_ended(&t->in)) {
	case DDPS_SHM_FIN:
		return 0;
	case DDPS_SHM_RESET:
		return -ECONNRESET;
	default:
		return t->gone ? -ECONNRESET : -EAGAIN;
	}
}

static ssize_t shm_recv(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	struct ddps_mpa_shm *t = shm_of(c);
	int end = t->far ? get_end(t) : -EAGAIN; /* before the octets, which are there by then */
	bool wake = false;
	size_t n = t->far ? ddps_shm_read(&t->in, iov, k, &wake) : 0;

	if (wake)
		ddps_mpa_shm_ring(t);
	if (t->in.bad) {
		end_bad(t);
		return -EPROTO;
	}
	if (!n) {
		c->io.moved |= end != -EAGAIN;
		return end;
	}
	c->io.moved = true;
	ddps_io_moved(c->env->loop, &c->io, n);
	if (c->env->capture)
		show_packet(c, false, iov, k, n);
	if (c->io.sight) {
		if (look_around(t))
			show_soon(t);
		return (ssize_t)n;
	}
	make_room_for_bells(t);
	if (ddps_shm_await_octets(&t->in) || t->gone)
		show_soon(t);
	return (ssize_t)n;
}

static ssize_t shm_send(struct ddps_mpa_conn *c, struct iovec *iov, int k)
{
	struct ddps_mpa_shm *t = shm_of(c);
	bool wake = false;
	size_t n;

	if (t->gone || ddps_shm_ended(&t->in) == DDPS_SHM_RESET)
		return is_broken(t) ? -ECONNRESET : -EPIPE;
	n = ddps_shm_write(&t->out, iov, k, &wake);
	if (wake)
		ddps_mpa_shm_ring(t);
	if (t->out.bad) {
		end_bad(t);
		return -EPROTO;
	}
	if (!n)
		return -EAGAIN;
	c->io.moved = true; /* who polls finds room, too */
	ddps_io_moved(c->env->loop, &c->io, n);
	if (c->env->capture)
		show_packet(c, true, iov, k, n);
	return (ssize_t)n;
}

/* ---- the end ---- */

static void say_end(struct ddps_mpa_shm *t, enum ddps_shm_end end)
{
	bool wake;

	ddps_shm_finish(&t->out, end, &wake);
	if (wake)
		ddps_mpa_shm_ring(t);
}

static void shm_fin(struct ddps_mpa_conn *c)
{
	say_end(shm_of(c), DDPS_SHM_FIN);
}

static void shm_reset(struct ddps_mpa_conn *c)
{
	shm_of(c)->drop = true;
}

/* As TCP: what nobody will read any more makes it a reset. */
static void shm_close(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_shm *t = shm_of(c);

	if (t->memory && (t->drop || ddps_shm_filled(&t->in) || t->in.bad))
		say_end(t, DDPS_SHM_RESET);
	else if (t->memory)
		say_end(t, DDPS_SHM_FIN); /* perhaps once more */
	ddps_io_del(c->env->loop, &c->io);
	ddps_task_cancel(c->env->loop, &t->task);
	ddps_timer_stop(c->env->loop, &t->again);
	ddps_mpa_shm_let_go(c->env, c->io.fd);
	c->io.fd = -1;
	if (t->fd >= 0)
		ddps_own_close(t->fd);
	t->fd = -1;
	ddps_shm_unmap(t->memory);
	ddps_shm_unmap(t->far);
	t->memory = NULL;
	t->far = NULL;
}

static void shm_release(struct ddps_mpa_conn *c)
{
	free(shm_of(c));
	c->shm = NULL;
}

static int shm_error(struct ddps_mpa_conn *c)
{
	const struct ddps_mpa_shm *t = shm_of(c);

	return t->err ? t->err : t->far && is_broken(t) ? ECONNRESET : 0;
}

/* ---- what to wait for ---- */

static int shm_watch(struct ddps_mpa_conn *c, unsigned events, bool eager)
{
	struct ddps_mpa_shm *t = shm_of(c);

	t->events = events;
	t->quiet = false;
	c->io.eager = eager;
	if (t->far && t->linked)
		show_or_rest(t);
	return 0;
}

static void shm_unwatch(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_shm *t = shm_of(c);

	t->events = 0;
	t->quiet = true;
	ddps_task_cancel(c->env->loop, &t->task);
}

/* ---- the rest ---- */

static void shm_local(struct ddps_mpa_conn *c)
{
	struct ddps_mpa_shm *t = shm_of(c);

	c->local.un.family = AF_UNIX;
	c->local.un.text = c->initiator ? t->caller : t->name;
}

static uint32_t shm_emss(struct ddps_mpa_conn *c)
{
	(void)c;
	return EMSS;
}

static int shm_stats(const struct ddps_mpa_conn *c, struct ddps_llp_tcp *st)
{
	(void)c;
	(void)st;
	return DDPS_E_STATE;
}

/* What is written is there, whatever becomes of this process. */
static size_t shm_unacked(const struct ddps_mpa_conn *c)
{
	(void)c;
	return 0;
}

static void shm_busy(struct ddps_mpa_conn *c)
{
	c->io.moved = true;
}

static void shm_info(const struct ddps_mpa_conn *c, struct ddps_conn_info *info)
{
	const struct ddps_mpa_shm *t = shm_of(c);

	info->transport = DDPS_TRANSPORT_SHM;
	info->shm.pid = (uint32_t)t->peer.pid;
	info->shm.uid = t->peer.uid;
	info->shm.gid = t->peer.gid;
}

const struct ddps_mpa_tcp ddps_mpa_shm_tcp = {
	.recv = shm_recv,
	.send = shm_send,
	.fin = shm_fin,
	.reset = shm_reset,
	.close = shm_close,
	.release = shm_release,
	.error = shm_error,
	.watch = shm_watch,
	.unwatch = shm_unwatch,
	.local = shm_local,
	.emss = shm_emss,
	.stats = shm_stats,
	.unacked = shm_unacked,
	.busy = shm_busy,
	.info = shm_info,
};
