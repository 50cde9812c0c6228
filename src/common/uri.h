/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_URI_H
#define DDPS_URI_H
/*
 * Transport URIs:  SCHEME://HOST:PORT[?KEY=VALUE[&KEY=VALUE...]]
 * HOST is an IPv4 address, [IPv6], [IPv6%INTERFACE], a name, or empty (any address).
 * Over SCTP it may be a list of addresses, with commas in between: those of one endpoint.
 * Or  shm:///PATH  and  shm://@NAME: a socket's file, or its abstract name.
 */
#include <ddpsess/ctx.h>
#include <sys/socket.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DDPS_URI_ENCAP_DEFAULT (-1) /* not given */
#define DDPS_URI_ENCAP_OFF     (-2) /* encap=off: SCTP directly on IP */

#define DDPS_URI_ADDRS_MAX 8 /* of one endpoint */

struct ddps_uri_addrs {
	unsigned n;
	struct sockaddr_storage at[DDPS_URI_ADDRS_MAX];
};

struct ddps_uri {
	char scheme[8]; /* lower case, known */
	char host[256]; /* without brackets; "" = any; of a list the first */
	uint16_t port;
	bool numeric;	  /* host is an address or empty */
	char backend[12]; /* sctp: "auto", "kernel" or "native" */
	int encap;	  /* sctp: UDP port 0..65535, or one of the two above */
	struct ddps_uri_addrs
		hosts; /* sctp: a list of two or more, each with the port; else none */
	/* Own addresses, of an initiator: local=ADDRESS,... with port 0, or what its caller has set
	 * here; none: the system chooses. */
	struct ddps_uri_addrs from;
	uint8_t tos; /* of the packets: DSCP times 4, see ddps_own_tos; 0: as the system has it */
	bool crc, markers; /* tls: MPA's, which are off there unless asked for */
	/* sctp, of a listener: associations from one address; 0: as the backend has it. */
	uint16_t per_address;
};

/* SCTP inside DTLS. */
static inline bool ddps_uri_sctps(const struct ddps_uri *uri)
{
	return !strcmp(uri->scheme, "sctps");
}

/* Memory of this host; host is "/PATH" or "@NAME", "@": any, and there is no port. */
static inline bool ddps_uri_shm(const struct ddps_uri *uri)
{
	return !strcmp(uri->scheme, "shm");
}

/* Inside TLS or DTLS. */
static inline bool ddps_uri_secured(const struct ddps_uri *uri)
{
	return !strcmp(uri->scheme, "tls") || ddps_uri_sctps(uri);
}

/*
 * Parse @text.  On failure @why receives one sentence that names the bad part.
 * Return: 0 or DDPS_E_ADDRESS.
 */
int ddps_uri_parse(struct ddps_uri *uri, const char *text, char *why, size_t why_len);

/* Address and port of a numeric URI; @len is set.  0 or DDPS_E_ADDRESS. */
int ddps_uri_sockaddr(const struct ddps_uri *uri, struct sockaddr_storage *ss, socklen_t *len);

/* The octets of an address that say something. */
socklen_t ddps_addr_len(const struct sockaddr_storage *ss);

/* What ddps_addr_text() says, as numbers. */
struct ddps_addr ddps_addr_of(const struct sockaddr *sa);

/* "192.0.2.1:7174", "[2001:db8::1]:7174" or "[fe80::1%eth0]:7174", always terminated. */
void ddps_addr_text(const struct sockaddr *sa, char *buf, size_t len);
/* The same of numbers. */
void ddps_addr_text_of(const struct ddps_addr *a, char *buf, size_t len);
/* Those of @info that have numbers; the others stay.  For whoever reads them: a set-up has no time for it. */
void ddps_info_text(struct ddps_conn_info *info);

/* Of a list: "192.0.2.1,[2001:db8::1]:7174", with the first one's port. */
#define DDPS_ADDRS_TEXT 640
void ddps_addrs_text(const struct ddps_uri_addrs *list, char *buf, size_t len);

#endif
