/* SPDX-License-Identifier: BSD-2-Clause */
/* Reception in DDP-SSN order, its limits, and a layer above that leaves in the middle. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct sd_world w;

static void init(void)
{
	sd_world_init(&w);
}

static void fini(void)
{
	sd_world_fini(&w);
}

TestSuite(sd_rx, .init = init, .fini = fini, .timeout = 30);

/* ---- order ---- */

Test(sd_rx, random_order_gives_the_same_as_in_order,
     .description = "5043-6.1-d2 5043-10-2 5043-6-1")
{
	for (uint32_t seed = 1; seed <= DDPS_SD_IDLE_PEER; seed++) {
		struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
		struct sd_ulp *u = &w.req[w.nreq - 1];

		raw->peer->hold = true;
		raw->peer->reorder = seed;
		for (uint16_t i = 0; i < 200; i++)
			sd_push_segment(raw, 0, (uint16_t)(i + 1), i, 20 + i);
		fake_sctp_raw_send(raw, 0, DDPS_SD_PPID_CONTROL, "\0\xc9\0\4", 4);
		raw->peer->hold = false;
		fake_sctp_poke(raw->peer);
		sd_run(&w);
		cr_expect_eq(u->segments, 200);
		cr_expect_not(u->out_of_order);
		cr_expect_eq(u->peer_closes, 1);
		cr_expect_eq(u->closes, 1);
		cr_expect_eq(u->error.code, 0);
		cr_expect_eq(u->last_len, 219);
		sd_expect(raw, 0, "0001 0004");
		cr_expect_eq(sd_carrier_of(&w, seed - 1)->held, 0);
	}
}

Test(sd_rx, window_edges, .description = "5043-10-6 5043-10-d1")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send_segment(&w, raw, 0, 1 + 32767, 0); /* the last one that may be ahead */
	cr_expect_eq(w.req[0].closes, 0);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, ddps_sd_order_cost(SD_SEG_HDR + 2));
	sd_send_segment(&w, raw, 0, (uint16_t)(1 + 32768), 0);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_PROTOCOL);
	/* the payload is not kept for a dead session */
	cr_expect_eq(sd_carrier_of(&w, 0)->held, ddps_sd_order_cost(2));
}

Test(sd_rx, ssn_wraps, .description = "5043-5.2.1-1 5043-6-1")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	for (uint32_t i = 0; i < 140000; i++) {
		sd_push_segment(raw, 0, (uint16_t)(i + 1), i, SD_SEG_HDR);
		if (i % 1000 == 0)
			sd_run(&w);
	}
	sd_run(&w);
	cr_expect_eq(u->segments, 140000);
	cr_expect_not(u->out_of_order);
	cr_expect_eq(u->closes, 0);
}

Test(sd_rx, duplicate_ahead_of_order)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send_segment(&w, raw, 0, 5, 4);
	sd_send_segment(&w, raw, 0, 5, 4);
	cr_expect_eq(w.req[0].error.code, DDPS_E_PROTOCOL);
}

Test(sd_rx, bounded_memory_out_of_order, .description = "5043-10-5")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	size_t len = 60000, n = DDPS_SD_HELD_SESSION / ddps_sd_order_cost(len + 2);

	for (size_t i = 0; i < n; i++)
		sd_push_segment(raw, 0, (uint16_t)(i + 2), 0, len);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 0);
	sd_push_segment(raw, 0, (uint16_t)(n + 2), 0, len);
	sd_run(&w);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_LIMIT);
	cr_expect_eq(sd_carrier_of(&w, 0)->held, n * ddps_sd_order_cost(2));
	sd_expect(raw, 0, "0001 0004");
}

Test(sd_rx, bounded_memory_of_an_association)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	size_t len = 60000, n = DDPS_SD_HELD_SESSION / ddps_sd_order_cost(len + 2);
	unsigned dead = 0;

	for (uint16_t s = 1; s < 5; s++) {
		sd_send(&w, raw, s, "0000 0001");
		sd_expect(raw, s, "0000 0002");
	}
	for (uint16_t s = 0; s < 5; s++)
		for (size_t i = 0; i < n; i++)
			sd_push_segment(raw, s, (uint16_t)(i + 2), 0, len);
	sd_run(&w);
	for (unsigned i = 0; i < 5; i++)
		dead += w.req[i].closes;
	cr_expect_eq(dead, 1); /* the fifth was one too many, and gave back what it had */
	cr_expect_leq(sd_carrier_of(&w, 0)->held, DDPS_SD_HELD_ASSOC);
}

/* ---- the layer above in the middle of it ---- */

Test(sd_rx, freed_inside_an_upcall)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	w.req[0].free_on_segment = true;
	sd_push_segment(raw, 0, 2, 1, SD_SEG_HDR);
	sd_push_segment(raw, 0, 3, 2, SD_SEG_HDR);
	sd_push_segment(raw, 0, 1, 0, SD_SEG_HDR);
	sd_run(&w);
	cr_expect_eq(w.req[0].segments, 1);
	sd_expect_silence(raw);
	cr_expect_null(raw->peer, "the association went with its only session");
}

/* Others use the association: it stays. */
Test(sd_rx, freed_inside_an_upcall_with_others_there)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	sd_send(&w, raw, 2, "0000 0001");
	sd_expect(raw, 2, "0000 0002");
	w.req[0].free_on_segment = true;
	sd_push_segment(raw, 0, 2, 1, SD_SEG_HDR);
	sd_push_segment(raw, 0, 3, 2, SD_SEG_HDR);
	sd_push_segment(raw, 0, 1, 0, SD_SEG_HDR);
	sd_run(&w);
	cr_expect_eq(w.req[0].segments, 1);
	sd_expect(raw, 0, "0001 0004");
	sd_send(&w, raw, 0, "0004 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

Test(sd_rx, aborted_inside_an_upcall)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	w.req[0].abort_on_segment = true;
	sd_push_segment(raw, 0, 2, 1, SD_SEG_HDR);
	sd_push_segment(raw, 0, 1, 0, SD_SEG_HDR);
	sd_run(&w);
	cr_expect_eq(w.req[0].segments, 1);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_CLOSED);
	sd_expect_silence(raw);
	cr_expect_null(raw->peer, "the association went with its only session");
}

Test(sd_rx, error_above_silences_reception)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[0];

	u->rx_result = -1;
	sd_send_segment(&w, raw, 0, 1, 0);
	sd_send_segment(&w, raw, 0, 2, 1);
	cr_expect_eq(u->segments, 1);
	/* its RDMAP Terminate still leaves, before the session's */
	u->to_send = 1;
	u->llp->ops->kick(u->llp);
	u->llp->ops->shutdown(u->llp);
	sd_run(&w);
	free(fake_sctp_raw_take(raw));
	sd_expect(raw, 0, "0002 0004");
	sd_send(&w, raw, 0, "0003 0004");
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, 0);
}

/* ---- what is kept ---- */

/* Its messages become useless as soon as it drains, not only when the pair is free. */
Test(sd_rx, a_pair_that_drains_holds_nothing)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_carrier *c;

	w.accept = false;
	raw = sd_raw_to_listener(&w);
	c = sd_carrier_of(&w, 0);
	raw->peer->hold_dry = true;
	sd_send(&w, raw, 0, "0000 0001");
	sd_send_segment(&w, raw, 0, 2, 1);
	cr_expect_gt(c->held, 0);
	w.req[0].llp->ops->abort(w.req[0].llp);
	sd_run(&w);
	cr_assert_eq(sd_state(&w, 0, 0), DDPS_SD_DRAIN);
	cr_expect_eq(c->held, 0);
	cr_expect_eq(ddps_sd_pair_find(c, 0)->rx.count, 0);
}

/* Of what comes for a session that was given up only the number counts. */
Test(sd_rx, of_a_dead_session_only_numbers_are_held, .description = "5043-10-5")
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	w.req[0].llp->ops->abort(w.req[0].llp);
	sd_run(&w);
	sd_push_segment(raw, 0, 2, 1, 1000);
	sd_send(&w, raw, 0, "0003 0004");
	cr_expect_eq(c->held, ddps_sd_order_cost(DDPS_SD_SSN_LEN) + ddps_sd_order_cost(4));
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
	cr_expect_eq(c->held, 0);
}

/* The table of many messages is given back with the last of them. */
Test(sd_rx, a_large_table_is_given_back)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);

	for (uint16_t i = 2; i < 2050; i++)
		sd_push_segment(raw, 0, i, i - 1u, SD_SEG_HDR);
	sd_run(&w);
	cr_expect_eq(sd_pair_of(&w.req[0])->rx.nslot, 2048);
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[0].segments, 2049);
	cr_expect_eq(sd_pair_of(&w.req[0])->rx.nslot, 0);
}

/* The message that could not be kept has had its number: the Terminate behind it has its turn. */
Test(sd_rx, what_cannot_be_held_back_is_passed_over)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&w, 0);

	sd_send(&w, raw, 1, "0000 0001");
	sd_expect(raw, 1, "0000 0002");
	sd_send_segment(&w, raw, 1, 2, 0);
	sd_weigh_held(ddps_sd_pair_find(c, 1), DDPS_SD_HELD_ASSOC);
	w.req[0].rx_result = DDPS_LLP_HOLD;
	sd_send_segment(&w, raw, 0, 1, 0);
	cr_expect_eq(w.req[0].closes, 1);
	cr_expect_eq(w.req[0].error.code, DDPS_E_LIMIT);
	sd_expect(raw, 0, "0001 0004");
	sd_send(&w, raw, 0, "0002 0004");
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_IDLE);
}

/* ---- what is said of it ---- */

static const char *dies_of(const char *hex)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&w, 0);
	struct sd_ulp *u = &w.req[w.nreq - 1];

	sd_send(&w, raw, 0, hex);
	cr_expect_eq(u->closes, 1);
	cr_expect_eq(u->error.code, DDPS_E_PROTOCOL);
	return u->error.text;
}

Test(sd_rx, an_error_says_what_is_wrong_with_a_message, .description = "5043-6.1-2")
{
	cr_expect_str_eq(dies_of("0001 0002"), "Accept is not legal in state OPEN");
	cr_expect_str_eq(dies_of("0001 0006"),
			 "malformed control message: code 0x0006 (Enhanced Accept) with 0 octets "
			 "of private data");
}
