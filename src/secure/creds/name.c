/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of peers, and what is demanded of them. */
#include "secure/creds/name.h"
#include <ddpsess/err_codes.h>
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DNS_MAX	  253
#define LABEL_MAX 63
#define FP_LEN	  32
#define VALUE_MAX 2048

static const char *const kind_word[DDPS_NAME_KINDS] = { "dns", "ip",  "uri",   "uri-prefix",
							"fp",  "psk", "issuer" };

/* ---- texts ---- */

void ddps_name_clean(char *dst, size_t size, const void *src, size_t len)
{
	const uint8_t *p = src;
	size_t at = 0;

	for (size_t i = 0; i < len; i++) {
		const bool plain = p[i] >= 0x20 && p[i] < 0x7f && p[i] != '\\';
		const size_t need = plain ? 1 : 4;

		/* room for the end, and for the dots unless this is the last */
		if (at + need + (i + 1 < len ? 3 : 0) + 1 > size) {
			snprintf(dst + at, size - at, "...");
			return;
		}
		if (plain)
			dst[at] = (char)p[i];
		else
			snprintf(dst + at, size - at, "\\x%02X", p[i]);
		at += need;
	}
	dst[at] = 0;
}

static void print_kind(char *dst, size_t size, enum ddps_name_kind kind, const uint8_t *p,
		       size_t len)
{
	char text[INET6_ADDRSTRLEN];
	size_t n;

	snprintf(dst, size, "%s:", kind_word[kind]);
	n = strlen(dst);
	if (kind == DDPS_NAME_IP && (len == 4 || len == 16) &&
	    inet_ntop(len == 4 ? AF_INET : AF_INET6, p, text, sizeof text))
		snprintf(dst + n, size - n, "%s", text);
	else if (kind == DDPS_NAME_FP)
		for (size_t i = 0; i < len && n + 3 <= size; i++, n += 2)
			snprintf(dst + n, size - n, "%02x", p[i]);
	else
		ddps_name_clean(dst + n, size - n, p, len);
}

void ddps_pattern_text(char *dst, size_t size, const struct ddps_pattern *pat)
{
	print_kind(dst, size, pat->kind, pat->p, pat->len);
}

void ddps_name_text(char *dst, size_t size, const struct ddps_name *name)
{
	print_kind(dst, size, name->kind, name->p, name->len);
}

/* ---- what is demanded ---- */

/* ASCII of RFC 1034, "_" which many use, and "*" as the whole first label.  The last label is not of digits alone
 * (RFC 1123 section 2.1): that is an address with a mistake in it. */
static bool is_dns_name(const char *s, size_t len)
{
	size_t label = 0, digits = 0;

	if (len > 2 && s[0] == '*' && s[1] == '.') {
		s += 2;
		len -= 2;
	}
	if (!len || len > DNS_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '.' && label && label <= LABEL_MAX && i + 1 < len)
			label = digits = 0;
		else if (isalnum((unsigned char)s[i]) || s[i] == '-' || s[i] == '_')
			label++;
		else
			return false;
		digits += isdigit((unsigned char)s[i]) != 0;
	}
	return label <= LABEL_MAX && digits < label;
}

/* Hexadecimal, with or without colons between octets. */
static bool take_fingerprint(uint8_t *dst, const char *s)
{
	for (unsigned i = 0; i < FP_LEN; i++) {
		char two[3] = { s[0], s[0] ? s[1] : 0, 0 };

		if (!isxdigit((unsigned char)two[0]) || !isxdigit((unsigned char)two[1]))
			return false;
		dst[i] = (uint8_t)strtoul(two, NULL, 16);
		s += 2;
		if (*s == ':' && i + 1 < FP_LEN)
			s++;
	}
	return !*s;
}

/* An address as on the wire; a zone ("%eth0") says where it is, not what it is. */
static size_t take_ip_name(uint8_t *dst, const char *s)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN + 1];
	size_t n = strcspn(s, "%");

	if (*s == '[' && n > 2 && s[strlen(s) - 1] == ']') {
		s++;
		n = strcspn(s, "%]");
	}
	if (n >= sizeof text)
		return 0;
	memcpy(text, s, n);
	text[n] = 0;
	if (inet_pton(AF_INET, text, dst) == 1)
		return 4;
	if (inet_pton(AF_INET6, text, dst) != 1)
		return 0;
	if (memcmp(dst, mapped, sizeof mapped) != 0)
		return 16;
	memmove(dst, dst + sizeof mapped, 4); /* a socket of IPv6 shows an address of IPv4 */
	return 4;
}

static int find_kind(const char *word)
{
	for (int k = 0; k < DDPS_NAME_KINDS; k++)
		if (!strcmp(word, kind_word[k]))
			return k;
	return -1;
}

static int refuse_value(char *why, size_t why_len, const char *kind, const char *value,
			const char *what)
{
	char text[80];

	ddps_name_clean(text, sizeof text, value, strlen(value));
	snprintf(why, why_len, "'%s' is no %s: %s", text, kind, what);
	return DDPS_E_CONFIG;
}

/* "@2" behind an identity says which of its keys it is. */
static bool has_number(const char *identity)
{
	const char *at = strrchr(identity, '@');

	return at && at != identity && at[1] && strspn(at + 1, "0123456789") == strlen(at + 1);
}

/* What the value is on the wire, in @at of VALUE_MAX octets. */
static int take_value(struct ddps_pattern *pat, uint8_t *at, const char *value, char *why,
		      size_t why_len)
{
	size_t len = strnlen(value, VALUE_MAX);

	if (pat->kind == DDPS_NAME_FP) {
		if (!take_fingerprint(at, value))
			return refuse_value(why, why_len, "fingerprint", value,
					    "64 hexadecimal digits of SHA-256 are needed");
		pat->len = FP_LEN;
		return 0;
	}
	if (pat->kind == DDPS_NAME_IP) {
		pat->len = take_ip_name(at, value);
		return pat->len ? 0 : refuse_value(why, why_len, "address", value, "IPv4 or IPv6");
	}
	if (len >= VALUE_MAX)
		return refuse_value(why, why_len, "name", value, "it is too long");
	memcpy(at, value, len);
	if (pat->kind == DDPS_NAME_DNS) {
		if (len && at[len - 1] == '.') /* the root */
			len--;
		if (!is_dns_name((char *)at, len))
			return refuse_value(why, why_len, "host name", value,
					    "letters, digits, '-' and '.' (IDN as xn--...), the "
					    "last part not of digits alone");
		for (size_t i = 0; i < len; i++)
			at[i] = (uint8_t)tolower(at[i]);
	}
	if (pat->kind == DDPS_NAME_PSK && has_number(value))
		return refuse_value(why, why_len, "identity", value,
				    "lists have it without the number of its key");
	if (!len || (pat->kind == DDPS_NAME_URI_PREFIX && at[len - 1] != '/'))
		return refuse_value(why, why_len, kind_word[pat->kind], value,
				    len ? "it has to end with /" : "it is empty");
	pat->len = len;
	return 0;
}

int ddps_pattern_parse(struct ddps_pattern *pat, const char *kind, const char *value, char *why,
		       size_t why_len)
{
	uint8_t at[VALUE_MAX];
	int k, err;

	*pat = (struct ddps_pattern){ .p = NULL };
	if (kind)
		k = find_kind(kind);
	else
		k = take_ip_name(at, value) ? DDPS_NAME_IP : DDPS_NAME_DNS;
	if (k < 0)
		return refuse_value(why, why_len, "kind of name", kind,
				    "dns, ip, uri, uri-prefix, fp, psk or issuer");
	pat->kind = (enum ddps_name_kind)k;
	err = take_value(pat, at, value, why, why_len);
	if (err)
		return err;
	pat->p = calloc(1, pat->len + 1);
	if (!pat->p) {
		snprintf(why, why_len, "out of memory");
		return DDPS_E_NOMEM;
	}
	memcpy(pat->p, at, pat->len);
	return 0;
}

void ddps_pattern_free(struct ddps_pattern *pat)
{
	free(pat->p);
	pat->p = NULL;
}

/* ---- whether it fits ---- */

static bool is_same_text(const uint8_t *a, size_t alen, const uint8_t *b, size_t blen)
{
	if (alen != blen)
		return false;
	for (size_t i = 0; i < alen; i++)
		if (tolower(a[i]) != tolower(b[i]))
			return false;
	return true;
}

static bool is_wild(const uint8_t *p, size_t len)
{
	return len > 2 && p[0] == '*' && p[1] == '.';
}

/*
 * RFC 9525 6.3: a wildcard is the whole left-most label and stands for exactly one.  Two labels have
 * to be behind it: nobody has all names below "com".
 */
static bool stands_for(const uint8_t *wild, size_t wlen, const uint8_t *name, size_t len)
{
	const uint8_t *dot = memchr(name, '.', len);

	if (!is_wild(wild, wlen) || !dot || dot == name || is_wild(name, len) ||
	    !memchr(wild + 2, '.', wlen - 2))
		return false;
	return is_same_text(wild + 1, wlen - 1, dot, len - (size_t)(dot - name));
}

bool ddps_name_is_below(const uint8_t *p, size_t len)
{
	size_t segment = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && (p[i] == '%' || p[i] == '\\'))
			return false;
		if (i < len && p[i] != '/')
			continue;
		if ((i - segment == 1 && p[segment] == '.') ||
		    (i - segment == 2 && p[segment] == '.' && p[segment + 1] == '.'))
			return false;
		segment = i + 1;
	}
	return true;
}

static bool fits_name(const struct ddps_pattern *pat, const struct ddps_name *n, bool dialled)
{
	const bool prefix = pat->kind == DDPS_NAME_URI_PREFIX;

	if (n->kind != (prefix ? DDPS_NAME_URI : pat->kind))
		return false;
	if (prefix && !ddps_name_is_below(n->p, n->len))
		return pat->denies; /* it may be anywhere */
	if (prefix)
		return n->len > pat->len && !memcmp(n->p, pat->p, pat->len);
	if (n->kind != DDPS_NAME_DNS)
		return n->len == pat->len && !memcmp(n->p, pat->p, n->len);
	if (is_same_text(n->p, n->len, pat->p, pat->len))
		return true;
	return stands_for(pat->p, pat->len, n->p, n->len) ||
	       ((dialled || pat->denies) && stands_for(n->p, n->len, pat->p, pat->len));
}

bool ddps_pattern_fits(const struct ddps_pattern *pat, const struct ddps_who *who, bool dialled,
		       const struct ddps_name **which)
{
	if (which)
		*which = NULL;
	switch (pat->kind) {
	case DDPS_NAME_FP:
		return who->fp && !memcmp(who->fp, pat->p, FP_LEN);
	case DDPS_NAME_PSK:
		return who->psk && !strcmp(who->psk, (const char *)pat->p);
	case DDPS_NAME_ISSUER:
		return who->issuer && !strcmp(who->issuer, (const char *)pat->p);
	default:
		break;
	}
	for (unsigned i = 0; i < who->nnames; i++) {
		if (!fits_name(pat, &who->name[i], dialled))
			continue;
		if (which)
			*which = &who->name[i];
		return true;
	}
	return false;
}
