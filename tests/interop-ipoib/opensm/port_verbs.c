/* SPDX-License-Identifier: BSD-2-Clause */
/* libibverbs of the port: its device and its objects. */
#include "port_qp.h"
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#undef ibv_query_port
#undef ibv_reg_mr

#define API __attribute__((visibility("default")))

struct ibv_context context;
static struct ibv_device device = { .node_type = IBV_NODE_CA,
				    .transport_type = IBV_TRANSPORT_IB,
				    .name = "ibsim0" };

/* ---- the device ---- */

API struct ibv_device **ibv_get_device_list(int *n)
{
	static struct ibv_device *list[2] = { &device };

	if (n)
		*n = 1;
	return port_open() ? NULL : list;
}

API void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

API const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

API __be64 ibv_get_device_guid(struct ibv_device *d)
{
	(void)d;
	return htobe64(port.guid - 1);
}

API struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	pthread_t thread;

	if (port_open() || port_ask(&port) || pipe(events) || pipe(notices))
		return NULL;
	data = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s.port", getenv("FABRIC_DIR"),
		 getenv("SIM_HOST"));
	unlink(a.sun_path);
	if (data < 0 || bind(data, (struct sockaddr *)&a, sizeof(a)) ||
	    pthread_create(&thread, NULL, port_serve, NULL))
		return NULL;
	context.device = d;
	context.async_fd = events[0];
	context.ops.post_send = port_post_send;
	context.ops.post_recv = port_post_recv;
	context.ops.post_srq_recv = port_post_srq;
	context.ops.poll_cq = port_poll_cq;
	context.ops.req_notify_cq = port_arm_cq;
	return &context;
}

API int ibv_close_device(struct ibv_context *c)
{
	(void)c;
	return 0;
}

API int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	*a = (struct ibv_device_attr){ .phys_port_cnt = 1, .max_srq_wr = 16384 };
	return 0;
}

API int ibv_query_port(struct ibv_context *c, uint8_t n, struct _compat_ibv_port_attr *out)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)out;

	(void)c;
	if (n != 1)
		return EINVAL;
	pthread_mutex_lock(&lock);
	a->state = (enum ibv_port_state)port.state;
	a->active_mtu = (enum ibv_mtu)port.mtu;
	a->max_mtu = IBV_MTU_4096;
	a->lid = port.lid;
	a->lmc = port.lmc;
	a->sm_lid = port.sm_lid;
	a->sm_sl = port.sm_sl;
	a->gid_tbl_len = 1;
	a->pkey_tbl_len = PORT_PKEYS;
	a->link_layer = IBV_LINK_LAYER_INFINIBAND;
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_query_gid(struct ibv_context *c, uint8_t n, int index, union ibv_gid *gid)
{
	(void)c;
	(void)n;
	pthread_mutex_lock(&lock);
	port_gid(gid->raw);
	pthread_mutex_unlock(&lock);
	return index ? EINVAL : 0;
}

API int ibv_query_pkey(struct ibv_context *c, uint8_t n, int index, __be16 *pkey)
{
	(void)c;
	(void)n;
	if (index < 0 || index >= PORT_PKEYS)
		return EINVAL;
	pthread_mutex_lock(&lock);
	*pkey = htobe16(port.pkey[index]);
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	return read(c->async_fd, e, sizeof(*e)) == sizeof(*e) ? 0 : -1;
}

API void ibv_ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

/* ---- objects ---- */

/* An object whose first member libibverbs defines. */
#define NEW(type, member)                                                                          \
	struct type *o = calloc(1, sizeof(*o));                                                    \
	if (!o)                                                                                    \
		return NULL;                                                                       \
	o->member.context = &context

API struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->context = c;
	return pd;
}

API int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	(void)access;
	if (mr)
		*mr = (struct ibv_mr){
			.context = pd->context, .pd = pd, .addr = addr, .length = len
		};
	return mr;
}

API int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

API struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	static struct ibv_comp_channel channel;

	channel = (struct ibv_comp_channel){ .context = c, .fd = notices[0] };
	return &channel;
}

API int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	(void)c;
	return 0;
}

API struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *user,
				 struct ibv_comp_channel *channel, int vector)
{
	NEW(cq, cq);
	(void)c;
	(void)vector;
	o->cq.cqe = n;
	o->cq.cq_context = user;
	o->cq.channel = channel;
	o->pipe = notices[1];
	return &o->cq;
}

API int ibv_destroy_cq(struct ibv_cq *cq)
{
	port_drop_list(&((struct cq *)cq)->wc);
	free(cq);
	return 0;
}

API int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **user)
{
	struct cq *which;

	if (read(c->fd, &which, sizeof(which)) != sizeof(which))
		return -1;
	*cq = &which->cq;
	*user = which->cq.cq_context;
	return 0;
}

API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	(void)n;
}

API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	NEW(srq, srq);
	(void)a;
	o->srq.pd = pd;
	return &o->srq;
}

API int ibv_destroy_srq(struct ibv_srq *srq)
{
	port_drop_list(&((struct srq *)srq)->recv);
	free(srq);
	return 0;
}

API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	static uint32_t number;
	NEW(qp, qp);

	if (!number)
		number = (uint32_t)getpid() << 8;
	o->qp.pd = pd;
	o->qp.qp_type = a->qp_type;
	o->qp.qp_num = ++number & 0xffffff;
	o->send_cq = (struct cq *)a->send_cq;
	o->recv_cq = (struct cq *)a->recv_cq;
	o->srq = (struct srq *)a->srq;
	pthread_mutex_lock(&lock);
	o->next = qps;
	qps = o;
	pthread_mutex_unlock(&lock);
	return &o->qp;
}

static void change_qp_attr(struct qp *q, const struct ibv_qp_attr *a, int mask)
{
	if (mask & IBV_QP_QKEY)
		q->qkey = a->qkey;
	if (mask & IBV_QP_PKEY_INDEX)
		q->pkey_index = a->pkey_index % PORT_PKEYS;
	if (mask & IBV_QP_AV)
		q->dlid = a->ah_attr.dlid;
	if (mask & IBV_QP_DEST_QPN)
		q->dqpn = a->dest_qp_num;
	if (!(mask & IBV_QP_STATE))
		return;
	if (a->qp_state == IBV_QPS_ERR) {
		port_fail_qp(q, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	if (a->qp_state == IBV_QPS_RESET) {
		port_drop_list(&q->recv);
		port_drop_list(&q->waiting);
		port_drop_list(&q->unacked);
	}
	q->state = a->qp_state;
}

API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	pthread_mutex_lock(&lock);
	change_qp_attr((struct qp *)qp, a, mask);
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct qp *q = (struct qp *)qp, **at = &qps;

	pthread_mutex_lock(&lock);
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	pthread_mutex_unlock(&lock);
	port_drop_list(&q->recv);
	port_drop_list(&q->waiting);
	port_drop_list(&q->unacked);
	free(q);
	return 0;
}

API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
	NEW(ah, ah);
	o->ah.pd = pd;
	o->attr = *a;
	return &o->ah;
}

API int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

API int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct qp *q = (struct qp *)qp;

	if (q->n_groups == GROUPS)
		return ENOMEM;
	pthread_mutex_lock(&lock);
	memcpy(q->group[q->n_groups].gid, gid->raw, 16);
	q->group[q->n_groups++].lid = lid;
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct qp *q = (struct qp *)qp;
	int err = EINVAL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; err && i < q->n_groups; i++)
		if (q->group[i].lid == lid && !memcmp(q->group[i].gid, gid->raw, 16)) {
			q->group[i] = q->group[--q->n_groups];
			err = 0;
		}
	pthread_mutex_unlock(&lock);
	return err;
}
