/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/vt.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rules_fd = -1, trace_fd = -1;

/* Files without a name, which the drop-in opens by their descriptors. */
static int nameless(const char *variable)
{
	char path[64];
	int fd = memfd_create("faults", 0);

	cr_assert_geq(fd, 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	cr_assert_eq(setenv(variable, path, 1), 0);
	return fd;
}

void vf_use(const char *rules)
{
	rules_fd = nameless("DDPSESS_FAULTS");
	trace_fd = nameless("DDPSESS_TRACE");
	cr_assert_eq(write(rules_fd, rules, strlen(rules)), (ssize_t)strlen(rules));
}

void vp_use(const char *profile)
{
	int fd = nameless("DDPSESS_PROFILE");

	cr_assert_eq(write(fd, profile, strlen(profile)), (ssize_t)strlen(profile));
}

const char *vf_traced(void)
{
	static char text[65536];
	ssize_t n = pread(trace_fd, text, sizeof text - 1, 0);

	cr_assert_geq(n, 0);
	text[n] = 0;
	return text;
}

void vf_up(struct vt *v, const char *rules)
{
	vf_use(rules);
	vt_init(v);
	vt_up(v);
}

void vf_may_not_pin(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	cr_assert_eq(syscall(SYS_capget, &head, data), 0);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	cr_assert_eq(syscall(SYS_capset, &head, data), 0);
}
