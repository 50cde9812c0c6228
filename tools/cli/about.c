/* SPDX-License-Identifier: BSD-2-Clause */
/* What --help and --version of every command have in common. */
#include "cli/about.h"
#include "cli/complete.h"
#include "cli/sessctl.h"
#include "cli/sig.h"
#include "cli/text.h"
#include <ddpsess/version.h>
#include <errno.h>
#include <signal.h>

void cmd_help_head(FILE *f, const char *usage, const char *about)
{
	if (complete_wanted())
		return;
	fprintf(f, "Usage: %s [options] ...\n\n", usage);
	text_fold(f, about, 0, 0, text_columns(f));
	fputs("\nCommands:\n", f);
}

void cmd_help_row(FILE *f, const char *name, const char *synopsis, const char *about)
{
	char left[40];

	if (complete_wanted()) {
		complete_offer(name, about);
		return;
	}
	snprintf(left, sizeof left, "%s %s", name, synopsis);
	if (text_columns(f) < 70) {
		fprintf(f, "  %s\n      ", left);
		text_fold(f, about, 6, 6, text_columns(f));
	} else {
		fprintf(f, "  %-24s ", left);
		text_fold(f, about, 27, 27, text_columns(f));
	}
}

void cmd_reader_left(void)
{
	signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
}

int cmd_finish(void)
{
	errno = EIO; /* if it failed earlier */
	if (!fflush(stdout) && !ferror(stdout))
		return ST_DONE;
	if (errno == EPIPE)
		cmd_reader_left();
	perror("sessctl: cannot write to standard output");
	return ST_FAILED;
}

int cmd_version(void)
{
	printf("sessctl %s, libddpsess %s\n", DDPS_VERSION_STRING, ddps_version());
	return cmd_finish();
}

int cmd_ready(enum opts_result parsed, const char *name, const char *why)
{
	if (parsed == OPTS_VERSION)
		return cmd_version();
	if (parsed == OPTS_BAD) {
		fprintf(stderr, "sessctl %s: %s\n  try: sessctl %s --help\n", name, why, name);
		return ST_USAGE;
	}
	if (sig_init()) {
		perror("sessctl: preparing for signals");
		return ST_FAILED;
	}
	return CMD_READY;
}
