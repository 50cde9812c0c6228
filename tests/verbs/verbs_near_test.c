/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections over TCP that move to shared memory, and those that do not. */
#include "verbs/ib/vd_qp.h"
#include "verbs/vt.h"
#include "verbs/vchild.h"
#include "verbs/vsite.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include <stdio.h>

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

/* ---- keys ---- */

/* The keys of DDPSESS_TRANSPORT=tls and sctps: where they are named, and what is said of those that cannot
 * be used. */

static struct vsite site;

/* ---- no keys, no device ---- */

/* As each call that is a program's first is refused. */
static void open_without_keys(const void *error)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const int wanted = *(const int *)error;
	struct rdma_cm_id *id;
	bool as_wanted;

	as_wanted = !rdma_create_event_channel() && errno == wanted;
	as_wanted &= !ibv_open_device(list[0]) && errno == wanted;
	as_wanted &= rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == -1 && errno == wanted;
	leave_child_fixture(!as_wanted);
}

static void expect_no_device(int error, const char *said)
{
	const char *told;
	int status = vchild_run(open_without_keys, &error, &told);

	cr_expect_eq(status, 0, "it ended with %#x:\n%s", (unsigned)status, told);
	cr_expect(strstr(told, said), "'%s' is missing:\n%s", said, told);
	cr_expect(strstr(told, "the device cannot be opened"), "%s", told);
}

static void expect_bad_settings(const char *wire, const char *lines, const char *said)
{
	vsite_use(&site, wire, lines);
	expect_no_device(EACCES, said);
}

static void check_bad_files(const char *wire)
{
	vsite_make(&site);
	expect_bad_settings(wire, "cert host.pem\nkey open.key\nca ca.pem\n",
			    "open.key has mode 0644, so that others can read or write it");
	expect_bad_settings(wire, "cert host.pem\nkey node.key\nca ca.pem\n", "node.key");
	expect_bad_settings(wire, "cert none.pem\nkey host.key\nca ca.pem\n", "none.pem");
	expect_bad_settings(wire, "cert old.pem\nkey old.key\nca ca.pem\n", "expired");
	expect_bad_settings(wire, "psk ca.pem\n", "ca.pem");
	expect_bad_settings(wire, "nonsense\n", "own.conf line 1: there is no setting 'nonsense'");
	setenv("DDPSESS_TLS", "/nowhere/at.all", 1);
	expect_no_device(EACCES, "/nowhere/at.all");
	vsite_remove(&site);
}

Test(verbs_keys, what_is_wrong_with_the_files_is_said, .timeout = 60)
{
	check_bad_files("tls");
	check_bad_files("sctps");
}

static void check_no_keys(const char *wire)
{
	unsetenv("DDPSESS_TLS");
	setenv("DDPSESS_TRANSPORT", wire, 1);
	expect_no_device(EINVAL, " needs keys: DDPSESS_TLS");
}

Test(verbs_keys, a_wire_without_keys, .timeout = 60)
{
	check_no_keys("tls");
	check_no_keys("sctps");
}

Test(verbs_keys, keys_and_a_plain_wire, .timeout = 60)
{
	setenv("DDPSESS_TLS_PEER", "dns:node-a", 1);
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	expect_no_device(EINVAL, "=tcp is plain, and DDPSESS_TLS_PEER is given");
	setenv("DDPSESS_TRANSPORT", "sctp", 1);
	expect_no_device(EINVAL, "=sctp is plain, and DDPSESS_TLS_PEER is given");
	setenv("DDPSESS_TLS_PEER", "", 1);
	setenv("DDPSESS_TRANSPORT", "tlsx", 1);
	expect_no_device(EINVAL, "it takes 'tcp', 'sctp', 'tls' or 'sctps'");
}

/* Each setting by its own variable, and the wire is tls where none is named. */
static void use_variables(const char *list)
{
	static const char *const of[][2] = { { "DDPSESS_TLS_CERT", "host.pem" },
					     { "DDPSESS_TLS_KEY", "host.key" },
					     { "DDPSESS_TLS_CA", "ca.pem" },
					     { "DDPSESS_TLS_PEERS", NULL } };
	char path[128];

	vsite_make(&site);
	setenv("DDPSESS_TRANSPORT", "", 1); /* as if it was not set */
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		snprintf(path, sizeof path, "%s/%s", site.dir, of[i][1] ? of[i][1] : list);
		setenv(of[i][0], path, 1);
	}
	vt_init(&v);
	vsite_hear();
}

Test(verbs_keys, variables_in_place_of_a_file, .timeout = 60)
{
	use_variables("allow.txt");
	vt_up(&v);
	vsite_expect_said("ddpsess", 0);
	vt_down(&v);
	vsite_remove(&site);
}

Test(verbs_keys, a_variable_for_the_list, .timeout = 60)
{
	use_variables("deny.txt");
	vt_listen(&v);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_CONNECT_ERROR);
	vsite_expect_said_some("deny.txt:1 denies the peer", 1, 2);
	vt_end_down(&v.a);
	vt_down(&v);
	vsite_remove(&site);
}
