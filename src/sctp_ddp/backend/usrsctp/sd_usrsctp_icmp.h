/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_USRSCTP_ICMP_H
#define DDPS_SD_USRSCTP_ICMP_H
/*
 * ICMP about packets that we sent (RFC 9260 10, RFC 6951 5.5): that nobody is at the peer's port
 * any more ends the association that it quotes, that a packet is too big narrows its path, and
 * nothing else counts.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddps_us_carrier;
struct sock_extended_err;
struct sockaddr_storage;

/* The beginning of one of our packets, as an ICMP message quotes it. */
struct ddps_us_quote {
	uint16_t sport, dport;
	uint32_t tag; /* Verification Tag; of an INIT, which has none, its Initiate Tag */
	bool init;
};

/* false: too little, or what no packet of ours begins with. */
bool ddps_us_quote_parse(const uint8_t *p, size_t len, struct ddps_us_quote *q);

/* Whether the peer's host says that there is nobody: port or protocol unreachable. */
bool ddps_us_icmp_nobody(const struct sock_extended_err *e);

/* Whether a router says that its next link takes less; ee_info is how much. */
bool ddps_us_icmp_too_big(const struct sock_extended_err *e);

/* Locked: a message about a packet of @c to @to, of which it quotes @len octets. */
void ddps_us_icmp_take(struct ddps_us_carrier *c, const struct sockaddr_storage *to,
		       const struct sock_extended_err *e, const uint8_t *quoted, size_t len);

/* Locked: take what is in the error queue of @c's socket. */
void ddps_us_icmp_read(struct ddps_us_carrier *c);

#endif
