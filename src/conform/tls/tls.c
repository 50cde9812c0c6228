/* SPDX-License-Identifier: BSD-2-Clause */
/* The conformance suite's TLS, by GnuTLS alone. */
#include "conform/tls/tls_in.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LINE 1024
#define ALPN "x-iwarp-mpa"

enum { F_CERT, F_KEY, F_CA, F_PSK, F_IDENTITY, F_PEER, FILES };

struct cf_tls_creds {
	char *file[FILES];
	gnutls_certificate_credentials_t x509,
		nameless; /* @nameless: the same without an own one */
	gnutls_psk_server_credentials_t psk_server;
	gnutls_psk_client_credentials_t psk_client;
};

struct cf_tls {
	gnutls_session_t session;
	struct cf_tls_creds *creds;
	gnutls_datum_t ticket_key;
	int fd;
	int alert; /* of the target, -1: none */
};

/* ---- what the options and the settings file say ---- */

static int keep_text(char **to, const char *text)
{
	if (!text || *to)
		return 0;
	*to = strdup(text);
	return *to ? 0 : -1;
}

/* "WORD VALUE" or "WORD = VALUE"; a file's name is relative to the folder of @path. */
static int take_tls_line(struct cf_tls_creds *c, const char *path, char *line)
{
	static const char *const words[FILES] = {
		"cert", "key", "ca", "psk", "psk-identity", "peer"
	};
	const char *slash = strrchr(path, '/');
	char *word = line + strspn(line, " \t"), *value = word + strcspn(word, " \t=\n"), *end;
	char full[LINE * 2];

	end = value + strlen(value);
	while (end > value && isspace((unsigned char)end[-1]))
		*--end = 0;
	if (!*value)
		return 0;
	*value++ = 0;
	value += strspn(value, " \t=");
	for (int i = 0; i < FILES; i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		if (i > F_PSK || *value == '/' || !slash)
			return keep_text(&c->file[i], value);
		snprintf(full, sizeof full, "%.*s/%s", (int)(slash - path), path, value);
		return keep_text(&c->file[i], full);
	}
	return 0;
}

static int take_settings(struct cf_tls_creds *c, const struct ddps_secure_attr *a)
{
	const char *const given[FILES] = {
		a->cert, a->key, a->ca, a->psk, a->psk_identity, a->peer
	};
	char line[LINE];
	FILE *f;
	int err = 0;

	for (int i = 0; i < FILES; i++)
		err |= keep_text(&c->file[i], given[i]);
	f = a->settings ? fopen(a->settings, "re") : NULL;
	while (f && !err && fgets(line, sizeof line, f))
		if (*line != '#')
			err = take_tls_line(c, a->settings, line);
	if (f)
		fclose(f);
	return err;
}

/* The client's: the line of the identity that was named, else the last one. */
static int take_psk(struct cf_tls_creds *c)
{
	FILE *f = fopen(c->file[F_PSK], "re");
	char line[LINE], user[LINE] = "", hex[LINE] = "";
	gnutls_datum_t key;

	while (f && fgets(line, sizeof line, f)) {
		char *colon = strrchr(line, ':');

		if (*line == '#' || !colon)
			continue;
		*colon = 0;
		if (c->file[F_IDENTITY] && strcmp(line, c->file[F_IDENTITY]) != 0)
			continue;
		strcpy(user, line);
		strcpy(hex, colon + 1);
		hex[strcspn(hex, " \r\n")] = 0;
	}
	if (f)
		fclose(f);
	key = (gnutls_datum_t){ (unsigned char *)hex, (unsigned)strlen(hex) };
	return gnutls_psk_allocate_client_credentials(&c->psk_client) ||
	       gnutls_psk_set_client_credentials(c->psk_client, user, &key, GNUTLS_PSK_KEY_HEX) ||
	       gnutls_psk_allocate_server_credentials(&c->psk_server) ||
	       gnutls_psk_set_server_credentials_file(c->psk_server, c->file[F_PSK]);
}

static int take_x509(struct cf_tls_creds *c)
{
	int err = gnutls_certificate_allocate_credentials(&c->x509);

	if (!err)
		err = gnutls_certificate_allocate_credentials(&c->nameless);
	if (!err)
		err = gnutls_certificate_set_x509_key_file(c->x509, c->file[F_CERT], c->file[F_KEY],
							   GNUTLS_X509_FMT_PEM);
	if (err)
		return err;
	err = gnutls_certificate_set_x509_trust_file(c->nameless, c->file[F_CA],
						     GNUTLS_X509_FMT_PEM);
	if (err >= 0)
		err = gnutls_certificate_set_x509_trust_file(c->x509, c->file[F_CA],
							     GNUTLS_X509_FMT_PEM);
	return err < 0 ? err : 0;
}

static void unload_creds(struct cf_tls_creds *c)
{
	if (c->x509)
		gnutls_certificate_free_credentials(c->x509);
	if (c->nameless)
		gnutls_certificate_free_credentials(c->nameless);
	if (c->psk_server)
		gnutls_psk_free_server_credentials(c->psk_server);
	if (c->psk_client)
		gnutls_psk_free_client_credentials(c->psk_client);
	for (int i = 0; i < FILES; i++)
		free(c->file[i]);
	free(c);
}

static struct cf_tls_creds *load_creds(const struct ddps_secure_attr *attr, char *why, size_t len)
{
	struct cf_tls_creds *c = calloc(1, sizeof *c);
	int err = c && !take_settings(c, attr) ? 0 : GNUTLS_E_MEMORY_ERROR;

	if (!err && c->file[F_PSK])
		err = take_psk(c);
	if (!err && c->file[F_CERT])
		err = take_x509(c);
	if (!err)
		return c;
	snprintf(why, len, "GnuTLS does not take the files: %s", gnutls_strerror(err));
	if (c)
		unload_creds(c);
	return NULL;
}

static bool has_certificate(const struct cf_tls_creds *c)
{
	return c->x509;
}

/* ---- a connection ---- */

static ssize_t push_to_fd(gnutls_transport_ptr_t p, const void *b, size_t n)
{
	return send(((struct cf_tls *)p)->fd, b, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t pull_from_fd(gnutls_transport_ptr_t p, void *b, size_t n)
{
	return recv(((struct cf_tls *)p)->fd, b, n, MSG_DONTWAIT);
}

static int choose_suites(struct cf_tls *t, unsigned how, bool psk)
{
	char suites[120];

	snprintf(suites, sizeof suites, "NORMAL:-VERS-ALL:%s%s",
		 how & CF_TLS_OLD ? "+VERS-TLS1.2" : "+VERS-TLS1.3",
		 psk ? ":+ECDHE-PSK:+DHE-PSK" : "");
	return gnutls_priority_set_direct(t->session, suites, NULL);
}

/* A name as GnuTLS takes it; another kind is not compared. */
static const char *name_to_check(const struct cf_tls_creds *c, const char *host)
{
	const char *name = c->file[F_PEER] ? c->file[F_PEER] : host;

	if (name && !strncmp(name, "dns:", 4))
		return name + 4;
	if (name && !strncmp(name, "ip:", 3))
		return name + 3;
	return name && (strstr(name, "uri:") || strstr(name, "fp:") || strchr(name, ',')) ? NULL
											  : name;
}

bool cf_tls_by_psk(const struct cf_tls_creds *c)
{
	return !c->x509;
}

int cf_tls_give(gnutls_session_t s, struct cf_tls_creds *c, bool server, const char *host,
		unsigned how)
{
	int err;

	if (!c->x509)
		return gnutls_credentials_set(
			s, GNUTLS_CRD_PSK, server ? (void *)c->psk_server : (void *)c->psk_client);
	err = gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE,
				     how & CF_TLS_NO_CERT ? c->nameless : c->x509);
	if (server)
		gnutls_certificate_server_set_request(s, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_cert(s, name_to_check(c, host), 0);
	return err;
}

static void free_tls_peer(struct cf_tls *t)
{
	if (t->session)
		gnutls_deinit(t->session);
	gnutls_free(t->ticket_key.data);
	free(t);
}

static int set_up_peer(struct cf_tls *t, bool server, const char *host, unsigned how)
{
	static unsigned char name[] = ALPN;
	const gnutls_datum_t alpn = { name, sizeof name - 1 };
	unsigned flags = (server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK |
			 GNUTLS_NO_SIGNAL | GNUTLS_NO_AUTO_REKEY;
	int err = gnutls_init(&t->session, how & CF_TLS_TICKET ? flags : flags | GNUTLS_NO_TICKETS);

	if (!err && how & CF_TLS_TICKET)
		err = gnutls_session_ticket_key_generate(&t->ticket_key);
	if (!err && how & CF_TLS_TICKET)
		err = gnutls_session_ticket_enable_server(t->session, &t->ticket_key);
	if (!err)
		err = choose_suites(t, how, cf_tls_by_psk(t->creds));
	if (!err)
		err = gnutls_alpn_set_protocols(t->session, &alpn, 1,
						server ? GNUTLS_ALPN_MANDATORY : 0);
	if (!err)
		err = cf_tls_give(t->session, t->creds, server, host, how);
	if (err)
		return err;
	gnutls_transport_set_ptr(t->session, t);
	gnutls_transport_set_push_function(t->session, push_to_fd);
	gnutls_transport_set_pull_function(t->session, pull_from_fd);
	return 0;
}

static struct cf_tls *begin_peer(struct cf_tls_creds *creds, int fd, bool server, const char *host,
				 unsigned how, char *why, size_t len)
{
	struct cf_tls *t = calloc(1, sizeof *t);
	int err = GNUTLS_E_MEMORY_ERROR;

	if (t) {
		*t = (struct cf_tls){ .creds = creds, .fd = fd, .alert = -1 };
		err = set_up_peer(t, server, host, how);
	}
	if (!err)
		return t;
	snprintf(why, len, "GnuTLS: %s", gnutls_strerror(err));
	if (t)
		free_tls_peer(t);
	return NULL;
}

static void note_alert(struct cf_tls *t, int err)
{
	if (err == GNUTLS_E_FATAL_ALERT_RECEIVED || err == GNUTLS_E_WARNING_ALERT_RECEIVED)
		t->alert = (int)gnutls_alert_get(t->session);
}

static const char *name_alert(const struct cf_tls *t)
{
	return t->alert < 0 ? NULL : gnutls_alert_get_name((gnutls_alert_description_t)t->alert);
}

static int step_peer(struct cf_tls *t, char *why, size_t len)
{
	gnutls_datum_t said;
	int err;

	do
		err = gnutls_handshake(t->session);
	while (err == GNUTLS_E_INTERRUPTED);
	if (!err)
		return 0;
	if (err == GNUTLS_E_AGAIN)
		return gnutls_record_get_direction(t->session) ? CF_TLS_WRITE : CF_TLS_READ;
	note_alert(t, err);
	if (err == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
	    !gnutls_certificate_verification_status_print(
		    gnutls_session_get_verify_cert_status(t->session), GNUTLS_CRT_X509, &said, 0)) {
		snprintf(why, len, "%s", (char *)said.data);
		gnutls_free(said.data);
	} else {
		snprintf(why, len, "%s%s%s", gnutls_strerror(err), t->alert < 0 ? "" : ": ",
			 t->alert < 0 ? "" : name_alert(t));
	}
	return CF_TLS_FAILED;
}

/* ---- octets ---- */

static ssize_t explain_octets(struct cf_tls *t, ssize_t n)
{
	if (n >= 0)
		return n;
	note_alert(t, (int)n);
	switch (n) {
	case GNUTLS_E_AGAIN:
	case GNUTLS_E_INTERRUPTED:
		return -EAGAIN;
	case GNUTLS_E_PREMATURE_TERMINATION:
		return -EPIPE;
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
		return -ECONNABORTED;
	case GNUTLS_E_PULL_ERROR:
	case GNUTLS_E_PUSH_ERROR:
		return -ECONNRESET;
	default:
		return -EBADMSG;
	}
}

static ssize_t write_octets(struct cf_tls *t, const void *p, size_t n)
{
	/* an empty record it takes with padding only */
	return explain_octets(t, n ? gnutls_record_send(t->session, p, n)
				   : gnutls_record_send2(t->session, p, 0, 1, 0));
}

static ssize_t read_octets(struct cf_tls *t, void *p, size_t n)
{
	return explain_octets(t, gnutls_record_recv(t->session, p, n));
}

static int say_bye(struct cf_tls *t)
{
	return gnutls_bye(t->session, GNUTLS_SHUT_WR);
}

static int renew_peer_keys(struct cf_tls *t, bool ask)
{
	return gnutls_session_key_update(t->session, ask ? GNUTLS_KU_PEER : 0);
}

static int send_ticket(struct cf_tls *t)
{
	return gnutls_session_ticket_send(t->session, 1, 0);
}

static size_t count_records_read(const struct cf_tls *t)
{
	unsigned char seq[8] = { 0 };
	size_t n = 0;

	(void)gnutls_record_get_state(t->session, 1, NULL, NULL, NULL, seq);
	for (int i = 0; i < 8; i++)
		n = n << 8 | seq[i];
	return n;
}

DDPS_API extern const struct cf_tls_lib ddps_conform_tls;
const struct cf_tls_lib ddps_conform_tls = {
	.abi = CF_TLS_ABI,
	.load = load_creds,
	.unload = unload_creds,
	.has_x509 = has_certificate,
	.begin = begin_peer,
	.step = step_peer,
	.write = write_octets,
	.read = read_octets,
	.alert = name_alert,
	.bye = say_bye,
	.update = renew_peer_keys,
	.ticket = send_ticket,
	.records_read = count_records_read,
	.free = free_tls_peer,
	.dial = cf_dtls_dial,
	.front = cf_dtls_front,
	.close = cf_dtls_close,
};
