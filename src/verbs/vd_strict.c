/* SPDX-License-Identifier: BSD-2-Clause */
/* What is refused in strict mode, and the line that says so. */
#include "verbs/vd_strict.h"
#include "verbs/vd.h"
#include "common/system/say.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int vd_strict_refuse(enum vd_strict_rule rule, int err, const char *fmt, ...)
{
	static const char *const names[VD_STRICT_RULES] = {
		[VD_STRICT_QP_STATE] = "qp-state",     [VD_STRICT_QP_TYPE] = "qp-type",
		[VD_STRICT_QUEUE_FULL] = "queue-full", [VD_STRICT_SIZE] = "size",
		[VD_STRICT_READ_SINK] = "read-sink",   [VD_STRICT_READ_DEPTH] = "read-depth",
		[VD_STRICT_MEMLOCK] = "memlock"
	};
	static bool said[VD_STRICT_RULES]; /* atomic */
	char text[300];
	va_list args;
	int keep = errno;

	if (__atomic_exchange_n(&said[rule], true, __ATOMIC_RELAXED))
		return err;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	ddps_say("ddpsess: strict: %s: %s: %s\n", names[rule], text, strerror(err));
	errno = keep;
	return err;
}

bool vd_has_rfc7306(const struct ibv_context *ctx)
{
	const struct vd_config *cfg = vd_config();

	return cfg->rfc7306 && (!cfg->strict || vd_is_roce(ctx));
}
