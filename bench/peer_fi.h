/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_PEER_FI_H
#define BENCH_PEER_FI_H
/* libfabric's tcp provider, connected endpoints (FI_EP_MSG): what peer_fi.c and peer_fi_many.c share. */
#include "peer.h"
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

static inline void check_fi(long err, const char *what)
{
	if (err >= 0)
		return;
	fprintf(stderr, "libfabric: %s: %s\n", what, fi_strerror((int)-err));
	exit(1);
}

static inline struct fi_info *get_fi_info(const char *port, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = ~0ull;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("tcp");
	check_fi(fi_getinfo(FI_VERSION(1, 9), peer_host(), port, flags, hints, &info),
		 "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

#endif
