/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_OUT_H
#define SESSCTL_CONFORM_OUT_H
/* What sessctl conform and sessctl ipoib conform have in common: a run of a suite, and what is said of it: a
 * table, TAP or JSON on standard output, JUnit, HTML and pcap in files. */
#include "cli/sessctl.h"
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stddef.h>

#define CONFORM_UNDECIDED 6 /* exit status: no case failed, and some are undecided */
#define CONFORM_NOTHING	  7 /* exit status: nothing could be tested */

struct conform_out_opts {
	bool json, tap;			 /* on standard output; else a table */
	const char *junit, *pcap, *html; /* files, or NULL */
	bool pcap_all;			 /* not only of cases that fail */
};

struct conform_job {
	struct conform_out_opts o;
	const char *command; /* for messages: "sessctl conform" */
	const char *wire;    /* "tcp", "sctp", "ib" */
	const char *target;  /* for people: a URI */
	const char *advice;  /* for who cannot reach it */
	/* The suite with its options in @what: ddps_conform_run() or the like. */
	int (*run)(const void *what, const struct ddps_conform_calls *calls,
		   struct ddps_conform_sum *sum, char *why, size_t why_len);
	const void *what;
};

enum status conform_go(const struct conform_job *job);
/* Say what is wrong with the options.  Return: ST_USAGE. */
enum status conform_usage(const char *command, const char *why);

#endif
