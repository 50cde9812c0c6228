/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_TLS_H
#define DDPS_CONFORM_TLS_H
/*
 * TLS for the peer of the conformance suite: GnuTLS's own handshake, read and write, and nothing of this
 * project's records, handshakes and judges.  It is in libddpsess-tls.so, which has GnuTLS, and offers one
 * table.  Sockets do not block.
 */
#include <ddpsess/secure.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CF_TLS_SYMBOL "ddps_conform_tls"
#define CF_TLS_ABI    2

/* How a connection differs from what it should be. */
enum {
	CF_TLS_OLD = 1,	    /* offers TLS 1.2 at most */
	CF_TLS_NO_CERT = 2, /* shows no certificate */
	CF_TLS_TICKET = 4   /* has tickets to give */
};

/* What a step of a handshake waits for, or that it failed; 0: it is done. */
enum { CF_TLS_READ = 1, CF_TLS_WRITE = 2, CF_TLS_FAILED = -1 };

struct cf_tls_creds;
struct cf_tls;
struct cf_dtls;

struct cf_tls_lib {
	unsigned abi;
	/* NULL: a sentence in @why. */
	struct cf_tls_creds *(*load)(const struct ddps_secure_attr *attr, char *why, size_t len);
	void (*unload)(struct cf_tls_creds *creds);
	bool (*has_x509)(const struct cf_tls_creds *creds);
	/* @host: whom the certificate has to name, or NULL.  NULL: a sentence in @why. */
	struct cf_tls *(*begin)(struct cf_tls_creds *creds, int fd, bool server, const char *host,
				unsigned how, char *why, size_t len);
	int (*step)(struct cf_tls *t, char *why, size_t len);
	/* Octets, 0 (read: close_notify came), or a negative errno: -EAGAIN, -EPIPE: the end without
	 * close_notify, -ECONNABORTED: an alert, -ECONNRESET, -EBADMSG. */
	ssize_t (*write)(struct cf_tls *t, const void *p, size_t n);
	ssize_t (*read)(struct cf_tls *t, void *p, size_t n);
	const char *(*alert)(const struct cf_tls *t); /* of the target, or NULL */
	int (*bye)(struct cf_tls *t);		      /* close_notify */
	int (*update)(struct cf_tls *t, bool ask);    /* new keys here; @ask: and there */
	int (*ticket)(struct cf_tls *t);
	size_t (*records_read)(const struct cf_tls *t); /* with the present key */
	void (*free)(struct cf_tls *t);
	/*
	 * A DTLS connection with @to, whose certificate has to name @host, or NULL: what is sent to @inner, a UDP
	 * port of loopback, is sealed, and what comes is sent from there.  NULL: a sentence in @why.
	 */
	struct cf_dtls *(*dial)(struct cf_tls_creds *creds, const struct sockaddr *to,
				socklen_t len, const char *host, unsigned limit_ms,
				struct sockaddr_in *inner, char *why, size_t why_len);
	/* Who connects to @outer, which is taken over in any case, is heard at @inner, from a port for each. */
	struct cf_dtls *(*front)(struct cf_tls_creds *creds, int outer,
				 const struct sockaddr_in *inner, char *why, size_t why_len);
	void (*close)(struct cf_dtls *d); /* close_notify to all */
};

#endif
