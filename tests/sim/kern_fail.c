/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, and what fails: by chance, or the n-th time. */
#include "sim/kern_in.h"
#include <errno.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static bool no_memory(void)
{
	uint64_t n = ++kern.allocations;

	if (kern.fail_allocation &&
	    (n == kern.fail_allocation || (kern.fail_on && n > kern.fail_allocation))) {
		kern.n.memory++;
		return true;
	}
	return kern_chance(kern.f.memory, &kern.n.memory);
}

static void *counted(void *p)
{
	kern.live += p != NULL;
	return p;
}

void *__wrap_malloc(size_t size)
{
	return no_memory() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	if (no_memory())
		return NULL;
	return p ? __real_realloc(p, size) : counted(__real_realloc(p, size));
}

void __wrap_free(void *p)
{
	kern.live -= p != NULL;
	__real_free(p);
}

/* The kernel's own does not fail. */
void *kern_realloc(void *p, size_t len)
{
	void *q = __real_realloc(p, len);

	if (!q)
		abort();
	return p ? q : counted(q);
}

void *kern_alloc(size_t len)
{
	return kern_realloc(NULL, len);
}

bool kern_chance(double share, uint64_t *count)
{
	if (!(share > 0) || !sim_chance(&kern.seed, share))
		return false;
	++*count;
	return true;
}

int kern_err(int err)
{
	errno = err;
	return -1;
}

bool kern_call_fails(const char *name, const int *errs)
{
	if (++kern.calls != kern.fail_call) {
		if (!kern_chance(kern.f.calls, &kern.n.calls))
			return false;
		errno = errs[0];
		return true;
	}
	kern.failed = name;
	for (kern.ways = 0; errs[kern.ways];)
		kern.ways++;
	kern.how = errs[kern.fail_way % kern.ways];
	kern.brief = kern.how == KERN_BRIEF;
	if (!kern.brief)
		errno = kern.how;
	return !kern.brief;
}

bool kern_stream_fails(struct kern_file *f, const char *name, const int *errs)
{
	bool fails = kern_call_fails(name, errs);

	if (fails &&
	    (errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT || errno == ENOTCONN))
		kern_tcp_lost(f, errno == ENOTCONN ? ECONNRESET : 0);
	return fails;
}

bool kern_brief(void)
{
	bool was = kern.brief;

	kern.brief = false;
	return was;
}
