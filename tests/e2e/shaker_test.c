/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of handshakes, next to the one that serves sessions. */
#include "secure/secure.h"
#include "session/session.h"
#include "support/e2e.h"
#include <pthread.h>

static struct ddps_tls_plugin watched;
static const struct ddps_tls_plugin *real;
static pthread_t served_by;
static unsigned used, by_server;

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

static int make_watched_tls(struct ddps_hs **out, const struct ddps_hs_conf *conf,
			    struct ddps_verdict *why)
{
	note_thread();
	return real->tls.make(out, conf, why);
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
