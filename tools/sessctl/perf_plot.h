/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_PERF_PLOT_H
#define SESSCTL_PERF_PLOT_H
/* Bandwidth and latency by size, drawn by gnuplot. */
#include "cli/out.h"
#include <stddef.h>

/* Can @file be drawn at all?  NULL, or what is missing in a constant sentence. */
const char *plot_problem(const char *file);

/*
 * A file that is there already is replaced when the drawing is whole; a link is not followed.
 * Return: 0, or -1 with errno; 0 in it: gnuplot failed, and may have said why on standard error.
 */
int plot_draw(const char *file, const struct out_perf *row, size_t n);

#endif
