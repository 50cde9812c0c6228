/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_NATIVE_FIXTURE_H
#define SD_NATIVE_FIXTURE_H
/* Two contexts and one association between them, on the native backend, and what it is inside. */
#include "sctp_ddp/backend/native/sd_native.h"
#include "sd_pair_fixture.h"
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define B (&ddps_sd_native)

static inline void set_sd_native_loopback(int mtu)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_mtu = mtu };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(ioctl(fd, SIOCSIFMTU, &r), 0);
	r.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

/* A loopback interface of our own that takes @mtu octets; false: not allowed here. */
static inline bool narrow_loopback(int mtu)
{
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	set_sd_native_loopback(mtu);
	return true;
}

#endif
