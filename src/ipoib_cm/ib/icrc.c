/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC eight octets at a time, or sixty-four where the processor can; and its way back over a field that is not known. */
#include "ipoib_cm/ib/icrc.h"
#include <string.h>
#include "common/bytes.h"

#define POLY	  0xedb88320u
#define AFTER_LRH 0xdebb20e3u /* eight octets 0xff, which stand for the LRH */
#define IP_LEN	  20
#define UDP_LEN	  8
#define ID_END	  6 /* of the identification, in the IP header */
#define BTH_RES	  4 /* FECN, BECN and reserved bits */
#define BTH_LEN	  12

/* A table is linear: its entries are sums of those with one bit. */
#define BIT(i, bit, x) ((i) & (bit) ? (x) : 0)
#define SUM(i, a, b, c, d, e, f, g, h)                                                             \
	(BIT(i, 1, a) ^ BIT(i, 2, b) ^ BIT(i, 4, c) ^ BIT(i, 8, d) ^ BIT(i, 16, e) ^               \
	 BIT(i, 32, f) ^ BIT(i, 64, g) ^ BIT(i, 128, h))
#define R4(i, ...)                                                                                 \
	SUM((i), __VA_ARGS__), SUM((i + 1), __VA_ARGS__), SUM((i + 2), __VA_ARGS__),               \
		SUM((i + 3), __VA_ARGS__)
#define R16(i, ...)                                                                                \
	R4(i, __VA_ARGS__), R4(i + 4, __VA_ARGS__), R4(i + 8, __VA_ARGS__), R4(i + 12, __VA_ARGS__)
#define R64(i, ...)                                                                                \
	R16(i, __VA_ARGS__), R16(i + 16, __VA_ARGS__), R16(i + 32, __VA_ARGS__),                   \
		R16(i + 48, __VA_ARGS__)
#define ROW(...)                                                                                   \
	{                                                                                          \
		R64(0, __VA_ARGS__), R64(64, __VA_ARGS__), R64(128, __VA_ARGS__),                  \
			R64(192, __VA_ARGS__)                                                      \
	}

/* [k]: an octet and k zero octets behind it. */
static const uint32_t table[8][256] = {
	ROW(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190,
	    0xedb88320),
	ROW(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05,
	    0x3b83984b),
	ROW(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0,
	    0xe1351b80),
	ROW(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d,
	    0xed59b63b),
	ROW(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849,
	    0xb1e6b092),
	ROW(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c,
	    0x1eb014d8),
	ROW(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579,
	    0x8816eaf2),
	ROW(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed,
	    0x533b85da),
};

/* [k]: back over 2^k octets, as a factor. */
static const uint32_t back[] = {
	0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12,
	0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c,
};

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define FOLD_MIN 128 /* octets from which it is worth it */

/* Over so many octets, in the order of the register: x^(d+32), x^(d-32) for d bits ahead. */
#define AHEAD_64 _mm_set_epi64x(0x1c6e41596, 0x154442bd4)
#define AHEAD_16 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)

/* What stands @k's distance before @b adds to it. */
__attribute__((target("pclmul,sse2"))) static inline __m128i fold(__m128i a, __m128i k, __m128i b)
{
	return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(a, k, 0x00),
					   _mm_clmulepi64_si128(a, k, 0x11)),
			     b);
}

/*
 * Products without carries: 16 octets of any message are as good as all that is before them, once
 * that is multiplied onto them.  Return: how many octets @rest stands for.
 */
__attribute__((target("pclmul,sse2"))) static size_t fold_all(uint32_t crc, const uint8_t *p,
							      size_t n, uint8_t rest[16])
{
	const __m128i *at = (const __m128i *)(const void *)p;
	__m128i x[4];
	size_t done = 64;

	for (unsigned i = 0; i < 4; i++)
		x[i] = _mm_loadu_si128(at++);
	x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
	for (; n - done >= 64; done += 64)
		for (unsigned i = 0; i < 4; i++)
			x[i] = fold(x[i], AHEAD_64, _mm_loadu_si128(at++));
	for (unsigned i = 1; i < 4; i++)
		x[i] = fold(x[i - 1], AHEAD_16, x[i]);
	_mm_storeu_si128((__m128i *)(void *)rest, x[3]);
	return done;
}

static bool can_fold(void)
{
	return __builtin_cpu_supports("pclmul");
}
#else
#define FOLD_MIN SIZE_MAX

static size_t fold_all(uint32_t crc, const uint8_t *p, size_t n, uint8_t rest[16])
{
	(void)crc, (void)p, (void)n, (void)rest;
	return 0;
}

static bool can_fold(void)
{
	return false;
}
#endif

/* The CRC's register after @n octets more. */
static uint32_t icrc_add(uint32_t crc, const void *buf, size_t n)
{
	const uint8_t *p = buf;
	uint8_t rest[16];
	size_t done;

	if (n >= FOLD_MIN && can_fold()) {
		done = fold_all(crc, p, n, rest);
		crc = icrc_add(0, rest, sizeof(rest));
		p += done;
		n -= done;
	}
	for (; n >= 8; n -= 8, p += 8) {
		uint32_t a = crc ^ le32(p), b = le32(p + 4);

		crc = table[7][a & 0xff] ^ table[6][a >> 8 & 0xff] ^ table[5][a >> 16 & 0xff] ^
		      table[4][a >> 24] ^ table[3][b & 0xff] ^ table[2][b >> 8 & 0xff] ^
		      table[1][b >> 16 & 0xff] ^ table[0][b >> 24];
	}
	while (n--)
		crc = table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

static uint32_t start_icrc(const struct ddps_ib_udp_hdr *u, size_t len)
{
	uint8_t head[IP_LEN + UDP_LEN];
	struct ddps_wbuf w = ddps_wbuf_init(head, sizeof(head));
	size_t udp = UDP_LEN + len;

	ddps_wbuf_u8(&w, 0x45);
	ddps_wbuf_u8(&w, 0xff); /* type of service */
	ddps_wbuf_u16(&w, (uint16_t)(IP_LEN + udp));
	ddps_wbuf_u16(&w, u->id);
	ddps_wbuf_u16(&w, 0x4000); /* no fragments */
	ddps_wbuf_u8(&w, 0xff);	   /* time to live */
	ddps_wbuf_u8(&w, 17);
	ddps_wbuf_u16(&w, 0xffff);
	ddps_wbuf_u32(&w, u->src);
	ddps_wbuf_u32(&w, u->dst);
	ddps_wbuf_u16(&w, u->sport);
	ddps_wbuf_u16(&w, u->dport);
	ddps_wbuf_u16(&w, (uint16_t)udp);
	ddps_wbuf_u16(&w, 0xffff);
	return icrc_add(AFTER_LRH, head, sizeof(head));
}

/* @len octets from the BTH on, of which one counts as all ones. */
static uint32_t body(uint32_t crc, const uint8_t *buf, size_t len)
{
	uint8_t bth[BTH_LEN];

	memcpy(bth, buf, sizeof(bth));
	bth[BTH_RES] = 0xff;
	return icrc_add(icrc_add(crc, bth, sizeof(bth)), buf + BTH_LEN, len - BTH_LEN);
}

void ddps_ib_icrc_make(const struct ddps_ib_udp_hdr *u, uint8_t *buf, size_t len)
{
	uint32_t crc = htole32(~body(start_icrc(u, len + DDPS_IB_ICRC_LEN), buf, len));

	memcpy(buf + len, &crc, sizeof(crc));
}

/* The product of two polynomials, the bits in the order of the register. */
static uint32_t product(uint32_t a, uint32_t b)
{
	uint32_t p = 0;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		p ^= a & bit ? b : 0;
		b = b >> 1 ^ (b & 1 ? POLY : 0);
	}
	return p;
}

enum ddps_ib_icrc ddps_ib_icrc_check(const struct ddps_ib_udp_hdr *u, const uint8_t *buf,
				     size_t len)
{
	size_t n = len - DDPS_IB_ICRC_LEN, behind = IP_LEN - ID_END + UDP_LEN + n;
	uint32_t wrong = ~body(start_icrc(u, len), buf, n) ^ le32(buf + n);

	if (!wrong)
		return DDPS_IB_ICRC_EXACT;
	/* an identification changes the low 16 bits of the register two octets after it began */
	behind += sizeof(uint16_t);
	for (unsigned k = 0; behind; k++, behind >>= 1) {
		if (k == sizeof(back) / sizeof(*back))
			return DDPS_IB_ICRC_BAD; /* longer than a packet can be */
		if (behind & 1)
			wrong = product(wrong, back[k]);
	}
	return wrong >> 16 ? DDPS_IB_ICRC_BAD : DDPS_IB_ICRC_ANOTHER;
}
