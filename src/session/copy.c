/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory read and written by the program, as work requests would. */
#include "session/session.h"
#include <string.h>

/* All pieces, since a request is good or bad as a whole; @len: what they make up. */
static int check_sges(struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge, unsigned need,
		      uint64_t *len)
{
	*len = 0;
	for (uint32_t i = 0; i < nsge; i++) {
		*len += sge[i].len;
		if (ddps_stag_check_local(pd, 0, &sge[i], need))
			return DDPS_E_ACCESS;
	}
	return 0;
}

static bool well_formed(const struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge,
			const void *data, size_t len)
{
	return pd && nsge <= DDPS_COPY_SGE_MAX && (sge || !nsge) && (data || !len);
}

int ddps_sge_gather(struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge, void *to,
		    size_t *len)
{
	uint8_t *at = to;
	uint64_t all;
	int err;

	if (!len || !well_formed(pd, sge, nsge, to, *len))
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(pd->ctx);
	if (err < 0)
		return err;
	err = check_sges(pd, sge, nsge, 0, &all);
	if (!err && all > *len)
		err = DDPS_E_TOO_LONG;
	for (uint32_t i = 0; !err && i < nsge; i++) {
		if (at && sge[i].len)
			memcpy(at, sge[i].addr, sge[i].len);
		at += sge[i].len;
	}
	if (!err)
		*len = (size_t)all;
	ddps_ctx_leave(pd->ctx);
	return err;
}

int ddps_sge_scatter(struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge,
		     const void *from, size_t len)
{
	const uint8_t *at = from;
	uint64_t room;
	int err;

	if (!well_formed(pd, sge, nsge, from, len))
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(pd->ctx);
	if (err < 0)
		return err;
	err = check_sges(pd, sge, nsge, DDPS_LOCAL_WRITE, &room);
	if (!err && len > room)
		err = DDPS_E_TOO_LONG;
	for (uint32_t i = 0; !err && len; i++) {
		size_t n = len < sge[i].len ? len : sge[i].len;

		if (n)
			memcpy(sge[i].addr, at, n);
		at += n;
		len -= n;
	}
	ddps_ctx_leave(pd->ctx);
	return err;
}
