/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, memory regions and windows: the public face of ddp/stag.h. */
#include "session/session.h"
#include <stdlib.h>

#define MR_LEN_MAX (UINT64_C(1) << 48)
#define ACCESS_ALL                                                                                 \
	(DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC |            \
	 DDPS_ZERO_BASED | DDPS_BIND | DDPS_FLUSHABLE | DDPS_PERSISTENT)
#define REMOTE_ALL (DDPS_REMOTE_WRITE | DDPS_REMOTE_READ | DDPS_REMOTE_ATOMIC)
#define CHANGE_ALL (DDPS_CHANGE_ACCESS | DDPS_CHANGE_MEMORY | DDPS_CHANGE_PD)

int ddps_pd_new(struct ddps_ctx *ctx, struct ddps_pd **out)
{
	struct ddps_ctx_pd *p;
	int err = ddps_ctx_enter(ctx);

	if (err < 0)
		return err;
	p = calloc(1, sizeof *p);
	if (p) {
		p->pd.table = ctx->stags;
		p->pd.ctx = ctx;
		p->pd.verbs_rules = ctx->attr.verbs_rules;
		LIST_INSERT_HEAD(&ctx->pds, p, link);
		*out = &p->pd;
	}
	ddps_ctx_leave(ctx);
	return p ? 0 : DDPS_E_NOMEM;
}

int ddps_pd_free(struct ddps_pd *pd)
{
	struct ddps_ctx_pd *p = (struct ddps_ctx_pd *)pd;
	struct ddps_ctx *ctx;
	int err;

	if (!pd)
		return 0;
	ctx = pd->ctx;
	err = ddps_ctx_enter(ctx);
	if (err < 0)
		return err;
	if (pd->users) {
		err = DDPS_E_BUSY;
	} else {
		LIST_REMOVE(p, link);
		free(p);
	}
	ddps_ctx_leave(ctx);
	return err;
}

int ddps_mr_reg(struct ddps_pd *pd, void *addr, size_t len, unsigned access, struct ddps_ep *ep,
		struct ddps_mr **out)
{
	int err;

	if (!pd || !out || (!addr && len) || len > MR_LEN_MAX || (access & ~ACCESS_ALL) ||
	    (ep && ep->pd != pd))
		return DDPS_E_INVAL;
	if (access & DDPS_PERSISTENT && !ddps_can_persist(addr, len))
		return DDPS_E_UNSUPPORTED;
	err = ddps_ctx_enter(pd->ctx);
	if (err < 0)
		return err;
	err = ddps_stag_add(pd, addr, len, access, ep ? ep->serial : 0, out);
	pd->ctx->stats.regions_refused += err == DDPS_E_LIMIT;
	ddps_ctx_leave(pd->ctx);
	return err;
}

int ddps_mr_place(struct ddps_mr *mr, uint64_t to)
{
	int err;

	if (!mr || mr->window)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(mr->pd->ctx);
	if (err < 0)
		return err;
	err = ddps_stag_place(mr, to);
	ddps_ctx_leave(mr->pd->ctx);
	return err;
}

/* What is to be persistent can be, as it is to be then.  It may have to ask a disk, so the context's lock is not held: a
 * region belongs to whoever changes it. */
static bool keeps_persistence(const struct ddps_mr *mr, unsigned what,
			      const struct ddps_mr_change *to)
{
	unsigned access = what & DDPS_CHANGE_ACCESS ? to->access : mr->access;
	bool moved = what & DDPS_CHANGE_MEMORY;

	return !(access & DDPS_PERSISTENT) ||
	       ddps_can_persist(moved ? to->addr : mr->addr, moved ? to->len : mr->len);
}

int ddps_mr_change(struct ddps_mr *mr, unsigned what, const struct ddps_mr_change *to)
{
	struct ddps_ctx *ctx;
	int err;

	if (!mr || !to || to->reserved || !what || what & ~CHANGE_ALL ||
	    (what & DDPS_CHANGE_PD && (!to->pd || to->pd->ctx != mr->pd->ctx)) ||
	    (what & DDPS_CHANGE_ACCESS && to->access & ~ACCESS_ALL))
		return DDPS_E_INVAL;
	if (!keeps_persistence(mr, what, to))
		return DDPS_E_UNSUPPORTED;
	ctx = mr->pd->ctx;
	err = ddps_ctx_enter(ctx);
	if (err < 0)
		return err;
	err = ddps_stag_change(mr, what, to);
	if (!err)
		ddps_let_go(ctx);
	ddps_ctx_leave(ctx);
	return err;
}

int ddps_mw_new(struct ddps_pd *pd, bool shared, struct ddps_mr **out)
{
	int err;

	if (!pd || !out)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(pd->ctx);
	if (err < 0)
		return err;
	err = ddps_stag_add_window(pd, shared, out);
	pd->ctx->stats.regions_refused += err == DDPS_E_LIMIT;
	ddps_ctx_leave(pd->ctx);
	return err;
}

void ddps_let_go(struct ddps_ctx *ctx)
{
	struct ddps_llp *next;

	ddps_assert_held(&ctx->lock);
	for (struct ddps_llp *llp = ctx->env.lenders; llp; llp = next) {
		next = llp->lend_next;
		if (llp->ops->keep_copy(llp) < 0) {
			ddps_uncancellable_within(); /* whoever posts an Invalidate holds a bare lock */
			llp->ops->abort(llp);
			ddps_uncancellable_end();
		}
	}
}

int ddps_mr_dereg(struct ddps_mr *mr)
{
	struct ddps_ctx *ctx;
	int err;

	if (!mr)
		return 0;
	ctx = mr->pd->ctx;
	err = ddps_ctx_enter(ctx);
	if (err < 0)
		return err;
	err = mr->windows || mr->pending ? DDPS_E_BUSY : 0;
	if (!err) {
		ddps_stag_remove(mr);
		ddps_let_go(ctx);
	}
	ddps_ctx_leave(ctx);
	return err;
}

int ddps_ep_allow(struct ddps_ep *ep, unsigned rights)
{
	int err;

	if (!ep || rights & ~REMOTE_ALL)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ep->ctx);
	if (err < 0)
		return err;
	ddps_rdmap_allow(ep->rdmap, rights);
	ddps_ctx_leave(ep->ctx);
	return 0;
}

int ddps_ep_reads_max(struct ddps_ep *ep, uint16_t n)
{
	int err;

	if (!ep || !n)
		return DDPS_E_INVAL;
	err = ddps_ctx_enter(ep->ctx);
	if (err < 0)
		return err;
	ddps_rdmap_reads_max(ep->rdmap, n);
	ddps_ctx_leave(ep->ctx);
	return 0;
}

uint32_t ddps_mr_stag(const struct ddps_mr *mr)
{
	return mr->stag;
}

uint64_t ddps_mr_to(const struct ddps_mr *mr)
{
	return mr->base;
}
