/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_PEER_TLS_H
#define BENCH_PEER_TLS_H
/* One end of a TLS 1.3 connection on a socket that does not block, AES-128-GCM, by one way or another. */
#include "peer.h"

struct peer_tls {
	const char *name;
	/* Of the process: certificates and keys.  Before the other side is made. */
	void (*prepare)(void);
	/* The handshake, mutual X.509 or (EC)DHE with a PSK. */
	void *(*begin)(int fd, int server, int x509);
	void (*write)(void *end, const uint8_t *p, size_t n);
	/* Octets, at least one; 0: the end. */
	size_t (*read)(void *end, uint8_t *p, size_t n);
	void (*close)(void *end); /* writing ends; then it is freed */
};

/* GnuTLS's and OpenSSL's own calls; our records after GnuTLS's handshake, sealed by GnuTLS, or by the fastest. */
extern const struct peer_tls peer_gnutls, peer_openssl, peer_own_gnutls, peer_own;

#define PEER_PSK_NAME "bench"
#define PEER_PSK      "0123456789abcdef0123456789abcdef"

#endif
