/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: the table of options, the parser and the help made from it. */
#include "opts.h"
#include "optval.h"
#include "proto.h"
#include <getopt.h>
#include <stddef.h>
#include <string.h>

#define C_CLIENT (C_CONNECT | C_PUT | C_GET | C_PING)
#define C_ALL	 (C_LISTEN | C_CLIENT)

#define AT(field) offsetof(struct opts, field)

struct option_row {
	const char *name;
	const char *arg; /* NULL: a flag */
	unsigned cmds;
	enum optval_kind kind;
	size_t at;
	uint64_t min, max;
	const char *help;
};

static const struct option_row table[] = {
	{ "dir", "DIR", C_LISTEN, VAL_TEXT, AT(dir), 0, 0,
	  "serve put and get with the files in DIR" },
	{ "max-size", "SIZE", C_LISTEN, VAL_SIZE, AT(max_size), 0, INT64_MAX,
	  "largest file taken or given (default 64G)" },
	{ "reject", NULL, C_LISTEN, VAL_FLAG, AT(reject), 0, 0,
	  "reject every request, with --private-data if given" },
	{ "count", "N", C_LISTEN, VAL_NUMBER, AT(count), 1, UINT32_MAX,
	  "take N sessions, rejected ones included, then exit" },
	{ "op", "send|write|read", C_PING, VAL_OP, AT(op), 0, 0,
	  "what goes to and fro (default send)" },
	{ "size", "SIZE", C_PING, VAL_SIZE, AT(size), 0, PING_MAX,
	  "octets in each (default 64, at most 16M)" },
	{ "count", "N", C_PING, VAL_NUMBER, AT(count), 1, 100000000, "how many (default 10)" },
	{ "interval", "SECONDS", C_PING, VAL_SECONDS, AT(interval_ms), 0, PAUSE_MAX_MS,
	  "pause between two (default 0.2; 0: none, no line for each)" },
	{ "force", NULL, C_PUT | C_GET, VAL_FLAG, AT(force), 0, 0, "replace a file that exists" },
	{ "listen", NULL, C_CONFORM, VAL_FLAG, AT(listen), 0, 0,
	  "wait at URI for the target, an initiator" },
	{ "then", "COMMAND", C_CONFORM, VAL_TEXT, AT(then), 0, 0,
	  "run for each case to make the target connect to $DDPS_URI" },
	{ "self", NULL, C_CONFORM, VAL_FLAG, AT(self), 0, 0,
	  "test this build's own stack over 'tcp' or 'sctp', all cases" },
	{ "case", "PATTERN", C_CONFORM, VAL_TEXT, AT(cases), 0, 0,
	  "only cases whose name matches, as file names do" },
	{ "list", NULL, C_CONFORM, VAL_FLAG, AT(list), 0, 0,
	  "show the cases and what they cover, run none" },
	{ "profile", "NAME|FILE", C_CONFORM, VAL_TEXT, AT(profile), 0, 0,
	  "deviations known of the target; siw is built in" },
	{ "tap", NULL, C_CONFORM, VAL_FLAG, AT(tap), 0, 0, "output as TAP, version 13" },
	{ "junit", "FILE", C_CONFORM, VAL_TEXT, AT(junit), 0, 0, "write a JUnit report too" },
	{ "pcap", "FILE", C_CONFORM, VAL_TEXT, AT(pcap), 0, 0,
	  "write the octets of failed cases as a capture file" },
	{ "ird", "N|ulp", C_ALL, VAL_RD, AT(ird), 0, DDPS_RD_MAX,
	  "inbound RDMA Reads, 0..16382 (default 16); ulp: 0x3FFF" },
	{ "ord", "N|ulp", C_ALL, VAL_RD, AT(ord), 0, DDPS_RD_MAX,
	  "outbound RDMA Reads, 0..16382 (default 16); ulp: 0x3FFF" },
	{ "p2p", NULL, C_CLIENT, VAL_FLAG, AT(p2p), 0, 0,
	  "peer-to-peer model: begin with a ready-to-receive message" },
	{ "rtr", "TYPE,...", C_ALL, VAL_RTR, AT(rtr), 0, 0,
	  "ready-to-receive messages allowed: send,write,read (default all)" },
	{ "plain", NULL, C_CLIENT, VAL_FLAG, AT(plain), 0, 0,
	  "unenhanced set-up, no IRD/ORD exchange" },
	{ "legacy-retry", NULL, C_CLIENT, VAL_FLAG, AT(legacy_retry), 0, 0,
	  "if the peer closes on an enhanced request, try --plain once" },
	{ "crc", "on|off", C_ALL, VAL_ONOFF, AT(crc), 0, 0,
	  "MPA CRCs (default on; off only if both sides say so)" },
	{ "markers", "on|off", C_ALL, VAL_ONOFF, AT(markers), 0, 0,
	  "ask the peer for MPA markers (default off)" },
	{ "private-data", "TEXT|hex:..|@FILE", C_ALL, VAL_PD, AT(pd), 0, DDPS_PD_MAX,
	  "for the peer's application; 508 octets, 512 with --plain" },
	{ "timeout", "SECONDS", C_CONFORM, VAL_SECONDS, AT(timeout_ms), 1, 3600000,
	  "longest wait for the target (default 5)" },
	{ "timeout", "SECONDS", C_ALL, VAL_SECONDS, AT(timeout_ms), 1, 86400000,
	  "end the command after that; listen: a session that idles" },
	{ "json", NULL, C_ALL | C_CONFORM, VAL_FLAG, AT(json), 0, 0, "one JSON object a line" },
	{ "help", NULL, C_ALL | C_CONFORM, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, C_ALL | C_CONFORM, VAL_VERSION, 0, 0, 0,
	  "version of sessctl and library" },
};

#define NROWS (sizeof table / sizeof *table)

static void defaults(struct opts *o, enum cmd_bit cmd)
{
	*o = (struct opts){
		.cmd = cmd,
		.ird = OPTS_RD_UNSET,
		.ord = OPTS_RD_UNSET,
		.crc = true,
		.max_size = 64ull << 30,
		.size = 64,
		.interval_ms = 200,
	};
}

/* An option that getopt_long refused: unknown, of another command, or with a value too much. */
static void explain_unknown(unsigned cmd, const char *arg, char *why, size_t why_len)
{
	size_t n = strcspn(arg, "=");
	bool known = false;

	if (!strncmp(arg, "--", 2))
		for (size_t i = 0; i < NROWS; i++)
			if (strlen(table[i].name) == n - 2 &&
			    !strncmp(table[i].name, arg + 2, n - 2)) {
				snprintf(why, why_len, "option '%.*s' %s", (int)n, arg,
					 table[i].cmds & cmd ? "takes no value"
							     : "belongs to another command");
				if (table[i].cmds & cmd)
					return;
				known = true;
			}
	if (!known)
		snprintf(why, why_len, "unknown or ambiguous option '%s'", arg);
}

/* What one option alone cannot know. */
static int check_together(const struct opts *o, char *why, size_t why_len)
{
	size_t max = o->plain ? DDPS_PD_MAX : DDPS_PD_MAX_ENHANCED;

	if (o->pd_len > max) {
		snprintf(why, why_len, "private data has %zu octets, the limit is %zu%s", o->pd_len,
			 max,
			 o->plain	      ? ""
			 : o->cmd == C_LISTEN ? ""
					      : " (512 with --plain)");
		return -1;
	}
	if (o->plain && (o->p2p || o->legacy_retry)) {
		snprintf(why, why_len, "--plain excludes --%s, which needs enhanced set-up",
			 o->p2p ? "p2p" : "legacy-retry");
		return -1;
	}
	if (o->cmd != C_LISTEN && o->rtr && !o->p2p) {
		snprintf(why, why_len, "--rtr has no meaning without --p2p");
		return -1;
	}
	if (o->then && !o->listen) {
		snprintf(why, why_len, "--then has no meaning without --listen");
		return -1;
	}
	if (o->self && o->listen) {
		snprintf(why, why_len, "--self excludes --listen: it plays both parts");
		return -1;
	}
	if (o->tap && o->json) {
		snprintf(why, why_len, "--tap excludes --json");
		return -1;
	}
	return 0;
}

static enum opts_result parse_all(struct opts *o, const struct option *longopt,
				  const struct option_row *const *row, int argc, char **argv,
				  char *why, size_t why_len)
{
	int c, index;

	optind = 0; /* start afresh, and permute */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":hV", longopt, &index)) != -1) {
		if (c == 'h' || (c == 0 && row[index]->kind == VAL_HELP))
			return OPTS_HELP;
		if (c == 'V' || (c == 0 && row[index]->kind == VAL_VERSION))
			return OPTS_VERSION;
		if (c == ':' || c == '?') {
			if (c == ':')
				snprintf(why, why_len, "option '%s' needs a value",
					 argv[optind - 1]);
			else if (optopt)
				snprintf(why, why_len, "unknown option '-%c'", optopt);
			else
				explain_unknown(o->cmd, argv[optind - 1], why, why_len);
			return OPTS_BAD;
		}
		if (optval_set(row[index]->kind, row[index]->name, optarg,
			       (char *)o + row[index]->at, row[index]->min, row[index]->max, why,
			       why_len))
			return OPTS_BAD;
	}
	return OPTS_OK;
}

enum opts_result opts_parse(struct opts *o, const struct command *cmd, int argc, char **argv,
			    char *why, size_t why_len)
{
	struct option longopt[NROWS + 1] = { { 0 } };
	const struct option_row *row[NROWS];
	enum opts_result res;
	size_t n = 0;

	for (size_t i = 0; i < NROWS; i++) {
		if (!(table[i].cmds & cmd->bit))
			continue;
		longopt[n].name = table[i].name;
		longopt[n].has_arg = table[i].arg ? required_argument : no_argument;
		row[n++] = &table[i];
	}
	defaults(o, cmd->bit);
	res = parse_all(o, longopt, row, argc, argv, why, why_len);
	if (res != OPTS_OK)
		return res;
	o->arg = argv + optind;
	o->nargs = argc - optind;
	if (o->nargs < cmd->min_args || o->nargs > cmd->max_args) {
		snprintf(why, why_len, "%s arguments: it is sessctl %s [options] %s",
			 o->nargs < cmd->min_args ? "missing" : "too many", cmd->name,
			 cmd->synopsis);
		return OPTS_BAD;
	}
	return check_together(o, why, why_len) ? OPTS_BAD : OPTS_OK;
}

void opts_help(FILE *f, const struct command *cmd)
{
	char left[48];

	fprintf(f, "Usage: sessctl %s [options] %s\n\n%s\n\nOptions:\n", cmd->name, cmd->synopsis,
		cmd->about);
	for (size_t i = 0; i < NROWS; i++) {
		if (!(table[i].cmds & cmd->bit))
			continue;
		snprintf(left, sizeof left, "--%s%s%s", table[i].name, table[i].arg ? " " : "",
			 table[i].arg ? table[i].arg : "");
		fprintf(f, "  %-32s %s\n", left, table[i].help);
	}
	fprintf(f, "\nSIZE takes the suffixes K, M, G and T (powers of 1024).\n");
}
