/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of the send queue that are carried out here: windows bound, STags invalidated. */
#include "rdmap/rdmap_priv.h"
#include <inttypes.h>

int ddps_sq_local(struct ddps_rdmap *r, struct ddps_fault *f)
{
	struct ddps_sqe *e = ddps_sq_at(r, r->sq.next);
	enum ddps_stag_verdict v;

	if (e->op == DDPS_OP_BIND)
		v = ddps_stag_bind(r->pd, r->stream, e->bind.window, e->stag,
				   e->nsge ? ddps_sq_sge(r, r->sq.next) : NULL, e->bind.access);
	else
		v = ddps_stag_revoke(r->pd, r->stream, e->stag);
	if (v) {
		e->status = DDPS_WC_LOCAL_ACCESS;
		return ddps_fault_set(f, DDPS_E_ACCESS, DDPS_TERM_RDMAP_LOCAL,
				      "%s of STag 0x%08" PRIx32 ": %s", ddps_op_name(e->op),
				      e->stag, ddps_stag_verdict_text(v));
	}
	e->sent = true;
	r->sq.next++;
	if (r->up->revoked)
		r->up->revoked(r->user);
	ddps_sq_complete(r);
	return 0;
}

void ddps_sq_local_now(struct ddps_rdmap *r, uint64_t pos)
{
	struct ddps_fault f;

	if (r->state != DDPS_RS_RUN || r->sq.next != pos ||
	    (ddps_sq_at(r, pos)->flags & DDPS_WR_FENCE && r->reads_out))
		return;
	if (ddps_sq_local(r, &f))
		ddps_rdmap_fail(r, &f, NULL, NULL);
}
