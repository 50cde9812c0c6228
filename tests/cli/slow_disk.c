/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A disk that is slow, or fails, when the test says so (slow_disk.sh).  The call that DISK_SLOW names says in the
 * FIFO DISK_AT that it was made on a file, and does what the next octet of the FIFO DISK_GO says, which the test
 * keeps open: goes on (g), or fails with ENOSPC (n) or EIO (e).  With "open" it is the opening of a file whose name
 * is "hangs".
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_slow(const char *call)
{
	const char *slow = getenv("DISK_SLOW");

	return slow && strcmp(slow, call) == 0 && getenv("DISK_AT") && getenv("DISK_GO");
}

static int obeys(void)
{
	const char *at = getenv("DISK_AT"), *go = getenv("DISK_GO");
	char word;
	int f;

	f = open(at, O_WRONLY | O_CLOEXEC);
	if (f < 0 || write(f, "at\n", 3) != 3)
		abort();
	close(f);
	f = open(go, O_RDONLY | O_CLOEXEC);
	if (f < 0 || read(f, &word, 1) != 1)
		abort();
	close(f);
	errno = word == 'n' ? ENOSPC : EIO;
	return word != 'g';
}

static int held(const char *call, int fd)
{
	struct stat st;

	return is_slow(call) && !fstat(fd, &st) && S_ISREG(st.st_mode) && obeys();
}

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (is_slow("open") && strcmp(path, "hangs") == 0 && obeys())
		return -1;
	return NEXT(open)(path, flags, mode);
}

int fsync(int fd)
{
	return held("fsync", fd) ? -1 : NEXT(fsync)(fd);
}

ssize_t pread64(int fd, void *buf, size_t len, off64_t off)
{
	return held("read", fd) ? -1 : NEXT(pread64)(fd, buf, len, off);
}

ssize_t pread(int fd, void *buf, size_t len, off_t off)
{
	return held("read", fd) ? -1 : NEXT(pread)(fd, buf, len, off);
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t off)
{
	return held("write", fd) ? -1 : NEXT(pwrite64)(fd, buf, len, off);
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	return held("write", fd) ? -1 : NEXT(pwrite)(fd, buf, len, off);
}
