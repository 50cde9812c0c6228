/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: the table of options of the commands that use sessions. */
#include "xfer/opts.h"
#include "xfer/proto.h"
#include "cli/complete.h"
#include "cli/text.h"
#include <ddpsess/conform.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define C_CLIENT (C_CONNECT | C_PUT | C_GET | C_PING | C_PERF)
#define C_ALL	 (C_LISTEN | C_CLIENT)

#define AT(field) offsetof(struct opts, field)

static const struct option_row table[] = {
	{ "dir", "DIR", C_LISTEN, VAL_TEXT, AT(dir), 0, 0,
	  "serve put and get with the files in DIR" },
	{ "max-size", "SIZE", C_LISTEN | C_GET, VAL_SIZE, AT(max_size), 0, INT64_MAX,
	  "largest file received or sent (default 64G)" },
	{ "read-only", NULL, C_LISTEN, VAL_FLAG, AT(read_only), 0, 0, "serve get, but not put" },
	{ "reject", NULL, C_LISTEN, VAL_FLAG, AT(reject), 0, 0,
	  "reject every request, with --private-data if given" },
	{ "count", "N", C_LISTEN, VAL_NUMBER, AT(count), 1, UINT32_MAX,
	  "exit after N sessions, rejected ones included" },
	{ "log", NULL, C_LISTEN, VAL_FLAG, AT(log), 0, 0,
	  "a line for each event, with time and level (default in systemd's journal)" },
	{ "quiet", NULL, C_LISTEN, VAL_FLAG, AT(quiet), 0, 0, "print errors and warnings only" },
	{ "wait", NULL, C_CONNECT, VAL_FLAG, AT(wait), 0, 0,
	  "stay until the peer ends the session, or --timeout does" },
	{ "op", "send|write|read", C_PING, VAL_WORD, AT(op), 0, 0,
	  "operation to measure (default send)" },
	{ "size", "SIZE", C_PING, VAL_SIZE, AT(size), 0, PING_MAX,
	  "octets in each message (default 64, at most 16M)" },
	{ "count", "N", C_PING, VAL_NUMBER, AT(count), 1, 100000000,
	  "number of round trips (default 10)" },
	{ "interval", "SECONDS", C_PING, VAL_SECONDS, AT(interval_ms), 0, PAUSE_MAX_MS,
	  "pause between two (default 0.2; 0: no pause, and no line for each)" },
	{ "op", "send|write|read|ping|both", C_PERF, VAL_WORD, AT(perf_op), 0, 0,
	  "operation to repeat (default send); ping: a Send, echoed" },
	{ "size", "SIZE,...", C_PERF, VAL_SIZES, AT(sizes), 1, PING_MAX,
	  "octets in each, one measurement for each size (default 64,4K,64K,1M)" },
	{ "seconds", "SECONDS", C_PERF, VAL_SECONDS, AT(run_ms), 1, 3600000,
	  "how long for each size (default 1)" },
	{ "depth", "N", C_PERF, VAL_NUMBER, AT(depth), 1, PERF_DEPTH_MAX,
	  "operations at the same time, 1..128 (default 16; ping: 1)" },
	{ "rate", "SIZE", C_PERF, VAL_SIZE, AT(rate), 1, INT64_MAX,
	  "at most this many octets per second, in each session" },
	{ "parallel", "N", C_PERF, VAL_NUMBER, AT(parallel), 1, PARALLEL_MAX,
	  "sessions at the same time, 1..64 (default 1)" },
	{ "bidir", NULL, C_PERF, VAL_FLAG, AT(bidir), 0, 0,
	  "data in both directions, by Writes and Reads in turn" },
	{ "reverse", NULL, C_PERF, VAL_FLAG, AT(reverse), 0, 0,
	  "data from the listener, by Reads: --op read" },
	{ "interval", "SECONDS", C_PERF, VAL_SECONDS, AT(every_ms), 10, 3600000,
	  "print the progress at this interval (default on a terminal: 1, from --seconds 2 on)" },
	{ "plot", "FILE", C_PERF, VAL_TEXT, AT(plot), 0, 0,
	  "draw bandwidth and latency by size into FILE (.svg or .png; needs gnuplot)" },
	{ "force", NULL, C_PUT | C_GET, VAL_FLAG, AT(force), 0, 0, "replace a file that exists" },
	{ "digest", "sha256|crc32c", C_PUT | C_GET, VAL_WORD, AT(digest), 0, 0,
	  "how both sides compare the file (default sha256)" },
	{ "listen", NULL, C_CONFORM, VAL_FLAG, AT(listen), 0, 0,
	  "wait at URI for the target, an initiator" },
	{ "then", "COMMAND", C_CONFORM, VAL_TEXT, AT(then), 0, 0,
	  "run for each case to make the target connect to $DDPS_URI" },
	{ "self", NULL, C_CONFORM, VAL_FLAG, AT(self), 0, 0,
	  "test this build's own stack over 'tcp', 'sctp' or 'shm', all cases" },
	{ "probe", NULL, C_CONFORM, VAL_FLAG, AT(probe), 0, 0,
	  "run no case: say what the responder at URI offers" },
	{ "pairs", NULL, C_CONFORM, VAL_FLAG, AT(pairs), 0, 0,
	  "run no case: combine set-up parameters, each pair of values once" },
	{ "case", "PATTERN", C_CONFORM, VAL_TEXT, AT(cases), 0, 0,
	  "only cases whose name matches, as file names do" },
	{ "list", NULL, C_CONFORM, VAL_FLAG, AT(list), 0, 0,
	  "show the cases and what they cover, run none" },
	{ "pause", "SECONDS", C_CONFORM, VAL_SECONDS, AT(pause_ms), 0, PAUSE_MAX_MS,
	  "wait after each MPA Reply before sending FPDUs (default 0)" },
	{ "profile", "siw|usrsctp|linux-sctp|FILE", C_CONFORM, VAL_TEXT, AT(profile), 0, 0,
	  "known deviations of the target; siw, usrsctp and linux-sctp are built in" },
	{ "tap", NULL, C_CONFORM, VAL_FLAG, AT(tap), 0, 0, "output as TAP, version 13" },
	{ "junit", "FILE", C_CONFORM, VAL_TEXT, AT(junit), 0, 0, "also write a JUnit report" },
	{ "html", "FILE", C_CONFORM, VAL_TEXT, AT(html), 0, 0, "also write a report for browsers" },
	{ "pcap", "FILE", C_CONFORM, VAL_TEXT, AT(pcap), 0, 0,
	  "write the octets of failed cases as a capture file" },
	{ "pcap-all", NULL, C_CONFORM, VAL_FLAG, AT(pcap_all), 0, 0,
	  "with --pcap: write all cases" },
	{ "ird", "N|ulp", C_ALL, VAL_RD, AT(ird), 0, DDPS_RD_MAX,
	  "inbound RDMA Reads, 0..16382 (default 16); ulp: 0x3FFF" },
	{ "ord", "N|ulp", C_ALL, VAL_RD, AT(ord), 0, DDPS_RD_MAX,
	  "outbound RDMA Reads, 0..16382 (default 16); ulp: 0x3FFF" },
	{ "p2p", NULL, C_CLIENT, VAL_FLAG, AT(p2p), 0, 0,
	  "peer-to-peer model: begin with a ready-to-receive message" },
	{ "rtr", "send|write|read,...", C_ALL, VAL_RTR, AT(rtr), 0, 0,
	  "ready-to-receive messages allowed: send,write,read (default all)" },
	{ "plain", NULL, C_CLIENT, VAL_FLAG, AT(plain), 0, 0,
	  "unenhanced set-up, no IRD/ORD exchange" },
	{ "legacy-retry", NULL, C_CLIENT, VAL_FLAG, AT(legacy_retry), 0, 0,
	  "if the peer closes on an enhanced request, try --plain once" },
	{ "crc", "on|off", C_ALL, VAL_WORD, AT(crc), 0, 0,
	  "MPA CRCs (default on; off only if both sides say so)" },
	{ "markers", "on|off", C_ALL, VAL_WORD, AT(markers), 0, 0,
	  "ask the peer for MPA markers (default off)" },
	{ "private-data", "TEXT|hex:..|@FILE", C_CLIENT, VAL_PD, AT(pd), 0, DDPS_PD_MAX,
	  "for the peer's application; 508 octets, 512 with --plain" },
	{ "private-data", "TEXT|hex:..|@FILE", C_LISTEN, VAL_PD, AT(pd), 0, DDPS_PD_MAX,
	  "for the peer's application; at most 508 octets" },
	{ "timeout", "SECONDS", C_CONFORM, VAL_SECONDS, AT(timeout_ms), 1, 3600000,
	  "longest wait for the target (default 5)" },
	{ "timeout", "SECONDS", C_ALL, VAL_SECONDS, AT(timeout_ms), 1, 86400000,
	  "end the command after this time; listen: end an idle session" },
	{ "stat", "SECONDS", C_ALL, VAL_SECONDS, AT(stat_ms), 10, 86400000,
	  "print the state of the session at this interval" },
	{ "capture", "FILE", C_ALL, VAL_TEXT, AT(capture), 0, 0,
	  "write the packets into FILE (pcapng), for packet analysers" },
	{ "tls", "FILE", C_ALL | C_CONFORM, VAL_TEXT, AT(secure.settings), 0, 0,
	  "settings of tls:// and sctps://, a line each: cert, key, ca, psk, ..." },
	{ "tls-cert", "FILE", C_ALL | C_CONFORM, VAL_TEXT, AT(secure.cert), 0, 0,
	  "this side's certificate" },
	{ "tls-key", "FILE", C_ALL | C_CONFORM, VAL_TEXT, AT(secure.key), 0, 0, "its private key" },
	{ "tls-ca", "FILE", C_ALL | C_CONFORM, VAL_TEXT, AT(secure.ca), 0, 0,
	  "CAs that vouch for peers" },
	{ "tls-crl", "FILE", C_ALL, VAL_TEXT, AT(secure.crl), 0, 0, "what they have revoked" },
	{ "tls-psk", "FILE", C_ALL | C_CONFORM, VAL_TEXT, AT(secure.psk), 0, 0, "pre-shared keys" },
	{ "tls-psk-identity", "NAME", C_ALL | C_CONFORM, VAL_TEXT, AT(secure.psk_identity), 0, 0,
	  "as whom this side connects with one" },
	{ "tls-peers", "FILE", C_ALL, VAL_TEXT, AT(secure.peers), 0, 0,
	  "rules which peers are allowed" },
	{ "tls-hosts", "FILE", C_ALL, VAL_TEXT, AT(secure.hosts), 0, 0,
	  "the name expected at each address" },
	{ "tls-peer", "NAME,...", C_ALL | C_CONFORM, VAL_TEXT, AT(secure.peer), 0, 0,
	  "who the peer has to be (default: the host of the URI)" },
	{ "json", NULL, C_ALL | C_CONFORM, VAL_FLAG, AT(json), 0, 0,
	  "print one JSON object per line" },
	{ "help", NULL, C_ALL | C_CONFORM, VAL_HELP, 0, 0, 0, "this text" },
	{ "version", NULL, C_ALL | C_CONFORM, VAL_VERSION, 0, 0, 0,
	  "version of sessctl and library" },
};

#define NROWS (sizeof table / sizeof *table)
_Static_assert(NROWS <= OPTROW_MAX, "the parser takes no more");

static const struct option_table options = { table, NROWS };

static struct option_user get_option_user(const struct command *cmd)
{
	return (struct option_user){ .name = cmd->name,
				     .synopsis = cmd->synopsis,
				     .about = cmd->about,
				     .bit = cmd->bit,
				     .min_args = cmd->min_args,
				     .max_args = cmd->max_args };
}

#define LINE_MS 1000u

static void set_opts_defaults(struct opts *o, enum cmd_bit cmd)
{
	*o = (struct opts){
		.cmd = cmd,
		.ird = OPTS_RD_UNSET,
		.ord = OPTS_RD_UNSET,
		.crc = OPTS_UNSET,
		.markers = OPTS_UNSET,
		.max_size = 64ull << 30,
		.size = 64,
		.interval_ms = 200,
		.sizes = { { 64, 4096, 65536, 1048576 }, 4 },
		.run_ms = 1000,
		.parallel = 1,
	};
	ddps_secure_attr_init(&o->secure);
}

/* perf: whoever looks on sees that it goes on; a measurement that is over by then needs no line. */
static void choose_interval(struct opts *o)
{
	if (o->cmd == C_PERF && !o->every_ms && !o->json && o->run_ms >= 2 * LINE_MS &&
	    isatty(STDOUT_FILENO))
		o->every_ms = LINE_MS;
}

/* perf: the directions that iperf3 has names for. */
static int read_directions(struct opts *o, char *why, size_t why_len)
{
	const char *name = o->bidir ? "bidir" : "reverse";
	unsigned op = o->bidir ? PERF_BOTH : PERF_READ;

	if (!o->bidir && !o->reverse)
		return 0;
	if ((o->bidir && o->reverse) || (o->perf_op != PERF_SEND && o->perf_op != op)) {
		snprintf(why, why_len, "--%s excludes %s", name,
			 o->bidir && o->reverse ? "--reverse" : "another --op");
		return -1;
	}
	o->perf_op = op;
	return 0;
}

bool opts_over(const struct opts *o, const char *scheme)
{
	const size_t len = strlen(scheme);

	for (int i = 0; i < o->nargs; i++) /* a file's name has no slashes there */
		if (!strncasecmp(o->arg[i], scheme, len) && !strncmp(o->arg[i] + len, "//", 2))
			return true;
	return false;
}

bool opts_secured(const struct opts *o)
{
	return opts_over(o, "tls:") || opts_over(o, "sctps:");
}

static bool has_secured_uri(const struct opts *o)
{
	return opts_secured(o) ||
	       !(opts_over(o, "tcp:") || opts_over(o, "sctp:") || opts_over(o, "shm:"));
}

/* What would have no effect. */
static int check_effects(const struct opts *o, char *why, size_t why_len)
{
	if (o->crc == OPTS_ON && (opts_over(o, "tls:") || opts_over(o, "shm:"))) {
		snprintf(why, why_len, "--crc on is for tcp://: %s",
			 opts_over(o, "tls:") ? "tls:// has crc=1 in the URI"
					      : "shared memory needs none, and has none");
		return -1;
	}
	if (o->quiet && o->stat_ms) {
		snprintf(why, why_len, "--quiet excludes --stat");
		return -1;
	}
	return 0;
}

/* What one option alone cannot know. */
static int check_together(const struct opts *o, char *why, size_t why_len)
{
	size_t max = o->plain ? DDPS_PD_MAX : DDPS_PD_MAX_ENHANCED;

	if (o->pd.len > max) {
		snprintf(why, why_len, "private data has %zu octets, the limit is %zu%s", o->pd.len,
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
	if ((o->probe || o->pairs) && (o->self || o->listen || (o->probe && o->pairs))) {
		snprintf(why, why_len, "--%s excludes --%s", o->probe ? "probe" : "pairs",
			 o->self     ? "self"
			 : o->listen ? "listen"
				     : "pairs");
		return -1;
	}
	if (secure_given(o) && !has_secured_uri(o)) {
		snprintf(why, why_len,
			 "the option --%s is for tls:// and sctps://: another wire would be "
			 "plain",
			 secure_given(o));
		return -1;
	}
	if (o->log && o->json) {
		snprintf(why, why_len,
			 "--log excludes --json: each line of JSON is an event already");
		return -1;
	}
	if (o->tap && o->json) {
		snprintf(why, why_len, "--tap excludes --json");
		return -1;
	}
	return check_effects(o, why, why_len);
}

enum opts_result opts_parse(struct opts *o, const struct command *cmd, int argc, char **argv,
			    char *why, size_t why_len)
{
	struct option_user u = get_option_user(cmd);
	enum opts_result res;
	int first = 0;

	set_opts_defaults(o, cmd->bit);
	res = optrow_parse(&options, &u, o, argc, argv, &first, why, why_len);
	if (res != OPTS_OK)
		return res;
	o->arg = argv + first;
	o->nargs = argc - first;
	choose_interval(o);
	return read_directions(o, why, why_len) || check_together(o, why, why_len) ? OPTS_BAD
										   : OPTS_OK;
}

static const char *name_conform_case(size_t i, const char **about)
{
	struct ddps_conform_case c;

	if (ddps_conform_case(i, &c))
		return NULL;
	*about = c.rule;
	return c.name;
}

void opts_help(FILE *f, const struct command *cmd)
{
	struct option_user u = get_option_user(cmd);

	complete_patterns(name_conform_case);
	optrow_help(f, &options, &u);
}

/* ---- the options --tls- ---- */

const char *secure_given(const struct opts *o)
{
	const struct ddps_secure_attr *const a = &o->secure;
	const struct {
		const char *name, *value;
	} given[] = {
		{ "tls", a->settings },
		{ "tls-cert", a->cert },
		{ "tls-key", a->key },
		{ "tls-ca", a->ca },
		{ "tls-crl", a->crl },
		{ "tls-psk", a->psk },
		{ "tls-psk-identity", a->psk_identity },
		{ "tls-peers", a->peers },
		{ "tls-hosts", a->hosts },
		{ "tls-peer", a->peer },
	};

	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		if (given[i].value)
			return given[i].name;
	return NULL;
}

int secure_open(struct ddps_secure **s, const struct opts *o, struct ddps_error *why)
{
	*s = NULL;
	return secure_given(o) ? ddps_secure_open(s, &o->secure, why) : 0;
}

const struct ddps_peer_id *secure_peer(const struct ddps_ep *ep, struct ddps_peer_id *id)
{
	id->struct_size = sizeof *id;
	return !ddps_ep_peer_id(ep, id) && id->how != DDPS_PEER_NONE ? id : NULL;
}
