/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_PROBE_H
#define SESSCTL_CONFORM_PROBE_H
/* sessctl conform --probe and --pairs: set-ups with a responder, by the library's own sessions. */
#include "cli/sessctl.h"
#include "xfer/opts.h"

/* What the responder at @o->arg[0] offers.  An enum status. */
enum status conform_probe(const struct opts *o);

/* Combinations of set-up parameters, so that each pair of values is in one at least: each has to come
 * up as asked for, and to end in order.  An enum status. */
enum status conform_pairs(const struct opts *o);

/* ---- conform_pairs.c ---- */

#define PAIRS_PARAMS 6
#define PAIRS_MAX    64

/* How many values each parameter has. */
extern const unsigned pairs_values[PAIRS_PARAMS];

/* Whether the value @y of the parameter @q can go with the value @x of @p: without an enhanced set-up
 * there is neither peer-to-peer model nor an exchange of IRD and ORD. */
bool pairs_allowed(unsigned p, unsigned x, unsigned q, unsigned y);

/* Rows of values that cover every pair that is allowed, at most PAIRS_MAX.  Return: how many. */
unsigned pairs_make(uint8_t row[PAIRS_MAX][PAIRS_PARAMS]);

#endif
