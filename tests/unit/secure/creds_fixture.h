/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CREDS_FIXTURE_H
#define CREDS_FIXTURE_H
/* Certificates of every kind, made when a test runs and for a time that stands still; files of them. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#define NOW   1800000000ll /* of all tests */
#define DAY   86400ll
#define HEX16 "00112233445566778899aabbccddeeff" /* a pre-shared key, in hexadecimal */

enum { FOR_SERVER = 1, FOR_CLIENT = 2 };

/* What a certificate says; zeros: for both uses, ECDSA, valid from yesterday until in 30 days. */
struct cert_spec {
	const char *cn;
	const char *san[5]; /* "dns:x", "ip:x", "uri:x" */
	unsigned names;	    /* DNS names n0001.example on, besides @san */
	bool ca, any_use, old_hash;
	int path_len;		   /* of a CA; -1: none said */
	unsigned uses;		   /* FOR_... or 0: both */
	unsigned key_usage;	   /* GNUTLS_KEY_... or 0: as it should be */
	unsigned rsa;		   /* bits */
	int64_t from, to;	   /* days from NOW; both 0: the default */
	bool no_ids;		   /* no key identifiers */
	const struct cert *renews; /* it has the key of that one, or NULL */
};

struct cert {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

/* Signed by @ca; NULL: by itself */
struct cert make_cert(const struct cert_spec *spec, const struct cert *ca);
/* A list of what @ca revoked: @revoked or NULL.  @until: days from NOW */
gnutls_x509_crl_t make_crl(const struct cert *ca, const struct cert *revoked, int64_t until);

/* A folder for one test; a file in it, whose path stays valid. */
void creds_setup(void);
void creds_teardown(void);
const char *path_of(const char *name);
const char *put_text(const char *name, const char *text, unsigned mode);
const char *put_certs(const char *name, const struct cert *a, const struct cert *b);
const char *put_key(const char *name, const struct cert *c);
const char *put_crl(const char *name, gnutls_x509_crl_t crl);
const char *put_crls(const char *name, gnutls_x509_crl_t a, gnutls_x509_crl_t b);

/* A CA, and a host of it with files ca.pem, host.pem and host.key. */
struct site {
	struct cert ca, host;
	struct ddps_secure_attr attr;
};
void make_site(struct site *s);

struct ddps_creds *open_creds(const struct ddps_secure_attr *attr);
/* What opening says. */
int open_code(const struct ddps_secure_attr *attr, struct ddps_verdict *why);
struct ddps_creds_set *use_creds(struct ddps_creds *c, uint64_t ms);

/* A peer that shows @a, then @b. */
struct ddps_creds_peer shown_by(const struct cert *a, const struct cert *b);
/* The judge's code for it, from the view of @want; @id, @why: NULL or where to. */
int judge_code(struct ddps_creds *c, const struct ddps_creds_peer *peer,
	       const struct ddps_creds_want *want, struct ddps_peer_id *id,
	       struct ddps_verdict *why);

#endif
