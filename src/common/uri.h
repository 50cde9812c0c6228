/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_URI_H
#define DDPS_URI_H
/*
 * Transport URIs:  SCHEME://HOST:PORT[?KEY=VALUE[&KEY=VALUE...]]
 * HOST is an IPv4 address, [IPv6], [IPv6%INTERFACE], a name, or empty (any address).
 */
#include <sys/socket.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDPS_URI_ENCAP_DEFAULT (-1) /* not given */
#define DDPS_URI_ENCAP_OFF     (-2) /* encap=off: SCTP directly on IP */

struct ddps_uri {
	char scheme[8]; /* lower case, known */
	char host[256]; /* without brackets; "" = any */
	uint16_t port;
	bool numeric;	  /* host is an address or empty */
	char backend[12]; /* sctp: "auto", "kernel", "native" or "usrsctp" */
	int encap;	  /* sctp: UDP port 0..65535, or one of the two above */
	/* No part of the text: the initiator's own address, or family 0. */
	struct sockaddr_storage from;
};

/*
 * Parse @text.  On failure @why receives one sentence that names the bad part.
 * Return: 0 or DDPS_E_ADDRESS.
 */
int ddps_uri_parse(struct ddps_uri *uri, const char *text, char *why, size_t why_len);

/* Address and port of a numeric URI; @len is set.  0 or DDPS_E_ADDRESS. */
int ddps_uri_sockaddr(const struct ddps_uri *uri, struct sockaddr_storage *ss, socklen_t *len);

/* "192.0.2.1:7174", "[2001:db8::1]:7174" or "[fe80::1%eth0]:7174", always terminated. */
void ddps_addr_text(const struct sockaddr *sa, char *buf, size_t len);

#endif
