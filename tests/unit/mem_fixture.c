/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/mem_fixture.h"
#include <malloc.h>
#include <stddef.h>
#include <string.h>

#define JUNK	  0xa5
#define JUNK_MOST 1024u /* octets: all of what is looked at by mistake */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
void __wrap_free(void *p);

static unsigned left;
static bool failed;
static long live;

void mem_fail(unsigned n)
{
	left = n;
	failed = false;
}

bool mem_failed(void)
{
	return failed;
}

static bool fails(void)
{
	if (!left || --left)
		return false;
	failed = true;
	return true;
}

static void *counted(void *p)
{
	live += p != NULL;
	return p;
}

long mem_live(void)
{
	return live;
}

/* What is not one's own is nothing that could be taken for it. */
static void *spoilt(void *p)
{
	size_t len = p ? malloc_usable_size(p) : 0;

	if (len)
		memset(p, JUNK, len < JUNK_MOST ? len : JUNK_MOST);
	return p;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : counted(spoilt(__real_malloc(size)));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	void *new;

	if (fails())
		return NULL;
	new = __real_realloc(p, size);
	return p ? new : counted(new);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	int err = __real_posix_memalign(p, align, size);

	live += !err;
	return err;
}

void __wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(spoilt(p));
}
