/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_UMAD_H
#define DDPSESS_IB_UMAD_H
/*
 * Communication management (CM) messages over libibumad, and path records from the subnet
 * administrator (SA).  A port is one of an InfiniBand channel adapter, or of a simulator that
 * stands in for one.  There are no queue pairs here, hence no data.  Part of libddpsess-ipoib.
 *
 * libibumad is loaded when a port is opened, so nothing that is linked depends on it.
 *
 * A port is used by one thread at a time.  ddps_umad_recv() and ddps_umad_path() block for as long
 * as their arguments say.  They wait in the library, because the descriptor of a simulator cannot
 * be polled.  A signal ends a wait early or, at worst, at its timeout.
 *
 * Experimental: no real adapter has run this yet, only simulators of libibumad.
 * These functions may change, or go, in any release.
 */
#include <ddpsess/ib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A path as the subnet administrator has it (PathRecord, IBA volume 1, 15.2.5.16). */
struct ddps_sa_path {
	/* From this port to the other one.  ack_timeout is that of the packet lifetime, without an
	 * ACK delay. */
	struct ddps_cm_path path;
	uint16_t pkey; /* of the partition; bit 15: a full member */
	uint8_t mtu;   /* code, in octets: 1 = 256 ... 5 = 4096 */
	uint8_t life;  /* packet lifetime, 5-bit time */
};

struct ddps_umad;

/* What is known of a port, as it was when the port was opened. */
struct ddps_umad_info {
	char device[20];	    /* name, such as "mlx5_0" */
	int port;		    /* number at the device, from 1 on */
	uint16_t lid, sm_lid, pkey; /* sm_lid: of the SA; pkey: the first of the port's table */
	uint8_t sm_sl;		    /* service level to the SA, 0..15 */
	uint8_t gid[DDPS_IPOIB_GID_LEN]; /* the first of the port */
	uint64_t ca_guid;		 /* node GUID of the channel adapter, in host order */
};

/**
 * ddps_umad_open - take the CM messages of a port
 * @u:		receives the port; unchanged on failure
 * @device:	name of the device; NULL: the first one that there is
 * @port:	number of the port, from 1 on; 0: the first one that there is
 * @why:	receives one sentence on failure
 * @why_len:	octets of room at @why
 *
 * The program owns the port and closes it with ddps_umad_close().
 *
 * Return: 0, or
 * - DDPS_E_UNSUPPORTED: libibumad cannot be loaded, the kernel has no ib_umad, or there is no such
 *   device or port
 * - DDPS_E_STATE: the port is not active, or has no LID or no subnet manager
 * - DDPS_E_BUSY: another program, or the kernel's ib_cm, has the CM messages of the port
 * - DDPS_E_SYSTEM: the port cannot be opened, or refuses queries to the SA
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_umad_open(struct ddps_umad **u, const char *device, int port, char *why,
			    size_t why_len);

/**
 * ddps_umad_close - give the port back
 * @u:	port; NULL is allowed
 */
DDPS_API void ddps_umad_close(struct ddps_umad *u);

/** ddps_umad_info - Return: what is known of the port, valid until it is closed. */
DDPS_API const struct ddps_umad_info *ddps_umad_info(const struct ddps_umad *u);

/** ddps_umad_addr - Return: the address of the far end of a path, for ddps_umad_send(). */
DDPS_API ddps_cm_addr ddps_umad_addr(const struct ddps_sa_path *p);

/** ddps_umad_lid - Return: the LID in an address of ddps_umad_addr() or ddps_umad_recv(). */
DDPS_API uint16_t ddps_umad_lid(ddps_cm_addr addr);

/**
 * ddps_umad_send - send one CM message, best effort
 * @u:		port
 * @to:		address from ddps_umad_addr() or ddps_umad_recv()
 * @mad:	the message; copied
 *
 * Return: 0, or DDPS_E_SYSTEM: libibumad does not take the message.
 */
DDPS_API int ddps_umad_send(struct ddps_umad *u, ddps_cm_addr to,
			    const uint8_t mad[DDPS_CM_MAD_LEN]);

/**
 * ddps_umad_recv - wait at most @timeout_ms for a CM message
 * @u:			port
 * @timeout_ms:		milliseconds
 * @mad:		receives the message, which is not checked yet
 * @from:		receives the address of its sender
 *
 * Messages that came while ddps_umad_path() waited are given first.
 *
 * Return: 1, or
 * - 0: no message; this can be earlier than @timeout_ms
 * - DDPS_E_SYSTEM: libibumad cannot receive
 */
DDPS_API int ddps_umad_recv(struct ddps_umad *u, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN],
			    ddps_cm_addr *from);

/**
 * ddps_umad_path - ask the subnet administrator for the path to a GID
 * @u:			port
 * @dgid:		GID of the other end
 * @tries:		how often to ask
 * @timeout_ms:		how long to wait each time, in milliseconds, 1 or more
 * @p:			receives the path on success
 *
 * Blocks for up to @tries times @timeout_ms.  CM messages that arrive meanwhile are kept for
 * ddps_umad_recv(), up to 64.
 *
 * Return: 0, or
 * - DDPS_E_TIMEDOUT: no answer came
 * - DDPS_E_ADDRESS: the SA knows no such path
 * - DDPS_E_PROTOCOL: an answer with another status, or a record that cannot be: a LID of 0, or an
 *   MTU or lifetime out of range
 * - DDPS_E_SYSTEM: libibumad cannot send or receive
 */
DDPS_API int ddps_umad_path(struct ddps_umad *u, const uint8_t dgid[DDPS_IPOIB_GID_LEN],
			    unsigned tries, int timeout_ms, struct ddps_sa_path *p);

#ifdef __cplusplus
}
#endif
#endif
