/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces that go and come, in a network of the test's own. */
#include "verbs/vt_fault.h"
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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
