/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef IPOIB_CM_FIXTURE_H
#define IPOIB_CM_FIXTURE_H
/*
 * For the tests of the CM agent: one agent, the messages that its peer would send, and
 * everything that can happen to a connection, by name.
 */
#include <ddpsess/ib_cm.h>

#define OUR_GUID   0x0002c90300001000
#define PEER_GUID  0x0002c90300002000
#define OTHER_GUID 0x0002c90300003000
#define PEER_ID	   0x55667788u
#define PEER_QPN   0x452u
#define OUR_QPN	   0x451u
#define PEER_TID   0x0000000900000001
#define SID	   0x0100000000000049
#define FROM	   77 /* where the peer's messages come from */
#define LIFE	   18
#define MS	   1000000ull

struct cm_rig {
	struct ddps_cm *cm;
	struct ddps_cm_outs o;
	uint32_t id;
	uint64_t now;
	uint8_t req_retries;
};

#define ST(name) DDPS_CM_ST_##name
#define EV(name) DDPS_CM_EV_##name

extern const uint8_t cm_rig_priv[8]; /* private data of the agent */

void cm_rig_init(struct cm_rig *r);
void cm_rig_fini(struct cm_rig *r);

/* The peer's message arrives. */
void cm_rig_rx(struct cm_rig *r, const struct ddps_cm_mad *m);
/* Message number @i that the last step sent. */
struct ddps_cm_mad cm_rig_sent(const struct cm_rig *r, unsigned i);
/* The time comes for which the agent waits. */
void cm_rig_tick(struct cm_rig *r);
void cm_rig_send_connect(struct cm_rig *r);
int cm_rig_reply(struct cm_rig *r);

struct ddps_cm_mad cm_rig_peer_req(const struct cm_rig *r);
struct ddps_cm_mad cm_rig_peer_rep(const struct cm_rig *r);
struct ddps_cm_mad cm_rig_peer_mra(const struct cm_rig *r, uint8_t msg);
struct ddps_cm_mad cm_rig_peer_rej(const struct cm_rig *r, uint16_t reason, uint8_t msg);
/* A REJ with reason 4, from a peer that never learned our ID. */
struct ddps_cm_mad cm_rig_peer_gave_up(void);
struct ddps_cm_mad cm_rig_peer_rtu(const struct cm_rig *r);
struct ddps_cm_mad cm_rig_peer_dreq(const struct cm_rig *r);
struct ddps_cm_mad cm_rig_peer_drep(const struct cm_rig *r);

/* What can happen. */
enum stimulus {
	S_CONNECT,
	S_REPLY,
	S_READY,
	S_REJECT,
	S_DELAY,
	S_ABORT,
	S_WITHDRAW,
	S_DISCONNECT,
	S_CLOSED,
	S_DATA,	      /* data taken for the RTU */
	S_TIMER,      /* retries left */
	S_TIMER_END,  /* none left */
	S_TIMER_DATA, /* none left, but data has come */
	S_RX_REQ,
	S_RX_REP,
	S_RX_REP_QPN_USED, /* (GUID, QPN) of another live connection */
	S_RX_REP_ID_USED,  /* (GUID, Local ID) of another connection */
	S_RX_RTU,
	S_RX_MRA_REQ,
	S_RX_MRA_REP,
	S_RX_REJ,
	S_RX_REJ_STALE,
	S_RX_REJ_TIMEOUT,
	S_RX_DREQ,
	S_RX_DREQ_QPN, /* for another QPN */
	S_RX_DREP,
};

/* Return: what the call says; 0 for messages and timers. */
int cm_rig_apply(struct cm_rig *r, enum stimulus s);

/* Takes a fresh rig to @s; ESTABLISHED and what follows on the side that @active says. */
void cm_rig_reach(struct cm_rig *r, enum ddps_cm_state s, bool active);

#endif
