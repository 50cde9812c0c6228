/* SPDX-License-Identifier: BSD-2-Clause */
/* Test purposes of ETSI TS 102 369 that take too long for a real clock: docs/conformance.md. */
#include "sctp_raw_fixture.h"

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

/* The peer answers the INIT, and then nothing. */
Test(sctp_etsi, contact_15_cookie_echoes_without_an_answer, .fini = fini,
     .description = "etsi-as-1-3-2")
{
	unsigned n = 0;

	raw_init(&r);
	raw_connect(&r);
	raw_answer_init(&r);
	n += raw_any(&r, SC_COOKIE_ECHO, NULL);
	for (unsigned k = 0; k < 600 && !r.gone; k++) {
		r.n = 0;
		raw_wait(&r, 1000);
		n += raw_any(&r, SC_COOKIE_ECHO, NULL);
	}
	cr_expect_eq(n, r.e->c.init_max_retrans + 1u, "%u COOKIE ECHOs", n);
	cr_expect_eq(r.gone, 1);
	cr_expect_eq(r.why.code, DDPS_E_TIMEDOUT);
}

static uint64_t rto_ms(void)
{
	return ddps_sent_rto(&r.a->tx, &r.a->path[0]->tx) / 1000000;
}

/* Timeouts double T3; what is acknowledged with a clean RTT brings it back. */
Test(sctp_etsi, contact_15_t3_goes_back_to_what_the_rtt_says, .fini = fini,
     .description = "etsi-rt-11-2")
{
	uint64_t first, last;

	raw_up(&r);
	cr_assert_eq(raw_user_send(&r, 0, 0, "x"), 0);
	first = rto_ms();
	for (unsigned k = 0; k < 1000 && r.a->errors < 3; k++)
		raw_wait(&r, 100);
	last = rto_ms();
	cr_expect_geq(last, 4 * first, "%u ms, then %u", (unsigned)first, (unsigned)last);
	raw_sack(&r, r.tsn, 100000);
	for (unsigned k = 1; k < 12; k++) { /* answered as soon as they come */
		cr_assert_eq(raw_user_send(&r, 0, 0, "y"), 0);
		raw_wait(&r, 20);
		raw_sack(&r, r.tsn + k, 100000);
		raw_wait(&r, 20);
	}
	cr_expect_leq(rto_ms(), first, "%u ms, it was %u", (unsigned)rto_ms(), (unsigned)first);
}

static uint32_t tag_in(const uint8_t *p)
{
	struct ddps_rbuf b = ddps_rbuf_init(p, 4);

	return ddps_rbuf_u32(&b);
}

/* There is no tag yet that the report could have. */
Test(sctp_etsi, contact_14_nothing_is_reported_before_the_init_ack, .fini = fini,
     .description = "9260-8.5.1-1")
{
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_connect(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	raw_chunk(&r, tag_in(c.val), 0xc1, 0, "zz", 2);
	cr_expect_eq(r.n, 0, "chunk %d under tag %08x", raw_got(&r, 0, 0, NULL),
		     raw_got_tag(&r, 0));
}
