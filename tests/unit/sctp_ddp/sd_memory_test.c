/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions over SCTP that find no memory: whoever asked learns of it, and nothing is left. */
#include "support/sd_world.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>

static struct sd_world w;

TestSuite(sd_memory, .timeout = 30);

/* Whether an allocation was there to fail. */
static bool does_connect_meet_failure(unsigned n)
{
	struct sd_ulp u = { 0 };
	bool poor;
	int err;

	sd_world_init(&w);
	sd_listen(&w);
	mem_fail(n);
	err = sd_connect(&w, &u, SD_PORT, false, "abcd", 4);
	poor = mem_failed();
	mem_fail(0);
	if (err) {
		cr_expect_eq(err, DDPS_E_NOMEM, "allocation %u: %d", n, err);
		cr_expect(poor);
		cr_expect_null(sd_carrier_of(&w, 0), "allocation %u", n);
	} else {
		sd_run(&w);
		cr_expect_eq(u.answers, !poor, "allocation %u", n);
		cr_expect_eq(u.error.code, poor ? DDPS_E_NOMEM : 0, "allocation %u", n);
	}
	sd_free(&u);
	sd_world_fini(&w);
	return poor;
}

Test(sd_memory, whoever_connects_is_informed)
{
	unsigned n = 1;

	while (does_connect_meet_failure(n))
		n++;
	cr_expect_gt(n, 4); /* goal, session, private data, association */
}

/* Whether somebody comes in, while the @n-th allocation fails; the log @says what became of it. */
static bool comes_in(unsigned n, const char *says)
{
	bool there;

	sd_world_init(&w);
	sd_listen(&w);
	fake_sctp_raw_connect(&w.env, SD_PORT);
	mem_fail(n);
	sd_run(&w);
	there = sd_carrier_of(&w, 0);
	cr_expect_eq(mem_failed(), !there, "allocation %u", n);
	mem_fail(0);
	cr_expect_str_eq(w.log, says, "allocation %u: %s", n, w.log);
	cr_expect_eq(((struct ddps_sd_listener *)w.listener)->half_open, there);
	sd_world_fini(&w);
	return there;
}

Test(sd_memory, an_association_that_comes_in)
{
	const char *const whole = "no memory for an association\n";
	const char *const counted =
		"127.0.0.1:2: association aborted: no memory for an association\n";

	cr_expect_not(comes_in(1, whole));
	cr_expect_not(comes_in(2, counted));
	cr_expect(comes_in(3, ""));
}

/* What a stray message needs; the third is the answer's, in the SCTP of the test. */
enum { NO_TABLE = 1, NO_PAIR = 2, NO_BITS = 4 };

/* A stray message, while the @n-th allocation fails. */
static void stray_is_survived(unsigned n)
{
	struct ddps_sd_assoc *raw;
	struct ddps_sd_carrier *c;

	sd_world_init(&w);
	raw = sd_raw_to_listener(&w);
	c = sd_carrier_of(&w, 0);
	fake_sctp_raw_send(raw, 4, DDPS_SD_PPID_CONTROL, "\0\0\0\2", 4);
	mem_fail(n);
	sd_run(&w);
	cr_expect(mem_failed());
	cr_expect_eq(c->mute, n == NO_BITS);
	cr_expect_eq(c->state, DDPS_SD_UP, "allocation %u", n);
	cr_expect_eq(c->npairs, 0, "allocation %u", n);
	cr_expect_eq(c->stats.dropped, 1, "allocation %u", n);
	cr_expect_str_eq(w.log, n == NO_BITS ? "" : "stream 4: no memory\n");
	while (raw->narrived)
		free(fake_sctp_raw_take(raw));
	if (c->mute) { /* nothing is known of answers, so nothing is answered */
		sd_send(&w, raw, 6, "0000 0002");
		cr_expect_eq(raw->narrived, 0);
	}
	sd_send(&w, raw, 0, "0000 0001");
	sd_expect(raw, 0, "0000 0002");
	sd_world_fini(&w);
}

Test(sd_memory, a_stray_message_without_memory)
{
	stray_is_survived(NO_TABLE);
	stray_is_survived(NO_PAIR);
	stray_is_survived(NO_BITS);
}

/* Whether it is there when its last pair has drained, while the @n-th allocation fails. */
static bool goes_on_idle(unsigned n)
{
	struct ddps_sd_assoc *raw;
	bool there;

	sd_world_init(&w);
	w.accept = false;
	raw = sd_raw_to_listener(&w);
	raw->peer->hold_dry = true;
	sd_send(&w, raw, 0, "0000 0001");
	sd_send(&w, raw, 0, "0001 0004"); /* withdrawn */
	sd_expect(raw, 0, "0000 0004");
	raw->peer->hold_dry = false;
	fake_sctp_poke(raw->peer);
	mem_fail(n);
	sd_run(&w);
	mem_fail(0);
	cr_expect_eq(w.req[0].closes, 1);
	there = sd_carrier_of(&w, 0);
	cr_expect_neq(there, strstr(w.log, "no memory for an association") != NULL, "%s", w.log);
	sd_world_fini(&w);
	return there;
}

Test(sd_memory, an_idle_association_that_cannot_be_listed_ends)
{
	cr_expect(goes_on_idle(0));
	cr_expect_not(goes_on_idle(1));
}

Test(sd_memory, an_answer_without_memory_may_be_given_again)
{
	struct ddps_sd_assoc *raw;

	sd_world_init(&w);
	w.accept = false;
	raw = sd_raw_to_listener(&w);
	sd_send(&w, raw, 0, "0000 0001");
	mem_fail(1);
	cr_expect_eq(sd_answer(&w.req[0], false, "ab", 2), DDPS_E_NOMEM);
	cr_expect_eq(sd_state(&w, 0, 0), DDPS_SD_P1);
	cr_expect_eq(sd_answer(&w.req[0], false, "ab", 2), 0);
	sd_run(&w);
	sd_expect(raw, 0, "0000 0002 6162");
	sd_world_fini(&w);
}

Test(sd_memory, no_memory_for_the_provider)
{
	static const struct ddps_setup setup;
	struct sockaddr_in sa = { .sin_family = AF_INET };
	const struct sockaddr *to = (const struct sockaddr *)&sa;
	const struct ddps_llp_listen_param lp = { .backlog = 1 };
	const struct ddps_llp_param p = { 0 };
	const struct ddps_uri uri = { .scheme = "sctp" };
	struct ddps_env env = { 0 };
	struct ddps_llp_listener *l;
	struct ddps_llp *llp;

	mem_fail(1);
	cr_expect_eq(ddps_sd_use_backend(&env, &fake_sctp, true, true), DDPS_E_NOMEM);
	mem_fail(1);
	cr_expect_eq(ddps_sctp_provider.connect(&env, &uri, to, sizeof sa, &setup, &p, NULL, NULL,
						&llp),
		     DDPS_E_NOMEM);
	mem_fail(1);
	cr_expect_eq(ddps_sctp_provider.listen(&env, &uri, to, sizeof sa, &lp, NULL, NULL, &l),
		     DDPS_E_NOMEM);
	cr_expect_null(env.sctp);
	cr_expect_not(ddps_sctp_provider.wind_up(&env, false),
		      "nothing there: nothing to wait for");
}
