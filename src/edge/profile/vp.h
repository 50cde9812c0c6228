/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_EDGE_VP_H
#define DDPS_EDGE_VP_H
/*
 * Profiles: which devices a program sees, and what they say of themselves.  Reading only; the edge
 * of the drop-in (src/edge) shows them.  A line is a word and its value (docs/profiles.md).
 */
#include "edge/fault/vf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VP_DEVICES 8
#define VP_PORTS   4
#define VP_NAME	   64 /* IBV_SYSFS_NAME_MAX */
#define VP_IFNAME  16

enum vp_limit {
	VP_MAX_QP,
	VP_MAX_QP_WR,
	VP_MAX_SGE,
	VP_MAX_SGE_RD,
	VP_MAX_INLINE,
	VP_MAX_CQ,
	VP_MAX_CQE,
	VP_MAX_MR,
	VP_MAX_MR_SIZE,
	VP_MAX_PD,
	VP_MAX_SRQ,
	VP_MAX_SRQ_WR,
	VP_MAX_SRQ_SGE,
	VP_MAX_QP_RD_ATOM,
	VP_MAX_QP_INIT_RD_ATOM,
	VP_LIMITS
};

struct vp_port {
	char interface[VP_IFNAME]; /* whose address is its GID; empty: the host's */
	bool down;
	unsigned mtu;	       /* 256 to 4096, of the path */
	unsigned width, speed; /* as ibv_port_attr has them */
};

struct vp_device {
	char name[VP_NAME];
	bool roce; /* or InfiniBand, else iWARP */
	bool lids; /* InfiniBand */
	bool atomics;
	uint64_t guid;	       /* 0: of its address */
	uint32_t vendor, part; /* 0: the drop-in's */
	char firmware[VP_NAME];
	uint64_t limit[VP_LIMITS]; /* 0: the drop-in's, unless @none has its bit */
	uint32_t none;		   /* 1 << of limits that are 0 */
	unsigned ports;
	struct vp_port port[VP_PORTS];
};

/* The device's limit, or @otherwise where the profile says nothing of it. */
static inline uint64_t vp_limit(const struct vp_device *d, enum vp_limit what, uint64_t otherwise)
{
	return d->limit[what] || d->none >> what & 1 ? d->limit[what] : otherwise;
}

struct vp_profile {
	unsigned n;
	struct vp_device device[VP_DEVICES];
};

/*
 * Everything in @text may be anything.  @most: what the drop-in has of each limit, 0: no end.
 * Return: 0, or -1 and @error says where and what is expected.
 */
int vp_parse(struct vp_profile *p, const uint64_t most[VP_LIMITS], const char *text, size_t len,
	     struct vf_error *error);

#endif
