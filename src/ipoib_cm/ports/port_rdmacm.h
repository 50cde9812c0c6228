/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_RDMACM_H
#define DDPS_PORT_RDMACM_H
/* What tests look at of <ddpsess/ib_rdmacm.h>. */
#include <ddpsess/ib_rdmacm.h>
#include <infiniband/ib.h>

/* The address to connect to: GID, P_Key and service ID of a REQ. */
void ddps_rdmacm_address(struct sockaddr_ib *a, const struct ddps_cm_req *req);

#endif
