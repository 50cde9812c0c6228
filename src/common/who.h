/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_WHO_H
#define DDPS_WHO_H
/* Who a peer is, as long as its texts are: what a session keeps of a struct ddps_peer_id. */
#include <ddpsess/secure.h>

enum ddps_who_text {
	DDPS_WHO_NAME,
	DDPS_WHO_NAMES,
	DDPS_WHO_ISSUER,
	DDPS_WHO_SERIAL,
	DDPS_WHO_VERSION,
	DDPS_WHO_SUITE,
	DDPS_WHO_GROUP,
	DDPS_WHO_ALPN,
	DDPS_WHO_TEXTS
};

struct ddps_who {
	int64_t not_before, not_after;
	uint32_t how, depth;
	uint8_t fingerprint[32];
	uint16_t len; /* of @text */
	char text[];  /* one behind the other, each with its 0 */
};

/* To be freed; NULL: no memory, or there is none to copy. */
struct ddps_who *ddps_who_keep(const struct ddps_peer_id *id);
struct ddps_who *ddps_who_copy(const struct ddps_who *w);

/* What was kept; NULL: nobody. */
void ddps_who_give(const struct ddps_who *w, struct ddps_peer_id *id);
const char *ddps_who_text(const struct ddps_who *w, enum ddps_who_text which);

#endif
