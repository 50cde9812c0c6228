/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers of rdma_cm: life, addresses, queue pairs. */
#include "verbs/cm/vd_event.h"
#include "verbs/ud/vd_ud.h"
#include "verbs/vd.h"
#include "verbs/vd_secure.h"
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- life ---- */

struct vd_id *vd_id_new(struct rdma_event_channel *ch, void *context, enum rdma_port_space ps)
{
	struct vd_id *id = calloc(1, sizeof *id);

	if (!id)
		return NULL;
	id->sync = !ch;
	id->id.channel = ch ? ch : vdi_rdma_create_event_channel();
	if (!id->id.channel) {
		free(id);
		return NULL;
	}
	id->p = vd_process();
	id->reserved = -1;
	memset(id->behind.sync, 1, sizeof id->behind.sync);
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	pthread_cond_init(&id->acked, NULL);
	return id;
}

void vd_id_free(struct vd_id *id)
{
	if (id->sync)
		rdma_destroy_event_channel(id->id.channel);
	vd_ud_id_free(id);
	vd_unreserve(id);
	free(id->answer);
	free(id->end);
	pthread_cond_destroy(&id->acked);
	free(id);
}

int vdi_rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **out, void *context,
		       enum rdma_port_space ps)
{
	struct vd_id *id;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP)
		return vd_fail(EOPNOTSUPP); /* IPoIB's and InfiniBand's own */
	if (ps == RDMA_PS_UDP && vd_secure_refuse(VD_UNSECURED_UD))
		return vd_fail(EOPNOTSUPP);
	if (!vd_process())
		return -1;
	id = vd_id_new(ch, context, ps);
	if (!id)
		return -1;
	*out = &id->id;
	return 0;
}

void vd_request_note(struct vd_process *p, struct vd_id *id)
{
	ddps_assert_held(&p->lock);
	LIST_INSERT_HEAD(&p->requests, id, request_link);
	id->requested = true;
}

void vd_request_forget(struct vd_process *p, struct vd_id *id)
{
	ddps_assert_held(&p->lock);
	if (id->requested)
		LIST_REMOVE(id, request_link);
	id->requested = false;
}

/* Requests that were not answered are refused with their listener. */
static void forget_requests_of(struct vd_process *p, const struct vd_id *listen)
{
	struct vd_id *next;

	for (struct vd_id *id = LIST_FIRST(&p->requests); id; id = next) {
		next = LIST_NEXT(id, request_link);
		if (id->listen_id != listen)
			continue;
		vd_request_forget(p, id);
		if (id->request)
			ddps_reject(id->request, NULL, 0);
		vd_ud_refuse(id);
		id->request = NULL;
		id->listen_id = NULL;
		id->state = VD_ID_DOWN;
	}
}

/* None is informed of it any more.  The lock is held. */
static void forget_events(struct vd_process *p, struct vd_id *id)
{
	ddps_assert_held(&p->lock);
	vd_held_forget(p, id);
	vd_event_drop(id);
}

int vdi_rdma_destroy_id(struct rdma_cm_id *ibid)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);

	if (!p)
		return -1;
	if (ibid->event) {
		rdma_ack_cm_event(ibid->event);
		ibid->event = NULL;
	}
	vd_control_free(id);
	ddps_lock(&p->lock);
	ddps_listener_free(id->listener);
	forget_requests_of(p, id);
	vd_ud_id_free(id);
	vd_request_forget(p, id);
	if (id->request)
		ddps_reject(id->request, NULL, 0);
	forget_events(p, id);
	while (id->unacked)
		pthread_cond_wait(&id->acked, &p->lock.m);
	forget_events(p, id); /* what has come meanwhile */
	if (id->qp)
		id->qp->id = NULL;
	ddps_unlock(&p->lock);
	vd_id_free(id);
	return 0;
}

int vd_id_bind_device(struct vd_id *id)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	unsigned i;

	if (id->id.verbs)
		return 0;
	i = vd_device_index(vd_front.device_at(&id->id.route.addr.src_addr, &id->id.port_num));
	ctx = vd_shared_context(i);
	pd = ctx ? vd_shared_pd(i) : NULL;
	if (!pd)
		return -1; /* errno says why */
	id->id.verbs = ctx;
	id->id.pd = pd;
	return 0;
}

/* ---- addresses ---- */

socklen_t vd_sa_len(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

uint16_t *vd_port_of(struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)ss)->sin6_port
					 : &((struct sockaddr_in *)ss)->sin_port;
}

bool vd_is_any(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
	return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == htonl(INADDR_ANY);
}

void vd_addr_text(const struct sockaddr *sa, char *buf, size_t len)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)sa;
	char host[INET6_ADDRSTRLEN], ifname[IF_NAMESIZE], zone[IF_NAMESIZE + 1] = "";
	struct sockaddr_storage ss;

	memcpy(&ss, sa, vd_sa_len(sa));
	if (sa->sa_family != AF_INET6) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, host, sizeof host);
		snprintf(buf, len, "%s:%u", host, ntohs(*vd_port_of(&ss)));
		return;
	}
	inet_ntop(AF_INET6, &a6->sin6_addr, host, sizeof host);
	if (a6->sin6_scope_id && if_indextoname(a6->sin6_scope_id, ifname))
		snprintf(zone, sizeof zone, "%%%s", ifname);
	else if (a6->sin6_scope_id) /* an interface that has gone: not just any */
		snprintf(zone, sizeof zone, "%%%u", a6->sin6_scope_id);
	snprintf(buf, len, "[%s%s]:%u", host, zone, ntohs(*vd_port_of(&ss)));
}

void vd_uri(const struct vd_config *cfg, const struct sockaddr *sa, char *buf, size_t len)
{
	struct sockaddr_storage ss;
	char addr[80];

	memcpy(&ss, sa, vd_sa_len(sa));
	vd_addr_text(sa, addr, sizeof addr);
	/* Over SCTP the UDP port below has the number of the RDMA port, so that several
	 * listeners on one host do not compete for one. */
	if (vd_over_sctp(cfg))
		snprintf(buf, len, "%s://%s?encap=%u", cfg->transport, addr,
			 ntohs(*vd_port_of(&ss)));
	else
		snprintf(buf, len, "%s://%s", cfg->transport, addr);
}

void vd_add_tos(const struct vd_id *id, char *uri, size_t len)
{
	const size_t at = strlen(uri);

	if (id->tos)
		snprintf(uri + at, len - at, "%ctos=%u", strchr(uri, '?') ? '&' : '?', id->tos);
}

void vd_sockaddr(const struct ddps_addr *a, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof *ss);
	ss->ss_family = a->family == 6 ? AF_INET6 : AF_INET;
	*vd_port_of(ss) = htons(a->port);
	if (a->family == 6) {
		memcpy(&a6->sin6_addr, a->ip, sizeof a6->sin6_addr);
		a6->sin6_scope_id = a->scope;
	} else {
		memcpy(&((struct sockaddr_in *)ss)->sin_addr, a->ip, sizeof(struct in_addr));
	}
}

/* From which address this host would reach @dst. */
static int find_source_address(struct sockaddr_storage *src, const struct sockaddr *dst)
{
	const uint16_t port = *vd_port_of(src); /* of an address that is bound but for the host */
	socklen_t len = sizeof *src;
	int fd, err = 0;

	ddps_uncancellable();
	fd = socket(dst->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, dst, vd_sa_len(dst)) ||
	    getsockname(fd, (struct sockaddr *)src, &len))
		err = errno;
	if (fd >= 0)
		close(fd);
	ddps_uncancellable_end();
	*vd_port_of(src) = port;
	return err;
}

/* With it the identifier comes to @state; without it, it may be asked again. */
static int post_id_event(struct vd_id *id, enum vd_id_state state, enum rdma_cm_event_type type,
			 int status)
{
	struct vd_process *p = vd_id_process(id);
	int err;

	if (!p)
		return -1;
	ddps_lock(&p->lock);
	err = vd_event_post(id, NULL, type, status, NULL);
	if (!err)
		id->state = state;
	ddps_unlock(&p->lock);
	return err ? vd_fail(err) : 0;
}

int vdi_rdma_resolve_addr(struct rdma_cm_id *ibid, struct sockaddr *src, struct sockaddr *dst,
			  int timeout_ms)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	int err;

	(void)timeout_ms; /* nothing is asked of the network */
	if (!p)
		return -1;
	if (!dst)
		return vd_fail(EINVAL);
	if (dst->sa_family != AF_INET && dst->sa_family != AF_INET6)
		return vd_fail(EAFNOSUPPORT);
	if (id->state == VD_ID_IDLE && src && vdi_rdma_bind_addr(ibid, src))
		return -1;
	if (id->state != VD_ID_IDLE && id->state != VD_ID_BOUND)
		return vd_fail(EINVAL);
	memcpy(&ibid->route.addr.dst_storage, dst, vd_sa_len(dst));
	id->own_address = id->state == VD_ID_BOUND && !vd_is_any(&ibid->route.addr.src_addr);
	if (!id->own_address) {
		err = find_source_address(&ibid->route.addr.src_storage, dst);
		if (err)
			return vd_sync(id, post_id_event(id, id->state, RDMA_CM_EVENT_ADDR_ERROR,
							 -err));
	}
	if (vd_id_bind_device(id))
		return -1;
	vd_source_port(p, id);
	return vd_sync(id, post_id_event(id, VD_ID_ADDR, RDMA_CM_EVENT_ADDR_RESOLVED, 0));
}

int vdi_rdma_resolve_route(struct rdma_cm_id *ibid, int timeout_ms)
{
	struct vd_id *id = vd_id_of(ibid);

	(void)timeout_ms;
	if (id->state != VD_ID_ADDR)
		return vd_fail(EINVAL);
	if (vd_ud_id(id) && vd_ud_route(id))
		return vd_fail(ENOMEM);
	return vd_sync(id, post_id_event(id, VD_ID_ROUTE, RDMA_CM_EVENT_ROUTE_RESOLVED, 0));
}

VD_API __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return *vd_port_of(&id->route.addr.src_storage);
}

VD_API __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return *vd_port_of(&id->route.addr.dst_storage);
}

VD_API int rdma_migrate_id(struct rdma_cm_id *ibid, struct rdma_event_channel *ch)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	struct rdma_event_channel *old = ibid->channel, *now = ch;
	bool was_sync = id->sync;

	if (p && !now)
		now = vdi_rdma_create_event_channel();
	if (!p || !now)
		return -1;
	if (was_sync && ibid->event) { /* the library fetched it, the library lets it go */
		rdma_ack_cm_event(ibid->event);
		ibid->event = NULL;
	}
	ddps_lock(&p->lock);
	while (id->unacked)
		pthread_cond_wait(&id->acked, &p->lock.m);
	vd_event_move(id, now);
	ibid->channel = now;
	id->sync = !ch;
	ddps_unlock(&p->lock);
	if (was_sync)
		rdma_destroy_event_channel(old);
	return 0;
}

/* ---- queue pairs ---- */

/* A queue and a channel for one direction, as the program gave none. */
static int make_cq(struct vd_id *id, struct ibv_comp_channel **ch, struct ibv_cq **cq, uint32_t n)
{
	*ch = vdi_ibv_create_comp_channel(id->id.verbs);
	if (!*ch)
		return -1;
	*cq = vd_front.create_cq(id->id.verbs, (int)(n ? n : 1), &id->id, *ch, 0);
	if (*cq)
		return 0;
	ibv_destroy_comp_channel(*ch);
	*ch = NULL;
	return -1;
}

/* They are also the program's, if it puts its own there: rsockets have one queue for both ways. */
static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->recv_cq && id->recv_cq_channel)
		vd_front.destroy_cq(id->recv_cq);
	if (id->send_cq && id->send_cq_channel && id->send_cq != id->recv_cq)
		vd_front.destroy_cq(id->send_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int make_cqs(struct vd_id *id, struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *i = &id->id;

	if (!attr->recv_cq) {
		uint32_t n = attr->cap.max_recv_wr;

		/* With a shared queue the number says nothing, and may be any. */
		if (attr->srq && n > vd_of(attr->srq, struct vd_srq, srq)->attr.max_wr)
			n = vd_of(attr->srq, struct vd_srq, srq)->attr.max_wr;
		if (make_cq(id, &i->recv_cq_channel, &i->recv_cq, n))
			return -1;
		attr->recv_cq = i->recv_cq;
	}
	if (!attr->send_cq) {
		if (make_cq(id, &i->send_cq_channel, &i->send_cq, attr->cap.max_send_wr))
			return -1;
		attr->send_cq = i->send_cq;
	}
	return 0;
}

/* Without the queues that were made for it, which @attr must not name any more. */
static int create_fails(struct rdma_cm_id *id, struct ibv_qp_init_attr *attr,
			const struct ibv_qp_init_attr *said)
{
	const int err = errno;

	destroy_cqs(id);
	*attr = *said;
	return vd_fail(err);
}

int vdi_rdma_create_qp(struct rdma_cm_id *ibid, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_init_attr said = *attr;
	struct vd_id *id = vd_id_of(ibid);
	struct vd_qp *qp;

	if (id->qp)
		return vd_fail(EINVAL);
	if (vd_id_bind_device(id))
		return -1;
	if (attr->qp_type != ibid->qp_type) /* what rdma_cm connects, or the address of datagrams */
		return vd_fail(EOPNOTSUPP);
	if (!attr->srq)
		attr->srq = ibid->srq;
	if (make_cqs(id, attr))
		return create_fails(ibid, attr, &said);
	qp = vd_qp_new(ibid->verbs, pd ? pd : ibid->pd, attr);
	if (!qp)
		return create_fails(ibid, attr, &said);
	qp->id = id;
	qp->said.timeout = id->ack_timeout;
	if (qp->ud)
		vd_ud_qp_start(qp);
	else
		qp->qp.qp_base.state = IBV_QPS_INIT;
	id->qp = qp;
	ibid->qp = &qp->qp.qp_base;
	if (pd)
		ibid->pd = pd;
	return 0;
}

int vdi_rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *ex)
{
	struct ibv_qp_init_attr attr;
	int ret;

	memcpy(&attr, ex, sizeof attr);
	if (ex->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return vd_fail(EOPNOTSUPP);
	ret = vd_front.create_id_qp(id, ex->comp_mask & IBV_QP_INIT_ATTR_PD ? ex->pd : NULL, &attr);
	if (!ret) {
		ex->cap = attr.cap;
		ex->send_cq = attr.send_cq;
		ex->recv_cq = attr.recv_cq;
	}
	return ret;
}

void vdi_rdma_destroy_qp(struct rdma_cm_id *ibid)
{
	if (ibid->qp)
		vdi_ibv_destroy_qp(ibid->qp);
	ibid->qp = NULL;
	destroy_cqs(ibid);
}
