/* SPDX-License-Identifier: BSD-2-Clause */
/* ECN, which RFC 9260 has no procedures for: we neither offer it nor agree to it. */
#include "sctp_raw_fixture.h"

#define P_ECN  0x8000 /* reserved in RFC 9260 3.3.2, ECN Capable in RFC 4960 */
#define C_ECNE 12
#define C_CWR  13

static struct raw r;

static void fini(void)
{
	raw_fini(&r);
}

/* Whether INIT or INIT ACK has @type. */
static bool has(const struct ddps_sc_chunk *c, uint16_t type)
{
	struct ddps_rbuf b = ddps_rbuf_init(c->val + 16, c->vlen - 16);
	struct ddps_sc_tlv t;
	bool found = false;

	while (ddps_sc_tlv_next(&b, &t) > 0)
		found |= t.type == type;
	return found;
}

Test(sctp_ecn, is_not_offered_and_not_agreed_to, .fini = fini, .description = "9260-3.2.1-d1")
{
	static const uint8_t capable[] = { P_ECN >> 8, P_ECN & 0xff, 0, 4 };
	struct ddps_sc_chunk c;

	raw_init(&r);
	raw_begin(&r, 0);
	raw_put_init(&r, RAW_TAG, 100000, 1, 1, RAW_TSN, capable, sizeof capable);
	raw_send(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT_ACK);
	cr_expect_not(has(&c, P_ECN));
	cr_expect_not(has(&c, SC_P_UNRECOGNIZED), "it is skipped without a report");
	raw_fini(&r);

	raw_init(&r);
	raw_connect(&r);
	cr_assert_eq(raw_got(&r, 0, 0, &c), SC_INIT);
	cr_expect_not(has(&c, P_ECN));
}

/* They come from nobody who was not offered ECN, so what stands behind them is not looked at. */
Test(sctp_ecn, its_chunks_are_unknown_ones, .fini = fini, .description = "9260-3.2-d1")
{
	static const uint8_t types[] = { C_ECNE, C_CWR };

	raw_up(&r);
	for (unsigned i = 0; i < 2; i++) {
		raw_begin(&r, r.tag);
		ddps_sc_put_chunk(&r.w, types[i], 0, "\0\0\0\1", 4);
		raw_put_data(&r, RAW_TSN, 0, 0, 7, "behind");
		raw_send(&r);
		cr_expect_eq(r.n, 0, "no word of it");
		cr_expect_eq(r.messages, 0);
		cr_expect_eq(r.gone, 0);
	}
	raw_data(&r, RAW_TSN, 0, 0, 7, "alone");
	cr_expect_eq(r.messages, 1);
}
