/* SPDX-License-Identifier: BSD-2-Clause */
/* The size of the path: links that take little, and ICMP messages that say so. */
#include "sctp_ddp/backend/sd_route.h"
#include "sctp_ddp/backend/usrsctp/sd_usrsctp_icmp.h"
#include "sd_usrsctp_fixture.h"
#include <linux/errqueue.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PATH 1000u

static struct sock_extended_err too_big(uint32_t mtu)
{
	return (struct sock_extended_err){ .ee_errno = EMSGSIZE,
					   .ee_origin = SO_EE_ORIGIN_ICMP,
					   .ee_type = 3,
					   .ee_code = 4,
					   .ee_info = mtu };
}

static void tell(struct side *s, uint32_t mtu, const uint8_t *quoted, size_t len)
{
	struct sock_extended_err e = too_big(mtu);
	struct ddps_us_handle *h = s->a->h;

	ddps_us_lock(h->carrier->ue);
	ddps_us_icmp_take(h->carrier, &h->to, &e, quoted, len);
	ddps_us_unlock();
}

/* Both directions, whole and in fragments of SCTP. */
static void exchange(struct side *a, struct side *b, unsigned n, size_t len)
{
	unsigned had_a = a->messages, had_b = b->messages;

	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(send_one(a, 1, SEGMENT, len), 0);
		cr_assert_eq(send_one(b, 2, SEGMENT, len), 0);
	}
	WAIT_FOR((a->messages == had_a + n && b->messages == had_b + n) || a->gone || b->gone, &cn,
		 &sn);
	cr_expect_eq(a->gone + b->gone, 0, "%s%s", a->end.text, b->end.text);
	cr_expect_not(a->bad || b->bad);
}

Test(sd_usrsctp_path, attack_2_forged_icmp_changes_nothing)
{
	uint8_t p[20] = { 0 };
	struct ddps_sd_assoc_info before, after;

	set_up(AF_INET);
	B->info(cli.a, &before);
	for (size_t i = 0; i < 8; i++) { /* each octet of ports and tag counts */
		memcpy(p, cli.a->h->sent, 8);
		p[i] ^= 1;
		tell(&cli, 300, p, sizeof p);
	}
	for (size_t n = 0; n < 8; n++) /* as little as RFC 792 asks a router to quote, and less */
		tell(&cli, 300, cli.a->h->sent, n);
	memset(p + 4, 0, 4);
	p[12] = 1;
	memset(p + 16, 7, 4);
	tell(&cli, 300, p, sizeof p); /* an INIT, and the association is up */
	tell(&cli, 67, cli.a->h->sent, 8);
	tell(&cli, 0, cli.a->h->sent, 8); /* no link is that narrow */
	exchange(&cli, &srv.peers[0], 20, 5000);
	B->info(cli.a, &after);
	cr_expect_eq(after.max_user_data, before.max_user_data);
	stop();
}

Test(sd_usrsctp_path, attack_2_and_7_verified_icmp_narrows_the_path_and_is_told)
{
	static const uint32_t mtu[] = { 1500, 1280, 576, 552, 296, 68 };
	struct ddps_sd_assoc_info i;
	size_t last;

	set_up(AF_INET);
	B->info(cli.a, &i);
	for (size_t k = 0; k < sizeof mtu / sizeof mtu[0]; k++) {
		last = i.max_user_data;
		tell(&cli, mtu[k], cli.a->h->sent, 8);
		WAIT_FOR((B->info(cli.a, &i), i.max_user_data < last), &cn, &sn);
		WAIT_FOR(cli.paths == k + 1, &cn, &sn);
		if (mtu[k] >= 296)
			cr_expect_eq(i.max_user_data, mtu[k] - 28 - DDPS_US_HDR);
		exchange(&cli, &srv.peers[0], 10, 5000);
	}
	tell(&cli, 1500, cli.a->h->sent, 8);
	cr_expect_lt(cli.a->h->payload, 296, "no message makes a path wider");
	stop();
}

/* ---- links ---- */

/* A loopback interface of our own that takes @mtu octets; false: not allowed here. */
static bool narrow_loopback(int mtu)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_mtu = mtu };
	int fd;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(ioctl(fd, SIOCSIFMTU, &r), 0);
	r.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
	return true;
}

static void over(int mtu)
{
	struct ddps_sd_assoc_info i;

	if (!narrow_loopback(mtu))
		cr_skip_test("no network of its own");
	set_up(AF_INET);
	B->info(cli.a, &i);
	cr_expect_eq(i.max_user_data, ((size_t)mtu - 28 - DDPS_US_HDR) & ~(size_t)3);
	exchange(&cli, &srv.peers[0], 50, 100);
	exchange(&cli, &srv.peers[0], 50, 1400);
	exchange(&cli, &srv.peers[0], 10, 60000);
	stop();
}

Test(sd_usrsctp_path, attack_2_a_path_of_552_octets)
{
	over(552);
}

Test(sd_usrsctp_path, attack_2_a_path_of_296_octets)
{
	over(296);
}

/* What the kernel believes of the path, as one datagram of anybody made it do, is not asked. */
Test(sd_usrsctp_path, attack_2_the_route_is_as_it_was_configured)
{
	struct sockaddr_storage to;

	if (!narrow_loopback(PATH))
		cr_skip_test("no network of its own");
	loopback(&to, AF_INET, 0);
	cr_expect_eq(ddps_sd_route_mtu(&to), PATH);
	to.ss_family = AF_UNIX;
	cr_expect_eq(ddps_sd_route_mtu(&to), 0);
}
