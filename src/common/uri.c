/* SPDX-License-Identifier: BSD-2-Clause */
/* Transport URIs. */
#include "common/uri.h"
#include <arpa/inet.h>
#include <ddpsess/err.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define PORT_MAX 65535
#define HOST_MAX sizeof(((struct ddps_uri *)0)->host)

struct parser {
	struct ddps_uri *uri;
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3))) static int bad(const struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_len, fmt, ap);
	va_end(ap);
	return DDPS_E_ADDRESS;
}

/* Decimal digits only, 0..65535; -1 for anything else. */
static int port_number(const char *s, size_t len)
{
	int v = 0;

	if (!len || len > 5)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		v = 10 * v + (s[i] - '0');
	}
	return v > PORT_MAX ? -1 : v;
}

static int parse_scheme(const struct parser *p, const char **at)
{
	static const char *const schemes[] = { "tcp", "tls", "sctp", "sctps", "shm" };

	for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
		size_t n = strlen(schemes[i]);

		if (strncasecmp(*at, schemes[i], n) || strncmp(*at + n, "://", 3))
			continue;
		memcpy(p->uri->scheme, schemes[i], n + 1);
		*at += n + 3;
		return 0;
	}
	return bad(p, "\"%.40s\" does not begin with tcp://, tls://, sctp://, sctps:// or shm://",
		   *at);
}

/* An interface by name or number; 0: there is none. */
static uint32_t find_zone(const char *zone)
{
	uint32_t index = if_nametoindex(zone);
	char name[IF_NAMESIZE];
	int number;

	if (index)
		return index;
	number = port_number(zone, strlen(zone));
	return number > 0 && if_indextoname((unsigned)number, name) ? (uint32_t)number : 0;
}

static bool is_ipv6(const char *host, uint32_t *zone, struct in6_addr *addr)
{
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 2];
	char *percent;

	if (strlen(host) >= sizeof text)
		return false;
	strcpy(text, host);
	percent = strchr(text, '%');
	*zone = 0;
	if (percent) {
		*percent = 0;
		*zone = find_zone(percent + 1);
		if (!*zone)
			return false;
	}
	return inet_pton(AF_INET6, text, addr) == 1;
}

static bool is_numeric(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;
	uint32_t zone;

	return !host[0] || inet_pton(AF_INET, host, &v4) == 1 || is_ipv6(host, &zone, &v6);
}

static void to_unix(const char *name, struct sockaddr_storage *ss)
{
	struct sockaddr_un *un = (struct sockaddr_un *)ss;

	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, name, strnlen(name, sizeof un->sun_path - 1));
	if (un->sun_path[0] == '@')
		un->sun_path[0] = 0;
}

static void set_port(struct sockaddr_storage *ss, uint16_t port)
{
	if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)ss)->sin_port = htons(port);
}

static int to_sockaddr(const char *host, uint16_t port, struct sockaddr_storage *ss, socklen_t *len)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof *ss);
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1)
		v4->sin_family = AF_INET;
	else if (!host[0] || is_ipv6(host, &v6->sin6_scope_id, &v6->sin6_addr))
		v6->sin6_family = AF_INET6;
	else
		return DDPS_E_ADDRESS;
	set_port(ss, port);
	*len = ddps_addr_len(ss);
	return 0;
}

/* Letters, digits, dot, hyphen, underscore: what a resolver can be asked for.  @host is not empty. */
static bool is_host_name(const char *host)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

	return !host[strspn(host, allowed)];
}

/* An IPv6 address as it stands between brackets. */
static int check_ipv6(const struct parser *p, const char *host)
{
	const size_t len = strcspn(host, "%");
	struct in6_addr v6;
	char alone[HOST_MAX];
	uint32_t zone;

	memcpy(alone, host, len);
	alone[len] = 0;
	if (!is_ipv6(alone, &zone, &v6))
		return bad(p, "\"%.60s\" in brackets is no IPv6 address", host);
	if (!is_ipv6(host, &zone, &v6))
		return bad(p, "\"%.60s\": this host has no interface \"%.20s\"", host,
			   host + len + 1);
	if (!zone && IN6_IS_ADDR_LINKLOCAL(&v6))
		return bad(p,
			   "\"%.60s\" is an address of one link: name the interface, as in "
			   "[%.60s%%eth0]",
			   host, host);
	return 0;
}

/* One host, up to any of @stop, into @host, of HOST_MAX octets. */
static int parse_name(const struct parser *p, const char **at, const char *stop, char *host)
{
	const char *start = *at, *end;
	bool bracket = *start == '[';

	if (bracket) {
		end = strchr(++start, ']');
		if (!end)
			return bad(p, "\"[\" without \"]\" around the IPv6 address");
		*at = end + 1;
	} else {
		end = start + strcspn(start, stop);
		*at = end;
	}
	if ((size_t)(end - start) >= HOST_MAX)
		return bad(p, "host is longer than %zu characters", HOST_MAX - 1);
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = 0;
	if (bracket && check_ipv6(p, host) < 0)
		return DDPS_E_ADDRESS;
	if (!is_numeric(host) && !is_host_name(host))
		return bad(p, "host has a character that no name has");
	return 0;
}

/* One more address of a list. */
static int add_list_address(const struct parser *p, struct ddps_uri_addrs *list, const char *host)
{
	struct sockaddr_storage ss;
	socklen_t len;

	if (!host[0] || to_sockaddr(host, 0, &ss, &len))
		return bad(p, "\"%.60s\" in a list is no address: names stand alone", host);
	if (list->n == DDPS_URI_ADDRS_MAX)
		return bad(p, "a list has more than %d addresses", DDPS_URI_ADDRS_MAX);
	for (unsigned i = 0; i < list->n; i++)
		if (!memcmp(&list->at[i], &ss, sizeof ss))
			return bad(p, "\"%.60s\" is in a list twice", host);
	list->at[list->n++] = ss;
	return 0;
}

/* The hosts of a list, from the one at @at on; it ends before any of @stop. */
static int parse_list(const struct parser *p, const char **at, const char *stop,
		      struct ddps_uri_addrs *list)
{
	char host[HOST_MAX] = "";
	int err;

	for (;; ++*at) {
		err = parse_name(p, at, stop, host);
		if (!err)
			err = add_list_address(p, list, host);
		if (err || **at != ',')
			return err;
	}
}

static int parse_host(const struct parser *p, const char **at)
{
	struct ddps_uri *u = p->uri;
	const char *start = *at;
	int err = parse_name(p, at, ",:/?#", u->host);

	if (err)
		return err;
	u->numeric = is_numeric(u->host);
	if (**at != ',')
		return 0;
	if (strcmp(u->scheme, "sctp"))
		return bad(p, "%s:// takes one address, no list", u->scheme);
	*at = start;
	return parse_list(p, at, ",:/?#", &u->hosts);
}

/* The socket of shm://: all that is behind the scheme. */
static int parse_socket(const struct parser *p, const char *at)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1, n = strlen(at);

	if (*at != '/' && *at != '@')
		return bad(p, "shm:// takes the path of a socket, as in shm:///run/user/1000/x, or "
			      "an abstract name, as in shm://@x");
	if (n > most)
		return bad(p, "the socket's name is longer than %zu characters", most);
	if (at[strcspn(at, "?#")])
		return bad(p, "shm:// takes no options");
	memcpy(p->uri->host, at, n + 1);
	p->uri->numeric = true;
	return 0;
}

static int parse_port(const struct parser *p, const char **at)
{
	size_t n, path;
	int v;

	if (**at != ':')
		return bad(p, "port is missing: write HOST:PORT, and IPv6 as [ADDRESS]:PORT");
	n = strcspn(++*at, "?");
	v = port_number(*at, n);
	path = strcspn(*at, "/?");
	if (v < 0 && path < n && port_number(*at, path) >= 0)
		return bad(p, "\"%.*s\" behind the port: a session has no path",
			   n - path > 40 ? 40 : (int)(n - path), *at + path);
	if (v < 0 && memchr(*at, ':', n))
		return bad(p,
			   "port \"%.*s\" is not a number from 0 to 65535: an IPv6 address needs "
			   "brackets, as in [::1]:7174",
			   n > 40 ? 40 : (int)n, *at);
	if (v < 0)
		return bad(p, "port \"%.*s\" is not a number from 0 to 65535", n > 40 ? 40 : (int)n,
			   *at);
	p->uri->port = (uint16_t)v;
	for (unsigned i = 0; i < p->uri->hosts.n; i++)
		set_port(&p->uri->hosts.at[i], p->uri->port);
	*at += n;
	return 0;
}

static int option_backend(const struct parser *p, const char *value, size_t len)
{
	static const char *const names[] = { "auto", "kernel", "native" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strlen(names[i]) != len || memcmp(names[i], value, len))
			continue;
		memcpy(p->uri->backend, names[i], len + 1);
		return 0;
	}
	if (len == 7 && !memcmp(value, "usrsctp", len))
		return bad(p, "backend \"usrsctp\" is gone: use native, which is the default");
	return bad(p, "backend \"%.*s\" is none of auto, kernel, native", len > 40 ? 40 : (int)len,
		   value);
}

static int option_encap(const struct parser *p, const char *value, size_t len)
{
	if (len == 3 && !memcmp(value, "off", 3)) {
		if (ddps_uri_sctps(p->uri))
			return bad(p, "sctps:// is inside DTLS over UDP: encap=off is for sctp://");
		p->uri->encap = DDPS_URI_ENCAP_OFF;
		return 0;
	}
	p->uri->encap = port_number(value, len);
	if (p->uri->encap < 0)
		return bad(p, "encap \"%.*s\" is neither \"off\" nor a UDP port",
			   len > 40 ? 40 : (int)len, value);
	return 0;
}

static int option_local(const struct parser *p, const char *value, size_t len)
{
	const char *at = value;
	int err = parse_list(p, &at, ",:/?#&", &p->uri->from);

	if (!err && at != value + len)
		return bad(p, "local \"%.*s\" is no list of addresses without ports",
			   len > 60 ? 60 : (int)len, value);
	if (!err && p->uri->from.n > 1 && ddps_uri_sctps(p->uri))
		return bad(p, "sctps:// has one path: local= takes one address");
	return err;
}

static int option_per_address(const struct parser *p, const char *value, size_t len)
{
	int v = port_number(value, len);

	if (v <= 0)
		return bad(p, "per-address \"%.*s\" is not a number from 1 to 65535",
			   len > 40 ? 40 : (int)len, value);
	p->uri->per_address = (uint16_t)v;
	return 0;
}

static int option_tos(const struct parser *p, const char *value, size_t len)
{
	int v = port_number(value, len);

	if (v < 0 || v > 255)
		return bad(p, "tos \"%.*s\" is not a number from 0 to 255",
			   len > 40 ? 40 : (int)len, value);
	p->uri->tos = (uint8_t)v;
	return 0;
}

static int take_switch(const struct parser *p, const char *key, const char *value, size_t len,
		       bool *on)
{
	if (len != 1 || (*value != '0' && *value != '1'))
		return bad(p, "%s \"%.*s\" is neither 0 nor 1", key, len > 40 ? 40 : (int)len,
			   value);
	*on = *value == '1';
	return 0;
}

static int option_crc(const struct parser *p, const char *value, size_t len)
{
	return take_switch(p, "crc", value, len, &p->uri->crc);
}

static int option_markers(const struct parser *p, const char *value, size_t len)
{
	return take_switch(p, "markers", value, len, &p->uri->markers);
}

/* Of which schemes an option is. */
enum { OF_TCP = 1, OF_TLS = 2, OF_SCTP = 4, OF_SCTPS = 8, OF_ALL = 15 };

static const struct {
	const char *key;
	unsigned of;
	int (*take)(const struct parser *p, const char *value, size_t len);
} options[] = {
	{ "backend", OF_SCTP, option_backend },
	{ "encap", OF_SCTP | OF_SCTPS, option_encap },
	{ "local", OF_SCTP | OF_SCTPS, option_local },
	{ "per-address", OF_SCTP | OF_SCTPS, option_per_address },
	{ "tos", OF_ALL, option_tos },
	{ "crc", OF_TLS, option_crc },
	{ "markers", OF_TLS, option_markers },
};

static unsigned scheme_of(const struct ddps_uri *u)
{
	const bool sctp = !strncmp(u->scheme, "sctp", 4);

	if (ddps_uri_secured(u))
		return sctp ? OF_SCTPS : OF_TLS;
	return sctp ? OF_SCTP : OF_TCP;
}

static int parse_option(const struct parser *p, const char *s, size_t len, unsigned *seen)
{
	const char *eq = memchr(s, '=', len);
	size_t key = eq ? (size_t)(eq - s) : len;
	const unsigned scheme = scheme_of(p->uri);

	for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
		if (strlen(options[i].key) != key || memcmp(options[i].key, s, key))
			continue;
		if (scheme == OF_SCTPS && options[i].take == option_backend)
			return bad(p,
				   "sctps:// takes no backend: it is inside DTLS, for which there "
				   "is one only");
		if (!(options[i].of & scheme))
			break;
		if (!eq)
			return bad(p, "option \"%s\" needs a value", options[i].key);
		if (*seen & 1u << i)
			return bad(p, "option \"%s\" is given twice", options[i].key);
		*seen |= 1u << i;
		return options[i].take(p, eq + 1, len - key - 1);
	}
	if (scheme == OF_TCP || scheme == OF_TLS)
		return bad(p, "%s:// takes no options but tos%s", p->uri->scheme,
			   scheme == OF_TLS ? ", crc and markers" : "");
	return bad(p, "unknown option \"%.*s\"", key > 40 ? 40 : (int)key, s);
}

static int parse_options(const struct parser *p, const char *at)
{
	unsigned seen = 0;
	int err = 0;

	if (!*at)
		return 0;
	do {
		size_t n = strcspn(++at, "&");

		err = parse_option(p, at, n, &seen);
		at += n;
	} while (!err && *at);
	return err;
}

/* Everything else may then be repeated in a sentence: nothing in it upsets a terminal. */
static int check_characters(const struct parser *p, const char *text)
{
	for (size_t i = 0; text[i]; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return bad(p, "character %zu is a space, a control character or not ASCII",
				   i + 1);
	return 0;
}

int ddps_uri_parse(struct ddps_uri *uri, const char *text, char *why, size_t why_len)
{
	/* cppcheck-suppress ctuuninitvar ; it is set before anything reads it */
	struct parser p = { uri, why, why_len };
	const char *at = text;
	int err;

	*uri = (struct ddps_uri){ .backend = "auto", .encap = DDPS_URI_ENCAP_DEFAULT };
	err = check_characters(&p, text);
	if (!err)
		err = parse_scheme(&p, &at);
	if (!err && ddps_uri_shm(uri))
		return parse_socket(&p, at);
	if (!err)
		err = parse_host(&p, &at);
	if (!err)
		err = parse_port(&p, &at);
	return err ? err : parse_options(&p, at);
}

int ddps_uri_sockaddr(const struct ddps_uri *uri, struct sockaddr_storage *ss, socklen_t *len)
{
	if (ddps_uri_shm(uri)) {
		memset(ss, 0, sizeof *ss);
		to_unix(uri->host, ss);
		*len = ddps_addr_len(ss);
		return 0;
	}
	return to_sockaddr(uri->host, uri->port, ss, len);
}
