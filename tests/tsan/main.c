/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs what registered itself; see criterion/criterion.h beside this file. */
#include "criterion/criterion.h"

struct tsan_test *tsan_tests;

int main(void)
{
	unsigned n = 0;

	for (struct tsan_test *t = tsan_tests; t; t = t->next, n++) {
		printf("%s\n", t->name);
		fflush(stdout);
		t->fn();
	}
	printf("%u passed, 0 failed\n", n);
	return n ? 0 : 1;
}
