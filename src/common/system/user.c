/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/system/user.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OVERFLOW_UID 65534u	  /* if nothing says otherwise */
#define ALL_USERS    4294967295ul /* (uid_t)-1 is none */

/* The first line of @path, or false. */
static bool read_proc_line(const char *path, char *line, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, line, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return true;
}

static uid_t get_overflow_uid(void)
{
	char line[32];

	return read_proc_line("/proc/sys/kernel/overflowuid", line, sizeof line)
		       ? (uid_t)strtoul(line, NULL, 10)
		       : OVERFLOW_UID;
}

/* Only a map of all has one line of that length, and then only if those above map all, too. */
static bool maps_all_users(void)
{
	unsigned long inside, outside, count;
	char line[64];

	return read_proc_line("/proc/self/uid_map", line, sizeof line) &&
	       sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 && count == ALL_USERS;
}

bool ddps_user_is_nobody(uid_t uid)
{
	return (uid == OVERFLOW_UID || uid == get_overflow_uid()) && !maps_all_users();
}

bool ddps_user_is_own(uid_t uid)
{
	return uid == geteuid() && !ddps_user_is_nobody(uid);
}
