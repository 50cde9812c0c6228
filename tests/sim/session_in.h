/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_SESSION_IN_H
#define SIM_SESSION_IN_H
/* Between the parts of the plain world of sim-session, which session_worlds.c makes and plays. */
#include "sim/session_world.h"

/* ---- session_hosts.c ---- */
void host_new(unsigned i);
/* @over: its sessions have ended, so what they took of the shared queue is known. */
void host_free(unsigned i, bool over);
void host_listen(struct host *h, unsigned i, bool tcp);
/* Requests that the program holds outlive it. */
void host_listen_no_more(struct host *h, unsigned i, bool tcp);
void host_fetch_events(unsigned i);
/* Its completions.  false: there was none. */
bool host_fetch(unsigned i);
/* One moment of a host: all that is to be done then, and what its users look at. */
void host_turn(unsigned i);

/* ---- session_pairs.c ---- */
/* false: nothing of it is left to do. */
bool pair_turn(struct pair *p);
/* Before a world that is played on either wire, and after it: what users saw is the same. */
void pairs_forget(void);
void pairs_same_on_both(struct sim_tally *t);

/* ---- session_trouble.c ---- */
void trouble(void);

#endif
