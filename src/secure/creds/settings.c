/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program and its settings file say. */
#include "secure/creds/settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_MAX 65536 /* octets of the file */

static const char *const setting_word[DDPS_SETTINGS] = {
	[DDPS_SET_CERT] = "cert",   [DDPS_SET_KEY] = "key",
	[DDPS_SET_CA] = "ca",	    [DDPS_SET_CRL] = "crl",
	[DDPS_SET_PSK] = "psk",	    [DDPS_SET_PEERS] = "peers",
	[DDPS_SET_HOSTS] = "hosts", [DDPS_SET_PSK_IDENTITY] = "psk-identity",
	[DDPS_SET_PEER] = "peer",   [DDPS_SET_KEYLOG] = "keylog",
};

const char *ddps_setting_word(enum ddps_setting s)
{
	return setting_word[s];
}

/* A list of revoked certificates is signed, and an older one is, too. */
enum ddps_file_kind ddps_setting_kind(enum ddps_setting s)
{
	switch (s) {
	case DDPS_SET_CERT:
		return DDPS_FILE_SIGNED;
	case DDPS_SET_KEY:
	case DDPS_SET_PSK:
	case DDPS_SET_KEYLOG:
		return DDPS_FILE_SECRET;
	default:
		return DDPS_FILE_RULES;
	}
}

void ddps_settings_free(struct ddps_settings *s)
{
	free(s->file);
	for (int i = 0; i < DDPS_SETTINGS; i++)
		free(s->value[i]);
	*s = (struct ddps_settings){ .file = NULL };
}

int ddps_settings_take(struct ddps_settings *s, const struct ddps_secure_attr *attr)
{
	const char *const from[DDPS_SETTINGS] = {
		[DDPS_SET_CERT] = attr->cert,	[DDPS_SET_KEY] = attr->key,
		[DDPS_SET_CA] = attr->ca,	[DDPS_SET_CRL] = attr->crl,
		[DDPS_SET_PSK] = attr->psk,	[DDPS_SET_PEERS] = attr->peers,
		[DDPS_SET_HOSTS] = attr->hosts, [DDPS_SET_PSK_IDENTITY] = attr->psk_identity,
		[DDPS_SET_PEER] = attr->peer,
	};

	*s = (struct ddps_settings){ .stale_crl = attr->flags & DDPS_SECURE_STALE_CRL,
				     .judge = attr->judge,
				     .judge_user = attr->judge_user };
	if (attr->reserved || (attr->flags & ~DDPS_SECURE_STALE_CRL))
		return DDPS_E_INVAL;
	if (attr->settings && !(s->file = strdup(attr->settings)))
		return DDPS_E_NOMEM;
	for (int i = 0; i < DDPS_SETTINGS; i++)
		if (from[i] && !(s->value[i] = strdup(from[i])))
			return DDPS_E_NOMEM;
	return 0;
}

/* A file's name is relative to the folder of @file. */
static char *make_path(const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	char *path;

	if (*name == '/' || !slash)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - file), file, name) < 0 ? NULL : path;
}

static int find_setting(const char *word)
{
	for (int i = 0; i < DDPS_SETTINGS; i++)
		if (!strcmp(word, setting_word[i]))
			return i;
	return -1;
}

static void say_unknown(const char *word, char *why, size_t why_len)
{
	int n = snprintf(why, why_len, "there is no setting '%.30s': there are stale-crl", word);

	for (int i = 0; i < DDPS_SETTINGS && n > 0 && (size_t)n < why_len; i++)
		n += snprintf(why + n, why_len - (size_t)n, ", %s", setting_word[i]);
}

/* One line.  @seen: what the file has said already. */
static int take_setting(struct ddps_settings *s, unsigned *seen, const char *word,
			const char *value, char *why, size_t why_len)
{
	const int i = find_setting(word), bit = i < 0 ? DDPS_SETTINGS : i;

	if (!strncmp(word, "-----BEGIN", 10)) {
		snprintf(why, why_len,
			 "this is PEM, no settings: a certificate, a key and a CA are named each "
			 "by its "
			 "own option");
		return DDPS_E_CONFIG;
	}
	if (i < 0 && strcmp(word, "stale-crl") != 0) {
		say_unknown(word, why, why_len);
		return DDPS_E_CONFIG;
	}
	if (!*value) {
		snprintf(why, why_len, "'%.30s' needs a value behind it", word);
		return DDPS_E_CONFIG;
	}
	if (*seen & 1u << bit) {
		snprintf(why, why_len, "'%.30s' is set a second time", word);
		return DDPS_E_CONFIG;
	}
	*seen |= 1u << bit;
	if (i < 0) {
		if (strcmp(value, "accept") != 0 && strcmp(value, "refuse") != 0) {
			snprintf(why, why_len, "stale-crl is 'refuse' or 'accept'");
			return DDPS_E_CONFIG;
		}
		s->stale_crl |= *value == 'a';
		return 0;
	}
	if (s->value[i])
		return 0; /* the program's takes precedence */
	s->value[i] = i < DDPS_SET_PATHS ? make_path(s->file, value) : strdup(value);
	if (s->value[i])
		return 0;
	snprintf(why, why_len, "out of memory");
	return DDPS_E_NOMEM;
}

static int copy_settings(struct ddps_settings *to, const struct ddps_settings *from)
{
	*to = (struct ddps_settings){ .stale_crl = from->stale_crl,
				      .judge = from->judge,
				      .judge_user = from->judge_user };
	if (from->file && !(to->file = strdup(from->file)))
		return DDPS_E_NOMEM;
	for (int i = 0; i < DDPS_SETTINGS; i++)
		if (from->value[i] && !(to->value[i] = strdup(from->value[i])))
			return DDPS_E_NOMEM;
	return 0;
}

int ddps_settings_read(struct ddps_settings *to, const struct ddps_settings *given,
		       struct ddps_stamp *stamp, char *why, size_t why_len)
{
	unsigned number = 0, seen = 0;
	struct ddps_vault v;
	char *at, *line, said[180];
	int err = copy_settings(to, given);

	*stamp = (struct ddps_stamp){ .err = 0 };
	if (err || !given->file) {
		snprintf(why, why_len, "out of memory");
		return err;
	}
	err = ddps_file_read(&v, given->file, SETTINGS_MAX, DDPS_FILE_RULES, stamp, why, why_len);
	if (err)
		return err;
	at = (char *)v.p;
	while (!err && (line = ddps_file_line(&at, &number))) {
		char *value = line + strcspn(line, " \t=");

		if (*value) {
			*value++ = 0;
			value += strspn(value, " \t=");
		}
		err = take_setting(to, &seen, line, value, said, sizeof said);
		if (err)
			snprintf(why, why_len, "line %u: %s", number, said);
	}
	if (!err && !seen) { /* it was emptied, maybe: without what it said more peers would do */
		snprintf(why, why_len, "has no line that counts");
		err = DDPS_E_CONFIG;
	}
	ddps_vault_free(&v);
	return err;
}
