/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OPTVAL_H
#define SESSCTL_OPTVAL_H
/* Values of options: strict, one function per kind. */
#include <ddpsess/session.h>
#include <stddef.h>
#include <stdint.h>

enum optval_kind {
	VAL_FLAG,    /* bool */
	VAL_RD,	     /* uint16_t, "ulp" is DDPS_RD_ULP */
	VAL_NUMBER,  /* uint32_t */
	VAL_SIZE,    /* uint64_t, suffixes */
	VAL_SECONDS, /* uint32_t milliseconds; limits too */
	VAL_RTR,     /* unsigned */
	VAL_WORD,    /* unsigned: which of the words in @form, "send|write" */
	VAL_SIZES,   /* struct optval_sizes */
	VAL_PD,	     /* struct optval_pd */
	VAL_TEXT,    /* const char * */
	VAL_UINT,    /* uint64_t, decimal or with 0x */
	VAL_LIST,    /* struct optval_list: the option may be repeated */
	VAL_HELP,
	VAL_VERSION
};

#define OPTVAL_LIST_MAX	 64
#define OPTVAL_SIZES_MAX 32

/* As in "64,4K,1M". */
struct optval_sizes {
	uint64_t v[OPTVAL_SIZES_MAX];
	size_t n;
};

/* Private data: the text itself, hex:..., or a file's content. */
struct optval_pd {
	uint8_t b[DDPS_PD_MAX];
	size_t len;
};

struct optval_list {
	const char *at[OPTVAL_LIST_MAX];
	size_t n;
};

/*
 * Set the field at @at from @arg, what stands behind --@name.  @form: how the help writes the value.
 * Return: 0, or -1 with one sentence in @why.
 */
int optval_set(enum optval_kind kind, const char *name, const char *form, const char *arg, void *at,
	       uint64_t min, uint64_t max, char *why, size_t why_len);

#endif
