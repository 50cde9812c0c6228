/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_TLS_IN_H
#define DDPS_CONFORM_TLS_IN_H
/* What tls.c and dtls.c share. */
#include "conform/tls/tls.h"
#include <gnutls/gnutls.h>

/* Whether certificates or a pre-shared key; the name that the certificate has to have, of @host. */
bool cf_tls_by_psk(const struct cf_tls_creds *c);
int cf_tls_give(gnutls_session_t s, struct cf_tls_creds *c, bool server, const char *host,
		unsigned how);

/* ---- dtls.c: as in struct cf_tls_lib ---- */

struct cf_dtls *cf_dtls_dial(struct cf_tls_creds *creds, const struct sockaddr *to, socklen_t len,
			     const char *host, unsigned limit_ms, struct sockaddr_in *inner,
			     char *why, size_t why_len);
struct cf_dtls *cf_dtls_front(struct cf_tls_creds *creds, int outer,
			      const struct sockaddr_in *inner, char *why, size_t why_len);
void cf_dtls_close(struct cf_dtls *d);

#endif
