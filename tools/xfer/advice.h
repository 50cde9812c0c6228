/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_ADVICE_H
#define SESSCTL_ADVICE_H
/* What a person can try next after a failure. */
#include "xfer/opts.h"

/*
 * @was_up: the session had been established.
 * Return: a constant sentence, or NULL if there is nothing sensible to say.
 */
const char *advice_for(const struct ddps_error *e, const struct opts *o, bool was_up);

/* Whether a Terminate was sent or received; a lost connection has a code too, but no such. */
static inline bool advice_is_terminate(const struct ddps_error *e)
{
	return e->has_triple && e->code == DDPS_E_TERMINATED;
}

/* What the listener's @reason for a refusal suggests: a constant sentence. */
const char *advice_refused(const char *reason);

/*
 * Whether @uri is well formed and names a host, and unless @listening a port.  DDPS_E_ADDRESS then
 * means that the host's name has no address.
 */
bool advice_uri_whole(const char *uri, bool listening);

/* What a failed call says of @uri: the bad part of its form, or the error's text. */
const char *advice_uri(int err, const char *uri, bool listening, char *buf, size_t len);

#endif
