/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_UMAD_H
#define DDPS_PORT_UMAD_H
/*
 * CM messages over libibumad, on a channel adapter or on a simulator that stands in for one,
 * and path records from the subnet administrator.  There are no queue pairs here, hence no
 * data.
 *
 * libibumad is loaded when a port is opened, so nothing that is linked depends on it.  A port
 * is used by one thread at a time.  The descriptor of a simulator cannot be polled, so
 * receiving waits in the library; a signal ends a wait early or, at worst, at its timeout.
 */
#include "ipoib_cm/cm/cm.h"
#include "ipoib_cm/ports/port_sa.h"

struct ddps_umad;

struct ddps_umad_info {
	char device[20];
	int port;
	uint16_t lid, sm_lid, pkey; /* pkey: the first of the port's table */
	uint8_t sm_sl;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint64_t ca_guid;
};

struct ddps_umad_stats {
	uint64_t undelivered; /* sends that came back */
	uint64_t overrun;     /* received while a path was asked for, and too many to keep */
};

/*
 * @device, @port: NULL and 0 for the first one that there is.
 * Return: 0, or with one sentence in @why: DDPS_E_UNSUPPORTED (no library, no device),
 * DDPS_E_STATE (port not active), DDPS_E_BUSY (somebody else has the CM class of the port),
 * DDPS_E_SYSTEM, DDPS_E_NOMEM.
 */
int ddps_umad_open(struct ddps_umad **u, const char *device, int port, char *why, size_t why_len);
void ddps_umad_close(struct ddps_umad *u);

const struct ddps_umad_info *ddps_umad_info(const struct ddps_umad *u);
const struct ddps_umad_stats *ddps_umad_stats(const struct ddps_umad *u);

/* The address of the far end of a path, and the LID in an address. */
ddps_cm_addr ddps_umad_addr(const struct ddps_sa_path *p);
uint16_t ddps_umad_lid(ddps_cm_addr addr);

/* Best effort.  Return: 0 or DDPS_E_SYSTEM. */
int ddps_umad_send(struct ddps_umad *u, ddps_cm_addr to, const uint8_t mad[DDPS_CM_MAD_LEN]);

/* Waits at most @timeout_ms.  Return: 1, 0: nothing came, or DDPS_E_SYSTEM. */
int ddps_umad_recv(struct ddps_umad *u, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN],
		   ddps_cm_addr *from);

/*
 * Asks up to @tries times, waiting @timeout_ms (above 0) for each answer.
 * Return: 0, DDPS_E_TIMEDOUT, DDPS_E_SYSTEM, or what ddps_sa_path_answer() says.
 */
int ddps_umad_path(struct ddps_umad *u, const uint8_t dgid[DDPS_IPOIB_GID_LEN], unsigned tries,
		   int timeout_ms, struct ddps_sa_path *p);

#endif
