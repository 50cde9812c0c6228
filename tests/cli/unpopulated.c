/* SPDX-License-Identifier: BSD-2-Clause */
/* A process whose mappings are not populated: memory that it shares is not there (conform_shm.sh). */
#include <dlfcn.h>
#include <sys/mman.h>

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t from)
{
	return ((__typeof__(&(mmap)))dlsym(RTLD_NEXT, "mmap"))(at, len, prot, flags & ~MAP_POPULATE,
							       fd, from);
}
