/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenSSL at the other end of DTLS, with its own records, in both roles.  It puts the messages of a flight into as few
 * datagrams as it can, each in a record of its own; the handshake takes them one by one, as sctps:// cuts them, or
 * together.
 */
#include "creds_fixture.h"
#include "secure/aead/aead_lib.h"
#include "secure/dtls/dtls.h"
#include "secure/hs/dhs.h"
#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE 64u

struct way {
	struct {
		uint8_t b[2048];
		size_t n;
	} packet[QUEUE];
	unsigned head, tail;
};

static struct site site;
static struct {
	struct way to_us, to_lib;
	SSL_CTX *ctx;
	SSL *ssl;
	BIO_METHOD *method;
	struct ddps_creds *creds;
	struct ddps_hs *hs;
	enum ddps_hs_state state;
	bool we_listen, cut;
	uint8_t fragment; /* max_fragment_length (RFC 6066 4) that it asks for, or 0 */
	unsigned packed;  /* datagrams of its with several records */
} judge;

static void setup_dtls_judge(void)
{
	creds_setup();
	make_site(&site);
	memset(&judge, 0, sizeof judge);
}

static void teardown_dtls_judge(void)
{
	SSL_free(judge.ssl);
	SSL_CTX_free(judge.ctx);
	BIO_meth_free(judge.method);
	ddps_dhs_free(judge.hs);
	if (judge.creds)
		ddps_creds_close(judge.creds);
	creds_teardown();
}

TestSuite(dtls_judge, .init = setup_dtls_judge, .fini = teardown_dtls_judge);

static void sure_of(bool ok, const char *what)
{
	cr_assert(ok, "%s: %s", what, ERR_error_string(ERR_peek_last_error(), NULL));
}

static void put_on_way(struct way *w, const void *p, size_t n)
{
	cr_assert(w->tail - w->head < QUEUE && n <= sizeof w->packet->b);
	memcpy(w->packet[w->tail % QUEUE].b, p, n);
	w->packet[w->tail++ % QUEUE].n = n;
}

/* ---- OpenSSL's socket ---- */

static int write_judge_datagram(BIO *b, const char *p, int n)
{
	struct ddps_dtls_head h;

	(void)b;
	if (ddps_dtls_head(&h, (const uint8_t *)p, (size_t)n))
		judge.packed += h.len < (size_t)n;
	put_on_way(&judge.to_us, p, (size_t)n);
	return n;
}

static int read_judge_datagram(BIO *b, char *p, int n)
{
	struct way *w = &judge.to_lib;
	size_t len;

	BIO_clear_retry_flags(b);
	if (w->head == w->tail) {
		BIO_set_retry_read(b);
		return -1;
	}
	len = w->packet[w->head % QUEUE].n;
	len = len < (size_t)n ? len : (size_t)n;
	memcpy(p, w->packet[w->head++ % QUEUE].b, len);
	return (int)len;
}

static long control_judge_socket(BIO *b, int cmd, long num, void *ptr)
{
	(void)b;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH;
}

static void begin_judge(void)
{
	BIO *bio;

	judge.ctx = SSL_CTX_new(judge.we_listen ? DTLS_client_method() : DTLS_server_method());
	sure_of(judge.ctx, "context");
	sure_of(SSL_CTX_use_certificate_file(judge.ctx, site.attr.cert, SSL_FILETYPE_PEM) == 1 &&
			SSL_CTX_use_PrivateKey_file(judge.ctx, site.attr.key, SSL_FILETYPE_PEM) ==
				1 &&
			SSL_CTX_load_verify_locations(judge.ctx, site.attr.ca, NULL) == 1,
		"files");
	X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(judge.ctx), NOW);
	SSL_CTX_set_verify(judge.ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	sure_of(!judge.fragment ||
			SSL_CTX_set_tlsext_max_fragment_length(judge.ctx, judge.fragment) == 1,
		"fragment");
	judge.method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "datagrams in memory");
	sure_of(judge.method && BIO_meth_set_write(judge.method, write_judge_datagram) &&
			BIO_meth_set_read(judge.method, read_judge_datagram) &&
			BIO_meth_set_ctrl(judge.method, control_judge_socket),
		"method");
	bio = BIO_new(judge.method);
	sure_of(bio, "BIO");
	BIO_set_init(bio, 1);
	judge.ssl = SSL_new(judge.ctx);
	sure_of(judge.ssl, "SSL");
	SSL_set_bio(judge.ssl, bio, bio);
	SSL_set_options(judge.ssl, SSL_OP_NO_QUERY_MTU);
	sure_of(SSL_set_mtu(judge.ssl, 1200) > 0, "MTU");
	if (judge.we_listen)
		SSL_set_connect_state(judge.ssl);
	else
		SSL_set_accept_state(judge.ssl);
}

/* ---- our end ---- */

static void make_our_end(const struct ddps_hs_began *began)
{
	struct ddps_hs_conf conf = { .want = { .server = judge.we_listen }, .resend_ms = 60000 };
	struct ddps_verdict why;

	if (!judge.we_listen)
		conf.want.host = "host.example";
	if (began)
		conf.began = *began;
	if (!judge.creds)
		judge.creds = open_creds(&site.attr);
	conf.set = use_creds(judge.creds, 0);
	cr_assert_eq(ddps_dhs_new(&judge.hs, &conf, &why), 0, "%s", why.text);
	judge.state = DDPS_HS_MORE;
}

/* What it has to say, a datagram a packet. */
static void step_our_end(const uint8_t *p, size_t n)
{
	uint8_t framed[2050];
	const uint8_t *out;
	size_t len;

	framed[0] = (uint8_t)(n >> 8);
	framed[1] = (uint8_t)n;
	if (n)
		memcpy(framed + 2, p, n);
	judge.state = ddps_dhs_step(judge.hs, framed, n ? n + 2 : 0, NOW);
	out = ddps_dhs_output(judge.hs, &len);
	for (size_t at = 0; at < len;) {
		size_t each = (size_t)out[at] << 8 | out[at + 1];

		put_on_way(&judge.to_lib, out + at + 2, each);
		at += 2 + each;
	}
	ddps_dhs_sent(judge.hs, len);
}

static void greet_judge(const uint8_t *p, size_t n)
{
	static uint8_t secret[2][DDPS_DHS_SECRET] = { "0123456789abcde", "fedcba9876543210" };
	uint8_t answer[DDPS_DHS_ANSWER];
	struct ddps_hs_began began;
	size_t nanswer;

	switch (ddps_dhs_greet(secret, "judge", 5, p, n, answer, &nanswer, &began)) {
	case DDPS_DHS_TAKE:
		make_our_end(&began);
		step_our_end(p, n);
		break;
	case DDPS_DHS_ANSWER_IT:
		put_on_way(&judge.to_lib, answer, nanswer);
		break;
	case DDPS_DHS_DROP:
		cr_assert_fail("a first flight of OpenSSL");
	}
}

static void take_from_judge(const uint8_t *p, size_t n)
{
	struct ddps_dtls_head h = { .len = n };

	if (!judge.hs) {
		greet_judge(p, n);
		return;
	}
	for (size_t at = 0; judge.cut && at < n; at += h.len) {
		cr_assert(ddps_dtls_head(&h, p + at, n - at));
		step_our_end(p + at, h.len);
	}
	if (!judge.cut)
		step_our_end(p, n);
}

static void try_with_judge(void)
{
	struct way *w = &judge.to_us;

	begin_judge();
	if (!judge.we_listen) {
		make_our_end(NULL);
		step_our_end(NULL, 0);
	}
	for (int i = 0; i < 100; i++) {
		SSL_do_handshake(judge.ssl);
		while (w->head != w->tail && judge.state != DDPS_HS_FAILED) {
			take_from_judge(w->packet[w->head % QUEUE].b, w->packet[w->head % QUEUE].n);
			w->head++;
		}
		if (judge.state == DDPS_HS_FAILED ||
		    (SSL_is_init_finished(judge.ssl) && judge.state == DDPS_HS_DONE))
			break;
	}
}

static void shake_with_judge(void)
{
	try_with_judge();
	cr_assert_eq(judge.state, DDPS_HS_DONE, "%s", judge.hs ? ddps_dhs_why(judge.hs)->text : "");
	sure_of(SSL_is_init_finished(judge.ssl), "the judge's end");
}

/* Records of ours opened by it, and the other way round, several of them in a datagram. */
static void speak_with_judge(struct ddps_dtls *d)
{
	struct way *w = &judge.to_us;
	uint8_t wire[400], back[64];
	struct iovec iov = { (void *)"ours", 4 };
	struct ddps_dtls_head h;
	size_t n = 0;

	for (int i = 0; i < 2; i++) {
		ssize_t len = ddps_dtls_seal(d, DDPS_DTLS_DATA, &iov, 1, wire + n, sizeof wire - n);

		cr_assert(len > 0);
		n += (size_t)len;
	}
	put_on_way(&judge.to_lib, wire, n);
	for (int i = 0; i < 2; i++) {
		sure_of(SSL_read(judge.ssl, back, sizeof back) == 4, "read");
		cr_expect(!memcmp(back, "ours", 4));
	}
	w->head = w->tail;
	sure_of(SSL_write(judge.ssl, "theirs", 6) == 6, "write");
	cr_assert_eq(w->tail - w->head, 1);
	memcpy(wire, w->packet[w->head % QUEUE].b, w->packet[w->head % QUEUE].n);
	cr_assert(ddps_dtls_head(&h, wire, w->packet[w->head % QUEUE].n));
	cr_assert_eq(ddps_dtls_open(d, &h, wire, wire + ddps_dtls_content(d)), 6);
	cr_expect(!memcmp(wire + ddps_dtls_content(d), "theirs", 6));
}

static void take_judged_keys(void)
{
	struct ddps_dtls_config c = { .aead = ddps_aead_best(), .epoch = 1 };
	struct ddps_rec_config k;
	struct ddps_peer_id id;
	struct ddps_dtls *d;
	const uint8_t *rest;
	size_t n;
	void *mem;

	ddps_dhs_take(judge.hs, &k, &id, &rest, &n);
	cr_expect_str_eq(id.suite, "AES-128-GCM");
	c.suite = k.suite;
	memcpy(c.tx.key, k.tx.key, sizeof c.tx.key);
	memcpy(c.tx.iv, k.tx.iv, sizeof c.tx.iv);
	memcpy(c.rx.key, k.rx.key, sizeof c.rx.key);
	memcpy(c.rx.iv, k.rx.iv, sizeof c.rx.iv);
	c.tx.seq = k.tx.seq;
	mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_dtls_size(&c));
	cr_assert(mem);
	cr_assert_eq(ddps_dtls_init(mem, &c, &d), 0);
	speak_with_judge(d);
	ddps_dtls_wipe(d);
	free(mem);
}

static void be_judged(bool we_listen, bool cut)
{
	judge.we_listen = we_listen;
	judge.cut = cut;
	shake_with_judge();
	cr_expect(judge.packed > 0, "no datagram had several records");
	take_judged_keys();
}

Test(dtls_judge, a_listener_of_openssl_whose_flights_are_packed)
{
	be_judged(false, true);
}

Test(dtls_judge, a_listener_of_openssl_whose_datagrams_stay_whole)
{
	be_judged(false, false);
}

Test(dtls_judge, a_dialler_of_openssl_whose_flights_are_packed)
{
	be_judged(true, true);
}

Test(dtls_judge, a_dialler_of_openssl_whose_datagrams_stay_whole)
{
	be_judged(true, false);
}

/* Who asks for shorter records gets them, or is refused. */
Test(dtls_judge, a_dialler_that_takes_short_records_only)
{
	struct ddps_rec_config k;
	struct ddps_peer_id id;
	const uint8_t *rest;
	size_t n;

	judge.we_listen = judge.cut = true;
	judge.fragment = TLSEXT_max_fragment_length_1024;
	shake_with_judge();
	ddps_dhs_take(judge.hs, &k, &id, &rest, &n);
	cr_expect_eq(k.peer_limit, 1024);
}

Test(dtls_judge, a_dialler_that_takes_records_too_short_for_sctp)
{
	judge.we_listen = judge.cut = true;
	judge.fragment = TLSEXT_max_fragment_length_512;
	try_with_judge();
	cr_assert_eq(judge.state, DDPS_HS_FAILED);
	cr_expect(strstr(ddps_dhs_why(judge.hs)->text, "takes 512 octets"), "%s",
		  ddps_dhs_why(judge.hs)->text);
}
