/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SCTP_RAW_FIXTURE_H
#define SCTP_RAW_FIXTURE_H
/* One engine, and a peer that is the test itself: packet by packet. */
#include <criterion/criterion.h>
#include "sctp_net_fixture.h"

#define RAW_LOG	 64
#define RAW_PORT 5000 /* the engine's */
#define RAW_PEER 6000 /* ours */
#define RAW_TAG	 0x11223344u
#define RAW_TSN	 1000u

struct raw_packet {
	struct ddps_sctp_route to;
	uint8_t data[4096];
	size_t len; /* may be more than fits into data */
};

struct raw {
	struct sn_net net;
	struct ddps_sctp *e;
	struct ddps_sctp_port *port;
	struct ddps_sctp_assoc *a;
	uint32_t tag;  /* the engine's */
	uint32_t tsn;  /* its first */
	uint32_t own;  /* ours */
	uint32_t next; /* TSN to be sent next */
	uint16_t from; /* our port; 0: RAW_PEER */
	uint8_t cookie[DDPS_SC_COOKIE_MAX];
	size_t cookie_len;
	struct raw_packet log[RAW_LOG];
	unsigned n; /* packets since the last raw_send() */
	struct ddps_wbuf w;
	uint8_t buf[4096];
	const char *early; /* sent @nearly times when the peer has answered */
	unsigned nearly, answered;
	unsigned ups, accepted, gone, restarted, shutdowns, messages;
	struct ddps_error why;
	struct ddps_sctp_msg last;
	uint8_t last_data[4096];
	uint64_t acked;
};

void raw_init(struct raw *r);
void raw_fini(struct raw *r);
/* A packet with this tag: put chunks into r->w. */
struct ddps_wbuf *raw_begin(struct raw *r, uint32_t tag);
/* Hand it over, and take what comes back. */
void raw_send(struct raw *r);
/* Hand it over alone: what comes back waits for sn_flush(). */
void raw_hand(struct raw *r);
/* As it is, without a CRC of ours. */
void raw_send_as_is(struct raw *r, const void *p, size_t len);
/* One chunk alone. */
void raw_chunk(struct raw *r, uint32_t tag, uint8_t type, uint8_t flags, const void *val, size_t n);
void raw_data(struct raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn, uint8_t flags,
	      const char *text);
void raw_put_data(struct raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn, uint8_t flags,
		  const char *text);
void raw_sack(struct raw *r, uint32_t cum, uint32_t rwnd);
void raw_wait(struct raw *r, uint64_t ms);
/* Chunk @i of the packet @k that came back: type, or -1. */
int raw_got(const struct raw *r, unsigned k, unsigned i, struct ddps_sc_chunk *c);
uint32_t raw_got_tag(const struct raw *r, unsigned k);
/* Whether some packet has a chunk of @type. */
bool raw_any(const struct raw *r, uint8_t type, struct ddps_sc_chunk *c);
void raw_put_init(struct raw *r, uint32_t tag, uint32_t rwnd, uint16_t os, uint16_t mis,
		  uint32_t tsn, const void *params, size_t len);
/* INIT with @own as our tag; the INIT ACK is kept in tag, tsn and cookie. */
void raw_init_chunk(struct raw *r, uint32_t own, uint32_t tsn);
bool raw_take_init_ack(struct raw *r);
void raw_echo(struct raw *r);
/* All of the set-up: opened by us; opened by the engine. */
void raw_up(struct raw *r);
void raw_connect(struct raw *r);
void raw_answer_init(struct raw *r);
const char *raw_state(const struct raw *r);
int raw_user_send(struct raw *r, uint16_t sid, unsigned flags, const char *text);

extern const struct ddps_sctp_up raw_upcalls;

#endif
