/* SPDX-License-Identifier: BSD-2-Clause */
/* copy FROM TO: files and folders, with their rights; the image has nothing else that can copy. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_OPEN 16

static const char *to;
static size_t from_len;

static int report_failure(const char *path)
{
	fprintf(stderr, "copy: '%s': %s\n", path, strerror(errno));
	return 1;
}

static int copy_file(const char *from, const char *path, const struct stat *st)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t n;

	if (in < 0)
		return report_failure(from);
	unlink(path);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return report_failure(path);
	do
		n = sendfile(out, in, NULL, 1 << 20);
	while (n > 0);
	if (n < 0 || fchmod(out, st->st_mode & 0777) || close(out))
		return report_failure(path);
	return close(in);
}

static int copy_entry(const char *from, const struct stat *st, int kind, struct FTW *at)
{
	char path[PATH_MAX];

	(void)at;
	if ((size_t)snprintf(path, sizeof path, "%s%s", to, from + from_len) >= sizeof path) {
		errno = ENAMETOOLONG;
		return report_failure(from);
	}
	switch (kind) {
	case FTW_D:
		return mkdir(path, st->st_mode & 0777) && errno != EEXIST ? report_failure(path)
									  : 0;
	case FTW_F:
		return copy_file(from, path, st);
	default:
		errno = EACCES;
		return report_failure(from);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: copy FROM TO\n");
		return 2;
	}
	to = argv[2];
	from_len = strlen(argv[1]);
	while (from_len > 1 && argv[1][from_len - 1] == '/')
		argv[1][--from_len] = 0;
	if (!strcmp(argv[1], "/"))
		from_len = 0; /* the names behind it bring their slash */
	umask(0);
	switch (nftw(argv[1], copy_entry, FOLDERS_OPEN, FTW_PHYS)) {
	case 0:
		return 0;
	case -1:
		return report_failure(argv[1]);
	default:
		return 1;
	}
}
