/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_SHAKER_IN_H
#define DDPS_SECURE_SHAKER_IN_H
/* What shaker.c, which has the thread, and shake.c, which has one handshake, share. */
#include "common/system/lock.h"
#include "secure/shake_gate.h"
#include "secure/shake_order.h"
#include "secure/shaker.h"
#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

TAILQ_HEAD(shakes, ddps_shake);

struct ddps_shaker {
	struct ddps_env *env;
	pthread_t thread;
	pid_t pid; /* that has the thread */
	struct ddps_task task;
	struct ddps_gate gate;	/* of peers' handshakes; the loop's */
	struct ddps_timer ask;	/* it again */
	struct ddps_mutex lock; /* of what follows; the context's is never taken with it */
	pthread_cond_t more;
	bool stop;
	struct ddps_shake_order todo[2]; /* dials, which somebody here waits for, go first */
	struct shakes done;
};

struct ddps_shake {
	struct ddps_shake_place place; /* of todo */
	struct ddps_gate_pass pass;    /* of a peer's */
	TAILQ_ENTRY(ddps_shake) link;  /* of done */
	struct ddps_shaker *by;
	const struct ddps_tls_plugin *plugin;
	const struct ddps_hs_ops *ops; /* of it */
	struct ddps_hs_conf conf;
	char *host;		      /* of conf.want */
	struct ddps_hs *hs;	      /* from the first step on, unless that failed: @why */
	struct ddps_witness *witness; /* to be judged again, without a handshake; or NULL */
	struct ddps_verdict why, news;
	void (*stepped)(void *user);
	void *user;
	uint64_t net; /* the peer's */
	bool server, busy;
	bool begun;  /* it was at the gate */
	bool waits;  /* in todo: for the lock */
	bool orphan; /* freed while it was busy */
	enum ddps_hs_state state;
	uint8_t *in;
	size_t nin;
};

/* ---- shake.c ---- */

void ddps_shake_drop_hs(struct ddps_shake *s);
/* Nobody refers to it, the thread included. */
void ddps_shake_destroy(struct ddps_shake *s);

/* ---- shaker.c ---- */

/* That of @env, which is made if there is none; NULL: no memory or thread. */
struct ddps_shaker *ddps_shaker_of(struct ddps_env *env);
/* The thread is to take a step. */
void ddps_shaker_enqueue(struct ddps_shake *s);
/* Nobody is there any more who asked for the step; false: it is taken already. */
bool ddps_shaker_withdraw(struct ddps_shake *s);
/* Whoever may begin now does. */
void ddps_shaker_let_in(struct ddps_shaker *k);

#endif
