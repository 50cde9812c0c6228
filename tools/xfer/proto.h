/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_PROTO_H
#define SESSCTL_PROTO_H
/*
 * The messages of sessctl's services, each in one Send; file content goes by RDMA Write (put)
 * and RDMA Read (get).  Big endian:
 *
 *	u16 magic 0x5343 | u8 version 1 | u8 type | fields of the type, in enum field order
 *
 * The client speaks first and says what it wants; one session serves one request.
 *
 *	put:  PUT ->  <- GO   (Write, CHUNK ->  <- CREDIT)*  DONE ->  <- OK
 *	get:  GET ->  <- FILE  (<- READY, Read, CREDIT ->)*  <- DONE  OK ->
 *	ping: PING -> <- GO   then raw Sends, see serve_ping.c
 *	perf: PERF -> <- GO   likewise, see serve_perf.c
 *
 * Both ends compute a SHA-256 over a file.  PUT_BY and GET_BY are PUT and GET with the name of
 * another digest; a server of an earlier version refuses them.
 *
 * A server that does not want to answers REFUSE; either side ends a transfer with ERROR.
 */
#include "xfer/digest.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROTO_MAGIC   0x5343
#define PROTO_VERSION 1

#define MSG_TEXT_MAX 1024
#define MSG_MAX	     1200 /* longer than any message */

#define SLOTS_MAX    4		 /* slots of a transfer window */
#define SLOT_LEN_MAX (1u << 20)	 /* octets in one */
#define PING_MAX     (16u << 20) /* octets of one ping */
#define PAUSE_MAX_MS 3600000	 /* between two pings */

#define PERF_DEPTH_MAX 128 /* operations under way at a time */
/* perf, send: one message of the listener's acknowledges so many */
#define PERF_ACK_EVERY(depth) ((depth) < 8 ? 1u : (depth) / 4u)

#define PING_MARK_LEN	8u /* a message next to a Write or Read: sequence number */
#define PING_PATTERN(i) ((uint8_t)((i)*31 + 7)) /* octet i of a window to be read */

enum msg_type {
	MSG_PUT = 1,
	MSG_GET,
	MSG_PING,
	MSG_GO,
	MSG_FILE,
	MSG_CHUNK,
	MSG_READY,
	MSG_CREDIT,
	MSG_DONE,
	MSG_OK,
	MSG_REFUSE,
	MSG_ERROR,
	MSG_PERF,
	MSG_PUT_BY,
	MSG_GET_BY,
	MSG_NTYPES
};

enum ping_op {
	PING_SEND,
	PING_WRITE,
	PING_READ,
	PING_NOPS,
	PING_BOTH = PING_NOPS /* of perf, never in a PING */
};
/* the first three are those of ping */
enum perf_op { PERF_SEND, PERF_WRITE, PERF_READ, PERF_PING, PERF_BOTH, PERF_NOPS };

struct msg {
	enum msg_type type;
	bool force;	/* PUT, PUT_BY: overwrite */
	uint8_t kind;	/* PUT_BY, GET_BY: enum digest_kind */
	uint8_t op;	/* PING: enum ping_op; PERF: enum perf_op */
	uint8_t nslots; /* GO: 0..SLOTS_MAX */
	uint8_t slot;	/* CHUNK, READY, CREDIT: 0..SLOTS_MAX - 1 */
	uint32_t len; /* CHUNK, READY: octets in the slot; GO: of a slot; PING, PERF: the longest */
	uint32_t pause_ms;	     /* PING: longest pause between two */
	uint32_t depth;		     /* PERF: 1..PERF_DEPTH_MAX */
	uint32_t stag;		     /* GO, READY */
	uint64_t to;		     /* GO, READY */
	uint64_t off;		     /* CHUNK, READY: where in the file */
	uint64_t size;		     /* PUT, PUT_BY, FILE */
	uint8_t digest[DIGEST_LEN];  /* DONE, OK */
	char text[MSG_TEXT_MAX + 1]; /* PUT, GET and _BY: name; REFUSE, ERROR: reason */
};

/* Return: octets written; 0 if @size is too small or a value is out of range. */
size_t msg_encode(const struct msg *m, uint8_t *buf, size_t size);

/*
 * Whatever came from the peer.  @m is meaningful only on success; text holds no NUL octet, is
 * not empty, but is otherwise unchecked: see safe.h, text.h.
 *
 * Return: 0, or -1 with a constant sentence in @why.
 */
int msg_decode(struct msg *m, const uint8_t *buf, size_t len, const char **why);

/* "PUT", "GO", ... */
const char *msg_name(enum msg_type type);

const char *ping_op_name(enum ping_op op);
const char *perf_op_name(enum perf_op op);

/* What both ends of a transfer do with files. */

/* Fill @buf; short only at the end of the file.  Return: octets, or -1 with errno. */
ssize_t file_read(int fd, uint8_t *buf, size_t len, uint64_t off);

/* The window of a transfer: no larger and no more slots than the file needs. */
uint32_t file_slot_len(uint64_t size);
uint8_t file_nslots(uint64_t size);

#endif
