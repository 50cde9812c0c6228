/* SPDX-License-Identifier: BSD-2-Clause */
/* Strict mode: a device like the least of the adapters, and what it refuses at the edge. */
#include "edge/ed.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/vd_strict.h"
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a profile does not say. */
static void fill_strict_limits(struct vp_device *d)
{
	if (vp_limit(d, VP_MAX_SGE, UINT64_MAX) == UINT64_MAX)
		d->limit[VP_MAX_SGE] = CK_COMMON_SGE;
	if (vp_limit(d, VP_MAX_INLINE, UINT64_MAX) == UINT64_MAX)
		d->limit[VP_MAX_INLINE] = CK_COMMON_INLINE;
	d->atomics = d->atomics && d->roce;
}

void ed_strict_start(const struct vd_config *cfg)
{
	char text[80];
	struct vf_error e;
	int len = snprintf(text, sizeof text, "device %s\nface %s\n", cfg->name,
			   cfg->lids   ? "ib"
			   : cfg->roce ? "roce"
				       : "iwarp");

	ed.strict = true;
	if (!ed.profile.n && !vp_parse(&ed.profile, ed_most, text, (size_t)len, &e))
		ed_profile_start();
	for (unsigned i = 0; i < ed.profile.n; i++)
		fill_strict_limits(&ed.profile.device[i]);
}

/* ---- memory: an adapter pins it ---- */

static uint64_t count_pages(const void *addr, size_t len)
{
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)addr;

	return len ? (at + len - 1) / size - at / size + 1 : 0;
}

static bool may_pin_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &head, data) && data[0].effective >> CAP_IPC_LOCK & 1;
}

/* All that is registered but @but. */
static uint64_t count_pinned_pages(struct vd_process *p, const struct ibv_mr *but)
{
	const struct vd_mr *mr;
	uint64_t n = 0;

	ddps_lock(&p->lock);
	LIST_FOREACH(mr, &p->regions, link)
		if (&mr->mr != but && mr->mr.addr && !mr->imported &&
		    !(mr->access & IBV_ACCESS_ON_DEMAND))
			n += count_pages(mr->mr.addr, mr->mr.length);
	ddps_unlock(&p->lock);
	return n;
}

int ed_pin(const struct ibv_context *ctx, const struct ibv_mr *instead_of, const void *addr,
	   size_t len)
{
	const uint64_t kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t all;

	if (!ed.strict || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	all = (count_pinned_pages(vd_process_of(ctx), instead_of) + count_pages(addr, len)) * kib;
	if (all <= limit.rlim_cur / 1024 || may_pin_all())
		return 0;
	return vd_strict_refuse(VD_STRICT_MEMLOCK, ENOMEM,
				"%llu KiB of memory registered, and the limit of locked memory is "
				"%llu KiB (ulimit -l)",
				(unsigned long long)all,
				(unsigned long long)(limit.rlim_cur / 1024));
}

/* ---- queue pairs ---- */

int ed_strict_type(const struct ibv_context *ctx, enum ibv_qp_type type)
{
	if (!ed.strict || vd_is_roce(ctx) || type == IBV_QPT_RC)
		return 0;
	return vd_strict_refuse(VD_STRICT_QP_TYPE, EOPNOTSUPP,
				"a queue pair of type %d: an iWARP adapter has reliable "
				"connections only (--face roce has others)",
				type);
}

/* On iWARP the peer writes into the memory that a Read fills, by its key. */
static bool is_read_sink(struct vd_process *p, const struct ibv_sge *s)
{
	const struct vd_mr *mr;
	bool may;

	ddps_lock(&p->lock);
	LIST_FOREACH(mr, &p->regions, link)
		if (mr->mr.lkey == s->lkey)
			break;
	may = !mr || mr->access & IBV_ACCESS_REMOTE_WRITE; /* a wrong key is reported elsewhere */
	ddps_unlock(&p->lock);
	return may;
}

int ed_strict_send(const struct ed_qp *q, const struct ibv_send_wr *wr)
{
	struct ibv_context *ctx = q->qp->context;

	if (!ed.strict || wr->opcode != IBV_WR_RDMA_READ || vd_is_roce(ctx))
		return 0;
	if (wr->num_sge == 1 && wr->sg_list && !is_read_sink(vd_process_of(ctx), wr->sg_list))
		return vd_strict_refuse(
			VD_STRICT_READ_SINK, EINVAL,
			"a Read into a region without IBV_ACCESS_REMOTE_WRITE, which "
			"iWARP adapters need there");
	return 0;
}
