/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_IB_MAD_H
#define DDPS_CONFORM_IB_MAD_H
/* Where the fields of management datagrams are, from the first octet (IBA volume 1, 12.6, 15.2). */
#include "conform/peer/peer.h"

#define CI_MAD 256u

enum { M_BASE = 0, M_CLASS, M_VERSION, M_METHOD, M_STATUS, M_TID = 8, M_ATTR = 16, M_MOD = 20 };

/* Communication management. */
enum {
	CI_REQ = 0x10,
	CI_MRA,
	CI_REJ,
	CI_REP,
	CI_RTU,
	CI_DREQ,
	CI_DREP,
	CI_LAP = 0x19,
	CI_LAST_KIND
};
enum {
	CM_LOCAL = 24,
	CM_REMOTE = 28,

	REQ_SID = 32,
	REQ_GUID = 40,
	REQ_QPN = 56, /* 24 bits, then responder resources */
	REQ_DEPTH = 63,
	REQ_TYPE = 67, /* remote response time 7:3, transport 2:1, flow control */
	REQ_PSN = 68,
	REQ_LOCAL_TIME = 71, /* local response time 7:3, retry count */
	REQ_PKEY = 72,
	REQ_MTU = 74,	  /* path MTU 7:4, RDC, RNR retry count */
	REQ_RETRIES = 75, /* of CM 7:4, SRQ, extended type */
	REQ_LLID = 76,
	REQ_RLID = 78,
	REQ_LGID = 80,
	REQ_RGID = 96,
	REQ_RATE = 115,
	REQ_HOP = 117,
	REQ_SL = 118, /* SL 7:4, subnet local 3 */
	REQ_ACK_TIME = 119,
	REQ_ALT = 120, /* to 163 */
	REQ_PRIV = 164,

	REP_QPN = 36,
	REP_PSN = 44,
	REP_DELAY = 50,
	REP_RNR = 51,
	REP_GUID = 52,
	REP_PRIV = 60,

	RTU_PRIV = 32, /* and of DREP */
	DREQ_QPN = 32,
	DREQ_PRIV = 36,
	REJ_MSG = 32,
	REJ_LEN = 33,
	REJ_REASON = 34,
	REJ_ARI = 36,
	REJ_PRIV = 108,
	MRA_MSG = 32,
	MRA_TIME = 33,
	MRA_PRIV = 34,
};
/* Reasons of a REJ. */
enum {
	CI_REJ_NO_QP = 1,
	CI_REJ_NO_RESOURCES = 3,
	CI_REJ_TIMEOUT = 4,
	CI_REJ_SERVICE_ID = 8,
	CI_REJ_TRANSPORT = 9,
	CI_REJ_STALE = 10,
	CI_REJ_GID = 12,
	CI_REJ_CONSUMER = 28
};

/* Subnet administration. */
enum { SA_MASK = 48, SA_RECORD = 56 };
enum { SA_GET = 1, SA_SET, SA_REPORT = 6, SA_DELETE = 0x15, SA_GET_RESP = 0x81 };
enum { SA_PORT_INFO = 0x01, SA_INFORM = 0x03, SA_PATH = 0x35, SA_MCMEMBER = 0x38 };
enum {
	MC_MGID = SA_RECORD,
	MC_PORT = SA_RECORD + 16,
	MC_QKEY = SA_RECORD + 32,
	MC_MLID = SA_RECORD + 36,
	MC_MTU = SA_RECORD + 38,
	MC_TCLASS = SA_RECORD + 39,
	MC_PKEY = SA_RECORD + 40,
	MC_RATE = SA_RECORD + 42,
	MC_LIFE = SA_RECORD + 43,
	MC_SL = SA_RECORD + 44, /* SL 31:28, flow label 27:8, hop limit */
	MC_SCOPE = SA_RECORD + 48,

	PR_DGID = SA_RECORD + 8,
	PR_SGID = SA_RECORD + 24,
	PR_DLID = SA_RECORD + 40,
	PR_SLID = SA_RECORD + 42,
	PR_HOP = SA_RECORD + 47,
	PR_NUM = SA_RECORD + 49,
	PR_PKEY = SA_RECORD + 50,
	PR_MTU = SA_RECORD + 54,
	PR_RATE = SA_RECORD + 55,
	PR_LIFE = SA_RECORD + 56,

	II_TRAP = SA_RECORD + 26,
	II_SUBSCRIBE = SA_RECORD + 23
};

static inline uint32_t ci_get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | cf_get16(p + 1);
}

static inline void ci_put24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	cf_put16(p + 1, (uint16_t)v);
}

static inline unsigned ci_attr(const uint8_t *m)
{
	return cf_get16(m + M_ATTR);
}

/* A 5-bit time in nanoseconds: 4.096 us * 2^t. */
static inline uint64_t ci_time(unsigned t)
{
	return 4096ull << (t & 31);
}

/* An empty one.  @cls: 7, or 3 */
void ci_mad(uint8_t m[CI_MAD], uint8_t cls, uint8_t method, uint16_t attr, uint64_t tid);
/* "REQ", "REP", ... */
const char *ci_mad_name(const uint8_t *m);
/* Where private data begins in a CM message; 0: no message that has any. */
size_t ci_priv_at(const uint8_t *m);
/* Return: NULL, or which octet of the header or of a reserved field is not 0. */
const char *ci_mad_reserved(const uint8_t *m);

#endif
