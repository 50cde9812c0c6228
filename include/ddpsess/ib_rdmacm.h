/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_RDMACM_H
#define DDPSESS_IB_RDMACM_H
/*
 * Active connects through librdmacm (AF_IB), next to the kernel's ib_cm, on a channel adapter.  The
 * kernel writes and repeats the CM messages, so only what rdma_connect() takes of a REQ can be
 * chosen.  No queue pair is made, hence there is no data.  Part of libddpsess-ipoib.  What needs an
 * adapter, ddps_rdmacm_connect() and _disconnect(), has not run against one yet.
 *
 * librdmacm is loaded when a port is opened.  A port is used by one thread at a time; calls block
 * for as long as their arguments say.
 */
#include <ddpsess/ipoib_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_rdmacm;

/* Called for each event of librdmacm, such as "RDMA_CM_EVENT_ESTABLISHED". */
typedef void (*ddps_rdmacm_tell)(void *user, const char *event, int status);

/**
 * ddps_rdmacm_open - load librdmacm and make an event channel
 * @r:			set on success; the program frees it with ddps_rdmacm_close().  Unchanged on failure
 * @tell, @user:	called for each event, from inside the calls below
 * @why, @why_len:	receives one sentence on failure
 *
 * Return: 0, DDPS_E_UNSUPPORTED (no library, no device) or DDPS_E_NOMEM.
 */
DDPS_API int ddps_rdmacm_open(struct ddps_rdmacm **r, ddps_rdmacm_tell tell, void *user, char *why,
			      size_t why_len);

/** ddps_rdmacm_close - end what is left of a connection; NULL is allowed */
DDPS_API void ddps_rdmacm_close(struct ddps_rdmacm *r);

/** ddps_rdmacm_takes - Return: whether @name is a field of a REQ that rdma_connect() takes. */
DDPS_API bool ddps_rdmacm_takes(const char *name);

struct ddps_rdmacm_result {
	uint32_t qpn;	 /* of the REP */
	uint16_t reason; /* of a REJ */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN];
	uint64_t reserved[4];
};

/**
 * ddps_rdmacm_connect - resolve, send the REQ, answer a REP
 * @r:			from ddps_rdmacm_open()
 * @req:		primary.remote_gid, pkey and service_id say where to
 * @timeout_ms:		how long each step may take
 * @res:		receives the peer's answer
 * @why, @why_len:	receives one sentence on failure
 *
 * Return: 0; DDPS_E_REJECTED with @res->reason; DDPS_E_TIMEDOUT; DDPS_E_SYSTEM; in the latter two
 * one sentence in @why.
 */
DDPS_API int ddps_rdmacm_connect(struct ddps_rdmacm *r, const struct ddps_cm_req *req,
				 int timeout_ms, struct ddps_rdmacm_result *res, char *why,
				 size_t why_len);

/** ddps_rdmacm_disconnect - send a DREQ and wait for its answer.
 * Return: 0, DDPS_E_TIMEDOUT or DDPS_E_SYSTEM. */
DDPS_API int ddps_rdmacm_disconnect(struct ddps_rdmacm *r, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
