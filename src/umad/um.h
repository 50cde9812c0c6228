/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_UM_H
#define DDPS_UM_H
/*
 * libibumad for a subnet whose packets travel in UDP: um_api.c has its functions, um_net.c carries MADs
 * and does what a kernel does for them: agents, transaction IDs, repetition, messages of several segments.  One port in a
 * process, one lock.
 */
#include <infiniband/umad.h>
#include <stdbool.h>
#include <sys/queue.h>
#include "ipoib_cm/ib/agents.h"
#include "ipoib_cm/ports/port_ib_wire.h"
#include "ipoib_cm/sa/sa_mad.h"

#define UM_OWN	    0 /* an agent: what is asked here */
#define UM_AGENTS   32
#define UM_PENDING  64
#define UM_TABLE    (4u << 20) /* octets of a message, at most */
#define UM_QUEUE    1024
#define UM_GSI	    1
#define UM_SWITCH   255 /* LID of the network, which looks like a switch: no node has it */
#define UM_PKEY	    0xffff
#define UM_VARIABLE "DDPSESS_FABRIC"

struct um_agent {
	bool used, has_oui, rmpp;
	uint8_t mgmt_class, oui[3];
	uint64_t methods[2]; /* that come unasked */
};

/* A question that waits for its answer; of an answer in segments, what has come. */
struct um_pending {
	bool used;
	unsigned agent;
	uint16_t lid;
	uint32_t tid; /* the lower half */
	uint64_t due, wait_ns;
	int left; /* repetitions */
	struct ib_user_mad head;
	uint8_t mad[DDPS_CM_MAD_LEN];
	uint8_t *table;
	size_t len;
	uint32_t next; /* segment */
	bool held;     /* until it is known which nodes there are */
};

/* For the program. */
struct um_message {
	TAILQ_ENTRY(um_message) of_queue;
	struct ib_user_mad head;
	size_t len;
	uint8_t mad[];
};

struct um {
	struct ib_wire wire;
	struct ddps_ib_self self;
	struct ddps_ib_counters counted;
	int poll, timer; /* readable when there is something to do */
	unsigned opened;
	bool asking, path_told; /* the administration: which nodes there are; who has our GID */
	uint64_t told_at;	/* which nodes there are; 0: never */
	struct ddps_sa_pr path;
	bool there[IB_WIRE_LIDS]; /* by LID */
	uint32_t key;		  /* upper half of transaction IDs, but for the agent */
	uint32_t psn;
	struct um_agent agent[UM_AGENTS];
	struct um_pending pending[UM_PENDING];
	TAILQ_HEAD(, um_message) queue;
	unsigned queued;
};

/* From UM_VARIABLE: "ADDRESS:PORT,ADDRESS-OF-SA,GID".  Return: 0, or -1 with a sentence in @why. */
int um_read(struct um *u, const char *text, char *why, size_t why_len);
/* Return: 0, or -1 with a sentence in @why and errno. */
int um_open(struct um *u, char *why, size_t why_len);
void um_close(struct um *u);
/* Return: 0 or a negated errno. */
int um_send(struct um *u, unsigned agent, const struct ib_user_mad *head, const void *mad,
	    size_t len, int timeout_ms, int retries);
/* Takes what has come and looks at the time. */
void um_run(struct um *u);
/* ---- um_switch.c ---- */

/* Where a directed route leads: to a node, or to the switch, by the port of the node @lid. */
struct um_route {
	bool nowhere, is_switch;
	uint16_t lid;
};

struct um_route um_follow(const struct um *u, const uint8_t mad[DDPS_CM_MAD_LEN]);
/* @mad is a question to the switch, by directed route or by its LID: the answer then.  Return: whether there is one. */
bool um_switch_answer(const struct um *u, uint16_t by, uint8_t mad[DDPS_CM_MAD_LEN]);

/* ---- um_net.c ---- */

uint64_t um_clock(void);
/* For the wire: a packet has come. */
void um_take_packet(void *user, uint16_t slid, uint16_t mlid, const struct ddps_ib_pkt *p,
		    uint64_t now);
/* What an agent had is forgotten. */
void um_forget(struct um *u, unsigned agent);

#endif
