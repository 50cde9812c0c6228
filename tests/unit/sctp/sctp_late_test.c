/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers of many paths do not fire together: each path's are late by a part of its own. */
#include "sctp_raw_fixture.h"
#include "sctp_sent_fixture.h"

#define PORT 5000
#define MANY 64u
#define MOST (1 + 255 / 4096.0)

/* When T3, the tail probe and the probe of a closed window are due, ns from now. */
static void measure_late_timers(uint8_t late, uint64_t *t3, uint64_t *pto, uint64_t *zero)
{
	struct world w;
	uint64_t room;

	sent_begin(&w, 1, 1, 1 << 20);
	w.p[0].late = late;
	ddps_sent_rtt(&w.s, &w.p[0], 40 * MS, w.now);
	ddps_sent_begin(&w.s, &w.p[0], w.now);
	cr_assert_eq(ddps_sent_add_new(&w.s, 1016, 1000, (void *)((uintptr_t)w.s.next + 7)), 0);
	ddps_sent_end(&w.s, 1056, false);
	*pto = w.p[0].pto_at - w.now;
	cr_expect_geq(w.p[0].t3_at - w.now, ddps_sent_rto(&w.s, &w.p[0]), "never before RTO");
	w.now = w.p[0].pto_at;
	ddps_sent_timer(&w.s, &w.p[0], w.now);
	w.now = w.p[0].t3_at;
	cr_assert(ddps_sent_timer(&w.s, &w.p[0], w.now) & DDPS_SENT_EV_T3);
	*t3 = w.p[0].t3_at - w.now;
	cr_expect_geq(*t3, ddps_sent_rto(&w.s, &w.p[0]), "nor with back-off");
	sent_end(&w);

	sent_begin(&w, 1, 1, 0);
	w.p[0].late = late;
	cr_assert_eq(ddps_sent_may(&w.s, &w.p[0], w.now, 1000, &room), DDPS_SENT_NOTHING);
	*zero = ddps_sent_deadline(&w.s, &w.p[0]) - w.now;
	sent_end(&w);
}

Test(sctp_late, timers_of_the_sender_are_later_never_earlier)
{
	uint64_t sharp[3], late[3], latest[3];

	measure_late_timers(0, &sharp[0], &sharp[1], &sharp[2]);
	measure_late_timers(100, &late[0], &late[1], &late[2]);
	measure_late_timers(255, &latest[0], &latest[1], &latest[2]);
	for (int i = 0; i < 3; i++) {
		cr_expect_gt(late[i], sharp[i], "%d", i);
		cr_expect_gt(latest[i], late[i], "%d", i);
		cr_expect_leq((double)latest[i], MOST * (double)sharp[i], "%d", i);
	}
}

Test(sctp_late, a_larger_packet_is_tried_again_later_never_earlier)
{
	struct ddps_pmtu_limits lim = ddps_pmtu_limits(false, 1500);
	uint64_t at[2];

	for (int i = 0; i < 2; i++) {
		struct ddps_pmtu m;

		ddps_pmtu_init(&m, &lim);
		m.late = i ? 255 : 0;
		ddps_pmtu_start(&m, 0, 0);
		m.fail = 1404;
		ddps_pmtu_probe_acked(&m, 1400, 0); /* all is found */
		at[i] = ddps_pmtu_deadline(&m);
	}
	cr_expect_eq(at[0], 600000 * MS);
	cr_expect_gt(at[1], at[0]);
	cr_expect_leq((double)at[1], MOST * (double)at[0]);
}

/* ---- of an engine ---- */

static unsigned naccepted;

static void accept_sctp_late_session(void *user, struct ddps_sctp_assoc *a)
{
	(void)user;
	ddps_sctp_assoc_set_up(a, &sn_deaf, NULL);
	naccepted++;
}

/* @late: of each initiator's path */
static void open_many(struct sn_net *n, struct ddps_sctp_assoc **a, uint8_t *late)
{
	struct ddps_sctp_param p = { .port = PORT, .mtu = 1500 };
	struct ddps_sctp_config c;
	struct ddps_sctp_port *l;

	sn_init(n, 1);
	sn_config(n, &c);
	sn_boot(n, 0, &c);
	sn_boot(n, 1, &c);
	naccepted = 0;
	cr_assert_eq(ddps_sctp_listen(n->node[1].e, &p, accept_sctp_late_session, NULL, &l), 0);
	p.port = 0;
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(ddps_sctp_connect(n->node[0].e, &p, n->node[1].addr, 1, PORT,
					       n->node[1].udp, &sn_deaf, NULL, n->now, &a[i]),
			     0);
	sn_run(n, 1000 * MS);
	cr_assert_eq(naccepted, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		late[i] = a[i]->path[0]->tx.late;
		cr_expect_eq(a[i]->path[0]->tx.pmtu.late, late[i]);
	}
}

Test(sctp_late, associations_differ_and_a_seed_repeats_them)
{
	static struct ddps_sctp_assoc *a[MANY];
	uint8_t late[MANY], again[MANY];
	bool seen[256] = { false };
	unsigned distinct = 0;
	struct sn_net n;

	open_many(&n, a, late);
	sn_fini(&n);
	open_many(&n, a, again);
	sn_fini(&n);
	cr_expect_arr_eq(late, again, sizeof late);
	for (unsigned i = 0; i < MANY; i++) {
		distinct += !seen[late[i]];
		seen[late[i]] = true;
	}
	cr_expect_geq(distinct, MANY / 2, "%u of %u", distinct, MANY);
}

/* What is set is the longest that a SACK may take. */
Test(sctp_late, sacks_are_earlier_never_later, .description = "9260-6.2-7 9260-6.2-12")
{
	static struct raw r;
	uint64_t set, wait;

	raw_up(&r);
	set = r.e->c.sack_delay_ms * MS;
	for (unsigned late = 0; late < 256; late++) {
		uint32_t tsn = RAW_TSN + 2 * late; /* the second packet's SACK leaves immediately */

		r.a->path[0]->tx.late = (uint8_t)late;
		raw_data(&r, tsn, 0, 0, 7, "told");
		cr_expect(late == 0 || r.n == 1);
		raw_data(&r, tsn + 1, 0, 0, 7, "waits");
		cr_assert_eq(r.n, 0);
		wait = r.a->sack_at - r.net.now;
		cr_expect_leq(wait, set);
		cr_expect_geq(wait, set - set / 16);
		cr_expect(!late == (wait == set), "%u: %u us", late, (unsigned)(wait / 1000));
	}
	raw_fini(&r);
}
