/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_UMAD_H
#define DDPSESS_IB_UMAD_H
/*
 * CM messages over libibumad, on a channel adapter or on a simulator that stands in for one, and
 * path records from the subnet administrator.  There are no queue pairs here, hence no data.  Part
 * of libddpsess-ipoib.
 *
 * libibumad is loaded when a port is opened, so nothing that is linked depends on it.  A port is
 * used by one thread at a time.  The descriptor of a simulator cannot be polled, so receiving waits
 * in the library; a signal ends a wait early or, at worst, at its timeout.
 */
#include <ddpsess/ib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A path as the subnet administrator has it (IBA volume 1, 15.2.5.16). */
struct ddps_sa_path {
	struct ddps_cm_path path; /* ack_timeout: that of the packet lifetime, no ACK delay */
	uint16_t pkey;
	uint8_t mtu;  /* 1 = 256 ... 5 = 4096 */
	uint8_t life; /* 5-bit packet lifetime */
};

struct ddps_umad;

struct ddps_umad_info {
	char device[20];
	int port;
	uint16_t lid, sm_lid, pkey; /* pkey: the first of the port's table */
	uint8_t sm_sl;
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint64_t ca_guid;
};

/* Counters; a later release may add some at the end. */
struct ddps_umad_stats {
	uint64_t undelivered; /* sends that came back */
	uint64_t overrun;     /* received while a path was asked for, and too many to keep */
};

/**
 * ddps_umad_open - take the CM class of a port
 * @u:			set on success; the program frees it with ddps_umad_close().  Unchanged on failure
 * @device, @port:	NULL and 0 for the first one that there is
 * @why, @why_len:	receives one sentence on failure
 *
 * Return: 0, DDPS_E_UNSUPPORTED (no library, no device), DDPS_E_STATE (port not active),
 * DDPS_E_BUSY (somebody else has the CM class of the port), DDPS_E_SYSTEM, DDPS_E_NOMEM.
 */
DDPS_API int ddps_umad_open(struct ddps_umad **u, const char *device, int port, char *why,
			    size_t why_len);

/** ddps_umad_close - give the port back; NULL is allowed */
DDPS_API void ddps_umad_close(struct ddps_umad *u);

/** ddps_umad_info - Return: what is known of the port, valid until it is closed. */
DDPS_API const struct ddps_umad_info *ddps_umad_info(const struct ddps_umad *u);

/** ddps_umad_stats - Return: its counters, likewise. */
DDPS_API const struct ddps_umad_stats *ddps_umad_stats(const struct ddps_umad *u);

/** ddps_umad_addr - Return: the address of the far end of a path, for ddps_umad_send(). */
DDPS_API ddps_cm_addr ddps_umad_addr(const struct ddps_sa_path *p);

/** ddps_umad_lid - Return: the LID in such an address. */
DDPS_API uint16_t ddps_umad_lid(ddps_cm_addr addr);

/** ddps_umad_send - send one message, best effort.  Return: 0 or DDPS_E_SYSTEM. */
DDPS_API int ddps_umad_send(struct ddps_umad *u, ddps_cm_addr to,
			    const uint8_t mad[DDPS_CM_MAD_LEN]);

/** ddps_umad_recv - wait at most @timeout_ms for a message.
 * Return: 1, 0: nothing came, or DDPS_E_SYSTEM. */
DDPS_API int ddps_umad_recv(struct ddps_umad *u, int timeout_ms, uint8_t mad[DDPS_CM_MAD_LEN],
			    ddps_cm_addr *from);

/**
 * ddps_umad_path - ask for the path to a GID
 * @u:			from ddps_umad_open()
 * @dgid:		the other end
 * @tries, @timeout_ms:	how often, and how long to wait each time (above 0)
 * @p:			filled on success
 *
 * Blocks for as long as that.
 *
 * Return: 0; DDPS_E_TIMEDOUT; DDPS_E_SYSTEM; DDPS_E_ADDRESS: there is no such path;
 * DDPS_E_PROTOCOL: an answer with another status, or a record that cannot be.
 */
DDPS_API int ddps_umad_path(struct ddps_umad *u, const uint8_t dgid[DDPS_IPOIB_GID_LEN],
			    unsigned tries, int timeout_ms, struct ddps_sa_path *p);

#ifdef __cplusplus
}
#endif
#endif
