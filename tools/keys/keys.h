/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_KEYS_H
#define SESSCTL_KEYS_H
/* What secured wires need: making it, and saying what is wrong with it. */
#include "cli/out/out.h"
#include "cli/temp.h"
#include <stddef.h>

/* The commands; each returns an enum status. */
int cmd_keys(int argc, char **argv);
int cmd_check_keys(int argc, char **argv);

#define KEYS_PEM 16384 /* octets of a file of PEM, with 0 behind it */

/* A file to be made, and what is to be in it. */
struct keys_file {
	char name[NAME_MAX + 1];
	const char *text;
	bool secret; /* nobody else may read it; else as the umask says */
	bool made;
	struct temp temp;
};

/*
 * Make all @n of them in @dir, or none: nothing is overwritten, and none has its name before all are
 * written.  False: reported to @o.
 */
bool keys_write(struct out *o, const char *dir, struct keys_file *file, unsigned n);

/* Read a file of PEM with a 0 behind it into @buf of KEYS_PEM octets; @secret: refuse it if others can
 * read it.  Its length, or -1: reported. */
long keys_read(struct out *o, const char *path, bool secret, char *buf);

/* @name as the name of a file: ADDRESS:1 and a/b have characters that files do not. */
void keys_file_name(char dst[NAME_MAX + 1], const char *name, const char *ending);

#endif
