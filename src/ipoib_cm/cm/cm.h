/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CM_H
#define DDPS_CM_H
/*
 * The connection manager of one port: many connections, listeners, and the answers to
 * messages that belong to no connection.  It does no I/O and reads no clock: octets, calls
 * and the time go in, octets to send and reports come out.
 *
 * Connections are named by their local communication ID.  One exists from a successful
 * ddps_cm_connect() or the report of a REQ until a report or a call leaves it in state IDLE.
 * An agent is used by one thread at a time.
 */
#include <ddpsess/ipoib_cm.h>
#include "ipoib_cm/cm/cm_sm.h"

#define DDPS_CM_NEVER UINT64_MAX /* a deadline that does not come */

struct ddps_cm;

struct ddps_cm_config {
	uint64_t ca_guid;		   /* goes into every REQ, REP and timeout REJ */
	uint32_t tid_high;		   /* upper half of own transaction IDs */
	uint32_t id_seed;		   /* random, so that a restart does not reuse IDs */
	unsigned max_conns;		   /* REQs beyond are refused with reason 3 */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN]; /* for REJs that concern no listener */
};

struct ddps_cm_listener {
	uint64_t service_id;
	uint8_t gid[DDPS_IPOIB_GID_LEN]; /* a REQ to another one is refused with reason 12 */
	uint16_t pkey;			 /* compared without the membership bit */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN];
	void *user; /* comes with the reports of connections accepted here */
};

/* Where a message goes to or came from: a token that only the caller understands. */
typedef uint64_t ddps_cm_addr;

struct ddps_cm_send {
	ddps_cm_addr to;
	uint8_t mad[DDPS_CM_MAD_LEN];
};

struct ddps_cm_report {
	uint32_t id;
	void *user;
	enum ddps_cm_event ev;
	enum ddps_cm_state state;      /* after it; IDLE: the connection is gone */
	const struct ddps_cm_mad *mad; /* the message that caused it, or NULL; valid until
					  the next ddps_cm_rx() */
	ddps_cm_addr addr;
};

/* What one call brings forth; the callee fills it afresh. */
struct ddps_cm_outs {
	unsigned n_send, n_report;
	struct ddps_cm_send send[2];
	struct ddps_cm_report report[1];
};

struct ddps_cm_stats {
	uint64_t malformed;   /* not a CM message by its octets */
	uint64_t unsupported; /* well formed, of a kind that is not handled */
	uint64_t unmatched;   /* of no connection, or not legal in its state */
	uint64_t ignored;     /* duplicates and the like, expected */
	uint64_t refused;     /* REQs refused without asking the consumer */
};

/* Return: the agent, or NULL: out of memory. */
struct ddps_cm *ddps_cm_new(const struct ddps_cm_config *cfg);
void ddps_cm_free(struct ddps_cm *cm);

/* Return: 0, DDPS_E_BUSY (somebody listens on that service ID) or DDPS_E_NOMEM. */
int ddps_cm_listen(struct ddps_cm *cm, const struct ddps_cm_listener *l);
void ddps_cm_unlisten(struct ddps_cm *cm, uint64_t service_id);

/*
 * A message has arrived.
 * Return: 0, or what ddps_cm_mad_decode() says; DDPS_E_UNSUPPORTED also for SIDR, LAP, APR.
 */
int ddps_cm_rx(struct ddps_cm *cm, const void *buf, size_t len, ddps_cm_addr from, uint64_t now,
	       struct ddps_cm_outs *o);

/* When to call ddps_cm_tick() next, or DDPS_CM_NEVER. */
uint64_t ddps_cm_deadline(const struct ddps_cm *cm);

/* Serves one connection whose time has come.  Return: 1, or 0: none is due. */
int ddps_cm_tick(struct ddps_cm *cm, uint64_t now, struct ddps_cm_outs *o);

struct ddps_cm_connect {
	struct ddps_cm_req req; /* local_id and ca_guid are filled in */
	unsigned packet_life;	/* 5-bit lifetime of the path */
	ddps_cm_addr to;
	void *user;
};

/*
 * The calls below return 0, DDPS_E_INVAL (no such connection, or a value does not fit its
 * field) or DDPS_E_STATE.  @priv: 8 octets of private data, or NULL for those that the
 * connection has from its REQ or listener.
 */

/* Also DDPS_E_LIMIT or DDPS_E_NOMEM.  @id receives the name of the connection. */
int ddps_cm_connect(struct ddps_cm *cm, const struct ddps_cm_connect *c, uint64_t now, uint32_t *id,
		    struct ddps_cm_outs *o);

/* Passive side: REP.  Its IDs and ca_guid are filled in. */
int ddps_cm_reply(struct ddps_cm *cm, uint32_t id, const struct ddps_cm_rep *rep, uint64_t now,
		  struct ddps_cm_outs *o);

/* Active side: RTU. */
int ddps_cm_ready(struct ddps_cm *cm, uint32_t id, const uint8_t *priv, uint64_t now,
		  struct ddps_cm_outs *o);

/* REJ, to a REQ or REP that waits for an answer. */
int ddps_cm_reject(struct ddps_cm *cm, uint32_t id, uint16_t reason, const uint8_t *priv,
		   uint64_t now, struct ddps_cm_outs *o);

/* MRA: the answer takes up to @service_timeout (5-bit time) longer. */
int ddps_cm_delay(struct ddps_cm *cm, uint32_t id, uint8_t service_timeout, const uint8_t *priv,
		  uint64_t now, struct ddps_cm_outs *o);

/* Takes an own REQ (REJ 4) or REP (REJ with @reason) back. */
int ddps_cm_abort(struct ddps_cm *cm, uint32_t id, uint16_t reason, uint64_t now,
		  struct ddps_cm_outs *o);

/* Ends an own REQ without a word; a late REP is refused with reason 28. */
int ddps_cm_withdraw(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/* DREQ. */
int ddps_cm_disconnect(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/* DREP, after a DREQ was reported. */
int ddps_cm_closed(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/*
 * Data has arrived on a connection whose RTU has not.  The REP goes on being resent, as the
 * RTU's private data is wanted; but when that ends, the connection counts as established.
 */
int ddps_cm_data_seen(struct ddps_cm *cm, uint32_t id);

/* The same, taken for the RTU at once. */
int ddps_cm_data_is_rtu(struct ddps_cm *cm, uint32_t id, uint64_t now, struct ddps_cm_outs *o);

/* Changes what comes with reports of connection @id.  Return: 0 or DDPS_E_INVAL. */
int ddps_cm_set_user(struct ddps_cm *cm, uint32_t id, void *user);

/* Return: its state; IDLE also for one that does not exist. */
enum ddps_cm_state ddps_cm_state(const struct ddps_cm *cm, uint32_t id);

const struct ddps_cm_stats *ddps_cm_stats(const struct ddps_cm *cm);

#endif
