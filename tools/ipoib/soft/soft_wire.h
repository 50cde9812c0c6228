/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_SOFT_WIRE_H
#define DDPS_IPOIB_SOFT_WIRE_H
/*
 * What two soft ports say to each other: the header in front of each UDP datagram, and the
 * private data of a session that carries a queue pair.  Pure functions.  docs/ipoib.md has
 * both formats.
 */
#include <ddpsess/ipoib_cm.h>
#include <stdbool.h>
#include <stddef.h>

enum ddps_soft_kind { DDPS_SOFT_UD = 1, DDPS_SOFT_GROUP = 2, DDPS_SOFT_MAD = 3 };

#define DDPS_SOFT_HEADER_LEN 48
#define DDPS_SOFT_OPEN_LEN   44

struct ddps_soft_header {
	enum ddps_soft_kind kind;
	uint32_t from_qpn;		  /* 24 bits */
	uint32_t to_qpn;		  /* 24 bits */
	uint8_t from[DDPS_IPOIB_GID_LEN]; /* the sender's GID */
	uint8_t to[DDPS_IPOIB_GID_LEN];	  /* the receiver's, or the group's */
};

void ddps_soft_header_encode(uint8_t buf[DDPS_SOFT_HEADER_LEN], const struct ddps_soft_header *h);
/*
 * @len is that of the whole datagram.  Return: 0, DDPS_E_TRUNCATED (shorter than a header, or
 * a MAD that is not of 256 octets), DDPS_E_PROTOCOL (key, kind, a queue pair that cannot be).
 */
int ddps_soft_header_decode(struct ddps_soft_header *h, const void *buf, size_t len);

/* The queue pairs that a session joins. */
struct ddps_soft_open {
	uint32_t from_qpn, to_qpn;
	uint8_t from[DDPS_IPOIB_GID_LEN], to[DDPS_IPOIB_GID_LEN];
};

void ddps_soft_open_encode(uint8_t buf[DDPS_SOFT_OPEN_LEN], const struct ddps_soft_open *o);
/* Return: 0, DDPS_E_TRUNCATED (not of its length), DDPS_E_PROTOCOL (key, queue pairs). */
int ddps_soft_open_decode(struct ddps_soft_open *o, const void *buf, size_t len);

#endif
