/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef OPENSM_PORT_H
#define OPENSM_PORT_H
/*
 * A port of a simulated fabric as libibverbs.so.1 and libibumad.so.3 in one: its MADs, LID, state, P_Keys and
 * prefix are ibsim's, written by a real subnet manager.  Datagrams and connections go between such ports by
 * sockets of this machine, with the checks of an adapter: LID, P_Key, Q_Key, group, state of the port.
 *
 * Environment: SIM_HOST the node of ibsim, IBSIM_SOCKNAME as ibsim has it, FABRIC_DIR a directory that the ports
 * share, FABRIC_NETNS the network namespace that ibsim runs in.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_PKEYS  32
#define PORT_ACTIVE 4

struct port_state {
	uint64_t prefix, guid;
	uint16_t lid, sm_lid;
	uint8_t sm_sl, lmc, state, mtu;
	uint16_t pkey[PORT_PKEYS];
};

/* What has a connection with ibsim, made at the first call.  Return: 0, or -1 after a line on stderr. */
int port_open(void);
/* As it is now. */
int port_ask(struct port_state *s);
/* The socket on which MADs come, one in a message. */
int port_mads(void);
/* A socket that is made where ibsim is. */
int port_socket(int type);

/* A MAD in ibsim's words. */
struct port_mad {
	uint32_t dlid, slid, dqp, sqp, status;
	uint64_t length;
	uint8_t mad[256];
};

#endif
