/* SPDX-License-Identifier: BSD-2-Clause */
/* The extended completion queue: one completion at a time, read by functions. */
#include "verbs/vd.h"
#include <errno.h>

static struct vd_cq *cq_of(struct ibv_cq_ex *cq)
{
	return vd_of(cq, struct vd_cq, cq);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct vd_cq *cq = cq_of(ex);
	/* as a program's call would go: by the edge, if there is one */
	int n = ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &cq->now);

	if (n <= 0)
		return n < 0 ? EIO : ENOENT;
	ex->wr_id = cq->now.wr_id;
	ex->status = cq->now.status;
	return 0;
}

/* The current completion is the caller's until end_poll. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vd_cq *cq = cq_of(ex);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	if (vd_is_inherited(ex->context))
		return EIO; /* the parent's, from before a fork */
	if (!cq->alone)
		ddps_lock(&cq->reading);
	err = next_poll(ex);
	if (err && !cq->alone)
		ddps_unlock(&cq->reading);
	return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	if (!cq_of(ex)->alone)
		ddps_unlock(&cq_of(ex)->reading);
}

/* ---- time stamps: the device's clock is CLOCK_MONOTONIC, in ns ---- */

uint64_t vd_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return __atomic_load_n(&cq_of(ex)->stamp, __ATOMIC_RELAXED);
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	uint64_t age =
		vd_clock_ns(CLOCK_MONOTONIC) - __atomic_load_n(&cq_of(ex)->stamp, __ATOMIC_RELAXED);

	return vd_clock_ns(CLOCK_REALTIME) - age;
}

/* What there is to read of the current completion. */
#define READER(type, member)                                                                       \
	static type read_##member(struct ibv_cq_ex *ex)                                            \
	{                                                                                          \
		return cq_of(ex)->now.member;                                                      \
	}

READER(enum ibv_wc_opcode, opcode)
READER(uint32_t, vendor_err)
READER(uint32_t, byte_len)
READER(__be32, imm_data)
READER(uint32_t, qp_num)
READER(uint32_t, src_qp)
READER(unsigned int, wc_flags)
READER(uint32_t, slid)
READER(uint8_t, sl)
READER(uint8_t, dlid_path_bits)

void vd_cq_ex_init(struct vd_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->cq;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_completion_ts;
	ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
