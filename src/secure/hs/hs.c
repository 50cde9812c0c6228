/* SPDX-License-Identifier: BSD-2-Clause */
/* Shakes hands by GnuTLS, in memory. */
#include "secure/hs/hs.h"
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* RFC 9325 4.2, and the fastest first: a listener's order counts. */
#define SUITES                                                                                     \
	"SECURE128:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"                  \
	"+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:"           \
	"-PSK:%SERVER_PRECEDENCE"
#define WITH_PSK                                                                                   \
	":+ECDHE-PSK" /* psk_dhe_ke: a key that becomes known does not open what was sent */
#define ONLY_PSK ":-ECDHE-ECDSA:-ECDHE-RSA:+ECDHE-PSK"

#define EXT_MAX_FRAGMENT       1u  /* RFC 6066 4 */
#define EXT_RECORD_SIZE_LIMIT  28u /* RFC 8449 */
#define EXT_SUPPORTED_VERSIONS 43u /* RFC 8446 4.2.1 */

struct octets {
	uint8_t *p;
	size_t len, size, used; /* of len, used are done with */
};

struct ddps_hs {
	struct ddps_creds_hs creds; /* first: GnuTLS's pointer */
	gnutls_session_t session;
	struct ddps_creds_want want;
	bool no_memory;
	size_t got;
	struct octets in, out;
	uint16_t peer_limit, peer_fragment;
	bool no_13;	       /* the dialler does not offer TLS 1.3 */
	bool has_13;	       /* the peer does, or takes it */
	bool ssl3;	       /* the dialler's hello has that version */
	uint8_t secret[2][48]; /* ours, the peer's */
	bool has_secret[2];
	struct ddps_peer_id id;
	struct ddps_verdict why;
};

/* ---- octets ---- */

static bool add_hs_octets(struct octets *o, const void *p, size_t n)
{
	if (o->used == o->len)
		o->used = o->len = 0;
	if (o->size - o->len < n) {
		size_t size = o->len + n + 2048;
		uint8_t *more = realloc(o->p, size);

		if (!more)
			return false;
		o->p = more;
		o->size = size;
	}
	memcpy(o->p + o->len, p, n);
	o->len += n;
	return true;
}

static ssize_t push_hs_octets(gnutls_transport_ptr_t user, const void *p, size_t n)
{
	struct ddps_hs *h = user;

	if (add_hs_octets(&h->out, p, n))
		return (ssize_t)n;
	h->no_memory = true;
	gnutls_transport_set_errno(h->session, ENOMEM);
	return -1;
}

static ssize_t pull_hs_octets(gnutls_transport_ptr_t user, void *p, size_t n)
{
	struct ddps_hs *h = user;
	size_t there = h->in.len - h->in.used;

	if (!there) {
		gnutls_transport_set_errno(h->session, EAGAIN);
		return -1;
	}
	n = n < there ? n : there;
	memcpy(p, h->in.p + h->in.used, n);
	h->in.used += n;
	return (ssize_t)n;
}

/* ---- what GnuTLS shows on the way ---- */

static struct ddps_hs *hs_of(gnutls_session_t session)
{
	return gnutls_session_get_ptr(session);
}

static int keep_secret(gnutls_session_t session, gnutls_record_encryption_level_t level,
		       const void *rd, const void *wr, size_t n)
{
	struct ddps_hs *h = hs_of(session);
	const void *const from[2] = { wr, rd };

	if (level != GNUTLS_ENCRYPTION_LEVEL_APPLICATION)
		return 0;
	for (int i = 0; i < 2; i++) {
		if (!from[i] || n > sizeof h->secret[i])
			continue;
		memcpy(h->secret[i], from[i], n);
		h->has_secret[i] = true;
	}
	return 0;
}

static int see_hs_extension(void *user, unsigned type, const unsigned char *p, unsigned n)
{
	struct ddps_hs *h = user;

	if (type == EXT_RECORD_SIZE_LIMIT && n == 2)
		h->peer_limit = (uint16_t)(p[0] << 8 | p[1]);
	if (type == EXT_MAX_FRAGMENT && n == 1 && *p >= 1 && *p <= 4)
		h->peer_fragment = (uint16_t)(256u << *p);
	/* a listener's has no length in front */
	for (unsigned i = h->want.server; type == EXT_SUPPORTED_VERSIONS && i + 1 < n; i += 2)
		h->has_13 |= p[i] == 3 && p[i + 1] == 4;
	return 0;
}

/* GnuTLS shows the peer's record_size_limit nowhere else. */
static int see_hs_extensions(gnutls_session_t session, unsigned type, unsigned when,
			     unsigned incoming, const gnutls_datum_t *msg)
{
	(void)when;
	const bool hello = type == GNUTLS_HANDSHAKE_CLIENT_HELLO;
	struct ddps_hs *h = hs_of(session);
	int err;

	if (!incoming)
		return 0;
	err = gnutls_ext_raw_parse(h, see_hs_extension, msg,
				   hello ? GNUTLS_EXT_RAW_FLAG_TLS_CLIENT_HELLO : 0);
	h->no_13 = hello && !h->has_13;
	h->ssl3 = hello && msg->size > 1 && msg->data[0] == 3 && !msg->data[1];
	return err;
}

/* ---- life ---- */

/* Only host names are names of servers, no addresses (RFC 6066 3). */
static bool is_server_name(const char *host)
{
	const size_t len = host ? strlen(host) : 0;

	return len && !strchr(host, ':') && strspn(host, "0123456789.") < len;
}

static int set_up_session(struct ddps_hs *h, struct ddps_creds_set *set)
{
	static const unsigned char name[] = DDPS_HS_ALPN;
	const gnutls_datum_t alpn = { (unsigned char *)(uintptr_t)name, sizeof name - 1 };
	const bool server = h->want.server;
	const char *suites = SUITES;
	int err;

	if (server ? ddps_creds_has_psk(set) : ddps_creds_dials_psk(set))
		suites = ddps_creds_has_x509(set) && server ? SUITES WITH_PSK : SUITES ONLY_PSK;
	err = gnutls_priority_set_direct(h->session, suites, NULL);
	if (!err)
		err = gnutls_alpn_set_protocols(h->session, &alpn, 1,
						server ? GNUTLS_ALPN_MANDATORY : 0);
	if (!err && !server && is_server_name(h->want.host))
		err = gnutls_server_name_set(h->session, GNUTLS_NAME_DNS, h->want.host,
					     strlen(h->want.host));
	if (err)
		return ddps_verdict_set(&h->why, DDPS_E_NOMEM, 0, "GnuTLS: %s",
					gnutls_strerror(err));
	gnutls_transport_set_ptr(h->session, h);
	gnutls_transport_set_push_function(h->session, push_hs_octets);
	gnutls_transport_set_pull_function(h->session, pull_hs_octets);
	gnutls_handshake_set_secret_function(h->session, keep_secret);
	gnutls_handshake_set_hook_function(h->session,
					   server ? GNUTLS_HANDSHAKE_CLIENT_HELLO
						  : GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS,
					   GNUTLS_HOOK_PRE, see_hs_extensions);
	gnutls_handshake_set_max_packet_length(h->session, DDPS_HS_OCTETS);
	return ddps_creds_give(&h->creds, set, h->session, server, &h->why);
}

int ddps_hs_new(struct ddps_hs **out, const struct ddps_hs_conf *conf, struct ddps_verdict *why)
{
	const unsigned role =
		conf->want.server ? GNUTLS_SERVER
				  : GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT | GNUTLS_KEY_SHARE_TOP;
	struct ddps_hs *h = calloc(1, sizeof *h);
	int err;

	if (h)
		h->creds.set = conf->set;
	else
		ddps_creds_release(conf->set);
	if (!h || gnutls_init(&h->session, role | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
						   GNUTLS_NO_TICKETS | GNUTLS_NO_AUTO_REKEY)) {
		ddps_hs_free(h);
		return ddps_verdict_set(why, DDPS_E_NOMEM, 0, "no memory for a handshake");
	}
	h->want = conf->want;
	h->id.struct_size = sizeof h->id;
	err = set_up_session(h, conf->set);
	if (err) {
		*why = h->why;
		ddps_hs_free(h);
		return err;
	}
	*out = h;
	return 0;
}

static void end_hs_session(struct ddps_hs *h)
{
	if (h->session)
		gnutls_deinit(h->session);
	h->session = NULL;
}

void ddps_hs_free(struct ddps_hs *h)
{
	if (!h)
		return;
	end_hs_session(h);
	ddps_creds_release(h->creds.set);
	free(h->in.p);
	free(h->out.p);
	explicit_bzero(h, sizeof *h);
	free(h);
}

/* ---- why it failed ---- */

static enum ddps_hs_state fail_hs(struct ddps_hs *h, int alert)
{
	if (alert)
		(void)gnutls_alert_send(h->session, GNUTLS_AL_FATAL,
					(gnutls_alert_description_t)alert);
	end_hs_session(h); /* it seals nothing any more */
	return DDPS_HS_FAILED;
}

/* The peer speaks no TLS: what then? */
static bool explain_no_tls(struct ddps_hs *h)
{
	const uint8_t *p = h->in.p;

	if (h->in.len >= 4 && !memcmp(p, "MPA ", 4))
		ddps_verdict_set(&h->why, DDPS_E_PLAIN_PEER, 0,
				 "the peer speaks plain MPA, without TLS: %s",
				 h->want.server ? "it has to use tls:// in place of tcp://"
						: "use tcp:// if that is wanted, or have it listen "
						  "on tls://");
	else if (h->in.len && (*p < 20 || *p > 23))
		ddps_verdict_set(&h->why, DDPS_E_PLAIN_PEER, 0,
				 "the peer speaks no TLS: is it the right port?");
	else
		return false;
	return true;
}

static void explain_library(struct ddps_hs *h, int err, int alert)
{
	if (h->has_13 && !h->ssl3 && err == GNUTLS_E_UNSUPPORTED_VERSION_PACKET)
		ddps_verdict_set(&h->why, DDPS_E_TLS, 0,
				 "the TLS handshake failed: a record of the peer has a version in "
				 "front that is not that of TLS 1.3 records (3.3)");
	else if (h->no_13 || err == GNUTLS_E_UNSUPPORTED_VERSION_PACKET ||
		 alert == GNUTLS_A_PROTOCOL_VERSION)
		ddps_verdict_set(&h->why, DDPS_E_TLS_OLD, 0,
				 "the peer has no TLS 1.3, older ones are not taken");
	else if (err == GNUTLS_E_NO_CIPHER_SUITES || err == GNUTLS_E_NO_COMMON_KEY_SHARE ||
		 err == GNUTLS_E_INSUFFICIENT_CREDENTIALS || alert == GNUTLS_A_HANDSHAKE_FAILURE)
		ddps_verdict_set(
			&h->why, DDPS_E_TLS_SUITE, 0,
			"nothing in common with the peer: one has certificates and the other "
			"a pre-shared key only, or it lacks AES-GCM and ChaCha20, or "
			"X25519, P-256 and P-384");
	else if (err == GNUTLS_E_NO_APPLICATION_PROTOCOL ||
		 alert == GNUTLS_A_NO_APPLICATION_PROTOCOL)
		ddps_verdict_set(&h->why, DDPS_E_TLS_ALPN, 0,
				 "the peer wants another protocol than " DDPS_HS_ALPN
				 " inside TLS: is it the right port?");
	else if (alert >= 0)
		ddps_verdict_set(&h->why, DDPS_E_ALERT, 0, "the peer ended the handshake: %s",
				 gnutls_alert_get_name((gnutls_alert_description_t)alert));
	else
		ddps_verdict_set(&h->why, DDPS_E_TLS, 0, "the TLS handshake failed: %s",
				 gnutls_strerror(err));
}

static enum ddps_hs_state explain_failure(struct ddps_hs *h, int err)
{
	const bool theirs = err == GNUTLS_E_FATAL_ALERT_RECEIVED;
	const int alert = theirs ? (int)gnutls_alert_get(h->session) : -1;
	int level, own;

	if (h->no_memory || err == GNUTLS_E_MEMORY_ERROR) {
		ddps_verdict_set(&h->why, DDPS_E_NOMEM, 0, "no memory for a handshake");
		return fail_hs(h, GNUTLS_A_INTERNAL_ERROR);
	}
	if (ddps_creds_failed(&h->creds, h->session, err, alert, &h->why))
		return fail_hs(h, theirs ? 0 : h->why.alert);
	explain_library(h, err, alert);
	own = h->no_13 ? GNUTLS_A_PROTOCOL_VERSION : gnutls_error_to_alert(err, &level);
	if (h->has_13 && !h->ssl3 && own == GNUTLS_A_PROTOCOL_VERSION) /* RFC 8446 D.5 */
		own = GNUTLS_A_ILLEGAL_PARAMETER;
	return fail_hs(h, theirs ? 0 : own > 0 ? own : GNUTLS_A_INTERNAL_ERROR);
}

/* ---- the end ---- */

static void name_agreed(struct ddps_hs *h)
{
	const char *const suite = gnutls_cipher_get_name(gnutls_cipher_get(h->session));
	const char *const group = gnutls_group_get_name(gnutls_group_get(h->session));
	gnutls_datum_t alpn = { NULL, 0 };

	strcpy(h->id.version, "TLS 1.3");
	strncpy(h->id.suite, suite ? suite : "", sizeof h->id.suite - 1);
	strncpy(h->id.group, group ? group : "", sizeof h->id.group - 1);
	if (!gnutls_alpn_get_selected_protocol(h->session, &alpn) && alpn.size < sizeof h->id.alpn)
		memcpy(h->id.alpn, alpn.data, alpn.size);
}

/* What is agreed is what was offered, whatever the library let through. */
static bool is_agreed_right(const struct ddps_hs *h)
{
	return gnutls_protocol_get_version(h->session) == GNUTLS_TLS1_3 && h->has_secret[0] &&
	       h->has_secret[1] && (!h->id.alpn[0] || !strcmp(h->id.alpn, DDPS_HS_ALPN));
}

static enum ddps_hs_state judge_peer(struct ddps_hs *h, int64_t now)
{
	struct ddps_creds_peer peer;

	name_agreed(h);
	if (!is_agreed_right(h)) {
		ddps_verdict_set(&h->why, DDPS_E_TLS_ALPN, 0,
				 "the peer agreed to something else than was offered");
		return fail_hs(h, GNUTLS_A_ILLEGAL_PARAMETER);
	}
	ddps_creds_peer_of(&h->creds, h->session, &peer);
	if (ddps_creds_judge(h->creds.set, &peer, &h->want, now, &h->id, &h->why))
		return fail_hs(h, h->why.alert);
	name_agreed(h); /* the judge has written all of it anew */
	return DDPS_HS_DONE;
}

static size_t count_unread(const struct ddps_hs *h)
{
	return h->in.len - h->in.used;
}

/* As far as what is here goes: after each piece of a message GnuTLS waits for another read. */
static int shake_on(struct ddps_hs *h)
{
	size_t before;
	int err;

	do {
		before = count_unread(h);
		err = gnutls_handshake(h->session);
	} while (err == GNUTLS_E_INTERRUPTED || err == GNUTLS_E_WARNING_ALERT_RECEIVED ||
		 err == GNUTLS_E_GOT_APPLICATION_DATA ||
		 (err == GNUTLS_E_AGAIN && count_unread(h) && count_unread(h) != before));
	return err;
}

enum ddps_hs_state ddps_hs_step(struct ddps_hs *h, const uint8_t *in, size_t n, int64_t now)
{
	int err;

	h->got += n;
	if (n && !add_hs_octets(&h->in, in, n))
		h->no_memory = true;
	if (h->no_memory)
		return explain_failure(h, GNUTLS_E_MEMORY_ERROR);
	if (h->got == n && explain_no_tls(h)) /* the first octets */
		return fail_hs(h, h->want.server ? GNUTLS_A_UNEXPECTED_MESSAGE : 0);
	err = shake_on(h);
	if (!err)
		return judge_peer(h, now);
	if (err != GNUTLS_E_AGAIN)
		return explain_failure(h, err);
	if (h->got <= DDPS_HS_OCTETS)
		return DDPS_HS_MORE;
	ddps_verdict_set(&h->why, DDPS_E_TLS, 0, "the peer's handshake is longer than %u octets",
			 DDPS_HS_OCTETS);
	return fail_hs(h, GNUTLS_A_RECORD_OVERFLOW);
}

const uint8_t *ddps_hs_output(const struct ddps_hs *h, size_t *n)
{
	*n = h->out.len - h->out.used;
	return h->out.p + h->out.used;
}

void ddps_hs_sent(struct ddps_hs *h, size_t n)
{
	h->out.used += n;
}

const struct ddps_verdict *ddps_hs_why(const struct ddps_hs *h)
{
	return &h->why;
}

/* Its number and all: the library sealed records of its own perhaps. */
static void take_keys(struct ddps_hs *h, struct ddps_rec_keys *k, bool reading)
{
	gnutls_datum_t iv = { NULL, 0 }, key = { NULL, 0 };
	unsigned char seq[8] = { 0 };
	uint64_t number;

	if (gnutls_record_get_state(h->session, reading, NULL, &iv, &key, seq) ||
	    iv.size != sizeof k->iv || key.size > sizeof k->key)
		return; /* ddps_rec_init refuses what is not of its secret */
	memcpy(&number, seq, sizeof number);
	k->seq = be64toh(number);
	memcpy(k->iv, iv.data, iv.size);
	memcpy(k->key, key.data, key.size);
	memcpy(k->secret, h->secret[reading], sizeof k->secret);
}

static enum ddps_suite suite_of(gnutls_cipher_algorithm_t cipher)
{
	return cipher == GNUTLS_CIPHER_AES_128_GCM   ? DDPS_SUITE_AES_128_GCM
	       : cipher == GNUTLS_CIPHER_AES_256_GCM ? DDPS_SUITE_AES_256_GCM
						     : DDPS_SUITE_CHACHA20_POLY1305;
}

/* The octet of the content type counts for one and not for the other; the older is nothing where both are
 * (RFC 8449 5).  GnuTLS has answered it, and its own records keep to it. */
static uint16_t get_peer_limit(const struct ddps_hs *h)
{
	if (h->peer_limit || !h->peer_fragment)
		return h->peer_limit;
	return (uint16_t)(h->peer_fragment + 1);
}

void ddps_hs_take(struct ddps_hs *h, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		  const uint8_t **rest, size_t *nrest)
{
	*keys = (struct ddps_rec_config){ .suite = suite_of(gnutls_cipher_get(h->session)),
					  .client = !h->want.server,
					  .peer_limit = get_peer_limit(h) };
	take_keys(h, &keys->tx, false);
	take_keys(h, &keys->rx, true);
	*id = h->id;
	*rest = h->in.p + h->in.used;
	*nrest = h->in.len - h->in.used;
	end_hs_session(h); /* its keys have another owner now */
	explicit_bzero(h->secret, sizeof h->secret);
}
