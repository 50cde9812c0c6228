/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_DTLS_FIXTURE_H
#define SD_DTLS_FIXTURE_H
/*
 * Two contexts on the native backend and one association between them inside DTLS, over real sockets.  The handshake is
 * that of tests/sim/dtls_stub.c, in the library's own thread; a test says what it is to come to.
 */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sd_backend_fixture.h"
#include "secure/secure.h"
#include "sim/tls_stub.h"
#include "support/aead_stub.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"
#include <stdio.h>
#include <pthread.h>

#define B	  &ddps_sd_native
#define SEGMENT	  16u
#define SECOND	  1000000000ull
#define ELSEWHERE 4242 /* a port that nobody has */

static struct node cn, sn; /* dialler's and listener's contexts */
static struct server srv;
static struct side cli;

/* ---- handshakes ---- */

static struct {
	int fails; /* the code of each handshake, 0: none fails */
	bool anybodys;
	const char *name;	  /* of the peer, or NULL: the stub's */
	uint16_t most;		  /* octets in a record that it takes */
	int verdict;		  /* of whoever judges again */
	int hs, witnesses;	  /* that are alive */
	bool listeners;		  /* only those fail */
	struct ddps_hs *listener; /* the latest */
} dtls_script;

static struct ddps_verdict dtls_failure;

static inline int make_dtls_hs(struct ddps_hs **out, const struct ddps_hs_conf *conf,
			       struct ddps_verdict *why)
{
	int err = dtls_stub.make(out, conf, why);

	__atomic_add_fetch(&dtls_script.hs, !err, __ATOMIC_RELAXED);
	if (!err && conf->want.server)
		dtls_script.listener = *out;
	return err;
}

static inline void free_dtls_hs(struct ddps_hs *h)
{
	__atomic_sub_fetch(&dtls_script.hs, 1, __ATOMIC_RELAXED);
	dtls_stub.free(h);
}

static inline enum ddps_hs_state step_dtls_hs(struct ddps_hs *h, const uint8_t *in, size_t n,
					      int64_t now)
{
	if (dtls_script.fails && (!dtls_script.listeners || h == dtls_script.listener)) {
		dtls_failure = (struct ddps_verdict){ .code = dtls_script.fails,
						      .anybodys = dtls_script.anybodys,
						      .text = "as the test wants it" };
		return DDPS_HS_FAILED;
	}
	return dtls_stub.step(h, in, n, now);
}

static inline const struct ddps_verdict *get_dtls_why(const struct ddps_hs *h)
{
	return dtls_failure.code ? &dtls_failure : dtls_stub.why(h);
}

static inline void take_dtls_script_keys(struct ddps_hs *h, struct ddps_rec_config *keys,
					 struct ddps_peer_id *id, const uint8_t **rest, size_t *n)
{
	dtls_stub.take(h, keys, id, rest, n);
	keys->peer_limit = dtls_script.most;
	if (dtls_script.name)
		snprintf(id->name, sizeof id->name, "%s", dtls_script.name);
}

static inline struct ddps_witness *make_dtls_witness(struct ddps_hs *h)
{
	struct ddps_witness *w = dtls_stub_witness();

	(void)h;
	__atomic_add_fetch(&dtls_script.witnesses, w != NULL, __ATOMIC_RELAXED);
	return w;
}

static inline void free_dtls_witness(struct ddps_witness *w)
{
	__atomic_sub_fetch(&dtls_script.witnesses, 1, __ATOMIC_RELAXED);
	dtls_stub_witness_free(w);
}

static inline int judge_dtls_witness(const struct ddps_witness *w, struct ddps_creds_set *set,
				     int64_t now, struct ddps_verdict *why)
{
	cr_assert(w && !set && now);
	*why = (struct ddps_verdict){ .code = dtls_script.verdict, .text = "as it was judged" };
	return dtls_script.verdict;
}

static inline struct ddps_creds_set *use_no_creds(struct ddps_creds *c, uint64_t ms, int64_t now,
						  struct ddps_verdict *news)
{
	(void)c;
	(void)ms;
	(void)now;
	*news = (struct ddps_verdict){ .code = 0 };
	return NULL;
}

static inline void release_no_creds(struct ddps_creds_set *set)
{
	cr_assert_null(set);
}

static const struct ddps_tls_plugin dtls_plugin = {
	.creds_use = use_no_creds,
	.creds_release = release_no_creds,
	.dtls = { .make = make_dtls_hs,
		  .free = free_dtls_hs,
		  .step = step_dtls_hs,
		  .output = NULL, /* the stub's: start_dtls_nodes */
		  .why = get_dtls_why,
		  .take = take_dtls_script_keys },
	.dtls_timeout = dtls_stub_timeout,
	.dtls_greet = dtls_stub_greet,
	.dtls_witness = make_dtls_witness,
	.witness_free = free_dtls_witness,
	.witness_judge = judge_dtls_witness,
	.aead = aead_stub,
};
static struct ddps_tls_plugin dtls_used;
static struct ddps_secure dtls_secure = { .plugin = &dtls_used };

/* ---- the loops, and the thread that comes in while they sleep ---- */

static pthread_mutex_t dtls_lock = PTHREAD_MUTEX_INITIALIZER;

static inline int enter_dtls_node(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&dtls_lock);
	return 0;
}

static inline void leave_dtls_node(void *ctx)
{
	(void)ctx;
	pthread_mutex_unlock(&dtls_lock);
}

/* Serve both, or one; at most @ms pass if there is nothing to do. */
static inline void turn_dtls(struct node *only, int ms)
{
	struct node *const nodes[] = { &cn, &sn };
	struct pollfd p[2];
	nfds_t n = 0;

	for (unsigned i = 0; i < 2; i++)
		if (!only || only == nodes[i])
			p[n++] = (struct pollfd){ ddps_loop_fd(nodes[i]->env.loop), POLLIN, 0 };
	pthread_mutex_unlock(&dtls_lock);
	poll(p, n, ms);
	pthread_mutex_lock(&dtls_lock);
	for (unsigned i = 0; i < 2; i++)
		if (!only || only == nodes[i])
			cr_assert_geq(ddps_loop_run(nodes[i]->env.loop), 0);
}

#define DTLS_UNTIL(cond)                                                                           \
	do {                                                                                       \
		uint64_t until_ = ddps_now() + WAIT_NS;                                            \
		while (!(cond)) {                                                                  \
			cr_assert(ddps_now() < until_, "waited for: %s", #cond);                   \
			turn_dtls(NULL, 1000);                                                     \
		}                                                                                  \
	} while (0)

/* ---- a pair ---- */

static inline struct ddps_sn_env *dtls_env(const struct node *n)
{
	return n->ctx;
}

/* The @i-th connection, or NULL. */
static inline struct ddps_sn_dtls *dtls_at(const struct node *n, unsigned i)
{
	const struct ddps_sn_env *ne = n->ctx;

	for (unsigned k = 0; ne && k < ne->nsocks; k++)
		if (ne->socks[k] && ne->socks[k]->dtls && !i--)
			return ne->socks[k]->dtls;
	return NULL;
}

static inline struct ddps_sn_dtls *dtls_of(const struct node *n)
{
	return dtls_at(n, 0);
}

/* The listener's, which carries all that peers send. */
static inline struct ddps_sn_sock *dtls_port(void)
{
	return srv.ep->sock;
}

/* The first one's two ends. */
static inline struct ddps_sn_dtls *dtls_dialler(void)
{
	return dtls_of(&cn);
}

static inline struct ddps_sn_dtls *dtls_listener(void)
{
	return dtls_of(&sn);
}

static inline void start_dtls_node(struct node *n)
{
	node_init(n);
	n->env.secure = &dtls_secure;
	n->env.enter = enter_dtls_node;
	n->env.leave = leave_dtls_node;
}

static uint32_t dtls_bound = INADDR_LOOPBACK; /* where the listener is */

static inline void start_dtls_nodes(void)
{
	struct ddps_uri uri = { .scheme = "sctps" };
	char text[80];

	dtls_used = dtls_plugin;
	dtls_used.dtls.output = dtls_stub.output;
	dtls_used.dtls.sent = dtls_stub.sent;
	pthread_mutex_lock(&dtls_lock);
	start_dtls_node(&cn);
	start_dtls_node(&sn);
	cli = (struct side){ .b = B };
	srv = (struct server){ .n = &sn };
	for (int i = 0; i < MAX_PEERS; i++)
		srv.peers[i].b = B;
	srv.sa_len = get_sd_backend_loopback(&srv.sa, AF_INET, 0);
	((struct sockaddr_in *)&srv.sa)->sin_addr.s_addr = htonl(dtls_bound);
	cr_assert_eq((B)->listen(&sn.env, &sn.ctx, &uri, (struct sockaddr *)&srv.sa, srv.sa_len,
				 FX_BACKLOG, &fx_listen_up, &srv, &srv.ep),
		     0);
	(B)->endpoint_addr(srv.ep, text, sizeof text, &srv.encap);
	get_sd_backend_loopback(&srv.sa, AF_INET, srv.encap);
}

static unsigned dtls_connect_ms = 15000;

static inline void dial_dtls_side(struct side *s, const struct ddps_sd_assoc_up *up)
{
	const struct ddps_uri uri = { .scheme = "sctps", .encap = srv.encap };
	const struct ddps_llp_param p = { .connect_ms = dtls_connect_ms, .host = "127.0.0.1" };

	*s = (struct side){ .b = B };
	cr_assert_eq((B)->connect(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&srv.sa, srv.sa_len,
				  &p, up, s, &s->a),
		     0);
}

static inline void start_dtls_pair(void)
{
	start_dtls_nodes();
	dial_dtls_side(&cli, &fx_up);
	DTLS_UNTIL(cli.up + cli.gone && srv.accepted);
	cr_assert_eq(cli.gone, 0, "%s", cli.end.text);
}

static inline void stop_dtls_node(struct node *n)
{
	pthread_mutex_unlock(&dtls_lock);
	ddps_shaker_stop(&n->env);
	pthread_mutex_lock(&dtls_lock);
	node_fini(n, B);
}

static inline void stop_dtls_nodes(void)
{
	stop_dtls_node(&cn);
	stop_dtls_node(&sn);
	pthread_mutex_unlock(&dtls_lock);
	cr_expect_eq(dtls_script.hs, 0, "%d handshakes are left", dtls_script.hs);
	cr_expect_eq(dtls_script.witnesses, 0, "%d witnesses are left", dtls_script.witnesses);
	cr_expect_eq(aead_stub_alive, 0, "%d keys are left", aead_stub_alive);
}

/* ---- messages ---- */

static inline void put_dtls_message(struct side *s, size_t len)
{
	uint8_t *p = malloc(len);
	struct iovec iov = { p, len };
	int err;

	fill_sd_backend(p, len, 0);
	while ((err = (B)->send(s->a, 0, SEGMENT, &iov, 1)) == DDPS_E_AGAIN) {
		(B)->flush(s->a); /* else what is there may wait for this one */
		turn_dtls(NULL, 1000);
	}
	cr_assert_eq(err, 0, "%d", err);
	s->handed++;
	free(p);
}

static inline void send_dtls_message(struct side *s, size_t len)
{
	put_dtls_message(s, len);
	(B)->flush(s->a);
}

/* A few each way, and all of them are acknowledged. */
static inline void carry_dtls(struct side *a, struct side *b, unsigned n, size_t len)
{
	struct side *const sides[] = { a, b };

	for (unsigned i = 0; i < 2; i++) {
		const unsigned before = sides[!i]->messages;

		for (unsigned k = 0; k < n; k++)
			put_dtls_message(sides[i], len);
		(B)->flush(sides[i]->a);
		DTLS_UNTIL(sides[!i]->messages == before + n &&
			   sides[i]->acked == sides[i]->handed);
		cr_assert_not(sides[!i]->bad);
	}
}

/* ---- records by hand ---- */

/* What has @type, sealed by @c. */
static inline size_t seal_by_hand(struct ddps_sn_dtls *c, enum ddps_dtls_type type, const void *p,
				  size_t n, uint8_t out[DDPS_SN_DTLS_MTU])
{
	const struct iovec iov = { (void *)(uintptr_t)p, n };
	ssize_t len = ddps_dtls_seal(c->cur.rec, type, &iov, 1, out, DDPS_SN_DTLS_MTU);

	cr_assert_gt(len, 0);
	return (size_t)len;
}

static size_t dtls_run; /* octets of each datagram of a run; 0: it is one */

static struct dtls_given {
	struct ddps_sn_sock *udp;
	struct sockaddr_storage from;
	struct ddps_sctp_addr to;
	size_t n;
	uint8_t octets[70000];
} dtls_given;

static inline void take_given_datagram(void *user)
{
	struct dtls_given *g = user;

	ddps_sn_dtls_input(g->udp, &g->from, &g->to, g->octets, g->n, dtls_run);
}

/* A datagram from @port of @address (0: loopback) reaches @udp, in a turn of its loop. */
static inline void give_datagram(struct ddps_sn_sock *udp, uint32_t address, uint16_t port,
				 const void *p, size_t n)
{
	struct ddps_task task = { .fn = take_given_datagram, .user = &dtls_given };
	struct ddps_loop *loop = udp->ne->env->loop;
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(address ? address : INADDR_LOOPBACK),
	};

	cr_assert_leq(n, sizeof dtls_given.octets);
	memset(&dtls_given, 0, offsetof(struct dtls_given, octets));
	memcpy(&dtls_given.from, &to, sizeof to);
	dtls_given.to = ddps_sn_addr(&dtls_given.from);
	memcpy(&dtls_given.from, &from, sizeof from);
	memcpy(dtls_given.octets, p, n);
	dtls_given.udp = udp;
	dtls_given.n = n;
	ddps_task_post(loop, &task);
	cr_assert_geq(ddps_loop_run(loop), 0);
}

#endif
