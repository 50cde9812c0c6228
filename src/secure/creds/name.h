/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CREDS_NAME_H
#define DDPS_CREDS_NAME_H
/* Names of peers, and what is demanded of them: RFC 9525, and names of SPIFFE as URIs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ddps_name_kind {
	DDPS_NAME_DNS,
	DDPS_NAME_IP,
	DDPS_NAME_URI,
	DDPS_NAME_URI_PREFIX, /* patterns only, like those below */
	DDPS_NAME_FP,
	DDPS_NAME_PSK,
	DDPS_NAME_ISSUER,
	DDPS_NAME_KINDS
};

/* A name that a peer has shown: octets, of which nothing is known. */
struct ddps_name {
	enum ddps_name_kind kind; /* DNS, IP or URI */
	const uint8_t *p;
	size_t len;
};

/* All that a peer is known by. */
struct ddps_who {
	const char *psk; /* the identity without "@NUMBER", or NULL */
	struct ddps_name *name;
	unsigned nnames;
	const uint8_t *fp;  /* 32 octets, or NULL */
	const char *issuer; /* or NULL */
};

/* What is demanded: made by ddps_pattern_parse, freed by ddps_pattern_free. */
struct ddps_pattern {
	enum ddps_name_kind kind;
	bool denies; /* whom it fits is refused: what is not clear fits */
	uint8_t *p;  /* with a 0 behind it */
	size_t len;
};

/*
 * @kind: "dns", "ip", ... or NULL: a host name or an address.  Values are checked: host names are ASCII
 * (A-labels), fingerprints are of SHA-256.  0, DDPS_E_NOMEM, or DDPS_E_CONFIG with one sentence in @why.
 */
int ddps_pattern_parse(struct ddps_pattern *pat, const char *kind, const char *value, char *why,
		       size_t why_len);
void ddps_pattern_free(struct ddps_pattern *pat);

/* The peer's text for it, "dns:node-a.example", into @dst. */
void ddps_pattern_text(char *dst, size_t size, const struct ddps_pattern *pat);
void ddps_name_text(char *dst, size_t size, const struct ddps_name *name);
/* Nothing in a path leads back over what stands before it, however that is spelled (RFC 3986 5.2.4). */
bool ddps_name_is_below(const uint8_t *p, size_t len);
/* Printable ASCII, anything else as \xHH; "..." at the end if there is no room. */
void ddps_name_clean(char *dst, size_t size, const void *src, size_t len);

/*
 * Whether @who is that.  @dialled: the pattern is whom this side wants to reach, so that a wildcard of
 * the peer's certificate stands for it, as it does for one that denies; else the wildcard may be in the
 * pattern only.  @which, if not
 * NULL: the name that it is by, or NULL.
 */
bool ddps_pattern_fits(const struct ddps_pattern *pat, const struct ddps_who *who, bool dialled,
		       const struct ddps_name **which);

#endif
