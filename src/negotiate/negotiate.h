/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_NEGOTIATE_H
#define DDPS_NEGOTIATE_H
/*
 * Enhanced connection establishment (RFC 6581): the one place that knows IRD and ORD,
 * 0x3FFF, the peer-to-peer model and the choice of the RTR.  Pure functions, both wires.
 */
#include <ddpsess/session.h>

#define DDPS_WORD_LEN 4

/* The enhanced word, RFC 6581 9. */
struct ddps_word {
	bool p2p;	   /* A */
	unsigned rtr;	   /* B, C, D as DDPS_RTR_SEND, _WRITE, _READ */
	uint16_t ird, ord; /* 0..0x3FFF */
};

void ddps_word_encode(const struct ddps_word *w, uint8_t out[DDPS_WORD_LEN]);
/* With A = 0 the flags B, C, D read as zero [6581-9.2-15]. */
void ddps_word_decode(struct ddps_word *w, const uint8_t in[DDPS_WORD_LEN]);

/* What one side brings. */
struct ddps_nego_local {
	uint16_t max_ird, max_ord; /* device, <= DDPS_RD_MAX */
	uint16_t ird, ord;	   /* wanted, or DDPS_RD_ULP */
	uint16_t ulp_ird, ulp_ord; /* in force while the above is DDPS_RD_ULP */
	uint16_t need_ord;	   /* responder */
	bool ird_hard;
	bool p2p;     /* initiator */
	unsigned rtr; /* can send (initiator), can take (responder) */
};

/* What came of it. */
struct ddps_nego_result {
	uint16_t ird, ord;  /* effective, own */
	unsigned rtr;	    /* initiator: the one to send, or 0; responder: the types flagged */
	bool rtr_needs_ord; /* initiator: Read RTR with ord 0, lend one slot for it */
	bool provider_read_slot; /* responder: Read RTR flagged although ird stays 0 */
	bool ird_warning;	 /* initiator: peer ORD above our IRD, which is the ULP's */
};

/* The initiator's word.  Return 0 or DDPS_E_INVAL. */
int ddps_nego_request(const struct ddps_nego_local *l, struct ddps_word *w);

enum ddps_nego_verdict {
	DDPS_NEGO_ACCEPT,
	DDPS_NEGO_REJECT,     /* as the ULP said */
	DDPS_NEGO_REJECT_ORD, /* peer's IRD is below need_ord; the reply word carries it */
	DDPS_NEGO_NO_RTR      /* no RTR type in common; the reply word carries our types */
};

/* Whether the responder's provider has to reject by itself, before the ULP is asked. */
bool ddps_nego_rtr_mismatch(const struct ddps_word *request, unsigned rtr);

/*
 * The responder's reply word @r and, for an accept, the result.  With @no_rtr_accept a
 * missing common RTR does not reject.
 */
enum ddps_nego_verdict ddps_nego_respond(const struct ddps_nego_local *l, const struct ddps_word *q,
					 bool ulp_rejects, bool no_rtr_accept, struct ddps_word *r,
					 struct ddps_nego_result *res);

/*
 * The initiator on an accept with word @r to its word @w.
 * Return 0, or what the Terminate to send says: DDPS_TERM_MPA_IRD or _RTR (type or model).
 */
int ddps_nego_accept(const struct ddps_nego_local *l, const struct ddps_word *w,
		     const struct ddps_word *r, struct ddps_nego_result *res);

/* Unenhanced set-up: own values, clamped to the device. */
void ddps_nego_plain(const struct ddps_nego_local *l, struct ddps_nego_result *res);

#endif
