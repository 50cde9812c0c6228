/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CMD_H
#define SESSCTL_CMD_H
/* The commands; each returns an enum status. */
#include "cli/opts.h"

int cmd_listen(const struct opts *o);
int cmd_connect(const struct opts *o);
int cmd_put(const struct opts *o);
int cmd_get(const struct opts *o);
int cmd_ping(const struct opts *o);
int cmd_perf(const struct opts *o);
int cmd_conform(const struct opts *o);

/* It has commands of its own, hence its own options. */
int cmd_ipoib(int argc, char **argv);

/* A program of somebody else; returns only if that did not start, then with 126 or 127 too. */
int cmd_run(int argc, char **argv);

/* A row of the list of commands. */
void cmd_help_row(FILE *f, const char *name, const char *synopsis, const char *about);

/* Ends of --help and --version, which are output like any other; both return an enum status. */
int cmd_finish(void);
int cmd_version(void);

/* What comes between parsing and running, help apart: CMD_READY, or the status to end with. */
#define CMD_READY (-1)
int cmd_ready(enum opts_result parsed, const char *name, const char *why);

#endif
