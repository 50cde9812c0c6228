/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations that nobody uses any more, many sessions, and anything at all that a peer may send. */
#include "sd_assoc_fixture.h"

/* A peer that opens associations and asks for nothing, or no longer. */
/* One that had a session and has none any more; @hold: our Terminate is still on its way. */
static struct ddps_sd_assoc *make_idle_sd_assoc_many(bool hold)
{
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0);

	raw->hold = hold;
	sd_send(&world, raw, 0, "0001 0004");
	if (!hold)
		sd_expect(raw, 0, "0001 0004");
	sd_free(&world.req[world.nreq - 1]);
	sd_run(&world);
	return raw;
}

/* A parallel program's processes on one host call all at the same time, each with an association of
 * its own: the first have not asked for a session yet when the last are there. */
Test(sd_assoc, many_new_associations_of_one_host_all_get_their_session)
{
	struct ddps_sd_assoc *raw[4 * DDPS_SD_IDLE_PEER];

	world.lparam.max_half_open = 1000;
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		raw[i] = sd_raw_to_listener(&world);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++) {
		sd_send(&world, raw[i], 0, "0000 0001");
		sd_expect(raw[i], 0, "0000 0002");
	}
	cr_expect_eq(world.env.idle_ended, 0);
}

/* The sessions of such a program end at the same time, too.  Our Terminate is the last word of each:
 * an association is not aborted for being idle before the peer has it. */
Test(sd_assoc, many_sessions_that_end_together_all_get_their_terminate)
{
	struct ddps_sd_assoc *raw[4 * DDPS_SD_IDLE_PEER];
	unsigned over = 0;

	world.lparam.max_half_open = 1000;
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		raw[i] = make_idle_sd_assoc_many(true);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		cr_assert_not(raw[i]->over, "%u", i);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++) {
		raw[i]->hold = false;
		fake_sctp_poke(raw[i]);
	}
	sd_run(&world);
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		sd_expect(raw[i], 0, "0001 0004");
	for (unsigned i = 0; i < 4 * DDPS_SD_IDLE_PEER; i++)
		over += raw[i]->over;
	cr_expect_eq(over, 3 * DDPS_SD_IDLE_PEER, "%u", over);
}

Test(sd_assoc, attack_3_idle_associations_are_few)
{
	struct ddps_sd_assoc *raw[DDPS_SD_IDLE_PEER + 4];
	unsigned ended = 0;

	world.lparam.max_half_open = 1000;
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4;
	     i++) /* one carries a session and is no prey */
		raw[i] = i == 1 ? sd_raw_open(&world, 0) : make_idle_sd_assoc_many(false);
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4; i++) {
		ended += raw[i]->over;
		cr_expect_eq(raw[i]->over, i == 0 || i == 2 || i == 3, "%u", i);
	}
	cr_expect_eq(ended, 3);
	cr_expect_eq(world.env.idle_ended, 3);
	cr_expect_eq(world.req[1].closes, 0);
}

/* Whoever has a whole /64 has one share nevertheless, and takes no place of others. */
Test(sd_assoc, attack_3_idle_associations_of_one_network_are_few)
{
	struct ddps_sd_assoc *other, *raw[DDPS_SD_IDLE_PEER + 4];
	char from[40];

	world.lparam.max_half_open = 1000;
	fake_sctp_net.from = "[2001:db8:0:1::1]:7";
	other = make_idle_sd_assoc_many(false);
	fake_sctp_net.from = from;
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4; i++) {
		snprintf(from, sizeof(from), "[2001:db8:0:2:%x::1]:7", i);
		raw[i] = make_idle_sd_assoc_many(false);
	}
	cr_expect_eq(world.env.idle_ended, 4);
	for (unsigned i = 0; i < DDPS_SD_IDLE_PEER + 4; i++)
		cr_expect_eq(raw[i]->over, i < 4, "%u", i);
	cr_expect_not(other->over);
	/* Many networks: the one that has most gives way, not whoever came first. */
	for (unsigned i = 0; i < DDPS_SD_IDLE_LISTENER; i++) {
		snprintf(from, sizeof(from), "10.0.%u.%u:7", i >> 8, i & 255);
		make_idle_sd_assoc_many(false);
	}
	cr_expect_eq(world.env.idle_ended, 4 + DDPS_SD_IDLE_PEER + 1);
	cr_expect(other->over, "the oldest where all have one");
}

/* ---- many ---- */

#define MANY 1000

static struct sd_ulp many[MANY];

static void many_sessions(uint32_t reorder, unsigned room)
{
	fake_sctp_net.reorder = reorder;
	fake_sctp_net.room = room;
	world.accept_send = 10;
	sd_listen(&world);
	for (unsigned i = 0; i < MANY; i++) {
		many[i].to_send = 10;
		many[i].pay_len = i % 100;
		cr_assert_eq(sd_connect(&world, &many[i], SD_PORT, i & 1, "word", 4), 0);
	}
	sd_run(&world);
	cr_expect_eq(world.nreq, MANY);
	cr_expect_eq(fake_sctp_net.connects,
		     (MANY + DDPS_SCTP_STREAMS / 2 - 1) / (DDPS_SCTP_STREAMS / 2));
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_eq(many[i].answers, 1, "%u: %s", i, many[i].error.text);
		cr_expect_eq(many[i].segments, 10);
		cr_expect_not(many[i].out_of_order);
		cr_expect_eq(world.req[i].segments, 10);
		cr_expect_not(world.req[i].out_of_order);
	}
	for (unsigned i = 0; i < MANY; i += 2) /* half of them from here, half from there */
		many[i].llp->ops->shutdown(many[i].llp);
	sd_run(&world);
	for (unsigned i = 0; i < MANY; i++)
		if (!world.req[i].closes)
			world.req[i].llp->ops->shutdown(world.req[i].llp);
	sd_run(&world);
	for (unsigned i = 0; i < MANY; i++) {
		cr_expect_eq(many[i].closes, 1);
		cr_expect_eq(many[i].error.code, 0, "%s", many[i].error.text);
		cr_expect_eq(world.req[i].closes, 1);
		cr_expect_eq(world.req[i].error.code, 0);
		sd_free(&many[i]);
	}
	cr_expect_eq(sd_carrier_of(&world, 0)->npairs, 0);
	cr_expect_eq(sd_carrier_of(&world, 1)->npairs, 0);
	cr_expect_eq(sd_carrier_of(&world, 0)->held, 0);
}

Test(sd_assoc, thousand_sessions, .description = "5043-8-d2")
{
	many_sessions(0, 0);
}

Test(sd_assoc, thousand_sessions_out_of_order_and_under_back_pressure)
{
	many_sessions(12345, 50);
}

Test(sd_assoc, bulk_both_ways_out_of_order)
{
	struct sd_ulp u[4] = { 0 };

	fake_sctp_net.reorder = 99;
	fake_sctp_net.room = 200;
	for (int i = 0; i < 4; i++)
		open_session(&u[i]);
	for (int i = 0; i < 4; i++) {
		u[i].to_send = 20000;
		world.req[i].to_send = 20000;
		u[i].llp->ops->kick(u[i].llp);
		world.req[i].llp->ops->kick(world.req[i].llp);
	}
	sd_run(&world);
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(u[i].segments, 20000);
		cr_expect_eq(world.req[i].segments, 20000);
		cr_expect_not(u[i].out_of_order);
		cr_expect_not(world.req[i].out_of_order);
		sd_free(&u[i]);
	}
}

/* ---- anything at all ---- */

#define RANDOM_STREAMS 40

static uint32_t dice(uint32_t *seed, uint32_t sides)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % sides;
}

static void random_message(struct ddps_sd_assoc *raw, uint32_t *seed, uint16_t *ssn)
{
	uint8_t buf[64] = { 0 };
	uint16_t stream = (uint16_t)dice(seed, RANDOM_STREAMS);
	uint32_t ppid = dice(seed, 100) ? 16 + dice(seed, 2) : dice(seed, 30);
	uint16_t n = ssn[stream]++;

	if (!dice(seed, 8))
		n = ssn[stream] = 0;
	if (!dice(seed, 40))
		n = (uint16_t)dice(seed, 65536);
	else if (!dice(seed, 20))
		n = (uint16_t)(n + dice(seed, 4));
	buf[0] = (uint8_t)(n >> 8);
	buf[1] = (uint8_t)n;
	buf[3] = n ? (uint8_t)dice(seed, 9) : dice(seed, 2) ? 1 : 5;
	fake_sctp_raw_send(raw, stream, ppid, buf,
			   dice(seed, 4) ? 4 + 4 * dice(seed, 2) : dice(seed, 64));
}

static void random_action(struct sd_ulp *u, uint32_t *seed)
{
	if (!u->llp)
		return;
	switch (dice(seed, 6)) {
	case 0:
		u->to_send += dice(seed, 5);
		u->llp->ops->kick(u->llp);
		break;
	case 1:
		u->llp->ops->shutdown(u->llp);
		break;
	case 2:
		u->llp->ops->abort(u->llp);
		break;
	case 3:
		sd_free(u);
		break;
	default:
		sd_answer(u, !dice(seed, 3), "word", u->enhanced ? 4 : 0);
	}
}

Test(sd_assoc, survives_any_sequence_of_messages_and_calls, .description = "5043-6.1-2")
{
	for (uint32_t round = 1; round <= 30; round++) {
		struct ddps_sd_assoc *raw;
		uint32_t seed = round;
		uint16_t ssn[RANDOM_STREAMS] = { 0 };

		world.accept = round & 1;
		fake_sctp_net.reorder = round % 3 ? round : 0;
		fake_sctp_net.room = round % 5;
		world.nreq = 0;
		raw = sd_raw_to_listener(&world);
		/* One that nobody ends: without it the association goes with its only session. */
		sd_send(&world, raw, RANDOM_STREAMS, "0000 0001");
		if (!world.accept)
			sd_answer(&world.req[0], false, NULL, 0);
		for (int i = 0; i < 1500 && raw->peer; i++) {
			random_message(raw, &seed, ssn);
			if (world.nreq > 1 && !dice(&seed, 3))
				random_action(&world.req[1 + dice(&seed, world.nreq - 1)], &seed);
			if (!dice(&seed, 3))
				sd_run(&world);
			if (!raw->peer)
				break;
			raw->peer->hold_dry = !dice(&seed, 2);
			fake_sctp_poke(raw->peer);
		}
		if (raw->peer)
			fake_sctp_lose(raw, DDPS_E_RESET);
		sd_run(&world);
		cr_expect_null(sd_carrier_of(&world, 0));
		cr_expect_eq(((struct ddps_sd_listener *)world.listener)->half_open, 0);
		cr_expect_gt(world.nreq, 30); /* it did get somewhere */
		for (unsigned i = 0; i < world.nreq; i++) {
			if (world.req[i].llp)
				cr_expect_eq(world.req[i].closes, 1);
			sd_free(&world.req[i]);
		}
	}
}

/* What became idle together does not leave together. */
Test(sd_assoc, idle_associations_wait_for_different_times)
{
	const uint64_t step = 30000ull * 1000000 / 16 / 16;
	struct ddps_sd_assoc *raw = sd_raw_open(&world, 0);
	struct ddps_sd_carrier *c = sd_carrier_of(&world, 0);
	unsigned seen = 0;

	sd_send(&world, raw, 0, "0001 0004");
	sd_expect(raw, 0, "0001 0004");
	for (unsigned i = 0; i < 16; i++) {
		uint64_t before = ddps_now(), more;

		ddps_sd_carrier_idle(c);
		cr_assert_geq(c->linger.due, before + 30000 * 1000000ull);
		more = c->linger.due - before - 30000 * 1000000ull;
		seen |= 1u << (more + step / 2) / step;
	}
	cr_expect_eq(seen, 0xffff, "%x", seen); /* each sixteenth of a sixteenth */
}
