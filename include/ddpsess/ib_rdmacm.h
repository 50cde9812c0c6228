/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_RDMACM_H
#define DDPSESS_IB_RDMACM_H
/*
 * Connections through librdmacm (AF_IB addresses) on a channel adapter, at the active side.  This
 * works next to the kernel's ib_cm.  The kernel writes and repeats the CM messages.  So a program
 * can choose only those fields of a REQ that rdma_connect() takes; see ddps_rdmacm_takes().  No
 * queue pair is made, hence there is no data.  Part of libddpsess-ipoib.
 *
 * librdmacm is loaded when a port is opened, so nothing that is linked depends on it.  A port is
 * used by one thread at a time.  Calls block for as long as their arguments say.
 *
 * Experimental: no real adapter has run this yet.
 * These functions may change, or go, in any release.
 */
#include <ddpsess/ipoib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_rdmacm;

/*
 * A function of the program, called for each event of librdmacm.
 * event: its name, such as "RDMA_CM_EVENT_ESTABLISHED".
 * status: as librdmacm gives it: 0, below 0 an errno, or the reason of a REJ.
 */
typedef void (*ddps_rdmacm_tell)(void *user, const char *event, int status);

/**
 * ddps_rdmacm_open - load librdmacm and make an event channel
 * @r:		receives the port; unchanged on failure
 * @tell:	called for each event, from inside ddps_rdmacm_connect() and _disconnect()
 * @user:	first argument of @tell
 * @why:	receives one sentence on failure
 * @why_len:	octets of room at @why
 *
 * The program owns the port and closes it with ddps_rdmacm_close().
 *
 * Return: 0, or
 * - DDPS_E_UNSUPPORTED: librdmacm cannot be loaded, the kernel has no RDMA connection manager, or
 *   there is no device
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_rdmacm_open(struct ddps_rdmacm **r, ddps_rdmacm_tell tell, void *user, char *why,
			      size_t why_len);

/**
 * ddps_rdmacm_close - end what is left of a connection, and close the port
 * @r:	port; NULL is allowed
 */
DDPS_API void ddps_rdmacm_close(struct ddps_rdmacm *r);

/**
 * ddps_rdmacm_takes - whether a field of a REQ can be chosen
 * @name:	of a field, as in the table of ddps_cm_fields()
 *
 * Return: whether @name is a field of a REQ that rdma_connect() takes.
 */
DDPS_API bool ddps_rdmacm_takes(const char *name);

/* What a peer has answered; members without a value are 0. */
struct ddps_rdmacm_result {
	uint32_t qpn;			   /* of the REP, 24 bits */
	uint16_t reason;		   /* of a REJ: enum ddps_cm_reason, or any other value */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN]; /* first octets of private data of the REP or REJ */
	uint64_t reserved[4];
};

/**
 * ddps_rdmacm_connect - resolve the address, send the REQ, answer a REP
 * @r:			port
 * @req:		primary.remote_gid, pkey and service_id say where to
 * @timeout_ms:		how long each step may take, in milliseconds
 * @res:		receives the peer's answer
 * @why:		receives one sentence on failure
 * @why_len:		octets of room at @why
 *
 * There are three steps: address, route and connection.  A REP is answered with an RTU.
 *
 * Return: 0, or
 * - DDPS_E_REJECTED: the peer sent a REJ; its reason is in @res
 * - DDPS_E_TIMEDOUT: a step took too long, or the peer did not answer
 * - DDPS_E_SYSTEM: librdmacm refused a step or reported its failure, or a signal ended the wait
 */
DDPS_API int ddps_rdmacm_connect(struct ddps_rdmacm *r, const struct ddps_cm_req *req,
				 int timeout_ms, struct ddps_rdmacm_result *res, char *why,
				 size_t why_len);

/**
 * ddps_rdmacm_disconnect - send a DREQ and wait for its answer
 * @r:			port
 * @timeout_ms:		the most time to wait, in milliseconds
 *
 * Return: 0, or
 * - DDPS_E_TIMEDOUT: no answer came in time
 * - DDPS_E_REJECTED: the peer sent a REJ instead
 * - DDPS_E_SYSTEM: librdmacm refused, something else happened, or a signal ended the wait
 */
DDPS_API int ddps_rdmacm_disconnect(struct ddps_rdmacm *r, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
