/* SPDX-License-Identifier: BSD-2-Clause */
/* URIs and addresses, read here a second time. */
#include "conform/peer/inside.h"
#include "conform/peer/shared.h"
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first host, and the port, of a URI that ddps_uri_check() finds well formed; "" and brackets are dealt with. */
static void split_host_port(const char *uri, char *host, size_t host_len, char *port,
			    size_t port_len)
{
	const char *s = strstr(uri, "://") + 3, *end = s + strcspn(s, "?"), *colon = end;
	size_t n = strcspn(s, ",");

	while (*--colon != ':')
		;
	snprintf(port, port_len, "%.*s", (int)(end - colon - 1), colon + 1);
	if (n > (size_t)(colon - s))
		n = (size_t)(colon - s);
	if (*s == '[') {
		s++;
		n -= 2;
	}
	snprintf(host, host_len, "%.*s", (int)n, s);
}

void cf_uri_host(const char *uri, char *host, size_t len)
{
	char port[8];

	split_host_port(uri, host, len, port, sizeof port);
}

/* "backend=...", "encap=...", in any order. */
static void read_uri_options(const char *uri, struct cf_at *at)
{
	const char *s = strchr(uri, '?');

	at->encap = CF_ENCAP_DEFAULT;
	for (; s; s = strchr(s, '&')) {
		s++;
		if (!strncmp(s, "encap=off", 9))
			at->encap = CF_ENCAP_OFF;
		else if (!strncmp(s, "encap=", 6))
			at->encap = (int)strtoul(s + 6, NULL, 10);
		else if (!strncmp(s, "backend=", 8))
			snprintf(at->backend, sizeof at->backend, "%.*s", (int)strcspn(s + 8, "&"),
				 s + 8);
	}
}

const char *cf_self_uri(const struct cf *cf)
{
	if (cf->wire == CF_SCTP)
		return "sctp://127.0.0.1:0?backend=native&encap=0";
	return cf->run->shared ? "shm://@" : "tcp://127.0.0.1:0";
}

void cf_address(struct cf *cf, const char *uri, struct cf_at *at)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *list;
	char host[256], port[8], why[200];
	int err = ddps_uri_check(uri, why, sizeof why);

	*at = (struct cf_at){ 0 };
	CF_CHECK(cf, !err, "%s: %s", uri, why);
	cf->dialling = cf->c->target == CF_RESPONDER && cf->conn && !cf->conn->number;
	if (cf->run->shared) {
		cf_shared_address(uri, &at->ss, &at->len);
		return;
	}
	split_host_port(uri, host, sizeof host, port, sizeof port);
	read_uri_options(uri, at);
	err = getaddrinfo(*host ? host : NULL, port, &hints, &list);
	CF_CHECK(cf, !err, "no address for '%s': %s", host, gai_strerror(err));
	memcpy(&at->ss, list->ai_addr, list->ai_addrlen);
	at->len = list->ai_addrlen;
	freeaddrinfo(list);
}

void cf_addr_text(const struct sockaddr_storage *ss, char *buf, size_t len)
{
	socklen_t n = ss->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						: sizeof(struct sockaddr_in);
	char host[80], port[8];

	if (getnameinfo((const struct sockaddr *)ss, n, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(buf, len, "?");
	else
		snprintf(buf, len, ss->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}
