/* SPDX-License-Identifier: BSD-2-Clause */
/* What sockets below an SCTP say and are asked to do: control messages, headers, families, routes. */
#include "sctp_ddp/backend/sd_route.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "unit/sys_fixture.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

TestSuite(sd_sock, .timeout = 30);

/* ---- control messages ---- */

static union {
	struct cmsghdr align;
	uint8_t buf[400];
} ctrl;
static struct msghdr m;

static void begin_sd_sock(void)
{
	memset(&ctrl, 0, sizeof ctrl);
	m = (struct msghdr){ .msg_control = ctrl.buf };
}

/* One more control message. */
static void add_to_sd_sock(int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)(ctrl.buf + m.msg_controllen);

	*c = (struct cmsghdr){ .cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(len) };
	memcpy(CMSG_DATA(c), data, len);
	m.msg_controllen += CMSG_SPACE(len);
	cr_assert_leq(m.msg_controllen, sizeof ctrl.buf);
}

static void add_v4(const char *text)
{
	struct in_pktinfo i = { .ipi_ifindex = 3 };

	inet_pton(AF_INET, text, &i.ipi_spec_dst);
	add_to_sd_sock(IPPROTO_IP, IP_PKTINFO, &i, sizeof i);
}

static void add_v6(const char *text)
{
	struct in6_pktinfo i = { .ipi6_ifindex = 3 };

	inet_pton(AF_INET6, text, &i.ipi6_addr);
	add_to_sd_sock(IPPROTO_IPV6, IPV6_PKTINFO, &i, sizeof i);
}

static struct sockaddr_storage dest(int *size)
{
	struct sockaddr_storage ss;

	memset(&ss, 0xff, sizeof ss);
	*size = ddps_sd_sock_dest(&m, &ss);
	return ss;
}

static void expect_addr(const struct sockaddr_storage *ss, const char *want, uint32_t scope)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (ss->ss_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const void *)ss;

		inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
		cr_expect_eq(a->sin6_scope_id, scope);
	} else if (ss->ss_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)ss)->sin_addr, text, sizeof text);
	}
	cr_expect_str_eq(text, want);
}

Test(sd_sock, where_a_packet_came_to)
{
	struct sockaddr_storage ss;
	int gro = 1452, size;

	begin_sd_sock();
	ss = dest(&size);
	expect_addr(&ss, "", 0);
	cr_expect_eq(size, 0);

	add_v4("192.0.2.7");
	ss = dest(&size);
	expect_addr(&ss, "192.0.2.7", 0);
	add_to_sd_sock(IPPROTO_UDP, UDP_GRO, &gro, sizeof gro);
	add_v6("2001:db8::7"); /* a socket of both families says both */
	ss = dest(&size);
	expect_addr(&ss, "2001:db8::7", 0);
	cr_expect_eq(size, 1452);

	begin_sd_sock();
	add_v6("fe80::7");
	add_v4("192.0.2.7");
	ss = dest(&size);
	expect_addr(&ss, "fe80::7", 3);
	cr_expect_eq(size, 0);
}

/* Other messages of the same levels say nothing, nor does one that was cut off. */
Test(sd_sock, other_control_messages)
{
	struct sockaddr_storage ss;
	int other = 7, size;

	begin_sd_sock();
	add_to_sd_sock(IPPROTO_IP, IP_TTL, &other, sizeof other);
	add_to_sd_sock(IPPROTO_IPV6, IPV6_HOPLIMIT, &other, sizeof other);
	add_to_sd_sock(IPPROTO_UDP, UDP_GRO + 1, &other, sizeof other);
	add_to_sd_sock(SOL_SOCKET, IP_PKTINFO, &other, sizeof other);
	ss = dest(&size);
	expect_addr(&ss, "", 0);
	cr_expect_eq(size, 0);
	add_v4("192.0.2.7");
	m.msg_controllen = 4 * CMSG_SPACE(sizeof other) + sizeof(struct cmsghdr) - 1;
	ss = dest(&size);
	expect_addr(&ss, "", 0);
}

Test(sd_sock, where_a_packet_goes_from)
{
	static const char *const text[] = { "192.0.2.7", "2001:db8::7" };
	struct sockaddr_storage ss = { 0 }, back;
	union ddps_sd_cmsg c;
	int size;

	m = (struct msghdr){ 0 };
	ddps_sd_sock_source(&m, &c, &ss);
	cr_expect_null(m.msg_control, "from any");
	for (int v6 = 0; v6 < 2; v6++) {
		m = (struct msghdr){ 0 };
		ss = (struct sockaddr_storage){ .ss_family = v6 ? AF_INET6 : AF_INET };
		inet_pton(ss.ss_family, text[v6],
			  v6 ? (void *)&((struct sockaddr_in6 *)&ss)->sin6_addr
			     : (void *)&((struct sockaddr_in *)&ss)->sin_addr);
		ddps_sd_sock_source(&m, &c, &ss);
		back = dest(&size);
		expect_addr(&back, text[v6], 0);
		ddps_sd_sock_segment(&m, &c, 1400);
		cr_expect_eq(m.msg_controllen, CMSG_SPACE(v6 ? sizeof(struct in6_pktinfo)
							     : sizeof(struct in_pktinfo)) +
						       CMSG_SPACE(sizeof(uint16_t)));
	}
}

Test(sd_sock, what_an_error_is_about)
{
	struct sock_extended_err in = { .ee_errno = EMSGSIZE, .ee_info = 1300 }, out;
	int other = 1;

	begin_sd_sock();
	cr_expect_not(ddps_sd_sock_error(&m, &out), "nothing");
	add_to_sd_sock(IPPROTO_IP, IP_TTL, &other, sizeof other);
	add_to_sd_sock(IPPROTO_IPV6, IPV6_HOPLIMIT, &other, sizeof other);
	add_to_sd_sock(SOL_SOCKET, IP_RECVERR, &in, sizeof in);
	add_to_sd_sock(IPPROTO_IP, IP_RECVERR, &in, sizeof in - 1);
	cr_expect_not(ddps_sd_sock_error(&m, &out), "none that is whole");
	add_to_sd_sock(IPPROTO_IP, IP_RECVERR, &in, sizeof in);
	memset(&out, 0, sizeof out);
	cr_assert(ddps_sd_sock_error(&m, &out));
	cr_expect_eq(out.ee_info, 1300);
	begin_sd_sock();
	in.ee_info = 1280;
	add_to_sd_sock(IPPROTO_IPV6, IPV6_RECVERR, &in, sizeof in);
	cr_assert(ddps_sd_sock_error(&m, &out));
	cr_expect_eq(out.ee_info, 1280);
}

/* ---- the header that a raw socket shows ---- */

Test(sd_sock, ip_header_is_stepped_over)
{
	static const struct {
		int family;
		uint8_t first;
		size_t len;
		bool ok;
		size_t hdr;
	} row[] = {
		{ AF_INET, 0x45, 19, false, 0 }, { AF_INET, 0x45, 20, true, 20 },
		{ AF_INET, 0x45, 60, true, 20 }, { AF_INET, 0x44, 60, false, 0 },
		{ AF_INET, 0x46, 23, false, 0 }, { AF_INET, 0x46, 24, true, 24 },
		{ AF_INET, 0x4f, 60, true, 60 }, { AF_INET, 0x65, 60, false, 0 },
		{ AF_INET, 0x35, 60, false, 0 }, { AF_INET6, 0x00, 4, true, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		uint8_t *pkt = calloc(1, row[i].len), *at = pkt;
		size_t len = row[i].len;

		pkt[0] = row[i].first;
		cr_expect_eq(ddps_sd_sock_strip_ip(row[i].family, &at, &len), row[i].ok, "%zu", i);
		cr_expect_eq(at, pkt + row[i].hdr, "%zu", i);
		cr_expect_eq(len, row[i].len - row[i].hdr, "%zu", i);
		free(pkt);
	}
}

/* ---- families ---- */

Test(sd_sock, each_family_of_the_peer_needs_one_of_ours)
{
	static const struct {
		const char *from, *to;
		bool fit;
	} row[] = {
		{ "", "4", true },    { "", "46", true },   { "4", "4", true },
		{ "4", "6", false },  { "6", "4", false },  { "6", "6", true },
		{ "46", "46", true }, { "4", "46", false }, { "6", "64", false },
		{ "64", "4", true },  { "44", "4", true },  { "4", "", true },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct ddps_uri_addrs from = { 0 }, to = { 0 };

		for (const char *p = row[i].from; *p; p++)
			from.at[from.n++].ss_family = *p == '6' ? AF_INET6 : AF_INET;
		for (const char *p = row[i].to; *p; p++)
			to.at[to.n++].ss_family = *p == '6' ? AF_INET6 : AF_INET;
		cr_expect_eq(ddps_sd_sock_families_fit(&from, &to), row[i].fit, "%s to %s",
			     row[i].from, row[i].to);
	}
}

/* ---- what a route takes ---- */

static _Alignas(struct nlmsghdr) uint8_t answer[400];
static size_t answer_len;

static void put_sd_sock_attr(size_t *at, uint16_t type, const void *data, size_t len)
{
	struct rtattr a = { .rta_type = type, .rta_len = (uint16_t)(sizeof a + len) };

	memcpy(answer + *at, &a, sizeof a);
	memcpy(answer + *at + sizeof a, data, len);
	*at += (sizeof a + len + 3) & ~(size_t)3;
}

static size_t begin_answer(void)
{
	memset(answer, 0, sizeof answer);
	return NLMSG_LENGTH(sizeof(struct rtmsg));
}

static void end_answer(size_t at)
{
	struct nlmsghdr n = { .nlmsg_type = RTM_NEWROUTE, .nlmsg_len = (uint32_t)at };

	answer_len = at;
	memcpy(answer, &n, sizeof n);
}

/* The kernel's answer: device @dev, metrics with @mtu; 0: not said. */
static void make_answer(uint32_t dev, uint32_t mtu)
{
	size_t at = begin_answer(), inner;
	uint32_t hops = 7;

	put_sd_sock_attr(&at, RTA_TABLE, "abc", 3); /* with a pad behind it */
	if (mtu) {
		inner = at + sizeof(struct rtattr);
		put_sd_sock_attr(&inner, RTAX_HOPLIMIT, &hops, sizeof hops);
		put_sd_sock_attr(&inner, RTAX_MTU, &mtu, sizeof mtu);
		memcpy(answer + at,
		       &(struct rtattr){ .rta_type = RTA_METRICS,
					 .rta_len = (uint16_t)(inner - at) },
		       sizeof(struct rtattr));
		at = inner;
	}
	if (dev)
		put_sd_sock_attr(&at, RTA_OIF, &dev, sizeof dev);
	end_answer(at);
}

static uint32_t open_sd_sock_device(void *user, uint32_t index)
{
	cr_expect_eq(user, answer);
	return index == 3 ? 1500 : 0;
}

static uint32_t read_answer(size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	uint32_t mtu;

	memcpy(copy, answer, len);
	mtu = ddps_sd_route_read(copy, len, open_sd_sock_device, answer);
	free(copy);
	return mtu;
}

Test(sd_sock, the_route_or_its_device_says_the_size)
{
	static const struct {
		uint32_t dev, mtu, want;
	} row[] = { { 3, 0, 1500 },    { 3, 1400, 1400 }, { 3, 1500, 1500 }, { 3, 9000, 1500 },
		    { 0, 1400, 1400 }, { 0, 0, 0 },	  { 4, 0, 0 },	     { 4, 1400, 1400 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		make_answer(row[i].dev, row[i].mtu);
		cr_expect_eq(read_answer(answer_len), row[i].want, "%zu", i);
	}
}

static void set_len(uint32_t len)
{
	struct nlmsghdr n;

	memcpy(&n, answer, sizeof n);
	n.nlmsg_len = len;
	memcpy(answer, &n, sizeof n);
}

Test(sd_sock, an_answer_that_is_cut_or_lies)
{
	const uint32_t head = NLMSG_LENGTH(sizeof(struct rtmsg));
	struct rtattr a;
	struct nlmsghdr n;

	make_answer(3, 1400);
	for (uint32_t len = 0; len < answer_len; len++)
		cr_expect_eq(read_answer(len), 0, "%u octets are not all", len);
	for (uint32_t len = 0; len < head; len++) {
		set_len(len);
		cr_expect_eq(read_answer(answer_len), 0, "a length of %u", len);
	}
	set_len((uint32_t)answer_len + 1);
	cr_expect_eq(read_answer(answer_len), 0, "it says more than there is");
	set_len(head);
	cr_expect_eq(read_answer(answer_len), 0, "no attributes");

	make_answer(3, 0); /* attributes of no length, or beyond the end, end the list */
	for (uint16_t len = 0; len < sizeof a; len++) {
		a = (struct rtattr){ .rta_len = len };
		memcpy(answer + head, &a, sizeof a);
		cr_expect_eq(read_answer(answer_len), 0, "an attribute of %u", len);
	}
	a.rta_len = (uint16_t)(answer_len - head + 1);
	memcpy(answer + head, &a, sizeof a);
	cr_expect_eq(read_answer(answer_len), 0);
	make_answer(3, 0);
	memcpy(&a, answer + head + 8, sizeof a);
	cr_assert_eq(a.rta_type, RTA_OIF);
	a.rta_len--; /* the index is not whole: that is no device's */
	memcpy(answer + head + 8, &a, sizeof a);
	cr_expect_eq(read_answer(answer_len), 0);

	make_answer(3, 0);
	memcpy(&n, answer, sizeof n);
	n.nlmsg_type = NLMSG_ERROR;
	memcpy(answer, &n, sizeof n);
	cr_expect_eq(read_answer(answer_len), 0);
}

Test(sd_sock, the_kernel_knows_its_loopback)
{
	struct sockaddr_storage ss = { .ss_family = AF_INET };

	((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_expect_eq(ddps_sd_route_mtu(&ss), 65536);
	ss.ss_family = AF_UNIX; /* no way there */
	cr_expect_eq(ddps_sd_route_mtu(&ss), 0);
}

/* Metrics that say nothing of a size. */
Test(sd_sock, a_route_with_other_metrics)
{
	const size_t head = NLMSG_LENGTH(sizeof(struct rtmsg)) + 8;
	const size_t mtu = head + sizeof(struct rtattr) + 8;
	struct rtattr a;

	make_answer(3, 1400);
	memcpy(&a, answer + mtu, sizeof a);
	cr_assert_eq(a.rta_type, RTAX_MTU);
	a.rta_type = RTAX_WINDOW;
	memcpy(answer + mtu, &a, sizeof a);
	cr_expect_eq(read_answer(answer_len), 1500, "the device's");
}

Test(sd_sock, a_device_that_does_not_say_its_size)
{
	struct sockaddr_storage ss = { .ss_family = AF_INET };

	((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sys_fail("ioctl", 0, 1, ENODEV);
	cr_expect_eq(ddps_sd_route_mtu(&ss), 0);
	cr_expect_eq(sys_failed(), 1);
	sys_fail("send", 0, 1, ENOBUFS);
	cr_expect_eq(ddps_sd_route_mtu(&ss), 0);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_eq(ddps_sd_route_mtu(&ss), 65536);
}

static const uint32_t dev = 3;

/* What says nothing is passed over. */
Test(sd_sock, an_attribute_without_a_value)
{
	size_t at = begin_answer();

	put_sd_sock_attr(&at, RTA_TABLE, "", 0);
	put_sd_sock_attr(&at, RTA_OIF, &dev, sizeof dev);
	end_answer(at);
	cr_expect_eq(read_answer(answer_len), 1500);
}

/* What was read before it counts. */
Test(sd_sock, an_attribute_that_says_more_than_there_is)
{
	struct rtattr a = { .rta_len = 100, .rta_type = RTA_OIF };
	size_t at = begin_answer();

	put_sd_sock_attr(&at, RTA_OIF, &dev, sizeof dev);
	memcpy(answer + at, &a, sizeof a);
	end_answer(at + 8);
	cr_expect_eq(read_answer(answer_len), 1500);
}

/* The octets up to the next multiple of four are no attribute. */
Test(sd_sock, what_is_behind_the_last_attribute)
{
	const struct rtattr none = { .rta_len = sizeof none, .rta_type = RTA_OIF };

	for (size_t len = 0; len < 20; len++) {
		size_t at = begin_answer(), end;

		put_sd_sock_attr(&at, RTA_OIF, &dev, sizeof dev);
		end = at + sizeof none + len;
		put_sd_sock_attr(&at, RTA_TABLE, "abcdefghijklmnopqrst", len);
		if (at == end) /* nothing to fill up */
			continue;
		memcpy(answer + end, &none, sizeof none);
		end_answer(end + sizeof none);
		cr_expect_eq(read_answer(answer_len), 1500, "%zu octets", len);
	}
}

Test(sd_sock, a_size_that_is_not_whole)
{
	size_t at = begin_answer(), inner = at + sizeof(struct rtattr);
	struct rtattr a = { .rta_type = RTA_METRICS };

	put_sd_sock_attr(&inner, RTAX_MTU, "\1\1", 2);
	a.rta_len = (uint16_t)(inner - at);
	memcpy(answer + at, &a, sizeof a);
	at = inner;
	put_sd_sock_attr(&at, RTA_OIF, &dev, sizeof dev);
	end_answer(at);
	cr_expect_eq(read_answer(answer_len), 1500, "the device's");
}

/* ---- what the kernel is asked ---- */

static uint8_t asked[100];
static size_t asked_len;

static ssize_t peek_asked_route(int fd, const void *b, size_t len, int flags)
{
	cr_assert_leq(len, sizeof asked);
	memcpy(asked, b, len);
	asked_len = len;
	return sys_send(fd, b, len, flags);
}

static void asks_for(int family, const char *text, uint8_t bits)
{
	struct {
		struct nlmsghdr n;
		struct rtmsg r;
		struct rtattr a;
		uint8_t addr[16];
	} want = {
		.n = { .nlmsg_len = (uint32_t)offsetof(typeof(want), addr) + bits / 8u,
		       .nlmsg_type = RTM_GETROUTE,
		       .nlmsg_flags = NLM_F_REQUEST },
		.r = { .rtm_family = (unsigned char)family,
		       .rtm_dst_len = bits,
		       .rtm_flags = RTM_F_FIB_MATCH },
		.a = { .rta_len = (uint16_t)(4 + bits / 8), .rta_type = RTA_DST },
	};
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };
	void *addr = family == AF_INET ? (void *)&((struct sockaddr_in *)&ss)->sin_addr
				       : (void *)&((struct sockaddr_in6 *)&ss)->sin6_addr;

	cr_assert_eq(inet_pton(family, text, addr), 1);
	memcpy(want.addr, addr, bits / 8u);
	ddps_sd_route_mtu(&ss);
	cr_assert_eq(asked_len, want.n.nlmsg_len);
	cr_expect_arr_eq(asked, &want, asked_len, "%s", text);
}

Test(sd_sock, the_kernel_is_asked_for_the_route_to_the_whole_address)
{
	sys_instead.send = peek_asked_route;
	asks_for(AF_INET, "127.1.2.3", 32);
	asks_for(AF_INET6, "2001:db8:1234:5678:9abc:def0:1122:3344", 128);
}

Test(sd_sock, no_socket_to_ask_with)
{
	struct sockaddr_storage ss = { .ss_family = AF_INET };

	((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(ddps_sd_route_mtu(&ss), 0);
	cr_expect_eq(sys_failed(), 1);
}
