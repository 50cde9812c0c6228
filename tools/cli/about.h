/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_ABOUT_H
#define SESSCTL_ABOUT_H
/* What --help and --version of every command have in common. */
#include "cli/optrow.h"

/* What stands above the list of commands. */
void cmd_help_head(FILE *f, const char *usage, const char *about);

/* A row of the list of commands. */
void cmd_help_row(FILE *f, const char *name, const char *synopsis, const char *about);

/* Whoever read a listing has enough: end as other programs do, by the signal. */
void cmd_reader_left(void);

/* Ends of --help and --version, which are output like any other; both return an enum status. */
int cmd_finish(void);
int cmd_version(void);

/* What comes between parsing and running, help apart: CMD_READY, or the status to end with. */
#define CMD_READY (-1)
int cmd_ready(enum opts_result parsed, const char *name, const char *why);

#endif
