/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_RECORD_FIXTURE_H
#define DDPS_RECORD_FIXTURE_H
/* Two ends of a connection with the keys of each other, and a third who knows them and seals what he likes. */
#include "secure/record/record.h"
#include "support/clock.h"
#include <criterion/criterion.h>
#include <stdint.h>

#define REC_SCRATCH (DDPS_REC_WIRE_MAX + 64)

struct rec_ends {
	struct ddps_rec_config conf[2]; /* as they were given */
	struct ddps_rec *end[2];	/* client, server */
	void *mem[2];
};

/* Configurations with keys that follow of @seed. */
void rec_configure(struct rec_ends *e, const struct ddps_aead *aead, enum ddps_suite suite,
		   unsigned seed);
/* Begin with them; ends that could not fail the test. */
void rec_begin(struct rec_ends *e);
/* Both with the stub, AES-128-GCM by name. */
void rec_setup(struct rec_ends *e);
void rec_free(struct rec_ends *e);

/* The keys that follow of a secret, written down a second time. */
void rec_keys_of(enum ddps_suite suite, struct ddps_rec_keys *k);

/* One who seals as end @from would, with a number of his own. */
struct rec_forger {
	const struct ddps_aead *aead;
	enum ddps_suite suite;
	_Alignas(DDPS_AEAD_ALIGN) uint8_t st[4096];
	struct ddps_rec_keys k;
};
void rec_forger_begin(struct rec_forger *f, const struct rec_ends *e, int from);
/* The next generation of his keys. */
void rec_forger_update(struct rec_forger *f);
void rec_forger_end(struct rec_forger *f);
/* @n octets of inner plaintext as a record in @out; its octets. */
size_t rec_forge(struct rec_forger *f, const void *inner, size_t n, uint8_t *out);
/* The same of content, a type and padding. */
size_t rec_forge_typed(struct rec_forger *f, uint8_t type, const void *content, size_t n,
		       size_t pad, uint8_t *out);

/* Open what is there in one piece. */
struct ddps_rec_opened rec_open(struct ddps_rec *r, const uint8_t *in, size_t n);
extern uint8_t rec_scratch[REC_SCRATCH]; /* where rec_open() opens to */

/* @r has failed: an alert is due (-1: none), the code is this, and there is a sentence. */
void rec_failed(struct ddps_rec *r, int alert, int code, const char *what);

#endif
