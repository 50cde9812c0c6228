/* SPDX-License-Identifier: BSD-2-Clause */
/* User messages that come in several reads. */
#include "sctp_ddp/backend/sd_part.h"
#include <ddpsess/err.h>
#include <stdlib.h>
#include <string.h>

uint8_t *ddps_sd_part_room(const struct ddps_sd_part *p, uint8_t *shared, size_t *room)
{
	*room = DDPS_SD_MSG_MAX - p->len;
	return p->own ? p->own + p->len : shared;
}

int ddps_sd_part_hold(struct ddps_sd_part *p, const uint8_t *at, size_t n)
{
	if (p->len + n >= DDPS_SD_MSG_MAX)
		return DDPS_E_PROTOCOL;
	if (!p->own) {
		p->own = malloc(DDPS_SD_MSG_MAX);
		if (!p->own)
			return DDPS_E_NOMEM;
		memcpy(p->own, at, n);
	}
	p->len += n;
	return 0;
}

void ddps_sd_part_drop(struct ddps_sd_part *p)
{
	free(p->own);
	*p = (struct ddps_sd_part){ 0 };
}
