/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_create_ep, rdma_get_request: identifier, queue pair and addresses in one call. */
#include "verbs/vd.h"
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

static int make_active(struct rdma_cm_id *id, struct rdma_addrinfo *ai, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	if (vdi_rdma_resolve_addr(id, ai->ai_src_addr, ai->ai_dst_addr, 2000) ||
	    vdi_rdma_resolve_route(id, 2000))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = (enum ibv_qp_type)ai->ai_qp_type; /* programs pass 0 */
	return vd_front.create_id_qp(id, pd, attr);
}

int vdi_rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *ai, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int ret, err;

	if (vdi_rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)ai->ai_port_space))
		return -1;
	if (ai->ai_flags & RAI_PASSIVE) {
		ret = vdi_rdma_bind_addr(id, ai->ai_src_addr);
		if (attr) {
			vd_id_of(id)->ep_attr = *attr;
			vd_id_of(id)->ep_attr.qp_type = (enum ibv_qp_type)ai->ai_qp_type;
			vd_id_of(id)->ep_pd = pd;
			vd_id_of(id)->has_ep_attr = true;
		}
	} else {
		ret = make_active(id, ai, pd, attr);
	}
	if (ret) {
		err = errno;
		vdi_rdma_destroy_ep(id);
		return vd_fail(err);
	}
	*out = id;
	return 0;
}

void vdi_rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		vdi_rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	vdi_rdma_destroy_id(id);
}

int vdi_rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	struct vd_id *l = vd_id_of(listen);
	struct ibv_qp_init_attr attr;

	if (!l->sync)
		return vd_fail(EINVAL);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (vdi_rdma_get_cm_event(listen->channel, &e))
		return -1;
	if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		rdma_ack_cm_event(e);
		return vd_fail(EINVAL);
	}
	id = e->id;
	if (rdma_migrate_id(id, NULL)) {
		int err = errno;

		rdma_ack_cm_event(e);
		vdi_rdma_destroy_id(id); /* nobody else could */
		return vd_fail(err);
	}
	/* The request's private data stays readable through the event. */
	listen->event = NULL;
	id->event = e;
	attr = l->ep_attr;
	if (l->has_ep_attr && vd_front.create_id_qp(id, l->ep_pd, &attr)) {
		int err = errno;

		vdi_rdma_reject(id, NULL, 0);
		vdi_rdma_destroy_id(id);
		return vd_fail(err);
	}
	*out = id;
	return 0;
}
