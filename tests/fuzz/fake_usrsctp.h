/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FAKE_USRSCTP_H
#define FAKE_USRSCTP_H
/*
 * In place of libusrsctp, for what lies around it: an SCTP of one packet a step, without timers,
 * tags and random numbers.  An INIT is answered, a COOKIE ECHO makes an association on the port
 * that listens, a COOKIE ACK is what a connecting one waits for.  It is strict about how it is
 * called.  A program that calls any function below has it instead of the library.
 */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"

#define FAKE_HDR 16u /* common header and chunk header */
#define FAKE_OUT 20u /* ... and, of packets that go out, their number */

struct fake_usrsctp {
	/* A packet has come from the peer known as @id. */
	void (*input)(uintptr_t id, const uint8_t *pkt, size_t len);
	uint32_t packets;    /* sent; the tag of each is the lower half of whom it is for */
	unsigned registered; /* peers that have associations */
	bool full;	     /* no room to send */
};

/* What it has seen, and whom to tell; everything of an earlier run is gone. */
struct fake_usrsctp *fake_usrsctp_reset(void);

/* The user message that was read from @so last. */
const uint8_t *fake_usrsctp_message(const struct socket *so, size_t *len);
/* There is room again: those that wait are told. */
void fake_usrsctp_room(void);
/* A packet of @type without contents to @id, for whatever reason SCTP has. */
void fake_usrsctp_late(uintptr_t id, uint8_t type);

#endif
