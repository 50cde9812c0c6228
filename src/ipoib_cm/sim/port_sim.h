/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_PORT_SIM_H
#define DDPS_IPOIB_PORT_SIM_H
/*
 * A fabric in memory: nodes with a port each, and everything that a wire may do to what they
 * send, drawn from a seeded generator.  Time is virtual; the same seed and the same calls give
 * the same run, event by event.
 */
#include "ipoib_cm/iface/port.h"

struct ddps_ipoib_sim;

/* Of every datagram, CM message, and answer of the fabric's management. */
struct ddps_ipoib_sim_faults {
	unsigned loss, dup, late;      /* per million; late: ten times the delay */
	uint64_t min_delay, max_delay; /* ns; with a span, messages overtake each other */
};

struct ddps_ipoib_sim_config {
	uint64_t seed;
	unsigned nodes; /* 1..4096 */
	uint32_t link_mtu;
	unsigned max_events; /* in flight; more are lost and counted.  0: 65536 */
	struct ddps_ipoib_sim_faults faults;
};

/* Who is behind a port.  @deadline and @tick as in iface.h. */
struct ddps_ipoib_sim_user {
	const struct ddps_ipoib_up *up;
	uint64_t (*deadline)(void *user);
	void (*tick)(void *user, uint64_t now);
	void *user;
	struct ddps_ipoib_lladdr addr; /* where datagrams and path queries find it */
};

struct ddps_ipoib_sim_stats {
	uint64_t events, lost, duplicated, overflow; /* overflow: for max_events */
	uint64_t ud, mads, messages;		     /* delivered; messages: on connections */
};

/* Return: the fabric, or NULL: a value out of its range, or out of memory. */
struct ddps_ipoib_sim *ddps_ipoib_sim_new(const struct ddps_ipoib_sim_config *cfg);
/* The users are freed before it. */
void ddps_ipoib_sim_free(struct ddps_ipoib_sim *s);

struct ddps_ipoib_port *ddps_ipoib_sim_port(struct ddps_ipoib_sim *s, unsigned node);
void ddps_ipoib_sim_attach(struct ddps_ipoib_sim *s, unsigned node,
			   const struct ddps_ipoib_sim_user *user);
/* Its user is gone: nothing comes to it, and its queue pairs end.  As with a killed process. */
void ddps_ipoib_sim_detach(struct ddps_ipoib_sim *s, unsigned node);

void ddps_ipoib_sim_faults(struct ddps_ipoib_sim *s, const struct ddps_ipoib_sim_faults *faults);
/* Plugs a port in or out; its user is told. */
void ddps_ipoib_sim_plug(struct ddps_ipoib_sim *s, unsigned node, bool up);

/* Calls @fn at @at.  Return: 0 or DDPS_E_LIMIT. */
int ddps_ipoib_sim_at(struct ddps_ipoib_sim *s, uint64_t at, void (*fn)(void *arg, uint64_t now),
		      void *arg);
/* To be called when the user of @node has been called other than through its port. */
void ddps_ipoib_sim_touch(struct ddps_ipoib_sim *s, unsigned node);

/* Lets everything happen up to @until, which is then the time. */
void ddps_ipoib_sim_run(struct ddps_ipoib_sim *s, uint64_t until);
uint64_t ddps_ipoib_sim_now(const struct ddps_ipoib_sim *s);
const struct ddps_ipoib_sim_stats *ddps_ipoib_sim_stats(const struct ddps_ipoib_sim *s);
/* A number below @below from the fabric's generator, for scenarios. */
uint64_t ddps_ipoib_sim_random(struct ddps_ipoib_sim *s, uint64_t below);

#endif
