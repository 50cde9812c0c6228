/* SPDX-License-Identifier: BSD-2-Clause */
/* Names from a peer: which are taken, and how they are opened without leaving a directory. */
#include "cli/safe.h"
#include "cli/text.h"
#include "common/system/file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *component_fault(const char *at, size_t n)
{
	if (!n)
		return "the name has an empty component";
	if ((n == 1 && at[0] == '.') || (n == 2 && !memcmp(at, "..", 2)))
		return "the name has a component '.' or '..'";
	if (n > 5 && at[0] == '.' && !memcmp(at + n - 5, ".part", 5))
		return "names of the form '.*.part' are reserved for unfinished files";
	return NULL;
}

const char *safe_name_fault(const char *name)
{
	size_t len = strlen(name);
	const char *why = NULL;

	if (!len)
		return "the name is empty";
	if (len > SAFE_NAME_MAX)
		return "the name is longer than 255 octets";
	if (name[0] == '/')
		return "the name is absolute";
	if (!text_is_clean(name, len))
		return "the name has control characters or is not UTF-8";
	while (!why) {
		size_t n = strcspn(name, "/");

		why = component_fault(name, n);
		if (!name[n])
			break;
		name += n + 1;
	}
	return why;
}

int safe_open_walk(int dirfd, const char *path, int flags)
{
	int at = fcntl(dirfd, F_DUPFD_CLOEXEC, 0), next;
	char part[SAFE_NAME_MAX + 1];

	while (at >= 0) {
		size_t n = strcspn(path, "/");
		bool last = !path[n];

		if (!n || n >= sizeof part || (n == 2 && !memcmp(path, "..", 2))) {
			close(at);
			errno = EXDEV;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = 0;
		next = openat(at, part,
			      (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		if (last)
			return next;
		at = next;
		path += n + 1;
	}
	return -1;
}

int safe_open(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do /* EAGAIN: a rename raced with the check */
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
	while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	/* EPERM: what older seccomp filters answer to calls they do not know */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return safe_open_walk(dirfd, path, flags);
	return (int)fd;
}

FILE *safe_create(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | ddps_anew(path), mode);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

int safe_open_parent(int dirfd, const char *name, const char **base)
{
	const char *slash = strrchr(name, '/');
	char dir[SAFE_NAME_MAX + 1];

	*base = slash ? slash + 1 : name;
	if (!slash)
		return fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - name), name);
	return safe_open(dirfd, dir, O_RDONLY | O_DIRECTORY);
}

int safe_open_file(int dirfd, const char *name, uint64_t max, uint64_t *size, const char **why)
{
	struct stat st;
	int fd;

	*why = safe_name_fault(name);
	if (*why)
		return -1;
	/* O_NONBLOCK: a FIFO must not hold up everybody */
	fd = safe_open(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		*why = safe_reason(errno);
	else if (!S_ISREG(st.st_mode))
		*why = "not a regular file";
	else if ((uint64_t)st.st_size > max)
		*why = "the file is larger than the limit";
	else {
		*size = (uint64_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

const char *safe_reason(int sys_errno)
{
	switch (sys_errno) {
	case EXDEV:
	case ELOOP:
		return "the name is a link, or leads through one, out of the directory";
	case ENOENT:
		return "no such file or directory";
	case ENOTDIR:
		return "a part of the name is not a directory";
	case ENXIO: /* a socket, or a FIFO */
		return "not a regular file";
	case ENOSPC:
	case EDQUOT:
		return "no space is left where the listener keeps its files; make room there";
	case EFBIG:
		return "the file is larger than the listener may write (its ulimit -f)";
	default:
		return strerror(sys_errno);
	}
}
