/* SPDX-License-Identifier: BSD-2-Clause */
/* The application records of the trace in RFC 8448 section 3, both ways, with each library. */
#include "record_fixture.h"
#include "secure/aead/aead_lib.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char client_secret[] =
	"9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
static const char client_key[] = "17422dda596ed5d9acd890e3c63f5051";
static const char client_iv[] = "5b78923dee08579033e523d9";
static const char server_secret[] =
	"a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
static const char server_key[] = "9f02283b6c9c07efc26bb9f2ac92e356";
static const char server_iv[] = "cf782b88dd83549aadf1e984";

static const char ticket[] =
	"17030300de3a6b8f90414a97d6959c3487680de5134a2b240e6cffac116e95d41d6af8f6b580dcf3d11d63c758"
	"db289a015940252f55713e061dc13e078891a38efbcf5753ad8ef170ad3c7353d16d9da773b9ca7f2b9fa1b6c0"
	"d4a3d03f75e09c30ba1e62972ac46f75f7b981be63439b2999ce13064615139891d5e4c5b406f16e3fc181a77c"
	"a475840025db2f0a77f81b5ab05b94c01346755f69232c86519d86cbeeac87aac347d143f9605d64f650db4d02"
	"3e70e952ca49fe5137121c74bc2697687e248746d6df353005f3bce18696129c8153556b3b6c6779b37bf15985"
	"684f";
static const char server_data[] =
	"17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb50"
	"1a59a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d";
static const char server_alert[] = "1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9";
static const char client_data[] =
	"1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20"
	"441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4";
static const char client_alert[] = "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3";

static size_t trace_octets(const char *text, uint8_t *out)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(sscanf(text + 2 * i, "%2hhx", &out[i]), 1);
	return n;
}

static void read_keys(struct ddps_rec_keys *k, const char *secret, const char *key, const char *iv)
{
	trace_octets(secret, k->secret);
	trace_octets(key, k->key);
	trace_octets(iv, k->iv);
}

static void begin_trace(struct rec_ends *e, const struct ddps_aead *aead)
{
	rec_configure(e, aead, DDPS_SUITE_AES_128_GCM, 0);
	read_keys(&e->conf[0].tx, client_secret, client_key, client_iv);
	read_keys(&e->conf[0].rx, server_secret, server_key, server_iv);
	e->conf[1].tx = e->conf[0].rx;
	e->conf[1].rx = e->conf[0].tx;
	e->conf[1].tx.seq = 1; /* the ticket is the handshake's */
	rec_begin(e);
}

/* What @r seals is what the trace has. */
static void seals(struct ddps_rec *r, const char *data, const char *alert)
{
	uint8_t payload[50], out[100], want[100];
	struct iovec cut[] = { { payload, 1 }, { payload + 1, 0 }, { payload + 1, 49 } };
	size_t n = trace_octets(data, want);

	for (uint8_t i = 0; i < sizeof payload; i++)
		payload[i] = i;
	cr_assert_eq(ddps_rec_seal(r, cut, 3, out, sizeof out), (ssize_t)n);
	cr_expect_arr_eq(out, want, n);
	n = trace_octets(alert, want);
	cr_assert_eq(ddps_rec_seal_alert(r, DDPS_ALERT_CLOSE_NOTIFY, out, sizeof out), (ssize_t)n);
	cr_expect_arr_eq(out, want, n);
}

static void opens(struct ddps_rec *r, const char *data, const char *alert)
{
	uint8_t in[100];
	size_t n = trace_octets(data, in);
	struct ddps_rec_opened o = rec_open(r, in, n);

	cr_assert_eq(o.what, DDPS_REC_DATA);
	cr_assert_eq(o.used, n);
	cr_assert_eq(o.len, 50);
	for (size_t i = 0; i < 50; i++)
		cr_expect_eq(rec_scratch[i], i);
	n = trace_octets(alert, in);
	cr_expect_eq(rec_open(r, in, n).what, DDPS_REC_CLOSED);
}

static void play(const struct ddps_aead *aead)
{
	struct rec_ends e;
	uint8_t in[300];
	size_t n;

	begin_trace(&e, aead);
	n = trace_octets(ticket, in);
	cr_expect_eq(rec_open(e.end[0], in, n).what, DDPS_REC_NONE);
	cr_expect_eq(ddps_rec_stats(e.end[0])->tickets, 1);
	opens(e.end[0], server_data, server_alert);
	opens(e.end[1], client_data, client_alert);
	seals(e.end[0], client_data, client_alert);
	seals(e.end[1], server_data, server_alert);
	rec_free(&e);
}

Test(record_trace, gnutls_plays_it,
     .description =
	     "8446-5.2-1 8446-5.2-4 8446-5.3-1 8446-5.3-3 8446-7.1-1 8446-7.3-1 8446-4.6.1-1")
{
	play(ddps_aead_gnutls());
}

/* Where it is; what is said where it is not is looked at in aead_test.c. */
Test(record_trace, ipsec_mb_plays_it)
{
	const struct ddps_aead *mb = ddps_aead_ipsec_mb(NULL);

	if (mb)
		play(mb);
}
