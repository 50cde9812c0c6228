/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer inside DTLS is judged again before each session, next to the loop. */
#include "support/clock.h"
#include "sctp_ddp/backend/native/sd_native.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"
#include "support/clock.h"
#include "support/e2e.h"
#include <ddpsess/secure.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define SCTPS "sctps://127.0.0.1:0"

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
