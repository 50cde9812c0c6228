/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that appears under its name when it is whole and on the disk, or not at all. */
#include "cli/temp.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MODE 0666 /* less the umask */

static int part_name(struct temp *t)
{
	uint32_t r;

	if (getrandom(&r, sizeof r, 0) != sizeof r)
		return -1;
	/* 15 characters of ours must fit next to it */
	snprintf(t->part, sizeof t->part, ".%.*s.%08x.part", NAME_MAX - 15, t->base, r);
	return 0;
}

/* /proc/self/fd/N names an open file that has no name. */
static void proc_path(char *dst, size_t size, int fd)
{
	snprintf(dst, size, "/proc/self/fd/%d", fd);
}

static int open_anonymous(struct temp *t, mode_t mode)
{
	char path[40];
	int fd = openat(t->dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);

	if (fd < 0)
		return -1;
	/* without /proc it could never be given a name */
	proc_path(path, sizeof path, fd);
	if (access(path, F_OK)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void guard(struct temp *t)
{
	t->guard = (struct sig_file){ .dirfd = t->dirfd, .name = t->part };
	sig_file_add(&t->guard);
}

static int open_named(struct temp *t, mode_t mode)
{
	int fd;

	for (int try = 0; try < 16; try++) {
		if (part_name(t))
			return -1;
		guard(t);
		fd = openat(t->dirfd, t->part, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
			    mode);
		if (fd >= 0)
			return fd;
		sig_file_remove(&t->guard);
		t->part[0] = 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Meet a full disk before the transfer, not in it.  Nothing is reserved: the peer names the size. */
static int find_room(int fd, uint64_t size)
{
	struct statvfs v;

	/* a file system that does not know: its writes will tell */
	if (!size || fstatvfs(fd, &v) || !v.f_blocks || !v.f_frsize ||
	    (size + v.f_frsize - 1) / v.f_frsize <= v.f_bavail)
		return 0;
	errno = ENOSPC;
	return -1;
}

/* Why what has the name already stays: only files are replaced, and only if asked for; a rename would put
 * a file where a device or a link was. */
static int find_name_refusal(mode_t mode, bool force)
{
	if (S_ISDIR(mode))
		return EISDIR;
	if (!force)
		return EEXIST;
	if (S_ISLNK(mode))
		return ELOOP;
	return S_ISREG(mode) ? 0 : ENXIO;
}

int temp_open(struct temp *t, int dirfd, const char *base, uint64_t size, bool force, bool named)
{
	struct stat st;
	bool there;
	int err;

	*t = (struct temp)TEMP_NONE;
	if (strlen(base) > NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(t->base, base, strlen(base) + 1);
	there = !fstatat(dirfd, base, &st, AT_SYMLINK_NOFOLLOW);
	if (there && find_name_refusal(st.st_mode, force)) {
		errno = find_name_refusal(st.st_mode, force);
		return -1;
	}
	t->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	if (t->dirfd < 0)
		return -1;
	t->fd = named ? -1 : open_anonymous(t, MODE);
	if (t->fd < 0)
		t->fd = open_named(t, MODE);
	/* what only its owner could read is so from the first octet on */
	if (t->fd >= 0 && !(there && fchmod(t->fd, st.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO))) &&
	    !find_room(t->fd, size))
		return 0;
	err = errno;
	temp_abort(t);
	errno = err;
	return -1;
}

int temp_open_path(struct temp *t, const char *path, uint64_t size)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int dirfd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, res, err = errno;

	free(dir);
	res = dirfd < 0 ? -1 : temp_open(t, dirfd, slash ? slash + 1 : path, size, true, false);
	if (dirfd >= 0) {
		err = errno;
		close(dirfd);
	}
	errno = err;
	return res;
}

int temp_open_unnamed(struct temp *t, uint64_t size)
{
	const char *dir = getenv("TMPDIR");
	int err;

	*t = (struct temp){ .fd = -1, .dirfd = -1, .base = "sessctl" };
	t->dirfd = open(dir && *dir ? dir : "/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dirfd >= 0)
		t->fd = open_anonymous(t, S_IRUSR | S_IWUSR); /* others look into that folder */
	if (t->dirfd >= 0 && t->fd < 0)
		t->fd = open_named(t, S_IRUSR | S_IWUSR);
	if (t->part[0] && !unlinkat(t->dirfd, t->part, 0)) {
		sig_file_remove(&t->guard);
		t->part[0] = 0;
	}
	if (t->fd >= 0 && !t->part[0] && !find_room(t->fd, size))
		return 0;
	err = errno;
	temp_abort(t);
	errno = err;
	return -1;
}

int temp_write(struct temp *t, const void *buf, uint32_t len, uint64_t off)
{
	const char *p = buf;
	uint32_t todo = len;

	while (todo) {
		ssize_t n = pwrite(t->fd, p, todo, (off_t)off + (len - todo));

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			p += n;
			todo -= (uint32_t)n;
		}
	}
	/* begin to write back now, so that the fsync at the end is short; a hint only */
	if (len)
		sync_file_range(t->fd, (off_t)off, len, SYNC_FILE_RANGE_WRITE);
	return 0;
}

static int link_anonymous(struct temp *t, const char *name)
{
	char path[40];

	proc_path(path, sizeof path, t->fd);
	return linkat(AT_FDCWD, path, t->dirfd, name, AT_SYMLINK_FOLLOW);
}

/* Rename the part, replacing nothing. */
static int rename_new(struct temp *t)
{
	/* Not every libc has a function for it. */
	if (!syscall(SYS_renameat2, t->dirfd, t->part, t->dirfd, t->base, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* a file system without the flag: a hard link replaces nothing either */
	if (linkat(t->dirfd, t->part, t->dirfd, t->base, 0))
		return -1;
	return unlinkat(t->dirfd, t->part, 0);
}

static int name_temp(struct temp *t, bool force)
{
	int err;

	if (!t->part[0] && !force)
		return link_anonymous(t, t->base);
	if (!t->part[0]) { /* a link replaces nothing, so go through a name of our own */
		if (part_name(t))
			return -1;
		guard(t);
		if (link_anonymous(t, t->part))
			return -1;
	}
	err = force ? renameat(t->dirfd, t->part, t->dirfd, t->base) : rename_new(t);
	if (err)
		return -1;
	sig_file_remove(&t->guard);
	t->part[0] = 0;
	return 0;
}

/* While a slow disk was at work the file may have become unwanted. */
static int check_wanted(const atomic_bool *off)
{
	errno = ECANCELED;
	return off && atomic_load(off) ? -1 : 0;
}

int temp_commit(struct temp *t, bool force, const atomic_bool *off)
{
	/* a directory that cannot be synchronised (EINVAL) is none of a disk's */
	int bad = (!t->passing && fsync(t->fd)) || check_wanted(off) || name_temp(t, force) ||
		  (!t->passing && fsync(t->dirfd) && errno != EINVAL);
	int err = errno;

	temp_abort(t);
	errno = err;
	return bad ? -1 : 0;
}

void temp_abort(struct temp *t)
{
	if (t->part[0]) {
		unlinkat(t->dirfd, t->part, 0);
		sig_file_remove(&t->guard);
	}
	if (t->fd >= 0)
		close(t->fd);
	if (t->dirfd >= 0)
		close(t->dirfd);
	*t = (struct temp)TEMP_NONE;
}
