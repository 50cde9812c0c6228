/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCTP_SIM_H
#define SCTP_SIM_H
/*
 * One flow over one simulated path: the sender's modules of src/sctp against a plain receiver, in
 * simulated time.  Everything follows from the seed.
 */
#include "sctp/send/tx_sent.h"

#define SIM_MS	1000000ull
#define SIM_SEC (1000 * SIM_MS)

struct sctp_sim_conf {
	uint64_t seed;
	uint64_t octets;   /* of user data to be sent; UINT64_MAX: no end */
	uint64_t duration; /* at most, ns */
	size_t len;	   /* user data of a chunk; 0: as much as a packet takes */

	/* the path of the data */
	double rate;	 /* octets of IP packets a second; 0: no limit */
	size_t queue;	 /* octets that wait at most; 0: no limit */
	uint64_t delay;	 /* ns, one way, both ways */
	uint64_t jitter; /* up to so much more; packets overtake each other */
	bool in_order;	 /* ... but do not overtake */
	double late;	 /* share of packets that are late by @late_by */
	uint64_t late_by;
	double loss, sack_loss;
	uint16_t mtu;	 /* 0: 1500 */
	uint64_t mtu_at; /* from then on it is ... */
	uint16_t mtu_then;
	uint64_t dark_from, dark_until; /* nothing passes in either direction */
	uint64_t step_at, step;		/* from then on the delay is longer by @step */
	/* drops the packet in which the chunk with this number, from 1 on, is sent first; 0: end */
	uint32_t drop[32];
	uint64_t sacks_dark_from, sacks_dark_until;

	/* the receiver */
	uint32_t a_rwnd;		/* 0: 16 MiB */
	uint64_t shut_from, shut_until; /* the window is closed, and nothing is taken */
	uint64_t sack_delay;		/* 0: 20 ms */
	bool ignores_i;

	uint64_t rto_min; /* as in struct ddps_sent_conf */
	bool small_steps; /* timers late by up to the grain */
};

struct sctp_sim_result {
	uint64_t octets; /* of user data delivered */
	uint64_t end;	 /* time of the last delivery */
	uint64_t pause;	 /* longest time without any delivery, after the first */
	uint64_t packets, dropped, resent, duplicates, t3s, probes, undone, spurious, lost;
	uint64_t sacks, steps, newest_size, cwnd, srtt, first_t3, big_frags;
	uint64_t errors; /* T3s that count against the path */
	uint32_t black_holes;
	uint32_t cuts; /* times that the window was reduced */
	bool done, lied;
};

struct sctp_sim_result sctp_sim_run(const struct sctp_sim_conf *conf);

/* Uniform in [0, 1). */
double sctp_sim_random(uint64_t *seed);

#endif
