/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session and an association hold, to the octet; and what starts over from nothing. */
#include "support/sd_world.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <stdlib.h>

#define LEN  20u /* of a message with its DDP-SSN */
#define COST ddps_sd_order_cost(LEN)

static struct sd_world w;
static struct ddps_sd_carrier *c;
static struct ddps_sd_pair *p;
static uint16_t next_ssn;

static void init(void)
{
	sd_world_init(&w);
	sd_raw_open(&w, 0);
	c = sd_carrier_of(&w, 0);
	p = ddps_sd_pair_find(c, 0);
	next_ssn = 2; /* one is missing */
}

static void fini(void)
{
	sd_world_fini(&w);
}

TestSuite(sd_bounds, .init = init, .fini = fini, .timeout = 30);

static void bring_bounds_message(void)
{
	uint8_t m[LEN] = { (uint8_t)(next_ssn >> 8), (uint8_t)next_ssn };

	next_ssn++;
	ddps_sd_rx_message(c, 0, DDPS_SD_PPID_SEGMENT, m, sizeof m);
	sd_run(&w);
}

Test(sd_bounds, a_session_holds_all_that_it_may, .description = "5043-10-5")
{
	bring_bounds_message();
	sd_weigh_held(p, DDPS_SD_HELD_SESSION - COST);
	bring_bounds_message();
	cr_expect_eq(w.req[0].closes, 0);
	cr_expect_eq(p->rx.octets, DDPS_SD_HELD_SESSION);
	bring_bounds_message();
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_LIMIT);
}

Test(sd_bounds, an_association_holds_all_that_it_may, .description = "5043-10-5")
{
	sd_send(&w, c->assoc->peer, 1, "0000 0001");
	sd_send_segment(&w, c->assoc->peer, 1, 2, 0);
	sd_weigh_held(ddps_sd_pair_find(c, 1), DDPS_SD_HELD_ASSOC - COST);
	bring_bounds_message();
	cr_expect_eq(w.req[0].closes, 0);
	cr_expect_eq(c->held, DDPS_SD_HELD_ASSOC);
	bring_bounds_message();
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_LIMIT);
}

/* ---- a session that stalls ---- */

static void stall(void)
{
	w.req[0].rx_result = DDPS_LLP_HOLD;
	next_ssn = 1;
	bring_bounds_message();
	cr_assert(p->waits);
	cr_assert_not(c->paused);
}

/* With @octets and @count in the session and @held in the association, it is read or not. */
static void check_read_bounds(size_t octets, unsigned count, size_t held, bool paused)
{
	p->rx.octets = octets - COST;
	p->rx.count = count - 1;
	c->held = held - COST;
	bring_bounds_message();
	cr_expect_eq(c->paused, paused, "%zu octets in %u, of %zu", octets, count, held);
	cr_expect_eq(ddps_timer_runs(&c->pause_timer), paused);
}

Test(sd_bounds, octets_of_a_stalled_session)
{
	stall();
	check_read_bounds(DDPS_SD_STALL_OCTETS - 1, 3, 1u << 20, false);
	check_read_bounds(DDPS_SD_STALL_OCTETS, 3, 1u << 20, true);
	check_read_bounds(DDPS_SD_STALL_OCTETS / 2, 3, 1u << 20, true);
	check_read_bounds(DDPS_SD_STALL_OCTETS / 2 - 1, 3, 1u << 20, false);
	check_read_bounds(DDPS_SD_STALL_OCTETS - 1, 3, 1u << 20, false);
}

Test(sd_bounds, messages_of_a_stalled_session)
{
	stall();
	check_read_bounds(1u << 20, DDPS_SD_STALL_MESSAGES - 1, 1u << 20, false);
	check_read_bounds(1u << 20, DDPS_SD_STALL_MESSAGES, 1u << 20, true);
	check_read_bounds(1u << 20, DDPS_SD_STALL_MESSAGES / 2, 1u << 20, true);
	check_read_bounds(1u << 20, DDPS_SD_STALL_MESSAGES / 2 - 1, 1u << 20, false);
	check_read_bounds(1u << 20, DDPS_SD_STALL_MESSAGES - 1, 1u << 20, false);
}

Test(sd_bounds, octets_of_all_stalled_sessions)
{
	stall();
	check_read_bounds(1u << 20, 3, DDPS_SD_STALL_ASSOC - 1, false);
	check_read_bounds(1u << 20, 3, DDPS_SD_STALL_ASSOC, true);
	check_read_bounds(1u << 20, 3, DDPS_SD_STALL_ASSOC / 2, true);
	check_read_bounds(1u << 20, 3, DDPS_SD_STALL_ASSOC / 2 - 1, false);
	check_read_bounds(1u << 20, 3, DDPS_SD_STALL_ASSOC - 1, false);
}

/* ---- where the window can be made smaller ---- */

static struct ddps_sd_backend keeps;
static size_t kept;
static unsigned calls;
static bool shut;

static bool keep_bounds_octets(struct ddps_sd_assoc *a, size_t octets)
{
	(void)a;
	kept = octets;
	calls++;
	return shut;
}

/* So much is beyond its share: then so much is taken off, by a call or by an earlier one. */
static void beyond(size_t over, size_t off, bool called, bool paused)
{
	unsigned before = calls;

	p->rx.octets = DDPS_SD_STALL_OCTETS + over - COST;
	c->held = 1u << 20;
	bring_bounds_message();
	cr_expect_eq(kept, off, "%zu", over);
	cr_expect_eq(calls - before, called, "%zu", over);
	cr_expect_eq(c->paused, paused, "%zu", over);
}

Test(sd_bounds, twice_what_is_beyond_the_share_is_taken_off, .description = "5043-10-5")
{
	keeps = *c->b;
	keeps.keep = keep_bounds_octets;
	stall();
	c->b = &keeps;
	beyond(0, 0, false, false);
	beyond(1, 2, true, false);
	beyond(300, 600, true, false);
	beyond(300, 600, false, false);
	beyond(600, 1200, true, false);
	beyond(400, 800, true, false);
	beyond(800, 1600, true, false);
	shut = true;
	beyond(1000, 2000, true, true);
	shut = false;
	beyond(501, 1002, true, true);
	beyond(501, 1002, false, true);
	beyond(500, 1000, true, false);
	c->b = &fake_sctp;
}

Test(sd_bounds, a_pause_is_looked_at_again)
{
	stall();
	ddps_timer_stop(w.env.loop, &c->pause_timer);
	ddps_sd_rx_pause_over(c);
	cr_expect(ddps_timer_runs(&c->pause_timer));
	cr_expect_eq(w.req[0].closes, 0, "nobody waits behind it");
	ddps_timer_stop(w.env.loop, &c->pause_timer);
}

/* ---- from nothing ---- */

Test(sd_bounds, a_pair_sends_from_nothing)
{
	long live = mem_live();

	p->pd = malloc(10);
	p->pd_len = 10;
	p->ctl = DDPS_SD_ACCEPT;
	p->term_due = p->owe_term = p->want_seg = true;
	p->tx = 7;
	p->base = 5;
	p->probe_seq = 4;
	p->ctl_seq = 3;
	ddps_sd_tx_control(p);
	ddps_sd_tx_wait_dry(p, DDPS_SD_WHENEVER);
	cr_expect_eq(c->ndry, 1);
	ddps_sd_tx_reset(p);
	cr_expect_null(p->pd);
	cr_expect_eq(p->ctl, 0);
	cr_expect_not(p->term_due);
	cr_expect_not(p->owe_term);
	cr_expect_not(p->want_seg);
	cr_expect_eq(p->tx, 0);
	cr_expect_eq(p->base, 0);
	cr_expect_eq(p->probe_seq, 0);
	cr_expect_eq(p->ctl_seq, 0);
	cr_expect_not(p->in_ctl);
	cr_expect_not(p->in_seg);
	cr_expect_not(p->in_dry);
	cr_expect_eq(c->ndry, 0);
	cr_expect(TAILQ_EMPTY(&c->ctl));
	cr_expect(TAILQ_EMPTY(&c->seg));
	cr_expect(TAILQ_EMPTY(&c->dry));
	cr_expect_eq(mem_live(), live);
}

Test(sd_bounds, a_pair_takes_from_nothing)
{
	stall();
	p->closing = true;
	cr_expect_eq(c->nwaiting, 1);
	((struct ddps_sd_session *)w.req[0].llp)->stalled = false;
	ddps_sd_rx_reset(p);
	cr_expect_not(p->closing);
	cr_expect_eq(p->rx.count, 0);
	cr_expect_eq(c->held, 0);
	cr_expect_eq(c->nwaiting, 0);
}

Test(sd_bounds, an_association_sends_from_nothing)
{
	c->sent = 10;
	c->acked = 4;
	c->asked = c->quiet = c->blocked = true;
	ddps_sd_tx_quiet(c, true);
	cr_expect(ddps_timer_runs(c->quiet_timer));
	ddps_sd_tx_restart(c);
	cr_expect_eq(c->acked, 10);
	cr_expect_not(c->asked);
	cr_expect_not(c->quiet);
	cr_expect_not(c->blocked);
	cr_expect_not(ddps_timer_runs(c->quiet_timer));
}

Test(sd_bounds, a_dry_association_need_not_be_silent)
{
	ddps_sd_tx_quiet(c, true);
	c->asked = c->quiet = true;
	ddps_sd_tx_dry(c);
	cr_expect_not(ddps_timer_runs(c->quiet_timer));
	cr_expect_not(c->quiet);
	cr_expect_not(c->asked);
}
