/* SPDX-License-Identifier: BSD-2-Clause */
/* See peer_tls.h: by the calls of GnuTLS; and our records after its handshake. */
#include "peer_tls.h"
#include "secure/aead/aead_lib.h"
#include "secure/record/record.h"
#include <endian.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/socket.h>

#define NAME "localhost" /* in the certificate, and looked for in the peer's */

struct session {
	gnutls_session_t g;
	uint8_t secret[2][32]; /* to write with, to read with */
};

static gnutls_certificate_credentials_t cert;
static gnutls_psk_client_credentials_t psk_client;
static gnutls_psk_server_credentials_t psk_server;
static const gnutls_datum_t psk = { (unsigned char *)PEER_PSK, sizeof PEER_PSK - 1 };

static void need(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, gnutls_strerror(rc));
	exit(1);
}

static int find_psk(gnutls_session_t s, const char *name, gnutls_datum_t *key)
{
	(void)s;
	(void)name;
	key->data = gnutls_malloc(psk.size);
	key->size = psk.size;
	memcpy(key->data, psk.data, psk.size);
	return 0;
}

static gnutls_x509_privkey_t generate_gnutls_key(void)
{
	gnutls_x509_privkey_t key;

	need(gnutls_x509_privkey_init(&key), "key");
	need(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	     "generate");
	return key;
}

static gnutls_x509_crt_t begin_certificate(const char *serial, gnutls_x509_privkey_t key)
{
	gnutls_x509_crt_t crt;

	need(gnutls_x509_crt_init(&crt), "certificate");
	gnutls_x509_crt_set_version(crt, 3);
	gnutls_x509_crt_set_serial(crt, serial, 1);
	gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60);
	gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 86400);
	gnutls_x509_crt_set_key(crt, key);
	return crt;
}

/* An authority and one certificate by it, which both sides have: as much to verify as any site has. */
static void prepare_gnutls(void)
{
	gnutls_x509_privkey_t ca_key = generate_gnutls_key(), key = generate_gnutls_key();
	gnutls_x509_crt_t ca = begin_certificate("\1", ca_key), crt = begin_certificate("\2", key);

	gnutls_x509_crt_set_dn(ca, "CN=bench CA", NULL);
	gnutls_x509_crt_set_basic_constraints(ca, 1, 0);
	need(gnutls_x509_crt_sign2(ca, ca, ca_key, GNUTLS_DIG_SHA256, 0), "sign");
	gnutls_x509_crt_set_dn(crt, "CN=bench", NULL);
	gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, NAME, sizeof NAME - 1, 0);
	need(gnutls_x509_crt_sign2(crt, ca, ca_key, GNUTLS_DIG_SHA256, 0), "sign");
	need(gnutls_certificate_allocate_credentials(&cert), "credentials");
	need(gnutls_certificate_set_x509_key(cert, &crt, 1, key), "use");
	need(gnutls_certificate_set_x509_trust(cert, &ca, 1), "trust");
	need(gnutls_psk_allocate_client_credentials(&psk_client), "PSK");
	need(gnutls_psk_set_client_credentials(psk_client, PEER_PSK_NAME, &psk, GNUTLS_PSK_KEY_RAW),
	     "PSK");
	need(gnutls_psk_allocate_server_credentials(&psk_server), "PSK");
	gnutls_psk_set_server_credentials_function(psk_server, find_psk);
}

static int see_secret(gnutls_session_t g, gnutls_record_encryption_level_t level, const void *rd,
		      const void *wr, size_t n)
{
	struct session *s = gnutls_session_get_ptr(g);

	if (level == GNUTLS_ENCRYPTION_LEVEL_APPLICATION && wr)
		memcpy(s->secret[0], wr, n);
	if (level == GNUTLS_ENCRYPTION_LEVEL_APPLICATION && rd)
		memcpy(s->secret[1], rd, n);
	return 0;
}

static void *begin_gnutls(int fd, int server, int x509)
{
	struct session *s = peer_memory(sizeof *s);
	int rc;

	need(gnutls_init(&s->g, (server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK),
	     "init");
	need(gnutls_priority_set_direct(
		     s->g,
		     x509 ? "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:%NO_TICKETS"
			  : "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-KX-ALL:"
			    "+ECDHE-PSK:%NO_TICKETS",
		     NULL),
	     "priority");
	if (x509) {
		need(gnutls_credentials_set(s->g, GNUTLS_CRD_CERTIFICATE, cert), "credentials");
		gnutls_session_set_verify_cert(s->g, NAME, 0);
		if (server)
			gnutls_certificate_server_set_request(s->g, GNUTLS_CERT_REQUIRE);
	} else if (server) {
		need(gnutls_credentials_set(s->g, GNUTLS_CRD_PSK, psk_server), "credentials");
	} else {
		need(gnutls_credentials_set(s->g, GNUTLS_CRD_PSK, psk_client), "credentials");
	}
	gnutls_session_set_ptr(s->g, s);
	gnutls_handshake_set_secret_function(s->g, see_secret);
	gnutls_transport_set_int(s->g, fd);
	do
		rc = gnutls_handshake(s->g);
	while (rc < 0 && !gnutls_error_is_fatal(rc));
	need(rc, "handshake");
	return s;
}

static void write_gnutls(void *end, const uint8_t *p, size_t n)
{
	struct session *s = end;

	while (n) {
		ssize_t k = gnutls_record_send(s->g, p, n);

		if (k == GNUTLS_E_AGAIN || k == GNUTLS_E_INTERRUPTED)
			continue;
		need((int)k, "send");
		p += k;
		n -= (size_t)k;
	}
}

static size_t read_gnutls(void *end, uint8_t *p, size_t n)
{
	struct session *s = end;
	ssize_t k;

	do
		k = gnutls_record_recv(s->g, p, n);
	while (k == GNUTLS_E_AGAIN || k == GNUTLS_E_INTERRUPTED);
	need((int)k, "recv");
	return (size_t)k;
}

static void close_gnutls(void *end)
{
	struct session *s = end;

	while (gnutls_bye(s->g, GNUTLS_SHUT_WR) == GNUTLS_E_AGAIN)
		;
	gnutls_deinit(s->g);
	free(s);
}

const struct peer_tls peer_gnutls = {
	.name = "gnutls",
	.prepare = prepare_gnutls,
	.begin = begin_gnutls,
	.write = write_gnutls,
	.read = read_gnutls,
	.close = close_gnutls,
};

/* ---- our records ---- */

#define IN_ROOM	 (256u << 10)
#define OUT_ROOM (128u << 10)

struct own {
	struct ddps_rec *r;
	int fd;
	size_t at, len; /* what was read and not opened */
	size_t plain_at, plain_len;
	uint8_t in[IN_ROOM], out[OUT_ROOM], plain[DDPS_REC_CONTENT + 1];
};

static void take_own_keys(struct ddps_rec_keys *k, struct session *s, int reading)
{
	gnutls_datum_t iv, key;
	uint64_t seq;

	need(gnutls_record_get_state(s->g, (unsigned)reading, NULL, &iv, &key, (uint8_t *)&seq),
	     "state");
	k->seq = be64toh(seq);
	memcpy(k->iv, iv.data, iv.size);
	memcpy(k->key, key.data, key.size);
	memcpy(k->secret, s->secret[reading], sizeof s->secret[reading]);
}

static void *begin_own_by(const struct ddps_aead *aead, int fd, int server, int x509)
{
	struct session *s = begin_gnutls(fd, server, x509);
	struct ddps_rec_config c = { .aead = aead,
				     .suite = DDPS_SUITE_AES_128_GCM,
				     .client = !server };
	struct own *o = peer_memory(sizeof *o);
	void *mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_rec_size(&c));

	take_own_keys(&c.tx, s, 0);
	take_own_keys(&c.rx, s, 1);
	gnutls_deinit(s->g);
	free(s);
	*o = (struct own){ .fd = fd };
	if (!mem || ddps_rec_init(mem, &c, &o->r))
		peer_die("records");
	return o;
}

static void *begin_own(int fd, int server, int x509)
{
	return begin_own_by(ddps_aead_best(), fd, server, x509);
}

static void *begin_own_gnutls(int fd, int server, int x509)
{
	return begin_own_by(ddps_aead_gnutls(), fd, server, x509);
}

static void flush_own(struct own *o, size_t n)
{
	const uint8_t *p = o->out;

	while (n) {
		ssize_t k = send(o->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno != EAGAIN)
			peer_die("send");
		p += k > 0 ? k : 0;
		n -= k > 0 ? (size_t)k : 0;
	}
}

static void write_own(void *end, const uint8_t *p, size_t n)
{
	struct own *o = end;
	size_t filled = 0;

	while (n) {
		size_t part = n < DDPS_REC_CONTENT ? n : DDPS_REC_CONTENT;
		struct iovec iov[] = { { (void *)p, part / 2 },
				       { (void *)(p + part / 2), part - part / 2 } };
		ssize_t k = ddps_rec_seal(o->r, iov, 2, o->out + filled, OUT_ROOM - filled);

		if (k == -ENOBUFS) {
			flush_own(o, filled);
			filled = 0;
			continue;
		}
		if (k < 0)
			peer_die("seal");
		filled += (size_t)k;
		p += part;
		n -= part;
	}
	flush_own(o, filled);
}

static void fill_own(struct own *o)
{
	ssize_t k;

	memmove(o->in, o->in + o->at, o->len - o->at);
	o->len -= o->at;
	o->at = 0;
	do
		k = recv(o->fd, o->in + o->len, IN_ROOM - o->len, MSG_DONTWAIT);
	while (k < 0 && errno == EAGAIN);
	if (k <= 0)
		peer_die("recv");
	o->len += (size_t)k;
}

/* Opened to scratch, then copied: as the stack does. */
static size_t read_own(void *end, uint8_t *p, size_t n)
{
	struct own *o = end;
	struct ddps_rec_opened r;

	while (o->plain_at == o->plain_len) {
		r = ddps_rec_open(o->r, o->in + o->at, o->len - o->at, o->plain);
		if (r.what == DDPS_REC_FAILED)
			peer_die("record");
		if (r.what == DDPS_REC_CLOSED)
			return 0;
		o->at += r.used;
		o->plain_at = 0;
		o->plain_len = r.len;
		if (r.what == DDPS_REC_MORE)
			fill_own(o);
	}
	if (n > o->plain_len - o->plain_at)
		n = o->plain_len - o->plain_at;
	memcpy(p, o->plain + o->plain_at, n);
	o->plain_at += n;
	return n;
}

static void close_own(void *end)
{
	struct own *o = end;
	ssize_t k = ddps_rec_seal_alert(o->r, DDPS_ALERT_CLOSE_NOTIFY, o->out, OUT_ROOM);

	if (k > 0)
		flush_own(o, (size_t)k);
	ddps_rec_wipe(o->r);
	free(o->r);
	free(o);
}

const struct peer_tls peer_own = {
	.name = "own",
	.prepare = prepare_gnutls,
	.begin = begin_own,
	.write = write_own,
	.read = read_own,
	.close = close_own,
};

const struct peer_tls peer_own_gnutls = {
	.name = "own-gnutls",
	.prepare = prepare_gnutls,
	.begin = begin_own_gnutls,
	.write = write_own,
	.read = read_own,
	.close = close_own,
};
