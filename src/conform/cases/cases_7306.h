/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CASES_7306_H
#define DDPS_CASES_7306_H
/* RFC 7306: the messages, and a session that has them. */
#include "conform/cases/work.h"

enum { IMM = 0x48, IMM_SE, ATOMIC_REQ, ATOMIC_RESP };
enum { FETCH_ADD = 0, CMP_SWAP = 2 };

#define ONES	 UINT64_MAX
#define REQ_LEN	 52u
#define RESP_LEN 12u

/* @receives of 64 octets are posted. */
static inline void rfc7306_on(struct cf *cf, unsigned receives)
{
	cf->app.attr.rfc7306 = true;
	cf_app_recv(cf, receives, 64);
	cf_session(cf, NULL);
}

/* The @i-th place for an atomic in a region. */
static inline uint64_t *cell(const struct cf_mr *m, size_t i)
{
	return (uint64_t *)(void *)m->mem + i;
}

#endif
