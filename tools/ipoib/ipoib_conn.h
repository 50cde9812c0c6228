/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_CONN_H
#define SESSCTL_IPOIB_CONN_H
/*
 * What sessctl ipoib connect and listen share: the CM agent of a port, its messages shown and
 * captured, and the loop that serves it.
 */
#include "ipoib/ipoib.h"
#include "cli/out/out.h"
#include "ipoib/ipoib_wire.h"

struct conn_job {
	const struct ipoib_opts *o;
	struct out out;
	struct wire wire;
	struct ddps_cm *cm;
	FILE *capture;
	uint64_t start; /* times are shown from here on */
	struct ddps_ipoib_lladdr self;
	uint64_t service_id;	/* of listen */
	struct ddps_cm_rep rep; /* of listen: what every REP has */
	unsigned taken, open;	/* sessions: REQs taken, and those that are not over */
	uint64_t linger;	/* of listen: until when a refused REQ may be repeated */
	uint32_t id;		/* of connect: its connection */
	uint64_t part_at;	/* of connect: when to disconnect, 0: not yet known */
	bool over;
	int status;
};

/* Called for each report; it may send by conn_do(). */
typedef void (*conn_report_fn)(struct conn_job *j, const struct ddps_cm_report *r);

/*
 * The value of --set for a message: @mad is changed, its attribute says which fields there
 * are.  Return: 0, or -1 after saying what is wrong.
 */
int conn_apply_sets(struct conn_job *j, struct ddps_cm_mad *mad);

/* Open the port, the capture and a CM agent.  Return: an enum status; always conn_close(). */
int conn_open(struct conn_job *j, const struct ipoib_opts *o, const char *cmd,
	      const struct ddps_cm_mad *template);
int conn_close(struct conn_job *j);

/* Send and report what a call of the agent brought forth. */
void conn_do(struct conn_job *j, const struct ddps_cm_outs *o, conn_report_fn report);

/* One turn: timers, then at most one message.  Return: 0, or -1: the port has failed. */
int conn_turn(struct conn_job *j, uint64_t due, conn_report_fn report);

/* The private data that this side announces. */
void conn_private_data(const struct ipoib_opts *o, uint8_t out[DDPS_IPOIB_PRIV_LEN]);

/*
 * All of connect, through librdmacm; @mad: the REQ, as far as it may be chosen.
 * Return: an enum status.
 */
int conn_rdmacm(struct conn_job *j, struct ddps_cm_mad *mad, const struct ddps_ipoib_lladdr *peer);

/* ---- what happens, as text or JSON ---- */

void conn_out_port(struct conn_job *j, const char *event, uint64_t service_id);
void conn_out_path(struct conn_job *j, const struct ddps_sa_path *p);
void conn_out_mad(struct conn_job *j, bool sent, uint16_t lid,
		  const uint8_t octets[DDPS_CM_MAD_LEN]);
void conn_out_state(struct conn_job *j, const char *event, uint32_t id);
/* Why, and what to try. */
void conn_error_rejected(struct conn_job *j, uint16_t reason);
void conn_out_rejected(struct conn_job *j, uint32_t id, const struct ddps_cm_rej *rej);

#endif
