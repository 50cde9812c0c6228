/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: the command line of ddpsess.  The table of commands. */
#include "ipoib/ipoib.h"
#include "keys/keys.h"
#include "sessctl/cmd.h"
#include "watch/watch.h"
#include "cli/complete.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command table[] = {
	{ "listen", C_LISTEN, "URI", "Wait for sessions and serve them; files with --dir.", 1, 1,
	  cmd_listen },
	{ "connect", C_CONNECT, "URI", "Set up a session, show what was negotiated, close.", 1, 1,
	  cmd_connect },
	{ "put", C_PUT, "FILE|- URI[/NAME]", "Send a file by RDMA Write to a listener's --dir.", 2,
	  2, cmd_put },
	{ "get", C_GET, "URI/NAME [FILE|-]", "Fetch a file by RDMA Read from a listener's --dir.",
	  1, 2, cmd_get },
	{ "ping", C_PING, "URI", "Measure round trips by Send, RDMA Write or RDMA Read.", 1, 1,
	  cmd_ping },
	{ "perf", C_PERF, "URI", "Measure bandwidth, rate and latency against a listener.", 1, 1,
	  cmd_perf },
	{ "conform", C_CONFORM, "[URI]", "Test an iWARP peer, or this build, against the RFCs.", 0,
	  1, cmd_conform },
};

#define NCOMMANDS (sizeof table / sizeof *table)

static void print_help(FILE *f)
{
	unsigned columns = text_columns(f);

	cmd_help_head(f, "sessctl COMMAND",
		      "RDMA sessions over TCP and SCTP, without RDMA hardware.");
	for (size_t i = 0; i < NCOMMANDS; i++)
		cmd_help_row(f, table[i].name, table[i].synopsis, table[i].about);
	cmd_help_row(f, "stat", "[PID|URI]", "Show the sessions of running programs.");
	cmd_help_row(f, "top", "[PID|URI]", "Watch the busiest sessions.");
	cmd_help_row(f, "keys", "COMMAND", "Make keys and certificates for secured wires.");
	cmd_help_row(f, "check-keys", "[SETTINGS]", "Say what is wrong with them.");
	cmd_help_row(f, "ipoib", "COMMAND", "IP over InfiniBand in connected mode.");
	cmd_help_row(f, "run", "PROGRAM ...", "Run a verbs program over TCP or SCTP.");
	if (complete_wanted()) {
		complete_offer("--help", "this list");
		complete_offer("--version", "version of sessctl and library");
		return;
	}
	fputc('\n', f);
	text_fold(f,
		  "URI is tcp://HOST:PORT[?tos=N] or sctp://HOST[,HOST...]:PORT[?OPTION=VALUE"
		  "[&OPTION=VALUE...]], with the options backend=auto|kernel|native, "
		  "encap=PORT|off and tos=N; tls:// and sctps:// are the same, secured. Between "
		  "processes of one "
		  "host it is shm:///PATH or shm://@NAME. "
		  "ddpsess(7) has all of it.",
		  0, 0, columns);
	text_fold(f, "'sessctl COMMAND --help' shows more, sessctl-COMMAND(1) everything.", 0, 0,
		  columns);
}

static int run_sessctl_command(const struct command *c, int argc, char **argv)
{
	struct opts o;
	char why[800];
	enum opts_result parsed = opts_parse(&o, c, argc, argv, why, sizeof why);
	int status;

	if (parsed == OPTS_HELP) {
		opts_help(stdout, c);
		return cmd_finish();
	}
	status = cmd_ready(parsed, c->name, why);
	return status == CMD_READY ? c->run(&o) : status;
}

/* Where a standard descriptor is closed a socket would take its number, and what is printed would go
 * to the peer.  What stands there instead fails as the closed one would: EBADF. */
static bool standard_fds_taken(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return false;
	return true;
}

static int run_word(int argc, char **argv);

static void print_near_command(const char *word)
{
	static const char *const others[] = { "stat",  "top", "keys", "check-keys",
					      "ipoib", "run", "help" };
	const size_t all = NCOMMANDS + sizeof others / sizeof *others;
	const char *near = NULL;

	for (size_t i = 0; i < all; i++)
		near = text_nearer(word, near,
				   i < NCOMMANDS ? table[i].name : others[i - NCOMMANDS]);
	if (strpbrk(word, ":/")) /* a place, and nothing to be done there */
		near = "COMMAND URI, such as sessctl connect tcp://HOST:PORT";
	fprintf(stderr, "sessctl: no command '%s'\n  try: sessctl %s\n", word,
		near ? near : "--help");
}

/* "help perf" is "perf --help". */
static int help_command(char **argv)
{
	static char option[] = "--help";
	char *as[] = { argv[0], argv[2], option, NULL };

	if (!strcmp(argv[2], "help") || argv[2][0] == '-') {
		print_help(stdout);
		return cmd_finish();
	}
	return run_word(3, as);
}

static bool has_commands(const char *word)
{
	return !strcmp(word, "ipoib") || !strcmp(word, "keys");
}

/* "complete ping --op w": the last word is the one that Tab was pressed behind. */
static int complete_command(int argc, char **argv)
{
	static char option[] = "--help";
	char *as[5] = { argv[0], option };
	int named = argc > 3 ? 1 + has_commands(argv[2]) : 0; /* words that are a command's name */

	if (argc < 3)
		return ST_USAGE;
	if (named > argc - 3)
		named = argc - 3;
	complete_begin(argv + 2 + named, argc - 2 - named);
	for (int i = 0; i < named; i++)
		as[1 + i] = argv[2 + i];
	as[1 + named] = option;
	return run_word(2 + named, as);
}

static int run_word(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(word, table[i].name))
			return run_sessctl_command(&table[i], argc - 1, argv + 1);
	if (!strcmp(word, "ipoib"))
		return cmd_ipoib(argc - 1, argv + 1);
	if (!strcmp(word, "keys"))
		return cmd_keys(argc - 1, argv + 1);
	if (!strcmp(word, "check-keys"))
		return cmd_check_keys(argc - 1, argv + 1);
	if (!strcmp(word, "stat"))
		return cmd_stat(argc - 1, argv + 1);
	if (!strcmp(word, "top"))
		return cmd_top(argc - 1, argv + 1);
	if (!strcmp(word, "run"))
		return cmd_run(argc - 1, argv + 1);
	if (!strcmp(word, "complete"))
		return complete_command(argc, argv);
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		if (argc > 2)
			return help_command(argv);
		print_help(stdout);
		return cmd_finish();
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		return cmd_version();
	}
	if (*word)
		print_near_command(word);
	else
		print_help(stderr);
	return ST_USAGE;
}

int main(int argc, char **argv)
{
	return standard_fds_taken() ? run_word(argc, argv) : ST_FAILED;
}
