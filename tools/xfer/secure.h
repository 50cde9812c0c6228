/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_SECURE_H
#define SESSCTL_SECURE_H
/* The options --tls-... */
#include "xfer/opts.h"

/* The name of one that is there, without its dashes; NULL: there is none. */
const char *secure_given(const struct opts *o);

/*
 * Open what they name; NULL in *@s if there are none.  The caller closes it, once its context is made.
 * Return: 0 or DDPS_E_..., with a sentence in @why.
 */
int secure_open(struct ddps_secure **s, const struct opts *o, struct ddps_error *why);

/* Who the peer of a session is: @id, or NULL: the wire is not secured. */
const struct ddps_peer_id *secure_peer(const struct ddps_ep *ep, struct ddps_peer_id *id);

#endif
