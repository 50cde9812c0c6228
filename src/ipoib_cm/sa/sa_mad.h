/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_SA_MAD_H
#define DDPS_IB_SA_MAD_H
/* MADs of subnet administration and their records as octets (IBA volume 1, 15.2). */
#include <ddpsess/ib_cm_mad.h>
#include <ddpsess/ipoib_cm.h>
#include <stdbool.h>
#include <stdint.h>

#define DDPS_SA_CLASS	   0x03
#define DDPS_SA_VERSION	   2
#define DDPS_SA_RECORD_LEN 200
#define DDPS_MLID_FIRST	   0xc000
#define DDPS_MLID_LAST	   0xfffe

enum {
	DDPS_SA_GET = 0x01,
	DDPS_SA_SET = 0x02,
	DDPS_SA_REPORT = 0x06,
	DDPS_SA_GET_TABLE = 0x12,
	DDPS_SA_DELETE = 0x15,
	DDPS_SA_RESPONSE = 0x80, /* or'ed to those but Get and Set, which have GetResp */
	DDPS_SA_GET_RESP = 0x81,
};

enum {
	DDPS_SA_CLASS_PORT_INFO = 0x0001,
	DDPS_SA_NOTICE = 0x0002,
	DDPS_SA_INFORM_INFO = 0x0003,
	DDPS_SA_NODE_RECORD = 0x0011,
	DDPS_SA_PORT_INFO_RECORD = 0x0012,
	DDPS_SA_SM_INFO_RECORD = 0x0018,
	DDPS_SA_PATH_RECORD = 0x0035,
	DDPS_SA_MCMEMBER_RECORD = 0x0038,
};

enum {
	DDPS_SA_OK = 0x0000,
	DDPS_SA_UNSUPPORTED = 0x000c,
	DDPS_SA_NO_RESOURCES = 0x0100,
	DDPS_SA_REQ_INVALID = 0x0200,
	DDPS_SA_NO_RECORDS = 0x0300,
	DDPS_SA_TOO_MANY = 0x0400, /* records */
	DDPS_SA_INVALID_GID = 0x0500,
	DDPS_SA_TOO_FEW = 0x0600, /* components */
	DDPS_SA_DENIED = 0x0700,
};

/* Bits of the component mask. */
enum {
	DDPS_PR_DGID = 1 << 2,
	DDPS_PR_SGID = 1 << 3,
	DDPS_PR_DLID = 1 << 4,
	DDPS_PR_SLID = 1 << 5,
	DDPS_PR_REVERSIBLE = 1 << 11,
	DDPS_PR_NUMB_PATH = 1 << 12,
	DDPS_PR_PKEY = 1 << 13,
	DDPS_PR_SL = 1 << 15,
	DDPS_PR_MTU_SEL = 1 << 16,
	DDPS_PR_MTU = 1 << 17,

	DDPS_MC_MGID = 1 << 0,
	DDPS_MC_PORT_GID = 1 << 1,
	DDPS_MC_QKEY = 1 << 2,
	DDPS_MC_MTU_SEL = 1 << 4,
	DDPS_MC_MTU = 1 << 5,
	DDPS_MC_TCLASS = 1 << 6,
	DDPS_MC_PKEY = 1 << 7,
	DDPS_MC_RATE_SEL = 1 << 8,
	DDPS_MC_RATE = 1 << 9,
	DDPS_MC_LIFE_SEL = 1 << 10,
	DDPS_MC_LIFE = 1 << 11,
	DDPS_MC_SL = 1 << 12,
	DDPS_MC_FLOW = 1 << 13,
	DDPS_MC_HOP = 1 << 14,
	DDPS_MC_SCOPE = 1 << 15,
	DDPS_MC_JOIN = 1 << 16,
	/* what a group that is not there yet needs */
	DDPS_MC_CREATE = DDPS_MC_MGID | DDPS_MC_PORT_GID | DDPS_MC_QKEY | DDPS_MC_TCLASS |
			 DDPS_MC_PKEY | DDPS_MC_SL | DDPS_MC_FLOW | DDPS_MC_JOIN,
	DDPS_MC_ALL = DDPS_MC_CREATE | DDPS_MC_MTU_SEL | DDPS_MC_MTU | DDPS_MC_RATE_SEL |
		      DDPS_MC_RATE | DDPS_MC_HOP,
};

/* Of a join state. */
enum {
	DDPS_MC_FULL = 1,
	DDPS_MC_NON = 2,
	DDPS_MC_SEND_NON = 4,  /* sends only and does not count */
	DDPS_MC_SEND_FULL = 8, /* sends only and counts */
};

/* RMPP (13.6): a table goes in segments of 200 octets, each behind 20 octets of SA's own header. */
enum { DDPS_RMPP_DATA = 1, DDPS_RMPP_ACK, DDPS_RMPP_STOP, DDPS_RMPP_ABORT };
enum { DDPS_RMPP_ACTIVE = 1, DDPS_RMPP_FIRST = 2, DDPS_RMPP_LAST = 4 };
#define DDPS_RMPP_VERSION 1
#define DDPS_RMPP_EXTRA	  20

struct ddps_rmpp {
	uint8_t type, flags;
	uint32_t segment; /* of an ACK: the last that arrived */
	uint32_t length;  /* of an ACK: the last that may be sent */
};

enum { DDPS_SEL_GREATER, DDPS_SEL_LESS, DDPS_SEL_EXACTLY, DDPS_SEL_BEST };

struct ddps_sa_head {
	uint8_t method;
	uint16_t status, attr;
	uint64_t tid, mask;
};

/* MTU, rate and life: the selector in the upper two of eight bits. */
struct ddps_sa_mcm {
	uint8_t mgid[DDPS_IPOIB_GID_LEN], port_gid[DDPS_IPOIB_GID_LEN];
	uint32_t qkey, flow;
	uint16_t mlid, pkey;
	uint8_t mtu, tclass, rate, life, sl, hop, scope, join;
};

struct ddps_sa_pr {
	uint8_t dgid[DDPS_IPOIB_GID_LEN], sgid[DDPS_IPOIB_GID_LEN];
	uint16_t dlid, slid, pkey;
	uint32_t flow;
	uint8_t hop, tclass, sl, mtu, rate, life;
};

struct ddps_sa_inform {
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint16_t lid_first, type, trap;
	bool generic, subscribe, wrong; /* wrong: neither to subscribe nor to end that */
};

/* A trap on a group or a port: number and GID. */
struct ddps_sa_notice {
	uint16_t trap, issuer_lid;
	uint8_t gid[DDPS_IPOIB_GID_LEN], issuer_gid[DDPS_IPOIB_GID_LEN];
};

/* An empty MAD with this header. */
void ddps_sa_mad_begin(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_head *h);
/* Return: 0 or DDPS_E_PROTOCOL: not of this class and version. */
int ddps_sa_mad_head(struct ddps_sa_head *h, const uint8_t mad[DDPS_CM_MAD_LEN]);

void ddps_sa_mcm_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_mcm *r);
void ddps_sa_mcm_get(struct ddps_sa_mcm *r, const uint8_t mad[DDPS_CM_MAD_LEN]);
void ddps_sa_pr_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_pr *r);
void ddps_sa_pr_get(struct ddps_sa_pr *r, const uint8_t mad[DDPS_CM_MAD_LEN]);
void ddps_sa_inform_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_inform *r);
void ddps_sa_inform_get(struct ddps_sa_inform *r, const uint8_t mad[DDPS_CM_MAD_LEN]);
void ddps_sa_notice_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_sa_notice *n);
/* Return: 0 or DDPS_E_UNSUPPORTED: not a generic one that has a GID. */
int ddps_sa_notice_get(struct ddps_sa_notice *n, const uint8_t mad[DDPS_CM_MAD_LEN]);
void ddps_sa_rmpp_put(uint8_t mad[DDPS_CM_MAD_LEN], const struct ddps_rmpp *r);
/* Return: whether the MAD is a part of a transfer. */
bool ddps_sa_rmpp_get(struct ddps_rmpp *r, const uint8_t mad[DDPS_CM_MAD_LEN]);
/* @size: of the record, in octets. */
void ddps_sa_record_size(uint8_t mad[DDPS_CM_MAD_LEN], size_t size);

/* The 200 octets of the record. */
static inline uint8_t *ddps_sa_record(uint8_t mad[DDPS_CM_MAD_LEN])
{
	return mad + 56;
}

/* Of the latest transactions, counted up to @latest: one that was asked again may be answered twice. */
static inline bool ddps_sa_late(uint64_t latest, uint64_t tid)
{
	return latest - tid < 1024;
}

/*
 * What a port says of itself: the attributes of subnet management (IBA volume 1, 14.2.5), as they stand
 * in SMPs and in the records of the subnet administration.
 */

#define DDPS_SMP_NODE_INFO_LEN 40
#define DDPS_SMP_NODE_DESC_LEN 64
#define DDPS_SMP_PORT_INFO_LEN 64
#define DDPS_SMP_SM_INFO_LEN   24

/* A channel adapter with one port, which is what a node of the subnet in UDP is. */
struct ddps_ib_self {
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint16_t lid, sm_lid, pkey;
	uint8_t mtu, life; /* codes */
};

void ddps_smp_node_info(uint8_t out[DDPS_SMP_NODE_INFO_LEN], const struct ddps_ib_self *s);
/* The same text from the node itself and from the administration, which knows no more of it. */
void ddps_smp_node_desc(uint8_t out[DDPS_SMP_NODE_DESC_LEN], const struct ddps_ib_self *s);
void ddps_smp_port_info(uint8_t out[DDPS_SMP_PORT_INFO_LEN], const struct ddps_ib_self *s);
void ddps_smp_sm_info(uint8_t out[DDPS_SMP_SM_INFO_LEN], const struct ddps_ib_self *s);

#endif
