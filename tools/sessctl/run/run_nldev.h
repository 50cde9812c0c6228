/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_NLDEV_H
#define RUN_NLDEV_H
/* What the kernel says of RDMA devices by netlink: the attributes of one answer each, for src/view/view_nldev.c. */
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct run_nldev {
	size_t len;
	uint8_t octets[512];
};

void run_nldev_device(struct run_nldev *to, const struct ibv_device *dev, int index,
		      const struct ibv_device_attr *a, const struct ibv_port_attr *first_port);

/* @gid: the first one of the port, or NULL. */
void run_nldev_port(struct run_nldev *to, const struct ibv_device *dev, int index, uint32_t port,
		    const struct ibv_port_attr *a, const struct ibv_gid_entry *gid);

/* Of all devices together: a program sees them in each network namespace. */
void run_nldev_system(struct run_nldev *to);

#endif
