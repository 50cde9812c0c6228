/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that are to be persistent.  msync says success of any memory, so the list of what is mapped says
 * beforehand which a device keeps.
 */
#include "session/session.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DELETED " (deleted)" /* the end of the name of a file that has none any more */

/* ---- file systems above others ---- */

/* The number of the mount that has @path, or -1. */
static int get_mount_of(const char *path)
{
	char name[48], line[128];
	int fd = open(path, O_PATH | O_CLOEXEC), id = -1;
	FILE *f;

	if (fd < 0)
		return -1;
	snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
	f = fopen(name, "re");
	while (f && id < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
	if (f)
		fclose(f);
	close(fd);
	return id;
}

/* What "\054" and the like stand for, in place. */
static void read_octals(char *s)
{
	char *to = s;
	unsigned v;

	for (; *s; s++, to++) {
		*to = *s;
		if (*s == '\\' && sscanf(s + 1, "%3o", &v) == 1 && strspn(s + 1, "01234567") >= 3) {
			*to = (char)v;
			s += 3;
		}
	}
	*to = 0;
}

/* Where an overlay writes, from its options, which are changed.  NULL: nowhere, or it never has to be on a device. */
static char *find_upper(char *options)
{
	char *upper = NULL, *at, *o;

	for (o = strtok_r(options, ",\n", &at); o; o = strtok_r(NULL, ",\n", &at)) {
		if (!strcmp(o, "volatile") || !strcmp(o, "fsync=volatile"))
			return NULL;
		if (!strncmp(o, "upperdir=", 9))
			upper = o + 9;
	}
	if (upper)
		read_octals(upper);
	return upper;
}

/* Those of the mount @id, of a line "ID PARENT DEVICE ROOT PLACE ... - TYPE SOURCE OPTIONS"; NULL: not that. */
static char *find_mount_options(char *line, int id)
{
	char *end = strstr(line, " - ");
	int n, at = 0;

	if (!end || sscanf(line, "%d", &n) != 1 || n != id)
		return NULL;
	(void)sscanf(end, " - %*s %*s %n", &at);
	return at ? end + at : NULL;
}

/* Whether an overlay with @path writes to a file system that can be seen from here, and whose type is *@type then. */
static bool get_type_below(const char *path, uint32_t *type)
{
	char *line = NULL, *options = NULL, *upper;
	int id = get_mount_of(path);
	struct statfs fs;
	size_t room = 0;
	bool seen;
	FILE *f;

	f = id < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	while (f && !options && getline(&line, &room, f) > 0)
		options = find_mount_options(line, id);
	if (f)
		fclose(f);
	upper = options ? find_upper(options) : NULL;
	seen = upper && *upper == '/' && !statfs(upper, &fs);
	if (seen)
		*type = (uint32_t)fs.f_type;
	free(line);
	return seen;
}

/* ---- regions ---- */

/* Whether the file system of @path outlives the system. */
static bool is_kept(const char *path)
{
	const size_t n = strlen(path), end = sizeof DELETED - 1;
	struct statfs fs;
	uint32_t type;

	if (*path != '/' || (n > end && !strcmp(path + n - end, DELETED)) || statfs(path, &fs))
		return false;
	type = (uint32_t)fs.f_type;
	if (type == OVERLAYFS_SUPER_MAGIC && !get_type_below(path, &type))
		return false;
	return type != TMPFS_MAGIC && type != RAMFS_MAGIC && type != HUGETLBFS_MAGIC &&
	       type != OVERLAYFS_SUPER_MAGIC;
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
