/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles.  A GID is an IP address; IPv4 is mapped.  A link-local address or a group means
 * something on one interface only: that of the GID table, unless the LID, which Ethernet has no use
 * for, is the index of another.  Events and completions of the drop-in have it there.
 */
#include "verbs/ud/vd_ud_in.h"
#include "verbs/vd_lid.h"
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

static unsigned find_ah_interface(const struct ibv_context *ctx, uint16_t lid)
{
	struct sockaddr_in a4;
	char name[IF_NAMESIZE];

	return lid && if_indextoname(lid, name) ? lid : vd_own_address(ctx, &a4);
}

void ud_addr_of_gid(const struct ibv_context *ctx, const union ibv_gid *gid, uint16_t lid,
		    struct ud_addr *a)
{
	*a = (struct ud_addr){ 0 };
	memcpy(&a->ip, gid->raw, sizeof a->ip);
	if (ud_is_group(&a->ip) || ud_is_link_local(&a->ip))
		a->ifindex = find_ah_interface(ctx, lid);
}

void ud_ah_attr_of(const struct ud_addr *a, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	memcpy(attr->grh.dgid.raw, &a->ip, sizeof a->ip);
	if (ud_is_group(&a->ip))
		attr->grh.hop_limit = 1;
	if (a->ifindex <= UINT16_MAX)
		attr->dlid = (uint16_t)a->ifindex;
}

static bool is_shared(const struct vd_process *p, const struct ibv_pd *pd)
{
	for (unsigned i = 0; i < VD_DEVICES; i++)
		if (p->shared_pd[i] == pd)
			return true;
	return false;
}

/*
 * Without a GID there is no address on Ethernet; on InfiniBand the LID is one.  rsockets make such a handle anyway, of the
 * port's own LID, to send to themselves; it is of the domain that identifiers share, and 0 where the port has none.
 */
static bool find_address(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ud_addr *to)
{
	const struct vd_process *p = vd_of(pd->context, struct vd_context, v.context)->p;
	union ibv_gid self = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	struct sockaddr_in a4;

	if (!attr->port_num || attr->port_num > vd_port_count(pd->context))
		return false;
	if (!attr->is_global && attr->dlid && vd_has_lids(pd->context)) {
		vd_own_address(pd->context, &a4);
		if (!vd_lid_address(&a4, attr->dlid, &a4.sin_addr))
			return false;
		vd_gid_of(&a4, &self);
		ud_addr_of_gid(pd->context, &self, 0, to);
		return true;
	}
	if (!attr->is_global) {
		ud_addr_of_gid(pd->context, &self, 0, to);
		return is_shared(p, pd) && !attr->dlid;
	}
	ud_addr_of_gid(pd->context, &attr->grh.dgid, attr->dlid, to);
	return attr->grh.sgid_index < VD_GIDS && !IN6_IS_ADDR_UNSPECIFIED(&to->ip);
}

VD_API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ud_addr to;
	struct vd_ah *ah;

	if (!find_address(pd, attr, &to)) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof *ah);
	if (!ah)
		return NULL;
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->to = to;
	ah->group = ud_is_group(&to.ip);
	ah->hops = ah->group ? attr->grh.hop_limit : 0;
	__atomic_add_fetch(&vd_of(pd, struct vd_pd, pd)->users, 1, __ATOMIC_RELAXED);
	return &ah->ah;
}

VD_API int ibv_destroy_ah(struct ibv_ah *ibah)
{
	struct vd_ah *ah = vd_of(ibah, struct vd_ah, ah);

	__atomic_sub_fetch(&vd_of(ibah->pd, struct vd_pd, pd)->users, 1, __ATOMIC_RELAXED);
	free(ah);
	return 0;
}

/* To whom an answer goes. */
VD_API int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	if (!port || port > vd_port_count(ctx) || !(wc->wc_flags & IBV_WC_GRH) || !grh)
		return vd_fail(EINVAL);
	*attr = (struct ibv_ah_attr){ .is_global = 1,
				      .port_num = port,
				      .dlid = wc->slid,
				      .sl = wc->sl,
				      .src_path_bits = wc->dlid_path_bits,
				      .grh.hop_limit = 255 };
	/* It lies where the program had it received, which may be anywhere. */
	memcpy(&attr->grh.dgid, (const uint8_t *)grh + offsetof(struct ibv_grh, sgid),
	       sizeof attr->grh.dgid);
	return 0;
}

VD_API struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr = { 0 };

	return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL
								      : ibv_create_ah(pd, &attr);
}
