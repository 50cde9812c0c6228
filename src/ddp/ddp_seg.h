/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_DDP_SEG_H
#define DDPS_DDP_SEG_H
/* Segmentation: one DDP message cut into segments of the MULPDU of the moment (RFC
 * 5041 5.2). */
#include "common/llp.h"
#include "ddp/ddp_wire.h"
#include <ddpsess/wr.h>

/* Longest list of pieces a segment can carry. */
#define DDPS_DDP_SGE_MAX 16

struct ddps_ddp_msg {
	struct ddps_ddp_hdr hdr; /* as of the first segment: TO initial, MO 0, L unset */
	const struct ddps_sge *sge;
	uint32_t nsge; /* at most DDPS_DDP_SGE_MAX */
	uint64_t len, sent;
};

/* How many payload octets the next segment of @m carries. */
size_t ddps_ddp_room(const struct ddps_ddp_msg *m, size_t mulpdu);

/*
 * Cut the next segment; @mulpdu is above the header's length.  The payload points into
 * the pieces.  Return: true if it was the last one.
 */
bool ddps_ddp_cut(struct ddps_ddp_msg *m, struct ddps_seg *seg, size_t mulpdu);

/*
 * The octets [@off, @off + @len) of the buffer that the pieces make up, as iovecs.
 * Return: how many were filled, at most @max.
 */
int ddps_sge_iov(const struct ddps_sge *sge, uint32_t nsge, uint64_t off, uint64_t len,
		 struct iovec *iov, int max);

#endif
