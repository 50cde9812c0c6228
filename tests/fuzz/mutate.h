/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H
/*
 * Mutators that know what an input is made of: the steps of a script, FPDUs, chunks, CM messages.  A
 * target that uses one defines LLVMFuzzerCustomMutator.  What libFuzzer changes by itself it still does,
 * every other time; with FUZZ_PLAIN in the environment, always.
 */
#include "fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
/* libFuzzer's own. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

struct fuzz_dice {
	uint64_t state;
};

/* 0 to @n - 1. */
unsigned fuzz_roll(struct fuzz_dice *d, unsigned n);

/* Below 2 to the @bits; often one at which something may change. */
uint64_t fuzz_odd_number(struct fuzz_dice *d, unsigned bits);

/* False: this one is libFuzzer's. */
bool fuzz_mutate_begin(struct fuzz_dice *d, unsigned seed);

/* A list of what lies in a row: one is left out, doubled, moved, or comes in. */
#define FUZZ_PIECES 256u
struct fuzz_pieces {
	const uint8_t *p[FUZZ_PIECES];
	size_t len[FUZZ_PIECES];
	unsigned n;
};

void fuzz_pieces_add(struct fuzz_pieces *s, const uint8_t *p, size_t len);
void fuzz_pieces_insert(struct fuzz_pieces *s, unsigned at, const uint8_t *p, size_t len);
void fuzz_pieces_reorder(struct fuzz_pieces *s, struct fuzz_dice *d);
/* All in a row, as many as fit whole.  None of them may lie in @out. */
size_t fuzz_pieces_join(const struct fuzz_pieces *s, uint8_t *out, size_t max);

#define FUZZ_STEP_MAX 512u
struct fuzz_script {
	size_t head; /* octets in front of the first step */
	/* How long is the step that begins here?  At most @n, which is not 0. */
	size_t (*step)(const uint8_t *p, size_t n);
	/* Change the step, of @n octets; 0: make one.  Returns its length, at most FUZZ_STEP_MAX. */
	size_t (*change)(uint8_t *p, size_t n, struct fuzz_dice *d);
};

size_t fuzz_mutate_script(const struct fuzz_script *s, uint8_t *data, size_t size, size_t max,
			  unsigned seed);

/* A stream of FPDUs.  Markers and CRCs are made again; sometimes one field then is wrong. */
size_t fuzz_mutate_fpdus(uint8_t *p, size_t n, size_t max, bool crc, bool markers,
			 struct fuzz_dice *d);

/* Chunks in a row, with their parameters and causes. */
size_t fuzz_mutate_chunks(uint8_t *p, size_t n, size_t max, struct fuzz_dice *d);
/* The same, of a packet with its common header, whose CRC is made right again. */
size_t fuzz_mutate_packet(uint8_t *p, size_t n, size_t max, struct fuzz_dice *d);

/* A CM message: another kind, another value of a field, other private data. */
void fuzz_mutate_cm(uint8_t mad[256], struct fuzz_dice *d);

/* An InfiniBand packet with the right ICRC, at most FUZZ_IB_PACKET octets: a CM message, or something to
 * queue pair @qpn.  Returns its length. */
#define FUZZ_IB_PACKET 320u
struct ddps_ib_udp_hdr;
size_t fuzz_new_ib_packet(uint8_t *p, const struct ddps_ib_udp_hdr *h, uint32_t qpn, uint32_t qkey,
			  struct fuzz_dice *d);

#endif
