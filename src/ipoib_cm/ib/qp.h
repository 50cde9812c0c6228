/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_QP_H
#define DDPS_IB_QP_H
/*
 * RC and UC queue pairs for Sends, which is all that IPoIB uses (IBA volume 1, 9.7, 9.8).  One
 * object sends and receives; it knows neither addresses nor sockets, and time is an argument.
 *
 * What arrives is hostile: a packet changes nothing unless its PSN is in the window, and what a
 * peer can make this end keep is bounded by a struct ddps_ib_mem that queue pairs share.
 *
 * The requester repeats the oldest unacknowledged packet, alone, long before its ACK timeout, at
 * growing intervals; such a repetition is what a responder has to take anyway, and its answer says
 * what else is missing.  Only the timeout and NAKs cost retries.
 */
#include "ipoib_cm/ib/pkt.h"

#define DDPS_IB_TX_MSGS 128 /* messages that wait or are under way */
#define DDPS_IB_WINDOW	128 /* packets without an answer */
#define DDPS_IB_NEVER	UINT64_MAX

/* Memory that several share. */
struct ddps_ib_mem {
	size_t used, max;
	uint64_t refused; /* asked for and not given */
};

/* X(name, meaning) */
#define DDPS_IB_QP_STATS(X)                                                                        \
	X(qp_tx, "packets of connections sent, repeated ones and ACKs included")                   \
	X(qp_again, "packets repeated")                                                            \
	X(qp_timeouts, "ACK timeouts")                                                             \
	X(qp_rx, "packets of connections received")                                                \
	X(qp_duplicate, "of these: repeated by the peer")                                          \
	X(qp_gap, "of these: behind a gap, dropped")                                               \
	X(qp_nak_rx, "NAKs received")                                                              \
	X(qp_nak_tx, "NAKs sent")                                                                  \
	X(qp_rnr_rx, "RNR NAKs received")                                                          \
	X(qp_rnr_tx, "RNR NAKs sent: no memory for a message")                                     \
	X(qp_bad, "packets that the state or the protocol forbids, dropped")                       \
	X(qp_lost, "messages of UC lost for a gap or for lack of memory")                          \
	X(qp_failed, "queue pairs that failed")

struct ddps_ib_qp_stats {
#define DDPS_X(name, text) uint64_t name;
	DDPS_IB_QP_STATS(DDPS_X)
#undef DDPS_X
};

struct ddps_ib_qp;

/* What a queue pair asks of its owner, who may destroy it only in the last two. */
struct ddps_ib_qp_ops {
	/* Return: whether it was sent; if not, call ddps_ib_qp_pump() when there is room. */
	bool (*send)(void *user, struct ddps_ib_qp *qp, struct ddps_ib_pkt *p);
	/* A whole message; valid during the call. */
	void (*message)(void *user, struct ddps_ib_qp *qp, const void *data, size_t len,
			uint64_t now);
	/* It is in ERR; told once. */
	void (*failed)(void *user, struct ddps_ib_qp *qp, int err, uint64_t now);
	/* What packets that were sent have their payload from goes now.  NULL: send() has copied. */
	void (*gone)(void *user, const uint8_t *data, size_t len);
};

/* Shared by the queue pairs of a port. */
struct ddps_ib_qp_env {
	const struct ddps_ib_qp_ops *ops;
	void *user;
	struct ddps_ib_mem tx, rx;
	/*
	 * What asks for an ACK gets it with those behind it: by the next ddps_ib_qp_pump(), which is
	 * to be called soon while ack_owed is set.
	 */
	bool late_acks;
	struct ddps_ib_qp_stats stats;
};

enum ddps_ib_qp_state { DDPS_IB_QP_INIT, DDPS_IB_QP_RTS, DDPS_IB_QP_ERR };

struct ddps_ib_msg {
	uint8_t *data;
	uint32_t len, psn, n_pkt;
};

/* The far end, from the REQ or REP. */
struct ddps_ib_qp_to {
	uint32_t qpn, tx_psn, rx_psn;
	uint32_t mtu;	     /* of the path: 256 to 4096 */
	uint8_t ack_timeout; /* 5-bit time; 0: never */
	uint8_t retry, rnr_retry;
};

struct ddps_ib_qp {
	struct ddps_ib_qp_env *env;
	enum ddps_ib_qp_state state;
	bool uc;
	uint16_t pkey;
	uint32_t qpn, rx_max; /* octets of the longest message taken */
	struct ddps_ib_qp_to to;

	/* requester: una <= sent <= top <= psn, PSNs */
	struct ddps_ib_msg *msg; /* a ring */
	unsigned head, n_msg;
	unsigned cur; /* of them: holds the packet sent next, or is n_msg */
	uint32_t una, sent, top, psn;
	bool blocked;	      /* send() had no room */
	bool probing;	      /* one packet is repeated, the others wait for its answer */
	unsigned since_ack;   /* packets since one asked for an ACK */
	unsigned tries, rnr;  /* retries used since the last progress */
	uint64_t progress_at; /* or begun, or the last ACK timeout */
	uint64_t again_at;    /* repeat; NEVER: nothing is out */
	uint64_t again_ns;    /* grows */
	uint64_t rnr_until;   /* the peer is not ready; 0: it is */
	uint32_t acked_len;   /* payload of the longest packet that was acknowledged */
	uint32_t failed_len;  /* of the one whose ACK timeout ended it; 0: none has */

	/* responder */
	uint32_t epsn, msn;
	bool nak_sent, ack_owed, open; /* open: between First and Last */
	unsigned owed;		       /* packets that have asked for it */
	uint8_t *in;
	uint32_t in_len, in_mtu; /* in_mtu: of the First; Middles have the same */
};

void ddps_ib_qp_init(struct ddps_ib_qp *qp, struct ddps_ib_qp_env *env, bool uc, uint32_t qpn,
		     uint32_t rx_max);
/* Frees what it holds. */
void ddps_ib_qp_fini(struct ddps_ib_qp *qp);

/* To RTR and RTS.  Return: 0; DDPS_E_STATE; DDPS_E_INVAL: an MTU that is none; DDPS_E_NOMEM. */
int ddps_ib_qp_ready(struct ddps_ib_qp *qp, const struct ddps_ib_qp_to *to);
/* To ERR, without a word to anybody. */
void ddps_ib_qp_stop(struct ddps_ib_qp *qp);

/* One message, copied.  Return: 0; DDPS_E_AGAIN: no room; DDPS_E_STATE. */
int ddps_ib_qp_send(struct ddps_ib_qp *qp, const void *data, size_t len, uint64_t now);

/* A packet for it, P_Key and ICRC checked.  The last thing that the caller does with @qp. */
void ddps_ib_qp_rx(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now);

/* Whether more waits than is of use: what is long under way is in no cache any more. */
static inline bool ddps_ib_qp_behind(const struct ddps_ib_qp *qp)
{
	return qp->n_msg > DDPS_IB_TX_MSGS / 2 ||
	       ddps_ib_psn_diff(qp->psn, qp->una) > 2 * DDPS_IB_WINDOW;
}

/* There is room to send again. */
void ddps_ib_qp_pump(struct ddps_ib_qp *qp, uint64_t now);
/* When ddps_ib_qp_tick() is due. */
uint64_t ddps_ib_qp_due(const struct ddps_ib_qp *qp);
void ddps_ib_qp_tick(struct ddps_ib_qp *qp, uint64_t now);

/* ---- inside ---- */

void ddps_ib_qp_fail(struct ddps_ib_qp *qp, int err, uint64_t now);
bool ddps_ib_qp_out(struct ddps_ib_qp *qp, struct ddps_ib_pkt *p);
void *ddps_ib_mem_get(struct ddps_ib_mem *m, size_t n);
void ddps_ib_mem_put(struct ddps_ib_mem *m, void *p, size_t n);
/* requester */
void ddps_ib_req_flush(struct ddps_ib_qp *qp);
void ddps_ib_req_ack(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now);
/* responder */
void ddps_ib_resp_rx(struct ddps_ib_qp *qp, const struct ddps_ib_pkt *p, uint64_t now);
void ddps_ib_resp_owed(struct ddps_ib_qp *qp);
void ddps_ib_resp_drop(struct ddps_ib_qp *qp);

#endif
