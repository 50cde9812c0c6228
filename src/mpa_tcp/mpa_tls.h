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
int ddps_mpa_tls_wrap(struct ddps_mpa_conn *c, const char *host, const char *peer);

/* Who the peer is, once the handshake is done; NULL: @c is not secured, or not yet. */
const struct ddps_peer_id *ddps_mpa_tls_peer(const struct ddps_mpa_conn *c);

/* The handshake is under way. */
bool ddps_mpa_tls_shaking(const struct ddps_mpa_conn *c);

/* Why TLS ended @c, in place of what TCP says; false: it did not. */
bool ddps_mpa_tls_why(const struct ddps_mpa_conn *c, struct ddps_error *e);

#endif
