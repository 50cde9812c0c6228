/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_VD_FRONT_H
#define DDPS_VERBS_VD_FRONT_H
/*
 * What may stand between a program and the drop-in: faults, profiles of devices, checks (edge/ed.h).
 * The drop-in works without it and knows nothing of it but this table, which it fills.
 *
 * The drop-in's own form of a call that programs see in front has "vdi_" before its name: what the
 * drop-in does for itself does not pass the front.
 */
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>

struct vd_config;

struct vd_front {
	/* A new context: its functions, its face and its ports may become others. */
	void (*dress)(struct ibv_context *ctx);
	/* The process ends by exit().  Return: whether the program made mistakes, which were reported. */
	bool (*end)(void);
	/* The devices that there are, @n of them, one behind the other. */
	struct ibv_device *(*devices)(unsigned *n);
	/* The one that has this address of the host, and its port. */
	struct ibv_device *(*device_at)(const struct sockaddr *sa, uint8_t *port);
	/* vd_host_address, of a port of a device.  0: the port has no address now. */
	unsigned (*port_address)(const struct ibv_context *ctx, unsigned port,
				 struct sockaddr_in *a4);
	/*
	 * What calls of librdmacm make for the program, and what goes again: as the calls of libibverbs do.
	 * rdma_create_qp, rdma_create_ep and rdma_get_request make their queue pair by the first.
	 */
	int (*create_id_qp)(struct rdma_cm_id *id, struct ibv_pd *pd,
			    struct ibv_qp_init_attr *attr);
	struct ibv_cq *(*create_cq)(struct ibv_context *ctx, int cqe, void *user,
				    struct ibv_comp_channel *ch, int vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *init);
	int (*destroy_srq)(struct ibv_srq *srq);
};

/* Nothing stands in front, until it is filled; once vd_config has returned, it stays as it is. */
extern struct vd_front vd_front;
/*
 * The settings have been read: whoever is to stand in front puts itself there.  This one does nothing;
 * it is weak, and that of edge/ed_main.c takes its place.  Return: 0, or -1, what is wrong was reported.
 */
int vd_front_fill(struct vd_front *front, const struct vd_config *cfg);

/* The how many-th device it is. */
unsigned vd_device_index(const struct ibv_device *device);
/* Whether the port has its interface and address now, and its GID then. */
bool vd_port_now(const struct ibv_context *ctx, unsigned port, union ibv_gid *gid);
/* vd_host_address, of the device's first port if it has one of its own. */
unsigned vd_own_address(const struct ibv_context *ctx, struct sockaddr_in *a4);

#define VD_CALL(name) extern __typeof__(name) vdi_##name;
#define VD_PASS(name) extern __typeof__(name) vdi_##name;
#include "verbs/verbs_calls.def"

#endif
