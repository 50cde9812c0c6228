/* SPDX-License-Identifier: BSD-2-Clause */
/* What sessions inside DTLS meet in addition: new keys again and again; a NAT on the way has forgotten them. */
#include "sim/session_in.h"
#include "sctp_ddp/backend/native/sd_native.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"

void dtls_begin(struct ddps_ctx *ctx)
{
	const struct ddps_sd_provider *prov = ctx->env.sctp;
	struct ddps_sn_env *ne = world.inside && prov ? prov->slot[0].ctx : NULL;

	if (ne && sim_happens(SIM_renews, 0, 0, 0.7))
		ne->renew_at = 20 + sim_like(200);
}

void dtls_end(const struct ddps_ctx *ctx)
{
	world.t->n[T_RENEWED] += ctx->env.secured.renewed;
	world.t->n[T_REBOUND] += ctx->env.secured.rebound;
}
