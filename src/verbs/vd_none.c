/* SPDX-License-Identifier: BSD-2-Clause */
/* What iWARP or this device does not have: said, never pretended; and plain names. */
#include "verbs/vd.h"
#include <errno.h>

VD_API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

VD_API struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port)
{
	(void)pd;
	(void)wc;
	(void)grh;
	(void)port;
	errno = EOPNOTSUPP;
	return NULL;
}

VD_API int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return EOPNOTSUPP;
}

VD_API int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return EOPNOTSUPP;
}

VD_API int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return EOPNOTSUPP;
}

VD_API struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

VD_API int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access)
{
	(void)mr;
	(void)flags;
	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_INPUT; /* the region stays as it is */
}

VD_API int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id;
	(void)addr;
	(void)context;
	return vd_fail(EOPNOTSUPP);
}

VD_API int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				  void *context)
{
	(void)id;
	(void)attr;
	(void)context;
	return vd_fail(EOPNOTSUPP);
}

VD_API int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return vd_fail(EOPNOTSUPP);
}

/* ---- fork: every process has a context of its own, so nothing is to be prepared ---- */

VD_API int ibv_fork_init(void)
{
	return 0;
}

VD_API enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* ---- names ---- */

VD_API const char *ibv_node_type_str(enum ibv_node_type type)
{
	return type == IBV_NODE_RNIC ? "iWARP NIC" : "unknown";
}

VD_API const char *ibv_port_state_str(enum ibv_port_state state)
{
	static const char *const names[] = {
		"no state change (NOP)", "PORT_DOWN",	     "PORT_INIT", "PORT_ARMED",
		"PORT_ACTIVE",		 "PORT_ACTIVE_DEFER"
	};

	return (size_t)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

VD_API const char *ibv_event_type_str(enum ibv_event_type event)
{
	switch (event) {
	case IBV_EVENT_CQ_ERR:
		return "CQ error";
	case IBV_EVENT_QP_FATAL:
		return "local work queue catastrophic error";
	case IBV_EVENT_QP_REQ_ERR:
		return "invalid request local work queue error";
	case IBV_EVENT_QP_ACCESS_ERR:
		return "local access violation work queue error";
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return "last WQE reached";
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return "SRQ limit reached";
	default:
		return "event";
	}
}

VD_API const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return "success";
	case IBV_WC_LOC_LEN_ERR:
		return "local length error";
	case IBV_WC_LOC_PROT_ERR:
		return "local protection error";
	case IBV_WC_WR_FLUSH_ERR:
		return "Work Request Flushed Error";
	case IBV_WC_REM_INV_REQ_ERR:
		return "remote invalid request error";
	case IBV_WC_REM_ACCESS_ERR:
		return "remote access error";
	case IBV_WC_REM_OP_ERR:
		return "remote operation error";
	default:
		return "error";
	}
}
