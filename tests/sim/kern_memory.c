/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is passed as a descriptor, and the few files that there are. */
#include "sim/kern_in.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FILES "/sim/" /* the folder of those that are simulated */
#define MAPS  2048u
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

struct kern_memory {
	unsigned held; /* by descriptors, and by messages on their way */
	uint8_t *base;
	size_t len;
	int seals;
	uint64_t inode;
};

static uint64_t memories;
static void *maps[MAPS]; /* that are mapped */

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
int __real_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len);
int __real_fcntl(int fd, int op, ...);
int __wrap_fcntl(int fd, int op, ...);
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_fallocate(int fd, int mode, off_t off, off_t len);
int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __real_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice);
int __real_flock(int fd, int op);
int __wrap_flock(int fd, int op);

/* ---- memory ---- */

struct kern_memory *kern_memory_hold(struct kern_memory *m)
{
	m->held++;
	return m;
}

void kern_memory_release(struct kern_memory *m)
{
	if (!m || --m->held)
		return;
	if (m->base)
		__real_munmap(m->base, m->len);
	free(m);
}

int kern_memory_open(struct kern_memory *m)
{
	int fd = kern_new(KERN_MEMORY);

	if (fd >= 0)
		kern_file(fd)->memory = kern_memory_hold(m);
	return fd;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	struct kern_memory *m;
	int fd;

	(void)name;
	/* EINVAL: a system that does not know one of the flags, of which the two are as old as the call */
	if (flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING)
		    ? kern_fails("memfd_create", EINVAL, EMFILE, ENOMEM)
		    : kern_fails("memfd_create", ENFILE, EMFILE, ENOMEM))
		return -1;
	m = kern_alloc(sizeof *m);
	*m = (struct kern_memory){ .held = 1, .inode = ++memories };
	fd = kern_memory_open(m);
	kern_memory_release(m);
	return fd;
}

int __wrap_fallocate(int fd, int mode, off_t off, off_t len)
{
	struct kern_memory *m = kern_file(fd)->memory;

	(void)mode;
	(void)off;
	kern_point(false);
	if (kern_fails("fallocate", EINTR, ENOSPC, ENOMEM))
		return -1;
	m->base = __real_mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			      -1, 0);
	if (m->base == MAP_FAILED)
		abort();
	m->len = (size_t)len;
	return 0;
}

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	unsigned i = 0;

	if (kern_fails("mmap", ENOMEM))
		return MAP_FAILED;
	if (fd < KERN_FD)
		return __real_mmap(at, len, prot, flags, fd, off);
	while (maps[i])
		i++;
	/* The same pages once more, at another address. */
	maps[i] = mremap(kern_file(fd)->memory->base, 0, len, MREMAP_MAYMOVE);
	if (maps[i] == MAP_FAILED || mprotect(maps[i], len, prot))
		abort();
	kern.live++;
	return maps[i];
}

int __wrap_munmap(void *at, size_t len)
{
	for (unsigned i = 0; i < MAPS; i++) {
		if (maps[i] != at)
			continue;
		maps[i] = NULL;
		kern.live--;
		break;
	}
	return __real_munmap(at, len);
}

int __wrap_fcntl(int fd, int op, ...)
{
	struct kern_memory *m;
	va_list ap;
	void *arg;

	va_start(ap, op);
	arg = va_arg(ap, void *);
	va_end(ap);
	kern_point(false);
	if (fd < KERN_FD)
		return __real_fcntl(fd, op, arg);
	m = kern_file(fd)->memory;
	if (!m)
		return kern_err(EBADF);
	if (op == F_GET_SEALS)
		return m->seals;
	if (kern_fails("fcntl", EINVAL)) /* a system that does not know the seal */
		return -1;
	m->seals |= (int)(intptr_t)arg;
	return 0;
}

int __wrap_fstat(int fd, struct stat *st)
{
	const struct kern_memory *m;

	if (fd < KERN_FD)
		return __real_fstat(fd, st);
	m = kern_file(fd)->memory;
	if (!m)
		return kern_err(EBADF); /* nobody needs to know */
	*st = (struct stat){ .st_ino = m->inode,
			     .st_size = (off_t)m->len,
			     .st_blocks = (blkcnt_t)(m->len / 512) };
	return 0;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	if (fd < KERN_FD)
		return __real_fstatfs(fd, fs);
	*fs = (struct statfs){ .f_type = kern_file(fd)->memory ? TMPFS_MAGIC : 0 };
	return 0;
}

static bool is_map(const void *at)
{
	for (unsigned i = 0; i < MAPS; i++)
		if (maps[i] == at)
			return true;
	return false;
}

int __wrap_madvise(void *at, size_t len, int advice)
{
	/* One chance for a map, however many pieces it is read in. */
	if (advice == MADV_POPULATE_READ && is_map(at) &&
	    kern_fails("madvise", EFAULT, ENOMEM, EINVAL))
		return -1;
	return __real_madvise(at, len, advice);
}

/* ---- files: names of sockets, and the folder they are in ---- */

static bool is_simulated(const char *path)
{
	return !strncmp(path, FILES, sizeof FILES - 1);
}

int __wrap_lstat(const char *path, struct stat *st)
{
	uint64_t inode;

	if (!is_simulated(path))
		return __real_lstat(path, st);
	inode = kern_unix_inode(path);
	if (!inode)
		return kern_err(ENOENT);
	*st = (struct stat){ .st_mode = S_IFSOCK | 0700, .st_dev = 1, .st_ino = inode };
	return 0;
}

int __wrap_unlink(const char *path)
{
	if (!is_simulated(path))
		return __real_unlink(path);
	return kern_unix_unlink(path) ? 0 : kern_err(ENOENT);
}

int __wrap_open(const char *path, int flags, ...)
{
	int mode = 0;
	va_list ap;

	kern_point(false);
	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, int);
		va_end(ap);
	}
	return is_simulated(path) ? kern_new(KERN_FOLDER) : __real_open(path, flags, mode);
}

int __wrap_flock(int fd, int op)
{
	if (fd < KERN_FD)
		return __real_flock(fd, op);
	return kern_fails("flock", EINTR, ENOLCK) ? -1 : 0;
}
