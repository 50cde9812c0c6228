/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which queue pair a connection of rdma_cm is for, where rdma_create_qp has made none: a program
 * may put its own into the identifier, or name it by its number, or want to exchange private data
 * only.  On InfiniBand it moves such a queue pair itself; an RNIC moves it with the connection.
 */
#include "verbs/cm/vd_oob.h"
#include <errno.h>
#include <string.h>

/* The lock is held. */
static int adopt_qp(struct vd_id *id, struct vd_qp *qp)
{
	ddps_assert_held(&id->p->lock);
	if (qp->id || qp->lent || qp->phase != VD_QP_IDLE || vd_oob_known(qp))
		return EINVAL;
	qp->lent = true;
	qp->id = id;
	id->qp = qp;
	return 0;
}

static struct vd_qp *make_control_qp(struct vd_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	id->control_cq = vdi_ibv_create_cq(id->id.verbs, 2, NULL, NULL, 0);
	if (!id->control_cq)
		return NULL;
	attr.send_cq = attr.recv_cq = id->control_cq;
	id->control = vd_qp_new(id->id.verbs, id->id.pd, &attr);
	if (!id->control) {
		vd_control_free(id);
		return NULL;
	}
	id->control->id = id;
	id->qp = id->control;
	return id->qp;
}

void vd_control_free(struct vd_id *id)
{
	int keep = errno;

	if (id->control)
		vdi_ibv_destroy_qp(&id->control->qp.qp_base);
	if (id->control_cq)
		vdi_ibv_destroy_cq(id->control_cq);
	id->control = NULL;
	id->control_cq = NULL;
	errno = keep;
}

struct vd_qp *vd_lend(struct vd_process *p, struct vd_id *id, const struct rdma_conn_param *conn)
{
	struct vd_qp *qp = NULL;
	int err = 0;

	ddps_lock(&p->lock);
	if (id->qp)
		qp = id->qp;
	else if (id->id.qp)
		qp = vd_of(id->id.qp, struct vd_qp, qp.qp_base);
	else if (conn && conn->qp_num)
		qp = vd_oob_find(p, conn->qp_num);
	if (qp && qp != id->qp)
		err = adopt_qp(id, qp);
	ddps_unlock(&p->lock);
	if (err) {
		errno = err;
		return NULL;
	}
	return qp ? qp : make_control_qp(id);
}
