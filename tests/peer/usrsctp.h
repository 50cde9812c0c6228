/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_PEER_USRSCTP_H
#define DDPS_TEST_PEER_USRSCTP_H
/*
 * An SCTP that is not ours below one end of a test: usrsctp, in UDP, as a backend.  It is for
 * one thread of a process, and has no more than tests need: no raw IP, one listener on a UDP port.  Its SCTP port is the number of its UDP port, unless a URI names one.
 */
#include "sctp_ddp/sd_backend.h"

extern const struct ddps_sd_backend peer_usrsctp;

extern struct peer_usrsctp_knobs {
	bool mute;     /* nothing leaves any more, as from a process that was killed */
	unsigned lose; /* of 1000 packets each way */
	uint16_t port; /* the next connect comes from this UDP port; 0: any */
} peer_usrsctp_knobs;

#endif
