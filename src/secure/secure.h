/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_SECURE_H
#define DDPS_SECURE_SECURE_H
/* Inside of libddpsess: credentials that a program opened, and the plug-in that has them. */
#include "secure/plugin.h"

struct ddps_secure {
	const struct ddps_tls_plugin *plugin;
	struct ddps_creds *creds;
};

/* One more that uses it, to be closed by ddps_secure_close: a copy of its own; NULL: out of memory. */
struct ddps_secure *ddps_secure_hold(const struct ddps_secure *s);

/* Whether a wire, of @datagrams, may be secured by @s, to listen or to connect; else a code and a sentence.  @s: or NULL. */
int ddps_secure_may(const struct ddps_secure *s, bool server, bool datagrams,
		    struct ddps_error *why);

int ddps_peer_id_give(struct ddps_peer_id *to, const struct ddps_peer_id *from);

#endif
