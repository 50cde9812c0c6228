/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * URIs, step by step: all that a step knows is where it is, and that a NUL ends the text.  The first step
 * takes any octets; behind it there are printable characters alone.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
/* in front: the names below are libc's */
#include "proof.h"
#include "libc_text.h"

#define WHY 200u

/* As large as Linux has it; Frama-C's is smaller than an IPv6 address. */
struct p_storage {
	sa_family_t ss_family;
	char rest[126];
} __attribute__((aligned(8)));
#define sockaddr_storage p_storage

/* The sentence about what is wrong: its texts end with a NUL, or have a length. */
#define vsnprintf(to, n, fmt, ap) ((to)[0] = 0, (to)[(n)-1] = 0, 0)

/* What libc and the system are asked about an address or an interface: any answer. */
static int p_inet_pton(int family, const char *text, void *to)
{
	p_strlen(text);
	if (either())
		return 0;
	Frama_C_make_unknown(to, family == AF_INET ? 4 : 16);
	return 1;
}
#define inet_pton(family, text, to) p_inet_pton(family, text, to)
#define if_nametoindex(name)	    (p_strlen(name) ? Frama_C_unsigned_int_interval(0, 0xffffffff) : 0)
#define if_indextoname(i, to)	    (either() ? (to) : NULL)
#define htons(v)		    be16toh(v)

/* of functions that are not looked at */
#define IN6_IS_ADDR_LINKLOCAL(a) either()
#define IN6_IS_ADDR_V4MAPPED(a)	 either()
#include "common/uri.c"

static char text[MOST];
static struct ddps_uri uri;
static char why[WHY];
static const struct parser parser = { &uri, why, sizeof why };

/* @len characters that have passed the first step, and a NUL, at the end of what may be read. */
static const char *printable(size_t len)
{
	char *p = text + MOST - len - 1;

	for (size_t i = 0; i < len; i++)
		p[i] = (char)Frama_C_interval('!', '~');
	p[len] = 0;
	return p;
}

static void make_fresh_uri(_Bool sctp)
{
	uri = (struct ddps_uri){ .backend = "auto", .encap = DDPS_URI_ENCAP_DEFAULT };
	strcpy(uri.scheme, sctp ? "sctp" : "tcp");
}

/* Where a step has stopped the next one goes on. */
static void stopped(const char *at)
{
	/*@ assert \valid_read(at) && at < text + MOST; */
	(void)at;
}

void uri_characters(void)
{
	for (size_t len = 0; len <= 40; len++) {
		/*@ slevel merge; */
		char *p = text + MOST - len - 1;

		if (len)
			Frama_C_make_unknown(p, len);
		p[len] = 0;
		check_characters(&parser, p);
	}
}

void uri_schemes(void)
{
	for (size_t len = 0; len <= 12; len++) {
		/*@ slevel merge; */
		const char *at = printable(len);

		parse_scheme(&parser, &at);
		stopped(at);
		strlen(uri.scheme); /* ends within it */
	}
}

static void a_name(size_t len)
{
	char host[HOST_MAX] = "";
	const char *at = printable(len);

	if (parse_name(&parser, &at, ",", host))
		return;
	stopped(at);
	strlen(host);
}

void uri_names(void)
{
	for (size_t len = 0; len <= 20; len++) {
		/*@ slevel merge; */
		a_name(len);
	}
}

/* One that is as long as may be, or longer: it ends near there. */
void uri_long_names(void)
{
	for (size_t len = HOST_MAX - 2; len <= HOST_MAX + 2; len++) {
		/*@ slevel merge; */
		p_first = HOST_MAX - 3;
		a_name(len);
	}
}

void uri_ports(void)
{
	for (size_t len = 0; len <= 12; len++) {
		/*@ slevel merge; */
		const char *at = printable(len);

		make_fresh_uri(either());
		uri.hosts.n = p_any(DDPS_URI_ADDRS_MAX);
		if (!parse_port(&parser, &at))
			stopped(at);
	}
}

/* An address more, whatever the list has by now. */
static void a_list(size_t len)
{
	static struct ddps_uri_addrs list;
	const char *at = printable(len);

	for (unsigned n = 0; n <= DDPS_URI_ADDRS_MAX; n++) {
		/*@ slevel merge; */
		list.n = n;
		add_list_address(&parser, &list, at);
		/*@ assert list.n <= DDPS_URI_ADDRS_MAX; */
	}
}

void uri_lists(void)
{
	for (size_t len = 0; len <= 6; len++) {
		/*@ slevel merge; */
		a_list(len);
	}
}

void uri_options(void)
{
	for (size_t len = 0; len <= 14; len++) {
		/*@ slevel merge; */
		const char *s = printable(len);
		/* "local" has been given: its list is of the steps above */
		unsigned seen = 4 | Frama_C_unsigned_int_interval(0, 3) | either() * 8u;

		make_fresh_uri(1);
		parse_option(&parser, s, p_any(len), &seen);
		/*@ assert uri.encap >= -2 && uri.encap <= 65535; */
		/*@ assert uri.from.n <= DDPS_URI_ADDRS_MAX; */
	}
}
