/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_SECURED_H
#define DDPS_CONFORM_SECURED_H
/* Below the peer's octets: TCP itself, or TLS in it.  tcp.c and a few cases of TLS look inside. */
#include "conform/peer/peer.h"
#include "conform/tls/tls.h"

/* A run's. */
struct cf_secured {
	const struct cf_tls_lib *lib;
	struct cf_tls_creds *creds;
	bool x509; /* certificates, no pre-shared key */
};

/* 0 or DDPS_E_*, with a sentence in @why. */
int cf_secured_load(struct cf_secured *s, const struct ddps_secure_attr *attr, char *why,
		    size_t len);
void cf_secured_unload(struct cf_secured *s);

struct cf_conn;

/* The current connection's handshake, another one than usual by @how.  Return: whether it was done; a sentence in
 * cf->left.why if not. */
bool cf_secured_try(struct cf *cf, unsigned how);
/* The same; the case fails if it does. */
void cf_secured_open(struct cf *cf);
void cf_secured_close(struct cf_conn *c, const struct cf_run *run);

/* As send() and recv() that do not wait, with the errno in place of -1: -EAGAIN, or it is over.  @p may be NULL:
 * what comes next stays there.  0: the end in order. */
ssize_t cf_octets_send(struct cf *cf, const void *p, size_t len);
ssize_t cf_octets_recv(struct cf *cf, void *p, size_t len);
void cf_octets_end(struct cf *cf); /* close_notify, FIN */

#endif
