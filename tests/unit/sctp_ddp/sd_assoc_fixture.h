/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_ASSOC_FIXTURE_H
#define SD_ASSOC_FIXTURE_H
/* What the tests of suite sd_assoc share, in whichever file they are. */
#include "support/sd_world.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

extern struct sd_world world;

/* A session from here to the own listener, open. */
static inline void open_session(struct sd_ulp *u)
{
	if (!world.listener)
		sd_listen(&world);
	cr_assert_eq(sd_connect(&world, u, SD_PORT, false, NULL, 0), 0);
	sd_run(&world);
	cr_assert_eq(u->answers, 1);
}

#endif
