/* SPDX-License-Identifier: BSD-2-Clause */
/* Shakes hands over datagrams by GnuTLS, in memory. */
#include "secure/hs/dhs_in.h"
#include "secure/dtls/dtls.h"
#include <ddpsess/err_codes.h>
#include <endian.h>
#include <errno.h>
#include <gnutls/dtls.h>
#include <stdlib.h>
#include <string.h>

/* RFC 9325 4.2, and the fastest first: a listener's order counts. */
#define SUITES                                                                                     \
	"SECURE128:-VERS-ALL:+VERS-DTLS1.2:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"                 \
	"+CHACHA20-POLY1305:-MAC-ALL:+AEAD:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:"             \
	"+GROUP-SECP384R1:-KX-ALL:%SERVER_PRECEDENCE"
#define WITH_X509 ":+ECDHE-ECDSA:+ECDHE-RSA"
/* forward secret; with it there is ChaCha20 alone */
#define WITH_PSK ":+ECDHE-PSK"

#define BELIEVED 2u	 /* repeats that bring nothing but an alert: after 0.4 and 0.8 s */
#define TOTAL_MS 600000u /* whoever waits has a deadline of his own */
#define EPOCH	 1u	 /* of the keys */

#define EXT_MAX_FRAGMENT      1u   /* RFC 6066 4 */
#define EXT_RECORD_SIZE_LIMIT 28u  /* RFC 8449 4 */
#define LIMIT_LEAST	      548u /* a packet of SCTP, in the least that IPv4 carries */

/* ---- datagrams ---- */

static bool add_datagram(struct ddps_dhs *d, const uint8_t *p, size_t n)
{
	if (d->sent == d->nout)
		d->sent = d->nout = 0;
	if (d->size - d->nout < n + 2) {
		size_t size = d->nout + n + 2048;
		uint8_t *more = realloc(d->out, size);

		if (!more)
			return false;
		d->out = more;
		d->size = size;
	}
	d->out[d->nout++] = (uint8_t)(n >> 8);
	d->out[d->nout++] = (uint8_t)n;
	memcpy(d->out + d->nout, p, n);
	d->nout += n;
	return true;
}

/* Numbers from DDPS_DTLS_FIRST on have another owner: what the library seals with them never leaves. */
static bool is_number_ours(const uint8_t *p, size_t n)
{
	struct ddps_dtls_head h;

	for (size_t at = 0; at < n && ddps_dtls_head(&h, p + at, n - at); at += h.len)
		if (h.epoch >= EPOCH && h.seq >= DDPS_DTLS_FIRST)
			return true;
	return false;
}

static ssize_t push_datagram(gnutls_transport_ptr_t user, const void *p, size_t n)
{
	struct ddps_dhs *d = user;

	if (is_number_ours(p, n) || n > UINT16_MAX || add_datagram(d, p, n))
		return (ssize_t)n;
	d->no_memory = true;
	gnutls_transport_set_errno(d->session, ENOMEM);
	return -1;
}

/*
 * An alert in the clear may be anybody's, and the library would believe it.  So it is only noted: if it is the peer's,
 * nothing else comes after it.  True: the record is one.
 */
static bool note_plain_alert(struct ddps_dhs *d, const struct ddps_dtls_head *h, const uint8_t *p)
{
	const uint8_t *alert = p + DDPS_DTLS_HEADER;

	if (h->type != DDPS_DTLS_ALERT || h->epoch)
		return false;
	if (h->len == DDPS_DTLS_HEADER + 2 && alert[0] == GNUTLS_AL_FATAL)
		d->alert = alert[1];
	return true;
}

/* The next record, while the handshake is on; then it is the whole datagram.  Octets, at *p; 0: none. */
static size_t cut_datagram(struct ddps_dhs *d, const uint8_t **p)
{
	struct ddps_dtls_head h;
	size_t n = 0;

	while (!n && d->in) {
		const bool cut = d->state == DDPS_HS_MORE && ddps_dtls_head(&h, d->in, d->nin);

		*p = d->in;
		n = cut ? h.len : d->nin;
		d->nin -= n;
		d->in = d->nin ? d->in + n : NULL;
		if (cut && note_plain_alert(d, &h, *p)) {
			n = 0;
		} else {
			d->alert = -1;
			d->silent = 0;
		}
	}
	return n;
}

static ssize_t pull_datagram(gnutls_transport_ptr_t user, void *p, size_t n)
{
	struct ddps_dhs *d = user;
	const uint8_t *from;
	const size_t len = cut_datagram(d, &from);

	if (!len) {
		gnutls_transport_set_errno(d->session, EAGAIN);
		return -1;
	}
	n = n < len ? n : len;
	memcpy(p, from, n);
	return (ssize_t)n;
}

static int is_datagram_there(gnutls_transport_ptr_t user, unsigned ms)
{
	const struct ddps_dhs *d = user;

	(void)ms;
	return d->in != NULL;
}

/* ---- what the peer asks for ---- */

static int see_dhs_extension(void *user, unsigned type, const unsigned char *p, unsigned n)
{
	struct ddps_dhs *d = user;
	unsigned limit = 0;

	if (type == EXT_RECORD_SIZE_LIMIT && n == 2)
		limit = (unsigned)p[0] << 8 | p[1];
	if (type == EXT_MAX_FRAGMENT && n == 1 && *p >= 1 && *p <= 4)
		limit = 256u << *p;
	if (limit && (!d->limit || limit < d->limit))
		d->limit = (uint16_t)limit;
	return 0;
}

/* GnuTLS agrees to both, and leaves it to whoever seals to keep to it. */
static int see_dhs_extensions(gnutls_session_t session, unsigned type, unsigned when,
			      unsigned incoming, const gnutls_datum_t *msg)
{
	(void)type;
	(void)when;
	return incoming ? gnutls_ext_raw_parse(gnutls_session_get_ptr(session), see_dhs_extension,
					       msg, GNUTLS_EXT_RAW_FLAG_DTLS_CLIENT_HELLO)
			: 0;
}

/* ---- life ---- */

static const char *choose_dhs_suites(const struct ddps_creds_set *set, bool server)
{
	if (!(server ? ddps_creds_has_psk(set) : ddps_creds_dials_psk(set)))
		return SUITES WITH_X509;
	return server && ddps_creds_has_x509(set) ? SUITES WITH_X509 WITH_PSK : SUITES WITH_PSK;
}

static int set_up_datagrams(struct ddps_dhs *d, const struct ddps_hs_conf *conf)
{
	const char *const host = d->want.host;
	const bool server = d->want.server;
	gnutls_dtls_prestate_st began = { .record_seq = conf->began.record_seq,
					  .hsk_read_seq = conf->began.read_seq,
					  .hsk_write_seq = conf->began.write_seq };
	int err;

	err = ddps_set_may(conf->set, server, true, &d->why);
	if (err)
		return err;
	err = gnutls_priority_set_direct(d->session, choose_dhs_suites(conf->set, server), NULL);
	if (!err && !server && host && !strchr(host, ':') &&
	    strspn(host, "0123456789.") < strlen(host))
		err = gnutls_server_name_set(d->session, GNUTLS_NAME_DNS, host, strlen(host));
	if (err)
		return ddps_verdict_set(&d->why, DDPS_E_NOMEM, 0, "GnuTLS: %s",
					gnutls_strerror(err));
	gnutls_transport_set_ptr(d->session, d);
	gnutls_transport_set_push_function(d->session, push_datagram);
	gnutls_transport_set_pull_function(d->session, pull_datagram);
	gnutls_transport_set_pull_timeout_function(d->session, is_datagram_there);
	gnutls_dtls_set_mtu(d->session, DDPS_DHS_MTU);
	gnutls_dtls_set_timeouts(d->session, conf->resend_ms ? conf->resend_ms : DDPS_DHS_RESEND,
				 TOTAL_MS);
	gnutls_handshake_set_max_packet_length(d->session, DDPS_HS_OCTETS);
	if (server) {
		gnutls_handshake_set_hook_function(d->session, GNUTLS_HANDSHAKE_CLIENT_HELLO,
						   GNUTLS_HOOK_POST, see_dhs_extensions);
		gnutls_dtls_prestate_set(d->session, &began);
	}
	return ddps_creds_give(&d->creds, conf->set, d->session, server, &d->why);
}

int ddps_dhs_new(struct ddps_hs **out, const struct ddps_hs_conf *conf, struct ddps_verdict *why)
{
	const unsigned role =
		conf->want.server ? GNUTLS_SERVER : GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT;
	struct ddps_dhs *d = calloc(1, sizeof *d);
	int err;

	if (d)
		d->creds.set = conf->set;
	else
		ddps_creds_release(conf->set);
	if (!d || gnutls_init(&d->session, role | GNUTLS_DATAGRAM | GNUTLS_NONBLOCK |
						   GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS)) {
		ddps_dhs_free((struct ddps_hs *)d);
		return ddps_verdict_set(why, DDPS_E_NOMEM, 0, "no memory for a handshake");
	}
	d->want = conf->want;
	d->id.struct_size = sizeof d->id;
	d->alert = -1;
	err = set_up_datagrams(d, conf);
	if (err) {
		*why = d->why;
		ddps_dhs_free((struct ddps_hs *)d);
		return err;
	}
	*out = (struct ddps_hs *)d;
	return 0;
}

void ddps_dhs_free(struct ddps_hs *h)
{
	struct ddps_dhs *d = dhs_of(h);

	if (!d)
		return;
	ddps_dhs_end_session(d);
	ddps_creds_release(d->creds.set);
	free(d->out);
	explicit_bzero(d, sizeof *d);
	free(d);
}

/* ---- the end ---- */

static void name_agreed_dtls(struct ddps_dhs *d)
{
	const char *const suite = gnutls_cipher_get_name(gnutls_cipher_get(d->session));
	const char *const group = gnutls_group_get_name(gnutls_group_get(d->session));

	strcpy(d->id.version, "DTLS 1.2");
	strncpy(d->id.suite, suite ? suite : "", sizeof d->id.suite - 1);
	strncpy(d->id.group, group ? group : "", sizeof d->id.group - 1);
}

/* What is agreed is what was offered, whatever the library let through; and the extended master secret. */
static bool is_dtls_right(const struct ddps_dhs *d)
{
	const gnutls_cipher_algorithm_t c = gnutls_cipher_get(d->session);

	return gnutls_protocol_get_version(d->session) == GNUTLS_DTLS1_2 &&
	       (c == GNUTLS_CIPHER_AES_128_GCM || c == GNUTLS_CIPHER_AES_256_GCM ||
		c == GNUTLS_CIPHER_CHACHA20_POLY1305) &&
	       gnutls_session_ext_master_secret_status(d->session);
}

static enum ddps_hs_state judge_dtls_peer(struct ddps_dhs *d, int64_t now)
{
	struct ddps_creds_peer peer;

	if (!is_dtls_right(d)) {
		ddps_verdict_set(&d->why, DDPS_E_TLS_SUITE, 0,
				 "the peer has no extended master secret (RFC 7627), without which "
				 "nothing is taken");
		return ddps_dhs_fail(d, GNUTLS_A_HANDSHAKE_FAILURE);
	}
	if (d->limit && d->limit < LIMIT_LEAST) {
		ddps_verdict_set(
			&d->why, DDPS_E_TLS, 0,
			"the peer takes %u octets in a record, and a packet of SCTP has more",
			d->limit);
		return ddps_dhs_fail(d, GNUTLS_A_HANDSHAKE_FAILURE);
	}
	ddps_creds_peer_of(&d->creds, d->session, &peer);
	if (ddps_creds_judge(d->creds.set, &peer, &d->want, now, &d->id, &d->why))
		return ddps_dhs_fail(d, d->why.alert);
	name_agreed_dtls(d); /* the judge has written all of it anew */
	return DDPS_HS_DONE;
}

/* One datagram, or none: what is due. */
static enum ddps_hs_state go_on_dhs(struct ddps_dhs *d, int64_t now)
{
	const uint8_t *before;
	int err;

	do {
		before = d->in;
		err = gnutls_handshake(d->session);
	} while (err == GNUTLS_E_INTERRUPTED || err == GNUTLS_E_WARNING_ALERT_RECEIVED ||
		 err == GNUTLS_E_GOT_APPLICATION_DATA ||
		 (err == GNUTLS_E_AGAIN && d->in && d->in != before));
	if (!err)
		return judge_dtls_peer(d, now);
	if (err != GNUTLS_E_AGAIN && gnutls_error_is_fatal(err))
		return ddps_dhs_explain(d, err);
	if (d->got > DDPS_HS_OCTETS) {
		ddps_verdict_set(&d->why, DDPS_E_TLS, 0,
				 "the peer's handshake is longer than %u octets", DDPS_HS_OCTETS);
		d->why.anybodys = true;
		return ddps_dhs_fail(d, GNUTLS_A_RECORD_OVERFLOW);
	}
	ddps_dhs_explain_silence(d);
	return DDPS_HS_MORE;
}

/* Its last flight came again, so that this side's got lost: GnuTLS repeats that. */
static void repeat_last_flight(struct ddps_dhs *d)
{
	uint8_t none[64];

	while (d->session && d->in) {
		ssize_t n = gnutls_record_recv(d->session, none, sizeof none);

		if (n < 0 && n != GNUTLS_E_AGAIN && n != GNUTLS_E_INTERRUPTED)
			break; /* nothing that comes there ends the connection, which has other keepers now */
	}
	d->in = NULL;
}

enum ddps_hs_state ddps_dhs_step(struct ddps_hs *h, const uint8_t *in, size_t n, int64_t now)
{
	struct ddps_dhs *d = dhs_of(h);

	do {
		size_t len = n >= 2 ? (size_t)in[0] << 8 | in[1] : 0;

		if (n && len > n - 2)
			break;
		d->in = len ? in + 2 : NULL;
		d->nin = len;
		d->got += d->state == DDPS_HS_MORE ? len : 0;
		in = n ? in + 2 + len : in;
		n -= n ? 2 + len : 0;
		if (d->state != DDPS_HS_MORE)
			repeat_last_flight(d);
		else if (!len && d->alert >= 0 && ++d->silent == BELIEVED)
			d->state = ddps_dhs_believe(d);
		else
			d->state = go_on_dhs(d, now);
	} while (n >= 2 && d->state != DDPS_HS_FAILED);
	d->in = NULL;
	return d->state;
}

const uint8_t *ddps_dhs_output(const struct ddps_hs *h, size_t *n)
{
	const struct ddps_dhs *d = dhs_of(h);

	*n = d->nout - d->sent;
	return d->out + d->sent;
}

void ddps_dhs_sent(struct ddps_hs *h, size_t n)
{
	dhs_of(h)->sent += n;
}

const struct ddps_verdict *ddps_dhs_why(const struct ddps_hs *h)
{
	return &dhs_of(h)->why;
}

unsigned ddps_dhs_timeout(const struct ddps_hs *h)
{
	const struct ddps_dhs *d = dhs_of(h);

	return d->session && d->state == DDPS_HS_MORE
		       ? (unsigned)gnutls_dtls_get_timeout(d->session)
		       : 0;
}

static void take_dtls_key(struct ddps_dhs *d, struct ddps_rec_keys *k, bool reading)
{
	gnutls_datum_t iv = { NULL, 0 }, key = { NULL, 0 };
	unsigned char seq[8] = { 0 };
	uint64_t number;

	if (gnutls_record_get_state(d->session, reading, NULL, &iv, &key, seq) ||
	    iv.size > sizeof k->iv || key.size > sizeof k->key)
		return; /* zeros open nothing */
	memcpy(&number, seq, sizeof number);
	number = be64toh(number) & DDPS_DTLS_SEQ_MAX; /* without the epoch */
	k->seq = number < DDPS_DTLS_FIRST ? DDPS_DTLS_FIRST : number;
	memcpy(k->iv, iv.data, iv.size);
	memcpy(k->key, key.data, key.size);
}

void ddps_dhs_take(struct ddps_hs *h, struct ddps_rec_config *keys, struct ddps_peer_id *id,
		   const uint8_t **rest, size_t *nrest)
{
	struct ddps_dhs *d = dhs_of(h);
	const gnutls_cipher_algorithm_t c = gnutls_cipher_get(d->session);

	*keys = (struct ddps_rec_config){ .client = !d->want.server,
					  .peer_limit = d->limit,
					  .suite = c == GNUTLS_CIPHER_AES_128_GCM
							   ? DDPS_SUITE_AES_128_GCM
						   : c == GNUTLS_CIPHER_AES_256_GCM
							   ? DDPS_SUITE_AES_256_GCM
							   : DDPS_SUITE_CHACHA20_POLY1305 };
	take_dtls_key(d, &keys->tx, false);
	take_dtls_key(d, &keys->rx, true);
	*id = d->id;
	*rest = NULL;
	*nrest = 0;
	if (!d->want.server) /* the listener's flight was the last one */
		ddps_dhs_end_session(d);
}
