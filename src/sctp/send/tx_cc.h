/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_TX_CC_H
#define DDPS_SCTP_TX_CC_H
/*
 * Congestion control and pacing of one path: slow start with HyStart++ (RFC 9406), CUBIC (RFC
 * 9438), proportional rate reduction (RFC 9937), and a token bucket that says when the next
 * bundle of packets may leave.
 *
 * It knows octets and time, and nothing of TSNs: tx_sent.c says what was sent, delivered and
 * lost.  "Octets" are those of whole DATA chunks with header and pad (9260-7.2-4); time is in
 * nanoseconds of a clock that never goes back.  No I/O, no heap, no errors: every call works on
 * any input, and a call takes constant time.  One thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_CC_NO_LIMIT UINT64_MAX /* ssthresh before the first loss */
#define DDPS_CC_BUNDLE	 65507u	    /* one send call takes no more (UDP over IPv4) */

enum ddps_cc_phase {
	DDPS_CC_SLOW,	/* slow start */
	DDPS_CC_CSS,	/* conservative slow start: the RTT has begun to rise */
	DDPS_CC_AVOID,	/* CUBIC */
	DDPS_CC_RECOVER /* a loss is being repaired; cwnd follows PRR */
};

/* What a loss changed, kept so that a false alarm can be taken back. */
struct ddps_cc_saved {
	uint64_t cwnd, ssthresh, epoch;
	double w_max, k, w_est, cwnd_prior;
	enum ddps_cc_phase phase;
	bool valid;
};

struct ddps_cc {
	uint64_t cwnd, ssthresh;
	uint32_t smss;
	enum ddps_cc_phase phase;
	bool used;	  /* something was sent: the window is no longer a free choice */
	bool after_t3;	  /* cwnd is one packet, until something is delivered */
	bool limited;	  /* in this round a send was refused by cwnd or the pacer */
	bool limited_was; /* the same in the round before */

	/* one round trip */
	uint64_t max_flight;
	uint64_t rtt_last, rtt_cur,
		rtt_css; /* least of the last round, this one, at entry of CSS */
	uint32_t rtt_n, css_rounds;

	/* CUBIC; epoch 0: none has begun */
	uint64_t epoch, stopped; /* stopped: since when growth is refused, or 0 */
	double w_max, k, w_est, cwnd_prior, part;

	/* PRR */
	uint64_t fs, prr_delivered, prr_out;

	/* pacing and idle time */
	double tokens;
	uint64_t tokens_at, sent_at, srtt, grain;

	struct ddps_cc_saved saved;
};

/* What one SACK brought to this path. */
struct ddps_cc_ack {
	uint64_t now;
	uint64_t acked;	   /* octets newly acked, by the cumulative ack and by gap blocks */
	uint64_t flight;   /* octets in flight afterwards; what is marked lost is not in flight */
	uint64_t rtt;	   /* one sample, or 0 */
	uint64_t srtt;	   /* the path's smoothed RTT, 0: none yet */
	bool round;	   /* what was sent last when the round began is delivered */
	bool cum_advanced; /* the cumulative TSN ack moved */
	bool new_loss;	   /* something was marked lost because of this SACK */
	bool queued;	   /* the window makes a queue and no speed: see tx_sack.c */
	uint64_t enough;   /* 0, or the window that would do */
};

/**
 * ddps_cc_init - a path that was never used
 * @smss:  octets of DATA chunks that one packet takes
 * @grain: how late a timer may fire, ns; what must wait for less leaves immediately
 *
 * cwnd starts at 10 packets.  Also after a change of route or address (9260-7.2.1).
 */
void ddps_cc_init(struct ddps_cc *cc, uint32_t smss, uint64_t grain);

/**
 * ddps_cc_set_smss - the path MTU has changed
 *
 * cwnd stays as it is in octets (RFC 8899 3), unless nothing was sent yet.
 */
void ddps_cc_set_smss(struct ddps_cc *cc, uint32_t smss);

/**
 * ddps_cc_room - how many octets may leave now, for a caller with something to send
 * @flight: octets in flight on this path
 * @rto:    the path's RTO; after a pause longer than that the window is reduced (once)
 * @wait:   set to 0, or to the moment at which the pacer allows the next bundle
 *
 * While flight is below cwnd one packet may pass cwnd by less than its own size (9260-6.1-10), so
 * a caller sends whole packets as long as what it has sent since is below the value returned.
 *
 * Return: octets; 0: not now.  Then @wait is when, or 0 if a SACK must come first.
 */
uint64_t ddps_cc_room(struct ddps_cc *cc, uint64_t flight, uint64_t rto, uint64_t now,
		      uint64_t *wait);

/**
 * ddps_cc_sent - a packet left
 * @size:   octets of its DATA chunks
 * @flight: octets in flight, this packet included
 */
void ddps_cc_sent(struct ddps_cc *cc, uint64_t size, uint64_t flight, uint64_t now);

/* Growth for what a SACK brought, before the losses that it shows are reported (9260-7.2.4-7). */
void ddps_cc_grow(struct ddps_cc *cc, const struct ddps_cc_ack *ack);

/**
 * ddps_cc_loss - a loss opens a new episode
 * @outstanding: octets not acked before the SACK that shows it, what is lost included
 *
 * Keeps what ddps_cc_undo needs, reduces ssthresh and starts recovery.
 */
void ddps_cc_loss(struct ddps_cc *cc, uint64_t outstanding);

/* A packet is missing for longer than a round trip, and may be late: news of a loss takes several of
 * them here, in which slow start would go too far. */
void ddps_cc_doubt(struct ddps_cc *cc);

/* The window while a loss is repaired; after the losses of this SACK were reported. */
void ddps_cc_recover(struct ddps_cc *cc, const struct ddps_cc_ack *ack);

/* All that was lost in this episode is repaired: cwnd is ssthresh now. */
void ddps_cc_recovered(struct ddps_cc *cc);

/**
 * ddps_cc_timeout - T3 has fired
 * @first: not one more of a series without any ack between; else ssthresh stays (RFC 5681 3.1)
 */
void ddps_cc_timeout(struct ddps_cc *cc, bool first);

/* One reaction without recovery: a tail loss probe has repaired the loss. */
void ddps_cc_repaired(struct ddps_cc *cc);

/* The last episode was a false alarm: the window from before it returns. */
void ddps_cc_undo(struct ddps_cc *cc);

/* Octets a second at which packets leave; 0: not paced, since no RTT is known. */
double ddps_cc_rate(const struct ddps_cc *cc);

#endif
