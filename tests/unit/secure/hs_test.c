/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole handshakes, octets in and out: of two ends, and against strangers.  Then the keys are taken over, and
 * records of ours go both ways.
 */
#include "creds_fixture.h"
#include "secure/aead/aead_lib.h"
#include "secure/hs/hs.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WIRE 70000u

static struct site site;

struct shaker {
	struct ddps_creds *creds;
	struct ddps_hs *hs;
	enum ddps_hs_state state;
	uint8_t wire[WIRE]; /* to the other one */
	size_t len, gone;
	struct ddps_rec *rec;
	void *mem;
	struct ddps_peer_id id;
};

static struct shaker dial, serve;

static void setup_hs(void)
{
	creds_setup();
	make_site(&site);
}

TestSuite(hs, .init = setup_hs, .fini = creds_teardown);

static void begin_shaker(struct shaker *s, const struct ddps_secure_attr *attr, bool server)
{
	struct ddps_hs_conf conf = { .want = { .server = server } };
	struct ddps_verdict why;

	if (!server)
		conf.want.host = "host.example";
	s->creds = open_creds(attr);
	conf.set = use_creds(s->creds, 0);
	s->state = DDPS_HS_MORE;
	s->len = s->gone = 0;
	cr_assert_eq(ddps_hs_new(&s->hs, &conf, &why), 0, "%s", why.text);
}

static void take_output(struct shaker *s)
{
	size_t n;
	const uint8_t *p = ddps_hs_output(s->hs, &n);

	cr_assert(s->len + n <= WIRE);
	if (n)
		memcpy(s->wire + s->len, p, n);
	s->len += n;
	ddps_hs_sent(s->hs, n);
	ddps_hs_output(s->hs, &n);
	cr_expect_eq(n, 0);
}

static void step_shaker(struct shaker *s, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n + 1);

	cr_assert(copy);
	if (n)
		memcpy(copy, p, n);
	s->state = ddps_hs_step(s->hs, copy, n, NOW);
	free(copy);
	take_output(s);
}

/* Carry octets, at most @each at a time, until nothing moves. */
static void shake_both(size_t each)
{
	struct shaker *s[2] = { &dial, &serve };
	bool moved = true;

	step_shaker(&dial, NULL, 0);
	while (moved) {
		moved = false;
		for (int i = 0; i < 2; i++) {
			size_t n = s[i]->len - s[i]->gone;

			n = n < each ? n : each;
			if (!n || s[!i]->state != DDPS_HS_MORE)
				continue;
			step_shaker(s[!i], s[i]->wire + s[i]->gone, n);
			s[i]->gone += n;
			moved = true;
		}
	}
}

static void end_shaker(struct shaker *s)
{
	ddps_hs_free(s->hs);
	ddps_creds_close(s->creds);
	if (s->rec)
		ddps_rec_wipe(s->rec);
	free(s->mem);
	*s = (struct shaker){ 0 };
}

static void end_shakers(void)
{
	end_shaker(&dial);
	end_shaker(&serve);
}

/* Take the keys over; octets that were there already are opened first. */
static void take_over_keys(struct shaker *s, const char *expect)
{
	uint8_t plain[DDPS_REC_CONTENT + 1];
	struct ddps_rec_config c;
	struct ddps_rec_opened o;
	const uint8_t *rest;
	size_t n;

	ddps_hs_take(s->hs, &c, &s->id, &rest, &n);
	c.aead = ddps_aead_best();
	s->mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_rec_size(&c));
	cr_assert(s->mem);
	cr_assert_eq(ddps_rec_init(s->mem, &c, &s->rec), 0);
	cr_expect_eq(c.tx.seq, 0);
	cr_expect_eq(c.rx.seq, 0);
	if (!expect) {
		cr_expect_eq(n, 0);
		return;
	}
	o = ddps_rec_open(s->rec, rest, n, plain);
	cr_assert_eq(o.what, DDPS_REC_DATA, "%s", ddps_rec_error(s->rec).text);
	cr_expect_eq(o.used, n);
	cr_expect_eq(o.len, strlen(expect));
	cr_expect(!memcmp(plain, expect, o.len));
}

static size_t seal_text(struct shaker *s, const char *text, uint8_t *out, size_t room)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	ssize_t n = ddps_rec_seal(s->rec, &iov, 1, out, room);

	cr_assert(n > 0);
	return (size_t)n;
}

static void talk(struct shaker *from, struct shaker *to)
{
	uint8_t wire[200], plain[200];
	struct ddps_rec_opened o;

	for (int i = 0; i < 3; i++) {
		size_t n = seal_text(from, "a message", wire, sizeof wire);

		o = ddps_rec_open(to->rec, wire, n, plain);
		cr_assert_eq(o.what, DDPS_REC_DATA);
		cr_expect(o.len == 9 && !memcmp(plain, "a message", 9));
	}
}

/* ---- that succeed ---- */

static void shake_and_talk(const struct ddps_secure_attr *d, const struct ddps_secure_attr *s,
			   size_t each)
{
	begin_shaker(&dial, d, false);
	begin_shaker(&serve, s, true);
	shake_both(each);
	cr_assert_eq(dial.state, DDPS_HS_DONE, "%s", ddps_hs_why(dial.hs)->text);
	cr_assert_eq(serve.state, DDPS_HS_DONE, "%s", ddps_hs_why(serve.hs)->text);
	take_over_keys(&dial, NULL);
	take_over_keys(&serve, NULL);
	talk(&dial, &serve);
	talk(&serve, &dial);
}

Test(hs, certificates_of_both_sides)
{
	static const size_t each[] = { 1, 7, 100, WIRE };

	for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
		shake_and_talk(&site.attr, &site.attr, each[i]);
		cr_expect_eq(dial.id.how, DDPS_PEER_X509);
		cr_expect_eq(serve.id.how, DDPS_PEER_X509);
		cr_expect_str_eq(dial.id.version, "TLS 1.3");
		cr_expect_str_eq(dial.id.suite, "AES-128-GCM");
		cr_expect_str_eq(dial.id.alpn, DDPS_HS_ALPN);
		cr_expect_str_eq(serve.id.alpn, DDPS_HS_ALPN);
		end_shakers();
	}
}

Test(hs, a_psk)
{
	struct ddps_secure_attr attr;

	ddps_secure_attr_init(&attr);
	attr.psk = put_text("psk", "node-b:00112233445566778899aabbccddeeff\n", 0600);
	attr.psk_identity = "node-b";
	{
		struct ddps_secure_attr listener = attr;

		listener.psk_identity = NULL;
		shake_and_talk(&attr, &listener, WIRE);
	}
	cr_expect_eq(serve.id.how, DDPS_PEER_PSK);
	cr_expect_str_eq(serve.id.name, "psk:node-b");
	end_shakers();
}

/* Whether the file has a line of @label with the client's random, whichever that is, and with @secret. */
static bool is_logged(const char *text, const char *label, const uint8_t *secret, size_t n)
{
	const char *const line = strstr(text, label);
	char hex[2 * 48 + 2];

	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", secret[i]);
	strcat(hex, "\n");
	return line && line[strlen(label)] == ' ' &&
	       strspn(line + strlen(label) + 1, "0123456789abcdef") == 64 &&
	       !strncmp(line + strlen(label) + 66, hex, strlen(hex));
}

Test(hs, secrets_are_written_where_the_settings_say)
{
	struct ddps_secure_attr logged;
	struct ddps_rec_config c;
	const uint8_t *rest;
	char text[4096] = "";
	size_t n;
	FILE *f;

	setenv("SSLKEYLOGFILE", path_of("by-itself"), 1);
	ddps_secure_attr_init(&logged);
	logged.settings = put_text("secure.conf",
				   "cert host.pem\nkey host.key\nca ca.pem\nkeylog log\n", 0644);
	begin_shaker(&dial, &site.attr, false);
	begin_shaker(&serve, &logged, true);
	shake_both(SIZE_MAX);
	cr_assert_eq(serve.state, DDPS_HS_DONE);
	f = fopen(path_of("log"), "r");
	cr_assert(f && fread(text, 1, sizeof text - 1, f));
	fclose(f);
	ddps_hs_take(dial.hs, &c, &dial.id, &rest, &n);
	cr_expect(is_logged(text, "CLIENT_TRAFFIC_SECRET_0", c.tx.secret, 32), "%s", text);
	cr_expect(is_logged(text, "SERVER_TRAFFIC_SECRET_0", c.rx.secret, 32), "%s", text);
	cr_expect(strstr(text, "CLIENT_HANDSHAKE_TRAFFIC_SECRET "));
	cr_expect_eq(access(path_of("by-itself"), F_OK), -1);
	unlink(path_of("log"));
	end_shakers();
}

/* As after closefrom: the number of the log is a file of the program's by now. */
Test(hs, a_log_that_the_program_has_closed)
{
	const int own = memfd_create("own", MFD_CLOEXEC);
	struct ddps_secure_attr logged;
	struct stat st, log;
	int fd = 0;

	ddps_secure_attr_init(&logged);
	logged.settings = put_text("secure.conf",
				   "cert host.pem\nkey host.key\nca ca.pem\nkeylog log\n", 0644);
	begin_shaker(&dial, &site.attr, false);
	begin_shaker(&serve, &logged, true);
	cr_assert_eq(stat(path_of("log"), &log), 0);
	while (fstat(fd, &st) || st.st_ino != log.st_ino || st.st_dev != log.st_dev)
		cr_assert_lt(++fd, 1000, "it is not open");
	cr_assert_eq(dup2(own, fd), fd);
	shake_both(SIZE_MAX);
	cr_expect_eq(serve.state, DDPS_HS_DONE);
	unlink(path_of("log"));
	end_shakers();
	cr_expect_eq(fstat(own, &st), 0);
	cr_expect_eq(st.st_size, 0, "a secret is in the program's file");
	cr_expect_geq(fcntl(fd, F_GETFD), 0, "it is closed");
	close(fd);
	close(own);
}

/* Records that came in the same read as the end of the handshake are those of number 0. */
Test(hs, octets_behind_the_handshake)
{
	uint8_t all[WIRE];
	size_t n;

	begin_shaker(&dial, &site.attr, false);
	begin_shaker(&serve, &site.attr, true);
	step_shaker(&dial, NULL, 0);
	step_shaker(&serve, dial.wire, dial.len);
	dial.gone = dial.len;
	step_shaker(&dial, serve.wire, serve.len);
	cr_assert_eq(dial.state, DDPS_HS_DONE);
	take_over_keys(&dial, NULL);
	n = dial.len - dial.gone;
	memcpy(all, dial.wire + dial.gone, n);
	n += seal_text(&dial, "the first record", all + n, sizeof all - n);
	step_shaker(&serve, all, n);
	cr_assert_eq(serve.state, DDPS_HS_DONE);
	take_over_keys(&serve, "the first record");
	talk(&serve, &dial);
	talk(&dial, &serve);
	end_shakers();
}

/* ---- that fail ---- */

/* A bit anywhere in what the listener or the dialler sends: never are both done with keys of each other. */
Test(hs, a_changed_bit_anywhere, .timeout = 120)
{
	for (int from = 0; from < 2; from++)
		for (size_t at = 0, len = 1; at < len; at += 23) {
			struct shaker *s = from ? &serve : &dial, *to = from ? &dial : &serve;
			bool changed = false;

			begin_shaker(&dial, &site.attr, false);
			begin_shaker(&serve, &site.attr, true);
			step_shaker(&dial, NULL, 0);
			for (int turn = 0; turn < 6; turn++) {
				struct shaker *a = turn % 2 ? &serve : &dial;
				struct shaker *b = turn % 2 ? &dial : &serve;

				if (a == s && !changed && a->len > at) {
					a->wire[at] ^= (uint8_t)(1u << at % 8);
					changed = true;
				}
				if (a->len > a->gone && b->state == DDPS_HS_MORE)
					step_shaker(b, a->wire + a->gone, a->len - a->gone);
				a->gone = a->len;
			}
			len = s->len;
			/* the version of a record header is not looked at; a length may wait for more */
			if (changed && to->state == DDPS_HS_DONE && s->state == DDPS_HS_DONE) {
				take_over_keys(&dial, NULL);
				take_over_keys(&serve, NULL);
				talk(&dial, &serve);
				talk(&serve, &dial);
			}
			if (to->state == DDPS_HS_FAILED)
				cr_expect(ddps_hs_why(to->hs)->code < 0 &&
					  strlen(ddps_hs_why(to->hs)->text) > 10);
			end_shakers();
		}
}

/* What comes first at a listener or a dialler that is no TLS. */
Test(hs, peers_without_tls)
{
	static const struct {
		const char *said;
		int code;
		const char *text;
	} plain[] = {
		{ "MPA ID Req Frame", DDPS_E_PLAIN_PEER, "plain MPA" },
		{ "MPA ID Rep Frame", DDPS_E_PLAIN_PEER, "plain MPA" },
		{ "GET / HTTP/1.1\r\n\r\n", DDPS_E_PLAIN_PEER, "no TLS" },
		{ "SSH-2.0-OpenSSH\r\n", DDPS_E_PLAIN_PEER, "no TLS" },
	};

	for (int server = 0; server < 2; server++)
		for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
			struct shaker *s = server ? &serve : &dial;

			begin_shaker(s, &site.attr, server);
			if (!server)
				step_shaker(s, NULL, 0);
			step_shaker(s, (const uint8_t *)plain[i].said, strlen(plain[i].said));
			cr_expect_eq(s->state, DDPS_HS_FAILED);
			cr_expect_eq(ddps_hs_why(s->hs)->code, plain[i].code);
			cr_expect(strstr(ddps_hs_why(s->hs)->text, plain[i].text), "%s",
				  ddps_hs_why(s->hs)->text);
			end_shaker(s);
		}
}

/* A peer that sends handshake messages without end. */
Test(hs, a_handshake_has_a_length)
{
	static uint8_t part[16384 + 5] = { 22, 3, 3, 0x40, 0, 1, 0, 0xff, 0xff };
	unsigned n = 0;

	begin_shaker(&serve, &site.attr, true);
	while (serve.state == DDPS_HS_MORE && n < 20) {
		step_shaker(&serve, part, sizeof part);
		n++;
	}
	cr_expect_eq(serve.state, DDPS_HS_FAILED);
	cr_expect(n <= 5, "%u records", n);
	end_shaker(&serve);
}

/* ---- strangers ---- */

struct stranger {
	gnutls_session_t session;
	gnutls_certificate_credentials_t cred;
	uint8_t out[WIRE];
	size_t len;
	const uint8_t *in;
	size_t left;
};

static ssize_t stranger_writes(gnutls_transport_ptr_t user, const void *p, size_t n)
{
	struct stranger *s = user;

	memcpy(s->out + s->len, p, n);
	s->len += n;
	return (ssize_t)n;
}

static ssize_t stranger_reads(gnutls_transport_ptr_t user, void *p, size_t n)
{
	struct stranger *s = user;

	n = n < s->left ? n : s->left;
	if (!n) {
		gnutls_transport_set_errno(s->session, EAGAIN);
		return -1;
	}
	memcpy(p, s->in, n);
	s->in += n;
	s->left -= n;
	return (ssize_t)n;
}

/* A dialler by GnuTLS, with other settings than ours, at our listener; what the listener says. */
static int stranger_dials(const char *priority, const char *alpn, const struct cert *shows,
			  int *alert)
{
	struct stranger *x = calloc(1, sizeof *x);
	gnutls_datum_t name = { (unsigned char *)(uintptr_t)alpn,
				alpn ? (unsigned)strlen(alpn) : 0 };
	bool done = false;
	int code;

	cr_assert(x);
	gnutls_certificate_allocate_credentials(&x->cred);
	if (shows)
		cr_assert_eq(gnutls_certificate_set_x509_key(
				     x->cred, (gnutls_x509_crt_t[]){ shows->crt }, 1, shows->key),
			     0);
	gnutls_init(&x->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
	cr_assert_eq(gnutls_priority_set_direct(x->session, priority, NULL), 0);
	gnutls_credentials_set(x->session, GNUTLS_CRD_CERTIFICATE, x->cred);
	if (alpn)
		gnutls_alpn_set_protocols(x->session, &name, 1, 0);
	gnutls_transport_set_ptr(x->session, x);
	gnutls_transport_set_push_function(x->session, stranger_writes);
	gnutls_transport_set_pull_function(x->session, stranger_reads);
	begin_shaker(&serve, &site.attr, true);
	*alert = -1;
	for (int i = 0; i < 4; i++) {
		uint8_t b[16];
		int rc = done ? (int)gnutls_record_recv(x->session, b, sizeof b)
			      : gnutls_handshake(x->session);

		done |= !rc;
		if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED)
			*alert = (int)gnutls_alert_get(x->session);
		if (x->len && serve.state == DDPS_HS_MORE)
			step_shaker(&serve, x->out, x->len);
		x->len = 0;
		x->in = serve.wire + serve.gone;
		x->left = serve.len - serve.gone;
		serve.gone = serve.len;
	}
	code = serve.state == DDPS_HS_FAILED ? ddps_hs_why(serve.hs)->code : 0;
	end_shaker(&serve);
	gnutls_deinit(x->session);
	gnutls_certificate_free_credentials(x->cred);
	free(x);
	return code;
}

Test(hs, strangers_who_dial)
{
	static const struct {
		const char *priority, *alpn;
		const struct cert *shows;
		int code, alert;
	} who[] = {
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.2", NULL, NULL, DDPS_E_TLS_OLD,
		  GNUTLS_A_PROTOCOL_VERSION },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-CCM", NULL, NULL,
		  DDPS_E_TLS_SUITE, GNUTLS_A_HANDSHAKE_FAILURE },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.3", "http/1.1", NULL, DDPS_E_TLS_ALPN,
		  GNUTLS_A_NO_APPLICATION_PROTOCOL },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL, NULL, DDPS_E_NO_CERT,
		  GNUTLS_A_CERTIFICATE_REQUIRED },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.3:%DEBUG_ALLOW_KEY_USAGE_VIOLATIONS", NULL, &site.ca,
		  DDPS_E_CERT_USAGE, GNUTLS_A_UNSUPPORTED_CERTIFICATE },
		{ "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-SECP521R1", NULL, NULL,
		  DDPS_E_TLS_SUITE, GNUTLS_A_HANDSHAKE_FAILURE },
	};

	for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
		int alert,
			code = stranger_dials(who[i].priority, who[i].alpn, who[i].shows, &alert);

		cr_expect_eq(code, who[i].code, "%s %s: code %d", who[i].priority,
			     who[i].alpn ? who[i].alpn : "", code);
		cr_expect_eq(alert, who[i].alert, "%s %s: alert %d", who[i].priority,
			     who[i].alpn ? who[i].alpn : "", alert);
	}
}

/* A key costs a fifteenth of a handshake, so one is made, of X25519.  A listener that lacks it asks for another. */
Test(hs, a_listener_that_asks_for_another_group)
{
	struct stranger *x = calloc(1, sizeof *x);

	cr_assert(x);
	gnutls_certificate_allocate_credentials(&x->cred);
	cr_assert_eq(gnutls_certificate_set_x509_key(x->cred, &site.host.crt, 1, site.host.key), 0);
	gnutls_init(&x->session, GNUTLS_SERVER | GNUTLS_NONBLOCK);
	cr_assert_eq(gnutls_priority_set_direct(x->session,
						"NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:"
						"+GROUP-SECP256R1",
						NULL),
		     0);
	gnutls_credentials_set(x->session, GNUTLS_CRD_CERTIFICATE, x->cred);
	gnutls_transport_set_ptr(x->session, x);
	gnutls_transport_set_push_function(x->session, stranger_writes);
	gnutls_transport_set_pull_function(x->session, stranger_reads);
	begin_shaker(&dial, &site.attr, false);
	step_shaker(&dial, NULL, 0);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(dial.state, DDPS_HS_MORE, "%d", i);
		x->in = dial.wire + dial.gone;
		x->left = dial.len - dial.gone;
		dial.gone = dial.len;
		while (gnutls_handshake(x->session) == GNUTLS_E_AGAIN && x->left)
			;
		step_shaker(&dial, x->out, x->len);
		x->len = 0;
	}
	cr_assert_eq(dial.state, DDPS_HS_DONE, "%s", ddps_hs_why(dial.hs)->text);
	take_over_keys(&dial, NULL);
	cr_expect_str_eq(dial.id.group, "SECP256R1");
	end_shaker(&dial);
	gnutls_deinit(x->session);
	gnutls_certificate_free_credentials(x->cred);
	free(x);
}

/* A message may come in many records, and all of them in one read: what is there is used, though GnuTLS says
 * after each piece that it waits for more. */
Test(hs, a_message_in_many_records_that_came_together)
{
	enum { PIECE = 50 };
	uint8_t cut[4096];
	size_t n = 0, at = 5;

	begin_shaker(&serve, &site.attr, true);
	begin_shaker(&dial, &site.attr, false);
	step_shaker(&dial, NULL, 0);
	while (at < dial.len) {
		size_t len = dial.len - at < PIECE ? dial.len - at : PIECE;

		cr_assert(n + 5 + len <= sizeof cut);
		memcpy(cut + n, (uint8_t[]){ 22, 3, 1, 0, (uint8_t)len }, 5);
		memcpy(cut + n + 5, dial.wire + at, len);
		n += 5 + len;
		at += len;
	}
	step_shaker(&serve, cut, n);
	cr_expect_gt(serve.len, 0, "it waits for what it has");
	dial.gone = dial.len;
	while (serve.gone < serve.len || dial.gone < dial.len) {
		step_shaker(&dial, serve.wire + serve.gone, serve.len - serve.gone);
		serve.gone = serve.len;
		step_shaker(&serve, dial.wire + dial.gone, dial.len - dial.gone);
		dial.gone = dial.len;
	}
	cr_expect_eq(serve.state, DDPS_HS_DONE);
	end_shakers();
}

/* A hello of SSL 3.0 is refused as such, whatever it offers (RFC 8446 D.5). */
Test(hs, a_hello_of_ssl_3)
{
	const uint8_t *alert;

	begin_shaker(&serve, &site.attr, true);
	begin_shaker(&dial, &site.attr, false);
	step_shaker(&dial, NULL, 0);
	cr_assert_eq(dial.wire[9], 3);
	dial.wire[10] = 0;
	step_shaker(&serve, dial.wire, dial.len);
	cr_expect_eq(serve.state, DDPS_HS_FAILED);
	cr_expect_eq(ddps_hs_why(serve.hs)->code, DDPS_E_TLS_OLD);
	alert = serve.wire + serve.len - 7;
	cr_expect(serve.len >= 7 && alert[0] == 21 && alert[6] == GNUTLS_A_PROTOCOL_VERSION);
	end_shakers();
}

/* It means nothing, so that any number of them may come (RFC 8446 D.4).  GnuTLS looks at the version of its
 * record, and then it is not true that the peer has no TLS 1.3. */
Test(hs, a_change_of_cipher_behind_the_client_hello)
{
	uint8_t change[] = { 20, 3, 3, 0, 1, 1 };

	for (int old = 0; old < 2; old++) {
		begin_shaker(&serve, &site.attr, true);
		begin_shaker(&dial, &site.attr, false);
		step_shaker(&dial, NULL, 0);
		change[2] = old ? 1 : 3;
		for (int i = 0; i < 3; i++, dial.len += sizeof change)
			memcpy(dial.wire + dial.len, change, sizeof change);
		step_shaker(&serve, dial.wire, dial.len);
		dial.gone = dial.len;
		if (!old) {
			step_shaker(&dial, serve.wire, serve.len);
			step_shaker(&serve, dial.wire + dial.gone, dial.len - dial.gone);
			cr_expect_eq(serve.state, DDPS_HS_DONE);
		} else {
			cr_expect_eq(serve.state, DDPS_HS_FAILED);
			cr_expect_eq(ddps_hs_why(serve.hs)->code, DDPS_E_TLS);
			cr_expect(strstr(ddps_hs_why(serve.hs)->text, "(3.3)"), "%s",
				  ddps_hs_why(serve.hs)->text);
		}
		end_shakers();
	}
}
