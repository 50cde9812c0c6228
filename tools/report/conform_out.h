/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_OUT_H
#define SESSCTL_CONFORM_OUT_H
/* What sessctl conform and sessctl ipoib conform say: a table, TAP or JSON on standard output, JUnit and pcap in files. */
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stdio.h>

#define CONFORM_UNDECIDED 6 /* exit status: no case failed, and some are undecided */

struct conform_out_opts {
	bool json, tap;		  /* on standard output; else a table */
	const char *junit, *pcap; /* files, or NULL */
	bool pcap_all;		  /* not only of cases that fail */
};

struct conform_out {
	struct conform_out_opts o;
	const char *command; /* for messages: "sessctl conform" */
	const char *wire;    /* "tcp", "sctp", "ib" */
	FILE *junit, *pcap;
	bool colour;
};

/* Return: 0, or -1 (said on standard error). */
int conform_out_begin(struct conform_out *c, const struct conform_out_opts *o, const char *command,
		      const char *wire);
void conform_out_case(struct conform_out *c, const struct ddps_conform_result *r);
/* Return: how many cases there were. */
uint32_t conform_out_count(const struct ddps_conform_sum *sum);
/* Return: 0, or -1: something could not be written (said). */
int conform_out_end(struct conform_out *c, const struct ddps_conform_sum *sum);

#endif
