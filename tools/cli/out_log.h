/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OUT_LOG_H
#define SESSCTL_OUT_LOG_H
/*
 * The text for people as a log: each event on one line, behind its time (ISO 8601, UTC) and level, or behind
 * the priority that systemd's journal takes away again (sd-daemon(3)).
 */
#include "cli/out.h"
#include <syslog.h>

/* Whether standard error goes to the journal. */
bool out_log_is_journal(void);

/* From now on.  Return: 0, or -1 with errno. */
int out_log_begin(struct out *o, bool journal);
void out_log_end(struct out *o);

/* What was printed since the last time is one event. */
void out_log_event(struct out *o);
/* A sentence on standard error; @level as syslog(3) has them. */
void out_log_say(struct out *o, int level, const char *text, const char *advice);

#endif
