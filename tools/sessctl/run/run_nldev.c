/* SPDX-License-Identifier: BSD-2-Clause */
#include "sessctl/run/run_nldev.h"
#include <endian.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

static void put_attr(struct run_nldev *to, uint16_t type, const void *value, size_t len)
{
	struct nlattr attr = { .nla_len = (uint16_t)(sizeof attr + len), .nla_type = type };

	memcpy(to->octets + to->len, &attr, sizeof attr);
	memcpy(to->octets + to->len + sizeof attr, value, len);
	to->len += (size_t)NLA_ALIGN(attr.nla_len); /* the octets between are 0 */
}

static void put_u8(struct run_nldev *to, uint16_t type, uint8_t n)
{
	put_attr(to, type, &n, sizeof n);
}

static void put_u32(struct run_nldev *to, uint16_t type, uint32_t n)
{
	put_attr(to, type, &n, sizeof n);
}

static void put_u64(struct run_nldev *to, uint16_t type, uint64_t n)
{
	put_attr(to, type, &n, sizeof n);
}

static void put_name(struct run_nldev *to, uint16_t type, const char *name)
{
	put_attr(to, type, name, strlen(name) + 1);
}

static void put_which(struct run_nldev *to, const struct ibv_device *dev, int index)
{
	memset(to, 0, sizeof(*to));
	put_u32(to, RDMA_NLDEV_ATTR_DEV_INDEX, (uint32_t)index);
	put_name(to, RDMA_NLDEV_ATTR_DEV_NAME, dev->name);
}

static const char *name_protocol(const struct ibv_device *dev, const struct ibv_port_attr *port)
{
	if (dev->transport_type == IBV_TRANSPORT_IWARP)
		return "iw";
	return port->link_layer == IBV_LINK_LAYER_INFINIBAND ? "ib" : "roce";
}

void run_nldev_device(struct run_nldev *to, const struct ibv_device *dev, int index,
		      const struct ibv_device_attr *a, const struct ibv_port_attr *first_port)
{
	put_which(to, dev, index);
	put_u32(to, RDMA_NLDEV_ATTR_PORT_INDEX, a->phys_port_cnt); /* how many there are */
	put_u64(to, RDMA_NLDEV_ATTR_CAP_FLAGS, a->device_cap_flags);
	put_name(to, RDMA_NLDEV_ATTR_FW_VERSION, a->fw_ver);
	put_u64(to, RDMA_NLDEV_ATTR_NODE_GUID, be64toh(a->node_guid));
	put_u64(to, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, be64toh(a->sys_image_guid));
	put_u8(to, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, (uint8_t)dev->node_type);
	put_u8(to, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	put_name(to, RDMA_NLDEV_ATTR_DEV_PROTOCOL, name_protocol(dev, first_port));
}

void run_nldev_port(struct run_nldev *to, const struct ibv_device *dev, int index, uint32_t port,
		    const struct ibv_port_attr *a, const struct ibv_gid_entry *gid)
{
	char ifname[IF_NAMESIZE];
	uint64_t prefix;

	put_which(to, dev, index);
	put_u32(to, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (a->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		put_u64(to, RDMA_NLDEV_ATTR_CAP_FLAGS, a->port_cap_flags);
		if (gid) {
			memcpy(&prefix, gid->gid.raw, sizeof prefix);
			put_u64(to, RDMA_NLDEV_ATTR_SUBNET_PREFIX, be64toh(prefix));
		}
		put_u32(to, RDMA_NLDEV_ATTR_LID, a->lid);
		put_u32(to, RDMA_NLDEV_ATTR_SM_LID, a->sm_lid);
		put_u8(to, RDMA_NLDEV_ATTR_LMC, a->lmc);
	}
	put_u8(to, RDMA_NLDEV_ATTR_PORT_STATE, (uint8_t)a->state);
	put_u8(to, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, a->phys_state);
	if (gid && if_indextoname(gid->ndev_ifindex, ifname)) {
		put_u32(to, RDMA_NLDEV_ATTR_NDEV_INDEX, gid->ndev_ifindex);
		put_name(to, RDMA_NLDEV_ATTR_NDEV_NAME, ifname);
	}
}

void run_nldev_system(struct run_nldev *to)
{
	memset(to, 0, sizeof(*to));
	put_u8(to, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1); /* shared */
	put_u8(to, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
}
