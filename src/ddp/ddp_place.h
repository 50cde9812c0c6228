/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_DDP_PLACE_H
#define DDPS_DDP_PLACE_H
/*
 * The receiver's checks before Placement (RFC 5041 7.1), and how a fault is reported upwards.
 * The checks change nothing: they may be run as often as wanted.
 */
#include "common/term_codes.h"
#include "ddp/ddp_wire.h"
#include "ddp/stag.h"

/* What was found wrong; travels up to RDMAP, which makes a Terminate of it. */
struct ddps_fault {
	int code; /* DDPS_E_* */
	struct ddps_triple triple;
	/* What becomes of the receive, or the Read or atomic, that the segment was meant for; 0
	 * means that it is flushed with the others. */
	enum ddps_wc_status recv_status, read_status;
	char text[160];
};

/* Fill in a fault.  Return: @code. */
int ddps_fault_set(struct ddps_fault *f, int code, enum ddps_term_code term, const char *fmt, ...)
	__attribute__((cold, format(printf, 4, 5)));

/* One untagged queue of the receiver. */
struct ddps_ddp_queue {
	uint32_t msn; /* of the message in progress or expected next */
	uint64_t got; /* octets of it that are placed */
};

/*
 * An untagged segment with @len octets of payload against its queue: MSN, buffer, MO,
 * length.  @buf_len is the buffer's length if @have_buf.  Octets
 * must come without holes and in order: their sum would else not prove that every octet
 * of the buffer was written; no stack is known that sends otherwise. Return: 0 or
 * DDPS_E_PROTOCOL with @f set.
 */
int ddps_ddp_check_untagged(const struct ddps_ddp_queue *q, const struct ddps_ddp_hdr *h,
			    size_t len, bool have_buf, uint64_t buf_len, struct ddps_fault *f);

/*
 * A segment of an RDMA Write with @len > 0 octets of payload: may @stream write there,
 * and where is it?  Return: 0 or DDPS_E_ACCESS with @f set.
 */
int ddps_ddp_check_tagged(struct ddps_pd *pd, uint64_t stream, const struct ddps_ddp_hdr *h,
			  size_t len, uint8_t **at, struct ddps_fault *f);

/* The tagged-buffer error that goes with a verdict on an STag (RFC 5041 7.2). */
int ddps_ddp_stag_fault(enum ddps_stag_verdict v, const struct ddps_ddp_hdr *h, size_t len,
			struct ddps_fault *f);

#endif
