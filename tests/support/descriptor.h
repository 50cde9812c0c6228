/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_DESCRIPTOR_H
#define DDPS_TEST_DESCRIPTOR_H
/* What a test wants to know of descriptors. */
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>

/* The number that the next one gets. */
static inline int find_next_fd(void)
{
	int fd = dup(1);

	close(fd);
	return fd;
}

static inline int get_socket_option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	cr_assert_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

#endif
