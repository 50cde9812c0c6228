/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of settings.  Its lines are cut apart in place: KEY NUL VALUE NUL. */
#include "verbs/vd_config.h"
#include "common/system/say.h"
#include <ddpsess/secure.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLANKS " \t\r"

static const char *const known[] = { "DDPSESS_TRANSPORT", "DDPSESS_DEVICE",   "DDPSESS_CRC",
				     "DDPSESS_P2P",	  "DDPSESS_RETRY_MS", "DDPSESS_NO_RECV",
				     "DDPSESS_RFC7306",	  "DDPSESS_STATS",    "DDPSESS_PLACED",
				     "DDPSESS_FAULTS",	  "DDPSESS_SEED",     "DDPSESS_TRACE",
				     "DDPSESS_CAPTURE",	  "DDPSESS_FACE",     "DDPSESS_PROFILE",
				     "DDPSESS_CHECK",	  "DDPSESS_SUPPRESS", "DDPSESS_WATCH",
				     "DDPSESS_STRICT",	  "DDPSESS_SHM" };

#define AT(member) offsetof(struct ddps_secure_attr, member)

const struct vd_tls_word vd_tls_words[VD_TLS_WORDS] = {
	{ "DDPSESS_TLS", AT(settings) },    { "DDPSESS_TLS_CERT", AT(cert) },
	{ "DDPSESS_TLS_KEY", AT(key) },	    { "DDPSESS_TLS_CA", AT(ca) },
	{ "DDPSESS_TLS_CRL", AT(crl) },	    { "DDPSESS_TLS_PSK", AT(psk) },
	{ "DDPSESS_TLS_PEERS", AT(peers) }, { "DDPSESS_TLS_PSK_IDENTITY", AT(psk_identity) },
	{ "DDPSESS_TLS_HOSTS", AT(hosts) }, { "DDPSESS_TLS_PEER", AT(peer) },
};

#define NKNOWN (sizeof known / sizeof *known)

/* Letters of the longer of two that are neither of a common beginning nor of a common end. */
static size_t count_other_letters(const char *a, const char *b)
{
	size_t alen = strlen(a), blen = strlen(b), same = 0;
	const size_t least = alen < blen ? alen : blen, most = alen + blen - least;

	while (same < least && a[same] == b[same])
		same++;
	while (same < least && a[alen - 1] == b[blen - 1]) {
		alen--;
		blen--;
		same++;
	}
	return most - same;
}

/* The setting that has this name, or nearly; NULL: none has. */
static const char *find_setting_name(const char *key)
{
	const char *near = NULL;
	size_t best = 3;

	for (size_t i = 0; i < NKNOWN + VD_TLS_WORDS; i++) {
		const char *name = i < NKNOWN ? known[i] : vd_tls_words[i - NKNOWN].name;
		size_t d = count_other_letters(key, name);

		if (d < best) {
			best = d;
			near = name;
		}
	}
	return near;
}

/* What is between @from and @to without blanks around; NUL-terminated in place. */
static char *trim(char *from, char *to)
{
	from += strspn(from, BLANKS);
	while (to > from && strchr(BLANKS, to[-1]))
		to--;
	*to = 0;
	return from;
}

static void add_word(struct vd_settings *s, const char *word)
{
	size_t n = strlen(word) + 1;

	memmove(s->text + s->len, word, n);
	s->len += n;
}

/* What is kept is never longer than what was read, so it goes where that was. */
static void take_setting_line(struct vd_settings *s, char *line, const char *path, unsigned number)
{
	char *end = line + strlen(line), *equal = strchr(line, '='), *key, *value;
	const char *name;

	line += strspn(line, BLANKS);
	if (!*line || *line == '#')
		return;
	if (!equal) {
		ddps_say("ddpsess: %s:%u: not KEY=VALUE\n", path, number);
		return;
	}
	value = trim(equal + 1, end);
	key = trim(line, equal);
	name = find_setting_name(key);
	if (!name || strcmp(name, key) != 0) {
		ddps_say("ddpsess: %s:%u: no setting has the name '%.60s'%s%s\n", path, number, key,
			 name ? ": did you mean " : "; sessctl-run(1) lists them",
			 name ? name : "");
		return;
	}
	add_word(s, key);
	add_word(s, value);
}

/* Return: octets read, or -1 and errno; E2BIG if the file is longer than it may be. */
static ssize_t read_settings_file(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;
	ssize_t n = 0, got = 0;

	if (fd < 0)
		return -1;
	while ((size_t)got < len && (n = read(fd, buf + got, len - (size_t)got)) > 0)
		got += n;
	error = (size_t)got == len ? E2BIG : errno;
	close(fd);
	errno = error;
	return n < 0 || (size_t)got == len ? -1 : got;
}

void vd_settings_read(struct vd_settings *s)
{
	const char *named = secure_getenv("DDPSESS_CONF");
	const char *path = named && *named ? named : VD_SETTINGS_FILE;
	unsigned number = 0;
	char *at, *end;
	ssize_t n;

	s->len = 0;
	n = read_settings_file(path, s->text, sizeof s->text);
	if (n < 0) {
		if (errno != ENOENT || path == named)
			ddps_say("ddpsess: %s: %s; it is not used\n", path, strerror(errno));
		return;
	}
	s->text[n] = 0;
	for (at = s->text; at < s->text + n; at = end + 1) {
		end = at + strcspn(at, "\n");
		*end = 0;
		take_setting_line(s, at, path, ++number);
	}
}

const char *vd_settings_get(const struct vd_settings *s, const char *name)
{
	const char *v = getenv(name), *at = s->text;

	if (v)
		return v;
	while (at < s->text + s->len) {
		const char *value = at + strlen(at) + 1;

		if (!strcmp(at, name))
			v = value;
		at = value + strlen(value) + 1;
	}
	return v;
}
