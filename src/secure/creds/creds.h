/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CREDS_H
#define DDPS_CREDS_H
/*
 * Credentials: what this side shows to peers, and how it judges theirs.  A part of libddpsess-tls.so.
 *
 * struct ddps_creds is what a program opened.  What was read from its files is a set, which never
 * changes: whoever shakes hands holds one, and a reload makes a new one.  All functions are thread safe,
 * take the time as an argument (@now: seconds since 1970, @ms: milliseconds of any clock that does not
 * go back), and return 0 or a DDPS_E_ code with one sentence in the verdict.
 */
#include "secure/alert.h"
#include <ddpsess/secure.h>
#include <stdbool.h>

struct gnutls_session_int;

struct ddps_creds;
struct ddps_creds_set;

struct ddps_verdict {
	int code;	/* DDPS_E_... or 0 */
	int alert;	/* what the peer gets: enum ddps_alert */
	bool loud;	/* of news: to be said as a warning although nothing is wrong */
	bool anybodys;	/* of datagrams: nothing was authentic yet, so the cause may be anybody's */
	char text[200]; /* one sentence: what, where, what to try; no secret is in it */
};

/* ---- files ---- */

/* @attr: of this release.  It and its texts are copied. */
int ddps_creds_open(struct ddps_creds **out, const struct ddps_secure_attr *attr, int64_t now,
		    struct ddps_verdict *why);
int ddps_creds_reload(struct ddps_creds *c, int64_t now, struct ddps_verdict *why);
/* One more that closes it. */
struct ddps_creds *ddps_creds_share(struct ddps_creds *c);
void ddps_creds_close(struct ddps_creds *c);

/*
 * The set for a handshake that begins now; never NULL.  If a second has passed since it was last done,
 * files are looked at, and read if they changed.  @news->text: "", or what is to be logged of it, as a
 * warning if @news->code is not 0 (then the old set stays, or what this side shows of it) or @news->loud, else as information.
 */
struct ddps_creds_set *ddps_creds_use(struct ddps_creds *c, uint64_t ms, int64_t now,
				      struct ddps_verdict *news);
void ddps_creds_release(struct ddps_creds_set *set);
/* Whether what is in use now allows to listen (@server), or to connect: a certificate may be for one of them
 * only, and too long for @datagrams.  0, or DDPS_E_CERT_USAGE, DDPS_E_CERT and a sentence. */
int ddps_creds_may(struct ddps_creds *c, bool server, bool datagrams, struct ddps_verdict *why);

/* What a side may show over datagrams: GnuTLS fails from about 28 KiB on. */
#define DDPS_CREDS_DATAGRAMS 24576u

/* What there is: a dialler without PSK shows a certificate, a listener takes what it has. */
bool ddps_creds_has_x509(const struct ddps_creds_set *set);
bool ddps_creds_has_psk(const struct ddps_creds_set *set);
/* Whether a dialler uses its PSK: one is named, or it has no certificate. */
bool ddps_creds_dials_psk(const struct ddps_creds_set *set);

/* ---- a handshake ---- */

/* The handshake keeps it as long as GnuTLS's session lives; the session's pointer is this. */
struct ddps_creds_hs {
	struct ddps_creds_set *set;
	bool server;
	bool psk;	  /* it is shaken by a PSK */
	bool psk_own;	  /* server: it is this side's own */
	bool psk_unknown; /* server: the identity is none that we take; the wire does not show it */
	const char *psk_id; /* the identity on the wire, in @set; NULL: it is none of it */
	char psk_name[DDPS_PEER_NAME]; /* clean, to be shown */
};

/*
 * Give what this side has to a session of GnuTLS that has begun nothing yet.  The server asks for a
 * certificate; priorities are the caller's.  @set stays the caller's.
 */
int ddps_creds_give(struct ddps_creds_hs *h, struct ddps_creds_set *set,
		    struct gnutls_session_int *session, bool server, struct ddps_verdict *why);

/* Why a handshake failed, if that was for credentials: @err is GnuTLS's, @alert the peer's or -1.
 * Return: the code, or 0: it is another reason, and nothing was written. */
int ddps_creds_failed(const struct ddps_creds_hs *h, struct gnutls_session_int *session, int err,
		      int alert, struct ddps_verdict *why);

/* ---- the peer ---- */

#define DDPS_CREDS_CHAIN 5 /* certificates that a peer may show */

struct ddps_creds_der {
	const unsigned char *p;
	size_t len;
};

/* What the peer showed: a PSK's identity as on the wire, or certificates, its own first; neither: nothing. */
struct ddps_creds_peer {
	const char *psk;
	struct ddps_creds_der cert[DDPS_CREDS_CHAIN];
	unsigned ncerts;
};

/* From a session whose handshake is done; it points into the session and @h. */
void ddps_creds_peer_of(const struct ddps_creds_hs *h, struct gnutls_session_int *session,
			struct ddps_creds_peer *peer);

struct ddps_creds_want {
	bool server; /* this side is the listener: the peer needs the use of a client */
	const char
		*host; /* dialler: host name or address, as in the URI; NULL: no name is demanded */
};

/*
 * Judge a peer: chain, time, revocation, use, name, list, the program's function, in this order.  @id
 * receives who it is, as far as it could be read, also if it is refused; not what was negotiated.
 * To be asked again before a session joins an association that stands.
 */
int ddps_creds_judge(struct ddps_creds_set *set, const struct ddps_creds_peer *peer,
		     const struct ddps_creds_want *want, int64_t now, struct ddps_peer_id *id,
		     struct ddps_verdict *why);

/* ---- tools: see secure.h ---- */

int ddps_creds_check(const struct ddps_secure_attr *attr, int64_t now, ddps_secure_finding_fn *each,
		     void *user);
int ddps_creds_make(const struct ddps_secure_make *m, char *cert, size_t cert_size, char *key,
		    size_t key_size, struct ddps_verdict *why);

#endif
