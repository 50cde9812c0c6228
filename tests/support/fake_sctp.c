/* SPDX-License-Identifier: BSD-2-Clause */
/* An SCTP in memory, for tests of what is above it. */
#include "support/fake_sctp.h"
#include "common/error.h"
#include "common/uri.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 50000

struct fake_sctp_net fake_sctp_net = {
	.in_streams = DDPS_SCTP_STREAMS,
	.out_streams = DDPS_SCTP_STREAMS,
	.adaptation = DDPS_SCTP_ADAPTATION_DDP,
	.max_user_data = 1452,
};

struct ddps_sd_endpoint {
	struct ddps_sd_endpoint *next;
	struct ddps_env *env;
	const struct ddps_sd_listen_up *up;
	void *user;
	uint16_t port;
	bool raw;
	struct ddps_sd_assoc *newest;
};

static struct ddps_sd_endpoint *endpoints;
static TAILQ_HEAD(, ddps_sd_assoc) raws = TAILQ_HEAD_INITIALIZER(raws);
static uint16_t last_port = FIRST_PORT;

static struct ddps_sd_endpoint *endpoint_find(uint16_t port)
{
	struct ddps_sd_endpoint *e = endpoints;

	while (e && e->port != port)
		e = e->next;
	return e;
}

static struct ddps_sd_endpoint *endpoint_new(struct ddps_env *env, uint16_t port)
{
	struct ddps_sd_endpoint *e = calloc(1, sizeof(*e));

	e->env = env;
	e->port = port ? port : ++last_port;
	e->next = endpoints;
	endpoints = e;
	return e;
}

static void queue_free(struct fake_sctp_queue *q)
{
	while (!TAILQ_EMPTY(q)) {
		struct fake_sctp_msg *m = TAILQ_FIRST(q);

		TAILQ_REMOVE(q, m, link);
		free(m);
	}
}

void fake_sctp_poke(struct ddps_sd_assoc *a)
{
	ddps_task_post(a->env->loop, &a->task);
}

/* ---- delivery ---- */

static struct fake_sctp_msg *pick_fake_message(struct ddps_sd_assoc *a)
{
	struct fake_sctp_msg *m = TAILQ_FIRST(&a->in);
	uint32_t n;

	if (!a->reorder)
		return m;
	a->reorder = a->reorder * 1664525u + 1013904223u;
	if (!a->reorder)
		a->reorder = 1;
	for (n = (a->reorder >> 8) % a->nin; n; n--)
		m = TAILQ_NEXT(m, link);
	return m;
}

/* One message to @a. */
static void deliver_fake_message(struct ddps_sd_assoc *a)
{
	struct fake_sctp_msg *m = pick_fake_message(a);

	TAILQ_REMOVE(&a->in, m, link);
	a->nin--;
	if (a->peer)
		fake_sctp_poke(a->peer); /* acknowledged */
	if (a->raw) {
		TAILQ_INSERT_TAIL(&a->inbox, m, link);
		a->narrived++;
		return;
	}
	a->up->message(a->user, m->stream, m->ppid, m->unordered, m->data, m->len);
	free(m);
}

static void end_fake_assoc(struct ddps_sd_assoc *a, int code, int sys_errno)
{
	if (!a->over)
		a->error = ddps_error_make(code, sys_errno, "fake: %s", ddps_strerror(code));
	a->over = true;
	fake_sctp_poke(a);
}

/* Messages sent that the peer has not taken. */
static unsigned count_untaken(const struct ddps_sd_assoc *a)
{
	return a->peer ? a->peer->nin : 0;
}

/* Acknowledgements and room, as far as the peer has taken what we sent. */
static void tell_sender(struct ddps_sd_assoc *a)
{
	if (a->want_room && (!a->room || count_untaken(a) < a->room)) {
		a->want_room = false;
		a->up->writable(a->user);
	}
	if (!a->freed && a->ask && !count_untaken(a) && !a->hold_dry) {
		a->ask = false;
		a->up->dry(a->user);
	}
}

static void shutdown_done(struct ddps_sd_assoc *a)
{
	if (count_untaken(a))
		return;
	a->shut = false;
	if (a->peer) {
		a->peer->peer_shut = true;
		end_fake_assoc(a->peer, 0, 0);
	}
	end_fake_assoc(a, 0, 0);
}

static void tell_end(struct ddps_sd_assoc *a)
{
	if (a->told)
		return;
	a->told = true;
	if (a->raw)
		return;
	if (a->peer_shut)
		a->up->peer_shutdown(a->user);
	if (!a->freed)
		a->up->gone(a->user, &a->error);
}

static void serve_up(struct ddps_sd_assoc *a)
{
	if (a->accept_at) {
		struct ddps_sd_endpoint *e = a->accept_at;

		a->accept_at = NULL;
		e->up->accepted(e->user, a); /* sets it up or frees it; it runs again then */
		return;
	}
	if (a->comm_up && !a->raw)
		a->up->comm_up(a->user);
	a->comm_up = false;
	if (!a->freed && a->restart)
		a->up->restarted(a->user);
	a->restart = false;
	while (!a->freed && a->nin && !a->hold && !a->told)
		deliver_fake_message(a);
	if (!a->freed && !a->raw && !a->over)
		tell_sender(a);
	if (!a->freed && a->shut)
		shutdown_done(a);
	if (!a->freed && a->over && !a->hold)
		tell_end(a);
}

/* The object outlives a free() out of an upcall until the upcall returns. */
static void serve_fake_assoc(void *user)
{
	struct ddps_sd_assoc *a = user;

	a->busy = true;
	serve_up(a);
	a->busy = false;
	if (a->freed)
		free(a);
}

/* ---- making ---- */

static struct ddps_addr read_fake_addr(const char *text)
{
	struct sockaddr_storage ss;
	struct ddps_uri uri;
	char line[100], why[200];
	socklen_t len;

	snprintf(line, sizeof line, "sctp://%s", text);
	if (ddps_uri_parse(&uri, line, why, sizeof why) || ddps_uri_sockaddr(&uri, &ss, &len))
		abort();
	return ddps_addr_of((struct sockaddr *)&ss);
}

static struct ddps_sd_assoc *assoc_new(struct ddps_env *env, bool by_us)
{
	struct ddps_sd_assoc *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->env = env;
	a->task = (struct ddps_task){ .fn = serve_fake_assoc, .user = a };
	TAILQ_INIT(&a->in);
	TAILQ_INIT(&a->inbox);
	a->info = (struct ddps_sd_assoc_info){
		.in_streams = fake_sctp_net.in_streams,
		.out_streams = fake_sctp_net.out_streams,
		.has_adaptation = true,
		.adaptation = DDPS_SCTP_ADAPTATION_DDP,
		.max_user_data = fake_sctp_net.max_user_data,
		.by_us = by_us,
		.local = "127.0.0.1:1",
		.peer = "127.0.0.1:2",
	};
	if (fake_sctp_net.from)
		snprintf(a->info.peer, sizeof(a->info.peer), "%s", fake_sctp_net.from);
	a->info.local_addr = read_fake_addr(a->info.local);
	a->info.peer_addr = read_fake_addr(a->info.peer);
	a->room = fake_sctp_net.room;
	a->reorder = fake_sctp_net.reorder;
	a->hold_dry = fake_sctp_net.hold_dry;
	return a;
}

static void join_fake_assocs(struct ddps_sd_assoc *a, struct ddps_sd_assoc *b)
{
	struct ddps_sd_assoc *raw = a->raw ? a : b->raw ? b : NULL;

	a->peer = b;
	b->peer = a;
	if (raw) {
		raw->peer->info.has_adaptation = !fake_sctp_net.no_adaptation;
		raw->peer->info.adaptation = fake_sctp_net.adaptation;
	}
}

static void reach_fake_endpoint(struct ddps_sd_assoc *a, uint16_t port)
{
	struct ddps_sd_endpoint *e = endpoint_find(port);
	struct ddps_sd_assoc *b;

	fake_sctp_net.connects++;
	if (!e) {
		end_fake_assoc(a, DDPS_E_REFUSED, ECONNREFUSED);
		return;
	}
	b = assoc_new(e->env, false);
	if (!b) {
		end_fake_assoc(a, DDPS_E_NOMEM, ENOMEM);
		return;
	}
	b->raw = e->raw;
	if (b->raw)
		TAILQ_INSERT_TAIL(&raws, b, link);
	e->newest = b;
	join_fake_assocs(a, b);
	a->comm_up = true;
	fake_sctp_poke(a);
	if (!b->raw) {
		b->accept_at = e;
		fake_sctp_poke(b);
	}
}

struct ddps_sd_assoc *fake_sctp_raw_connect(struct ddps_env *env, uint16_t port)
{
	struct ddps_sd_assoc *a = assoc_new(env, true);

	a->raw = true;
	TAILQ_INSERT_TAIL(&raws, a, link);
	reach_fake_endpoint(a, port);
	return a;
}

void fake_sctp_raw_listen(struct ddps_env *env, uint16_t port)
{
	endpoint_new(env, port)->raw = true;
}

struct ddps_sd_assoc *fake_sctp_raw_accepted(uint16_t port)
{
	struct ddps_sd_endpoint *e = endpoint_find(port);

	return e ? e->newest : NULL;
}

static void post_fake_message(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid,
			      bool unordered, const struct iovec *iov, int niov)
{
	struct fake_sctp_msg *m;
	size_t len = 0;

	for (int i = 0; i < niov; i++)
		len += iov[i].iov_len;
	m = malloc(sizeof(*m) + len);
	m->stream = stream;
	m->ppid = ppid;
	m->unordered = unordered;
	m->len = 0;
	for (int i = 0; i < niov; i++) {
		if (iov[i].iov_len)
			memcpy(m->data + m->len, iov[i].iov_base, iov[i].iov_len);
		m->len += iov[i].iov_len;
	}
	TAILQ_INSERT_TAIL(&a->peer->in, m, link);
	a->peer->nin++;
	fake_sctp_poke(a->peer);
}

void fake_sctp_raw_send(struct ddps_sd_assoc *raw, uint16_t stream, uint32_t ppid, const void *data,
			size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };

	if (raw->peer)
		post_fake_message(raw, stream, ppid, true, &iov, 1);
}

void fake_sctp_ordered(struct ddps_sd_assoc *raw, uint16_t stream, uint32_t ppid, const void *data,
		       size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };

	post_fake_message(raw, stream, ppid, false, &iov, 1);
}

struct fake_sctp_msg *fake_sctp_raw_take(struct ddps_sd_assoc *raw)
{
	struct fake_sctp_msg *m = TAILQ_FIRST(&raw->inbox);

	if (m) {
		TAILQ_REMOVE(&raw->inbox, m, link);
		raw->narrived--;
	}
	return m;
}

void fake_sctp_fail(uint16_t port, int code)
{
	struct ddps_sd_endpoint *e = endpoint_find(port);
	struct ddps_error why = ddps_error_make(code, 0, "fake: endpoint failed");

	e->up->failed(e->user, &why);
}

void fake_sctp_lose(struct ddps_sd_assoc *a, int code)
{
	if (a->peer)
		end_fake_assoc(a->peer, code, 0);
	end_fake_assoc(a, code, 0);
}

void fake_sctp_restart(struct ddps_sd_assoc *a)
{
	queue_free(&a->in);
	a->nin = 0;
	if (a->peer) {
		queue_free(&a->peer->in);
		a->peer->nin = 0;
	}
	a->ask = a->want_room = a->shut = false;
	a->restart = true;
	fake_sctp_poke(a);
}

/* ---- the contract ---- */

static bool fake_available(void)
{
	return true;
}

static int fake_connect(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
			const struct sockaddr *sa, socklen_t sa_len,
			const struct ddps_llp_param *param, const struct ddps_sd_assoc_up *up,
			void *user, struct ddps_sd_assoc **out)
{
	const struct sockaddr_in *in = (const void *)sa;
	struct ddps_sd_assoc *a;

	(void)uri;
	(void)sa_len;
	(void)param;
	*ctx = &endpoints;
	if (fake_sctp_net.fail)
		return fake_sctp_net.fail;
	a = assoc_new(env, true);
	if (!a)
		return DDPS_E_NOMEM;
	a->up = up;
	a->user = user;
	reach_fake_endpoint(a, ntohs(in->sin_port));
	*out = a;
	return 0;
}

static int fake_listen(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		       const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		       const struct ddps_sd_listen_up *up, void *user,
		       struct ddps_sd_endpoint **out)
{
	const struct sockaddr_in *in = (const void *)sa;
	struct ddps_sd_endpoint *e;

	(void)uri;
	(void)sa_len;
	(void)backlog;
	*ctx = &endpoints;
	if (fake_sctp_net.fail)
		return fake_sctp_net.fail;
	e = endpoint_new(env, ntohs(in->sin_port));
	e->up = up;
	e->user = user;
	*out = e;
	return 0;
}

static void fake_endpoint_addr(struct ddps_sd_endpoint *e, char *buf, size_t len, uint16_t *encap)
{
	snprintf(buf, len, "127.0.0.1:%u", e->port);
	*encap = e->port == 9 ? 0 : 9899;
}

static void fake_endpoint_free(struct ddps_sd_endpoint *e)
{
	struct ddps_sd_endpoint **at = &endpoints;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free(e);
}

static void fake_set_up(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user)
{
	a->up = up;
	a->user = user;
	fake_sctp_poke(a);
}

static void fake_info(struct ddps_sd_assoc *a, struct ddps_sd_assoc_info *info)
{
	*info = a->info;
}

static int fake_send(struct ddps_sd_assoc *a, uint16_t stream, uint32_t ppid,
		     const struct iovec *iov, int niov)
{
	if (a->over || !a->peer)
		return DDPS_E_RESET;
	if (a->room && a->peer->nin >= a->room) {
		a->want_room = true;
		a->agains++;
		return DDPS_E_AGAIN;
	}
	post_fake_message(a, stream, ppid, true, iov, niov);
	return 0;
}

static void fake_ask_dry(struct ddps_sd_assoc *a)
{
	a->ask = true;
	a->asks++;
	fake_sctp_poke(a);
}

static void fake_pause(struct ddps_sd_assoc *a, bool on)
{
	a->hold = on;
	fake_sctp_poke(a);
}

static void fake_shutdown(struct ddps_sd_assoc *a)
{
	a->shut = true;
	a->shutdowns++;
	fake_sctp_poke(a);
}

static void fake_abort(struct ddps_sd_assoc *a)
{
	a->aborts++;
	fake_sctp_lose(a, DDPS_E_RESET);
}

static void fake_free(struct ddps_sd_assoc *a)
{
	if (a->raw)
		TAILQ_REMOVE(&raws, a, link);
	if (a->peer) {
		if (!a->over)
			end_fake_assoc(a->peer, DDPS_E_RESET, 0);
		a->peer->peer = NULL;
	}
	ddps_task_cancel(a->env->loop, &a->task);
	queue_free(&a->in);
	queue_free(&a->inbox);
	a->freed = true;
	if (!a->busy)
		free(a);
}

void fake_sctp_cleanup(void)
{
	while (!TAILQ_EMPTY(&raws))
		fake_free(TAILQ_FIRST(&raws));
	while (endpoints)
		fake_endpoint_free(endpoints);
}

static void fake_fini(struct ddps_env *env, void *ctx)
{
	(void)env;
	(void)ctx;
}

static size_t fake_packet_room(const struct ddps_sd_assoc *a)
{
	return a->packet_room;
}

static void fake_flush(struct ddps_sd_assoc *a)
{
	a->flushes++;
}

const struct ddps_sd_backend fake_sctp = {
	.name = "fake",
	.available = fake_available,
	.connect = fake_connect,
	.listen = fake_listen,
	.endpoint_addr = fake_endpoint_addr,
	.endpoint_free = fake_endpoint_free,
	.set_up = fake_set_up,
	.info = fake_info,
	.send = fake_send,
	.room = fake_packet_room,
	.flush = fake_flush,
	.ask_dry = fake_ask_dry,
	.pause = fake_pause,
	.shutdown = fake_shutdown,
	.abort = fake_abort,
	.free = fake_free,
	.fini = fake_fini,
};
