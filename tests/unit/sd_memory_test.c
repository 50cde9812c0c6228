/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions over SCTP that find no memory: whoever asked learns of it, and nothing is left. */
#include "support/sd_world.h"
#include "unit/mem_fixture.h"
#include <criterion/criterion.h>

static struct sd_world w;

TestSuite(sd_memory, .timeout = 30);

/* Whether an allocation was there to fail. */
static bool connects(unsigned n)
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

Test(sd_memory, whoever_connects_is_told)
{
	unsigned n = 1;

	while (connects(n))
		n++;
	cr_expect_gt(n, 5); /* goal, session, private data, association, names */
}

Test(sd_memory, an_association_without_a_name_does_not_begin)
{
	struct sd_ulp u = { 0 };
	struct ddps_error why;
	struct ddps_sd_carrier *c;
	const char *peer;

	sd_world_init(&w);
	sd_listen(&w);
	cr_assert_eq(sd_connect(&w, &u, SD_PORT, false, NULL, 0), 0);
	c = sd_carrier_of(&w, 0);
	peer = c->peer;
	mem_fail(1);
	cr_expect_eq(ddps_sd_carrier_begin(c, &why), DDPS_E_NOMEM);
	cr_expect_eq(why.code, DDPS_E_NOMEM);
	cr_expect_eq(c->peer, peer);
	cr_expect_neq(c->state, DDPS_SD_UP);
	sd_run(&w);
	cr_expect_eq(u.answers, 1);
	sd_free(&u);
	sd_world_fini(&w);
}
