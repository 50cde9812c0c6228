/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IB_SMP_H
#define DDPS_IB_SMP_H
/*
 * What a port says of itself: the attributes of subnet management (IBA volume 1, 14.2.5), as they stand
 * in SMPs and in the records of the subnet administration.
 */
#include <ddpsess/ipoib_cm.h>
#include <stdbool.h>
#include <stdint.h>

#define DDPS_SMP_NODE_INFO_LEN 40
#define DDPS_SMP_NODE_DESC_LEN 64
#define DDPS_SMP_PORT_INFO_LEN 64
#define DDPS_SMP_SM_INFO_LEN   24

/* A channel adapter with one port, which is what a node of the subnet in UDP is. */
struct ddps_ib_self {
	uint8_t gid[DDPS_IPOIB_GID_LEN];
	uint16_t lid, sm_lid, pkey;
	uint8_t mtu, life; /* codes */
};

void ddps_smp_node_info(uint8_t out[DDPS_SMP_NODE_INFO_LEN], const struct ddps_ib_self *s);
/* The same text from the node itself and from the administration, which knows no more of it. */
void ddps_smp_node_desc(uint8_t out[DDPS_SMP_NODE_DESC_LEN], const struct ddps_ib_self *s);
void ddps_smp_port_info(uint8_t out[DDPS_SMP_PORT_INFO_LEN], const struct ddps_ib_self *s);
void ddps_smp_sm_info(uint8_t out[DDPS_SMP_SM_INFO_LEN], const struct ddps_ib_self *s);

#endif
