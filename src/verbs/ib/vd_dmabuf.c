/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions of a DMA buffer.  Here the processor moves octets, so the buffer is mapped: a memfd, udmabuf and heaps
 * of the system can be, the memory of most accelerators cannot.
 */
#include "verbs/ib/vd_memory.h"
#include "common/system/say.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANGES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/* Adapters page no DMA buffer on demand, and its octets have the names of @iova. */
#define NOT_FOR_BUFFERS                                                                            \
	(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB)

/* A buffer says how long it is by lseek, at whose position nobody else looks. */
static int check_buffer(int fd, uint64_t offset, size_t len)
{
	struct stat st;
	off_t size;

	if (fstat(fd, &st))
		return errno;
	size = S_ISREG(st.st_mode) ? st.st_size : lseek(fd, 0, SEEK_END);
	return len && size >= 0 && offset <= (uint64_t)size && len <= (uint64_t)size - offset
		       ? 0
		       : EINVAL;
}

struct ibv_mr *vdi_ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				     int fd, int access)
{
	const uint64_t in_page = offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	const int prot = PROT_READ | (access & CHANGES ? PROT_WRITE : 0);
	struct ibv_mr *mr;
	struct vd_mr *v;
	uint8_t *at;
	int err;

	err = access & NOT_FOR_BUFFERS ? EOPNOTSUPP
	      : (offset ^ iova) & 4095 ? EINVAL
				       : check_buffer(fd, offset, len);
	if (err) {
		errno = err;
		return NULL;
	}
	at = mmap(NULL, len + in_page, prot, MAP_SHARED, fd, (off_t)(offset - in_page));
	if (at == MAP_FAILED) {
		err = errno;
		ddps_say("libddpsess-verbs: ibv_reg_dmabuf_mr: the buffer cannot be mapped: %s; "
			 "try: a "
			 "buffer that the processor can reach\n",
			 strerror(err));
		errno = err;
		return NULL;
	}
	mr = vdi_ibv_reg_mr_iova2(pd, at + in_page, len, iova, (unsigned)access);
	if (!mr) {
		err = errno;
		munmap(at, len + in_page);
		errno = err;
		return NULL;
	}
	mr->addr = (void *)(uintptr_t)offset; /* as libibverbs does */
	v = vd_of(mr, struct vd_mr, mr);
	v->mapped = at;
	v->mapped_len = len + in_page;
	return mr;
}

void vd_dmabuf_release(struct vd_mr *mr)
{
	if (mr->mapped)
		munmap(mr->mapped, mr->mapped_len);
}
