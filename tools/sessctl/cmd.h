/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CMD_H
#define SESSCTL_CMD_H
/* The commands; each returns an enum status. */
#include "opts.h"

int cmd_listen(const struct opts *o);
int cmd_connect(const struct opts *o);
int cmd_put(const struct opts *o);
int cmd_get(const struct opts *o);
int cmd_ping(const struct opts *o);
int cmd_conform(const struct opts *o);

#endif
