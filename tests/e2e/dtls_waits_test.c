/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes of DTLS that wait for their turn, and peers that shake hands and say nothing: what there is of them. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/sd_assoc.h"
#include "secure/secure.h"
#include "session/session.h"
#include "support/clock.h"
#include "support/e2e.h"
#include "support/rough.h"
#include "sctp_ddp/backend/native/sd_native.h"
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <ddpsess/secure.h>
#include <limits.h>
#include <pthread.h>
#include <time.h>

#define SCTPS "sctps://127.0.0.1:0"
#define PEERS 70u /* 64 may be under way */

/* ---- the thread of handshakes stands still at a listener's ---- */

static struct ddps_tls_plugin slow;
static const struct ddps_tls_plugin *fast;
static atomic_bool stands;
static atomic_uint made, most_in;
static sem_t go;

static int make_slow_dtls(struct ddps_hs **out, const struct ddps_hs_conf *conf,
			  struct ddps_verdict *why)
{
	made += conf->want.server;
	if (conf->want.server && stands)
		sem_wait(&go);
	return fast->dtls.make(out, conf, why);
}

static enum ddps_hs_state note_dtls_step(struct ddps_hs *h, const uint8_t *in, size_t n,
					 int64_t now)
{
	if (n > most_in)
		most_in = (unsigned)n;
	return fast->dtls.step(h, in, n, now);
}

static void stop_shaker_thread(struct e2e *e)
{
	fast = e->ctx->env.secure->plugin;
	slow = *fast;
	slow.dtls.make = make_slow_dtls;
	slow.dtls.step = note_dtls_step;
	e->ctx->env.secure->plugin = &slow;
	sem_init(&go, 0, 0);
	made = most_in = 0;
	stands = true;
}

static void let_shaker_go(void)
{
	stands = false;
	sem_post(&go);
}

static struct ddps_sd_endpoint *endpoint_of(struct e2e *e)
{
	struct ddps_sd_provider *prov = e->ctx->env.sctp;
	struct ddps_sn_env *ne = prov->slot[0].ctx;

	return LIST_FIRST(&ne->endpoints);
}

static unsigned count_dtls_peers(struct e2e *e)
{
	struct ddps_sn_dtls *c;
	unsigned n = 0;

	LIST_FOREACH(c, &endpoint_of(e)->conns, of_ep)
		n++;
	return n;
}

/* ---- what a dialler says ---- */

/* Octets of its first ClientHello. */
static size_t overhear_hello(struct e2e *e, uint8_t *hello, size_t size)
{
	uint16_t port;
	char uri[64];
	ssize_t n;
	int fd = rough_udp(&port);

	snprintf(uri, sizeof uri, "sctps://127.0.0.1:%u", port);
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, uri, &e->connect), 0);
	n = rough_receive(e, fd, hello, size, E2E_MS);
	cr_assert(n > 60 && hello[13] == 1);
	ddps_ep_free(e->a.ep);
	e->a = (struct e2e_end){ 0 };
	close(fd);
	return (size_t)n;
}

static void add_to_length(uint8_t *p, size_t n)
{
	n += (size_t)p[0] << 8 | p[1];
	p[0] = (uint8_t)(n >> 8);
	p[1] = (uint8_t)n;
}

/* The second ClientHello, with the cookie of @fd (RFC 6347 4.2.1); its octets. */
static size_t hello_with_cookie(struct e2e *e, int fd, const uint8_t *hello, size_t n, uint8_t *out)
{
	uint8_t answer[2048];
	size_t at = 13 + 12 + 2 + 32, cookie;

	cr_assert_eq(send(fd, hello, n, 0), (ssize_t)n);
	cr_assert(rough_receive(e, fd, answer, sizeof answer, E2E_MS) > 28);
	cr_assert_eq(answer[13], 3, "HelloVerifyRequest");
	at += 1u + hello[at]; /* session */
	cr_assert_eq(hello[at], 0);
	cookie = answer[27];
	memcpy(out, hello, at);
	memcpy(out + at, answer + 27, 1 + cookie);
	memcpy(out + at + 1 + cookie, hello + at + 1, n - at - 1);
	out[10]++; /* number of the record; of the message */
	out[18]++;
	add_to_length(out + 11, cookie);
	add_to_length(out + 15, cookie);
	add_to_length(out + 23, cookie);
	return n + cookie;
}

/* A peer that waits has no more time than others, and takes no step when nobody is there any more. */
Test(dtls_waits, who_waits_has_the_same_ten_seconds_and_what_is_kept_is_its_hello, .timeout = 60)
{
	static uint8_t hello[2048], second[65000];
	struct ddps_sn_dtls *c;
	size_t n, len = 0, kept = 0;
	unsigned waiting = 0;
	uint64_t begun, took;
	int fd[PEERS];
	uint16_t port;
	struct e2e e;

	e2e_open(&e, SCTPS);
	n = overhear_hello(&e, hello, sizeof hello);
	stop_shaker_thread(&e);
	for (unsigned i = 0; i < PEERS; i++) {
		fd[i] = rough_udp(&port);
		rough_aim(fd[i], e.uri);
		memset(second, 0, sizeof second);
		len = hello_with_cookie(&e, fd[i], hello, n, second);
		cr_assert_eq(send(fd[i], second, sizeof second, 0), (ssize_t)sizeof second);
		while (count_dtls_peers(&e) <= i)
			ddps_progress(e.ctx, 1);
	}
	begun = read_clock_ms();
	for (unsigned i = 0; i < PEERS; i++)
		for (unsigned k = 0; k < 8; k++) {
			second[0] =
				k % 2 ? 22 : 23; /* the hello again, and what seems to be data */
			second[4] = k % 2 ? 0 : 1;
			cr_assert_eq(send(fd[i], second, len, 0), (ssize_t)len);
			ddps_progress(e.ctx, 0);
		}
	cr_expect_eq(rough_receive(&e, fd[0], second, sizeof second, 50), -1);
	LIST_FOREACH(c, &endpoint_of(&e)->conns, of_ep)
		if (ddps_shake_waits(c->shake)) {
			waiting++;
			kept += c->todo.len + c->early.len;
		}
	cr_expect_eq(waiting, PEERS - 64);
	cr_expect_eq(kept, 0, "%zu octets", kept);
	while (count_dtls_peers(&e) && read_clock_ms() - begun < 15000)
		ddps_progress(e.ctx, 10);
	took = read_clock_ms() - begun;
	cr_expect_eq(count_dtls_peers(&e), 0);
	cr_expect(took > 8000 && took < 13000, "%u ms", (unsigned)took);
	let_shaker_go();
	e2e_connect(&e);
	cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	cr_expect_eq(made, 2, "%u: one was taken already", made);
	cr_expect_lt(most_in, 8192, "%u", most_in);
	e.ctx->env.secure->plugin = fast;
	for (unsigned i = 0; i < PEERS; i++)
		close(fd[i]);
	e2e_close(&e);
}

/* A cookie is good for a minute at least, and for two at most. */
Test(dtls_waits, the_secret_of_cookies_lasts_a_minute, .timeout = 60)
{
	static const unsigned ago[] = { 55, 61 };
	uint8_t hello[2048], before[DDPS_DHS_SECRET];
	struct ddps_sn_dtls_table *t;
	uint16_t port;
	struct e2e e;
	size_t n;
	int fd = rough_udp(&port);

	e2e_open(&e, SCTPS);
	n = overhear_hello(&e, hello, sizeof hello);
	rough_aim(fd, e.uri);
	t = endpoint_of(&e)->sock->table;
	memcpy(before, t->secret[0], sizeof before);
	for (unsigned i = 0; i < 2; i++) {
		t->secret_at = ddps_now() - ago[i] * NSEC_PER_SEC;
		cr_assert_eq(send(fd, hello, n, 0), (ssize_t)n);
		cr_assert(rough_receive(&e, fd, hello, 1, E2E_MS) > 0);
		hello[0] = 22;
		cr_expect_eq(memcmp(t->secret[i], before, sizeof before), 0, "%u s", ago[i]);
		cr_expect_eq(!memcmp(t->secret[0], before, sizeof before), !i, "%u s", ago[i]);
	}
	close(fd);
	e2e_close(&e);
}

static uint64_t count_refused_gone(struct e2e *e)
{
	struct ddps_ctx_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ctx_stats(e->ctx, &st), 0);
	return st.refused_gone;
}

/* It would be kept while it waits. */
Test(dtls_waits, a_hello_of_more_than_4096_octets_is_refused, .timeout = 60)
{
	static uint8_t hello[8192], answer[2048];
	uint16_t port;
	struct e2e e;
	int fd = rough_udp(&port);

	e2e_open(&e, SCTPS);
	overhear_hello(&e, hello, sizeof hello);
	rough_aim(fd, e.uri);
	hello[11] = 4097 >> 8;
	hello[12] = 4097 & 255;
	cr_assert(send(fd, hello, 13 + 4097, 0) > 0);
	cr_expect_eq(rough_receive(&e, fd, answer, sizeof answer, 50), -1);
	cr_expect_eq(count_refused_gone(&e), 1);
	close(fd);
	e2e_close(&e);
}

/* ---- who opens nothing ---- */

static bool has_open_peer(struct e2e *e)
{
	const struct ddps_sn_dtls *c = LIST_FIRST(&endpoint_of(e)->conns);

	return c && c->state == DDPS_SN_OPEN;
}

/* Its last flight comes again, which puts nothing off. */
Test(dtls_waits, who_opens_nothing_stays_ten_seconds_whatever_it_repeats, .timeout = 60)
{
	uint64_t begun, took;
	struct rough r;
	struct e2e e;

	e2e_open(&e, SCTPS);
	rough_begin_mute(&r, &e);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	e.connect.connect_ms = 30000;
	cr_assert_eq(ddps_connect(e.a.ep, e.uri, &e.connect), 0);
	while (!has_open_peer(&e))
		ddps_progress(e.ctx, 1);
	begun = read_clock_ms();
	while (count_dtls_peers(&e) && read_clock_ms() - begun < 15000)
		ddps_progress(e.ctx, 10);
	took = read_clock_ms() - begun;
	cr_expect(took > 8000 && took < 13000, "%u ms", (unsigned)took);
	e2e_close(&e);
	rough_end(&r);
}

/* ---- a plain listener ---- */

static void say_client_hello(int fd, uint16_t to)
{
	const struct sockaddr_in sa = { .sin_family = AF_INET,
					.sin_port = htons(to),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint8_t p[64] = { DDPS_DTLS_HANDSHAKE, 254, 253 };

	p[12] = sizeof p - DDPS_DTLS_HEADER;
	p[DDPS_DTLS_HEADER] = 1;
	cr_assert_eq(sendto(fd, p, sizeof p, 0, (const struct sockaddr *)&sa, sizeof sa),
		     (ssize_t)sizeof p);
}

static void await_refusals(struct e2e *e, uint64_t n)
{
	const uint64_t *const refused = &e->ctx->env.refused[DDPS_REFUSED_PROTOCOL];

	for (int i = 0; i < E2E_MS && *refused < n; i++)
		ddps_progress(e->ctx, 1);
	cr_assert_eq(*refused, n);
}

static void age_refusals(struct e2e *e, uint64_t seconds)
{
	const struct ddps_sd_provider *prov = e->ctx->env.sctp;
	struct ddps_sn_env *ne = prov->slot[0].ctx;

	for (unsigned i = 0; i < DDPS_SN_REFUSED; i++)
		if (ne->refused[i].at)
			ne->refused[i].at -= seconds * NSEC_PER_SEC;
}

/* A handshake repeats its first datagram, in the end once a minute. */
Test(dtls_waits, a_plain_listener_says_once_that_a_peer_speaks_dtls, .timeout = 60)
{
	struct e2e e;
	uint16_t port, to;
	int fd = rough_udp(&port), other[3];

	e2e_open(&e, "sctp://127.0.0.1:0?backend=native&encap=0");
	to = (uint16_t)strtoul(strstr(e.uri, "encap=") + 6, NULL, 10);
	say_client_hello(fd, to);
	await_refusals(&e, 1);
	for (unsigned i = 0; i < 3; i++) {
		age_refusals(&e, 50);
		say_client_hello(fd, to);
		other[i] = rough_udp(&port); /* whose is behind it */
		say_client_hello(other[i], to);
		await_refusals(&e, 2 + i);
	}
	age_refusals(&e, 65);
	say_client_hello(fd, to);
	await_refusals(&e, 5);
	e2e_close(&e);
	for (unsigned i = 0; i < 3; i++)
		close(other[i]);
	close(fd);
}

/* ---- a peer inside DTLS is judged again before each session, next to the loop ---- */

static struct {
	pthread_t loop;
	atomic_uint calls, from_loop;
	atomic_uint accepted; /* so many are let in, ... */
	bool then_all;	      /* ... one is not, and the others are */
} bench;

static int judge_on_bench(void *user, const struct ddps_peer_id *id)
{
	const unsigned nr = bench.calls++;

	(void)user;
	(void)id;
	bench.from_loop += pthread_equal(pthread_self(), bench.loop) != 0;
	return bench.then_all ? nr == bench.accepted : nr >= bench.accepted;
}

/* A session, and another one on the same association in another second, if that is let in. */
static void call_twice(struct e2e *e, struct e2e_end first[2], unsigned accepted)
{
	struct ddps_ctx_attr attr;
	time_t then;

	bench.loop = pthread_self();
	bench.calls = bench.from_loop = 0;
	bench.accepted = UINT_MAX;
	ddps_ctx_attr_init(&attr);
	attr.secure = e2e_secure_judged(judge_on_bench, NULL);
	e2e_open_with(e, SCTPS, &attr);
	ddps_secure_close(attr.secure);
	e2e_connect(e);
	cr_assert_eq(e->a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e->a.error.text);
	cr_expect_eq(bench.calls, 2, "both ends, by the handshake");
	bench.accepted = accepted == UINT_MAX ? accepted : bench.calls + accepted;
	for (then = time(NULL); time(NULL) == then;)
		ddps_progress(e->ctx, 10);
	first[0] = e->a;
	first[1] = e->b;
	e->a = e->b = (struct e2e_end){ 0 };
	e->connect.connect_ms = 3000;
	e2e_connect(e);
}

static void end_judged_sessions(struct e2e *e, struct e2e_end first[2])
{
	for (int i = 0; i < 2; i++)
		ddps_ep_free(first[i].ep);
	e2e_close(e);
}

Test(dtls_judged, next_to_the_loop_and_before_each_session, .timeout = 60)
{
	struct e2e_end first[2];
	struct e2e e;

	call_twice(&e, first, UINT_MAX);
	cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	cr_expect_eq(bench.calls, 4);
	cr_expect_eq(bench.from_loop, 0);
	end_judged_sessions(&e, first);
}

/* By the dialler, which has a request that waits, or by the listener, which has one that came. */
Test(dtls_judged, who_is_refused_opens_no_more_sessions_and_the_first_goes_on, .timeout = 60)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
		struct e2e_end first[2];
		struct e2e e;

		call_twice(&e, first, i);
		cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_FAILED), "%u", i);
		cr_expect_eq(e.b.seen, 0);
		cr_expect_eq(bench.from_loop, 0);
		cr_assert_eq(ddps_post_recv(first[1].ep, 0, NULL, 0), 0);
		cr_assert_eq(ddps_post_send(first[0].ep, &wr), 0);
		for (int k = 0; k < 2; k++)
			cr_expect_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
		end_judged_sessions(&e, first);
	}
}

/* The listener refuses a new handshake: both go on with the keys that they have. */
Test(dtls_judged, who_is_refused_new_keys_goes_on_with_the_old_ones, .timeout = 60)
{
	const struct ddps_send_wr wr = { .op = DDPS_OP_SEND };
	struct ddps_sd_provider *prov;
	struct ddps_sn_env *ne;
	struct ddps_ctx_attr attr;
	struct e2e e;

	bench.calls = 0;
	bench.accepted = UINT_MAX;
	ddps_ctx_attr_init(&attr);
	attr.secure = e2e_secure_judged(judge_on_bench, NULL);
	e2e_open_with(&e, SCTPS, &attr);
	ddps_secure_close(attr.secure);
	prov = e.ctx->env.sctp;
	ne = prov->slot[0].ctx;
	ne->renew_at = 40;
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	bench.then_all =
		true; /* the dialler would take them: it is judged first, by the listener */
	bench.accepted = 2;
	for (uint64_t refused_at = 0; !refused_at || read_clock_ms() - refused_at < 500;) {
		cr_assert_eq(ddps_post_recv(e.b.ep, 0, NULL, 0), 0);
		cr_assert_eq(ddps_post_send(e.a.ep, &wr), 0);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
		if (bench.calls > 2 && !refused_at)
			refused_at = read_clock_ms();
	}
	cr_expect_eq(ne->env->secured.renewed, 0);
	e2e_close(&e);
}
