/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_STRICT_H
#define DDPS_VERBS_VD_STRICT_H
/*
 * sessctl run --strict: what adapters refuse and the drop-in takes by default is refused, with the
 * number that an adapter gives.  docs/verbs.md has the table.
 */
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
	VD_STRICT_RULES
};

/* Say on standard error, once for each rule, what is refused.  Return: @err. */
__attribute__((format(printf, 3, 4))) int vd_strict_refuse(enum vd_strict_rule rule, int err,
							   const char *fmt, ...);
/* Whether the device has immediate data and atomics: no iWARP adapter has both. */
bool vd_has_rfc7306(const struct ibv_context *ctx);

#endif
