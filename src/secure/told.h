/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_TOLD_H
#define DDPS_SECURE_TOLD_H
/* What a listener's operator learns: peers that were refused, and files that were not taken. */
#include "common/error.h"
#include "common/llp.h"
#include "secure/creds/creds.h"

/*
 * A listener has refused @peer for @code: count it, and say it unless ten others of this code were
 * refused in this second.  @silent: it has sent nothing at all, as who looks for open ports does; that
 * is for those who read more than warnings.
 */
void ddps_told_refused(struct ddps_env *env, const char *peer, int code, const char *text,
		       bool silent);

/* Why this side cannot listen, or connect, where the call has a code only. */
void ddps_told_own(struct ddps_env *env, const char *text);

/* What ddps_creds_use has brought; code 0: what is there is in use.  No text: there was nothing to do. */
void ddps_told_news(struct ddps_env *env, const struct ddps_verdict *news);

#endif
