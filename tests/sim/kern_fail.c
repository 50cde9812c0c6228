/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, and what fails: by chance, or the n-th time. */
#include "sim/kern_in.h"
#include <errno.h>
#include <malloc.h>

#define FREED	0xdb
#define SPOILED 4096u /* octets at most */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *p);

/* ---- whose faults ---- */

unsigned kern_whose;

static struct {
	uint32_t owner, n[SIM_KINDS], draws;
} who[KERN_WHO];

_Static_assert(offsetof(struct kern_faults, lie) / sizeof(double) == SIM_lie, "the same order");

void kern_be(unsigned w, uint32_t owner)
{
	kern.who = w;
	if (who[w].owner == owner)
		return;
	memset(&who[w], 0, sizeof who[w]);
	who[w].owner = owner;
}

void kern_nobody(void)
{
	memset(who, 0, sizeof who);
	for (unsigned i = 0; i < KERN_HOSTS; i++)
		who[i].owner = SIM_OWNER(100 + i, 0, 0);
}

static bool chance_of(unsigned w, double share, uint64_t *count)
{
	enum sim_event kind =
		count == &kern.n.nobufs ? SIM_nobufs : (enum sim_event)(count - &kern.n.short_io);

	if (!(share > 0) || !sim_happens(kind, who[w].owner, who[w].n[kind]++, share))
		return false;
	++*count;
	return true;
}

bool kern_chance(double share, uint64_t *count)
{
	return chance_of(kern_whose, share, count);
}

static bool host_chance(double share, uint64_t *count)
{
	return chance_of(kern.host, share, count);
}

uint64_t kern_draw(void)
{
	uint64_t state =
		kern.seed ^ (uint64_t)who[kern_whose].owner << 32 ^ who[kern_whose].draws++;

	return sim_next(&state);
}

/* ---- memory ---- */

static bool no_memory(void)
{
	uint64_t n = ++kern.allocations;

	if (kern.fail_allocation &&
	    (n == kern.fail_allocation ||
	     (kern.fail_on && n > kern.fail_allocation && kern.now < kern.fail_until)))
		kern.n.memory++;
	else if (!host_chance(kern.f.memory, &kern.n.memory))
		return false;
	errno = ENOMEM;
	return true;
}

static void *get_kern_fail_counted(void *p)
{
	kern.live += p != NULL;
	return p;
}

void *__wrap_malloc(size_t size)
{
	return no_memory() ? NULL : get_kern_fail_counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : get_kern_fail_counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	if (no_memory())
		return NULL;
	return p ? __real_realloc(p, size) : get_kern_fail_counted(__real_realloc(p, size));
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	void *q = no_memory() ? NULL : __real_reallocarray(p, n, size);

	return p ? q : get_kern_fail_counted(q);
}

char *__wrap_strdup(const char *text)
{
	const size_t size = strlen(text) + 1;
	char *copy = __wrap_malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

/* Whoever still uses it finds out, also where there is no sanitizer. */
static void spoil(void *p)
{
#ifdef __SANITIZE_ADDRESS__
	(void)p;
#else
	const size_t len = malloc_usable_size(p);

	memset(p, FREED, len < SPOILED ? len : SPOILED);
#endif
}

void __wrap_free(void *p)
{
	kern.live -= p != NULL;
	if (p)
		spoil(p);
	__real_free(p);
}

/* The kernel's own does not fail. */
void *kern_realloc(void *p, size_t len)
{
	void *q = __real_realloc(p, len);

	if (!q)
		abort();
	return p ? q : get_kern_fail_counted(q);
}

void *kern_alloc(size_t len)
{
	return kern_realloc(NULL, len);
}

int kern_err(int err)
{
	errno = err;
	return -1;
}

#define SHORT_NS 200000 /* that a call takes */

/* With what a call fails on a system that is out of descriptors and memory; 0: it needs none. */
static int fail_without(const int *errs)
{
	for (; *errs; errs++)
		if (*errs == ENOMEM || *errs == ENOBUFS || *errs == ENOSPC || *errs == EMFILE)
			return *errs;
	return 0;
}

static bool is_short(const char *name, const int *errs)
{
	if (kern.calls == kern.fail_call) {
		kern.short_until = kern.now + kern.shortage;
		kern.failed = name;
		kern.how = ENOMEM;
	}
	if (kern.now >= kern.short_until || !fail_without(errs))
		return false;
	kern.now += SHORT_NS; /* whoever tries again all the time sees it end, too */
	errno = fail_without(errs);
	return true;
}

static unsigned ways(const int *errs)
{
	unsigned n = 0;

	while (errs[n])
		n++;
	return n;
}

/* Whether it does; else it does as little as it may. */
static bool fails_as(int how)
{
	kern.brief = how == KERN_BRIEF;
	if (!kern.brief)
		errno = how;
	return !kern.brief;
}

bool kern_call_fails(const char *name, const int *errs)
{
	kern.calls++;
	if (kern.shortage)
		return is_short(name, errs);
	if (kern.calls != kern.fail_call) {
		if (!host_chance(kern.f.calls, &kern.n.calls))
			return false;
		return fails_as(errs[kern.any_way ? sim_like(ways(errs)) : 0]);
	}
	kern.failed = name;
	kern.ways = ways(errs);
	kern.how = errs[kern.fail_way % kern.ways];
	return fails_as(kern.how);
}

bool kern_stream_fails(struct kern_file *f, const char *name, const int *errs)
{
	bool fails = kern_call_fails(name, errs);

	if (fails &&
	    (errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT || errno == ENOTCONN)) {
		if (f->sctp)
			kern_sctp_lost(f, errno == ENOTCONN ? ECONNRESET : 0);
		else
			kern_tcp_lost(f, errno == ENOTCONN ? ECONNRESET : 0);
	}
	return fails;
}

bool kern_brief(void)
{
	bool was = kern.brief;

	kern.brief = false;
	return was;
}
