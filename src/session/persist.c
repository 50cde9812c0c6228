/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that are to be persistent.  msync says success of any memory, so the list of what is mapped says
 * beforehand which a device keeps.
 */
#include "session/session.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DELETED " (deleted)" /* the end of the name of a file that has none any more */

/* Whether the file system of @path outlives the system. */
static bool is_kept(const char *path)
{
	const size_t n = strlen(path), end = sizeof DELETED - 1;
	struct statfs fs;

	if (*path != '/' || (n > end && !strcmp(path + n - end, DELETED)) || statfs(path, &fs))
		return false;
	switch ((uint32_t)fs.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
		return false;
	default:
		return true;
	}
}

/* A line of the list: "START-END rwxs OFFSET DEVICE INODE   PATH".  Return: whether it is one. */
static bool read_map_line(char *line, uintptr_t *start, uintptr_t *end, bool *kept)
{
	char how = 0;
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*3c%c %*s %*s %*s %n", start, end, &how, &at) <
		    3 ||
	    !at)
		return false;
	*kept = how == 's' && is_kept(line + at);
	return true;
}

static bool is_all_kept(FILE *maps, uintptr_t at, uintptr_t to)
{
	uintptr_t start, end;
	char *line = NULL;
	size_t room = 0;
	bool kept;

	while (at < to && getline(&line, &room, maps) > 0) {
		if (!read_map_line(line, &start, &end, &kept) || end <= at)
			continue;
		if (start > at || !kept)
			break;
		at = end;
	}
	free(line);
	return at >= to;
}

bool ddps_can_persist(const void *addr, size_t len)
{
	const uintptr_t at = (uintptr_t)addr;
	int keep = errno;
	bool can = !len;
	FILE *maps;

	if (can || at + len < at)
		return can;
	ddps_uncancellable();
	maps = fopen("/proc/self/maps", "re");
	if (maps) {
		can = is_all_kept(maps, at, at + len);
		fclose(maps);
	}
	ddps_uncancellable_end();
	errno = keep;
	return can;
}

int ddps_persist(void *addr, size_t len)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)addr,
			from = at & ~(page - 1);

	return msync((uint8_t *)addr - (at - from), at - from + len, MS_SYNC) ? DDPS_E_SYSTEM : 0;
}
