/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_SIM_H
#define SESSCTL_IPOIB_SIM_H
/* sessctl ipoib sim: the fabric, its nodes, and the steps of a scenario. */
#include "ipoib/ipoib.h"
#include <ddpsess/ipoib_sim.h>

struct sim;

struct sim_node {
	struct sim *s;
	unsigned nr;
	struct ddps_ipoib_if_config cfg;
	struct ddps_ipoib_if *f; /* NULL: killed */
	bool gone;		 /* killed, or about to be freed */
	uint64_t packets, octets;
};

enum sim_verb { SIM_SEND, SIM_START, SIM_STOP, SIM_KILL, SIM_UNPLUG, SIM_PLUG, SIM_LOSS };

struct sim_step {
	struct sim *s;
	uint64_t at; /* ns */
	enum sim_verb verb;
	unsigned a, b; /* nodes; LOSS: percent */
	size_t len;    /* SEND: of the IP packet */
};

struct sim {
	uint64_t seed;
	unsigned n;
	bool json;
	struct ddps_ipoib_sim *fabric;
	struct ddps_ipoib_sim_faults faults;
	struct sim_node *node;
	struct sim_step *step;
	size_t nsteps;
	uint64_t end;
};

/*
 * A scenario: lines of MILLISECONDS VERB ARGUMENTS; '#' begins a comment.
 *	send FROM TO [OCTETS]	start N	  stop N   kill N   unplug N   plug N	loss PERCENT
 * Return: an enum status, with a sentence that names file or line in @why.
 */
int sim_read(struct sim *s, const char *file, char *why, size_t why_len);

#endif
