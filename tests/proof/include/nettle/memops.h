/* SPDX-License-Identifier: BSD-2-Clause */
/* What the proofs know of Nettle: the comparison may come out either way. */
#include <stddef.h>

/*@ requires n == 0 || (\valid_read((const char *)a + (0 .. n - 1)) && \valid_read((const char *)b + (0 .. n - 1)));
    assigns \result \from ((const char *)a)[0 .. n - 1], ((const char *)b)[0 .. n - 1];
    ensures \result == 0 || \result == 1; */
int memeql_sec(const void *a, const void *b, size_t n);
