/* SPDX-License-Identifier: BSD-2-Clause */
/* Random octets of the system's. */
#include "common/system/random.h"
#include <ddpsess/err.h>
#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

int ddps_random(void *buf, size_t len)
{
	uint8_t *p = buf;
	ssize_t n;

	while (len) {
		n = getrandom(p, len, 0);
		if (n < 0 && errno != EINTR)
			return DDPS_E_SYSTEM;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}
