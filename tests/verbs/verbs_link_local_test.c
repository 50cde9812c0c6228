/* SPDX-License-Identifier: BSD-2-Clause */
/* Link-local addresses of IPv6, which mean something on their link only (RFC 4007). */
#include "verbs/vd.h"
#include "verbs/vt_fault.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static struct sockaddr_in6 link_local(const char *interface)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_scope_id = if_nametoindex(interface) };

	inet_pton(AF_INET6, "fe80::7", &a.sin6_addr);
	return a;
}

/* The system makes the way to a new address a moment after the address, by a thread of its own. */
static void await_way(const char *interface)
{
	struct sockaddr_in6 a = link_local(interface);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), ms = 0;

	cr_assert_geq(fd, 0);
	a.sin6_port = htons(9);
	while (connect(fd, (struct sockaddr *)&a, sizeof a)) {
		cr_assert_lt(ms++, VT_MS, "%s: %m", interface);
		poll(NULL, 0, 1);
	}
	close(fd);
}

/* Two links that have the same address. */
static void two_links(void)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		cr_skip_test("no network of its own: %m");
	if (system("(ip link add d0 type dummy || ip link add d0 type bridge) 2>/dev/null && "
		   "ip link set lo up && ip link set d0 up && "
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
