/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/mem_fixture.h"
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define JUNK	  0xa5
#define JUNK_MOST 1024u /* octets: all of what is looked at by mistake */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
void __wrap_free(void *p);

static unsigned left;
static bool failed;
static long live; /* some tests have a thread */

void mem_fail(unsigned n)
{
	left = n;
	failed = false;
}

bool mem_failed(void)
{
	return failed;
}

static bool must_alloc_fail(void)
{
	if (!left || --left)
		return false;
	failed = true;
	return true;
}

static void *count_live_block(void *p)
{
	__atomic_add_fetch(&live, p != NULL, __ATOMIC_RELAXED);
	return p;
}

long mem_live(void)
{
	return __atomic_load_n(&live, __ATOMIC_RELAXED);
}

/* What is not one's own is nothing that could be taken for it. */
static void *spoilt(void *p)
{
	size_t len = p ? malloc_usable_size(p) : 0;

	if (len)
		memset(p, JUNK, len < JUNK_MOST ? len : JUNK_MOST);
	return p;
}

#ifdef __SANITIZE_ADDRESS__ /* knows better */

static size_t with_fence(size_t size)
{
	return size;
}

static void *fenced(void *p, size_t size)
{
	(void)size;
	return p;
}

static size_t unfenced(void *p)
{
	return malloc_usable_size(p);
}

#else

#define FENCE_LEN 8u

/* At the end of a piece, behind its fence, which nobody may write to. */
struct fence {
	size_t size; /* of what is in front of it */
	uintptr_t whose;
};

static size_t with_fence(size_t size)
{
	size_t more = FENCE_LEN + sizeof(struct fence);

	return size > PTRDIFF_MAX - more ? size : size + more;
}

static unsigned char *fence_of(void *p)
{
	return (unsigned char *)p + malloc_usable_size(p) - sizeof(struct fence);
}

static void *fenced(void *p, size_t size)
{
	struct fence f = { size, ~(uintptr_t)p };

	if (!p)
		return NULL;
	memset((char *)p + size, JUNK, malloc_usable_size(p) - size);
	memcpy(fence_of(p), &f, sizeof f);
	return p;
}

/* How long it was; there is no fence where it was not allocated here. */
static size_t unfenced(void *p)
{
	unsigned char *end = fence_of(p);
	struct fence f;

	memcpy(&f, end, sizeof f);
	if (f.whose != ~(uintptr_t)p)
		return malloc_usable_size(p);
	for (unsigned char *at = (unsigned char *)p + f.size; at < end; at++)
		if (*at != JUNK)
			abort(); /* written behind its end */
	memset(end, 0, sizeof f);
	return f.size;
}

#endif

void *__wrap_malloc(size_t size)
{
	return must_alloc_fail()
		       ? NULL
		       : count_live_block(fenced(spoilt(__real_malloc(with_fence(size))), size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	size_t len;

	if (must_alloc_fail() || __builtin_mul_overflow(n, size, &len))
		return NULL;
	return count_live_block(fenced(__real_calloc(1, with_fence(len)), len));
}

/* It moves each time, so that nobody goes on with what was there before. */
void *__wrap_realloc(void *p, size_t size)
{
	void *new;
	size_t len;

	if (!p)
		return __wrap_malloc(size);
	if (must_alloc_fail())
		return NULL;
	new = fenced(spoilt(__real_malloc(with_fence(size))), size);
	if (!new)
		return NULL;
	len = unfenced(p);
	memcpy(new, p, len < size ? len : size);
	__real_free(spoilt(p));
	return new;
}

char *__wrap_strdup(const char *text)
{
	const size_t len = strlen(text) + 1;
	char *p = __wrap_malloc(len);

	return p ? memcpy(p, text, len) : NULL;
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	int err = __real_posix_memalign(p, align, size);

	__atomic_add_fetch(&live, !err, __ATOMIC_RELAXED);
	return err;
}

void __wrap_free(void *p)
{
	if (p)
		unfenced(p);
	__atomic_sub_fetch(&live, p != NULL, __ATOMIC_RELAXED);
	__real_free(spoilt(p));
}
