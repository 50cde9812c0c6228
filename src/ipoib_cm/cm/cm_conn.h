/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CM_CONN_H
#define DDPS_CM_CONN_H
/* What cm.c (calls, timers), cm_rx.c (messages in) and cm_act.c (actions) share. */
#include "common/tab/due.h"
#include "common/tab/tab.h"
#include <sys/queue.h>
#include <ddpsess/ib_cm.h>

/*
 * The state machine of one CM connection, active and passive, as a table.  It knows neither
 * messages nor time: cm.c turns both into events and carries the actions out.
 */

/* What the caller does, in this order. */
enum {
	DDPS_CM_ACT_STOP = 1 << 0,
	DDPS_CM_ACT_REQ = 1 << 1,
	DDPS_CM_ACT_REP = 1 << 2,
	DDPS_CM_ACT_RTU = 1 << 3,
	DDPS_CM_ACT_MRA = 1 << 4,
	DDPS_CM_ACT_REJ = 1 << 5,
	DDPS_CM_ACT_DREQ = 1 << 6,
	DDPS_CM_ACT_DREP = 1 << 7,
	DDPS_CM_ACT_AGAIN = 1 << 8,	   /* the last message once more, unchanged */
	DDPS_CM_ACT_TIMER = 1 << 9,	   /* T_req, T_rep, T_dreq, with all retries */
	DDPS_CM_ACT_TIMER_AGAIN = 1 << 10, /* the same with one retry less */
	DDPS_CM_ACT_TIMER_MRA = 1 << 11,
	DDPS_CM_ACT_TIMER_TW = 1 << 12,
	DDPS_CM_ACT_TIMER_LINGER = 1 << 13,
	DDPS_CM_ACT_TELL = 1 << 14,
	DDPS_CM_ACT_IGNORE = 1 << 15,	  /* legal, and deliberately without effect */
	DDPS_CM_ACT_TIMER_SOON = 1 << 16, /* brings the next resend forward */
};

struct ddps_cm_rule {
	enum ddps_cm_state next;
	unsigned acts; /* 0: the event is not legal in this state */
};

struct ddps_cm_rule ddps_cm_rule(enum ddps_cm_state state, enum ddps_cm_event ev);

struct ddps_cm_conn {
	LIST_ENTRY(ddps_cm_conn) of_all;
	struct ddps_tab_link by_id, by_remote, by_qpn, by_addr;
	struct ddps_due due; /* when its timer ends */
	enum ddps_cm_state state;
	bool active;	 /* its REQ is ours */
	bool has_remote; /* remote_id, remote_guid and remote_qpn are known */
	bool has_qpn;	 /* it can be found by the last: not in timewait */
	bool has_share;	 /* of its address: the peer's REQ made it, and it is not over */
	bool data_seen;
	uint8_t retries, retries_left;
	uint32_t local_id, remote_id, local_qpn, remote_qpn;
	uint64_t remote_guid;
	uint64_t tid;	   /* of the REQ */
	uint64_t dreq_tid; /* of the peer's DREQ */
	uint64_t resp_ns;  /* T_req or T_rep, also T_dreq */
	uint64_t mra_ns;   /* T_mra once there was an MRA, else 0 */
	uint64_t linger_ns, timewait_ns;
	uint8_t life; /* 5-bit packet lifetime */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN];
	uint8_t last[DDPS_CM_MAD_LEN]; /* what a resend repeats */
	ddps_cm_addr addr;
	void *user;
};

struct ddps_cm_listening {
	LIST_ENTRY(ddps_cm_listening) of_all;
	bool kept; /* its memory is the caller's */
	struct ddps_cm_listener l;
};

/* Listeners are searched in a row: an interface has two. */
struct ddps_cm {
	struct ddps_cm_config cfg;
	struct ddps_siphash_key key;
	LIST_HEAD(, ddps_cm_conn) conns; /* the newest first */
	struct ddps_tab by_id, by_remote, by_qpn, by_addr;
	struct ddps_dues dues;
	/* Told when a connection is forgotten, or NULL; it may not call back. */
	void (*gone)(void *user, uint32_t id);
	void *gone_user;
	LIST_HEAD(, ddps_cm_listening) listeners;
	unsigned n_conns;
	uint32_t id_counter;
	struct ddps_cm_mad rx; /* the message being handled; reports point to it */
	ddps_cm_addr from;     /* where it came from */
	/*
	 * The bits of an address that say which port it is.  What comes from another port than the
	 * connection's peer is no message of that connection, whatever IDs it has; 0: it is.
	 */
	ddps_cm_addr port_bits;
	uint32_t stray; /* the connection of which the latest message was said to be; 0: none */
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

/* As ddps_cm_listen() does with @kept->l, in memory that is the caller's until it is no listener any more. */
int ddps_cm_listen_kept(struct ddps_cm *cm, struct ddps_cm_listening *kept);
/* NULL: there is none. */
struct ddps_cm_listening *ddps_cm_listener_find(const struct ddps_cm *cm, uint64_t service_id);

/* An unanswered REQ of ours: its next repetition, or the end of its last, is brought forward. */
void ddps_cm_conn_soon(struct ddps_cm *cm, uint32_t id, uint64_t now);

/*
 * Forget the one in timewait that is oldest: it is over at both ends, while a peer could have all
 * places kept for those that it has ended.  If there is none, the oldest REQ that was withdrawn: a peer
 * makes us do that by asking itself.  Return: false: there is none either.
 */
bool ddps_cm_conn_forget(struct ddps_cm *cm);
/* Return: a new connection in state IDLE, NULL at the limit or without memory. */
struct ddps_cm_conn *ddps_cm_conn_new(struct ddps_cm *cm);
void ddps_cm_conn_drop(struct ddps_cm *cm, struct ddps_cm_conn *c);
struct ddps_cm_conn *ddps_cm_conn_find(const struct ddps_cm *cm, uint32_t local_id);
/* The peer's ID, GUID and queue pair have become known: it can be found by them. */
void ddps_cm_conn_known(struct ddps_cm *cm, struct ddps_cm_conn *c);
/* It is one of those that its address has asked for. */
void ddps_cm_conn_share(struct ddps_cm *cm, struct ddps_cm_conn *c);
/* Return: whether that address may have no more. */
bool ddps_cm_conn_over_share(const struct ddps_cm *cm, ddps_cm_addr addr);
/*
 * It is over: its queue pair at the peer may be another connection's from now on, and its address may
 * ask for one more.
 */
void ddps_cm_conn_over(struct ddps_cm *cm, struct ddps_cm_conn *c);
/* NULL: there is none. */
struct ddps_cm_conn *ddps_cm_conn_remote(const struct ddps_cm *cm, uint64_t guid, uint32_t id);
struct ddps_cm_conn *ddps_cm_conn_qpn(const struct ddps_cm *cm, uint64_t guid, uint32_t qpn);

#ifdef DDPS_ASSERTS
/* At the end of whatever changes it: lists, tables and timers agree. */
void ddps_cm_check(const struct ddps_cm *cm);
#else
static inline void ddps_cm_check(const struct ddps_cm *cm)
{
	(void)cm;
}
#endif

/* Encodes @mad into the next free place of @o. */
int ddps_cm_emit(struct ddps_cm_outs *o, const struct ddps_cm_mad *mad, ddps_cm_addr to);

#endif
