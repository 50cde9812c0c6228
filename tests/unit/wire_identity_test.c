/* SPDX-License-Identifier: BSD-2-Clause */
/* What is encoded is what is decoded, and what is decoded is encoded to the same octets, reserved bits
 * aside, or refused: for each bit on its own, and at random. */
#include "common/bytes.h"
#include "ddp/ddp_wire.h"
#include "mpa_tcp/mpa_wire.h"
#include "rdmap/rdmap_wire.h"
#include "sctp_ddp/sd_wire.h"
#include "support/mpa_support.h"

#define ROUNDS 20000u

static uint32_t seed = 1;

/* Round @i: each single bit, all others than it, then anything. */
static void pick_wire_identity(uint8_t *p, size_t len, size_t i)
{
	if (i < 16 * len) {
		memset(p, i & 1 ? 0xff : 0, len);
		p[i / 16] ^= (uint8_t)(1u << i / 2 % 8);
		return;
	}
	for (size_t k = 0; k < len; k++)
		p[k] = (uint8_t)mpa_random(&seed);
}

/* Every first octet, with the bits of its own. */
Test(wire_identity, ddp_headers)
{
	for (size_t i = 0; i < ROUNDS; i++) {
		uint8_t in[DDPS_DDP_UNTAGGED_LEN], out[DDPS_DDP_UNTAGGED_LEN];
		struct ddps_ddp_hdr h, again;
		size_t len;

		pick_wire_identity(in + 1, sizeof in - 1, i / 256);
		in[0] = (uint8_t)i;
		len = ddps_ddp_hdr_len(in[0]);
		if ((in[0] & 3) != 1) {
			cr_assert_eq(ddps_ddp_decode(&h, in, sizeof in), DDPS_E_REVISION);
			continue;
		}
		cr_assert_eq(ddps_ddp_decode(&h, in, sizeof in), (int)len);
		cr_assert_eq(ddps_ddp_encode(&h, out), len);
		cr_assert_eq(out[0], in[0] & 0xc3);
		cr_assert_arr_eq(out + 1, in + 1, len - 1);
		cr_assert_eq(ddps_ddp_decode(&again, out, len), (int)len);
		cr_assert(again.tagged == h.tagged && again.last == h.last && again.ulp == h.ulp);
		cr_assert(again.stag == h.stag && again.to == h.to && again.qn == h.qn);
		cr_assert(again.msn == h.msn && again.mo == h.mo && again.ulp_word == h.ulp_word);
	}
}

Test(wire_identity, rdmap_headers)
{
	for (size_t i = 0; i < ROUNDS; i++) {
		uint8_t in[DDPS_AREQ_LEN], out[DDPS_AREQ_LEN];
		struct ddps_rreq q;
		struct ddps_areq a;
		struct ddps_aresp r;

		pick_wire_identity(in, sizeof in, i);
		ddps_rreq_decode(&q, in);
		ddps_rreq_encode(&q, out);
		cr_assert_arr_eq(out, in, DDPS_RREQ_LEN);
		ddps_aresp_decode(&r, in);
		ddps_aresp_encode(&r, out);
		cr_assert_arr_eq(out, in, DDPS_ARESP_LEN);
		ddps_areq_decode(&a, in);
		ddps_areq_encode(&a, out);
		in[0] = in[1] = in[2] = 0; /* reserved [7306-5.2.1-15] */
		in[3] &= 0x0f;
		cr_assert_arr_eq(out, in, DDPS_AREQ_LEN);
	}
}

/* All triples with all flags; the headers at random. */
Test(wire_identity, terminates)
{
	for (size_t i = 0; i < 4 * ROUNDS; i++) {
		uint8_t hdr[DDPS_DDP_UNTAGGED_LEN], rreq[DDPS_RREQ_LEN], out[DDPS_TERM_LEN_MAX];
		uint8_t twice[DDPS_TERM_LEN_MAX];
		struct ddps_term_msg t = { .triple = { (uint8_t)(i & 15), (uint8_t)(i >> 4 & 15),
						       (uint8_t)(i >> 8) } },
				     got;
		size_t len;

		pick_wire_identity(hdr, sizeof hdr, SIZE_MAX);
		pick_wire_identity(rreq, sizeof rreq, SIZE_MAX);
		if (mpa_random(&seed) & 1) {
			t.ddp = hdr;
			t.ddp_len = ddps_ddp_hdr_len(hdr[0]);
			t.has_len = mpa_random(&seed) & 1;
			t.seg_len = t.has_len ? (uint16_t)mpa_random(&seed) : 0;
			if (t.ddp_len == DDPS_DDP_UNTAGGED_LEN && mpa_random(&seed) & 1)
				t.rreq = rreq;
		}
		len = ddps_term_encode(&t, out);
		cr_assert_eq(ddps_term_decode(&got, out, len), 0);
		if (got.swapped) /* no triple that this stack sends */
			continue;
		cr_assert_eq(ddps_term_encode(&got, twice), len);
		cr_assert_arr_eq(twice, out, len);
		cr_assert_eq(got.triple.layer, t.triple.layer);
		cr_assert_eq(got.triple.etype, t.triple.etype);
		cr_assert_eq(got.triple.code, t.triple.code);
		cr_assert_eq(got.has_len, t.has_len);
		cr_assert_eq(got.seg_len, t.seg_len);
		cr_assert_eq(!got.ddp, !t.ddp);
		cr_assert_eq(!got.rreq, !t.rreq);
	}
}

/* Every octet of flags and every revision, with private data of each length. */
Test(wire_identity, mpa_frames)
{
	static const char *const keys[] = { "MPA ID Req Frame", "MPA ID Rep Frame" };

	for (size_t i = 0; i < 2 * 256 * (DDPS_MPA_PD_MAX + 2); i++) {
		enum ddps_mpa_kind kind = i & 1 ? DDPS_MPA_REPLY : DDPS_MPA_REQUEST;
		size_t pd = i >> 9, need;
		uint8_t in[DDPS_MPA_FRAME_MAX + 1] = { 0 }, out[DDPS_MPA_FRAME_MAX];
		struct ddps_mpa_frame f;
		const char *why = NULL;
		int got;

		memcpy(in, keys[kind], 16);
		in[16] = (uint8_t)(i >> 1);
		in[17] = (uint8_t)(i % 5);
		in[18] = (uint8_t)(pd >> 8);
		in[19] = (uint8_t)pd;
		memset(in + 20, (int)i, pd);
		got = ddps_mpa_frame_decode(&f, kind, in, 20 + pd, &need, &why);
		if (got < 0) {
			cr_assert_not_null(why);
			continue;
		}
		cr_assert_eq(got, 1);
		cr_assert_eq(need, 20 + pd);
		cr_assert_eq(ddps_mpa_frame_encode(out, kind, &f), need);
		/* Bits that mean nothing there are not sent: no others, and none is added. */
		cr_assert_eq(out[16] & ~in[16], 0);
		cr_assert_eq(in[16] & 0xc0, out[16] & 0xc0);
		in[16] = out[16];
		cr_assert_arr_eq(out, in, need);
	}
}

/* Every code and number; what is wrong with a code is reported, and its octets are as they were. */
Test(wire_identity, session_messages)
{
	for (unsigned i = 0; i < 65536; i++) {
		uint16_t ssn = (uint16_t)(i * 40503u), code = (uint16_t)i;
		uint8_t out[DDPS_SD_CONTROL_LEN];
		struct ddps_sd_msg m;

		ddps_sd_encode_control(out, ssn, code);
		cr_assert_eq(ddps_sd_decode(&m, DDPS_SD_PPID_CONTROL, out, sizeof out), 0);
		cr_assert(m.ssn == ssn && m.code == code && m.len == 0 && !m.segment);
		cr_assert_eq(m.bad, code < DDPS_SD_INITIATE || code > DDPS_SD_ENH_REJECT ||
					    !ddps_sd_pd_ok(code, 0));
	}
}
