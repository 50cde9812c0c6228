/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FAULT_H
#define FAULT_H
/*
 * Both ends of sessions in one context, in a simulated kernel: what they do (scenario.c, more.c), of
 * which steps (steps.c), in which world (world.c); and what fails (fault.c).
 */
#include <ddpsess/ddpsess.h>

#define SILENT 1 /* nobody was informed, or something wrong: no code of the library */

#define FAULT_BIG     300000u
#define FAULT_SMALL   1000u
#define FAULT_EPS     4u
#define FAULT_READS   40u     /* more than an inbound queue holds at first */
#define FAULT_WAIT_MS 2000000 /* of simulated time: longer than every timer of theirs */

/* What a world has. */
#define FAULT_7306    0x1u
#define FAULT_SRQ     0x2u /* the responders have one receive queue */
#define FAULT_STALL   0x4u
#define FAULT_CAPTURE 0x8u
#define FAULT_GATHER  0x10u
#define FAULT_LATE    0x20u /* attr.flush_late */
#define FAULT_NO_CRC  0x40u

struct fault_world;

struct fault_scenario {
	const char *name;
	/* What happens once all is made: 0, an error of the library, or SILENT. */
	int (*play)(struct fault_world *w);
	unsigned neps;	  /* pairs of endpoints; 0: one */
	unsigned how;	  /* FAULT_... */
	const char *also; /* addresses behind the first one, over SCTP; NULL: none */
	/* Initiator @i's parameters; may be NULL. */
	void (*ask)(struct ddps_conn_param *p, unsigned i);
};

struct fault_world {
	const char *wire; /* a URI to listen at */
	bool tcp;	  /* MPA's */
	bool near;	  /* shared memory in place of TCP */
	const struct fault_scenario *s;
	struct ddps_capture *capture;
	struct ddps_ctx *ctx;
	struct ddps_pd *pd;
	struct ddps_cq *cq;
	struct ddps_srq *srq;
	struct ddps_listener *listener;
	struct ddps_ep *a[FAULT_EPS], *b[FAULT_EPS]; /* initiators, responders */
	struct ddps_request *req;
	unsigned neps, accepted; /* accepted: a bit for each of b */
	unsigned up, down;	 /* endpoints established, and at their end */
	unsigned posted;	 /* requests without a completion yet */
	unsigned lows;		 /* DDPS_EV_SRQ_LIMIT */
	unsigned codes;		 /* 1u << code of each Terminate 2/0/code that the peer was sent */
	uint8_t *src, *dst;
	struct ddps_mr *from, *to; /* fault_begin: the regions of these */
	char text[300];		   /* of the last error */
};

extern const struct fault_scenario fault_scenarios[];
extern const unsigned fault_nscenarios;

/* From nothing to nothing. */
int fault_play(struct fault_world *w, const struct fault_scenario *s);

/* ---- scenarios ---- */

int fault_transfer(struct fault_world *w);
int fault_several(struct fault_world *w);
int fault_refused(struct fault_world *w);
int fault_nobody(struct fault_world *w);
int fault_aborted(struct fault_world *w);
int fault_unheard(struct fault_world *w);
int fault_shared(struct fault_world *w);
int fault_atomics(struct fault_world *w);
int fault_windows(struct fault_world *w);
int fault_lent(struct fault_world *w);
int fault_stalled(struct fault_world *w);
int fault_looked(struct fault_world *w);
int fault_asleep(struct fault_world *w);
int fault_late(struct fault_world *w);
int fault_afresh(struct fault_world *w);
int fault_patient(struct fault_world *w);
int fault_homes(struct fault_world *w);
int fault_blamed(struct fault_world *w);
int fault_lasting(struct fault_world *w);
int fault_one_goes(struct fault_world *w);
void fault_ask_p2p(struct ddps_conn_param *p, unsigned i);
void fault_ask_legacy(struct ddps_conn_param *p, unsigned i);
void fault_ask_patience(struct ddps_conn_param *p, unsigned i);

/* ---- their steps: 0, an error of the library, or SILENT ---- */

void fault_params(struct ddps_conn_param *p, const char *text);
int fault_wait_event(struct fault_world *w, struct ddps_event *ev);
/* Take one event, and do what it asks for. */
int fault_event(struct fault_world *w);
int fault_asked(struct fault_world *w, struct ddps_request *req, unsigned i);
int fault_connect(struct fault_world *w, unsigned i);
int fault_connect_to(struct fault_world *w, unsigned i, const char *uri);
/* Another place of this wire: of @where, a digit, there is none yet. */
const char *fault_elsewhere(const struct fault_world *w, char where);
/* All connect, all are up. */
int fault_established(struct fault_world *w);
/* The same, and the regions are there. */
int fault_begin(struct fault_world *w);
int fault_tear_down(struct fault_world *w);
/* Whoever was informed that a session is up is informed of its end, whatever it was. */
int fault_ends(struct fault_world *w);
/* Take @n completions; all were successful. */
int fault_completions(struct fault_world *w, unsigned n);
int fault_one_completion(struct fault_world *w, struct ddps_wc *wc);
int fault_request(struct fault_world *w, struct ddps_ep *ep, const struct ddps_send_wr *wr);
/* @at, @off: the peer's region and where in it; NULL: none. */
int fault_post(struct fault_world *w, struct ddps_ep *ep, enum ddps_op op, struct ddps_sge sge,
	       struct ddps_mr *at, uint64_t off);
int fault_receive(struct fault_world *w, struct ddps_ep *ep, struct ddps_sge sge);
int fault_regions(struct fault_world *w, struct ddps_mr **src, struct ddps_mr **dst);
struct ddps_sge fault_piece(uint8_t *p, uint32_t len, struct ddps_mr *mr);
/* Let time pass: the context is driven for so long. */
int fault_drive(struct fault_world *w, unsigned ms);

#endif
