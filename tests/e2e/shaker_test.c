/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of handshakes, next to the one that serves sessions. */
#include "secure/secure.h"
#include "session/session.h"
#include "support/e2e.h"
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct ddps_tls_plugin watched;
static const struct ddps_tls_plugin *real;
static pthread_t served_by;
static unsigned used, by_server;
#define FLOOD 150

/* Handshakes of a listener's that are under way. */
static pthread_mutex_t serving_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct ddps_hs *serving[FLOOD + 2];
static int under_way, most;

static void note_thread(void)
{
	used++;
	by_server += pthread_equal(pthread_self(), served_by) != 0;
}

static struct ddps_creds_set *use_watched(struct ddps_creds *c, uint64_t ms, int64_t now,
					  struct ddps_verdict *news)
{
	note_thread();
	return real->creds_use(c, ms, now, news);
}

/* Where it is, or that one behind the last. */
static int find_serving(const struct ddps_hs *hs)
{
	int i = 0;

	while (i < under_way && serving[i] != hs)
		i++;
	return i;
}

static int make_watched_tls(struct ddps_hs **out, const struct ddps_hs_conf *conf,
			    struct ddps_verdict *why)
{
	int err;

	note_thread();
	err = real->tls.make(out, conf, why);
	if (err || !conf->want.server)
		return err;
	pthread_mutex_lock(&serving_lock);
	cr_assert_lt(under_way, FLOOD + 2);
	serving[under_way++] = *out;
	if (under_way > most)
		most = under_way;
	pthread_mutex_unlock(&serving_lock);
	return 0;
}

static void free_watched_tls(struct ddps_hs *hs)
{
	int i;

	pthread_mutex_lock(&serving_lock);
	i = find_serving(hs);
	if (i < under_way)
		serving[i] = serving[--under_way];
	pthread_mutex_unlock(&serving_lock);
	real->tls.free(hs);
}

static int make_watched_dtls(struct ddps_hs **out, const struct ddps_hs_conf *conf,
			     struct ddps_verdict *why)
{
	note_thread();
	return real->dtls.make(out, conf, why);
}

static void watch_plugin(struct e2e *e)
{
	real = e->ctx->env.secure->plugin;
	watched = *real;
	watched.creds_use = use_watched;
	watched.tls.make = make_watched_tls;
	watched.tls.free = free_watched_tls;
	watched.dtls.make = make_watched_dtls;
	e->ctx->env.secure->plugin = &watched;
	served_by = pthread_self();
	used = by_server = 0;
}

/* A large file of revoked certificates stalls nobody's data. */
Test(shaker, files_are_read_next_to_the_thread_that_serves_sessions, .timeout = 60)
{
	static const char *const wires[] = { "tls://127.0.0.1:0", "sctps://127.0.0.1:0" };

	for (int i = 0; i < 2; i++) {
		struct e2e e;

		e2e_open(&e, wires[i]);
		watch_plugin(&e);
		e2e_connect(&e);
		cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
		cr_expect_eq(used, 4u, "%s: %u", wires[i], used);
		cr_expect_eq(by_server, 0u, "%s: %u", wires[i], by_server);
		e.ctx->env.secure->plugin = real;
		e2e_close(&e);
	}
}

/* ---- a flood ---- */

static int open_flood_socket(const char *from, uint16_t to)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, from, &in.sin_addr);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
	if (!to) {
		cr_assert_eq(listen(fd, 1), 0);
		return fd;
	}
	inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
	in.sin_port = htons(to);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	return fd;
}

/* What a dialler says first. */
static size_t record_hello(struct e2e *e, uint8_t *hello, size_t size)
{
	const int fd = open_flood_socket("127.0.0.1", 0);
	struct pollfd there = { .fd = fd, .events = POLLIN };
	struct sockaddr_in in;
	socklen_t len = sizeof in;
	struct ddps_conn_param p;
	struct ddps_ep *ep;
	char uri[64];
	ssize_t n;

	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	snprintf(uri, sizeof uri, "tls://127.0.0.1:%u", ntohs(in.sin_port));
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &ep), 0);
	ddps_conn_param_init(&p);
	cr_assert_eq(ddps_connect(ep, uri, &p), 0);
	while (!poll(&there, 1, 0))
		ddps_progress(e->ctx, 1);
	there.fd = accept(fd, NULL, NULL);
	while (!poll(&there, 1, 0))
		ddps_progress(e->ctx, 1);
	n = read(there.fd, hello, size);
	cr_assert(n > 100 && hello[0] == 22);
	close(there.fd);
	close(fd);
	ddps_ep_free(ep);
	return (size_t)n;
}

static struct ddps_ctx_stats get_flood_stats(struct e2e *e)
{
	struct ddps_ctx_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ctx_stats(e->ctx, &st), 0);
	return st;
}

/* Each costs its sender a hello, and us a handshake that stays under way. */
Test(shaker, attack_17_a_flood_of_handshakes_leaves_others_alone, .timeout = 60)
{
	uint8_t hello[4096];
	uint64_t begun;
	int fd[FLOOD];
	struct e2e e;
	size_t n;

	e2e_open(&e, "tls://127.0.0.1:0");
	n = record_hello(&e, hello, sizeof hello);
	watch_plugin(&e);
	under_way = most = 0;
	for (int i = 0; i < FLOOD; i++) {
		fd[i] = open_flood_socket("127.0.0.9", (uint16_t)atoi(strrchr(e.uri, ':') + 1));
		cr_assert_eq(write(fd[i], hello, n), (ssize_t)n);
	}
	while (get_flood_stats(&e).secured_held < FLOOD - 64)
		ddps_progress(e.ctx, 1);
	begun = ddps_now();
	e2e_connect(&e);
	cr_expect(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	cr_expect_lt(ddps_now() - begun, 4 * NSEC_PER_SEC, "not when the flood is given up");
	cr_expect_leq(most, 64, "%d", most);
	cr_expect_gt(most, 1, "%d", most);
	cr_expect_geq(get_flood_stats(&e).refused_gone, 1u, "one gave its place");
	e.ctx->env.secure->plugin = real;
	for (int i = 0; i < FLOOD; i++)
		close(fd[i]);
	e2e_close(&e);
}
