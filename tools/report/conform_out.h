/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_OUT_H
#define SESSCTL_CONFORM_OUT_H
/* What sessctl conform and sessctl ipoib conform say: a table, TAP or JSON on
 * standard output, JUnit, HTML and pcap in files. */
#include "report/kept.h"
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stdio.h>

#define CONFORM_UNDECIDED 6 /* exit status: no case failed, and some are undecided */
#define CONFORM_NOTHING	  7 /* exit status: nothing could be tested */

struct conform_out_opts {
	bool json, tap;			 /* on standard output; else a table */
	const char *junit, *pcap, *html; /* files, or NULL */
	bool pcap_all;			 /* not only of cases that fail */
};

struct conform_out {
	struct conform_out_opts o;
	const char *command; /* for messages: "sessctl conform" */
	const char *wire;    /* "tcp", "sctp", "ib" */
	const char *target;  /* for people: a URI */
	FILE *junit, *pcap, *html;
	bool table, colour, progress;
	struct kept kept;
};

/* Return: 0, or -1 (said on standard error). */
int conform_out_begin(struct conform_out *c, const struct conform_out_opts *o, const char *command,
		      const char *wire, const char *target);
void conform_out_case(struct conform_out *c, const struct ddps_conform_result *r);
/* Return: how many cases there were. */
uint32_t conform_out_count(const struct ddps_conform_sum *sum);
/* Return: 0, or -1: something could not be written (said). */
int conform_out_end(struct conform_out *c, const struct ddps_conform_sum *sum);

#endif
