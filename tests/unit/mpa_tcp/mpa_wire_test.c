/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA Request and Reply frames. */
#include "mpa_tcp/mpa_wire.h"
#include "support/mpa_support.h"
#include <ddpsess/err.h>

#define REQ "MPA ID Req Frame"
#define REP "MPA ID Rep Frame"

struct vector {
	enum ddps_mpa_kind kind;
	struct ddps_mpa_frame f;
	const char *raw;
	size_t len;
};

#define V(kind_, m, c, r, s, rev_, pd_, pdlen, raw_)                                               \
	{                                                                                          \
		.kind = DDPS_MPA_##kind_,                                                          \
		.f = { .markers = (m),                                                             \
		       .crc = (c),                                                                 \
		       .reject = (r),                                                              \
		       .enhanced = (s),                                                            \
		       .rev = (rev_),                                                              \
		       .pd = (const uint8_t *)(pd_),                                               \
		       .pd_len = (pdlen) },                                                        \
		.raw = (raw_), .len = 20 + (pdlen)                                                 \
	}

/* RFC 5044 7.1.1, RFC 6581 6, and what Linux siw sends and is sent. */
static const struct vector vectors[] = {
	V(REQUEST, 0, 1, 0, 0, 1, "hello", 5, REQ "\x40\x01\x00\x05hello"),
	V(REPLY, 1, 1, 0, 0, 1, "", 0, REP "\xc0\x01\x00\x00"),
	V(REPLY, 0, 1, 1, 0, 1, "busy", 4,
	  REP "\x60\x01\x00\x04"
	      "busy"),
	V(REQUEST, 0, 1, 0, 1, 2, "\x80\x10\xc0\x08hello", 9,
	  REQ "\x50\x02\x00\x09\x80\x10\xc0\x08hello"),
	V(REPLY, 0, 1, 0, 1, 2, "\x80\x08\x80\x10", 4, REP "\x50\x02\x00\x04\x80\x08\x80\x10"),
	V(REQUEST, 0, 0, 0, 1, 2, "\x00\x01\x00\x01", 4, REQ "\x10\x02\x00\x04\x00\x01\x00\x01"),
	V(REQUEST, 0, 0, 0, 1, 2, "\x80\x01\xc0\x01", 4, REQ "\x10\x02\x00\x04\x80\x01\xc0\x01"),
	V(REQUEST, 0, 1, 0, 1, 2, "\x00\x01\x00\x01", 4, REQ "\x50\x02\x00\x04\x00\x01\x00\x01"),
	V(REQUEST, 0, 0, 0, 0, 1, "", 0, REQ "\x00\x01\x00\x00"),
	V(REPLY, 0, 0, 0, 0, 1, "", 0, REP "\x00\x01\x00\x00"),
	V(REPLY, 0, 1, 0, 0, 1, "", 0, REP "\x40\x01\x00\x00"),
	V(REPLY, 0, 0, 0, 1, 2, "\x00\x04\x00\x04", 4, REP "\x10\x02\x00\x04\x00\x04\x00\x04"),
	V(REPLY, 0, 1, 0, 1, 2, "\x80\x04\x80\x04", 4, REP "\x50\x02\x00\x04\x80\x04\x80\x04"),
	V(REPLY, 0, 0, 0, 1, 2, "\x00\x80\x00\x80", 4, REP "\x10\x02\x00\x04\x00\x80\x00\x80"),
	V(REPLY, 0, 0, 0, 0, 2, "", 0, REP "\x00\x02\x00\x00"),
	V(REQUEST, 1, 0, 0, 1, 2, "\x00\x01\x00\x01", 4, REQ "\x90\x02\x00\x04\x00\x01\x00\x01"),
	V(REPLY, 0, 0, 1, 1, 2, "\x00\x00\x00\x00", 4, REP "\x30\x02\x00\x04\x00\x00\x00\x00"),
};

#define NVECTORS (sizeof vectors / sizeof vectors[0])

static void expect_same_mpa_wire(const struct ddps_mpa_frame *a, const struct ddps_mpa_frame *b,
				 size_t i)
{
	cr_expect(a->markers == b->markers && a->crc == b->crc && a->reject == b->reject &&
			  a->enhanced == b->enhanced && a->rev == b->rev,
		  "vector %zu", i);
	cr_assert_eq(a->pd_len, b->pd_len, "vector %zu", i);
	cr_expect(!a->pd_len || !memcmp(a->pd, b->pd, a->pd_len), "vector %zu", i);
}

/* Decode from memory of exactly @len octets. */
static int decode_mpa_wire(struct ddps_mpa_frame *f, enum ddps_mpa_kind kind, const void *raw,
			   size_t len, size_t *need)
{
	const char *why = NULL;
	uint8_t *copy = mpa_exact(raw, len);
	int r = ddps_mpa_frame_decode(f, kind, copy, len, need, &why);

	cr_expect((r < 0) == (why != NULL));
	f->pd = NULL;
	free(copy);
	return r;
}

Test(mpa_wire, encodes_known_frames,
     .description = "5044-7.1.1-1 5044-7.1.1-3 5044-7.1.1-12 5044-7.1.1-14 5044-7.1.1-17 "
		    "5044-7.1.1-d1 5044-7.1.1-d2 5044-7.1.2-2 5044-7.1.2-6 5044-7.1.2-9 6581-6-d3")
{
	uint8_t buf[DDPS_MPA_FRAME_MAX];

	for (size_t i = 0; i < NVECTORS; i++) {
		const struct vector *v = &vectors[i];

		cr_assert_eq(ddps_mpa_frame_encode(buf, v->kind, &v->f), v->len, "vector %zu", i);
		cr_expect_arr_eq(buf, v->raw, v->len, "vector %zu", i);
	}
}

Test(mpa_wire, decodes_known_frames, .description = "5044-7.1.1-d4 5044u-9-1 6581-6-6 6581-6-d1")
{
	struct ddps_mpa_frame f;
	const char *why = "";
	size_t need;

	for (size_t i = 0; i < NVECTORS; i++) {
		const struct vector *v = &vectors[i];
		uint8_t *copy = mpa_exact(v->raw, v->len);

		cr_assert_eq(ddps_mpa_frame_decode(&f, v->kind, copy, v->len, &need, &why), 1,
			     "vector %zu: %s", i, why);
		cr_expect_eq(need, v->len);
		expect_same_mpa_wire(&f, &v->f, i);
		free(copy);
	}
}

Test(mpa_wire, asks_for_more_on_every_truncation, .description = "5044-7.1.1-19 5044-7.1.2-23")
{
	struct ddps_mpa_frame f;
	size_t need;

	for (size_t i = 0; i < NVECTORS; i++) {
		const struct vector *v = &vectors[i];

		for (size_t n = 0; n < v->len; n++) {
			cr_expect_eq(decode_mpa_wire(&f, v->kind, v->raw, n, &need), 0,
				     "vector %zu, %zu", i, n);
			cr_expect_eq(need, n < 20 ? 20 : v->len, "vector %zu, %zu", i, n);
		}
	}
}

Test(mpa_wire, ignores_what_follows)
{
	struct ddps_mpa_frame f;
	size_t need;

	cr_expect_eq(decode_mpa_wire(&f, DDPS_MPA_REPLY,
				     REP "\x00\x01\x00\x00"
					 "next",
				     24, &need),
		     1);
	cr_expect_eq(need, 20);
}

Test(mpa_wire, refuses_at_the_first_wrong_key_octet,
     .description = "5044-7.1.1-2 5044-7.1.1-4 5044-7.1.2-16 5044-7.1.2-19 5044-7.1.3-d1")
{
	static const char *const keys[] = { REQ, REP };
	struct ddps_mpa_frame f;
	size_t need;

	for (enum ddps_mpa_kind kind = DDPS_MPA_REQUEST; kind <= DDPS_MPA_REPLY; kind++) {
		for (size_t i = 0; i < 16; i++) {
			for (unsigned bit = 0; bit < 8; bit++) {
				char raw[17];

				memcpy(raw, keys[kind], 17);
				raw[i] = (char)(raw[i] ^ 1 << bit);
				cr_expect_eq(decode_mpa_wire(&f, kind, raw, i, &need), 0);
				cr_expect_eq(decode_mpa_wire(&f, kind, raw, i + 1, &need),
					     DDPS_E_KEY);
			}
		}
	}
}

Test(mpa_wire, recognizes_the_other_kind_of_key, .description = "5044-7.1.2-19")
{
	struct ddps_mpa_frame f;
	const char *why = "";
	size_t need;

	cr_expect_eq(ddps_mpa_frame_decode(&f, DDPS_MPA_REPLY, (const uint8_t *)REQ, 16, &need,
					   &why),
		     DDPS_E_KEY);
	cr_expect(strstr(why, "it is an initiator, too"));
	cr_expect_eq(ddps_mpa_frame_decode(&f, DDPS_MPA_REQUEST, (const uint8_t *)REP, 16, &need,
					   &why),
		     DDPS_E_KEY);
	cr_expect(strstr(why, "both sides are responders"));
	cr_expect_eq(ddps_mpa_frame_decode(&f, DDPS_MPA_REPLY, (const uint8_t *)"SSH-2.0", 7, &need,
					   &why),
		     DDPS_E_KEY);
	cr_expect_str_eq(why, "wrong key");
}

Test(mpa_wire, bounds_private_data, .description = "5044-7.1.1-18 5044-7.1.1-19 5044-7.1.2-21")
{
	static const size_t lens[] = { 0, 1, 511, 512 };
	uint8_t raw[DDPS_MPA_FRAME_MAX + 8], *pd = mpa_pattern(520, 3);
	struct ddps_mpa_frame f = { .rev = 1, .pd = pd }, back;
	size_t need;

	for (size_t i = 0; i < 4; i++) {
		const char *why = "";
		size_t n;

		f.pd_len = lens[i];
		n = ddps_mpa_frame_encode(raw, DDPS_MPA_REQUEST, &f);
		cr_assert_eq(n, 20 + lens[i]);
		cr_assert_eq(ddps_mpa_frame_decode(&back, DDPS_MPA_REQUEST, raw, n, &need, &why),
			     1);
		expect_same_mpa_wire(&back, &f, i);
	}
	f.pd_len = 513;
	cr_expect_eq(ddps_mpa_frame_encode(raw, DDPS_MPA_REQUEST, &f), 0);
	memcpy(raw + 18, "\x02\x01", 2);
	cr_expect_eq(decode_mpa_wire(&back, DDPS_MPA_REQUEST, raw, 20, &need), DDPS_E_PROTOCOL);
	memcpy(raw + 18, "\xff\xff", 2);
	cr_expect_eq(decode_mpa_wire(&back, DDPS_MPA_REQUEST, raw, 20, &need), DDPS_E_PROTOCOL);
	free(pd);
}

Test(mpa_wire, knows_revisions_1_and_2,
     .description = "5044-7.1.1-15 5044-7.1.1-16 6581-6-5 5044u-6-3")
{
	struct ddps_mpa_frame f;
	char raw[] = REQ "\x00\x00\x00\x00";
	size_t need;

	for (unsigned rev = 0; rev < 256; rev++) {
		raw[17] = (char)rev;
		cr_expect_eq(decode_mpa_wire(&f, DDPS_MPA_REQUEST, raw, 20, &need),
			     rev == 1 || rev == 2 ? 1 : DDPS_E_REVISION, "Rev %u", rev);
	}
}

Test(mpa_wire, ignores_reserved_bits_and_r_of_a_request,
     .description = "5044-7.1.1-13 5044-7.1.1-d1 6581-6-d2")
{
	struct ddps_mpa_frame f;
	char raw[] = REQ "\x3f\x01\x00\x00";
	size_t need;

	/* In Rev 1 bit 0x10 is reserved as well: all private data is the ULP's. */
	cr_assert_eq(decode_mpa_wire(&f, DDPS_MPA_REQUEST, raw, 20, &need), 1);
	cr_expect(!f.enhanced && !f.reject && !f.markers && !f.crc);
	memcpy(raw, REP, 16);
	cr_assert_eq(decode_mpa_wire(&f, DDPS_MPA_REPLY, raw, 20, &need), 1);
	cr_expect(!f.enhanced && f.reject);
	raw[16] = 0x0f;
	raw[17] = 2;
	cr_assert_eq(decode_mpa_wire(&f, DDPS_MPA_REPLY, raw, 20, &need), 1);
	cr_expect(!f.enhanced && !f.reject && !f.markers && !f.crc);
}

Test(mpa_wire, enhanced_needs_the_word, .description = "6581-6-6 5044u-6-4 5044u-6-1")
{
	char raw[] = REQ "\x10\x02\x00\x03"
			 "abcd";
	struct ddps_mpa_frame f = { .rev = 2, .enhanced = true, .pd = (uint8_t *)raw, .pd_len = 3 };
	uint8_t buf[DDPS_MPA_FRAME_MAX];
	size_t need;

	for (char n = 0; n < 4; n++) {
		raw[19] = n;
		cr_expect_eq(decode_mpa_wire(&f, DDPS_MPA_REQUEST, raw, 24, &need),
			     DDPS_E_PROTOCOL);
	}
	raw[19] = 4;
	cr_expect_eq(decode_mpa_wire(&f, DDPS_MPA_REQUEST, raw, 24, &need), 1);

	/* A rejection may lack it (siw's answer to a malformed Request). */
	memcpy(raw, REP "\x30\x02\x00\x03", 20);
	cr_expect_eq(decode_mpa_wire(&f, DDPS_MPA_REPLY, raw, 24, &need), 1);
	cr_expect(f.reject && !f.enhanced && f.pd_len == 3);
	raw[16] = 0x10;
	cr_expect_eq(decode_mpa_wire(&f, DDPS_MPA_REPLY, raw, 24, &need), DDPS_E_PROTOCOL);

	/* and none of these is ever sent */
	f = (struct ddps_mpa_frame){ .rev = 2, .enhanced = true, .pd = buf, .pd_len = 3 };
	cr_expect_eq(ddps_mpa_frame_encode(buf, DDPS_MPA_REPLY, &f), 0);
	f.pd_len = 4;
	f.rev = 1;
	cr_expect_eq(ddps_mpa_frame_encode(buf, DDPS_MPA_REPLY, &f), 0);
}

Test(mpa_wire, reply_has_to_fit_the_request,
     .description = "6581-10-5 6581-10-6 5044u-10-2 5044u-10-3")
{
	for (unsigned i = 0; i < 8; i++) {
		struct ddps_mpa_frame f = { .rev = 2, .enhanced = i & 1, .reject = i & 2 };
		bool sent = i & 4, ok = f.reject || f.enhanced == sent;
		const char *why = NULL;

		cr_expect_eq(ddps_mpa_reply_fits(&f, sent, &why), ok ? 0 : DDPS_E_PROTOCOL, "%u",
			     i);
		cr_expect_eq(why == NULL, ok);
	}
}

/* The bit is a Reply's [5044-7.1.1-12]. */
Test(mpa_wire, a_request_rejects_nothing)
{
	struct ddps_mpa_frame f = { .rev = 1, .crc = true, .reject = true };
	uint8_t out[DDPS_MPA_FRAME_MAX];

	cr_assert_eq(ddps_mpa_frame_encode(out, DDPS_MPA_REQUEST, &f), 20);
	cr_expect_eq(out[16], 0x40);
	cr_assert_eq(ddps_mpa_frame_encode(out, DDPS_MPA_REPLY, &f), 20);
	cr_expect_eq(out[16], 0x60);
}
