/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_USRSCTP_FIXTURE_H
#define SD_USRSCTP_FIXTURE_H
/* Two contexts and one association between them, on the usrsctp backend, and what it is inside. */
#include "sctp_ddp/backend/usrsctp/sd_usrsctp.h"
#include "sd_pair_fixture.h"

#define B (&ddps_sd_usrsctp)

static inline struct sctpstat stats(void)
{
	struct sctpstat st;

	usrsctp_get_stat(&st);
	return st;
}

#endif
