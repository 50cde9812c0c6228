/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_SOFT_OPTS_H
#define SESSCTL_IPOIB_SOFT_OPTS_H
/*
 * The options of sessctl ipoib that the soft port needs: --udp, --peer and session URIs.
 * All return 0, or -1 with a sentence in @why.
 */
#include "ipoib/ipoib.h"
#include "ipoib/soft/soft.h"

#define SOFT_TEXT_MAX 300 /* of one option's value */

struct soft_peer {
	char uri[SOFT_TEXT_MAX];
	struct ddps_soft_peer peer; /* its URI is the one above */
};

/* "192.0.2.1:7000" or "[2001:db8::1]:7000" */
int soft_address(struct sockaddr_storage *a, const char *option, const char *text, char *why,
		 size_t why_len);

/* @given, or TCP on the same address and port number as the datagrams. */
int soft_uri(char dst[SOFT_TEXT_MAX], const char *given, const char *udp, const char *option,
	     char *why, size_t why_len);

/* Every --peer, "GID,HOST:PORT[,URI]"; @own: gid and udp are set. */
int soft_peers(struct soft_peer peer[OPTVAL_LIST_MAX], const struct ipoib_opts *o,
	       const struct ddps_soft_config *own, char *why, size_t why_len);

/* What to try if a port cannot be opened for that errno; NULL: no idea. */
const char *soft_advice(int err);

#endif
