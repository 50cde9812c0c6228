/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROOF_H
#define PROOF_H
/*
 * What the proofs share.  A proof is a main function for Frama-C's Eva: what it calls has no undefined
 * behaviour for any values of what is made unknown here.  The buffer ends where the input ends, so to
 * read beyond the one is to read beyond the other.  Lengths, and whatever else decides what is
 * read, are tried one by one, since Eva knows of no relation between two unknown ones; "slevel merge"
 * has it forget which of them it was.
 */
#include <__fc_builtin.h>
#include <stddef.h>
#include <stdint.h>

#define MOST 1500u

static uint8_t input[MOST];

/* @len octets of which nothing is known. */
static uint8_t *make_unknown_octets(size_t len)
{
	uint8_t *p = input + MOST - len;

	if (len)
		Frama_C_make_unknown((char *)p, len);
	return p;
}

/* All of it may be read, as it is said to be. */
static void read_octets_of(const uint8_t *p, size_t len)
{
	/*@ assert len == 0 || \valid_read(p + (0 .. len - 1)); */
	(void)p;
	(void)len;
}

static _Bool either(void)
{
	return Frama_C_interval(0, 1);
}

/* Each length up to LINE, and a few up to MOST. */
#define LINE 24u
static size_t longer(size_t len)
{
	return len < LINE ? len + 1 : len < 100 ? len + 37 : len < 400 ? len + 205 : len + 519;
}
#endif
