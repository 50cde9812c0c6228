/* SPDX-License-Identifier: BSD-2-Clause */
/* Times in the 5-bit form of CM messages. */
#include "ipoib_cm/wire/wire.h"
#include <ddpsess/ipoib_cm.h>

#define UNIT_NS 4096

uint64_t ddps_cm_time_ns(unsigned t)
{
	return (uint64_t)UNIT_NS << (t > DDPS_CM_TIME_MAX ? DDPS_CM_TIME_MAX : t);
}

uint8_t ddps_cm_time_code(uint64_t ns)
{
	uint8_t t = 0;

	while (t < DDPS_CM_TIME_MAX && ddps_cm_time_ns(t) < ns)
		t++;
	return t;
}

uint8_t ddps_cm_ack_timeout(unsigned life, unsigned delay)
{
	unsigned trip = life + 1; /* there and back: twice the lifetime */
	unsigned sum;

	/* The exponent of 2^trip + 2^delay, rounded from the larger of the two. */
	if (trip >= delay)
		sum = trip + (delay >= life);
	else
		sum = delay + (trip + 1 >= delay);
	return (uint8_t)(sum > DDPS_CM_TIME_MAX ? DDPS_CM_TIME_MAX : sum);
}
