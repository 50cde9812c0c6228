/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshakes over datagrams, both ends in memory and a network between them that loses, repeats and swaps what it
 * likes.  Then the keys are taken over, and records of ours go both ways.
 */
#include "creds_fixture.h"
#include "secure/aead/aead_lib.h"
#include "secure/dtls/dtls.h"
#include "secure/hs/dhs.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PACKETS 256u

static struct site site;

struct packet {
	uint8_t b[2048];
	size_t n;
	int to; /* 0: the dialler */
};

/* What becomes of the packet that leaves as number @at: of both ends, counted together. */
enum fate { FATE_NONE, FATE_LOST, FATE_TWICE, FATE_LATE };

static struct packet net[PACKETS];
static unsigned net_head, net_tail, left_count;
static struct packet late;
static struct {
	unsigned at;
	enum fate fate;
	unsigned lost_from, lost_to; /* all of these are lost */
} fates;

struct dhs_end {
	struct ddps_creds *creds;
	struct ddps_hs *hs;
	enum ddps_hs_state state;
	struct ddps_dtls *rec;
	void *mem;
	struct ddps_peer_id id;
	struct ddps_verdict why;
};

static struct dhs_end end[2]; /* dialler, listener */
static uint8_t secret[2][DDPS_DHS_SECRET] = { "0123456789abcde", "fedcba9876543210" };
static unsigned greeted, answered;

static void setup_dhs(void)
{
	creds_setup();
	make_site(&site);
	net_head = net_tail = left_count = greeted = answered = 0;
	late.n = 0;
	memset(&fates, 0, sizeof fates);
	fates.at = UINT32_MAX;
}

static void teardown_dhs(void)
{
	for (int i = 0; i < 2; i++) {
		ddps_dhs_free(end[i].hs);
		if (end[i].creds)
			ddps_creds_close(end[i].creds);
		if (end[i].rec)
			ddps_dtls_wipe(end[i].rec);
		free(end[i].mem);
		end[i] = (struct dhs_end){ 0 };
	}
	creds_teardown();
}

TestSuite(dhs, .init = setup_dhs, .fini = teardown_dhs);

static void put_packet(int to, const uint8_t *p, size_t n)
{
	struct packet *k = &net[net_tail % PACKETS];

	cr_assert(n <= sizeof k->b && net_tail - net_head < PACKETS);
	memcpy(k->b, p, n);
	k->n = n;
	k->to = to;
	net_tail++;
}

static void send_datagram_packet(int to, const uint8_t *p, size_t n)
{
	const unsigned nr = left_count++;
	const enum fate f = nr == fates.at ? fates.fate : FATE_NONE;

	cr_expect(n <= DDPS_DHS_MTU, "a datagram of %zu octets", n);
	if (f == FATE_LOST || (nr >= fates.lost_from && nr < fates.lost_to))
		return;
	if (f == FATE_LATE) {
		memcpy(late.b, p, n);
		late.n = n;
		late.to = to;
		return;
	}
	put_packet(to, p, n);
	if (f == FATE_TWICE)
		put_packet(to, p, n);
	if (late.n) {
		put_packet(late.to, late.b, late.n);
		late.n = 0;
	}
}

static void take_datagrams(int who)
{
	size_t n, at = 0;
	const uint8_t *p = ddps_dhs_output(end[who].hs, &n);

	while (at < n) {
		size_t len = (size_t)p[at] << 8 | p[at + 1];

		send_datagram_packet(!who, p + at + 2, len);
		at += 2 + len;
	}
	ddps_dhs_sent(end[who].hs, n);
}

static void begin_dhs(int who, const struct ddps_secure_attr *attr, const struct ddps_hs_began *b)
{
	struct ddps_hs_conf conf = { .want = { .server = who == 1 }, .resend_ms = 2 };

	if (!who)
		conf.want.host = attr->psk ? "node-a" : "host.example";
	if (b)
		conf.began = *b;
	if (!end[who].creds)
		end[who].creds = open_creds(attr);
	conf.set = use_creds(end[who].creds, 0);
	cr_assert_eq(ddps_dhs_new(&end[who].hs, &conf, &end[who].why), 0, "%s", end[who].why.text);
	end[who].state = DDPS_HS_MORE;
}

static void step_dhs(int who, const uint8_t *p, size_t n)
{
	uint8_t *framed = malloc(n + 2);

	cr_assert(framed);
	framed[0] = (uint8_t)(n >> 8);
	framed[1] = (uint8_t)n;
	if (n)
		memcpy(framed + 2, p, n);
	end[who].state = ddps_dhs_step(end[who].hs, framed, n ? n + 2 : 0, NOW);
	free(framed);
	take_datagrams(who);
}

/* The listener's side before there is a handshake. */
static void greet_packet(const struct packet *k, const struct ddps_secure_attr *attr)
{
	uint8_t answer[DDPS_DHS_ANSWER];
	struct ddps_hs_began began;
	size_t n;

	greeted++;
	switch (ddps_dhs_greet(secret, "dialler", 7, k->b, k->n, answer, &n, &began)) {
	case DDPS_DHS_TAKE:
		begin_dhs(1, attr, &began);
		step_dhs(1, k->b, k->n);
		break;
	case DDPS_DHS_ANSWER_IT:
		answered++;
		cr_expect(n && n <= k->n);
		send_datagram_packet(0, answer, n);
		break;
	case DDPS_DHS_DROP:
		break;
	}
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Types 20 and 22 go to the handshake, all else is for somebody else. */
static bool is_handshake(const struct packet *k)
{
	return k->b[0] == DDPS_DTLS_CCS || k->b[0] == DDPS_DTLS_HANDSHAKE ||
	       (k->b[0] == DDPS_DTLS_ALERT && end[k->to].state == DDPS_HS_MORE);
}

static void deliver_packet(const struct ddps_secure_attr *listener)
{
	struct packet k = net[net_head++ % PACKETS];

	if (k.to && !end[1].hs)
		greet_packet(&k, listener);
	else if (end[k.to].state != DDPS_HS_FAILED && is_handshake(&k) && end[k.to].hs)
		step_dhs(k.to, k.b, k.n);
}

/* Until both are done or one has failed and nothing moves; the dialler's first flight is number 0. */
static void shake_datagrams(const struct ddps_secure_attr *dialler,
			    const struct ddps_secure_attr *listener)
{
	const uint64_t until = now_ms() + 8000;

	begin_dhs(0, dialler, NULL);
	step_dhs(0, NULL, 0);
	while (now_ms() < until) {
		if (net_head != net_tail) {
			deliver_packet(listener);
			continue;
		}
		if (end[0].state != DDPS_HS_MORE && (!end[1].hs || end[1].state != DDPS_HS_MORE))
			break;
		if (end[0].state == DDPS_HS_FAILED || end[1].state == DDPS_HS_FAILED)
			break;
		for (int i = 0; i < 2; i++)
			if (end[i].hs && end[i].state == DDPS_HS_MORE &&
			    !ddps_dhs_timeout(end[i].hs))
				step_dhs(i, NULL, 0);
	}
}

static void take_dhs(int who)
{
	struct ddps_dtls_config c = { .aead = ddps_aead_best(), .epoch = 1 };
	struct ddps_rec_config k;
	const uint8_t *rest;
	size_t n;

	ddps_dhs_take(end[who].hs, &k, &end[who].id, &rest, &n);
	cr_expect_eq(k.client, !who);
	c.suite = k.suite;
	memcpy(c.tx.key, k.tx.key, sizeof c.tx.key);
	memcpy(c.tx.iv, k.tx.iv, sizeof c.tx.iv);
	memcpy(c.rx.key, k.rx.key, sizeof c.rx.key);
	memcpy(c.rx.iv, k.rx.iv, sizeof c.rx.iv);
	c.tx.seq = k.tx.seq;
	cr_expect(k.tx.seq >= DDPS_DTLS_FIRST, "begins at %lu", (unsigned long)k.tx.seq);
	end[who].mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_dtls_size(&c));
	cr_assert(end[who].mem);
	cr_assert_eq(ddps_dtls_init(end[who].mem, &c, &end[who].rec), 0);
}

static void say_sealed(int who, const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	struct ddps_dtls_head h;
	uint8_t wire[128];
	ssize_t n = ddps_dtls_seal(end[who].rec, DDPS_DTLS_DATA, &iov, 1, wire, sizeof wire);

	cr_assert(n > 0);
	cr_assert(ddps_dtls_head(&h, wire, (size_t)n));
	cr_assert_eq(ddps_dtls_open(end[!who].rec, &h, wire,
				    wire + ddps_dtls_content(end[!who].rec)),
		     (ssize_t)strlen(text));
	cr_expect(!memcmp(wire + ddps_dtls_content(end[!who].rec), text, strlen(text)));
}

static void both_speak(void)
{
	cr_assert_eq(end[0].state, DDPS_HS_DONE, "%s", ddps_dhs_why(end[0].hs)->text);
	cr_assert(end[1].hs);
	cr_assert_eq(end[1].state, DDPS_HS_DONE, "%s", ddps_dhs_why(end[1].hs)->text);
	take_dhs(0);
	take_dhs(1);
	say_sealed(0, "from the dialler");
	say_sealed(1, "from the listener");
	cr_expect_str_eq(end[0].id.version, "DTLS 1.2");
}

Test(dhs, both_ends_shake_hands_and_know_each_other)
{
	shake_datagrams(&site.attr, &site.attr);
	both_speak();
	cr_expect_eq(greeted, 2);
	cr_expect_eq(answered, 1);
	cr_expect_str_eq(end[0].id.suite, "AES-128-GCM");
	cr_expect_eq(end[1].id.how, DDPS_PEER_X509);
}

/* Each datagram of the handshake in turn is lost, comes twice, or after the one behind it. */
Test(dhs, whatever_is_lost_repeated_or_swapped_it_comes_to_its_end, .timeout = 60)
{
	unsigned all;

	shake_datagrams(&site.attr, &site.attr);
	both_speak();
	all = left_count;
	for (unsigned at = 0; at < all; at++) {
		for (enum fate f = FATE_LOST; f <= FATE_LATE; f++) {
			teardown_dhs();
			setup_dhs();
			fates.at = at;
			fates.fate = f;
			shake_datagrams(&site.attr, &site.attr);
			both_speak();
		}
	}
}

/* Datagrams of a handshake in which nothing was repeated: a busy machine may repeat some of them. */
static unsigned count_fewest_datagrams(void)
{
	unsigned all = UINT32_MAX;

	for (int i = 0; i < 5; i++) {
		shake_datagrams(&site.attr, &site.attr);
		all = left_count < all ? left_count : all;
		teardown_dhs();
		setup_dhs();
	}
	return all;
}

/* The listener is done, but its last flight got lost, many times: it leaves again as the dialler's does, and
 * never with a number that is ours. */
Test(dhs, the_last_flight_leaves_again_until_it_has_arrived, .timeout = 30)
{
	const unsigned all = count_fewest_datagrams();

	/* On a busy machine some were repeated each time, so those that are the last ones come sooner. */
	for (unsigned i = 0; i < 10; i++) {
		fates.lost_from = all - 2 - i; /* ChangeCipherSpec and Finished */
		fates.lost_to = fates.lost_from + 6;
		shake_datagrams(&site.attr, &site.attr);
		both_speak();
		if (left_count > fates.lost_to)
			return;
		teardown_dhs();
		setup_dhs();
	}
	cr_expect(false, "nothing left again: %u datagrams, without losses %u", left_count, all);
}

Test(dhs, what_the_library_seals_above_number_15_never_leaves, .timeout = 60)
{
	const unsigned all = count_fewest_datagrams();
	uint64_t until;

	fates.lost_from = all - 2;
	fates.lost_to = UINT32_MAX; /* the dialler repeats its flight for ever */
	begin_dhs(0, &site.attr, NULL);
	step_dhs(0, NULL, 0);
	until = now_ms() + 20000;
	for (unsigned repeats = 0; repeats < 40 && now_ms() < until;) {
		while (net_head != net_tail)
			deliver_packet(&site.attr);
		fates.lost_to = end[1].hs && end[1].state == DDPS_HS_DONE ? UINT32_MAX : all - 2;
		if (end[1].hs && end[1].state == DDPS_HS_DONE) {
			/* its own, as if they had come again */
			struct packet k = net[(net_head - 1) % PACKETS];
			size_t n;
			const uint8_t *p;
			uint8_t framed[2050];

			framed[0] = (uint8_t)(k.n >> 8);
			framed[1] = (uint8_t)k.n;
			memcpy(framed + 2, k.b, k.n);
			ddps_dhs_step(end[1].hs, framed, k.n + 2, NOW);
			p = ddps_dhs_output(end[1].hs, &n);
			for (size_t at = 0; at < n;) {
				struct ddps_dtls_head h;
				size_t len = (size_t)p[at] << 8 | p[at + 1];

				cr_assert(ddps_dtls_head(&h, p + at + 2, len));
				cr_expect(!h.epoch || h.seq < DDPS_DTLS_FIRST);
				at += 2 + len;
			}
			ddps_dhs_sent(end[1].hs, n);
			repeats++;
		} else if (!ddps_dhs_timeout(end[0].hs)) {
			step_dhs(0, NULL, 0);
		}
	}
}

/* An address is proved first, and nothing is kept for one that is not. */
Test(dhs, a_cookie_is_for_one_address_and_two_secrets, .description = "6347-4.2.1-1 6347-4.2.1-2")
{
	uint8_t answer[DDPS_DHS_ANSWER];
	struct ddps_hs_began began;
	struct packet hello;
	size_t n;

	begin_dhs(0, &site.attr, NULL);
	step_dhs(0, NULL, 0);
	hello = net[net_head++];
	cr_expect_eq(ddps_dhs_greet(secret, "dialler", 7, hello.b, hello.n, answer, &n, &began),
		     DDPS_DHS_ANSWER_IT);
	cr_expect(n < hello.n, "%zu for %zu", n, hello.n);
	cr_expect_eq(answer[DDPS_DTLS_HEADER], 3);
	cr_expect_eq(answer[10], hello.b[10]);
	step_dhs(0, answer, n);
	hello = net[net_head++];
	cr_expect_eq(ddps_dhs_greet(secret, "another", 7, hello.b, hello.n, answer, &n, &began),
		     DDPS_DHS_ANSWER_IT);
	cr_expect_eq(ddps_dhs_greet(secret, "dialler", 7, hello.b, hello.n, answer, &n, &began),
		     DDPS_DHS_TAKE);
	memcpy(secret[1], secret[0], sizeof secret[0]);
	secret[0][3] ^= 1; /* a minute later */
	cr_expect_eq(ddps_dhs_greet(secret, "dialler", 7, hello.b, hello.n, answer, &n, &began),
		     DDPS_DHS_TAKE);
	secret[1][3] ^= 2;
	cr_expect_eq(ddps_dhs_greet(secret, "dialler", 7, hello.b, hello.n, answer, &n, &began),
		     DDPS_DHS_ANSWER_IT);
	for (size_t cut = 0; cut < hello.n; cut++)
		cr_expect_eq(ddps_dhs_greet(secret, "dialler", 7, hello.b, cut, answer, &n, &began),
			     DDPS_DHS_DROP);
}

static void psk_attr(struct ddps_secure_attr *attr, const char *file, const char *text)
{
	memset(attr, 0, sizeof *attr);
	attr->struct_size = sizeof *attr;
	attr->psk = put_text(file, text, 0600);
}

/* GnuTLS would fail with an internal error, and nothing would reach the peer. */
Test(dhs, certificates_that_datagrams_cannot_carry_are_said)
{
	const struct cert
		ca = make_cert(&(struct cert_spec){ .cn = "CA2", .ca = true, .names = 1000 }, NULL),
		middle =
			make_cert(&(struct cert_spec){ .cn = "m", .ca = true, .names = 1000 }, &ca),
		host = make_cert(&(struct cert_spec){ .cn = "h", .names = 1000 }, &middle);
	struct ddps_hs_conf conf = { .want = { .host = "h" } };
	struct ddps_verdict why;

	site.attr.ca = put_certs("ca.pem", &ca, NULL);
	site.attr.cert = put_certs("two.pem", &host, &middle);
	site.attr.key = put_key("two.key", &host);
	end[0].creds = open_creds(&site.attr);
	conf.set = use_creds(end[0].creds, 0);
	cr_expect_eq(ddps_dhs_new(&end[0].hs, &conf, &why), DDPS_E_CERT);
	cr_expect(strstr(why.text, "only 24576 can be shown"), "%s", why.text);
	end[0].hs = NULL;
}

Test(dhs, a_pre_shared_key_is_forward_secret_and_has_chacha20)
{
	struct ddps_secure_attr a, b;

	psk_attr(&a, "a.psk", "node-a:00112233445566778899aabbccddeeff\n");
	psk_attr(&b, "b.psk", "node-a:00112233445566778899aabbccddeeff\n");
	shake_datagrams(&a, &b);
	both_speak();
	cr_expect_str_eq(end[0].id.suite, "CHACHA20-POLY1305");
	cr_expect_str_eq(end[1].id.name, "psk:node-a");
}

/* In DTLS what another key has sealed is dropped silently: each end says at its deadline what that means. */
Test(dhs, a_wrong_key_is_explained_when_nothing_comes)
{
	struct ddps_secure_attr a, b;
	uint64_t until;

	psk_attr(&a, "a.psk", "node-a:00112233445566778899aabbccddeeff\n");
	psk_attr(&b, "b.psk", "node-a:ff112233445566778899aabbccddeeff\n");
	begin_dhs(0, &a, NULL);
	step_dhs(0, NULL, 0);
	until = now_ms() + 10000;
	for (unsigned quiet = 0; quiet < 3 && now_ms() < until;) {
		if (net_head != net_tail) {
			deliver_packet(&b);
		} else if (!ddps_dhs_timeout(end[0].hs)) {
			step_dhs(0, NULL, 0);
			quiet += end[1].hs != NULL;
		}
	}
	cr_assert_eq(end[0].state, DDPS_HS_MORE);
	cr_assert_eq(end[1].state, DDPS_HS_MORE);
	cr_expect_eq(ddps_dhs_why(end[1].hs)->code, DDPS_E_PSK_WRONG);
	cr_expect_eq(ddps_dhs_why(end[0].hs)->code, DDPS_E_CERT_REFUSED);
}

Test(dhs, silence_is_explained)
{
	begin_dhs(0, &site.attr, NULL);
	step_dhs(0, NULL, 0);
	cr_expect_eq(ddps_dhs_why(end[0].hs)->code, DDPS_E_TIMEDOUT);
	cr_expect(strstr(ddps_dhs_why(end[0].hs)->text, "sctps://"));
}

/* What was shown is judged again with what the files say now. */
Test(dhs, a_witness_is_judged_again)
{
	struct ddps_verdict why;
	struct ddps_witness *w;
	struct ddps_creds_set *set;

	shake_datagrams(&site.attr, &site.attr);
	cr_assert_eq(end[1].state, DDPS_HS_DONE);
	w = ddps_dhs_witness(end[1].hs);
	cr_assert(w);
	both_speak();
	set = use_creds(end[1].creds, 0);
	cr_expect_eq(ddps_witness_judge(w, set, NOW, &why), 0, "%s", why.text);
	cr_expect_eq(ddps_witness_judge(w, set, NOW + 40 * DAY, &why), DDPS_E_CERT_EXPIRED);
	ddps_creds_release(set);
	ddps_witness_free(w);
}
