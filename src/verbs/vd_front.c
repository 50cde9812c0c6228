/* SPDX-License-Identifier: BSD-2-Clause */
/* Nothing in front: one device with one port, which is the host's.  And what the drop-in asks of it. */
#include "verbs/vd.h"

static void dress_nothing(struct ibv_context *ctx)
{
	(void)ctx;
}

static bool end_nothing(void)
{
	return false;
}

static struct ibv_device *list_own_device(unsigned *n)
{
	*n = 1;
	return vd_device();
}

static struct ibv_device *find_own_device(const struct sockaddr *sa, uint8_t *port)
{
	(void)sa;
	*port = 1;
	return vd_device();
}

static unsigned find_own_address(const struct ibv_context *ctx, unsigned port,
				 struct sockaddr_in *a4)
{
	(void)ctx;
	(void)port;
	return vd_host_address(a4);
}

struct vd_front vd_front = {
	.dress = dress_nothing,
	.end = end_nothing,
	.devices = list_own_device,
	.device_at = find_own_device,
	.port_address = find_own_address,
	.create_id_qp = vdi_rdma_create_qp,
	.create_cq = vdi_ibv_create_cq,
	.destroy_cq = vdi_ibv_destroy_cq,
	.create_srq = vdi_ibv_create_srq,
	.destroy_srq = vdi_ibv_destroy_srq,
};

__attribute__((weak)) int vd_front_fill(struct vd_front *front, const struct vd_config *cfg)
{
	(void)front;
	(void)cfg;
	return 0;
}

unsigned vd_device_index(const struct ibv_device *device)
{
	unsigned n;
	const struct ibv_device *first = vd_front.devices(&n);

	return device > first && device < first + n ? (unsigned)(device - first) : 0;
}

bool vd_port_now(const struct ibv_context *ctx, unsigned port, union ibv_gid *gid)
{
	struct sockaddr_in a4;

	if (vd_of(ctx, struct vd_context, v.context)->down & 1u << (port - 1) ||
	    !vd_front.port_address(ctx, port, &a4))
		return false;
	vd_gid_of(&a4, gid);
	return true;
}

unsigned vd_own_address(const struct ibv_context *ctx, struct sockaddr_in *a4)
{
	unsigned index = vd_front.port_address(ctx, 1, a4);

	return index ? index : vd_host_address(a4);
}
