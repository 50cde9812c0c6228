/* SPDX-License-Identifier: BSD-2-Clause */
/* URI/NAME: split the transport URI from the file's name. */
#include "xfer/target.h"
#include "cli/text.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Undo %XX.  Return: 0 or -1. */
static int percent_decode(char *dst, size_t size, const char *src, size_t len)
{
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		char c = src[i];

		if (c == '%') {
			char pair[3] = "";
			uint8_t octet;

			if (len - i < 3)
				return -1;
			memcpy(pair, src + i + 1, 2);
			if (text_unhex(&octet, 1, pair) != 1 || octet == 0)
				return -1;
			c = (char)octet;
			i += 2;
		}
		if (used + 1 >= size)
			return -1;
		dst[used++] = c;
	}
	dst[used] = 0;
	return 0;
}

static bool is_shm_socket(const char *path, size_t len)
{
	char text[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	struct stat st;

	if (len >= sizeof text)
		return false;
	memcpy(text, path, len);
	text[len] = 0;
	return !stat(text, &st) && S_ISSOCK(st.st_mode);
}

/* Where the name of a file begins, with its colon.  Both a socket's path and a file's name may have colons:
 * the socket that is there decides, else it is the last one. */
static const char *find_shm_name(const char *socket)
{
	const char *end = socket + strlen(socket), *last = strrchr(socket, ':');

	for (const char *at = end; at > socket; at--)
		if ((at == end || *at == ':') && is_shm_socket(socket, (size_t)(at - socket)))
			return at;
	return last ? last : end;
}

int target_parse(struct target *t, const char *text, char *why, size_t why_len)
{
	const char *host = strstr(text, "://");
	size_t head, query = 0, name_len;
	const char *name, *rest;

	*t = (struct target){ .uri = "" };
	if (!host || host == text) {
		snprintf(why, why_len,
			 "'%s' is no URI: write tcp://HOST:PORT/NAME, or tls://, sctp:// or "
			 "sctps:// in "
			 "front; or shm:///PATH:NAME",
			 text);
		return -1;
	}
	host += 3;
	head = (size_t)(host - text) + strcspn(host, "/?");
	if (!strncasecmp(text, "shm:", 4))
		head = (size_t)(find_shm_name(host) - text);
	rest = text + head;
	if (*rest == '?') { /* URI?options/NAME */
		head += strcspn(rest, "/");
		rest = text + head;
	}
	name = *rest == '/' || *rest == ':' ? rest + 1 : rest;
	name_len =
		strchr(text, '?') && strchr(text, '?') < rest ? strlen(name) : strcspn(name, "?");
	query = strlen(name + name_len); /* URI/NAME?options */
	if (head + query > TARGET_URI_MAX) {
		snprintf(why, why_len, "URI longer than %d characters", TARGET_URI_MAX);
		return -1;
	}
	memcpy(t->uri, text, head);
	memcpy(t->uri + head, name + name_len, query);
	if (percent_decode(t->name, sizeof t->name, name, name_len)) {
		snprintf(why, why_len,
			 "name in '%s': longer than %d octets, %%00, or a %% without two "
			 "hexadecimal digits (write %%25 for %%)",
			 text, TARGET_NAME_MAX);
		return -1;
	}
	return 0;
}

const char *target_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool target_is_swapped(const char *file, const char *uri)
{
	return strstr(file, "://") && !strstr(uri, "://");
}

bool target_is_pipe(const char *path)
{
	return !strcmp(path, "-");
}
