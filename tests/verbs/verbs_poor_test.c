/* SPDX-License-Identifier: BSD-2-Clause */
/* A host without memory: a call fails and may be made again, and what has happened is told all the same. */
#include "verbs/vd.h"
#include "verbs/vfail.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include <errno.h>
#include <string.h>

/* ---- calls that fail ---- */

/* The queues that were made for it are gone, and the program's attributes do not name them. */
VT_TEST(verbs_poor, a_queue_pair_that_finds_no_memory)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 0 } };
	struct vt v;
	unsigned n = 0;
	int ret;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	rdma_destroy_qp(v.a.id);
	do {
		vfail_nth(VFAIL_MEMORY, ++n);
		ret = rdma_create_qp(v.a.id, NULL, &attr);
		vfail_came();
		if (ret)
			cr_expect(!attr.send_cq && !attr.recv_cq && !v.a.id->send_cq &&
				  !v.a.id->recv_cq);
	} while (ret && !attr.send_cq);
	cr_expect_eq(ret, 0);
	cr_expect_gt(n, 4);
	cr_expect(attr.send_cq && attr.recv_cq);
	vt_down(&v);
}

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
