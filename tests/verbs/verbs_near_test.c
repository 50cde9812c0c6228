/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections over TCP that move to shared memory, and those that do not. */
#include "verbs/ib/vd_qp.h"
#include "verbs/vt.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct vt v;

static struct ddps_conn_info get_near_info(const struct vt_end *e)
{
	struct ddps_conn_info info = { 0 };

	cr_assert_eq(ddps_ep_info(vd_of(e->id->qp, struct vd_qp, qp.qp_base)->ep, &info), 0);
	return info;
}

static void connect_near(enum ddps_transport expected)
{
	struct ddps_conn_info a, b;

	vt_init(&v);
	vt_up(&v);
	a = get_near_info(&v.a);
	b = get_near_info(&v.b);
	cr_expect_eq(a.transport, expected, "%d", a.transport);
	cr_expect_eq(b.transport, expected, "%d", b.transport);
}

/* A Send and a Write arrive. */
static void use_near(void)
{
	memset(v.a.buf, 7, 4096);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 4096), 0);
	cr_assert_eq(vt_post(&v.a, 2, IBV_WR_RDMA_WRITE, 4096, &v.b), 0);
	cr_assert_eq(vt_post(&v.a, 3, IBV_WR_SEND, 4096, NULL), 0);
	vt_expect_wc(&v.a, 2, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	vt_expect_wc(&v.a, 3, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_expect_eq(v.b.buf[4095], 7);
}

Test(verbs_near, addresses_are_those_of_tcp, .timeout = 60)
{
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	setenv("DDPSESS_SHM", "auto", 1);
	connect_near(DDPS_TRANSPORT_SHM);
	cr_expect_eq(rdma_get_src_port(v.a.id), rdma_get_dst_port(v.b.id));
	cr_expect_eq(rdma_get_dst_port(v.a.id), rdma_get_src_port(v.b.id));
	cr_expect_eq(rdma_get_dst_port(v.a.id), rdma_get_src_port(v.listen));
	cr_expect_eq(rdma_get_peer_addr(v.b.id)->sa_family, AF_INET);
	use_near();
	vt_down(&v);
}

/* The responder may not have heard from the initiator when it is established. */
Test(verbs_near, the_responder_knows_it_without_a_first_message, .timeout = 60)
{
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	setenv("DDPSESS_SHM", "auto", 1);
	setenv("DDPSESS_P2P", "off", 1);
	vt_init(&v);
	vt_up(&v);
	use_near();
	cr_expect_eq(get_near_info(&v.a).transport, DDPS_TRANSPORT_SHM);
	cr_expect_eq(get_near_info(&v.b).transport, DDPS_TRANSPORT_SHM);
	vt_down(&v);
}

Test(verbs_near, by_default_it_stays_on_tcp, .timeout = 60)
{
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	unsetenv("DDPSESS_SHM");
	connect_near(DDPS_TRANSPORT_TCP);
	use_near();
	vt_down(&v);
}

Test(verbs_near, another_carrier_has_no_use_for_it, .timeout = 60)
{
	setenv("DDPSESS_TRANSPORT", "sctp", 1);
	setenv("DDPSESS_SHM", "auto", 1);
	connect_near(DDPS_TRANSPORT_SCTP);
	use_near();
	vt_down(&v);
}

Test(verbs_near, what_is_secured_stays_so, .timeout = 60)
{
	vt_over_tls();
	setenv("DDPSESS_SHM", "auto", 1);
	connect_near(DDPS_TRANSPORT_TCP);
	use_near();
	vt_down(&v);
}

Test(verbs_near, rules_that_cut_the_network_keep_it, .timeout = 60)
{
	char path[] = "/tmp/ddps-near-XXXXXX";
	const int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	setenv("DDPSESS_SHM", "auto", 1);
	setenv("DDPSESS_FAULTS", path, 1);
	connect_near(DDPS_TRANSPORT_TCP);
	use_near();
	vt_down(&v);
	cr_expect_eq(unlink(path), 0);
}
