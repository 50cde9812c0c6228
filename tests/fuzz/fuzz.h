/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_H
#define FUZZ_H
/*
 * What the fuzz targets share.  A target is one function of libFuzzer's form in fuzz_NAME.c; an
 * input is a script that it reads with the cursor below, so every input means something.
 */
#include "common/bytes.h"
#include <stdbool.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken invariant ends the process, as a sanitizer's finding does. */
#define FUZZ_CHECK(cond)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fuzz_fail(__FILE__, __LINE__, #cond);                                      \
	} while (0)

_Noreturn void fuzz_fail(const char *file, int line, const char *what);

/* A copy in exactly as much memory: a sanitizer guards the octet behind it. */
uint8_t *fuzz_exact(const void *p, size_t n);

/* A text: a copy of what is left of the input, ended by a NUL; NUL octets in it become blanks. */
char *fuzz_text(struct ddps_rbuf *in);

/* The next @n octets of the input, or as many as are left; *@got says how many. */
const uint8_t *fuzz_some(struct ddps_rbuf *in, size_t n, size_t *got);

/* The path of a file that has no place on a disk and holds these octets. */
const char *fuzz_file(const void *p, size_t n);

/* Is there more of it? */
static inline bool fuzz_more(const struct ddps_rbuf *in)
{
	return !in->failed && in->p < in->end;
}

/* From here on "random" numbers are the same as after every other call of this. */
void fuzz_random_reset(void);

/*
 * From here on the monotonic clock shows @ns, until this is called with another time, or with 0
 * for the clock itself.  Timers of the kernel do not go by it, so @ns is to be far in the future.
 */
void fuzz_time_set(uint64_t ns);

/*
 * What a target saw, to compare two runs of one input: lines in printf's manner, kept as a hash.
 * With FUZZ_TRACE in the environment they are printed too.
 */
struct fuzz_log {
	uint64_t hash;
	unsigned lines;
};

__attribute__((format(printf, 2, 3))) void fuzz_note(struct fuzz_log *l, const char *fmt, ...);
void fuzz_note_octets(struct fuzz_log *l, const char *what, const void *p, size_t n);

#endif
