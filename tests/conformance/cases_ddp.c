/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5041. */
#include "conformance/conform.h"

static void unknown_stag(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0x00000001, 0x10000, "ABCDEFGH", 8);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
}

static void zero_length_write(struct cf *cf)
{
	cf_session(cf, NULL);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 0xffffffff, UINT64_MAX, NULL, 0);
	cf_send(cf);
	cf_ping(cf);
}

const struct cf_case cf_cases_ddp[] = {
	{ "ddp-write-unknown-stag", "5041-7.1-12 5041-7.1-18 5041-7.2-1",
	  "a Write to an STag that does not exist is 1/1/00", CF_BOTH, CF_RESPONDER, false,
	  unknown_stag },
	{ "ddp-write-zero", "5041-5.2-11", "a zero-length Write is not checked", CF_BOTH,
	  CF_RESPONDER, false, zero_length_write },
	{ 0 },
};
