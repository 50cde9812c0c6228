/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_SA_MATCH_H
#define DDPS_IB_SA_MATCH_H
/*
 * Which records a query means (IBA volume 1, 15.4): those that agree with it in all components that its
 * mask names.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ddps_sa_compare {
	DDPS_SA_EQUAL = 1, /* 0: a component that nothing is compared with */
	DDPS_SA_SELECTOR,  /* goes with the component behind it */
	DDPS_SA_MTU,
	DDPS_SA_RATE,
	DDPS_SA_LIFE,
};

/* The component of one bit of the mask: so many bits of the record, from @at on. */
struct ddps_sa_field {
	uint16_t at, bits;
	enum ddps_sa_compare how;
};

/*
 * @want, @have: MTU, rate or lifetime with the selector in the upper two of eight bits.  Rates are in the
 * order of what they mean, which is not that of their codes.
 */
bool ddps_sa_selected(enum ddps_sa_compare how, uint8_t want, uint8_t have);

/* Whether the record @have agrees with the one asked for. */
bool ddps_sa_match(const struct ddps_sa_field *field, size_t n, uint64_t mask, const uint8_t *want,
		   const uint8_t *have);

#endif
