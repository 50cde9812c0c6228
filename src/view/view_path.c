/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/view.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const folders[] = { "/sys/class/infiniband", "/sys/class/infiniband_verbs",
				       "/dev/infiniband" };

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return !strncmp(path, folder, n) && (!path[n] || path[n] == '/');
}

static bool is_path_ours(const char *path)
{
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (is_below(path, folders[i]))
			return true;
	return false;
}

/*
 * Without empty folders, "." and "..".  @passed: whether it leads through a folder of ours.
 * Return: its length, or 0: it does not fit.
 */
static size_t make_plain_path(const char *path, char *buf, size_t len, bool *passed)
{
	size_t at = 0, n;

	for (*passed = false; *path; path += n) {
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (at && buf[--at] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			if (n + 2 > len - at)
				return 0;
			buf[at++] = '/';
			memcpy(buf + at, path, n);
			at += n;
		}
		buf[at] = 0;
		*passed |= is_path_ours(buf);
	}
	return at;
}

const char *view_into(const char *root, const char *path, char *buf, size_t len)
{
	size_t n = strlen(root);
	bool passed;

	/* Nearly every path is none of these. */
	if (!path || *path != '/' || !strstr(path, "infiniband") || n >= len)
		return path;
	if (!make_plain_path(path, buf + n, len - n, &passed) || !passed)
		return path;
	if (!is_path_ours(buf + n))
		return buf + n; /* out of them again */
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the path is behind it */
	memcpy(buf, root, n);
	return buf;
}

void view_out_of(const char *root, char *path)
{
	size_t n = strlen(root);

	if (n && is_below(path, root) && path[n])
		memmove(path, path + n, strlen(path + n) + 1);
}
