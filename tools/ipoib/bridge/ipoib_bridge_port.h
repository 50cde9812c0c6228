/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_BRIDGE_PORT_H
#define SESSCTL_IPOIB_BRIDGE_PORT_H
/* What carries the packets of a bridge: a port of an InfiniBand subnet in UDP. */
#include "cli/out_json.h"
#include "ipoib/ipoib_ib_opts.h"

#define BRIDGE_PORT_FDS DDPS_IB_UDP_FDS

struct bridge_port {
	struct ddps_ib_udp_config cfg;
	struct ddps_ib_udp *ib;
};

struct bridge;

/* Of the options, after those that it shares with others.  Return: 0 or -1, @why. */
int bridge_port_configure(struct bridge *b, uint32_t seed, char *why, size_t why_len);
/* Return: an enum status, after saying what is wrong. */
int bridge_port_open(struct bridge *b);
void bridge_port_close(struct bridge_port *p);

struct ddps_ipoib_port *bridge_port_port(struct bridge_port *p);
void bridge_port_user(struct bridge_port *p, void *user);
/* Return: whether there is more to do without waiting. */
bool bridge_port_run(struct bridge_port *p, uint64_t now);
void bridge_port_fds(struct bridge_port *p, struct pollfd fds[BRIDGE_PORT_FDS]);
/* Whether what is sent to some connection now may soon be dropped. */
bool bridge_port_busy(const struct bridge_port *p);
uint64_t bridge_port_deadline(const struct bridge_port *p);
json_t *bridge_port_counters(const struct bridge_port *p);

#endif
