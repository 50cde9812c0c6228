/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_RDMAP_ORDER_H
#define FUZZ_RDMAP_ORDER_H
/*
 * The order of what one RDMAP stream does, as a plain model: which message may go out next and
 * with which number, whose response is due, and which message completes a receive.
 */
#include "rdmap/rdmap.h"
#include "rdmap/rdmap_wire.h"

#define ORDER_WORKS    512
#define ORDER_REQUESTS 8

struct order_work {
	enum ddps_op op;
	unsigned flags;
	uint32_t stag, len;
	uint64_t to;
	bool over;     /* completed: if it has not gone out, it will not */
	bool ended;    /* by the peer's close: no more of it goes out than the message begun */
	bool covered;  /* DDPS_WR_PLACED: what proves the next one proves this one */
	bool answered; /* the peer has answered what was asked for it */
};

/* What the peer asks for. */
struct order_request {
	bool atomic;
	struct ddps_rreq read;
	struct ddps_areq a;
};

struct order {
	/* out: work requests as posted, the first that has not gone out; the message begun */
	struct order_work work[ORDER_WORKS];
	unsigned nwork, next;
	bool begun, response, second; /* second: the message behind another of the same work */
	bool asking;		      /* the Read behind a work with DDPS_WR_PLACED */
	unsigned covered;	      /* works in a row that have none */
	uint64_t sent;		      /* octets of it */
	uint32_t msn[DDPS_QN_COUNT];  /* of the latest */
	bool rtr_due, rtr_read_out;
	unsigned asks_out, ord; /* Reads and atomics that are not answered, and whose they are */
	unsigned ask_of[ORDER_REQUESTS];
	bool peer_closed;
	/* in: requests that have come and have no response; the one that is coming */
	struct order_request request[ORDER_REQUESTS];
	unsigned nrequests;
	uint8_t body[DDPS_AREQ_LEN];
	struct ddps_ddp_hdr in; /* of the segment that is being taken in */
	size_t in_len;		/* of its payload */
	bool in_valid;
	/* a whole Send that waits for the end of a message before it */
	struct ddps_ddp_hdr waiting;
	size_t waiting_len;
	bool waits;
	/* Immediate Data: its octets; has it come for the Send behind it; has anything completed */
	bool send_imm, ahead, completed;
	uint8_t imm[DDPS_IMM_LEN];
};

void order_start(struct order *o, const struct ddps_rdmap_start *s);
/* The peer will answer nothing more. */
void order_peer_closed(struct order *o);

/* Posted as @wr; @nr of it is returned.  Then: completed. */
unsigned order_post(struct order *o, const struct ddps_send_wr *wr);
void order_complete(struct order *o, unsigned nr, bool well);
/* A receive has completed well. */
void order_received(struct order *o, const struct ddps_wc *wc);

/* A segment is about to be taken in; it was, with this result. */
void order_in(struct order *o, const uint8_t *seg, size_t len);
void order_taken(struct order *o, const uint8_t *seg, size_t len, int err);

/* A segment goes out.  Return: the request, if it is the response to an atomic, else NULL. */
const struct order_request *order_out(struct order *o, const struct ddps_seg *seg);

#endif
