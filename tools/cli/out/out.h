/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OUT_H
#define SESSCTL_OUT_H
/*
 * What sessctl says: aligned text for people or one JSON object a line on standard output,
 * errors on standard error (and as JSON too).  @session numbers a listener's sessions; 0: the
 * only one of a client, not shown.
 */
#include <ddpsess/secure.h>
#include <ddpsess/session.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Whether escape sequences may go to @fd: a terminal, no TERM=dumb, no NO_COLOR. */
bool out_colours(int fd);

struct out {
	bool json;
	bool colour; /* standard output takes escape sequences */
	bool bar;    /* progress on standard error */
	bool drops;  /* what a full pipe does not take is left out and counted, not waited for */
	unsigned left_out;
	bool quiet;	     /* errors only */
	bool secured;	     /* TLS or DTLS is below */
	struct out_log *log; /* NULL: not as a log */
	const char *cmd;     /* of error messages */
	FILE *f, *err;
	int write_errno;	     /* why standard output was not written, the first time */
	uint64_t bar_due, bar_begin; /* progress: next update, first one, ns */
	bool listing;		     /* a reader who leaves has enough: cmd_reader_left() */
	int error;		     /* DDPS_E_* that the next out_error() is about, or 0 */
	unsigned columns;	     /* of the terminal; 0: asked for at each update */
};

/* What a transfer or a series of pings came to. */
struct out_transfer {
	const char *op, *name;
	uint64_t bytes;
	double seconds;
	const char *digest_name; /* "sha256" */
	const uint8_t *digest;
	size_t digest_len; /* octets, at most 32 */
};

struct out_ping {
	const char *op;
	uint32_t size, count;
	double min, avg, p50, p99, max; /* microseconds */
};

/* One size of a perf run. */
struct out_perf {
	const char *transport, *op;
	uint64_t size, ops;
	uint32_t depth, sessions;
	double from; /* of an interval: since this size began */
	double seconds;
	double min, p50, p99, p99_9, p99_99, max; /* microseconds */
	double cpu;				  /* seconds of this process */
};

void out_init(struct out *o, const char *cmd, bool json);

/* What is said goes to standard error: standard output has a file's octets. */
void out_to_stderr(struct out *o);

void out_listening(struct out *o, const char *uri);
/* @id: NULL: the wire is not secured */
void out_established(struct out *o, unsigned session, const struct ddps_conn_info *info,
		     const struct ddps_peer_id *id, const uint8_t *pd, size_t pd_len);
/* @ev: a DDPS_EV_REJECTED, or the request that this side rejects. */
void out_rejected(struct out *o, unsigned session, const struct ddps_event *ev);
void out_terminated(struct out *o, unsigned session, const struct ddps_error *e);
void out_transfer(struct out *o, unsigned session, const struct out_transfer *t);
void out_pong(struct out *o, uint32_t seq, uint32_t size, double us);
void out_ping(struct out *o, const struct out_ping *p);
/* @first: a heading goes before it */
void out_perf(struct out *o, const struct out_perf *p, bool first);
/* What an interval of it came to: op, depth, sessions, size, ops, from and seconds. */
void out_perf_interval(struct out *o, const struct out_perf *p, bool first);
void out_closed(struct out *o, unsigned session);
/* @advice: what to try, or NULL; by out_error, too. */
void out_note(struct out *o, const char *advice, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* In JSON it has the code that o->error is, which is 0 afterwards. */
void out_error(struct out *o, unsigned session, const char *advice, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* One sentence of a library error: its text, or its code's, errno and address. */
void out_error_text(char *dst, size_t size, const struct ddps_error *e);

/* Redraw the bar if it is time; remove it. */
void out_progress(struct out *o, const char *name, uint64_t done, uint64_t total);
void out_progress_end(struct out *o);

/* To be seen immediately by whoever reads standard output. */
void out_flush(struct out *o);

/* Flush.  Return: 0, or -1 if something could not be written (reported). */
int out_finish(struct out *o);

#endif
