/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OUT_JSON_H
#define SESSCTL_OUT_JSON_H
/* One JSON object a line; the field names are an interface, described in sessctl-json(5). */
#include "cli/out/out.h"
#include <jansson.h>
#include <syslog.h>
#include <ddpsess/stats.h>

const char *out_transport_name(const struct out *o, enum ddps_transport t);
const char *out_rtr_name(unsigned rtr);
/* Of a DDPS_E_*, a name that stays; "failed" is what has no error of the library. */
const char *out_error_name(int code);

/* Write an object as ASCII: no terminal obeys what is in its texts, and nothing of them is lost.  @flags
 * are jansson's.  Return: 0 or -1. */
int json_out_object(FILE *f, const json_t *j, size_t flags);

/* Write an object as one line and drop it. */
void json_out_line(struct out *o, json_t *j);

void json_out_listening(struct out *o, const char *uri);
void json_out_established(struct out *o, unsigned session, const struct ddps_conn_info *i,
			  const struct ddps_peer_id *id, const uint8_t *pd, size_t pd_len);
void json_out_rejected(struct out *o, unsigned session, const struct ddps_event *ev);
void json_out_terminated(struct out *o, unsigned session, const struct ddps_error *e);
void json_out_transfer(struct out *o, unsigned session, const struct out_transfer *t);
void json_out_pong(struct out *o, uint32_t seq, uint32_t size, double us);
void json_out_ping(struct out *o, const struct out_ping *p);
void json_out_perf(struct out *o, const struct out_perf *p);
void json_out_perf_interval(struct out *o, const struct out_perf *p);
void json_out_closed(struct out *o, unsigned session);
void json_out_error(struct out *o, unsigned session, const char *text, const char *advice);

/*
 * The text for people as a log: each event on one line, behind its time (ISO 8601, UTC) and level, or behind
 * the priority that systemd's journal takes away again (sd-daemon(3)).
 */

/* Whether standard error goes to the journal. */
bool out_log_is_journal(void);

/* From now on.  Return: 0, or -1 with errno. */
int out_log_begin(struct out *o, bool journal);
void out_log_end(struct out *o);

/* What was printed since the last time is one event. */
void out_log_event(struct out *o);
/* A sentence on standard error; @level as syslog(3) has them. */
void out_log_say(struct out *o, int level, const char *text, const char *advice);

/* How a session stands, and the SCTP association below it: one line, or one JSON object. */

#define OUT_PATHS_MAX 8

struct out_status {
	double seconds;		 /* since somebody began to look */
	uint64_t sent, received; /* octets behind DDP headers */
	uint64_t held;
	bool has_assoc;
	struct ddps_assoc_stats assoc;
	struct ddps_path_stats path[OUT_PATHS_MAX];
};

/* Read what there is of @ep; all but @st->seconds is set.  0, or -1: nothing can be read. */
int out_status_read(struct out_status *st, struct ddps_ep *ep);
void out_status(struct out *o, unsigned session, const struct out_status *st);

#endif
