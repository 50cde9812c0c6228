/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TSAN_CRITERION_H
#define TSAN_CRITERION_H
/*
 * Criterion's allocator does not start under ThreadSanitizer.  This is as much of its interface
 * as the threaded tests use: they register themselves and main() runs them one after another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsan_test {
	const char *name;
	void (*fn)(void);
	struct tsan_test *next;
};

extern struct tsan_test *tsan_tests;

#define Test(suite, test, ...)                                                                     \
	static void suite##_##test(void);                                                          \
	__attribute__((constructor)) static void suite##_##test##_register(void)                   \
	{                                                                                          \
		static struct tsan_test t = { #suite "::" #test, suite##_##test, NULL };           \
		t.next = tsan_tests;                                                               \
		tsan_tests = &t;                                                                   \
	}                                                                                          \
	static void suite##_##test(void)

#define cr_assert(cond, ...)                                                                       \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
#define cr_assert_eq(a, b, ...)	   cr_assert((a) == (b))
#define cr_assert_neq(a, b, ...)   cr_assert((a) != (b))
#define cr_assert_not_null(a, ...) cr_assert((a) != NULL)
#define cr_assert_gt(a, b, ...)	   cr_assert((a) > (b))
#define cr_assert_leq(a, b, ...)   cr_assert((a) <= (b))
#define cr_assert_geq(a, b, ...)   cr_assert((a) >= (b))
#define cr_expect(a, ...)	   cr_assert(a)
#define cr_expect_eq(a, b, ...)	   cr_assert((a) == (b))
#define cr_expect_lt(a, b, ...)                                                                    \
	do {                                                                                       \
		if (!((a) < (b)))                                                                  \
			fprintf(stderr, "" __VA_ARGS__);                                           \
		cr_assert((a) < (b));                                                              \
	} while (0)
#define cr_expect_arr_eq(a, b, n, ...) cr_assert(!memcmp(a, b, n))

#endif
