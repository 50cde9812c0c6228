/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as text, the same way everywhere; and their length. */
#include "common/uri.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

/* The length is a part of an abstract name; without one the system chooses. */
static socklen_t unix_len(const struct sockaddr_un *un)
{
	const size_t path = offsetof(struct sockaddr_un, sun_path);

	if (un->sun_path[0])
		return sizeof *un;
	if (!un->sun_path[1])
		return (socklen_t)path;
	return (socklen_t)(path + 1 + strnlen(un->sun_path + 1, sizeof un->sun_path - 1));
}

socklen_t ddps_addr_len(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_UNIX)
		return unix_len((const struct sockaddr_un *)ss);
	return ss->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* A link-local address is useless without its interface (RFC 4007 11). */
static void ipv6_text(const struct sockaddr_in6 *v6, char *buf, size_t len)
{
	char host[INET6_ADDRSTRLEN] = "?", name[IF_NAMESIZE];
	unsigned port = ntohs(v6->sin6_port), zone = v6->sin6_scope_id;

	inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
	if (!zone || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
		snprintf(buf, len, "[%s]:%u", host, port);
	else if (if_indextoname(zone, name))
		snprintf(buf, len, "[%s%%%s]:%u", host, name, port);
	else
		snprintf(buf, len, "[%s%%%u]:%u", host, zone, port);
}

/* @n: of an octet, or of a port. */
static inline char *decimal(char *p, unsigned n)
{
	if (n >= 10000)
		*p++ = (char)('0' + n / 10000);
	if (n >= 1000)
		*p++ = (char)('0' + n / 1000 % 10);
	if (n >= 100)
		*p++ = (char)('0' + n / 100 % 10);
	if (n >= 10)
		*p++ = (char)('0' + n / 10 % 10);
	*p++ = (char)('0' + n % 10);
	return p;
}

/* By hand: each set-up has a dozen of them, and inet_ntop() and snprintf() took a tenth of it. */
static void ipv4_text(const void *addr, in_port_t port, char *buf, size_t len)
{
	char text[sizeof "255.255.255.255:65535"], *p = text;
	uint8_t octet[4];
	size_t n;

	memcpy(octet, addr, sizeof octet);
	for (int i = 0; i < 4; i++) {
		p = decimal(p, octet[i]);
		*p++ = i < 3 ? '.' : ':';
	}
	p = decimal(p, ntohs(port));
	n = (size_t)(p - text);
	if (!len)
		return;
	if (n >= len)
		n = len - 1;
	memcpy(buf, text, n);
	buf[n] = 0;
}

static void unix_text(const struct sockaddr_un *un, char *buf, size_t len)
{
	const char *name = un->sun_path;
	const bool abstract = !name[0];

	snprintf(buf, len, "%s%.*s", abstract ? "@" : "", (int)sizeof un->sun_path - abstract,
		 name + abstract);
}

void ddps_addr_text(const struct sockaddr *sa, char *buf, size_t len)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

	if (sa->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		/* An IPv4 peer of a dual-stack socket is shown as what it is. */
		ipv4_text(&v6->sin6_addr.s6_addr[12], v6->sin6_port, buf, len);
	} else if (sa->sa_family == AF_INET6) {
		ipv6_text(v6, buf, len);
	} else if (sa->sa_family == AF_INET) {
		ipv4_text(&v4->sin_addr, v4->sin_port, buf, len);
	} else if (sa->sa_family == AF_UNIX) {
		unix_text((const struct sockaddr_un *)sa, buf, len);
	} else {
		snprintf(buf, len, "?");
	}
}

void ddps_addr_text_of(const struct ddps_addr *a, char *buf, size_t len)
{
	struct sockaddr_in6 v6 = { .sin6_port = htons(a->port), .sin6_scope_id = a->scope };

	memcpy(&v6.sin6_addr, a->ip, sizeof v6.sin6_addr);
	if (a->family == 6)
		ipv6_text(&v6, buf, len);
	else if (a->family == 4)
		ipv4_text(a->ip, v6.sin6_port, buf, len);
	else
		snprintf(buf, len, "?");
}

void ddps_info_text(struct ddps_conn_info *i)
{
	if (i->local_addr.family)
		ddps_addr_text_of(&i->local_addr, i->local, sizeof i->local);
	if (i->peer_addr.family)
		ddps_addr_text_of(&i->peer_addr, i->peer, sizeof i->peer);
}

struct ddps_addr ddps_addr_of(const struct sockaddr *sa)
{
	struct ddps_addr a = { .family = 0 };
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (sa->sa_family == AF_INET) {
		memcpy(&v4, sa, sizeof v4);
		memcpy(a.ip, &v4.sin_addr, sizeof v4.sin_addr);
		a.port = ntohs(v4.sin_port);
		a.family = 4;
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&v6, sa, sizeof v6);
		a.port = ntohs(v6.sin6_port);
		a.family = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? 4 : 6;
		if (a.family == 4)
			memcpy(a.ip, v6.sin6_addr.s6_addr + 12, 4);
		else
			memcpy(a.ip, &v6.sin6_addr, sizeof a.ip);
		if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr))
			a.scope = v6.sin6_scope_id;
	}
	return a;
}

void ddps_addrs_text(const struct ddps_uri_addrs *list, char *buf, size_t len)
{
	char one[72];
	size_t at = 0;

	buf[0] = 0;
	for (unsigned i = 0; i < list->n && at < len; i++) {
		ddps_addr_text((const struct sockaddr *)&list->at[i], one, sizeof one);
		if (i + 1 < list->n)
			strcpy(strrchr(one, ':'), ","); /* its port */
		at += (size_t)snprintf(buf + at, len - at, "%s", one);
	}
}
