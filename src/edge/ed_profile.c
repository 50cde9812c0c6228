/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices by a profile: what they are called, what they say of themselves, where their ports are. */
#include "edge/ed.h"
#include "common/system/thread.h"
#include "verbs/vd_lid.h"
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint64_t ed_most[VP_LIMITS] = {
	[VP_MAX_QP_WR] = VD_MAX_WR,
	[VP_MAX_SGE] = VD_MAX_SGE,
	[VP_MAX_SGE_RD] = 1,
	[VP_MAX_INLINE] = VD_MAX_INLINE,
	[VP_MAX_CQE] = VD_MAX_CQE,
	[VP_MAX_SRQ_WR] = VD_MAX_WR,
	[VP_MAX_SRQ_SGE] = VD_MAX_SGE,
	[VP_MAX_QP_RD_ATOM] = VD_MAX_RD,
	[VP_MAX_QP_INIT_RD_ATOM] = VD_MAX_RD,
};

/* ---- devices ---- */

void ed_profile_start(void)
{
	for (unsigned i = 0; i < ed.profile.n; i++) {
		const struct vp_device d = ed.profile.device[i]; /* a copy, for snprintf */
		struct ibv_device *dev = &ed.device[i];

		dev->node_type = d.roce ? IBV_NODE_CA : IBV_NODE_RNIC;
		dev->transport_type = d.roce ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
		snprintf(dev->name, sizeof dev->name, "%s", d.name);
		snprintf(dev->dev_name, sizeof dev->dev_name, "uverbs%u", i);
		snprintf(dev->dev_path, sizeof dev->dev_path,
			 "/sys/class/infiniband_verbs/uverbs%u", i);
		snprintf(dev->ibdev_path, sizeof dev->ibdev_path, "/sys/class/infiniband/%s",
			 d.name);
	}
}

const struct vp_device *ed_device_of(const struct ibv_device *device)
{
	if (!ed.profile.n || device < ed.device || device >= ed.device + ed.profile.n)
		return NULL;
	return &ed.profile.device[device - ed.device];
}

static struct ibv_device *list_profile_devices(unsigned *n)
{
	*n = ed.profile.n;
	return ed.device;
}

struct ibv_device **ed_device_list(int *num)
{
	struct ibv_device **list = calloc(ed.profile.n + 1, sizeof *list);

	for (unsigned i = 0; list && i < ed.profile.n; i++)
		list[i] = &ed.device[i];
	if (num)
		*num = list ? (int)ed.profile.n : 0;
	return list;
}

/* ---- addresses ---- */

/* The first IPv4 address of an interface.  Return: its index, or 0. */
static unsigned address_of(const char *interface, struct sockaddr_in *a4)
{
	struct ifaddrs *all = NULL;
	unsigned index = 0;

	if (ddps_interfaces(&all))
		return 0;
	for (struct ifaddrs *i = all; i && !index; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP &&
		    i->ifa_flags & IFF_RUNNING && !strcmp(i->ifa_name, interface)) {
			memcpy(a4, i->ifa_addr, sizeof *a4);
			index = if_nametoindex(interface);
		}
	freeifaddrs(all);
	return index;
}

/* Return: the interface's index, or 0: the port has no address. */
static unsigned port_address(const struct vp_port *p, struct sockaddr_in *a4)
{
	return *p->interface ? address_of(p->interface, a4) : vd_host_address(a4);
}

static unsigned find_profile_address(const struct ibv_context *ctx, unsigned port,
				     struct sockaddr_in *a4)
{
	const struct vp_device *d = ed_device_of(ctx->device);

	return d ? port_address(&d->port[port - 1], a4) : vd_host_address(a4);
}

/* Several links may have the same link-local address: then the one that @asked names. */
static bool is_same6(const struct sockaddr_in6 *own, const struct sockaddr_in6 *asked)
{
	return !memcmp(&own->sin6_addr, &asked->sin6_addr, 16) &&
	       (!asked->sin6_scope_id || !own->sin6_scope_id ||
		asked->sin6_scope_id == own->sin6_scope_id);
}

/* Whether the address is one of the interface's. */
static bool is_on(const char *interface, const struct sockaddr *sa)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (ddps_interfaces(&all))
		return false;
	for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != sa->sa_family ||
		    strcmp(i->ifa_name, interface))
			continue;
		if (sa->sa_family == AF_INET)
			found = !memcmp(&((struct sockaddr_in *)i->ifa_addr)->sin_addr,
					&((const struct sockaddr_in *)sa)->sin_addr, 4);
		else if (sa->sa_family == AF_INET6)
			found = is_same6((struct sockaddr_in6 *)i->ifa_addr,
					 (const struct sockaddr_in6 *)sa);
	}
	freeifaddrs(all);
	return found;
}

static struct ibv_device *find_profile_device(const struct sockaddr *sa, uint8_t *port)
{
	*port = 1;
	for (unsigned i = 0; i < ed.profile.n; i++)
		for (unsigned k = 0; k < ed.profile.device[i].ports; k++)
			if (*ed.profile.device[i].port[k].interface &&
			    is_on(ed.profile.device[i].port[k].interface, sa)) {
				*port = (uint8_t)(k + 1);
				return &ed.device[i];
			}
	return &ed.device[0];
}

void ed_profile_fill(struct vd_front *front)
{
	front->devices = list_profile_devices;
	front->device_at = find_profile_device;
	front->port_address = find_profile_address;
}

/* ---- what they say of themselves ---- */

static __be64 make_profile_guid(const struct vp_device *d, unsigned index)
{
	struct sockaddr_in a4 = { 0 };
	union ibv_gid gid;
	uint64_t guid;

	if (d->guid)
		return htobe64(d->guid);
	port_address(&d->port[0], &a4);
	vd_gid_of(&a4, &gid);
	memcpy(&guid, gid.raw + 8, sizeof guid);
	return guid ^ htobe64((uint64_t)index << 48); /* two at one address differ */
}

/* By its own name: another library's may stand before the one that programs call. */
static __be64 show_device_guid(struct ibv_device *device)
{
	const struct vp_device *d = ed_profiled() ? ed_device_of(device) : NULL;

	return d ? make_profile_guid(d, (unsigned)(device - ed.device))
		 : vdi_ibv_get_device_guid(device);
}

VD_API __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return show_device_guid(device);
}

static void show_limit(int *to, const struct vp_device *d, enum vp_limit what)
{
	*to = (int)vp_limit(d, what, (uint64_t)*to);
}

void ed_show_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	const struct vp_device *d = ed_device_of(ctx->device);

	if (!d)
		return;
	if (*d->firmware)
		snprintf(a->fw_ver, sizeof a->fw_ver, "%.63s", d->firmware);
	a->node_guid = a->sys_image_guid = show_device_guid(ctx->device);
	a->vendor_id = d->vendor ? d->vendor : a->vendor_id;
	a->vendor_part_id = d->part ? d->part : a->vendor_part_id;
	a->phys_port_cnt = (uint8_t)d->ports;
	a->atomic_cap = d->atomics ? a->atomic_cap : IBV_ATOMIC_NONE;
	show_limit(&a->max_qp, d, VP_MAX_QP);
	show_limit(&a->max_qp_wr, d, VP_MAX_QP_WR);
	show_limit(&a->max_sge, d, VP_MAX_SGE);
	show_limit(&a->max_sge_rd, d, VP_MAX_SGE_RD);
	show_limit(&a->max_cq, d, VP_MAX_CQ);
	show_limit(&a->max_cqe, d, VP_MAX_CQE);
	show_limit(&a->max_mr, d, VP_MAX_MR);
	show_limit(&a->max_pd, d, VP_MAX_PD);
	show_limit(&a->max_srq, d, VP_MAX_SRQ);
	show_limit(&a->max_srq_wr, d, VP_MAX_SRQ_WR);
	show_limit(&a->max_srq_sge, d, VP_MAX_SRQ_SGE);
	show_limit(&a->max_qp_rd_atom, d, VP_MAX_QP_RD_ATOM);
	show_limit(&a->max_qp_init_rd_atom, d, VP_MAX_QP_INIT_RD_ATOM);
	a->max_mr_size = vp_limit(d, VP_MAX_MR_SIZE, a->max_mr_size);
	a->max_res_rd_atom = a->max_qp_rd_atom * a->max_qp;
}

static int query_profiled_device(struct ibv_context *ctx,
				 const struct ibv_query_device_ex_input *in,
				 struct ibv_device_attr_ex *attr, size_t len)
{
	int err = ed.query_device_ex(ctx, in, attr, len);

	if (!err && len >= sizeof attr->orig_attr)
		ed_show_device(ctx, &attr->orig_attr);
	if (!err && len >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) + 4)
		attr->phys_port_cnt_ex = attr->orig_attr.phys_port_cnt;
	return err;
}

_Static_assert(VP_PORTS <= VD_PORTS, "vd_context.port has a place for each");

void ed_profile_dress(struct vd_context *c)
{
	const struct vp_device *d = ed_device_of(c->v.context.device);

	for (unsigned i = 0; d && i < d->ports; i++)
		c->down |= (unsigned)d->port[i].down << i;
	if (d) {
		c->roce = d->roce;
		c->lids = d->lids;
		c->ports = d->ports;
	}
	ed.query_device_ex = c->v.query_device_ex;
	c->v.query_device_ex = query_profiled_device;
}

/* ---- ports ---- */

static enum ibv_mtu get_profile_mtu(unsigned octets)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	for (; octets > 256; octets /= 2)
		mtu++;
	return mtu;
}

int ed_show_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	const struct vp_device *d = ed_device_of(ctx->device);
	const struct vp_port *p;
	struct sockaddr_in a4;
	int err;

	if (!d)
		return ed.query_port(ctx, port, attr, len);
	if (!port || port > d->ports)
		return EINVAL;
	err = ed.query_port(ctx, 1, attr, len);
	if (err)
		return err;
	p = &d->port[port - 1];
	attr->active_mtu = get_profile_mtu(p->mtu);
	attr->active_width = (uint8_t)p->width;
	attr->active_speed = (uint8_t)p->speed;
	if (p->down || !port_address(p, &a4)) {
		attr->state = IBV_PORT_DOWN;
		attr->phys_state = 3; /* Disabled */
		attr->lid = 0;
	} else if (d->lids) {
		attr->lid = vd_lid_of_port(&a4);
	}
	return 0;
}

int ed_show_gid(struct ibv_context *ctx, unsigned port, unsigned index, struct ibv_gid_entry *e)
{
	const struct vp_device *d = ed_device_of(ctx->device);
	struct sockaddr_in a4;

	if (!d || !port || port > d->ports || index >= VD_GIDS)
		return EINVAL;
	*e = (struct ibv_gid_entry){ .port_num = port,
				     .gid_type = d->roce && !d->lids ? IBV_GID_TYPE_ROCE_V2
								     : IBV_GID_TYPE_IB };
	e->ndev_ifindex = port_address(&d->port[port - 1], &a4);
	if (!e->ndev_ifindex)
		return ENODATA; /* the interface is not there, or has no address */
	vd_gid_of(&a4, &e->gid);
	return 0;
}

VD_API int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t len)
{
	struct ibv_gid_entry e;
	int err;

	if (!ed_profiled())
		return vdi__ibv_query_gid_ex(ctx, port, index, entry, flags, len);
	err = flags ? EOPNOTSUPP : ed_show_gid(ctx, port, index, &e);
	if (!err)
		memcpy(entry, &e, len < sizeof e ? len : sizeof e);
	return err;
}

VD_API ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
				    size_t max, uint32_t flags, size_t len)
{
	uint8_t *at = (uint8_t *)entries;
	size_t n = 0;

	if (!ed_profiled())
		return vdi__ibv_query_gid_table(ctx, entries, max, flags, len);
	if (flags)
		return -EOPNOTSUPP;
	for (unsigned port = 1; port <= vd_port_count(ctx); port++) {
		struct ibv_gid_entry e;

		if (ed_show_gid(ctx, port, 0, &e))
			continue;
		if (n == max)
			return -EINVAL;
		memcpy(at + n++ * len, &e, len < sizeof e ? len : sizeof e);
	}
	return (ssize_t)n;
}

VD_API int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	return vdi_ibv_query_pkey(ctx, port && port <= vd_port_count(ctx) ? 1 : 0, index, pkey);
}

VD_API int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	return vdi_ibv_get_pkey_index(ctx, port && port <= vd_port_count(ctx) ? 1 : 0, pkey);
}
