/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniBand's face: ports have LIDs, and a LID alone leads to a peer of the same subnet. */
#include "verbs/vd_lid.h"
#include "verbs/voob.h"
#include "verbs/vt.h"
#include "verbs/vud.h"
#include "verbs/vd.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>

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

/* ---- link-local addresses of IPv6, which mean something on their link only (RFC 4007) ---- */

static struct sockaddr_in6 link_local(const char *interface)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_scope_id = if_nametoindex(interface) };

	inet_pton(AF_INET6, "fe80::7", &a.sin6_addr);
	return a;
}

/* The system makes the ways to a new address a moment after the address, by a thread of its own, and the one of the link
 * before the one within the host: it is there when something comes. */
static void await_way(const char *interface)
{
	struct sockaddr_in6 a = link_local(interface);
	socklen_t len = sizeof a;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), ms = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0, "%s: %m", interface);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	do {
		cr_assert_lt(ms++, VT_MS, "%s: nothing comes", interface);
		(void)!sendto(fd, "", 1, 0, (struct sockaddr *)&a, sizeof a);
	} while (!vt_readable(fd, 1));
	close(fd);
}

/* Two links that have the same address. */
static void two_links(void)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		cr_skip_test("no network of its own: %m");
	if (system("(ip link add d0 type dummy || ip link add d0 type bridge) 2>/dev/null && "
		   "ip link set d0 addrgenmode none && ip link set lo up && ip link set d0 up && "
		   "ip address add fe80::7/64 dev lo nodad && "
		   "ip address add fe80::7/64 dev d0 nodad"))
		cr_skip_test("no dummy interface here");
	await_way("lo");
	await_way("d0");
}

static uint32_t scope(const struct sockaddr_storage *ss)
{
	return ((const struct sockaddr_in6 *)ss)->sin6_scope_id;
}

Test(verbs_link_local, contact_26_an_address_of_the_librarys)
{
	static const struct ddps_addr six = { .ip = { 0xfe, 0x80, [15] = 7 },
					      .scope = 0x7ffffffe,
					      .port = 258,
					      .family = 6 },
				      four = { .ip = { 192, 0, 2, 1 }, .port = 258, .family = 4 },
				      none = { .family = 0 };
	struct sockaddr_storage ss;
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&ss;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&ss;

	vd_sockaddr(&six, &ss);
	cr_expect(ss.ss_family == AF_INET6 && a6->sin6_port == htons(258));
	cr_expect_eq(scope(&ss), 0x7ffffffe, "of an interface that has gone");
	cr_expect_arr_eq(&a6->sin6_addr, six.ip, 16);
	vd_sockaddr(&four, &ss);
	cr_expect(ss.ss_family == AF_INET && a4->sin_port == htons(258));
	cr_expect_eq(a4->sin_addr.s_addr, htonl(0xC0000201));
	vd_sockaddr(&none, &ss);
	cr_expect(ss.ss_family == AF_INET && !a4->sin_addr.s_addr && !a4->sin_port);
}

/* Both ends learn which link it is; the server can call whoever called it. */
VT_TEST(verbs_link_local, contact_26_both_ends_know_the_link)
{
	const uint32_t *own, *peer;
	struct rdma_cm_id *back;
	uint32_t want;
	struct vt v;

	two_links();
	for (int i = 0; i < 2; i++) {
		vt_init(&v);
		*(struct sockaddr_in6 *)&v.addr = link_local(i ? "d0" : "lo");
		want = scope(&v.addr);
		vt_up(&v);
		own = &v.b.id->route.addr.src_sin6.sin6_scope_id;
		peer = &v.b.id->route.addr.dst_sin6.sin6_scope_id;
		cr_expect_eq(*own, want, "%u", *own);
		cr_expect_eq(*peer, want, "%u", *peer);
		cr_expect_eq(v.a.id->route.addr.src_sin6.sin6_scope_id, want);
		cr_expect_eq(v.a.id->route.addr.dst_sin6.sin6_scope_id, want);
		cr_assert_eq(rdma_create_id(v.b.ch, &back, NULL, RDMA_PS_TCP), 0);
		cr_assert_eq(rdma_resolve_addr(back, NULL, &v.b.id->route.addr.dst_addr, 2000), 0);
		vt_expect(v.b.ch, RDMA_CM_EVENT_ADDR_RESOLVED);
		cr_expect_eq(rdma_destroy_id(back), 0);
		vt_down(&v);
	}
}

/* Of two devices that have the address it is the one on the link. */
Test(verbs_link_local, contact_26_the_device_is_the_link_s, .timeout = 60)
{
	static const char *const link[] = { "lo", "d0" };
	struct rdma_event_channel *ch;
	struct sockaddr_in6 a;
	struct rdma_cm_id *id;

	two_links();
	vp_use("device a0\nport 1\ninterface lo\nport 2\ninterface d0\n");
	ch = rdma_create_event_channel();
	for (int i = 0; i < 2; i++) {
		a = link_local(link[i]);
		cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
		cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&a), 0, "%m");
		cr_expect_eq(id->port_num, i + 1, "%s", link[i]);
		cr_expect_eq(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(ch);
}

/* ---- interfaces that go and come, in a network of the test's own ---- */

/* A network with a loopback interface that is down; without the right to have one the test is skipped. */
static void use_own_verbs_ports_network(void)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		cr_skip_test("no network of its own: %m");
}

static void set_verbs_ports_up(const char *interface, bool up)
{
	struct ifreq r = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	strcpy(r.ifr_name, interface);
	cr_assert_eq(ioctl(fd, SIOCGIFFLAGS, &r), 0, "%s: %m", interface);
	r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0, "%s: %m", interface);
	close(fd);
}

static struct ibv_context *open_verbs_ports_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);

	ibv_free_device_list(list);
	cr_assert_not_null(ctx, "%m");
	return ctx;
}

static enum ibv_port_state get_verbs_ports_state(struct ibv_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr;

	cr_assert_eq(ibv_query_port(ctx, port, &attr), 0);
	return attr.state;
}

static void expect_port_event(struct ibv_context *ctx, enum ibv_event_type type, int port)
{
	struct ibv_async_event e = vt_async(ctx, type);

	cr_expect_eq(e.element.port_num, port);
	ibv_ack_async_event(&e);
}

Test(verbs_ports, one_goes_and_comes_with_its_interface, .timeout = 60)
{
	struct ibv_context *ctx;

	use_own_verbs_ports_network();
	vp_use("device a0\nport 1\ninterface nonesuch0\nport 2\ninterface lo\n");
	ctx = open_verbs_ports_device();
	cr_expect_eq(get_verbs_ports_state(ctx, 2), IBV_PORT_DOWN);
	set_verbs_ports_up("lo", true);
	expect_port_event(ctx, IBV_EVENT_PORT_ACTIVE, 2);
	cr_expect_eq(get_verbs_ports_state(ctx, 2), IBV_PORT_ACTIVE);
	set_verbs_ports_up("lo", false);
	expect_port_event(ctx, IBV_EVENT_PORT_ERR, 2);
	cr_expect_eq(get_verbs_ports_state(ctx, 2), IBV_PORT_DOWN);
	cr_expect_eq(get_verbs_ports_state(ctx, 1), IBV_PORT_DOWN);
	set_verbs_ports_up("lo", true);
	expect_port_event(ctx, IBV_EVENT_PORT_ACTIVE, 2);
	cr_expect_not(vt_readable(ctx->async_fd, 20), "nothing but that");
	cr_expect_eq(ibv_close_device(ctx), 0);
}

/* Without a profile the port is there as long as the host is; its address may be another. */
Test(verbs_ports, another_address_is_another_gid, .timeout = 60)
{
	union ibv_gid before, after;
	struct ibv_context *ctx;

	use_own_verbs_ports_network();
	set_verbs_ports_up("lo", true);
	ctx = open_verbs_ports_device();
	cr_assert_eq(ibv_query_gid(ctx, 1, 0, &before), 0);
	if (system("(ip link add d0 type dummy || ip link add d0 type bridge) 2>/dev/null && ip "
		   "address add 192.0.2.77/24 dev d0"))
		cr_skip_test("no dummy interface here");
	set_verbs_ports_up("d0", true);
	expect_port_event(ctx, IBV_EVENT_GID_CHANGE, 1);
	cr_assert_eq(ibv_query_gid(ctx, 1, 0, &after), 0);
	cr_expect_arr_eq(after.raw + 12, ((uint8_t[]){ 192, 0, 2, 77 }), 4);
	set_verbs_ports_up("d0", false);
	expect_port_event(ctx, IBV_EVENT_GID_CHANGE, 1);
	cr_assert_eq(ibv_query_gid(ctx, 1, 0, &after), 0);
	cr_expect_arr_eq(after.raw, before.raw, 16);
	cr_expect_eq(get_verbs_ports_state(ctx, 1), IBV_PORT_ACTIVE);
	cr_expect_eq(ibv_close_device(ctx), 0);
}
