/* SPDX-License-Identifier: BSD-2-Clause */
/* Which addresses a device has, as the kernel reports it: here the kernel is the other end of a socket pair. */
#include "ipoib/bridge/tun.h"
#include <criterion/criterion.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tun_watch w;
static int kernel;
static char told[400]; /* "+10.0.0.N/PREFIX " or "-..." each */

static void begin_tun_watch(void)
{
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
	w = (struct tun_watch){ .fd = fd[0] };
	kernel = fd[1];
	told[0] = 0;
}

static void end_tun_watch(void)
{
	close(w.fd);
	close(kernel);
}

TestSuite(tun_watch, .init = begin_tun_watch, .fini = end_tun_watch);

static void hear(void *arg, int family, const uint8_t *addr, unsigned prefix, bool has)
{
	size_t n = strlen(told);

	(void)arg;
	snprintf(told + n, sizeof told - n, "%c%s%u/%u ", has ? '+' : '-',
		 family == AF_INET ? "" : "v6:", addr[family == AF_INET ? 3 : 15], prefix);
}

static void expect_tun_told(const char *what)
{
	tun_watch_read(&w, "lo", hear, NULL);
	cr_expect_str_eq(told, what, "'%s', not '%s'", told, what);
	told[0] = 0;
}

static void put_attribute(struct nlmsghdr *h, unsigned short type, const void *p, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), p, len);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + (unsigned)RTA_SPACE(len);
}

static void say(unsigned short type, int family, uint8_t last, uint8_t prefix, uint8_t peer)
{
	_Alignas(struct nlmsghdr) uint8_t b[200] = { 0 };
	struct nlmsghdr *h = (void *)b;
	struct ifaddrmsg m = { .ifa_family = (uint8_t)family,
			       .ifa_prefixlen = prefix,
			       .ifa_index = if_nametoindex("lo") };
	uint8_t ip[16] = { 10, [3] = last }, there[16] = { 10, [3] = peer };
	size_t n = family == AF_INET ? 4 : 16;

	ip[n - 1] = last;
	there[n - 1] = peer;
	h->nlmsg_type = type;
	h->nlmsg_len = (unsigned)NLMSG_LENGTH(sizeof m);
	memcpy(NLMSG_DATA(h), &m, sizeof m);
	put_attribute(h, IFA_ADDRESS, there, n);
	if (peer != last)
		put_attribute(h, IFA_LOCAL, ip, n);
	cr_assert_eq(send(kernel, b, h->nlmsg_len, 0), (ssize_t)h->nlmsg_len);
}

static void say_done(void)
{
	struct nlmsghdr h = { .nlmsg_len = sizeof h, .nlmsg_type = NLMSG_DONE };

	cr_assert_eq(send(kernel, &h, sizeof h, 0), (ssize_t)sizeof h);
}

/* Return: how many lists were asked for. */
static unsigned count_questions(void)
{
	uint8_t b[200];
	unsigned n = 0;

	while (recv(kernel, b, sizeof b, 0) > 0)
		n++;
	return n;
}

Test(tun_watch, what_comes_and_goes_is_reported)
{
	say(RTM_NEWADDR, AF_INET, 1, 24, 1);
	say(RTM_NEWADDR, AF_INET6, 2, 64, 2);
	expect_tun_told("+1/24 +v6:2/64 ");
	say(RTM_DELADDR, AF_INET, 1, 24, 1);
	expect_tun_told("-1/24 ");
}

Test(tun_watch, an_address_with_another_prefix_stays_when_one_goes)
{
	for (int family = AF_INET; family; family = family == AF_INET ? AF_INET6 : 0) {
		const char *v6 = family == AF_INET6 ? "v6:" : "";
		char want[80];

		say(RTM_NEWADDR, family, 1, 0, 1);
		say(RTM_NEWADDR, family, 1, 16, 1);
		say(RTM_NEWADDR, family, 1, 16, 9);
		snprintf(want, sizeof want, "+%s1/0 +%s1/16 +%s1/16 ", v6, v6, v6);
		expect_tun_told(want);
		say(RTM_DELADDR, family, 1, 0, 1);
		snprintf(want, sizeof want, "+%s1/16 ", v6);
		expect_tun_told(want);
		say(RTM_DELADDR, family, 1, 16, 9);
		expect_tun_told(want);
		say(RTM_DELADDR, family, 1, 16, 1);
		snprintf(want, sizeof want, "-%s1/16 ", v6);
		expect_tun_told(want);
	}
}

Test(tun_watch, a_deletion_that_was_lost_is_found_by_a_list)
{
	say(RTM_NEWADDR, AF_INET, 1, 24, 1);
	say(RTM_NEWADDR, AF_INET, 2, 24, 2);
	expect_tun_told("+1/24 +2/24 ");
	tun_watch_lost(&w);
	cr_expect_eq(count_questions(), 1);
	say(RTM_NEWADDR, AF_INET, 2, 24, 2);
	expect_tun_told("+2/24 ");
	say(RTM_NEWADDR, AF_INET, 3, 24, 3); /* news in between */
	say_done();
	expect_tun_told("+3/24 -1/24 ");
	say_done(); /* of nobody's list */
	expect_tun_told("");
}

Test(tun_watch, what_is_lost_while_a_list_comes_makes_another_one)
{
	say(RTM_NEWADDR, AF_INET, 1, 24, 1);
	expect_tun_told("+1/24 ");
	tun_watch_lost(&w);
	tun_watch_lost(&w);
	cr_expect_eq(count_questions(), 1, "the kernel makes one at a time");
	say(RTM_NEWADDR, AF_INET, 1, 24, 1);
	say_done();
	expect_tun_told("+1/24 ");
	cr_expect_eq(count_questions(), 1);
	say_done();
	expect_tun_told("-1/24 ");
	cr_expect_eq(count_questions(), 0);
}

Test(tun_watch, another_device_and_what_is_no_address_are_passed_over)
{
	struct nlmsghdr h = { .nlmsg_len = sizeof h, .nlmsg_type = RTM_NEWADDR };

	cr_assert_eq(send(kernel, &h, sizeof h, 0), (ssize_t)sizeof h);
	say(RTM_NEWADDR, AF_UNIX, 1, 24, 1);
	say(RTM_NEWLINK, AF_INET, 1, 24, 1);
	expect_tun_told("");
	say(RTM_NEWADDR, AF_INET, 1, 24, 1);
	tun_watch_read(&w, "no such device", hear, NULL);
	expect_tun_told("");
}
