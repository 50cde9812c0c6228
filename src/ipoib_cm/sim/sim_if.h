/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_SIM_IF_H
#define DDPS_IPOIB_SIM_IF_H
/* An interface behind a port of the fabric in memory. */
#include "ipoib_cm/iface/iface.h"
#include "ipoib_cm/sim/port_sim.h"

/*
 * Makes an interface with @cfg behind the port of @node and starts it.  *@f is set before it
 * starts, for what the calls of @calls look at.
 * Return: 0, or what ddps_ipoib_if_new() says; *@f is then as it was.
 */
int ddps_ipoib_sim_if_start(struct ddps_ipoib_if **f, struct ddps_ipoib_sim *s, unsigned node,
			    const struct ddps_ipoib_if_config *cfg,
			    const struct ddps_ipoib_if_calls *calls);
/* Takes it off the fabric and frees it, as when its process is killed.  @f may be NULL. */
void ddps_ipoib_sim_if_kill(struct ddps_ipoib_if *f, struct ddps_ipoib_sim *s, unsigned node);

#endif
