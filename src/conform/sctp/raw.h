/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_RAW_H
#define DDPS_CONFORM_RAW_H
/*
 * Associations (RFC 9260) of which a case says every octet.  Nothing is sent that the case does
 * not ask for, with two exceptions that can be switched off: DATA of the target is acknowledged,
 * and its HEARTBEATs are answered.
 *
 * The target is asked by "questions": a session chunk that RFC 5043 knows not what to do with, so
 * that one DATA chunk with a Terminate comes back, whatever application the target has.  A stream
 * answers one of them, and then rests; stream 0 is left to the session of an initiator.
 */
#include "conform/peer/sctp_packet.h"

enum { RAW_NONE = -1 };

/* Causes of RFC 9260 3.3.10. */
enum {
	RAW_INVALID_STREAM = 1,
	RAW_MISSING_PARAMETER,
	RAW_STALE_COOKIE,
	RAW_OUT_OF_RESOURCE,
	RAW_BAD_ADDRESS,
	RAW_UNKNOWN_CHUNK,
	RAW_INVALID_PARAMETER,
	RAW_UNKNOWN_PARAMETERS,
	RAW_NO_USER_DATA,
	RAW_SHUTTING_DOWN,
	RAW_NEW_ADDRESSES,
	RAW_USER_ABORT,
	RAW_VIOLATION
};

#define RAW_T	   1u /* the T bit */
#define RAW_LAST   1u
#define RAW_FIRST  2u
#define RAW_U	   4u /* unordered */
#define RAW_I	   8u /* RFC 9260 3.3.1 */
#define RAW_WHOLE  3u
#define RAW_HEADER 12u

/* A chunk of the target's. */
struct cf_raw_chunk {
	uint8_t type, flags;
	const uint8_t *v;
	size_t len;	/* of v */
	unsigned index; /* in its packet, from 0 */
	bool last;	/* nothing behind it */
	uint32_t tag;	/* of its packet */
};

/* INIT and INIT ACK. */
struct cf_raw_init {
	uint32_t tag, rwnd;
	uint16_t os, mis;
	uint32_t tsn;
	const uint8_t *params;
	size_t params_len;
};

struct cf_raw {
	struct cf *cf;
	struct cf_link *l;
	struct cf_pkt out;
	bool wrong;	  /* the next packet is malformed on purpose; cf_raw_send() clears it */
	bool mute;	  /* DATA is not acknowledged */
	bool deaf;	  /* HEARTBEATs are not answered */
	uint32_t own_tsn; /* our first */
	uint32_t old_tag; /* another one that the target may use; 0: none */
	/* what came */
	struct cf_raw_init peer; /* INIT or INIT ACK */
	uint8_t params[4096];
	uint8_t in[CF_PKT_MAX];
	size_t in_len, in_off;
	unsigned in_index;
	uint64_t in_at; /* when */
	unsigned ndata; /* DATA chunks, repeated ones too */
	uint32_t tsn;	/* of the latest */
	uint16_t sid;
	/* DATA on one stream: elsewhere a target may talk, or repeat itself, at any time */
	uint16_t watched;
	unsigned nwatched;
	unsigned nsack;
	uint32_t sack_cum, sack_rwnd; /* of the latest SACK */
	unsigned ngaps, ndups;
	uint16_t gap[16][2];
	uint32_t dup[16];
	bool takes_zero; /* a checksum may be zero (RFC 9653); such packets: */
	unsigned nzero;
	unsigned npackets;
	unsigned nalive;
};

/* ---- sending ---- */

/* A packet with the target's tag, or another one. */
void cf_raw_begin(struct cf_raw *r);
void cf_raw_begin_tag(struct cf_raw *r, uint32_t tag);
void cf_raw_put(struct cf_raw *r, uint8_t type, uint8_t flags, const void *v, size_t len);
void cf_raw_send(struct cf_raw *r);
/* With a wrong checksum. */
void cf_raw_send_bad_sum(struct cf_raw *r);
/* One chunk alone. */
void cf_raw_say(struct cf_raw *r, uint8_t type, uint8_t flags, const void *v, size_t len);
void cf_raw_say_tag(struct cf_raw *r, uint32_t tag, uint8_t type, uint8_t flags, const void *v,
		    size_t len);
void cf_raw_put_data(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint16_t ssn, uint8_t flags,
		     uint32_t ppid, const void *p, size_t len);
/* The DATA chunk of a question, with our next TSN or a given one. */
void cf_raw_put_question(struct cf_raw *r, uint16_t sid);
void cf_raw_put_question_at(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint8_t flags);
void cf_raw_ask(struct cf_raw *r, uint16_t sid);
void cf_raw_ask_at(struct cf_raw *r, uint32_t tsn, uint16_t sid, uint8_t flags);
void cf_raw_sack(struct cf_raw *r, uint32_t cum, uint32_t rwnd);
void cf_raw_sack_gaps(struct cf_raw *r, uint32_t cum, uint32_t rwnd, const uint16_t (*gap)[2],
		      unsigned ngaps);
void cf_raw_shutdown(struct cf_raw *r);
/* INIT or INIT ACK with parameters. */
void cf_raw_put_init(struct cf_raw *r, uint8_t type, uint32_t tag, uint32_t rwnd, uint16_t os,
		     uint16_t mis, uint32_t tsn, const void *params, size_t len);

/* ---- receiving ---- */

/* The next chunk of the target's, within @ms.  What it says of DATA and SACK is noted. */
bool cf_raw_next(struct cf_raw *r, unsigned ms, struct cf_raw_chunk *c);
/*
 * The next chunk that is neither DATA, SACK nor HEARTBEAT must be of this type.  For one of these
 * three: others of them are passed over.
 */
struct cf_raw_chunk cf_raw_want(struct cf_raw *r, int type);
/* The same within @ms; false: it did not come, nor did any other. */
bool cf_raw_came(struct cf_raw *r, int type, unsigned ms, struct cf_raw_chunk *c);
/* One DATA chunk more of the target's; its TSN in r->tsn. */
struct cf_raw_chunk cf_raw_want_data(struct cf_raw *r);
/* DATA whose TSN was not there before, on this stream: the answer to a question. */
void cf_raw_want_answer(struct cf_raw *r, uint16_t sid);
/* From now on count what comes on this stream. */
void cf_raw_watch(struct cf_raw *r, uint16_t sid);
/* A SACK with this cumulative TSN, which may be there already. */
void cf_raw_want_sack(struct cf_raw *r, uint32_t cum);
/*
 * The target has dealt with all that was sent and had nothing else to say: a HEARTBEAT.  What it
 * had to say immediately has been said by then.
 */
void cf_raw_quiet(struct cf_raw *r);
/* The same where there is no association: by a HEARTBEAT out of the blue. */
void cf_raw_quiet_oob(struct cf_raw *r);
/* The highest stream that there is both ways. */
uint16_t cf_raw_last_stream(const struct cf_raw *r);
/* And delivers DATA: a question on a stream of its own, its answer, and acknowledgements. */
void cf_raw_alive(struct cf_raw *r);
/* The association is no more: a packet under its tag is out of the blue. */
void cf_raw_dead(struct cf_raw *r);
/* The first cause of an ABORT or ERROR, 0: none. */
unsigned cf_raw_cause(const struct cf_raw_chunk *c);
/* A parameter in TLVs; NULL: it is not there. */
const uint8_t *cf_raw_param(const uint8_t *p, size_t len, uint16_t type, size_t *vlen);

/* ---- associations ---- */

/* Nothing is sent yet.  Target an initiator: its INIT was read, into r->peer. */
void cf_raw_bare(struct cf *cf, struct cf_raw *r);
/* INIT as an able peer has it, with parameters.  r->l->tag, own_tsn are used. */
void cf_raw_put_own_init(struct cf_raw *r, uint8_t type, const void *params, size_t len);
/* Responder: INIT, and the INIT ACK into r->peer. */
void cf_raw_invite(struct cf_raw *r);
void cf_raw_take_init(struct cf_raw *r, const struct cf_raw_chunk *c);
void cf_raw_echo(struct cf_raw *r);
/* Initiator: INIT ACK with a cookie and @params, and the COOKIE ECHO comes back. */
void cf_raw_answer_init(struct cf_raw *r, const void *params, size_t len);
struct cf_raw_chunk cf_raw_want_echo(struct cf_raw *r);
/* What RFC 5043 section 5.1 has every INIT and INIT ACK say. */
extern const uint8_t cf_raw_ddp[8];
/* What is left to do after cf_raw_bare(). */
void cf_raw_finish(struct cf_raw *r);
/*
 * An IPv4 Address parameter that the association does not have.  It is of loopback if the target is:
 * elsewhere such addresses are passed over, as if they were not there.
 */
void cf_raw_new_address(struct cf_raw *r, uint8_t param[8]);
/* All of it. */
void cf_raw_up(struct cf *cf, struct cf_raw *r);

/* Fails the case if r->in is not as every packet must be (RFC 9260 sections 3, 6.8 and 6.10). */
void cf_raw_lint(struct cf_raw *r);

/* Rows of the tables of cases: for a responder, for an initiator, for a target in either role. */
#define R(point, run, ids, rule)                                                                   \
	{                                                                                          \
		"assoc-" point, ids, rule, CF_SCTP, CF_RESPONDER, false, run                       \
	}
#define I(point, run, ids, rule)                                                                   \
	{                                                                                          \
		"assoc-i-" point, ids, rule, CF_SCTP, CF_INITIATOR, false, run                     \
	}
/* Not inside DTLS, where addresses and UDP ports say nothing. */
#define CLEAR(point, run, ids, rule)                                                               \
	{ "assoc-" point, ids, rule, CF_SCTP | CF_CLEAR, CF_RESPONDER, false, run },               \
	{                                                                                          \
		"assoc-i-" point, ids, rule, CF_SCTP | CF_CLEAR, CF_INITIATOR, false, run          \
	}
#define BOTH(point, run, ids, rule) R(point, run, ids, rule), I(point, run, ids, rule)

#endif
