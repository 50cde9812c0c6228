/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CM_CONN_H
#define DDPS_CM_CONN_H
/* What cm.c (calls, timers), cm_rx.c (messages in) and cm_act.c (actions) share. */
#include "ipoib_cm/cm/cm_sm.h"

struct ddps_cm_conn {
	struct ddps_cm_conn *next;
	enum ddps_cm_state state;
	bool active;	 /* its REQ is ours */
	bool has_remote; /* remote_id, remote_guid and remote_qpn are known */
	bool data_seen;
	uint8_t retries, retries_left;
	uint32_t local_id, remote_id, local_qpn, remote_qpn;
	uint64_t remote_guid;
	uint64_t tid;	   /* of the REQ */
	uint64_t dreq_tid; /* of the peer's DREQ */
	uint64_t resp_ns;  /* T_req or T_rep, also T_dreq */
	uint64_t mra_ns;   /* T_mra once there was an MRA, else 0 */
	uint64_t linger_ns, timewait_ns;
	uint64_t deadline;
	uint8_t life; /* 5-bit packet lifetime */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN];
	uint8_t last[DDPS_CM_MAD_LEN]; /* what a resend repeats */
	ddps_cm_addr addr;
	void *user;
};

struct listener {
	struct listener *next;
	struct ddps_cm_listener l;
};

/*
 * Connections and listeners are searched in a row: a port has hundreds, not millions, and
 * set-up is not the data path.
 */
struct ddps_cm {
	struct ddps_cm_config cfg;
	struct ddps_cm_conn *conns;
	struct listener *listeners;
	unsigned n_conns;
	uint32_t id_counter;
	struct ddps_cm_mad rx; /* the message being handled; reports point to it */
	struct ddps_cm_stats stats;
};

/* What an event brings along; unused members are zero. */
struct ddps_cm_in {
	enum ddps_cm_event ev;
	uint64_t now;
	const struct ddps_cm_mad *mad; /* received */
	const struct ddps_cm_req *req; /* to send */
	const struct ddps_cm_rep *rep; /* to send */
	const uint8_t *priv;	       /* for the message to send, or NULL */
	uint16_t reason;
	uint8_t service_timeout;
};

/*
 * Moves @c by one event, appending to @o.  @c is freed if that leaves it IDLE.
 * Return: 0, DDPS_E_STATE or DDPS_E_INVAL; on failure nothing has changed.
 */
int ddps_cm_step(struct ddps_cm *cm, struct ddps_cm_conn *c, const struct ddps_cm_in *in,
		 struct ddps_cm_outs *o);

/* Return: a new connection in state IDLE, NULL at the limit or without memory. */
struct ddps_cm_conn *ddps_cm_conn_new(struct ddps_cm *cm);
void ddps_cm_conn_drop(struct ddps_cm *cm, struct ddps_cm_conn *c);
struct ddps_cm_conn *ddps_cm_conn_find(const struct ddps_cm *cm, uint32_t local_id);

/* Encodes @mad into the next free place of @o. */
int ddps_cm_emit(struct ddps_cm_outs *o, const struct ddps_cm_mad *mad, ddps_cm_addr to);

#endif
