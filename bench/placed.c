/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA Writes between two queue pairs of one process, by one thread that polls: what bench/placed.sh
 * counts.  usage: placed DEPTH COUNT
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE 64

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static union ibv_gid gid;
static char memory[2][SIZE];
static struct ibv_mr *mr[2];

static void check_verbs_call(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void open_placed_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check_verbs_call(list && list[0], "no device");
	ctx = ibv_open_device(list[0]);
	check_verbs_call(ctx, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	check_verbs_call(!ibv_query_gid(ctx, 1, 0, &gid), "ibv_query_gid");
	for (int i = 0; i < 2; i++)
		mr[i] = ibv_reg_mr(pd, memory[i], SIZE,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check_verbs_call(mr[0] && mr[1], "ibv_reg_mr");
}

static void make_placed_end(struct end *e)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 64, 64, 1, 1, 0 },
					 .sq_sig_all = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	e->cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(pd, &init);
	check_verbs_call(e->cq && e->qp &&
				 !ibv_modify_qp(e->qp, &attr,
						IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
							IBV_QP_ACCESS_FLAGS),
			 "a queue pair");
}

static void connect_placed_ends(struct end *e, const struct end *other)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = other->qp->qp_num,
				    .max_dest_rd_atomic = 16,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };

	attr.ah_attr.grh.dgid = gid;
	check_verbs_call(!ibv_modify_qp(e->qp, &attr,
					IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN |
						IBV_QP_MAX_DEST_RD_ATOMIC),
			 "RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .max_rd_atomic = 16 };
	check_verbs_call(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC),
			 "RTS");
}

static void post_placed_write(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)memory[0], SIZE, mr[0]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)memory[1];
	wr.wr.rdma.rkey = mr[1]->rkey;
	check_verbs_call(!ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
}

int main(int argc, char **argv)
{
	int depth = argc > 2 ? atoi(argv[1]) : 0, count = argc > 2 ? atoi(argv[2]) : 0, done = 0,
	    posted = 0;
	struct ibv_wc wc[16];
	struct end a, b;

	check_verbs_call(depth > 0 && depth <= 64 && count > 0, "usage: placed DEPTH COUNT");
	open_placed_device();
	make_placed_end(&a);
	make_placed_end(&b);
	connect_placed_ends(&a, &b);
	connect_placed_ends(&b, &a);
	while (done < count) {
		int n;

		for (; posted < count && posted - done < depth; posted++)
			post_placed_write(&a);
		n = ibv_poll_cq(a.cq, 16, wc);
		check_verbs_call(n >= 0, "ibv_poll_cq");
		for (int i = 0; i < n; i++)
			check_verbs_call(wc[i].status == IBV_WC_SUCCESS,
					 ibv_wc_status_str(wc[i].status));
		done += n;
	}
	return 0;
}
