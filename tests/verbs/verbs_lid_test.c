/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniBand's face: ports have LIDs, and a LID alone leads to a peer of the same subnet. */
#include "verbs/vd_lid.h"
#include "verbs/voob.h"
#include "verbs/vt_fault.h"
#include "verbs/vud.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The loopback interface, whose address is 127.0.0.1/8. */
static const char on_lo[] = "device ib0\nface ib\nport 1\ninterface lo\n";

static struct sockaddr_in make_own(const char *text)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };

	cr_assert_eq(inet_pton(AF_INET, text, &a4.sin_addr), 1);
	return a4;
}

static int move_by_gid(struct ibv_qp *qp, uint32_t number, uint16_t unused)
{
	union ibv_gid local = { { 0xfe, 0x80, [15] = 1 } };

	(void)unused;
	return move_oob_to_rtr(qp, number, &local);
}

static int move_by_lid(struct ibv_qp *qp, uint32_t number, uint16_t lid)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .dest_qp_num = number,
				    .path_mtu = IBV_MTU_1024,
				    .max_dest_rd_atomic = 4,
				    .ah_attr = { .dlid = lid, .port_num = 1 } };

	return ibv_modify_qp(qp, &attr, TO_RTR);
}

Test(verbs_lid, is_the_hosts_part_of_an_address)
{
	static const struct {
		uint16_t lid;
		const char *address; /* NULL: nobody's */
	} all[] = { { 0, NULL },	  { 1, "127.0.0.1" },	       { 2, "127.0.0.2" },
		    { 256, "127.0.1.0" }, { 0xbfff, "127.0.191.255" }, { 0xc000, NULL },
		    { 0xffff, NULL } };
	const struct sockaddr_in lo = make_own("127.0.0.1"), strange = make_own("198.18.0.77");
	struct in_addr to;
	char text[INET_ADDRSTRLEN];

	cr_expect_eq(vd_lid_of(&lo), 1);
	cr_expect_eq(vd_lid_of(&strange), 0, "no address of this host's");
	cr_expect_not(vd_lid_address(&strange, 1, &to));
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cr_expect_eq(vd_lid_address(&lo, all[i].lid, &to), all[i].address != NULL, "%#x",
			     all[i].lid);
		if (all[i].address)
			cr_expect_str_eq(inet_ntop(AF_INET, &to, text, sizeof text),
					 all[i].address);
	}
}

static void expect_ib_port(struct ibv_context *ctx, int lid)
{
	struct ibv_port_attr port;
	struct ibv_gid_entry e;

	cr_expect_eq(ctx->device->node_type, IBV_NODE_CA);
	cr_expect_eq(ctx->device->transport_type, IBV_TRANSPORT_IB);
	cr_assert_eq(ibv_query_port(ctx, 1, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_ACTIVE);
	cr_expect_eq(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
	cr_expect_eq(port.lid, lid);
	cr_assert_eq(ibv_query_gid_ex(ctx, 1, 0, &e, 0), 0);
	cr_expect_eq(e.gid_type, IBV_GID_TYPE_IB);
}

Test(verbs_lid, is_shown_by_the_port, .timeout = 30)
{
	struct sockaddr_in a4;
	struct side s;

	setenv("DDPSESS_FACE", "ib", 1);
	up_device(&s);
	s.qp = NULL;
	memcpy(&a4.sin_addr, s.gid.raw + 12, sizeof a4.sin_addr);
	expect_ib_port(s.ctx, vd_lid_of(&a4));
	close_oob_side(&s);
}

Test(verbs_lid, is_shown_by_a_port_of_a_profile, .timeout = 30)
{
	struct ibv_port_attr port;
	struct side s;

	vp_use("device ib0\nface ib\nport 1\ninterface lo\nport 2\ninterface none\n");
	up_device(&s);
	s.qp = NULL;
	expect_ib_port(s.ctx, 1);
	cr_assert_eq(ibv_query_port(s.ctx, 2, &port), 0);
	cr_expect_eq(port.state, IBV_PORT_DOWN);
	cr_expect_eq(port.lid, 0);
	close_oob_side(&s);
}

/* As programs do that exchange LIDs alone; the GID of the one fits the LID of the other. */
VT_TEST(verbs_lid, leads_to_a_queue_pair)
{
	struct side a, b;

	vp_use(on_lo);
	for (int gid = 0; gid < 2; gid++) {
		open_oob_side(&a);
		open_oob_side(&b);
		listen_to(&b);
		cr_assert_eq(move_by_lid(a.qp, b.qp->qp_num, 1), 0);
		cr_assert_eq(gid ? move_oob_to_rtr(b.qp, a.qp->qp_num, &a.gid)
				 : move_by_lid(b.qp, a.qp->qp_num, 1),
			     0);
		cr_assert_eq(to_rts(a.qp), 0);
		cr_assert_eq(to_rts(b.qp), 0);
		cr_assert_eq(say_oob(&a, "by LID", 0), 0);
		cr_expect_eq(await_oob_wc(&b).status, IBV_WC_SUCCESS);
		cr_expect_str_eq(b.buf, "by LID");
		cr_expect_eq(await_oob_wc(&a).status, IBV_WC_SUCCESS);
		close_oob_side(&a);
		close_oob_side(&b);
	}
}

Test(verbs_lid, leads_datagrams, .timeout = 30)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
	struct ibv_ah *by_gid;
	struct vud_qp a, b;
	struct vud v;

	vp_use(on_lo);
	vud_open(&v);
	vud_up(&v, &a);
	vud_up(&v, &b);
	by_gid = v.self;
	v.self = ibv_create_ah(b.qp->pd, &attr);
	cr_assert_not_null(v.self);
	vud_recv(&b, 7, 0, 40 + 5);
	memcpy(a.buf, "hello", 5);
	vud_send(&a, 1, &b, 5, 0);
	cr_expect_eq(vud_wc(&a).status, 0);
	cr_expect_eq(vud_wc(&b).status, 0);
	cr_expect_arr_eq(b.buf + 40, "hello", 5);
	cr_expect_eq(ibv_destroy_ah(v.self), 0);
	v.self = by_gid;
	for (unsigned lid = 0; lid <= 0xc000; lid += 0xc000) {
		attr.dlid = (uint16_t)lid;
		cr_expect_null(ibv_create_ah(b.qp->pd, &attr));
		cr_expect_eq(errno, EINVAL);
	}
	vud_down(&a);
	vud_down(&b);
	vud_close(&v);
}

/* A sentence says why, once for a queue pair. */
static void expect_refusal(int error, int (*move)(struct ibv_qp *, uint32_t, uint16_t),
			   uint16_t lid, const char *why)
{
	static char text[2000];
	struct side a;
	FILE *said = tmpfile();
	int keep = dup(STDERR_FILENO);
	ssize_t n;

	open_oob_side(&a);
	cr_assert(said && keep >= 0);
	dup2(fileno(said), STDERR_FILENO);
	cr_expect_eq(move(a.qp, a.qp->qp_num, lid), error);
	cr_expect_eq(move(a.qp, a.qp->qp_num, lid), error);
	dup2(keep, STDERR_FILENO);
	close(keep);
	n = pread(fileno(said), text, sizeof text - 1, 0);
	cr_assert_gt(n, 0);
	text[n] = 0;
	cr_expect_not_null(strstr(text, why), "%s", text);
	cr_expect_eq(strchr(text, '\n'), text + n - 1, "one line: %s", text);
	fclose(said);
	close_oob_side(&a);
}

Test(verbs_lid, is_nothing_on_an_iwarp_device, .timeout = 30)
{
	expect_refusal(EOPNOTSUPP, move_by_lid, 1, "this device has no LIDs");
}

Test(verbs_lid, is_nothing_on_a_roce_device, .timeout = 30)
{
	setenv("DDPSESS_FACE", "roce", 1);
	expect_refusal(EINVAL, move_by_lid, 1, "sessctl run --face ib");
}

Test(verbs_lid, is_refused_if_no_host_can_have_it, .timeout = 30)
{
	vp_use(on_lo);
	expect_refusal(EOPNOTSUPP, move_by_lid, 0xc000,
		       "no host has LID 49152 in the subnet of 127.0.0.1");
}

Test(verbs_lid, and_a_gid_that_is_no_address_is_refused, .timeout = 30)
{
	expect_refusal(EOPNOTSUPP, move_by_gid, 0, "GID is no IPv4 address");
}
