/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_USRSCTP_OUT_H
#define DDPS_SD_USRSCTP_OUT_H
/*
 * What leaves a context, collected: usrsctp hands out one packet at a time, the kernel takes many
 * in one call, and runs of equal size to one peer as one buffer (UDP GSO).  The other direction is
 * alike: UDP GRO hands us what came in a row as one buffer to be cut up.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddps_us_env;
struct ddps_us_handle;

#define DDPS_US_OUT_LEN	   (128u * 1024)
#define DDPS_US_OUT_MAX	   128u
#define DDPS_US_GSO_MAX	   64u	  /* segments, UDP_MAX_SEGMENTS of the first kernels with it */
#define DDPS_US_GSO_OCTETS 65507u /* of one UDP datagram over IPv4 */

struct ddps_us_out_pkt {
	struct ddps_us_handle *h;
	uint32_t len;
};

/* Packets lie one behind the other in buf. */
struct ddps_us_out {
	uint8_t *buf; /* DDPS_US_OUT_LEN octets */
	uint32_t used;
	unsigned n;
	struct ddps_us_out_pkt pkt[DDPS_US_OUT_MAX];
};

/*
 * How many of @n packets, 1 at least, make one GSO send: same peer, same size, only the last may
 * be shorter.  @octets: their sum.
 */
unsigned ddps_us_gso_run(const struct ddps_us_out_pkt *p, unsigned n, uint32_t *octets);

/*
 * The next datagram in a buffer of @total octets that holds such of @seg octets and a last one
 * that may be shorter.  @seg <= 0: not cut.  @off: where it begins, 0 at first; returns its length
 * and moves @off behind it, or 0 at the end.
 */
size_t ddps_us_gro_next(size_t total, int seg, size_t *off);

/* Locked: what @ue has collected leaves. */
void ddps_us_flush(struct ddps_us_env *ue);

#endif
