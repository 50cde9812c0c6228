/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CREDS_SET_H
#define DDPS_CREDS_SET_H
/* Inside of creds: what was read from files, and how what is wrong with them is reported. */
#include "secure/creds/creds.h"
#include "secure/creds/list.h"
#include "secure/creds/psk.h"
#include "secure/creds/settings.h"
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define DDPS_CREDS_DEPTH 4	/* CAs above a certificate, the trusted one included */
#define DDPS_CREDS_SAN	 16384u /* octets of a peer's names */
/* RSA and DH of 2048 bits, curves of 224 (RFC 9325 4.5); GnuTLS refuses SHA-1 and MD5 itself. */
#define DDPS_CREDS_STRENGTH GNUTLS_SEC_PARAM_MEDIUM

struct ddps_secret_key;
struct ddps_known;

/* The own certificate and its key: a set may have those of the one before it. */
struct ddps_cert_pair {
	atomic_uint refs;
	gnutls_certificate_credentials_t x509;
	struct ddps_secret_key *key;
	gnutls_x509_crt_t *crt; /* the own one first */
	unsigned n;
	size_t octets; /* of all of them, as the peer gets them */
	bool may[2];   /* what it may be used for: as a client, as a server */
};

struct ddps_creds_set {
	atomic_uint refs;
	struct ddps_settings settings;
	struct ddps_stamp settings_stamp, stamp[DDPS_SET_FILES];

	/* certificates; @own is NULL without */
	struct ddps_cert_pair *own;
	gnutls_x509_trust_list_t trust; /* has what is in @ca */
	struct ddps_known *known;	/* what it has said already; NULL: nothing */
	gnutls_x509_crt_t *ca;
	unsigned nca;
	gnutls_x509_crl_t *crl;
	unsigned ncrl;
	gnutls_x509_crt_t *crl_by; /* which CA has signed it; NULL: one that peers show */

	/* keys; both NULL without */
	gnutls_psk_server_credentials_t psk_server;
	gnutls_psk_client_credentials_t psk_client;
	struct ddps_psks psks;

	int keylog;		 /* a descriptor, or -1 */
	struct stat keylog_self; /* of it: a program may close what is not its own */

	bool has_rules;
	struct ddps_list rules, hosts, peers;
};

/* What loading finds goes through it.  @first: the first fault, for those who want one. */
struct ddps_report {
	ddps_secure_finding_fn *each; /* or NULL */
	/* What was read before, or NULL.  Then what does not say whom to trust (the own certificate, time, a key log)
	 * withholds no rule: the first fault of that kind is in @lapse, and the new set is in force. */
	const struct ddps_creds_set *old;
	struct ddps_verdict lapse;
	void *user;
	unsigned faults;
	struct ddps_verdict first;
};

/* @code 0: it is right.  @what: its setting. */
void ddps_report(struct ddps_report *r, int code, bool warning, const char *what, const char *file,
		 const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* A fault, or what withholds nothing over an old set: judges look at it again for each peer. */
void ddps_report_lapse(struct ddps_report *r, int code, const char *what, const char *file,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Read all that the settings name; @given stays the caller's.  Faults are in @r, and then *out is NULL. */
int ddps_set_load(struct ddps_creds_set **out, const struct ddps_settings *given, int64_t now,
		  struct ddps_report *r);
/* Parts of it: own certificate, key, CAs and revoked ones; the rest is small. */
void ddps_set_load_x509(struct ddps_creds_set *set, int64_t now, struct ddps_report *r);
/* What it reads with: the file that @s names, or NULL with a fault reported, a setting that is not there is none;
 * certificates of a PEM file, and what is wrong with one. */
struct ddps_vault *ddps_set_read(struct ddps_creds_set *set, enum ddps_setting s, size_t max,
				 struct ddps_vault *v, struct ddps_report *r);
int ddps_set_certs(const struct ddps_vault *v, gnutls_x509_crt_t **list, unsigned *n);
void ddps_set_report_pem(struct ddps_report *r, enum ddps_setting s, const char *file, int err,
			 const char *kind);
/* CAs; then the list of trust takes them over; then what they have revoked. */
bool ddps_set_load_cas(struct ddps_creds_set *set, int64_t now, struct ddps_report *r);
bool ddps_set_trust(struct ddps_creds_set *set, struct ddps_report *r);
void ddps_set_load_crls(struct ddps_creds_set *set, int64_t now, struct ddps_report *r);
void ddps_set_free(struct ddps_creds_set *set);
void ddps_cert_pair_free(struct ddps_cert_pair *own); /* or one share of it; NULL: nothing */
/* As ddps_creds_may. */
int ddps_set_may(const struct ddps_creds_set *set, bool server, bool datagrams,
		 struct ddps_verdict *why);
/* False in a child of fork: its keys are not there. */
bool ddps_set_intact(const struct ddps_creds_set *set);

/* ---- certificates, for this side's and for peers' ---- */

/* Whether times are right; 0, DDPS_E_CERT_EXPIRED or DDPS_E_CERT_NOT_YET, with a sentence about @whose. */
int ddps_cert_time(gnutls_x509_crt_t crt, int64_t now, const char *whose, struct ddps_verdict *v);
/* Whether a peer's, or the own one, may be used as one: not a CA's, signs, is for @server or for clients. */
int ddps_cert_usage(gnutls_x509_crt_t crt, bool server, const char *whose, struct ddps_verdict *v);
/* The same of one whose names were read. */
int ddps_cert_usage_of(gnutls_x509_crt_t crt, const struct ddps_name *names, unsigned n,
		       bool server, const char *whose, struct ddps_verdict *v);
/* Whether it is among the revoked ones of @issuer; NULL: there are no lists. */
int ddps_cert_revoked(const struct ddps_creds_set *set, gnutls_x509_crt_t crt,
		      gnutls_x509_crt_t issuer, int64_t now, const char *whose,
		      struct ddps_verdict *v);
/* Whether one of the @n CAs has signed it.  GnuTLS judges the times by its own clock: not here. */
bool ddps_crl_is_of(gnutls_x509_crl_t crl, const gnutls_x509_crt_t *ca, unsigned n);
/* "CN=node-a": its subject, clean; its issuer */
void ddps_cert_subject(char *dst, size_t size, gnutls_x509_crt_t crt);
void ddps_cert_issuer(char *dst, size_t size, gnutls_x509_crt_t crt);
/* year-month-day */
void ddps_cert_date(char dst[16], int64_t t);

/* All names of a certificate, to be freed; 0 or DDPS_E_NOMEM, DDPS_E_CERT. */
int ddps_cert_names(gnutls_x509_crt_t crt, struct ddps_name **names, unsigned *n);

/* More of them than DDPS_CREDS_SAN: GnuTLS needs a time that grows with the square of their number. */
bool ddps_cert_is_wordy(gnutls_x509_crt_t crt);

void ddps_cert_names_free(struct ddps_name *names, unsigned n);

/* A private key in a vault, which GnuTLS signs with: @der is @key, and is taken over; NULL: no memory.  Freed
 * after the credentials. */
struct ddps_secret_key *ddps_secret_key_new(gnutls_x509_privkey_t key, struct ddps_vault *der);
void ddps_secret_key_free(struct ddps_secret_key *k);
bool ddps_secret_key_intact(const struct ddps_secret_key *k);
/* 0 or GnuTLS's error; @to signs with @k from then on. */
int ddps_secret_key_give(struct ddps_secret_key *k, gnutls_certificate_credentials_t to,
			 gnutls_x509_crt_t *chain, unsigned n);

/* What a judge takes apart of a peer's certificate, to be freed with ddps_shown_free. */
struct ddps_shown {
	gnutls_x509_crt_t crt[DDPS_CREDS_CHAIN]; /* as shown */
	unsigned ncrts;
	struct ddps_name *name;
	unsigned nnames;
};

/*
 * The first half of judging a peer with certificates: chain, time, revocation and use.  @id receives what
 * could be read.  @shown: NULL, or what is left to judge by names; to be freed in each case.
 */
int ddps_chain_judge(const struct ddps_creds_set *set, const struct ddps_creds_peer *peer,
		     const struct ddps_creds_want *want, int64_t now, struct ddps_peer_id *id,
		     struct ddps_shown *shown, struct ddps_verdict *v);
void ddps_shown_free(struct ddps_shown *shown);

/*
 * Chains that GnuTLS found right, with the trust of this set: the same octets for the same use are as right again.  It
 * says nothing of time, revocation or names.  Freed by free(); thread safe.
 */
struct ddps_known *ddps_known_new(void);
#define DDPS_CHAIN_HASH 32
/* Of all that the peer showed, and of @at, which of it and of the CAs the chain has: that changes with time.  False: the
 * library cannot. */
bool ddps_chain_hash(uint8_t *dst, const struct ddps_creds_peer *peer, const int *at, unsigned n,
		     bool server);
bool ddps_known_has(struct ddps_known *k, const uint8_t *hash);
void ddps_known_add(struct ddps_known *k, const uint8_t *hash);

/* Whether there is one, and its number is not a file of the program's by now. */
bool ddps_keylog_is_ours(const struct ddps_creds_set *set);
/* What GnuTLS calls with each secret. */
int ddps_keylog_add(gnutls_session_t session, const char *label, const gnutls_datum_t *secret);

/* What GnuTLS asks for keys; 0, 1: there is none, -1: it cannot go on. */
int ddps_psk_of_peer(gnutls_session_t session, const gnutls_datum_t *identity, gnutls_datum_t *key);
int ddps_psk_to_dial(gnutls_session_t session, gnutls_datum_t *identity, gnutls_datum_t *key);

/* Set a verdict; returns @code. */
int ddps_verdict_set(struct ddps_verdict *v, int code, int alert, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
