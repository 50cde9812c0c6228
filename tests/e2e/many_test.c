/* SPDX-License-Identifier: BSD-2-Clause */
/* Many sessions simultaneously: in one process, and on one SCTP association. */
#include "support/e2e.h"
#include "support/undumped.h"
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define NSESSIONS 1000
#define WAVE	  100 /* set-ups under way simultaneously */

struct many {
	struct ddps_ep *a[NSESSIONS], *b[NSESSIONS];
	unsigned started, na, nb, up, closed;
	uint8_t out[NSESSIONS][8], in[NSESSIONS][8];
	struct ddps_mr *mo, *mi;
};

static void serve_many_e2e(struct e2e *e, struct many *m)
{
	struct ddps_event ev;

	cr_assert_eq(ddps_event_wait(e->ctx, &ev, E2E_MS), 0, "no event for %d ms", E2E_MS);
	switch (ev.type) {
	case DDPS_EV_CONNECT_REQUEST: {
		struct ddps_sge sge = e2e_sge(m->in[m->nb], 8, m->mi);

		cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &m->b[m->nb]), 0);
		cr_assert_eq(ddps_post_recv(m->b[m->nb], m->nb, &sge, 1), 0);
		cr_assert_eq(ddps_accept(ev.request, m->b[m->nb], &e->accept), 0);
		m->nb++;
		break;
	}
	case DDPS_EV_ESTABLISHED:
		m->up++;
		if (ev.info.initiator)
			m->na++;
		break;
	case DDPS_EV_PEER_CLOSED:
		cr_expect_eq(ddps_disconnect(ev.ep), 0);
		break;
	case DDPS_EV_CLOSED:
		cr_expect_eq(ev.error.code, 0, "%s", ev.error.text);
		m->closed++;
		break;
	default:
		cr_assert_fail("unexpected event: %s: %s", ddps_event_name(ev.type), ev.error.text);
	}
}

static struct many *open_many_e2e(struct e2e *e, const char *wire)
{
	struct rlimit rl = { 8192, 8192 };
	struct many *m = calloc(1, sizeof *m);

	cr_assert(m);
	getrlimit(RLIMIT_NOFILE, &rl);
	if (rl.rlim_cur < 4096)
		rl.rlim_cur = rl.rlim_max < 4096 ? rl.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &rl);
	e2e_open(e, wire);
	e->attr.sq_depth = e->attr.rq_depth = 4;
	m->mo = e2e_reg(e, m->out, sizeof m->out, 0);
	m->mi = e2e_reg(e, m->in, sizeof m->in, DDPS_LOCAL_WRITE);
	return m;
}

/* Until there are @n, both ends of them up. */
static void connect_many_e2e(struct e2e *e, struct many *m, unsigned n)
{
	while (m->up < 2 * n) {
		while (m->started < n && m->started < m->na + WAVE) {
			cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &m->a[m->started]), 0);
			cr_assert_eq(ddps_connect(m->a[m->started], e->uri, &e->connect), 0);
			m->started++;
		}
		serve_many_e2e(e, m);
	}
}

/* Many at a time: their sessions are asked for then. */
static void take_many_e2e(struct e2e *e, unsigned n)
{
	struct ddps_wc wc[64];

	for (int k; n; n -= (unsigned)k) {
		k = ddps_cq_wait(e->cq, wc, n < 64 ? (int)n : 64, E2E_MS);
		cr_assert_gt(k, 0);
		for (int i = 0; i < k; i++)
			cr_assert_eq(wc[i].status, DDPS_WC_SUCCESS);
	}
}

static void thousand(const char *wire)
{
	unsigned before = e2e_fds();
	struct e2e e;
	struct many *m = open_many_e2e(&e, wire);

	e2e_fill(m->out[0], sizeof m->out, 3);
	connect_many_e2e(&e, m, NSESSIONS);
	for (unsigned i = 0; i < NSESSIONS; i++) {
		struct e2e_end end = { .ep = m->a[i] };

		cr_assert_eq(e2e_post(&end, DDPS_OP_SEND, m->out[i], 8, m->mo, 0, 0), 0);
	}
	take_many_e2e(&e, 2 * NSESSIONS);
	for (unsigned i = 0; i < NSESSIONS; i++)
		cr_assert_eq(ddps_disconnect(m->a[i]), 0);
	while (m->closed < 2 * NSESSIONS)
		serve_many_e2e(&e, m);
	for (unsigned i = 0; i < NSESSIONS; i++) {
		ddps_ep_free(m->a[i]);
		ddps_ep_free(m->b[i]);
	}
	e2e_close(&e);
	cr_expect_eq(e2e_fds(), before);
	free(m);
}

Test(many, thousand_sessions_over_tcp, .timeout = 120)
{
	thousand("tcp://127.0.0.1:0");
}

/* All go to one address, so they share one association. */
Test(many, thousand_sessions_on_one_association, .timeout = 120,
     .description = "5043-11.3-d2 5043-4-d1")
{
	thousand("sctp://127.0.0.1:0?backend=native&encap=0");
}

#ifdef __GLIBC__
/* What each idle session takes, both ends together, between the 20th and the last. */
static double measure_idle_octets(const char *wire)
{
	const unsigned first = 20, last = 220;
	struct e2e e;
	struct many *m = open_many_e2e(&e, wire);
	size_t before, after;

	connect_many_e2e(&e, m, first);
	before = mallinfo2().uordblks + undumped_octets();
	connect_many_e2e(&e, m, last);
	after = mallinfo2().uordblks + undumped_octets();
	for (unsigned i = 0; i < last; i++) {
		ddps_ep_free(m->a[i]);
		ddps_ep_free(m->b[i]);
	}
	e2e_close(&e);
	free(m);
	return (double)(after - before) / (last - first);
}

Test(many, an_idle_secured_session_takes_little_more_than_a_plain_one, .timeout = 120)
{
	double plain, tls;

#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("a sanitizer has a heap of its own");
#endif
	plain = measure_idle_octets("tcp://127.0.0.1:0");
	tls = measure_idle_octets("tls://127.0.0.1:0");
	cr_expect_leq(tls - plain, 2 * 4096.0, "%.0f octets more at both ends", tls - plain);
}
#endif
