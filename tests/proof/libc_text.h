/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROOF_LIBC_TEXT_H
#define PROOF_LIBC_TEXT_H
/*
 * The functions for strings that a parser calls, for Eva, which knows too little of libc's own to say where
 * their results lie.  Those that look for something may find it anywhere, or not: each place is tried
 * by itself.  The others are as the standard has them.  All read what libc's read.
 */
#include "proof.h"
#include <string.h>

static size_t p_strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static int p_memcmp(const void *a, const void *b, size_t n)
{
	/*@ assert n == 0 || \valid_read((const char *)a + (0 .. n - 1)); */
	/*@ assert n == 0 || \valid_read((const char *)b + (0 .. n - 1)); */
	return Frama_C_interval(-1, 1);
}

static void *p_memcpy(void *to, const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

static int p_strncmp(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
		if (!a[i])
			return 0;
	}
	return 0;
}

static int p_strcmp(const char *a, const char *b)
{
	return p_strncmp(a, b, (size_t)-1);
}

static char p_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static int p_strncasecmp(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p_lower(a[i]) != p_lower(b[i]))
			return p_lower(a[i]) < p_lower(b[i]) ? -1 : 1;
		if (!a[i])
			return 0;
	}
	return 0;
}

/* 0 to @n, each for itself; a proof may leave out the first ones. */
static size_t p_first;
static size_t p_any(size_t n)
{
	size_t from = p_first < n ? p_first : n, at = Frama_C_unsigned_long_interval(from, n);

	for (size_t i = from; i < n; i++)
		if (at == i)
			return i;
	return n;
}

static char *p_strchr(const char *s)
{
	size_t n = p_strlen(s), at = p_any(n);

	return at < n ? (char *)s + at : NULL;
}

static void *p_memchr(const void *s, size_t n)
{
	size_t at = p_any(n);

	/*@ assert n == 0 || \valid_read((const char *)s + (0 .. n - 1)); */
	return at < n ? (char *)s + at : NULL;
}

static size_t p_span(const char *s)
{
	return p_any(p_strlen(s));
}

static char *p_strcpy(char *to, const char *from)
{
	size_t n = 0;

	for (; from[n]; n++)
		to[n] = from[n];
	to[n] = 0;
	return to;
}

#define strlen(s)	     p_strlen(s)
#define memcmp(a, b, n)	     p_memcmp(a, b, n)
#define memcpy(to, from, n)  p_memcpy(to, from, n)
#define strncmp(a, b, n)     p_strncmp(a, b, n)
#define strcmp(a, b)	     p_strcmp(a, b)
#define strncasecmp(a, b, n) p_strncasecmp(a, b, n)
#define strchr(s, c)	     p_strchr(s)
#define memchr(s, c, n)	     p_memchr(s, n)
#define strspn(s, set)	     p_span(s)
#define strcspn(s, set)	     p_span(s)
#define strcpy(to, from)     p_strcpy(to, from)
#endif
