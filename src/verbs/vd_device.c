/* SPDX-License-Identifier: BSD-2-Clause */
/* The one device: an RNIC with one Ethernet port, unless its face is another. */
#include "common/system/thread.h"
#include "verbs/ib/vd_flush.h"
#include "verbs/ib/vd_memory.h"
#include "verbs/ib/vd_qp.h"
#include "verbs/ud/vd_ud.h"
#include "verbs/vd.h"
#include "verbs/vd_lid.h"
#include "verbs/vd_strict.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* As of an address that is locally administered: no maker's.  "ddp" */
#define CLOCK_KHZ   1000000 /* of time stamps: ns */
#define VENDOR	    0x026464
#define VENDOR_PART 1

/* Nothing is pinned, so every region is paged on demand. */
#define ODP_RC                                                                                     \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |                     \
	 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV)
#define ODP_RC_7306 (IBV_ODP_SUPPORT_ATOMIC | VD_ODP_SUPPORT_FLUSH | VD_ODP_SUPPORT_ATOMIC_WRITE)

struct ibv_device **vdi_ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc(2, sizeof *list);

	if (num)
		*num = list ? 1 : 0;
	if (list)
		list[0] = vd_device();
	return list;
}

VD_API void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

VD_API const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VD_API int ibv_get_device_index(struct ibv_device *device)
{
	return (int)vd_device_index(device);
}

/* The first that is up and not loopback, else loopback. */
unsigned vd_host_address(struct sockaddr_in *a4)
{
	struct ifaddrs *all = NULL;
	unsigned ifindex = if_nametoindex("lo");

	*a4 = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (ddps_interfaces(&all))
		return ifindex;
	for (struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
		    !(i->ifa_flags & IFF_LOOPBACK)) {
			memcpy(a4, i->ifa_addr, sizeof *a4);
			ifindex = if_nametoindex(i->ifa_name);
			break;
		}
	freeifaddrs(all);
	return ifindex;
}

void vd_gid_of(const struct sockaddr_in *a4, union ibv_gid *gid)
{
	memset(gid, 0, sizeof *gid);
	gid->raw[10] = gid->raw[11] = 0xff; /* ::ffff:a.b.c.d */
	memcpy(gid->raw + 12, &a4->sin_addr, 4);
}

static void fill_gid(union ibv_gid *gid)
{
	struct sockaddr_in a4;

	vd_host_address(&a4);
	vd_gid_of(&a4, gid);
}

__be64 vdi_ibv_get_device_guid(struct ibv_device *device)
{
	union ibv_gid gid;
	__be64 guid;

	(void)device;
	fill_gid(&gid);
	memcpy(&guid, gid.raw + 8, sizeof guid);
	return guid;
}

/* ---- contexts ---- */

static int query_vd_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
			 size_t len)
{
	struct ibv_port_attr a = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_1024,
		.gid_tbl_len = VD_GIDS,
		.max_msg_sz = vd_is_roce(ctx) ? VD_ROCE_MSG_MAX : UINT32_MAX,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 2, /* 4X */
		.active_speed = 4, /* QDR: 40 Gb/s in all, a number that programs expect */
		.phys_state = 5,   /* LinkUp */
		.link_layer =
			vd_has_lids(ctx) ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET,
	};
	struct sockaddr_in a4;

	if (port != 1)
		return EINVAL;
	if (vd_has_lids(ctx)) {
		vd_own_address(ctx, &a4);
		a.lid = vd_lid_of_port(&a4);
	}
	memcpy(attr, &a, len < sizeof a ? len : sizeof a);
	return 0;
}

int vdi_ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	/* The old form ends before the members that were added later. */
	return query_vd_port(ctx, port, (struct ibv_port_attr *)attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

int vdi_ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof *a);
	snprintf(a->fw_ver, sizeof a->fw_ver, "%s", ddps_version());
	a->node_guid = vdi_ibv_get_device_guid(vd_device());
	a->sys_image_guid = a->node_guid;
	a->vendor_id = VENDOR;
	a->vendor_part_id = VENDOR_PART;
	a->hw_ver = 1;
	a->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	a->max_mw = 65536;
	a->max_mr_size = UINT64_C(1) << 48;
	a->page_size_cap = 0xfffff000;
	a->max_qp = 65536;
	a->max_qp_wr = VD_MAX_WR;
	a->max_sge = VD_MAX_SGE;
	a->max_sge_rd = 1;
	a->max_cq = 65536;
	a->max_cqe = VD_MAX_CQE;
	a->max_mr = 65536;
	a->max_pd = 65536;
	a->max_srq = 65536;
	a->max_srq_wr = VD_MAX_WR;
	a->max_srq_sge = VD_MAX_SGE;
	a->max_qp_rd_atom = a->max_qp_init_rd_atom = VD_MAX_RD;
	a->max_res_rd_atom = VD_MAX_RD * 65536;
	/* Among all sessions of a process, as an adapter does it among its own. */
	a->atomic_cap = vd_has_rfc7306(ctx) ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
	a->max_pkeys = 1;
	a->max_ah = 65536;
	a->max_mcast_grp = 65536;
	a->max_mcast_qp_attach = VD_UD_GROUPS;
	a->max_total_mcast_qp_attach = 65536 * VD_UD_GROUPS;
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = 1;
	return 0;
}

static int query_vd_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
			   struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex a = { 0 };

	if (in && in->comp_mask)
		return EINVAL;
	vdi_ibv_query_device(ctx, &a.orig_attr);
	a.device_cap_flags_ex =
		a.orig_attr.device_cap_flags |
		(vd_has_rfc7306(ctx) ? VD_DEVICE_FLUSH | VD_DEVICE_ATOMIC_WRITE : 0);
	a.phys_port_cnt_ex = a.orig_attr.phys_port_cnt;
	a.max_dm_size = VD_MAX_DM;
	a.completion_timestamp_mask = UINT64_MAX; /* see vd_cq_ex.c */
	a.hca_core_clock = CLOCK_KHZ;
	a.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	a.odp_caps.per_transport_caps.uc_odp_caps = ODP_RC & ~(unsigned)IBV_ODP_SUPPORT_READ;
	a.odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	a.odp_caps.per_transport_caps.rc_odp_caps =
		ODP_RC | (vd_has_rfc7306(ctx) ? ODP_RC_7306 : 0);
	memset(attr, 0, len); /* a newer program's, or an older one's */
	memcpy(attr, &a, len < sizeof a ? len : sizeof a);
	return 0;
}

/* Its clock now, as the time stamps of completions have it. */
static int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK; /* what there is */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)vd_clock_ns(CLOCK_MONOTONIC);
	return 0;
}

static void enlist_context(struct vd_process *p, struct vd_context *c)
{
	ddps_lock(&p->named_lock);
	LIST_INSERT_HEAD(&p->contexts, c, link);
	ddps_unlock(&p->named_lock);
}

struct ibv_context *vdi_ibv_open_device(struct ibv_device *device)
{
	struct vd_process *p = vd_process();
	struct vd_context *c = p ? calloc(1, sizeof *c) : NULL;
	struct ibv_context *ctx;

	if (!c)
		return NULL;
	c->p = p;
	c->users = 1;
	STAILQ_INIT(&c->async);
	c->device = device;
	c->v.sz = sizeof c->v;
	c->v.query_port = query_vd_port;
	c->v.query_device_ex = query_vd_device;
	c->v.query_rt_values = query_rt_values;
	c->v.create_cq_ex = vd_create_cq_ex;
	c->v.create_qp_ex = vd_create_qp_ex;
	c->v.create_srq_ex = vd_create_srq_ex;
	c->v.get_srq_num = vd_get_srq_num;
	c->v.alloc_td = vd_alloc_td;
	c->v.dealloc_td = vd_dealloc_td;
	c->v.alloc_parent_domain = vd_alloc_parent_domain;
	c->v.alloc_dm = vd_alloc_dm;
	c->v.free_dm = vd_free_dm;
	c->v.reg_dm_mr = vd_reg_dm_mr;
	c->v.advise_mr = vd_advise_mr;
	ctx = &c->v.context;
	ctx->device = device;
	c->roce = vd_config()->roce;
	c->lids = vd_config()->lids;
	c->ports = 1;
	ctx->ops.alloc_mw = vd_alloc_mw;
	ctx->ops.dealloc_mw = vd_dealloc_mw;
	ctx->ops.bind_mw = vd_bind_mw;
	ctx->ops.poll_cq = vd_poll_cq;
	ctx->ops.req_notify_cq = vd_req_notify_cq;
	ctx->ops.post_send = vd_post_send;
	ctx->ops.post_recv = vd_post_recv;
	ctx->ops.post_srq_recv = vd_post_srq_recv;
	ctx->cmd_fd = vd_cmd_fd();
	ctx->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	ctx->num_comp_vectors = 1;
	ctx->abi_compat = (void *)UINTPTR_MAX;
	pthread_mutex_init(&ctx->mutex, NULL);
	if (ctx->async_fd < 0 || ctx->cmd_fd < 0) {
		const int keep = errno;

		vd_close(p, ctx->cmd_fd);
		vd_close(p, ctx->async_fd);
		errno = keep;
		free(c);
		return NULL;
	}
	vd_front.dress(ctx);
	vd_ports_note(c);
	enlist_context(p, c);
	return ctx;
}

void vd_context_hold(struct ibv_context *ctx)
{
	__atomic_add_fetch(&vd_of(ctx, struct vd_context, v.context)->users, 1, __ATOMIC_RELAXED);
}

void vd_context_release(struct ibv_context *ctx)
{
	struct vd_context *c = vd_of(ctx, struct vd_context, v.context);

	if (__atomic_sub_fetch(&c->users, 1, __ATOMIC_ACQ_REL))
		return;
	vd_async_drop(ctx);
	ddps_lock(&c->p->named_lock);
	LIST_REMOVE(c, link);
	ddps_unlock(&c->p->named_lock);
	vd_close(c->p, ctx->async_fd);
	vd_close(c->p, ctx->cmd_fd);
	free(c);
}

VD_API int ibv_close_device(struct ibv_context *ctx)
{
	vd_context_release(ctx);
	return 0;
}

/* ---- GIDs and keys ---- */

int vdi_ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	if (port != 1 || index)
		return vd_fail(EINVAL);
	fill_gid(gid);
	return 0;
}

int vdi__ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry, uint32_t flags, size_t len)
{
	/* Kernels say of an RNIC's GIDs neither RoCE v1 nor v2. */
	struct ibv_gid_entry e = { .port_num = 1,
				   .gid_type = vd_is_roce(ctx) && !vd_has_lids(ctx)
						       ? IBV_GID_TYPE_ROCE_V2
						       : IBV_GID_TYPE_IB };
	struct sockaddr_in a4;

	if (port != 1 || index >= VD_GIDS)
		return EINVAL;
	if (flags)
		return EOPNOTSUPP;
	e.ndev_ifindex = vd_host_address(&a4);
	vd_gid_of(&a4, &e.gid);
	memcpy(entry, &e, len < sizeof e ? len : sizeof e);
	return 0;
}

ssize_t vdi__ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max,
				 uint32_t flags, size_t len)
{
	int err = max < VD_GIDS ? EINVAL : vdi__ibv_query_gid_ex(ctx, 1, 0, entries, flags, len);

	return err ? -err : VD_GIDS;
}

/* A private symbol of rdma-core that ibv_devinfo imports. */
enum gid_type { GID_TYPE_IB_ROCE1, GID_TYPE_ROCE2 };
VD_API int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index,
			      enum gid_type *type);

VD_API int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index,
			      enum gid_type *type)
{
	if (!port || port > vd_port_count(ctx) || index)
		return vd_fail(EINVAL);
	*type = vd_is_roce(ctx) && !vd_has_lids(ctx) ? GID_TYPE_ROCE2 : GID_TYPE_IB_ROCE1;
	return 0;
}

int vdi_ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	if (port != 1 || index)
		return vd_fail(EINVAL);
	*pkey = htons(0xffff);
	return 0;
}

int vdi_ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	(void)ctx;
	return port == 1 && ntohs(pkey) == 0xffff ? 0 : -1;
}

const char *ibv_get_sysfs_path(void); /* in no installed header */
VD_API const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/* There is no such file: the device is not the kernel's. */
VD_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
VD_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	(void)dir;
	(void)file;
	if (size)
		*buf = 0;
	return -1;
}

/* ---- what identifiers of rdma_cm share ---- */

struct ibv_context *vd_shared_context(unsigned i)
{
	struct vd_process *p = vd_process();
	struct ibv_context *now;
	unsigned n;

	if (!p)
		return NULL;
	ddps_lock(&p->shared_lock);
	if (!p->shared[i])
		p->shared[i] = vdi_ibv_open_device(vd_front.devices(&n) + i);
	now = p->shared[i];
	ddps_unlock(&p->shared_lock);
	return now;
}

struct ibv_pd *vd_shared_pd(unsigned i)
{
	struct ibv_context *ctx = vd_shared_context(i);
	struct vd_process *p = vd_process();
	struct ibv_pd *now;

	if (!ctx)
		return NULL;
	ddps_lock(&p->shared_lock);
	if (!p->shared_pd[i])
		p->shared_pd[i] = vdi_ibv_alloc_pd(ctx);
	now = p->shared_pd[i];
	ddps_unlock(&p->shared_lock);
	return now;
}
