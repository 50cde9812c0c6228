/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_EDGE_VF_WORDS_H
#define DDPS_EDGE_VF_WORDS_H
/* Lines of words: what files of rules and of profiles are made of. */
#include "edge/fault/vf.h"

struct vf_word {
	const char *at;
	size_t len; /* 0: the line ends here */
};

struct vf_reader {
	const char *line, *at, *end; /* of the line */
	struct vf_error *error;
	unsigned number;
};

/* The error is at @at, which is in the line.  Return: -1. */
__attribute__((format(printf, 3, 4))) int vf_complain(struct vf_reader *r, const char *at,
						      const char *fmt, ...);
/* "expected @what, not ..." */
int vf_expected(struct vf_reader *r, struct vf_word w, const char *what);
struct vf_word vf_next(struct vf_reader *r);
struct vf_word vf_peek(struct vf_reader *r);
bool vf_is(struct vf_word w, const char *text);
/* Whether it is text without control characters, shorter than @max. */
bool vf_is_name(struct vf_word w, size_t max);
/* Digits at the beginning of @w.  Return: how many, 0 also if the number is above @max. */
size_t vf_digits(struct vf_word w, uint64_t max, uint64_t *value);

#endif
