/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FABRIC_FAKE_H
#define FABRIC_FAKE_H
/*
 * libibverbs and libibumad of a fabric in memory: adapters with LIDs of their own, and the subnet
 * administration at LID 1.  What an adapter does is in its members, to be looked at and changed.
 * One that is stuck completes nothing of its own: then all completions come by hand.
 *
 * What no adapter would take ends the process with a line on stderr: an object that there is not, a
 * buffer that is posted twice, more work requests than a queue holds, an address handle that ends
 * while it is in use.
 */
#include <ddpsess/ib_verbs.h>
#include "ipoib_cm/sa/sa.h"
#include "ipoib_cm/verbs/vport_in.h"

#define FAKES	    3
#define FAKE_SA_LID 1
#define FAKE_QPS    64
#define FAKE_SRQ    600
#define FAKE_WQES   1200 /* posted, of all queues */
#define FAKE_WCS    1200
#define FAKE_MADS   256
#define FAKE_EVENTS 32
#define FAKE_PKEYS  4

/* Agents of MADs. */
enum { FAKE_CM, FAKE_SA, FAKE_REPORTS };

enum fake_kind { FAKE_UD_IN, FAKE_UD_OUT, FAKE_MSG_IN, FAKE_MSG_OUT };

struct fake_wqe {
	uint64_t wr_id;
	uint8_t *at;
	uint32_t len;
	enum fake_kind kind;
	struct fake_qp *q; /* NULL: of the shared receive queue */
	struct ibv_ah *ah; /* of a datagram to be sent */
};

struct fake_qp {
	struct ibv_qp qp;
	bool used;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr; /* as set, in all */
	enum ibv_qp_state state;
	unsigned n_in, n_out; /* posted */
};

struct fake {
	struct ibv_context ctx;
	struct ibv_device dev;
	char name[16];
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint16_t pkey[FAKE_PKEYS];
	int max_srq_wr;
	unsigned max_qp;
	uint8_t ports;	   /* all alike */
	bool same_numbers; /* queue pairs have 0x100 and the place, again and again */

	struct fake_qp qp[FAKE_QPS];
	unsigned n_posted, n_srq, srq_max;
	uint64_t ghost;		/* a work request that was posted once */
	unsigned n_wc[2], n_cq; /* of the first completion queue made, and the other */
	struct ibv_cq cq[2];
	unsigned n_event, n_mad, n_group;
	unsigned n_notice, n_acked,
		n_asked;		  /* of the completion channel: to come, taken, asked for */
	uint8_t query[DDPS_CM_MAD_LEN];	  /* the last one to the administration */
	ib_mad_addr_t last_to;		  /* of the last MAD sent */
	unsigned n_qp, n_ah, n_mr, n_obj; /* that live */
	unsigned n_made;		  /* queue pairs, ever */

	const char *fail; /* the function of that name ... */
	int fail_errno;
	unsigned fail_after; /* ... after so many good calls */
	unsigned fail_in;    /* the n-th call from here fails, of whatever can; 0: none */
	unsigned arm_fires;  /* so often, asking for a notice gives one immediately */
	bool privileged;     /* may set a Q_Key with bit 31 */
	bool stuck;	     /* nothing is sent or completes */
	bool no_last_wqe;
	bool no_uc; /* a queue pair of UC has no shared receive queue */
	enum ibv_wc_status ud_status, rc_status; /* of what is sent next; 0: as it comes out */
	bool no_reports;			 /* somebody else has that agent */

	/* From here on fake_init() leaves what the numbers above say that there is not. */
	struct fake_wqe posted[FAKE_WQES]; /* oldest first */
	struct ibv_wc wc[2][FAKE_WCS];
	struct ibv_async_event event[FAKE_EVENTS];
	struct {
		int agent, len;
		uint32_t status;
		ib_mad_addr_t addr;
		uint8_t mad[DDPS_CM_MAD_LEN];
	} mad[FAKE_MADS];
	struct {
		uint8_t mgid[16];
		uint16_t mlid;
	} group[DDPS_SAC_GROUPS];
};

extern struct fake fake[FAKES];
extern const struct ddps_verbs_lib fake_lib;
extern unsigned fake_devices;	/* that there are */
extern struct ddps_sa *fake_sa; /* NULL: nobody answers */
extern uint8_t fake_hop;	/* Hop Limit of path records */
extern uint8_t fake_mlid;	/* bits of the upper octet of MLIDs that are given another way */
extern uint64_t fake_now;
extern bool fake_roce;	   /* ways are by GIDs, nobody has a LID */
extern int fake_in_groups; /* groups that network devices are in */

/* All adapters as they come, and no administration. */
void fake_init(void);
/* Nothing is left of what was made. */
void fake_fini(void);
/* The administration, with this Q_Key for the link. */
void fake_sa_start(uint32_t qkey);
void fake_sa_stop(void);
/* Also stops the administration. */
void fake_make_roce(void);
void fake_event(unsigned i, enum ibv_event_type type, struct ibv_qp *qp);
struct fake_qp *fake_qp_of(unsigned i, uint32_t qpn);
/* A completion of what was posted, or of nothing: @wc says whose. */
void fake_wc(unsigned i, unsigned cq, const struct ibv_wc *wc);
/* Number @at of what is posted is not any more. */
struct fake_wqe fake_take(unsigned i, unsigned at);

#endif
