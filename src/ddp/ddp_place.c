/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks before Placement. */
#include "ddp/ddp_place.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

int ddps_fault_set(struct ddps_fault *f, int code, enum ddps_term_code term, const char *fmt, ...)
{
	va_list ap;

	*f = (struct ddps_fault){ .code = code, .triple = ddps_term_triple(term) };
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof f->text, fmt, ap);
	va_end(ap);
	return code;
}

int ddps_ddp_check_untagged(const struct ddps_ddp_queue *q, const struct ddps_ddp_hdr *h,
			    size_t len, bool have_buf, uint64_t buf_len, struct ddps_fault *f)
{
	/* The LLP delivers in order: nothing but the expected MSN is in the window
	 * [5041-7.1-10]; a missing buffer is distinguished. */
	if (h->msn != q->msn)
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_DDP_MSN,
				      "queue %" PRIu32 ": MSN %" PRIu32 ", expected %" PRIu32,
				      h->qn, h->msn, q->msn);
	if (!have_buf) /* [5041-7.1-3] [5041-7.1-7] */
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_DDP_NO_BUFFER,
				      "queue %" PRIu32 ": no buffer for MSN %" PRIu32, h->qn,
				      h->msn);
	if (h->mo > buf_len || h->mo != q->got) /* [5041-7.1-8] */
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_DDP_OFFSET,
				      "queue %" PRIu32 ": MO %" PRIu32 ", expected %" PRIu64
				      " in a buffer of %" PRIu64,
				      h->qn, h->mo, q->got, buf_len);
	if (len > buf_len - h->mo) /* [5041-7.1-9] */
		return ddps_fault_set(f, DDPS_E_PROTOCOL, DDPS_TERM_DDP_TOO_LONG,
				      "queue %" PRIu32 ": %zu octets at MO %" PRIu32
				      " exceed a buffer of %" PRIu64,
				      h->qn, len, h->mo, buf_len);
	return 0;
}

int ddps_ddp_stag_fault(enum ddps_stag_verdict v, const struct ddps_ddp_hdr *h, size_t len,
			struct ddps_fault *f)
{
	/* DDP has no code for a missing right: invalid STag. */
	static const enum ddps_term_code error[] = {
		[DDPS_STAG_INVALID] = DDPS_TERM_DDP_STAG,
		[DDPS_STAG_ACCESS] = DDPS_TERM_DDP_STAG,
		[DDPS_STAG_BOUNDS] = DDPS_TERM_DDP_BOUNDS,
		[DDPS_STAG_ASSOCIATION] = DDPS_TERM_DDP_ASSOCIATION,
		[DDPS_STAG_WRAP] = DDPS_TERM_DDP_WRAP,
	};

	return ddps_fault_set(f, DDPS_E_ACCESS, error[v],
			      "%zu octets to STag 0x%08" PRIx32 ", TO 0x%" PRIx64 ": %s", len,
			      h->stag, h->to, ddps_stag_verdict_text(v));
}

int ddps_ddp_check_tagged(struct ddps_pd *pd, uint64_t stream, const struct ddps_ddp_hdr *h,
			  size_t len, uint8_t **at, struct ddps_fault *f)
{
	enum ddps_stag_verdict v =
		ddps_stag_check(pd, stream, h->stag, h->to, len, DDPS_REMOTE_WRITE, at);

	return v ? ddps_ddp_stag_fault(v, h, len, f) : 0;
}
