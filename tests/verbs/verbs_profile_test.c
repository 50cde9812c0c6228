/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices by a profile: what a program sees of them, and that their limits are limits. */
#include "verbs/vt.h"
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The devices of the profile, opened. */
struct seen {
	int n;
	struct ibv_device **list;
	struct ibv_context *ctx[3];
};

static struct seen see_profiled_device(const char *profile)
{
	struct seen s = { 0 };

	vp_use(profile);
	s.list = ibv_get_device_list(&s.n);
	cr_assert(s.list && s.n <= 3, "%d", s.n);
	for (int i = 0; i < s.n; i++) {
		s.ctx[i] = ibv_open_device(s.list[i]);
		cr_assert_not_null(s.ctx[i], "%m");
	}
	return s;
}

static void unsee(struct seen *s)
{
	for (int i = 0; i < s->n; i++)
		cr_expect_eq(ibv_close_device(s->ctx[i]), 0);
	ibv_free_device_list(s->list);
}

static const char two[] = "device a0\nguid 0200:0000:0000:0001\nport 1\ninterface lo\n"
			  "mtu 512\nwidth 1\nspeed 2.5\n"
			  "device b0\nface roce\nfirmware 1.2.3\natomics off\nlimit max_qp 7\n"
			  "port 1\nport 2\nstate down\n";

Test(verbs_profile, devices_say_of_themselves_what_the_profile_says, .timeout = 60)
{
	struct seen s = see_profiled_device(two);
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	struct ibv_port_attr port;

	cr_assert_eq(s.n, 2);
	cr_expect_str_eq(ibv_get_device_name(s.list[0]), "a0");
	cr_expect_str_eq(ibv_get_device_name(s.list[1]), "b0");
	cr_expect_eq(ibv_get_device_index(s.list[1]), 1);
	cr_expect_eq(s.list[0]->node_type, IBV_NODE_RNIC);
	cr_expect_eq(s.list[1]->node_type, IBV_NODE_CA);
	cr_expect_eq(s.list[1]->transport_type, IBV_TRANSPORT_IB);
	cr_expect_eq(be64toh(ibv_get_device_guid(s.list[0])), UINT64_C(0x0200000000000001));
	cr_expect_neq(ibv_get_device_guid(s.list[1]), ibv_get_device_guid(s.list[0]));
	cr_assert_eq(ibv_query_device(s.ctx[1], &attr), 0);
	cr_expect_str_eq(attr.fw_ver, "1.2.3");
	cr_expect_eq(attr.atomic_cap, IBV_ATOMIC_NONE);
	cr_expect_eq(attr.max_qp, 7);
	cr_expect_eq(attr.phys_port_cnt, 2);
	cr_assert_eq(ibv_query_device_ex(s.ctx[1], NULL, &ex), 0);
	cr_expect_eq(ex.orig_attr.max_qp, 7);
	cr_expect_eq(ex.phys_port_cnt_ex, 2);
	cr_assert_eq(ibv_query_device(s.ctx[0], &attr), 0);
	cr_expect_eq(attr.atomic_cap, IBV_ATOMIC_HCA);
	cr_assert_eq(ibv_query_port(s.ctx[0], 1, &port), 0);
	cr_expect_eq(port.active_mtu, IBV_MTU_512);
	cr_expect_eq(port.active_width, 1);
	cr_expect_eq(port.active_speed, 1);
	cr_expect_eq(port.state, IBV_PORT_ACTIVE);
	cr_expect_eq(ibv_query_port(s.ctx[0], 2, &port), EINVAL);
	cr_assert_eq(ibv_query_port(s.ctx[1], 2, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_DOWN);
	cr_expect_eq(ibv_query_port(s.ctx[1], 3, &port), EINVAL);
	unsee(&s);
}

Test(verbs_profile, gids_are_of_the_interfaces, .timeout = 60)
{
	static const uint8_t lo[] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	struct seen s = see_profiled_device(two);
	struct ibv_gid_entry e, table[4];
	union ibv_gid gid;
	uint16_t pkey;

	cr_assert_eq(ibv_query_gid(s.ctx[0], 1, 0, &gid), 0);
	cr_expect_arr_eq(gid.raw, lo, 16);
	VT_MINUS_AS(ibv_query_gid(s.ctx[0], 2, 0, &gid), EINVAL);
	VT_MINUS_AS(ibv_query_gid(s.ctx[0], 1, 1, &gid), EINVAL);
	cr_assert_eq(ibv_query_gid_ex(s.ctx[0], 1, 0, &e, 0), 0);
	cr_expect_eq(e.gid_type, IBV_GID_TYPE_IB);
	cr_assert_eq(ibv_query_gid_ex(s.ctx[1], 2, 0, &e, 0), 0);
	cr_expect_eq(e.gid_type, IBV_GID_TYPE_ROCE_V2);
	cr_expect_eq(e.port_num, 2);
	cr_expect_eq(ibv_query_gid_table(s.ctx[1], table, 4, 0), 2);
	cr_expect_eq(ibv_query_gid_table(s.ctx[1], table, 1, 0), -EINVAL);
	cr_expect_eq(ibv_query_pkey(s.ctx[1], 2, 0, &pkey), 0);
	cr_expect_neq(ibv_query_pkey(s.ctx[1], 3, 0, &pkey), 0);
	unsee(&s);
}

Test(verbs_profile, a_port_without_its_interface_is_down, .timeout = 60)
{
	struct seen s = see_profiled_device("device a0\nport 1\ninterface nonesuch0\n");
	struct ibv_gid_entry e;
	struct ibv_port_attr port;

	cr_assert_eq(ibv_query_port(s.ctx[0], 1, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_DOWN);
	cr_expect_eq(ibv_query_gid_ex(s.ctx[0], 1, 0, &e, 0), ENODATA);
	unsee(&s);
}

/* ---- limits ---- */

static const char small[] = "device tiny\nlimit max_qp 2\nlimit max_qp_wr 16\nlimit max_sge 2\n"
			    "limit max_inline 64\nlimit max_cq 2\nlimit max_cqe 100\n"
			    "limit max_mr 2\nlimit max_mr_size 4096\nlimit max_pd 1\n"
			    "limit max_srq 1\nlimit max_srq_wr 8\nlimit max_srq_sge 1\n"
			    "atomics off\n";

Test(verbs_profile, one_object_too_many_is_enomem, .timeout = 60)
{
	struct seen s = see_profiled_device(small);
	struct ibv_srq_init_attr srq = { .attr = { 8, 1, 0 } };
	struct ibv_srq *one;
	struct ibv_qp *qp[2];
	struct ibv_cq *cq[2];
	struct ibv_mr *mr[2];
	struct vt_dev d = { .ctx = s.ctx[0] };
	struct ibv_qp_init_attr init;
	char buf[8];

	d.pd = ibv_alloc_pd(d.ctx);
	cr_assert_not_null(d.pd);
	VT_NULL_AS(ibv_alloc_pd(d.ctx), ENOMEM);
	for (int i = 0; i < 2; i++) {
		cq[i] = ibv_create_cq(d.ctx, 100, NULL, NULL, 0);
		mr[i] = ibv_reg_mr(d.pd, buf, sizeof buf, 0);
		cr_assert(cq[i] && mr[i]);
	}
	VT_NULL_AS(ibv_create_cq(d.ctx, 1, NULL, NULL, 0), ENOMEM);
	VT_NULL_AS(ibv_reg_mr(d.pd, buf, sizeof buf, 0), ENOMEM);
	d.cq = cq[0];
	for (int i = 0; i < 2; i++) {
		init = vt_rc(&d);
		qp[i] = ibv_create_qp(d.pd, &init);
		cr_assert_not_null(qp[i], "%m");
	}
	init = vt_rc(&d);
	VT_NULL_AS(ibv_create_qp(d.pd, &init), ENOMEM);
	one = ibv_create_srq(d.pd, &srq);
	cr_assert_not_null(one);
	VT_NULL_AS(ibv_create_srq(d.pd, &srq), ENOMEM);
	/* what goes makes room */
	cr_expect_eq(ibv_destroy_qp(qp[0]), 0);
	init = vt_rc(&d);
	qp[0] = ibv_create_qp(d.pd, &init);
	cr_assert_not_null(qp[0]);
	cr_expect_eq(ibv_destroy_qp(qp[0]), 0);
	cr_expect_eq(ibv_destroy_qp(qp[1]), 0);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ibv_destroy_cq(cq[i]), 0);
		cr_expect_eq(ibv_dereg_mr(mr[i]), 0);
	}
	cr_expect_eq(ibv_destroy_srq(one), 0);
	cr_expect_eq(ibv_dealloc_pd(d.pd), 0);
	d.pd = ibv_alloc_pd(d.ctx);
	cr_assert_not_null(d.pd);
	cr_expect_eq(ibv_dealloc_pd(d.pd), 0);
	unsee(&s);
}

Test(verbs_profile, more_than_an_object_can_have_is_einval, .timeout = 60)
{
	struct seen s = see_profiled_device(small);
	struct vt_dev d = { .ctx = s.ctx[0] };
	struct ibv_srq_init_attr srq = { .attr = { 9, 1, 0 } };
	static char big[8192];

	d.pd = ibv_alloc_pd(d.ctx);
	VT_NULL_AS(ibv_create_cq(d.ctx, 101, NULL, NULL, 0), EINVAL);
	d.cq = ibv_create_cq(d.ctx, 100, NULL, NULL, 0);
	cr_assert(d.pd && d.cq);
#define REFUSED(member, value)                                                                     \
	do {                                                                                       \
		struct ibv_qp_init_attr init = vt_rc(&d);                                          \
                                                                                                   \
		init.cap.member = value;                                                           \
		VT_NULL_AS(ibv_create_qp(d.pd, &init), EINVAL);                                    \
	} while (0)
	REFUSED(max_send_wr, 17);
	REFUSED(max_recv_wr, 17);
	REFUSED(max_send_sge, 3);
	REFUSED(max_recv_sge, 3);
	REFUSED(max_inline_data, 65);
	VT_NULL_AS(ibv_create_srq(d.pd, &srq), EINVAL);
	srq.attr = (struct ibv_srq_attr){ 8, 2, 0 };
	VT_NULL_AS(ibv_create_srq(d.pd, &srq), EINVAL);
	VT_NULL_AS(ibv_reg_mr(d.pd, big, 4097, 0), EINVAL);
	VT_NULL_AS(ibv_reg_mr(d.pd, big, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
		   EOPNOTSUPP);
	cr_expect_eq(ibv_destroy_cq(d.cq), 0);
	cr_expect_eq(ibv_dealloc_pd(d.pd), 0);
	unsee(&s);
}

/* Some adapters have no shared queues, no Reads, no inline data, and say so by 0. */
Test(verbs_profile, contact_25_what_a_device_has_not_is_0, .timeout = 60)
{
	struct seen s = see_profiled_device(
		"device few\nlimit max_srq 0\nlimit max_srq_wr 0\n"
		"limit max_srq_sge 0\nlimit max_qp_rd_atom 0\n"
		"limit max_qp_init_rd_atom 0\nlimit max_inline 0\n"
		"limit max_sge_rd 0\ndevice more\nlimit max_srq 0\nlimit max_srq 1\n");
	struct ibv_srq_init_attr srq = { .attr = { 1, 1, 0 } };
	struct ibv_qp_attr attr = { .max_rd_atomic = 1, .max_dest_rd_atomic = 1 };
	struct vt_dev d = { .ctx = s.ctx[0] };
	struct ibv_qp_init_attr init;
	struct ibv_device_attr dev;
	struct ibv_qp *qp;

	cr_assert_eq(ibv_query_device(s.ctx[0], &dev), 0);
	cr_expect_eq(dev.max_srq, 0);
	cr_expect_eq(dev.max_srq_wr, 0);
	cr_expect_eq(dev.max_srq_sge, 0);
	cr_expect_eq(dev.max_qp_rd_atom, 0);
	cr_expect_eq(dev.max_qp_init_rd_atom, 0);
	cr_expect_eq(dev.max_res_rd_atom, 0);
	cr_expect_eq(dev.max_sge_rd, 0);
	cr_expect_gt(dev.max_qp, 0, "the others are the drop-in's");
	d.pd = ibv_alloc_pd(d.ctx);
	d.cq = ibv_create_cq(d.ctx, 8, NULL, NULL, 0);
	cr_assert(d.pd && d.cq);
	VT_NULL_AS(ibv_create_srq(d.pd, &srq), EINVAL);
	srq.attr = (struct ibv_srq_attr){ 0 };
	VT_NULL_AS(ibv_create_srq(d.pd, &srq), ENOMEM);
	init = vt_rc(&d);
	VT_NULL_AS(ibv_create_qp(d.pd, &init), EINVAL);
	init.cap.max_inline_data = 0;
	qp = ibv_create_qp(d.pd, &init);
	cr_assert_not_null(qp, "%m");
	cr_expect_eq(init.cap.max_inline_data, 0);
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC), EINVAL);
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC), EINVAL);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_cq(d.cq), 0);
	cr_expect_eq(ibv_dealloc_pd(d.pd), 0);
	cr_assert_eq(ibv_query_device(s.ctx[1], &dev), 0);
	cr_expect_eq(dev.max_srq, 1, "the last line counts");
	unsee(&s);
}

/* Identifiers are of the device that has their address; inline data is what the device takes. */
VT_TEST(verbs_profile, connections_are_of_the_device_at_their_address)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1
	};
	struct ibv_send_wr *bad;
	struct ibv_context **list;
	struct vt v;
	int n = 0;

	vp_use("device a0\nport 1\ninterface nonesuch0\n"
	       "device b0\nlimit max_inline 64\nlimit max_qp 2\nport 1\nport 2\ninterface lo\n");
	vt_init(&v);
	v.init.cap.max_inline_data = 32;
	vt_up(&v);
	cr_expect_str_eq(v.a.id->verbs->device->name, "b0");
	cr_expect_eq(v.a.id->port_num, 2);
	cr_expect_str_eq(v.b.id->verbs->device->name, "b0");
	list = rdma_get_devices(&n);
	cr_expect_eq(n, 2);
	rdma_free_devices(list);
	sge = (struct ibv_sge){ (uintptr_t)v.a.buf, 65, v.a.mr->lkey };
	wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	cr_expect_neq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	sge.length = 64;
	cr_assert_eq(vt_recv(&v.b, 2, 0, 100), 0);
	cr_expect_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	vt_expect_wc(&v.b, 2, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}

Test(verbs_profile, a_wrong_profile_keeps_the_device_shut, .timeout = 60)
{
	struct ibv_device **list;

	vp_use("device a0\nlimit max_sge 99\n");
	list = ibv_get_device_list(NULL);
	cr_assert_not_null(list);
	VT_NULL_AS(ibv_open_device(list[0]), EINVAL);
	ibv_free_device_list(list);
}
