/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that allocates no memory of a file: what it shares is not there (conform_shm.sh). */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int fallocate(int fd, int mode, off_t from, off_t len)
{
	(void)mode;
	return ftruncate(fd, from + len);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t from)
{
	return ((__typeof__(&(mmap)))dlsym(RTLD_NEXT, "mmap"))(at, len, prot, flags & ~MAP_POPULATE,
							       fd, from);
}
