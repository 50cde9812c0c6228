/* SPDX-License-Identifier: BSD-2-Clause */
/* What iWARP or this device does not have: said, never pretended. */
#include "verbs/vd.h"
#include <errno.h>

/* ---- fork: every process has a context of its own, so nothing is to be prepared ---- */

VD_API int ibv_fork_init(void)
{
	return 0;
}

/* For drivers whose adapters write into pages; here the process does, into its own. */
int ibv_dontfork_range(void *addr, size_t len);
VD_API int ibv_dontfork_range(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	return 0;
}

int ibv_dofork_range(void *addr, size_t len);
VD_API int ibv_dofork_range(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	return 0;
}

VD_API enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* ---- enhanced connection establishment, which is InfiniBand's ---- */

VD_API int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

VD_API int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

VD_API int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return vd_fail(EOPNOTSUPP);
}

VD_API int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return vd_fail(EOPNOTSUPP);
}

/* A rejection without such options is what the other side gets. */
VD_API int rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	return vdi_rdma_reject(id, data, len);
}

/* ---- addresses of the link ---- */

VD_API int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr,
				       uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)ctx;
	(void)attr;
	(void)mac;
	(void)vid;
	return vd_fail(EOPNOTSUPP);
}
