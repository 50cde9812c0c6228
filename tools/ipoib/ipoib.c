/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl ipoib: IP over InfiniBand in connected mode.  The table of its commands. */
#include "ipoib/ipoib.h"
#include "cli/about.h"
#include "cli/complete.h"
#include "cli/sessctl.h"
#include "cli/text.h"
#include <string.h>

static const struct ipoib_command table[] = {
	{ { "ipoib service-id", "", "Make or read the service ID of an interface.", I_SERVICE_ID, 0,
	    0 },
	  ipoib_service_id },
	{ { "ipoib lladdr", "", "Make or read a link-layer address.", I_LLADDR, 0, 0 },
	  ipoib_lladdr },
	{ { "ipoib private-data", "", "Make or read the private data of CM messages.",
	    I_PRIVATE_DATA, 0, 0 },
	  ipoib_private_data },
	{ { "ipoib mad", "[FILE]", "Read or make CM messages: hex, pcap or JSON in.", I_MAD, 0, 1 },
	  ipoib_mad },
	{ { "ipoib listen", "", "Answer connection requests, show every message.", I_LISTEN, 0, 0 },
	  ipoib_listen },
	{ { "ipoib connect", "PEER", "Connect and disconnect, show every message.", I_CONNECT, 1,
	    1 },
	  ipoib_connect },
	{ { "ipoib sim", "[SCENARIO]", "Interfaces on a fabric in memory, with their messages.",
	    I_SIM, 0, 1 },
	  ipoib_sim },
	{ { "ipoib bridge", "[up|status|down]", "IPoIB without InfiniBand, on a TUN device.",
	    I_BRIDGE, 0, 1 },
	  ipoib_bridge },
	{ { "ipoib conform", "[TARGET]", "Test a node of a subnet against the RFCs.", I_CONFORM, 0,
	    1 },
	  ipoib_conform },
};

#define NCOMMANDS (sizeof table / sizeof *table)

/* Its name without "ipoib ". */
static const char *short_name(const struct ipoib_command *c)
{
	return strchr(c->user.name, ' ') + 1;
}

static void print_ipoib_help(FILE *f)
{
	cmd_help_head(f, "sessctl ipoib COMMAND",
		      "IP over InfiniBand in connected mode (RFC 4755).");
	for (size_t i = 0; i < NCOMMANDS; i++)
		cmd_help_row(f, short_name(&table[i]), table[i].user.synopsis, table[i].user.about);
	if (complete_wanted())
		return;
	fputc('\n', f);
	text_fold(f, "'sessctl ipoib COMMAND --help' shows more, sessctl-ipoib(1) everything.", 0,
		  0, text_columns(f));
}

static int run_ipoib_command(const struct ipoib_command *c, int argc, char **argv)
{
	struct ipoib_opts o;
	char why[800];
	enum opts_result parsed = ipoib_opts_parse(&o, c, argc, argv, why, sizeof why);
	int status;

	if (parsed == OPTS_HELP) {
		ipoib_opts_help(stdout, c);
		return cmd_finish();
	}
	status = cmd_ready(parsed, c->user.name, why);
	return status == CMD_READY ? c->run(&o) : status;
}

int cmd_ipoib(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "", *near = NULL;

	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(word, short_name(&table[i])))
			return run_ipoib_command(&table[i], argc - 1, argv + 1);
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		print_ipoib_help(stdout);
		return cmd_finish();
	}
	for (size_t i = 0; i < NCOMMANDS; i++)
		near = text_nearer(word, near, short_name(&table[i]));
	if (*word)
		fprintf(stderr, "sessctl ipoib: no command '%s'\n  try: sessctl ipoib %s\n", word,
			near ? near : "--help");
	else
		print_ipoib_help(stderr);
	return ST_USAGE;
}
