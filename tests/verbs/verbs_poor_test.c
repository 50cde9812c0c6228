/* SPDX-License-Identifier: BSD-2-Clause */
/* A host without memory: a call fails and may be made again, and what has happened is told all the same. */
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <string.h>

/* ---- calls that fail ---- */

/* A signal may come while the system collects random numbers. */
Test(verbs_poor, a_key_that_a_signal_delays, .timeout = 60)
{
	struct vt_dev d;
	struct ibv_mr *mr;
	char mem[16];

	vt_dev_open(&d);
	vfail_nth(VFAIL_GETRANDOM, 1);
	vfail_as(EINTR);
	mr = ibv_reg_mr(d.pd, mem, sizeof mem, 0);
	cr_expect(vfail_came());
	cr_assert_not_null(mr, "%m");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	vt_dev_close(&d);
}
