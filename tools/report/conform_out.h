/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_OUT_H
#define SESSCTL_CONFORM_OUT_H
/* What sessctl conform and sessctl ipoib conform have in common: a run of a suite, and what is said of it: a
 * table, TAP or JSON on standard output, JUnit, HTML and pcap in files. */
#include "cli/sessctl.h"
#include <ddpsess/conform.h>
#include <stdbool.h>
#include <stddef.h>
#include "report/kept.h"

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

/* What the outputs of the conformance suites share. */

struct conform_out {
	const struct conform_job *job;
	struct conform_report {
		const char *name; /* NULL: not asked for */
		FILE *late; /* written at the end, as a pipe is; NULL: another file takes its place with each case */
	} junit, html;
	FILE *pcap;
	uint32_t verdict[5]; /* cases, by DDPS_CONFORM_* */
	bool table, colour, progress;
	bool lost;	    /* a line of JSON could not be made */
	char *error;	    /* why not all was run, for people; or NULL */
	const char *advice; /* what to try then, or NULL */
	struct kept kept;
};

/* Return: 0, or -1 (said on standard error). */
int conform_out_begin(struct conform_out *c, const struct conform_job *job);
void conform_out_case(struct conform_out *c, const struct ddps_conform_result *r);
/* What ended the run early; @err: DDPS_E_* or 0; @advice: NULL: none. */
void conform_out_error(struct conform_out *c, int err, const char *why, const char *advice);
/* Return: how many cases there were. */
uint32_t conform_out_count(const struct ddps_conform_sum *sum);
/* Return: 0, or -1: something could not be written (said). */
int conform_out_end(struct conform_out *c, const struct ddps_conform_sum *sum);

const char *conform_verdict(uint32_t v);
const char *conform_grade(uint32_t g);

/* @k: NULL if there was no memory to keep it. */
void conform_json_case(struct conform_out *c, const struct ddps_conform_result *r,
		       const struct kept_case *k);
void conform_json_error(struct conform_out *c, int err);
void conform_json_end(struct conform_out *c, const struct ddps_conform_sum *sum);

/* The whole of each; @error: why not all was run, or NULL.  Errors stay in ferror(). */
void conform_junit(const struct conform_out *c, FILE *f, const char *error);
void conform_html(const struct conform_out *c, FILE *f, const char *error);

/* As text of XML and of HTML, without what neither may have. */
void conform_escape(FILE *f, const char *s);

#endif
