/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a peer is, in little memory. */
#include "common/who.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_AT(member)                                                                            \
	{                                                                                          \
		offsetof(struct ddps_peer_id, member), sizeof((struct ddps_peer_id *)0)->member    \
	}

static const struct {
	size_t at, size;
} texts[DDPS_WHO_TEXTS] = {
	[DDPS_WHO_NAME] = TEXT_AT(name),       [DDPS_WHO_NAMES] = TEXT_AT(names),
	[DDPS_WHO_ISSUER] = TEXT_AT(issuer),   [DDPS_WHO_SERIAL] = TEXT_AT(serial),
	[DDPS_WHO_VERSION] = TEXT_AT(version), [DDPS_WHO_SUITE] = TEXT_AT(suite),
	[DDPS_WHO_GROUP] = TEXT_AT(group),     [DDPS_WHO_ALPN] = TEXT_AT(alpn),
};

struct ddps_who *ddps_who_keep(const struct ddps_peer_id *id)
{
	char text[sizeof *id];
	struct ddps_who *w;
	size_t len = 0;

	for (int i = 0; i < DDPS_WHO_TEXTS; i++) {
		const char *from = (const char *)id + texts[i].at;
		const size_t n = strnlen(from, texts[i].size - 1);

		memcpy(text + len, from, n);
		text[len + n] = 0;
		len += n + 1;
	}
	w = malloc(sizeof *w + len);
	if (!w)
		return NULL;
	*w = (struct ddps_who){ .not_before = id->not_before,
				.not_after = id->not_after,
				.how = id->how,
				.depth = id->depth,
				.len = (uint16_t)len };
	memcpy(w->fingerprint, id->fingerprint, sizeof w->fingerprint);
	memcpy(w->text, text, len);
	return w;
}

struct ddps_who *ddps_who_copy(const struct ddps_who *w)
{
	struct ddps_who *copy = w ? malloc(sizeof *w + w->len) : NULL;

	if (copy)
		memcpy(copy, w, sizeof *w + w->len);
	return copy;
}

const char *ddps_who_text(const struct ddps_who *w, enum ddps_who_text which)
{
	const char *at = w->text;

	for (int i = 0; i < (int)which; i++)
		at += strlen(at) + 1;
	return at;
}

void ddps_who_give(const struct ddps_who *w, struct ddps_peer_id *id)
{
	const char *at = w ? w->text : NULL;

	*id = (struct ddps_peer_id){ .struct_size = sizeof *id };
	if (!w)
		return;
	id->not_before = w->not_before;
	id->not_after = w->not_after;
	id->how = w->how;
	id->depth = w->depth;
	memcpy(id->fingerprint, w->fingerprint, sizeof id->fingerprint);
	for (int i = 0; i < DDPS_WHO_TEXTS; i++) {
		const size_t n = strlen(at) + 1;

		memcpy((char *)id + texts[i].at, at, n);
		at += n;
	}
}
