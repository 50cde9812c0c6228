/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_WIRE_H
#define DDPS_SCTP_WIRE_H
/*
 * Chunks, parameters and causes (RFC 9260 section 3): octets <-> struct.  No I/O, no heap.  What is
 * decoded borrows from the packet.
 */
#include "common/bytes.h"
#include "sctp/sctp.h"

#define DDPS_SC_HDR	 12u /* common header */
#define DDPS_SC_DATA_HDR 16u /* sizeof(struct ddps_sc_data_hdr) */

enum ddps_sc_type {
	SC_DATA = 0,
	SC_INIT = 1,
	SC_INIT_ACK = 2,
	SC_SACK = 3,
	SC_HEARTBEAT = 4,
	SC_HEARTBEAT_ACK = 5,
	SC_ABORT = 6,
	SC_SHUTDOWN = 7,
	SC_SHUTDOWN_ACK = 8,
	SC_ERROR = 9,
	SC_COOKIE_ECHO = 10,
	SC_COOKIE_ACK = 11,
	SC_SHUTDOWN_COMPLETE = 14,
	SC_PAD = 0x84
};

#define DDPS_SC_RWND_MIN 1500u /* of an INIT or INIT ACK */

enum { SC_DATA_E = 1, SC_DATA_B = 2, SC_DATA_U = 4, SC_DATA_I = 8, SC_FLAG_T = 1 };

enum ddps_sc_param {
	SC_P_HB_INFO = 1,
	SC_P_IPV4 = 5,
	SC_P_IPV6 = 6,
	SC_P_COOKIE = 7,
	SC_P_UNRECOGNIZED = 8,
	SC_P_PRESERVATIVE = 9,
	SC_P_HOST_NAME = 11,
	SC_P_ADDR_TYPES = 12,
	SC_P_ZERO_CHECKSUM = 0x8001, /* RFC 9653 4 */
	SC_P_PADDING = 0x8005,
	SC_P_EXTENSIONS = 0x8008,
	SC_P_ADAPTATION = 0xc006
};

enum ddps_sc_cause {
	SC_CAUSE_STREAM = 1,
	SC_CAUSE_MISSING = 2,
	SC_CAUSE_STALE = 3,
	SC_CAUSE_RESOURCE = 4,
	SC_CAUSE_ADDRESS = 5,
	SC_CAUSE_CHUNK = 6,
	SC_CAUSE_INVALID = 7,
	SC_CAUSE_PARAMS = 8,
	SC_CAUSE_NO_DATA = 9,
	SC_CAUSE_SHUTTING = 10,
	SC_CAUSE_RESTART = 11,
	SC_CAUSE_USER = 12,
	SC_CAUSE_VIOLATION = 13,
	SC_CAUSE_ENCAP = 14 /* restart with a new encapsulation port, as Linux sends it */
};

struct ddps_sc_header {
	uint16_t src, dst;
	uint32_t tag;
};

struct ddps_sc_chunk {
	uint8_t type, flags;
	const uint8_t *all; /* the whole chunk ... */
	size_t len;	    /* ... without its pad */
	const uint8_t *val; /* what follows its header */
	size_t vlen;
};

struct ddps_sc_tlv { /* a parameter or a cause */
	uint16_t type;
	const uint8_t *all;
	size_t len;
	const uint8_t *val;
	size_t vlen;
};

struct ddps_sc_data {
	uint8_t flags;
	uint32_t tsn, ppid;
	uint16_t sid, ssn;
	const uint8_t *p;
	size_t len;
};

/* The head of a DATA chunk as it is on the wire. */
struct ddps_sc_data_hdr {
	uint8_t type, flags;
	uint16_t len;
	uint32_t tsn;
	uint16_t sid, ssn;
	uint32_t ppid;
};

/* The same of a SACK; gaps and duplicates follow. */
struct ddps_sc_sack_hdr {
	uint8_t type, flags;
	uint16_t len;
	uint32_t cum, rwnd;
	uint16_t ngaps, ndups;
};

struct ddps_sc_sack {
	uint32_t cum, rwnd;
	unsigned ngaps, ndups;
	const uint8_t *gaps; /* pairs of 16 bits in wire order */
	const uint8_t *dups;
};

#define DDPS_SC_ZERO_DTLS 1u /* the method of RFC 9653 that is DTLS */

#define DDPS_SC_REPORT_MAX 256u /* octets of unrecognized parameters that are reported */

/* Addresses that an INIT of 1500 octets can list, and its source. */
#define DDPS_SC_LISTED_MAX 184u

/* INIT or INIT ACK. */
struct ddps_sc_init {
	uint32_t tag, rwnd, tsn;
	uint16_t os, mis;
	unsigned naddr, left; /* in @addr; listed beyond that */
	const uint8_t *cookie;
	size_t cookie_len;
	const uint8_t *host_name; /* the parameter; NULL: none */
	size_t host_name_len;
	bool has_adaptation;
	bool zero_checksum, saw_zero; /* acceptable, inside DTLS; the parameter came */
	uint32_t adaptation, preservative;
	size_t report_len;
	uint8_t report[DDPS_SC_REPORT_MAX];		/* TLVs to report, padded */
	struct ddps_sctp_addr addr[DDPS_SC_LISTED_MAX]; /* usable or not */
};

static inline bool ddps_sc_tsn_lt(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline size_t ddps_sc_pad(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

/* RFC 9260 appendix A, over octets that include the checksum field as 0. */
#define DDPS_SC_CRC_INIT 0xffffffffu
uint32_t ddps_sc_crc_part(uint32_t crc, const void *p, size_t len);
static inline uint32_t ddps_sc_crc_done(uint32_t crc) /* as it is stored */
{
	return htole32(~crc);
}
/* Whether the CRC of a packet of at least 12 octets is right. */
bool ddps_sc_crc_ok(const uint8_t *pkt, size_t len);
/* Compute it and put it in. */
void ddps_sc_crc_put(uint8_t *pkt, size_t len);

/* 0 or DDPS_E_TRUNCATED, DDPS_E_PROTOCOL (port 0). */
int ddps_sc_header(struct ddps_sc_header *h, const uint8_t *pkt, size_t len);
/* The next chunk: 1; 0 at the end; DDPS_E_PROTOCOL: what is left is no whole chunk. */
static inline int ddps_sc_chunk_next(struct ddps_rbuf *r, struct ddps_sc_chunk *c)
{
	size_t left = ddps_rbuf_left(r), len, padded;

	if (left < 4)
		return 0;
	len = (size_t)(r->p[2] << 8 | r->p[3]);
	if (len < 4 || len > left) /* [9260-6.10-6] */
		return DDPS_E_PROTOCOL;
	padded = ddps_sc_pad(len);
	c->type = r->p[0];
	c->flags = r->p[1];
	c->all = r->p;
	r->p += padded < left ? padded : left;
	c->len = len;
	c->val = c->all + 4;
	c->vlen = len - 4;
	return 1;
}
/* Over the chunks of a packet. */
static inline struct ddps_rbuf ddps_sc_chunks(const uint8_t *pkt, size_t len)
{
	return ddps_rbuf_init(pkt + DDPS_SC_HDR, len - DDPS_SC_HDR);
}
/* The next parameter or cause: as above. */
int ddps_sc_tlv_next(struct ddps_rbuf *r, struct ddps_sc_tlv *t);

/* Each: 0, or DDPS_E_TRUNCATED or DDPS_E_PROTOCOL. */
int ddps_sc_decode_data(struct ddps_sc_data *d, const struct ddps_sc_chunk *c);
int ddps_sc_decode_sack(struct ddps_sc_sack *s, const struct ddps_sc_chunk *c);
/* TRUNCATED: fixed part is not whole.  PROTOCOL: @i has the fixed part, parameters are malformed. */
int ddps_sc_decode_init(struct ddps_sc_init *i, const struct ddps_sc_chunk *c);
/* Whether the fixed fields are what RFC 9260 3.3.2 allows (the tag apart). */
bool ddps_sc_init_sane(const struct ddps_sc_init *i);
/* The value of the first cause of kind @code, or NULL. */
const uint8_t *ddps_sc_find_cause(const struct ddps_sc_chunk *c, uint16_t code, size_t *len);

static inline void ddps_sc_put_header(struct ddps_wbuf *w, uint16_t src, uint16_t dst, uint32_t tag)
{
	const struct {
		uint16_t src, dst;
		uint32_t tag, crc;
	} h = { htobe16(src), htobe16(dst), htobe32(tag), 0 };

	ddps_wbuf_bytes(w, &h, sizeof h);
}
void ddps_sc_put_chunk(struct ddps_wbuf *w, uint8_t type, uint8_t flags, const void *val, size_t n);
/* @return how many octets of pad are behind it, which its length does not count. */
size_t ddps_sc_put_tlv(struct ddps_wbuf *w, uint16_t type, const void *val, size_t n);
void ddps_sc_put_addr(struct ddps_wbuf *w, const struct ddps_sctp_addr *a);
/* Begin a chunk whose length is not known yet; @return where, for the end. */
uint8_t *ddps_sc_begin_chunk(struct ddps_wbuf *w, uint8_t type, uint8_t flags);
/* Sets the length and pads.  The length counts no pad, @pad of the last parameter included
 * [9260-3.2-1]. */
void ddps_sc_end_chunk(struct ddps_wbuf *w, uint8_t *at, size_t pad);

/* An address that one host has: not unspecified, multicast, broadcast, v4-mapped. */
bool ddps_sc_unicast(const struct ddps_sctp_addr *a);

#endif
