/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CROSS_CRITERION_H
#define CROSS_CRITERION_H
/*
 * As much of Criterion's interface as the unit tests use, for systems that have no Criterion: other
 * C libraries, and other processors, emulated.  tests/cross/main.c runs each test in a process.
 */
#pragma GCC system_header /* as Criterion's own is: its macros compare what they are given */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cross_test {
	const char *suite, *name;
	void (*fn)(void);
	void (*init)(void), (*fini)(void);
	const char *description;
	double timeout;
	bool disabled;
	struct cross_test *next;
};

/* What registered itself; the rest is tests/cross/checks.c. */
extern struct cross_test *cross_tests, *cross_suites;
extern bool cross_failed;

/* Exit statuses; 0: passed */
#define CROSS_SKIPPED 77
#define CROSS_FAILED  99 /* CHILD_FAILED of support/child.h is the same */

/* The suite of @t; NULL: it has not registered itself, and has nothing to say. */
const struct cross_test *cross_suite_of(const struct cross_test *t);
/* @t with what comes before and after it, here. */
void cross_play(const struct cross_test *t);
/* Whether the suite begins with one of @prefix, which NULL ends; none: any. */
bool cross_is_wanted(const struct cross_test *t, char *const *prefix);
/* One has failed; the rest of the test runs, but of a child of fork, whose parent learns it by the status. */
void cross_fail(const char *file, int line, const char *what);
void cross_say(const char *fmt, ...);
bool cross_is_child(void);
_Noreturn void cross_end(bool skipped);

#define CROSS_REGISTER(list, id, ...)                                                              \
	__attribute__((constructor)) static void id##_register(void)                               \
	{                                                                                          \
		static struct cross_test t = { __VA_ARGS__ };                                      \
		t.next = list;                                                                     \
		list = &t;                                                                         \
	}

#define Test(s, n, ...)                                                                            \
	static void s##_##n##_test(void);                                                          \
	CROSS_REGISTER(cross_tests, s##_##n, .suite = #s, .name = #n, .fn = s##_##n##_test,        \
		       ##__VA_ARGS__)                                                              \
	static void s##_##n##_test(void)
#define TestSuite(s, ...) CROSS_REGISTER(cross_suites, s##_suite, .suite = #s, ##__VA_ARGS__)

/* The first word of @fmt is there even without a message. */
#define CROSS_CHECK(ok, what, ends, ...)                                                           \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			cross_fail(__FILE__, __LINE__, what);                                      \
			cross_say("" __VA_ARGS__);                                                 \
			if ((ends) || cross_is_child())                                            \
				cross_end(false);                                                  \
		}                                                                                  \
	} while (0)

#define cr_assert(c, ...)	    CROSS_CHECK(c, #c, true, ##__VA_ARGS__)
#define cr_assert_not(c, ...)	    CROSS_CHECK(!(c), "not " #c, true, ##__VA_ARGS__)
#define cr_assert_not_null(p, ...)  CROSS_CHECK((p) != NULL, #p, true, ##__VA_ARGS__)
#define cr_assert_null(p, ...)	    CROSS_CHECK((p) == NULL, #p, true, ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...)	    CROSS_CHECK((a) == (b), #a " == " #b, true, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...)    CROSS_CHECK((a) != (b), #a " != " #b, true, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...)	    CROSS_CHECK((a) < (b), #a " < " #b, true, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...)	    CROSS_CHECK((a) > (b), #a " > " #b, true, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...)    CROSS_CHECK((a) <= (b), #a " <= " #b, true, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...)    CROSS_CHECK((a) >= (b), #a " >= " #b, true, ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) CROSS_CHECK(!strcmp(a, b), #a " is " #b, true, ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                                             \
	CROSS_CHECK(!memcmp(a, b, n), #a " has " #b, true, ##__VA_ARGS__)
#define cr_assert_fail(...) CROSS_CHECK(false, "reached", true, ##__VA_ARGS__)

#define cr_expect(c, ...)	    CROSS_CHECK(c, #c, false, ##__VA_ARGS__)
#define cr_expect_not(c, ...)	    CROSS_CHECK(!(c), "not " #c, false, ##__VA_ARGS__)
#define cr_expect_null(p, ...)	    CROSS_CHECK((p) == NULL, #p, false, ##__VA_ARGS__)
#define cr_expect_not_null(p, ...)  CROSS_CHECK((p) != NULL, #p, false, ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...)	    CROSS_CHECK((a) == (b), #a " == " #b, false, ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...)    CROSS_CHECK((a) != (b), #a " != " #b, false, ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...)	    CROSS_CHECK((a) < (b), #a " < " #b, false, ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...)	    CROSS_CHECK((a) > (b), #a " > " #b, false, ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...)    CROSS_CHECK((a) <= (b), #a " <= " #b, false, ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...)    CROSS_CHECK((a) >= (b), #a " >= " #b, false, ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) CROSS_CHECK(!strcmp(a, b), #a " is " #b, false, ##__VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)                                                               \
	CROSS_CHECK(strcmp(a, b), #a " is not " #b, false, ##__VA_ARGS__)
#define cr_expect_str_empty(s, ...)	CROSS_CHECK(!*(s), #s " is empty", false, ##__VA_ARGS__)
#define cr_expect_str_not_empty(s, ...) CROSS_CHECK(*(s), #s " is not empty", false, ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...)                                                             \
	CROSS_CHECK(!memcmp(a, b, n), #a " has " #b, false, ##__VA_ARGS__)
#define cr_expect_float_eq(a, b, near, ...)                                                        \
	CROSS_CHECK(fabs((double)(a) - (double)(b)) <= (near), #a " == " #b, false, ##__VA_ARGS__)
#define cr_expect_fail(...) CROSS_CHECK(false, "reached", false, ##__VA_ARGS__)

#define cr_skip(...) cr_skip_test(__VA_ARGS__)
#define cr_skip_test(...)                                                                          \
	do {                                                                                       \
		cross_say(__VA_ARGS__);                                                            \
		cross_end(true);                                                                   \
	} while (0)

#endif
