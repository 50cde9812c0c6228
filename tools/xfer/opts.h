/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OPTS_H
#define SESSCTL_OPTS_H
/* The command line: one table of options, from which parsing and help come. */
#include "cli/optrow.h"
#include <ddpsess/secure.h>
#include <ddpsess/session.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One bit a command; an option says which commands take it. */
enum cmd_bit {
	C_LISTEN = 1 << 0,
	C_CONNECT = 1 << 1,
	C_PUT = 1 << 2,
	C_GET = 1 << 3,
	C_PING = 1 << 4,
	C_CONFORM = 1 << 5,
	C_PERF = 1 << 6
};

/* Of an option that is on|off. */
enum { OPTS_ON, OPTS_OFF, OPTS_UNSET };

#define OPTS_RD_UNSET UINT16_MAX
#define PARALLEL_MAX  64

struct opts {
	enum cmd_bit cmd;
	/* connection */
	uint16_t ird, ord; /* 0..DDPS_RD_MAX, DDPS_RD_ULP or OPTS_RD_UNSET */
	bool p2p, plain, legacy_retry;
	unsigned rtr;	       /* DDPS_RTR_*, 0: not given, all */
	unsigned crc, markers; /* OPTS_ON, OPTS_OFF or OPTS_UNSET */
	struct optval_pd pd;
	/* listen */
	bool reject, log, quiet;
	const char *dir;
	uint64_t max_size;
	bool read_only;
	/* connect */
	bool wait;
	/* put, get */
	unsigned digest; /* enum digest_kind */
	/* ping */
	unsigned op; /* enum ping_op */
	uint64_t size;
	uint32_t interval_ms;
	/* perf */
	unsigned perf_op; /* enum perf_op */
	struct optval_sizes sizes;
	uint32_t run_ms;
	uint32_t depth;	   /* 0: not given */
	uint64_t rate;	   /* octets a second, 0: not given */
	uint32_t every_ms; /* 0: not given */
	uint32_t parallel;
	bool bidir, reverse; /* they are in perf_op, too */
	const char *plot;
	/* conform */
	bool listen, self, list, tap, pcap_all, probe, pairs;
	uint32_t pause_ms;
	const char *then, *cases, *junit, *pcap, *html, *profile;
	/* all */
	uint32_t timeout_ms; /* 0: not given */
	uint32_t count;	     /* 0: not given */
	uint32_t stat_ms;    /* 0: not given */
	const char *capture; /* NULL: not given */
	bool force, json;
	struct ddps_secure_attr secure;
	/* what is left */
	char **arg;
	int nargs;
};

struct command {
	const char *name;
	enum cmd_bit bit;
	const char *synopsis;
	const char *about;
	int min_args, max_args;
	int (*run)(const struct opts *o);
};

/*
 * Parse @argv[1..] of command @cmd (@argv[0] is its name; the array is permuted).
 * OPTS_BAD: one sentence in @why.
 */
enum opts_result opts_parse(struct opts *o, const struct command *cmd, int argc, char **argv,
			    char *why, size_t why_len);

/* Whether an argument is a URI of @scheme, as "shm:"; of tls:// or sctps://. */
bool opts_over(const struct opts *o, const char *scheme);
bool opts_secured(const struct opts *o);

/* The command's help, from its row and the option table. */
void opts_help(FILE *f, const struct command *cmd);

/* The options --tls-... */

/* The name of one that is there, without its dashes; NULL: there is none. */
const char *secure_given(const struct opts *o);

/*
 * Open what they name; NULL in *@s if there are none.  The caller closes it, once its context is made.
 * Return: 0 or DDPS_E_..., with a sentence in @why.
 */
int secure_open(struct ddps_secure **s, const struct opts *o, struct ddps_error *why);

/* Who the peer of a session is: @id, or NULL: the wire is not secured. */
const struct ddps_peer_id *secure_peer(const struct ddps_ep *ep, struct ddps_peer_id *id);

#endif
