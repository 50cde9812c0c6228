/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CMD_H
#define SESSCTL_CMD_H
/* The commands; each returns an enum status. */
#include "cli/about.h"
#include "xfer/opts.h"

int cmd_listen(const struct opts *o);
int cmd_connect(const struct opts *o);
int cmd_put(const struct opts *o);
int cmd_get(const struct opts *o);
int cmd_ping(const struct opts *o);
int cmd_perf(const struct opts *o);
int cmd_conform(const struct opts *o);

/* A program of somebody else; returns only if that did not start, then with 126 or 127 too. */
int cmd_run(int argc, char **argv);

#endif
