/* SPDX-License-Identifier: BSD-2-Clause */
/* Secrets of connections for whoever looks at what was captured, in the format of SSLKEYLOGFILE. */
#include "secure/creds/set.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LABEL_MAX  40 /* "CLIENT_HANDSHAKE_TRAFFIC_SECRET" has 31 */
#define SECRET_MAX 64
#define RANDOM	   32

static char *put_hex(char *to, const uint8_t *p, size_t n)
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*to++ = digit[p[i] >> 4];
		*to++ = digit[p[i] & 15];
	}
	return to;
}

bool ddps_keylog_is_ours(const struct ddps_creds_set *set)
{
	const struct stat *self = &set->keylog_self;
	struct stat st;

	return set->keylog >= 0 && !fstat(set->keylog, &st) && st.st_dev == self->st_dev &&
	       st.st_ino == self->st_ino;
}

/* A line in one piece, since others may write to the file, too.  What cannot be written is missing there, and the
 * connection does without. */
int ddps_keylog_add(gnutls_session_t session, const char *label, const gnutls_datum_t *secret)
{
	const struct ddps_creds_hs *h = gnutls_session_get_ptr(session);
	char line[LABEL_MAX + 2 * (RANDOM + SECRET_MAX) + 3], *at = line;
	gnutls_datum_t client, server;
	ssize_t n;

	if (!ddps_keylog_is_ours(h->set) || strlen(label) > LABEL_MAX || secret->size > SECRET_MAX)
		return 0;
	gnutls_session_get_random(session, &client, &server);
	if (client.size != RANDOM)
		return 0;
	at = stpcpy(at, label);
	*at++ = ' ';
	at = put_hex(at, client.data, client.size);
	*at++ = ' ';
	at = put_hex(at, secret->data, secret->size);
	*at++ = '\n';
	n = write(h->set->keylog, line, (size_t)(at - line));
	(void)n;
	explicit_bzero(line, sizeof line);
	return 0;
}
