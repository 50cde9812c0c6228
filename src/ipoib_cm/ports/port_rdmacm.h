/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_RDMACM_H
#define DDPS_PORT_RDMACM_H
/*
 * Active connects through librdmacm (AF_IB), beside the kernel's ib_cm, on a channel adapter.
 * The kernel writes and repeats the CM messages, so only what rdma_connect() takes of a REQ can
 * be chosen.  No queue pair is made, hence there is no data.
 *
 * librdmacm is loaded when a port is opened.  Calls wait as long as they are told.
 */
#include <ddpsess/ipoib_cm.h>
#include <infiniband/ib.h>

struct ddps_rdmacm;

/* Called for each event of librdmacm, such as "RDMA_CM_EVENT_ESTABLISHED". */
typedef void (*ddps_rdmacm_tell)(void *user, const char *event, int status);

/* Return: 0, or with one sentence in @why DDPS_E_UNSUPPORTED (no library, no device) or NOMEM. */
int ddps_rdmacm_open(struct ddps_rdmacm **r, ddps_rdmacm_tell tell, void *user, char *why,
		     size_t why_len);
void ddps_rdmacm_close(struct ddps_rdmacm *r);

/* The address to connect to: GID, P_Key and service ID of a REQ. */
void ddps_rdmacm_address(struct sockaddr_ib *a, const struct ddps_cm_req *req);

/* The fields of a REQ that rdma_connect() takes.  Return: whether @name is one. */
bool ddps_rdmacm_takes(const char *name);

struct ddps_rdmacm_result {
	uint32_t qpn;	 /* of the REP */
	uint16_t reason; /* of a REJ */
	uint8_t priv[DDPS_IPOIB_PRIV_LEN];
};

/*
 * Resolves, sends the REQ, answers a REP.  primary.remote_gid, pkey and service_id say where to.
 * Return: 0; DDPS_E_REJECTED with @res->reason; DDPS_E_TIMEDOUT; DDPS_E_SYSTEM; in the latter
 * two one sentence in @why.
 */
int ddps_rdmacm_connect(struct ddps_rdmacm *r, const struct ddps_cm_req *req, int timeout_ms,
			struct ddps_rdmacm_result *res, char *why, size_t why_len);

/* DREQ, and its answer.  Return: 0, DDPS_E_TIMEDOUT or DDPS_E_SYSTEM. */
int ddps_rdmacm_disconnect(struct ddps_rdmacm *r, int timeout_ms);

#endif
