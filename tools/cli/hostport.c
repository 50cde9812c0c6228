/* SPDX-License-Identifier: BSD-2-Clause */
/* HOST:PORT in text. */
#include "cli/hostport.h"
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 320

/* What stands between "://" and the options. */
static const char *authority(const char *uri, size_t *len)
{
	const char *s = strstr(uri, "://");

	s = s ? s + 3 : uri;
	*len = strcspn(s, "?/");
	return s;
}

/* The colon before the port; those inside brackets are the address's. */
static size_t colon(const char *s, size_t len)
{
	while (len && s[len - 1] != ':' && s[len - 1] != ']')
		len--;
	return len && s[len - 1] == ':' ? len - 1 : SIZE_MAX;
}

bool hostport_has_host(const char *uri)
{
	size_t len;
	const char *s = authority(uri, &len);

	return len && *s != ':';
}

bool hostport_has_port(const char *uri)
{
	size_t len, at;
	const char *s = authority(uri, &len);

	at = colon(s, len);
	return at != SIZE_MAX && strtoul(s + at + 1, NULL, 10) > 0;
}

/* getaddrinfo() takes the rest of a larger one. */
static bool is_port(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && n <= 5 && !s[n] && strtoul(s, NULL, 10) <= UINT16_MAX;
}

int hostport_parse(struct sockaddr_storage *ss, const char *text)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
					.ai_socktype = SOCK_DGRAM };
	size_t len = strlen(text), at = colon(text, len);
	struct addrinfo *found;
	char buf[TEXT_MAX], *host = buf;

	if (at == SIZE_MAX || !at || len >= sizeof buf || !is_port(text + at + 1))
		return -1;
	memcpy(buf, text, len + 1);
	buf[at] = 0;
	if (*buf == '[' && buf[at - 1] == ']') {
		buf[at - 1] = 0;
		host++;
	} else if (strpbrk(buf, "[]:")) {
		return -1; /* IPv6 goes into brackets: where else would its port begin? */
	}
	if (getaddrinfo(host, buf + at + 1, &hints, &found))
		return -1;
	memcpy(ss, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}
