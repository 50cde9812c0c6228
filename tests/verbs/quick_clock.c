/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What perftest is run with.
 *
 * A preloaded clock that runs fast for the program itself and for none of its libraries.  For each
 * line that it prints, perftest compares the processor's cycles with gettimeofday for 0.22 s of
 * busy waiting at either end; with -a these are 23 lines, and thousands in tests/verbs/run.sh, which
 * does not look at the figures.  Nothing else in perftest asks gettimeofday.
 *
 * And what perftest itself does since June 2023 (its pull request 215): on iWARP devices ib_send_bw
 * has a region for its credits, which older ones forget to deregister before they give up the domain
 * it is in, unless they were run with -R.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define FASTER 32

int gettimeofday(struct timeval *restrict tv, void *restrict tz);

static uintptr_t first, last; /* addresses of the program's own code and data */

static int span(struct dl_phdr_info *info, size_t size, void *user)
{
	uintptr_t from, to;
	int i;

	(void)size;
	(void)user;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		to = from + info->dlpi_phdr[i].p_memsz;
		first = !first || from < first ? from : first;
		last = to > last ? to : last;
	}
	return 1; /* the program comes first, and there it ends */
}

__attribute__((constructor)) static void find_program(void)
{
	dl_iterate_phdr(span, NULL);
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict tv,
							void *restrict tz)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	struct timespec now;
	uint64_t us;

	(void)tz;
	clock_gettime(CLOCK_REALTIME, &now);
	us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	if (caller >= first && caller < last)
		us = (uint64_t)now.tv_sec * 1000000 * FASTER +
		     (uint64_t)now.tv_nsec * FASTER / 1000;
	tv->tv_sec = (time_t)(us / 1000000);
	tv->tv_usec = (suseconds_t)(us % 1000000);
	return 0;
}

/* ---- the credits' region ---- */

#undef ibv_reg_mr

#define REGIONS 64
static struct ibv_mr *regions[REGIONS];

__attribute__((visibility("default"))) struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
								 size_t len, int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, int) =
		(struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, int))(
			uintptr_t)dlsym(RTLD_NEXT, "ibv_reg_mr");
	struct ibv_mr *mr = real(pd, addr, len, access);

	for (int i = 0; mr && i < REGIONS; i++)
		if (!regions[i]) {
			regions[i] = mr;
			break;
		}
	return mr;
}

static int dereg(struct ibv_mr *mr)
{
	int (*real)(struct ibv_mr *) =
		(int (*)(struct ibv_mr *))(uintptr_t)dlsym(RTLD_NEXT, "ibv_dereg_mr");

	for (int i = 0; i < REGIONS; i++)
		if (regions[i] == mr)
			regions[i] = NULL;
	return real(mr);
}

__attribute__((visibility("default"))) int ibv_dereg_mr(struct ibv_mr *mr)
{
	return dereg(mr);
}

__attribute__((visibility("default"))) int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int (*real)(struct ibv_pd *) =
		(int (*)(struct ibv_pd *))(uintptr_t)dlsym(RTLD_NEXT, "ibv_dealloc_pd");

	for (int i = 0; i < REGIONS; i++)
		if (regions[i] && regions[i]->pd == pd && dereg(regions[i]))
			return EBUSY;
	return real(pd);
}
