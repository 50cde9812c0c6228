/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CAPTURE_H
#define SESSCTL_CAPTURE_H
/*
 * Captures of MADs and IPoIB frames that packet analysers read: pcap files of link type 197, whose records are
 * ERF records of type 21 (InfiniBand link layer).  What others have captured is read in more forms
 * (capture_read.c).  The formats are small enough to need no library.
 */
#include <ddpsess/ib_cm_mad.h>
#include <ddpsess/ipoib_cm.h>
#include <stdbool.h>
#include <stdio.h>

#define CAPTURE_HEADER 24  /* octets of the file header */
#define CAPTURE_RECORD 322 /* octets of a record with one MAD */

struct capture_mad {
	uint64_t time_ns; /* since 1970 */
	uint16_t slid, dlid, pkey;
	uint8_t sl;
	const uint8_t *mad; /* DDPS_CM_MAD_LEN octets */
};

/* As octets; the CRCs that the hardware would add are zero. */
void capture_encode_header(uint8_t out[CAPTURE_HEADER]);
void capture_encode(uint8_t out[CAPTURE_RECORD], const struct capture_mad *m);

/* Return: the file with its header in it, or NULL with errno. */
FILE *capture_create(const char *path);

/* Append one record.  Return: 0, or -1 with errno. */
int capture_write(FILE *f, const struct capture_mad *m);

/* A frame of IPoIB, encapsulation header first: a datagram, or a message of a connection. */
struct capture_frame {
	uint64_t time_ns; /* since 1970 */
	uint16_t slid, dlid, pkey;
	bool connected, uc;	   /* uc: of an unreliable connection */
	uint32_t from_qpn, to_qpn; /* packets of connections have the second alone */
	uint32_t qkey;		   /* of datagrams, like the GIDs */
	const uint8_t *from, *to;  /* DDPS_IPOIB_GID_LEN octets each */
	const uint8_t *frame;
	size_t len;   /* of a datagram: at most 4096 */
	unsigned mtu; /* of the path of a connection: 256 to 4096; 0: 2048 */
};

/* Append it, a message as packets of the path's MTU.  Return: 0, or -1 with errno (EMSGSIZE: a
 * datagram that is none). */
int capture_write_frame(FILE *f, const struct capture_frame *m);

#define CAPTURE_LINKS 32 /* interfaces of a pcapng section that are known */

struct capture_reader {
	const uint8_t *p, *end;
	bool blocks, little;	       /* pcapng; the order of its numbers */
	unsigned links;		       /* of the section */
	uint16_t link[CAPTURE_LINKS];  /* types */
	uint64_t per_s[CAPTURE_LINKS]; /* units of time in a second */
	uint64_t skipped;	       /* packets that hold no CM message */
};

/* Whether the octets begin like a capture, of any kind that one may come across. */
bool capture_is(const void *buf, size_t len);

/* Return: 0, or -1 with one sentence in @why: not a capture of this kind. */
int capture_open(struct capture_reader *r, const void *buf, size_t len, char *why, size_t why_len);

/* The next CM message.  Return: 1, 0 at the end, -1: the file ends in the middle of a record. */
int capture_next(struct capture_reader *r, struct capture_mad *m);

#endif
