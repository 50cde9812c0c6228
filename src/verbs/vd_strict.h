/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_STRICT_H
#define DDPS_VERBS_VD_STRICT_H
/*
 * sessctl run --strict: what adapters refuse and the drop-in takes by default is refused, with the
 * number that an adapter gives.  docs/verbs.md has the table.
 */
#include <ddpsess/err.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

enum vd_strict_rule {
	VD_STRICT_QP_STATE,
	VD_STRICT_QP_TYPE,
	VD_STRICT_QUEUE_FULL,
	VD_STRICT_SIZE,
	VD_STRICT_READ_SINK,
	VD_STRICT_READ_DEPTH,
	VD_STRICT_MEMLOCK,
	VD_STRICT_NO_RECV,
	VD_STRICT_RULES
};

/* Say on standard error, once for each rule, what is refused.  Return: @err. */
__attribute__((format(printf, 3, 4))) int vd_strict_refuse(enum vd_strict_rule rule, int err,
							   const char *fmt, ...);
/* Completions have a status alone.  With --check the sentence of a Terminate is on standard error; in
 * strict mode it is said if it was sent since @no_recv: a receive was missing. */
void vd_terminate_tell(const struct ibv_qp *q, const struct ddps_error *e, bool no_recv);
/* Whether the device has immediate data and atomics: no iWARP adapter has both. */
bool vd_has_rfc7306(const struct ibv_context *ctx);

#endif
