/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_SIG_H
#define SESSCTL_SIG_H
/*
 * SIGINT and SIGTERM: the first asks for an orderly end, the second says so, removes temporary files
 * and ends the process immediately.  A signal handler has no argument, so what it needs is the
 * one piece of global state of this program.
 */
#include <stdbool.h>

/* Install the handlers.  Return: 0, or -1 with errno. */
int sig_init(void);

/* Readable once a signal came. */
int sig_fd(void);

/* The signal that came, or 0. */
int sig_pending(void);

/* A file that the handler removes; linked while it exists. */
struct sig_file {
	int dirfd;
	const char *name;
	struct sig_file *next;
};

void sig_file_add(struct sig_file *f);
void sig_file_remove(struct sig_file *f);

/* End the process as a second signal does: something of it cannot be waited for. */
_Noreturn void sig_leave(int status);

#endif
