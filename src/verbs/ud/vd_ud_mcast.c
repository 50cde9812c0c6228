/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups.  A group's GID is the address of an IP multicast group, and its datagrams go to one port,
 * which every member's socket shares; each is bound to its group, so that it hears no other.
 */
#include "common/system/thread.h"
#include "verbs/cm/vd_event.h"
#include "verbs/ud/vd_ud_in.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

/* ---- queue pairs ---- */

static struct ud_group *find_ud_group(struct vd_ud_qp *u, const struct ud_addr *a)
{
	struct ud_group *g;

	LIST_FOREACH(g, &u->groups, link)
		if (!memcmp(&g->addr.ip, &a->ip, sizeof a->ip) && g->addr.ifindex == a->ifindex)
			break;
	return g;
}

void ud_group_free(struct vd_ud_qp *u, struct ud_group *g)
{
	ddps_assert_held(&u->ud->lock);
	LIST_REMOVE(g, link);
	u->ngroups--;
	ud_sock_close(u->ud, &g->source.sock);
	free(g);
}

static int add_group(struct vd_ud_qp *u, const struct ud_addr *a)
{
	struct ud_group *g;
	int err;

	if (find_ud_group(u, a))
		return 0;
	if (u->ngroups == VD_UD_GROUPS)
		return ENOMEM;
	g = calloc(1, sizeof *g);
	if (!g)
		return ENOMEM;
	g->addr = *a;
	g->source.qp = u;
	g->source.group = true;
	err = ud_sock_join(u->ud, &g->source.sock, a);
	if (!err)
		err = ud_watch_new(u->ud, &g->source);
	if (err) {
		ud_sock_close(u->ud, &g->source.sock);
		free(g);
		return err;
	}
	ud_watch(u, true); /* all of its sockets alike */
	LIST_INSERT_HEAD(&u->groups, g, link);
	u->ngroups++;
	return 0;
}

static int group_join(struct vd_ud_qp *u, const union ibv_gid *gid, uint16_t lid)
{
	struct ud_addr a;
	int err = EINVAL;

	ud_addr_of_gid(u->qp->qp.qp_base.context, gid, lid, &a);
	ddps_lock(&u->ud->lock);
	if (ud_is_group(&a.ip))
		err = add_group(u, &a);
	ddps_unlock(&u->ud->lock);
	return err;
}

static int group_leave(struct vd_ud_qp *u, const union ibv_gid *gid, uint16_t lid)
{
	struct ud_group *g;
	struct ud_addr a;
	int err = EINVAL;

	ud_addr_of_gid(u->qp->qp.qp_base.context, gid, lid, &a);
	ddps_lock(&u->ud->lock);
	g = find_ud_group(u, &a);
	if (g) {
		ud_group_free(u, g);
		err = 0;
	}
	ddps_unlock(&u->ud->lock);
	return err;
}

static struct vd_ud_qp *get_group_qp(struct ibv_qp *qp)
{
	struct vd_ud_qp *u =
		qp->qp_type == IBV_QPT_UD ? vd_of(qp, struct vd_qp, qp.qp_base)->ud : NULL;

	return u && vd_mine(u->ud->p) ? u : NULL;
}

VD_API int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vd_ud_qp *u = get_group_qp(qp);
	int err = u ? group_join(u, gid, lid) : EINVAL;

	return err ? vd_refuse(err) : 0;
}

VD_API int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vd_ud_qp *u = get_group_qp(qp);
	int err = u ? group_leave(u, gid, lid) : EINVAL;

	return err ? vd_refuse(err) : 0;
}

/* ---- identifiers ---- */

/* The interface that has the address; 0: none. */
static unsigned interface_of(const struct sockaddr *sa)
{
	struct ifaddrs *all = NULL;
	struct ud_addr own, a;
	unsigned index = 0;

	ud_from_sockaddr(sa, &own);
	if (ddps_interfaces(&all))
		return 0;
	for (struct ifaddrs *i = all; i && !index; i = i->ifa_next) {
		if (!i->ifa_addr ||
		    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		ud_from_sockaddr(i->ifa_addr, &a);
		if (!memcmp(&a.ip, &own.ip, sizeof a.ip))
			index = if_nametoindex(i->ifa_name);
	}
	freeifaddrs(all);
	return index;
}

/* Of the group: an address that says so, else that of the identifier. */
static uint16_t choose_interface(const struct vd_id *id, const struct ud_addr *group)
{
	unsigned index =
		group->ifindex ? group->ifindex : interface_of(&id->id.route.addr.src_addr);

	return index <= UINT16_MAX ? (uint16_t)index : 0;
}

static struct ud_join *join_new(struct vd_id *id, const struct sockaddr *sa)
{
	struct vd_ud_id *u = ud_id_of(id);
	struct ud_join *j = u ? calloc(1, sizeof *j) : NULL;
	struct ud_addr a;

	if (!j)
		return NULL;
	memcpy(&j->addr, sa, vd_sa_len(sa));
	ud_from_sockaddr(sa, &a);
	memcpy(j->gid.raw, &a.ip, sizeof j->gid.raw);
	j->lid = choose_interface(id, &a);
	LIST_INSERT_HEAD(&u->joins, j, link);
	return j;
}

/* Both forms of it: the event is there when this returns. */
static int join_ud_group(struct vd_id *id, const struct sockaddr *sa, bool receive, void *context)
{
	struct rdma_ud_param param = { .private_data = context,
				       .qp_num = UD_QPN_MCAST,
				       .qkey = UD_QKEY_CM };
	struct ud_join *j = join_new(id, sa);
	struct ud_addr a;
	int err = 0;

	if (!j)
		return ENOMEM;
	if (id->id.qp && receive) {
		err = ibv_attach_mcast(id->id.qp, &j->gid, j->lid);
		j->attached = !err;
	}
	ud_addr_of_gid(id->id.verbs, &j->gid, j->lid, &a);
	ud_ah_attr_of(&a, &param.ah_attr);
	return ud_event(vd_event_new(id, NULL,
				     err ? RDMA_CM_EVENT_MULTICAST_ERROR
					 : RDMA_CM_EVENT_MULTICAST_JOIN,
				     -err),
			&param);
}

static void leave_ud_group(struct vd_id *id, struct ud_join *j)
{
	LIST_REMOVE(j, link);
	if (j->attached && id->id.qp)
		ibv_detach_mcast(id->id.qp, &j->gid, j->lid);
	free(j);
}

void ud_leave_all(struct vd_id *id)
{
	ddps_assert_held(&id->p->lock);
	while (!LIST_EMPTY(&id->ud->joins))
		leave_ud_group(id, LIST_FIRST(&id->ud->joins));
}

static bool is_group_address(const struct sockaddr *sa)
{
	struct ud_addr a;

	if (!sa || (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
		return false;
	ud_from_sockaddr(sa, &a);
	return ud_is_group(&a.ip);
}

static int join_call(struct rdma_cm_id *ibid, const struct sockaddr *sa, bool receive,
		     void *context)
{
	struct vd_id *id = vd_of(ibid, struct vd_id, id);
	struct vd_process *p = vd_id_process(id);
	int err;

	if (!p || !vd_ud_id(id) || !ibid->verbs || !is_group_address(sa))
		return vd_fail(EINVAL);
	ddps_lock(&p->lock);
	err = join_ud_group(id, sa, receive, context);
	ddps_unlock(&p->lock);
	return err ? vd_fail(err) : vd_sync(id, 0);
}

VD_API int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return join_call(id, addr, true, context);
}

VD_API int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				  void *context)
{
	const uint32_t all = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	if (attr->comp_mask != all || (attr->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
				       attr->join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER))
		return vd_fail(EINVAL);
	return join_call(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
}

VD_API int rdma_leave_multicast(struct rdma_cm_id *ibid, struct sockaddr *addr)
{
	struct vd_id *id = vd_of(ibid, struct vd_id, id);
	struct vd_process *p = vd_id_process(id);
	struct ud_join *j;

	if (!p || !id->ud || !addr || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return vd_fail(EINVAL);
	ddps_lock(&p->lock);
	LIST_FOREACH(j, &id->ud->joins, link)
		if (!memcmp(&j->addr, addr, vd_sa_len(addr)))
			break;
	if (j)
		leave_ud_group(id, j);
	ddps_unlock(&p->lock);
	return j ? 0 : vd_fail(EADDRNOTAVAIL);
}
