/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SECURE_PLUGIN_H
#define DDPS_SECURE_PLUGIN_H
/*
 * The library of secured wires, libddpsess-tls.so: all that needs GnuTLS.  It is loaded when a secured
 * URI or a key is first used.  It calls nothing of libddpsess, so that whatever contains libddpsess (the
 * shared library, sessctl, the drop-in) can load it; it exports one table.
 */
#include "secure/creds/creds.h"
#include "secure/hs/dhs.h"
#include "secure/hs/hs.h"

#define DDPS_TLS_ABI	4 /* counts every change of the table or of what it uses */
#define DDPS_TLS_SYMBOL "ddps_tls_plugin"
#define DDPS_TLS_FILE	"libddpsess-tls.so"

/* Handshakes of one kind: hs.h's, or dhs.h's over datagrams. */
struct ddps_hs_ops {
	int (*make)(struct ddps_hs **out, const struct ddps_hs_conf *conf,
		    struct ddps_verdict *why);
	void (*free)(struct ddps_hs *h);
	enum ddps_hs_state (*step)(struct ddps_hs *h, const uint8_t *in, size_t n, int64_t now);
	const uint8_t *(*output)(const struct ddps_hs *h, size_t *n);
	void (*sent)(struct ddps_hs *h, size_t n);
	const struct ddps_verdict *(*why)(const struct ddps_hs *h);
	void (*take)(struct ddps_hs *h, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		     const uint8_t **rest, size_t *nrest);
};

/* What each function does is said where it is declared: creds.h, hs.h, aead_lib.h. */
struct ddps_tls_plugin {
	unsigned abi;
	const char *version; /* of GnuTLS */

	/* credentials */
	int (*creds_open)(struct ddps_creds **out, const struct ddps_secure_attr *attr, int64_t now,
			  struct ddps_verdict *why);
	int (*creds_reload)(struct ddps_creds *c, int64_t now, struct ddps_verdict *why);
	struct ddps_creds *(*creds_share)(struct ddps_creds *c);
	void (*creds_close)(struct ddps_creds *c);
	struct ddps_creds_set *(*creds_use)(struct ddps_creds *c, uint64_t ms, int64_t now,
					    struct ddps_verdict *news);
	void (*creds_release)(struct ddps_creds_set *set);
	int (*creds_may)(struct ddps_creds *c, bool server, bool datagrams,
			 struct ddps_verdict *why);

	/* handshakes */
	struct ddps_hs_ops tls, dtls;
	unsigned (*dtls_timeout)(const struct ddps_hs *h);
	enum ddps_dhs_greeting (*dtls_greet)(uint8_t secret[2][DDPS_DHS_SECRET], const void *peer,
					     size_t peer_len, const uint8_t *in, size_t n,
					     uint8_t answer[DDPS_DHS_ANSWER], size_t *nanswer,
					     struct ddps_hs_began *began);
	struct ddps_witness *(*dtls_witness)(struct ddps_hs *h);
	void (*witness_free)(struct ddps_witness *w);
	int (*witness_judge)(const struct ddps_witness *w, struct ddps_creds_set *set, int64_t now,
			     struct ddps_verdict *why);
	const struct ddps_aead *(*aead)(void);

	/* tools */
	int (*check)(const struct ddps_secure_attr *attr, int64_t now, ddps_secure_finding_fn *each,
		     void *user);
	int (*make)(const struct ddps_secure_make *m, char *cert, size_t cert_size, char *key,
		    size_t key_size, struct ddps_verdict *why);
};

/* Load it, the first time only; NULL: one sentence in @why.  Thread safe. */
const struct ddps_tls_plugin *ddps_tls_load(char *why, size_t why_len);

#endif
