/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef IB_VERBS_FAKE_H
#define IB_VERBS_FAKE_H
/*
 * libibverbs and libibumad of a fabric in memory: adapters with LIDs from 2, and the subnet
 * administration at LID 1.  What an adapter does is in its members, to be looked at and changed.
 */
#include <ddpsess/ib_verbs.h>
#include "ipoib_cm/ib/sa.h"
#include "ipoib_cm/verbs/vport_in.h"

#define FAKES	    3
#define FAKE_SA_LID 1
#define FAKE_QPS    64
#define FAKE_WQES   600
#define FAKE_MADS   256
#define FAKE_EVENTS 32
#define FAKE_GROUPS 64

struct fake_wqe {
	uint64_t wr_id;
	uint8_t *at;
	uint32_t len;
};

struct fake_qp {
	struct ibv_qp qp;
	bool used;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr; /* as set, in all */
	enum ibv_qp_state state;
	struct fake_wqe rx[FAKE_WQES];
	unsigned n_rx;
};

struct fake {
	struct ibv_context ctx;
	struct ibv_device dev;
	char name[16];
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint16_t pkey[4];
	int max_srq_wr;

	struct fake_qp qp[FAKE_QPS];
	struct fake_wqe srq[FAKE_WQES];
	unsigned n_srq;
	struct ibv_wc wc[2][2 * FAKE_WQES]; /* of the first completion queue made, and the other */
	unsigned n_wc[2], n_cq;
	struct ibv_cq cq[2];
	struct ibv_async_event event[FAKE_EVENTS];
	unsigned n_event;
	struct {
		int agent;
		uint32_t status;
		ib_mad_addr_t addr;
		uint8_t mad[DDPS_CM_MAD_LEN];
	} mad[FAKE_MADS];
	unsigned n_mad, n_agent;
	struct {
		uint8_t mgid[16];
		uint16_t mlid;
	} group[FAKE_GROUPS];
	unsigned n_group;
	ib_mad_addr_t last_to;		  /* of the last MAD sent */
	unsigned n_qp, n_ah, n_mr, n_obj; /* that live */
	unsigned n_made;		  /* queue pairs, ever */

	const char *fail; /* the function of that name ... */
	int fail_errno;
	unsigned fail_after; /* ... after so many good calls */
	bool privileged;     /* may set a Q_Key with bit 31 */
	bool stuck;	     /* nothing is sent or completes */
	bool no_last_wqe;
	enum ibv_wc_status ud_status, rc_status; /* of what is sent next; 0: as it comes out */
	bool no_reports;			 /* somebody else has that agent */
};

extern struct fake fake[FAKES];
extern const struct ddps_verbs_lib fake_lib;
extern unsigned fake_devices;	/* that there are */
extern struct ddps_sa *fake_sa; /* NULL: nobody answers */
extern uint8_t fake_hop;	/* Hop Limit of path records */
extern uint64_t fake_now;
extern bool fake_roce;	   /* ways are by GIDs, nobody has a LID */
extern int fake_in_groups; /* groups that network devices are in */

void fake_init(void);
void fake_fini(void);
/* The administration, with this Q_Key for the link. */
void fake_sa_start(uint32_t qkey);
void fake_sa_stop(void);
void fake_make_roce(void);
void fake_event(unsigned i, enum ibv_event_type type, struct ibv_qp *qp);
struct fake_qp *fake_qp_of(unsigned i, uint32_t qpn);
/* A completion of nothing that is sent here: of receive @wr_id. */
void fake_wc(unsigned i, unsigned cq, const struct ibv_wc *wc);

#endif
