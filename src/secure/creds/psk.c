/* SPDX-License-Identifier: BSD-2-Clause */
/* Pre-shared keys. */
#include "secure/creds/psk.h"
#include "secure/creds/file.h"
#include "secure/creds/name.h"
#include <ddpsess/err_codes.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PSK_MAX	     4096 /* keys of a file */
#define IDENTITY_MAX 255
#define KEY_MIN	     16 /* octets; what is shorter may be guessed from one handshake */
#define KEY_MAX	     64
#define NUMBER_MAX   9 /* digits */

static int get_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Hexadecimal at @hex to octets at the same place; -1: it is not, else the number of octets. */
static long take_hex(char *hex)
{
	unsigned char *to = (unsigned char *)hex;
	long n = 0;

	for (; *hex; hex += 2, n++) {
		const int high = get_digit(hex[0]), low = high < 0 ? -1 : get_digit(hex[1]);

		if (low < 0)
			return -1;
		to[n] = (unsigned char)(high << 4 | low);
	}
	return n;
}

/* Cut "@2" off in thought. */
static void take_number(struct ddps_psk *p)
{
	const char *at = strrchr(p->identity, '@');
	const size_t digits = at ? strspn(at + 1, "0123456789") : 0;

	p->name_len = (unsigned char)strlen(p->identity);
	if (!digits || digits > NUMBER_MAX || at[1 + digits] || at == p->identity)
		return;
	p->name_len = (unsigned char)(at - p->identity);
	p->number = (uint32_t)strtoul(at + 1, NULL, 10);
}

static const char *check_identity(const char *s)
{
	const size_t len = strlen(s);

	if (!len || len > IDENTITY_MAX)
		return "an identity has 1 to 255 characters";
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return "an identity is printable ASCII without blanks";
	return NULL;
}

/* NULL, or what is wrong with the line. */
static const char *take_line(struct ddps_psk *p, char *line)
{
	char *colon = strchr(line, ':');
	const char *wrong;
	long len;

	if (!strncmp(line, "-----BEGIN", 10))
		return "this is PEM, no pre-shared keys: a certificate, a key and a CA are named "
		       "each by its own option";
	if (!colon)
		return "a line is IDENTITY:HEX";
	*colon = 0;
	wrong = check_identity(line);
	if (wrong)
		return wrong;
	len = take_hex(colon + 1);
	if (len < 0)
		return "the key is not hexadecimal";
	if (len < KEY_MIN || len > KEY_MAX)
		return "a key has 16 to 64 octets (32 to 128 digits): make one with 'sessctl keys "
		       "psk'";
	*p = (struct ddps_psk){ .identity = line,
				.key = (unsigned char *)colon + 1,
				.key_len = (unsigned char)len };
	take_number(p);
	return NULL;
}

int ddps_psks_take(struct ddps_psks *t, struct ddps_vault *text, char *why, size_t why_len)
{
	char *at = (char *)text->p, *line;
	unsigned number = 0;

	*t = (struct ddps_psks){ .vault = *text };
	*text = (struct ddps_vault){ .p = NULL };
	t->psk = calloc(PSK_MAX, sizeof *t->psk);
	if (!t->psk) {
		snprintf(why, why_len, "needs memory that is not there");
		return DDPS_E_NOMEM;
	}
	while ((line = ddps_file_line(&at, &number))) {
		struct ddps_psk p = { .identity = NULL };
		const char *wrong = take_line(&p, line);

		if (!wrong && ddps_psks_find(t, p.identity, strlen(p.identity)))
			wrong = "this identity is in the file already";
		if (!wrong && t->n == PSK_MAX)
			wrong = "there are more than 4096 keys";
		if (wrong) {
			snprintf(why, why_len, "line %u: %s", number, wrong);
			return DDPS_E_CONFIG;
		}
		t->psk[t->n++] = p;
	}
	return 0;
}

void ddps_psks_free(struct ddps_psks *t)
{
	ddps_vault_free(&t->vault);
	free(t->psk);
	*t = (struct ddps_psks){ .psk = NULL };
}

const struct ddps_psk *ddps_psks_find(const struct ddps_psks *t, const void *identity, size_t len)
{
	const struct ddps_psk *found = NULL;

	for (unsigned i = 0; i < t->n; i++)
		if (strlen(t->psk[i].identity) == len && !memcmp(t->psk[i].identity, identity, len))
			found = &t->psk[i];
	return found;
}

bool ddps_psk_is(const struct ddps_psk *p, const char *name)
{
	return strlen(name) == p->name_len && !strncmp(p->identity, name, p->name_len);
}

const struct ddps_psk *ddps_psks_mine(const struct ddps_psks *t, const char *name)
{
	const struct ddps_psk *best = NULL;

	for (unsigned i = 0; i < t->n; i++) {
		const struct ddps_psk *p = &t->psk[i];

		if (name && !ddps_psk_is(p, name))
			continue;
		if (best && (best->name_len != p->name_len ||
			     strncmp(best->identity, p->identity, p->name_len) != 0))
			return NULL;
		if (!best || p->number >= best->number)
			best = p;
	}
	return best;
}
