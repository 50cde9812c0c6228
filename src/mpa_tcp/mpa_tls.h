/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_TLS_H
#define DDPS_MPA_TLS_H
/*
 * MPA inside TLS 1.3: a struct ddps_mpa_tcp over that of sockets.  To MPA a handshake is a TCP that takes
 * and brings nothing yet.
 */
#include "mpa_tcp/mpa_conn.h"
#include <ddpsess/secure.h>

/* Have @c, which moved nothing yet, speak TLS.  0 or DDPS_E_NOMEM. */
int ddps_mpa_tls_wrap(struct ddps_mpa_conn *c, const char *host);

/* Who the peer is, once the handshake is done; NULL: @c is not secured, or not yet. */
const struct ddps_who *ddps_mpa_tls_peer(const struct ddps_mpa_conn *c);

/* The handshake is under way. */
bool ddps_mpa_tls_shaking(const struct ddps_mpa_conn *c);

/* Why TLS ended @c, in place of what TCP says; false: it did not. */
bool ddps_mpa_tls_why(const struct ddps_mpa_conn *c, struct ddps_error *e);

/* The peer has sent something. */
bool ddps_mpa_tls_heard(const struct ddps_mpa_conn *c);

/* ---- mpa_told.c ---- */

/* @c has ended, see its error: say so if a listener refused it for what it is, or speaks. */
void ddps_mpa_told_end(struct ddps_mpa_conn *c);

/* ---- mpa_tls_late.c ---- */

/*
 * @c closes: its socket and @octets, of which those from @at to @len are to be sent before the FIN, are taken
 * over for @ms at most, until the peer closes.  false: there is no room, and nothing happened.
 */
bool ddps_mpa_late_take(struct ddps_mpa_conn *c, uint8_t *octets, size_t at, size_t len,
			uint32_t ms);
/* As of struct ddps_llp_provider. */
enum ddps_left ddps_mpa_late_wind_up(struct ddps_env *env, bool all);
void ddps_mpa_late_fini(struct ddps_env *env);

#endif
