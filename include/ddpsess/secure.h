/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_SECURE_H
#define DDPSESS_SECURE_H
/*
 * Secured wires, tls:// and sctps://: the identity of this program, and the peers that it accepts.
 *
 * A struct ddps_secure has what comes from files: a certificate and its key, the certificates of
 * the CAs that are trusted, a list of revoked certificates, pre-shared keys (PSK), and the list of
 * peers that are allowed.  docs/guides/secure.md shows how to make these files.
 *
 * The files are read again when they have changed, before the next handshake, at most once a second.
 * If one that says whom to trust is not usable (settings, ca, crl, psk, peers, hosts), what was read before
 * stays in use, all of it.  Else the new files are in force, whatever is wrong with this side: if its own
 * certificate and key are not usable, have expired or were revoked, those that were read before stay in use,
 * and peers judge them.  A list or a CA that is out of date lets nobody in, nor does a file of PSKs or of
 * peers that was emptied.  The log says what is wrong.
 *
 * These functions load libddpsess-tls.so, which needs GnuTLS.  A program that uses no secured URI
 * needs neither.
 */
#include <ddpsess/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_secure;

/* ---- the peer ---- */

enum ddps_peer_how {
	DDPS_PEER_NONE, /* the wire is not secured, nobody knows who the peer is */
	DDPS_PEER_X509, /* a certificate */
	DDPS_PEER_PSK	/* a pre-shared key */
};

#define DDPS_PEER_NAME	256  /* octets of a name, with the 0 behind it */
#define DDPS_PEER_NAMES 1024 /* of all names */

/* Who the peer is.  All texts are UTF-8 and end with 0.  Octets of a certificate that are not
 * printable stand in them as \xHH; what is too long is cut and ends with "...". */
struct ddps_peer_id {
	size_t struct_size;	 /* sizeof(struct ddps_peer_id), set by the caller */
	int64_t not_before;	 /* of the certificate, in seconds since 1970; 0 for a PSK */
	int64_t not_after;	 /* the same */
	uint32_t how;		 /* enum ddps_peer_how */
	uint32_t depth;		 /* CA certificates above the peer's, the trusted one included */
	uint8_t fingerprint[32]; /* SHA-256 of the certificate; zeros for a PSK */
	/* The name that was accepted: "dns:node-a.example", "ip:192.0.2.1", "uri:spiffe://...",
	 * "psk:node-a"; "fp:HEX" for a certificate whose names play no part. */
	char name[DDPS_PEER_NAME];
	char names[DDPS_PEER_NAMES]; /* all names, in the same form, one a line */
	char issuer[DDPS_PEER_NAME]; /* "" for a PSK */
	char serial[48];	     /* of the certificate, in hexadecimal */
	/* What was negotiated, such as "TLS 1.3", "AES-128-GCM", "X25519" and "x-iwarp-mpa". */
	char version[16], suite[40], group[24], alpn[32];
};

/**
 * ddps_request_peer_id - who sent a request
 * @req:	request of an event, neither accepted nor rejected yet
 * @id:		receives the identity; the caller sets struct_size
 *
 * Thread safe.  Does not block.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: struct_size is that of no release
 * - DDPS_E_CLOSED: the request was answered, or the peer has gone
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_request_peer_id(const struct ddps_request *req, struct ddps_peer_id *id);

/**
 * ddps_ep_peer_id - who the peer of a session is, or was
 * @ep:		endpoint
 * @id:		receives the identity; the caller sets struct_size
 *
 * Thread safe.  Does not block.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: struct_size is that of no release
 * - DDPS_E_STATE: the session has not been established
 * - DDPS_E_NOMEM: it has ended, and there was no memory to keep that
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_peer_id(const struct ddps_ep *ep, struct ddps_peer_id *id);

/* Decides about a peer whose certificate or PSK is right and who is on the list, if there is one.
 * Returns 0 to accept it.  It runs in any thread, in several at the same time, and must not call the
 * library.  Over sctps:// it decides again before each session. */
typedef int ddps_judge_fn(void *user, const struct ddps_peer_id *id);

/* ---- settings ---- */

/* Names of files and other settings.  NULL: there is none, or @settings says it. */
struct ddps_secure_attr {
	size_t struct_size; /* sizeof(struct ddps_secure_attr), set by ddps_secure_attr_init */
	/* A file with a setting a line, "WORD VALUE": cert, key, ca, crl, psk, psk-identity, peers,
	 * hosts, peer, stale-crl, keylog.  File names in it are relative to its folder.  The members
	 * below take precedence. "keylog" has none: secrets of connections are appended to this file, in
	 * the format of SSLKEYLOGFILE, and a warning says so.  The environment decides nothing. */
	const char *settings;
	const char *cert; /* PEM: this side's certificate, then those of CAs between it and @ca */
	const char
		*key; /* PEM: its private key, not encrypted; others must not be able to read it */
	const char *ca;	 /* PEM: the CAs that may vouch for peers; the system's are not used */
	const char *crl; /* PEM: certificates that these CAs have revoked */
	const char *psk; /* lines IDENTITY:HEX, as psktool writes them; 16 to 64 octets each */
	/* As whom this side connects with a PSK, without "@NUMBER".  NULL: the only identity that
	 * the file has.  A listener refuses this identity: a peer has another one. */
	const char *psk_identity;
	/* Rules "allow KIND VALUE" and "deny KIND VALUE", the first that fits decides; a peer that
	 * none fits is refused.  KIND: dns, ip, uri, uri-prefix, fp (to allow only), psk, issuer. */
	const char *peers;
	const char *hosts; /* lines "ADDRESS NAME": the name expected of a peer at an address */
	/* Who the peer has to be, in place of the host of the URI: KIND:VALUE with the kinds above
	 * but issuer, or a host name or address; several with commas between them. */
	const char *peer;
	ddps_judge_fn *judge; /* NULL: the files alone decide */
	void *judge_user;
	uint32_t flags;	   /* DDPS_SECURE_... */
	uint32_t reserved; /* 0 */
};

/* Accept certificates although the list of revoked ones is out of date; the log warns. */
#define DDPS_SECURE_STALE_CRL 0x1u

/** ddps_secure_attr_init_sized - ddps_secure_attr_init for languages that cannot call it; @size: as
 * there the sizeof of the caller's struct */
DDPS_API void ddps_secure_attr_init_sized(struct ddps_secure_attr *attr, size_t size);

/**
 * ddps_secure_attr_init - fill in the defaults: no files, no flags
 * @attr:	receives the defaults
 *
 * Thread safe.  Never blocks.
 */
static inline void ddps_secure_attr_init(struct ddps_secure_attr *attr)
{
	ddps_secure_attr_init_sized(attr, sizeof *attr);
}

/**
 * ddps_secure_open - read the files of secured wires
 * @out:	receives them; unchanged on failure
 * @attr:	copied, with its texts
 * @why:	NULL, or receives the code and a sentence: which file, what is wrong, what to try
 *
 * Either @attr has a certificate, a key and a CA, or PSKs, or both.  The program closes @out with
 * ddps_secure_close.  Thread safe.  Blocks while files are read.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a flag or a reserved member that this release does not know
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_NO_TLS: libddpsess-tls.so or GnuTLS cannot be loaded
 * - DDPS_E_CONFIG: a file is missing, not readable or not of its format; or somebody else could say
 *   in it whom this side trusts (settings, ca, crl, peers, hosts): it has to be this user's or root's,
 *   and nobody else's to write; so has each folder and link on the way to it, from / on.  Others may
 *   write to a sticky folder, as /tmp is; a group with the owner's number is taken for the owner's own;
 *   in a user namespace, what is of a user that it does not map is another's, but for / itself
 * - DDPS_E_KEY_OPEN, DDPS_E_KEY_MISMATCH, DDPS_E_CERT_..., DDPS_E_CRL: what is wrong with this
 *   side's own key, certificate or list
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_secure_open(struct ddps_secure **out, const struct ddps_secure_attr *attr,
			      struct ddps_error *why);

/**
 * ddps_secure_reload - read the files now, changed or not
 * @s:		as ddps_secure_open made it
 * @why:	as for ddps_secure_open
 *
 * On failure what was read before stays in use.  If only this side's own certificate and key are at fault, or
 * something is out of date, whom to trust is as the files say now; the text then begins with "in force".  Sessions that stand are not touched.  Thread safe.
 * Blocks while files are read.
 *
 * Return: as ddps_secure_open
 */
DDPS_API int ddps_secure_reload(struct ddps_secure *s, struct ddps_error *why);

/**
 * ddps_secure_close - the program needs it no more
 * @s:		may be NULL.  Contexts that use it keep it until they are freed.
 *
 * Thread safe.  Never blocks.
 */
DDPS_API void ddps_secure_close(struct ddps_secure *s);

/* ---- before files are used ---- */

/* One thing that ddps_secure_check found. */
struct ddps_secure_finding {
	int code;	  /* DDPS_E_...; 0: it is right */
	uint32_t warning; /* 1: it works, yet should be looked at */
	const char
		*what; /* the setting: "cert", "key", "ca", "crl", "psk", "peers", "hosts", ... */
	const char *file;  /* its file, or "" */
	const char *text;  /* one sentence */
	void *reserved[2]; /* NULL */
};
typedef void ddps_secure_finding_fn(void *user, const struct ddps_secure_finding *f);

/**
 * ddps_secure_check - say all that is right and wrong with a set of files
 * @attr:	as for ddps_secure_open
 * @now:	the time to judge for, in seconds since 1970
 * @each:	gets each finding; what it points to is valid during the call only
 * @user:	first argument of @each
 *
 * Thread safe.  Blocks while files are read.
 *
 * Return: how many findings are faults (not warnings), or a DDPS_E_ code as ddps_secure_open
 * for what no file is to blame for.
 */
DDPS_API int ddps_secure_check(const struct ddps_secure_attr *attr, int64_t now,
			       ddps_secure_finding_fn *each, void *user);

/* ---- making keys ---- */

/* A certificate to be made, with a new key (ECDSA, P-256). */
struct ddps_secure_make {
	size_t struct_size; /* sizeof(struct ddps_secure_make) */
	/* The names that it is for, NULL behind the last: host names, addresses, URIs.  A CA has
	 * one, any text. */
	const char *const *names;
	const char *ca_cert, *ca_key;  /* PEM, of the CA that signs; both NULL: make a CA */
	size_t ca_key_len;	       /* octets of @ca_key */
	int64_t not_before, not_after; /* seconds since 1970 */
};

/**
 * ddps_secure_make - make a CA, or a certificate for a host
 * @m:		what to make; the caller sets struct_size
 * @cert:	receives the certificate as PEM, with 0 behind it
 * @cert_size:	octets there
 * @key:	receives the private key as PEM (PKCS #8), with 0 behind it; the caller wipes it
 * @key_size:	octets there
 * @why:	NULL, or receives the code and a sentence
 *
 * A host's certificate is good for both roles, and ends with the CA's at the latest.  Nothing is
 * written to a file.  Thread safe.  Takes some milliseconds.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: no name, a name that cannot be one, or times in the wrong order
 * - DDPS_E_TOO_LONG: a buffer is too small; 4096 octets always suffice for 16 names
 * - DDPS_E_NO_TLS, DDPS_E_CONFIG, DDPS_E_KEY_MISMATCH, DDPS_E_CERT_EXPIRED, DDPS_E_CERT_NOT_YET,
 *   DDPS_E_CERT_USAGE: about the CA's files, as for ddps_secure_open
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_secure_make(const struct ddps_secure_make *m, char *cert, size_t cert_size,
			      char *key, size_t key_size, struct ddps_error *why);

#ifdef __cplusplus
}
#endif
#endif
