/* SPDX-License-Identifier: BSD-2-Clause */
/* What a socket below an SCTP is set to, and whose the memory of its control messages is. */
#include "sctp_ddp/backend/sd_route.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "unit/sys_fixture.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

TestSuite(sd_sock_open, .timeout = 30);

#define JUNK 0x5a

static int get_sd_sock_open_option(int fd, int level, int opt)
{
	int v = -1;
	socklen_t len = sizeof v;

	return getsockopt(fd, level, opt, &v, &len) < 0 ? -1 : v;
}

/* As it is without anything set. */
static int open_plain_sd_sock_open(int family)
{
	return socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void udp_is_set(int family)
{
	bool gso = false;
	int fd = ddps_sd_sock_open(family, false, &gso), none = open_plain_sd_sock_open(family);

	cr_assert_geq(fd, 0);
	cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect_gt(get_sd_sock_open_option(fd, SOL_SOCKET, SO_RCVBUF),
		     get_sd_sock_open_option(none, SOL_SOCKET, SO_RCVBUF));
	cr_expect_gt(get_sd_sock_open_option(fd, SOL_SOCKET, SO_SNDBUF),
		     get_sd_sock_open_option(none, SOL_SOCKET, SO_SNDBUF));
	cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IP, IP_PKTINFO), 1);
	cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IP, IP_RECVERR), 1);
	cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_PROBE);
	if (family == AF_INET6) {
		cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO), 1);
		cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IPV6, IPV6_RECVERR), 1);
		cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER),
			     IPV6_PMTUDISC_PROBE);
	}
	cr_expect_eq(gso, get_sd_sock_open_option(none, IPPROTO_UDP, UDP_SEGMENT) >= 0,
		     "if the kernel knows it");
	cr_expect_eq(ddps_sd_sock_rcvbuf(fd), get_sd_sock_open_option(fd, SOL_SOCKET, SO_RCVBUF));
	ddps_sd_sock_set_df(fd, family, false);
	cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_DONT);
	if (family == AF_INET6)
		cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER),
			     IPV6_PMTUDISC_OMIT);
	ddps_sd_sock_set_df(fd, family, true);
	cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_PROBE);
	if (family == AF_INET6)
		cr_expect_eq(get_sd_sock_open_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER),
			     IPV6_PMTUDISC_PROBE);
	close(fd);
	close(none);
}

Test(sd_sock_open, udp, .description = "8261-5-6")
{
	udp_is_set(AF_INET);
	udp_is_set(AF_INET6);
}

/* Several datagrams in one read, if the kernel knows that. */
Test(sd_sock_open, udp_is_read_in_runs)
{
	bool gso;
	int fd = ddps_sd_sock_open(AF_INET, false, &gso), none = open_plain_sd_sock_open(AF_INET);
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;
	uint16_t size = 10;
	char buf[100];

	cr_assert_eq(bind(fd, (struct sockaddr *)&sa, len), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	cr_assert_eq(connect(none, (struct sockaddr *)&sa, len), 0);
	if (gso) {
		int on = size;

		cr_assert_eq(setsockopt(none, IPPROTO_UDP, UDP_SEGMENT, &on, sizeof on), 0);
		cr_assert_eq(send(none, memset(buf, 1, 40), 40, 0), 40);
		cr_expect_eq(recv(fd, buf, sizeof buf, MSG_DONTWAIT), 40);
	}
	close(fd);
	close(none);
}

Test(sd_sock_open, directly_on_ip)
{
	bool gso = true;
	int fd = ddps_sd_sock_open(AF_INET, true, &gso);

	if (fd < 0)
		cr_skip_test("needs a privilege");
	cr_expect_not(gso);
	cr_expect_eq(get_sd_sock_open_option(fd, SOL_SOCKET, SO_TYPE), SOCK_RAW);
	cr_expect_eq(get_sd_sock_open_option(fd, SOL_SOCKET, SO_PROTOCOL), 132);
	close(fd);
}

Test(sd_sock_open, none_is_left)
{
	bool gso;

	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(ddps_sd_sock_open(AF_INET, false, &gso), -1);
	cr_expect_eq(ddps_sd_sock_rcvbuf(-1), 0);
}

/* Where the program has closed its standard input. */
Test(sd_sock_open, the_first_descriptor_is_one_like_others)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_storage to = { 0 };
	uint32_t mtu;
	bool gso;

	memcpy(&to, &sa, sizeof sa);
	mtu = ddps_sd_route_mtu(&to);
	close(0);
	cr_expect_gt(mtu, 0);
	cr_expect_eq(ddps_sd_route_mtu(&to), mtu);
	cr_expect_geq(ddps_sd_sock_open(AF_INET, false, &gso), 0);
}

/* ---- addresses ---- */

static struct sockaddr_storage make_bound_address(int family, const char *text)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6 };

	if (family == AF_INET) {
		cr_assert_eq(inet_pton(AF_INET, text, &a4.sin_addr), 1);
		memcpy(&ss, &a4, sizeof a4);
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, &a6.sin6_addr), 1);
		memcpy(&ss, &a6, sizeof a6);
	}
	return ss;
}

Test(sd_sock_open, the_way_to_a_mapped_address_is_that_of_ipv4)
{
	struct sockaddr_storage v4 = make_bound_address(AF_INET, "127.9.8.7"),
				mapped = make_bound_address(AF_INET6, "::ffff:127.9.8.7"),
				v6 = make_bound_address(AF_INET6, "::1");

	cr_expect_gt(ddps_sd_sock_mtu(&v4), 0);
	cr_expect_eq(ddps_sd_sock_mtu(&mapped), ddps_sd_sock_mtu(&v4));
	cr_expect_eq(ddps_sd_sock_mtu(&v6), ddps_sd_route_mtu(&v6));
}

/* ---- control messages ---- */

Test(sd_sock_open, without_a_control_message_nothing_is_known)
{
	struct sockaddr_storage local;
	struct msghdr m = { 0 };

	memset(&local, JUNK, sizeof local);
	cr_expect_eq(ddps_sd_sock_dest(&m, &local), 0);
	for (size_t i = 0; i < sizeof local; i++)
		cr_expect_eq(((uint8_t *)&local)[i], 0);
}

/* The octets between and behind what is said are given to the kernel, too. */
static void nothing_else_is_said(int family, const char *text)
{
	struct sockaddr_storage ss = make_bound_address(family, text);
	union ddps_sd_cmsg x, y;
	struct msghdr m = { 0 }, n = { 0 };

	memset(&x, JUNK, sizeof x);
	memset(&y, 0, sizeof y);
	ddps_sd_sock_source(&m, &x, &ss);
	ddps_sd_sock_segment(&m, &x, 1200);
	ddps_sd_sock_source(&n, &y, &ss);
	ddps_sd_sock_segment(&n, &y, 1200);
	cr_assert_eq(m.msg_controllen, n.msg_controllen);
	cr_expect_arr_eq(&x, &y, m.msg_controllen);
}

Test(sd_sock_open, control_messages_have_no_other_octets)
{
	nothing_else_is_said(AF_INET, "127.0.0.1");
	nothing_else_is_said(AF_INET6, "2001:db8::1");
}

Test(sd_sock_open, a_size_alone)
{
	union ddps_sd_cmsg x;
	struct msghdr m = { 0 };
	struct cmsghdr *c;
	uint16_t size;

	memset(&x, JUNK, sizeof x);
	ddps_sd_sock_segment(&m, &x, 1200);
	cr_assert_eq(m.msg_controllen, CMSG_SPACE(sizeof size));
	cr_assert_eq(m.msg_control, (void *)&x);
	c = CMSG_FIRSTHDR(&m);
	cr_expect_eq(c->cmsg_level, IPPROTO_UDP);
	cr_expect_eq(c->cmsg_type, UDP_SEGMENT);
	cr_expect_eq(c->cmsg_len, CMSG_LEN(sizeof size));
	memcpy(&size, CMSG_DATA(c), sizeof size);
	cr_expect_eq(size, 1200);
	for (size_t i = CMSG_LEN(sizeof size); i < CMSG_SPACE(sizeof size); i++)
		cr_expect_eq(((uint8_t *)&x)[i], 0);
}

/* The interface is the scope's, and else not said. */
Test(sd_sock_open, the_interface_of_the_source)
{
	static const struct {
		int family;
		const char *addr;
		uint32_t scope;
	} row[] = { { AF_INET, "127.0.0.1", 0 },
		    { AF_INET6, "2001:db8::1", 0 },
		    { AF_INET6, "fe80::1", 7 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct sockaddr_storage ss = make_bound_address(row[i].family, row[i].addr);
		struct in6_pktinfo i6;
		union ddps_sd_cmsg x;
		struct msghdr m = { 0 };
		struct in_pktinfo i4;
		struct cmsghdr *h;

		if (row[i].family == AF_INET6)
			((struct sockaddr_in6 *)&ss)->sin6_scope_id = row[i].scope;
		memset(&x, JUNK, sizeof x);
		ddps_sd_sock_source(&m, &x, &ss);
		h = CMSG_FIRSTHDR(&m);
		cr_assert(h);
		memcpy(&i4, CMSG_DATA(h), sizeof i4);
		memcpy(&i6, CMSG_DATA(h), sizeof i6);
		if (row[i].family == AF_INET)
			cr_expect_eq(i4.ipi_ifindex, 0);
		else
			cr_expect_eq(i6.ipi6_ifindex, row[i].scope);
		for (size_t k = h->cmsg_len; k < m.msg_controllen; k++)
			cr_expect_eq(((uint8_t *)&x)[k], 0, "behind it nothing is said");
	}
}

/* ---- what is set ---- */

static struct {
	int level, opt, value;
} sets[40];
static unsigned nsets;
static bool no_segments;

static int note_socket_option(int fd, int level, int opt, const void *v, socklen_t len)
{
	int value;

	cr_assert_eq(len, sizeof value);
	cr_assert_lt(nsets, sizeof sets / sizeof *sets);
	memcpy(&value, v, sizeof value);
	sets[nsets].level = level;
	sets[nsets].opt = opt;
	sets[nsets++].value = value;
	if (no_segments && level == IPPROTO_UDP && opt == UDP_SEGMENT) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return sys_setsockopt(fd, level, opt, v, len);
}

static int value_of(int level, int opt)
{
	int value = -1;

	for (unsigned i = 0; i < nsets; i++)
		if (sets[i].level == level && sets[i].opt == opt)
			value = sets[i].value;
	return value;
}

/* Beyond the system's limit where that is allowed, and up to it where not. */
Test(sd_sock_open, buffers_are_as_large_as_may_be)
{
	static const int opts[] = { SO_RCVBUF, SO_SNDBUF, SO_RCVBUFFORCE, SO_SNDBUFFORCE };
	bool gso;

	sys_instead.setsockopt = note_socket_option;
	close(ddps_sd_sock_open(AF_INET, false, &gso));
	for (size_t i = 0; i < sizeof opts / sizeof *opts; i++)
		cr_expect_eq(value_of(SOL_SOCKET, opts[i]), 8 << 20, "option %d", opts[i]);
}

/* The parts of what is too long for the link pass anywhere: RFC 8200 5. */
Test(sd_sock_open, ipv6_is_cut_to_what_passes_anywhere)
{
	bool gso;
	int fd = ddps_sd_sock_open(AF_INET6, false, &gso);

	sys_instead.setsockopt = note_socket_option;
	ddps_sd_sock_set_df(fd, AF_INET6, false);
	cr_expect_eq(value_of(IPPROTO_IPV6, IPV6_MTU), 1280);
	ddps_sd_sock_set_df(fd, AF_INET6, true);
	cr_expect_eq(value_of(IPPROTO_IPV6, IPV6_MTU), 0, "as the link takes it");
	close(fd);
}

Test(sd_sock_open, a_kernel_that_cuts_no_datagrams)
{
	bool gso = true;

	no_segments = true;
	sys_instead.setsockopt = note_socket_option;
	close(ddps_sd_sock_open(AF_INET, false, &gso));
	cr_expect_not(gso);
}
