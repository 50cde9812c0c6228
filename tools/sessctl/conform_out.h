/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_OUT_H
#define SESSCTL_CONFORM_OUT_H
/* What sessctl conform says: a table, TAP or JSON on standard output, JUnit and pcap in files. */
#include "conform/profile/conform_profile.h"
#include "conform/run.h"
#include "xfer/opts.h"
#include <stdio.h>

enum conform_result { CONFORM_PASS, CONFORM_FAIL, CONFORM_KNOWN, CONFORM_SKIP, CONFORM_NRESULT };

struct conform_out {
	const struct opts *o;
	const char *wire; /* "tcp" or "sctp" */
	FILE *junit, *pcap;
	bool colour;
	unsigned number; /* of the case now */
	unsigned count[CONFORM_NRESULT];
};

/* Return: 0, or -1 (said on standard error). */
int conform_out_begin(struct conform_out *c, const struct opts *o, const char *wire);
/* @known: what the profile says of this case, or NULL. */
void conform_out_case(struct conform_out *c, const struct cf_case *cs, const struct cf_result *r,
		      const char *known, double seconds);
/* Return: 0, or -1: something could not be written (said). */
int conform_out_end(struct conform_out *c);

#endif
