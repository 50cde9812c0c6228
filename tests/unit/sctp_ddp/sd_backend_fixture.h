/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_BACKEND_FIXTURE_H
#define SD_BACKEND_FIXTURE_H
/* Contexts and associations for tests of the SCTP backends, over real sockets on loopback. */
#include "common/loop/loop_in.h"
#include "sctp_ddp/sd_backend.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS	   20000000000ull /* a test that waits longer has failed */
#define MAX_PEERS  16
#define FX_BACKLOG 16

struct node {
	struct ddps_env env;
	void *ctx;
};

/* One association and what came up from it. */
struct side {
	const struct ddps_sd_backend *b;
	struct ddps_sd_assoc *a;
	struct ddps_sd_assoc_info info;
	unsigned up, writable, dry, peer_shutdown, gone, messages, ordered;
	unsigned paths, restarted;
	uint64_t octets, handed, acked;
	uint16_t stream;
	uint32_t ppid;
	uint8_t *last; /* the latest message, if keep is set */
	size_t last_len;
	struct ddps_error end;
	bool keep;
	bool bad; /* a message was not what fill_sd_backend() makes of its length and stream */
	void (*on_message)(struct side *s);
	void (*on_writable)(struct side *s);
	void (*on_gone)(struct side *s);
};

struct server {
	struct node *n;
	struct ddps_sd_endpoint *ep;
	struct sockaddr_storage sa;
	socklen_t sa_len;
	uint16_t encap;
	struct side peers[MAX_PEERS];
	unsigned accepted;
	bool leave; /* do not take it */
	void (*on_accept)(struct side *s);
};

static inline void fill_sd_backend(uint8_t *p, size_t len, uint16_t stream)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + len + stream);
}

static inline bool filled(const uint8_t *p, size_t len, uint16_t stream)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)(i * 7 + (i >> 8) + len + stream))
			return false;
	return true;
}

static inline void fx_comm_up(void *user)
{
	struct side *s = user;

	s->up++;
	s->b->info(s->a, &s->info);
}

static inline void fx_message(void *user, uint16_t stream, uint32_t ppid, bool unordered,
			      const uint8_t *data, size_t len)
{
	struct side *s = user;

	s->messages++;
	s->octets += len;
	s->stream = stream;
	s->ppid = ppid;
	s->ordered += !unordered;
	s->last_len = len;
	s->bad |= !filled(data, len, stream);
	if (s->keep) {
		s->last = realloc(s->last, len);
		memcpy(s->last, data, len);
	}
	if (s->on_message)
		s->on_message(s);
}

static inline void fx_writable(void *user)
{
	struct side *s = user;

	s->writable++;
	if (s->on_writable)
		s->on_writable(s);
}

static inline void fx_dry(void *user)
{
	((struct side *)user)->dry++;
}

static inline void fx_acked(void *user, uint64_t n)
{
	((struct side *)user)->acked = n;
}

static inline void fx_path(void *user)
{
	((struct side *)user)->paths++;
}

static inline void fx_peer_shutdown(void *user)
{
	((struct side *)user)->peer_shutdown++;
}

static inline void fx_restarted(void *user)
{
	((struct side *)user)->restarted++;
}

static inline void fx_gone(void *user, const struct ddps_error *e)
{
	struct side *s = user;

	s->gone++;
	s->end = *e;
	if (s->on_gone)
		s->on_gone(s);
}

static const struct ddps_sd_assoc_up fx_up = {
	.comm_up = fx_comm_up,
	.message = fx_message,
	.writable = fx_writable,
	.dry = fx_dry,
	.acked = fx_acked,
	.path = fx_path,
	.peer_shutdown = fx_peer_shutdown,
	.restarted = fx_restarted,
	.gone = fx_gone,
};

static inline void fx_accepted(void *user, struct ddps_sd_assoc *a)
{
	struct server *srv = user;
	struct side *s = &srv->peers[srv->accepted++ % MAX_PEERS];

	if (srv->leave)
		return;
	s->a = a;
	s->up++;
	s->b->set_up(a, &fx_up, s);
	s->b->info(a, &s->info);
	if (srv->on_accept)
		srv->on_accept(s);
}

static inline void fx_failed(void *user, const struct ddps_error *e)
{
	(void)user;
	cr_assert_fail("listener failed: %s", e->text);
}

static const struct ddps_sd_listen_up fx_listen_up = { fx_accepted, fx_failed };

static inline void node_init(struct node *n)
{
	*n = (struct node){ 0 };
	cr_assert_eq(ddps_loop_new(&n->env.loop), 0);
	n->env.scratch = malloc(DDPS_SCRATCH_LEN);
	cr_assert(n->env.scratch);
}

static inline void node_fini(struct node *n, const struct ddps_sd_backend *b)
{
	b->fini(&n->env, n->ctx);
	if (b->acks) { /* usrsctp has timers of its own */
		cr_expect_null(n->env.loop->timers, "what is gone waits for nothing");
		cr_expect_null(n->env.loop->tasks, "what is gone does nothing");
	}
	ddps_loop_free(n->env.loop);
	free(n->env.scratch);
}

static inline socklen_t get_sd_backend_loopback(struct sockaddr_storage *ss, int family,
						uint16_t port)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	memset(ss, 0, sizeof *ss);
	if (family == AF_INET6) {
		memcpy(ss, &a6, sizeof a6);
		return sizeof a6;
	}
	memcpy(ss, &a4, sizeof a4);
	return sizeof a4;
}

/* Listen on loopback, ports chosen by the system. */
static inline int try_listen(struct server *srv, struct node *n, const struct ddps_sd_backend *b,
			     int family, uint16_t port, int encap)
{
	struct ddps_uri uri = { .encap = encap };
	char text[80];
	int err;

	*srv = (struct server){ .n = n };
	for (int i = 0; i < MAX_PEERS; i++)
		srv->peers[i].b = b;
	srv->sa_len = get_sd_backend_loopback(&srv->sa, family, port);
	err = b->listen(&n->env, &n->ctx, &uri, (struct sockaddr *)&srv->sa, srv->sa_len,
			FX_BACKLOG, &fx_listen_up, srv, &srv->ep);
	if (err)
		return err;
	b->endpoint_addr(srv->ep, text, sizeof text, &srv->encap);
	get_sd_backend_loopback(&srv->sa, family, (uint16_t)atoi(strrchr(text, ':') + 1));
	return 0;
}

static inline int try_connect(struct side *s, struct node *n, const struct ddps_sd_backend *b,
			      const struct sockaddr_storage *sa, socklen_t len, int encap,
			      uint32_t ms)
{
	struct ddps_uri uri = { .encap = encap };

	s->b = b;
	return b->connect(&n->env, &n->ctx, &uri, (const struct sockaddr *)sa, len,
			  &(struct ddps_llp_param){ .connect_ms = ms }, &fx_up, s, &s->a);
}

/* Serve the loops once; sleeps until there is something to do. */
static inline void spin(struct node **nodes, int count)
{
	struct pollfd p[4];

	for (int i = 0; i < count; i++)
		p[i] = (struct pollfd){ ddps_loop_fd(nodes[i]->env.loop), POLLIN, 0 };
	poll(p, (nfds_t)count, 1000);
	for (int i = 0; i < count; i++)
		cr_assert_geq(ddps_loop_run(nodes[i]->env.loop), 0);
}

#define WAIT_FOR(cond, ...)                                                                        \
	do {                                                                                       \
		struct node *nodes_[] = { __VA_ARGS__ };                                           \
		uint64_t until_ = ddps_now() + WAIT_NS;                                            \
		while (!(cond)) {                                                                  \
			cr_assert(ddps_now() < until_, "waited for: %s", #cond);                   \
			spin(nodes_, (int)(sizeof nodes_ / sizeof nodes_[0]));                     \
		}                                                                                  \
	} while (0)

#endif
