/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib_cm/sa/sa_in.h"
#include "ipoib_cm/sa/sa_mad.h"

#define CODE 0x3f /* of MTU, rate and lifetime, without the selector */

/* 15.2.5.16: by code, in 100 Mbit/s; 0: not known */
static const uint16_t rate_of[] = {
	[2] = 25,    [3] = 100,	  [4] = 300,   [5] = 50,    [6] = 200,	  [7] = 400,
	[8] = 600,   [9] = 800,	  [10] = 1200, [11] = 140,  [12] = 560,	  [13] = 1120,
	[14] = 1680, [15] = 250,  [16] = 1000, [17] = 2000, [18] = 3000,  [19] = 280,
	[20] = 500,  [21] = 4000, [22] = 6000, [23] = 8000, [24] = 12000,
};

static unsigned get_compared_value(enum ddps_sa_compare how, uint8_t code)
{
	code &= CODE;
	if (how != DDPS_SA_RATE)
		return code;
	return code < sizeof rate_of / sizeof *rate_of ? rate_of[code] : 0;
}

bool ddps_sa_selected(enum ddps_sa_compare how, uint8_t want, uint8_t have)
{
	unsigned asked = get_compared_value(how, want), is = get_compared_value(how, have);

	switch (want >> 6) {
	case DDPS_SEL_GREATER:
		return is > asked;
	case DDPS_SEL_LESS:
		return is < asked;
	case DDPS_SEL_EXACTLY:
		return is == asked;
	default:
		return true;
	}
}

static unsigned bit_at(const uint8_t *p, unsigned i)
{
	return (unsigned)p[i / 8] >> (7 - i % 8) & 1u;
}

static bool equal(const struct ddps_sa_field *f, const uint8_t *a, const uint8_t *b)
{
	for (unsigned i = f->at; i < (unsigned)f->at + f->bits; i++)
		if (bit_at(a, i) != bit_at(b, i))
			return false;
	return true;
}

/* Component @i, which the mask names.  A selector and its value count together, "best" alone, too. */
static bool component(const struct ddps_sa_field *field, size_t i, uint64_t mask,
		      const uint8_t *want, const uint8_t *have)
{
	const struct ddps_sa_field *f = &field[i];

	switch (f->how) {
	case DDPS_SA_EQUAL:
		return equal(f, want, have);
	case DDPS_SA_MTU:
	case DDPS_SA_RATE:
	case DDPS_SA_LIFE:
		return !(mask >> (i - 1) & 1) ||
		       ddps_sa_selected(f->how, want[f->at / 8], have[f->at / 8]);
	case DDPS_SA_SELECTOR:
		break;
	}
	return true;
}

bool ddps_sa_match(const struct ddps_sa_field *field, size_t n, uint64_t mask, const uint8_t *want,
		   const uint8_t *have)
{
	for (size_t i = 0; i < 64; i++) {
		if (!(mask >> i & 1))
			continue;
		if (i >= n || !component(field, i, mask, want, have))
			return false;
	}
	return true;
}
