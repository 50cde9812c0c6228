/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_OUT_H
#define SESSCTL_CONFORM_OUT_H
/* What sessctl conform says: a table, TAP or JSON on standard output, JUnit and pcap in files. */
#include "xfer/opts.h"
#include <ddpsess/conform.h>
#include <stdio.h>

struct conform_out {
	const struct opts *o;
	const char *wire; /* "tcp" or "sctp" */
	FILE *junit, *pcap;
	bool colour;
};

/* Return: 0, or -1 (said on standard error). */
int conform_out_begin(struct conform_out *c, const struct opts *o, const char *wire);
void conform_out_case(struct conform_out *c, const struct ddps_conform_result *r);
/* Return: 0, or -1: something could not be written (said). */
int conform_out_end(struct conform_out *c, const struct ddps_conform_sum *sum);

#endif
