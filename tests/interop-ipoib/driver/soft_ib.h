/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SOFT_IB_H
#define SOFT_IB_H
/*
 * For a copy of Linux's soft RoCE driver that claims an InfiniBand link layer; edit-rxe.py
 * includes it and calls what is here.
 *
 * Packets stay those of RoCE v2 on UDP port 4791.  The node with address a.b.c.N of a /24 has LID
 * N.  What goes to a multicast LID is sent to a.b.c.255 with the MLID as UDP source port: both
 * ranges begin at 0xc000.
 */
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

#define SOFT_IB_MLID   0xc000
#define SOFT_IB_GROUPS 256
#define SOFT_IB_GRH    40

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 13, 0)
typedef u8 soft_ib_port;
#define SOFT_IB_AV rxe_get_av(pkt)
#else
typedef u32 soft_ib_port;
#define SOFT_IB_AV av
#endif

extern unsigned int soft_ib_sm_lid;
extern union ib_gid soft_ib_mgid[SOFT_IB_GROUPS]; /* by the low octet of the MLID */
extern struct net_device *soft_ib_ndev;		  /* below the one device that there is */

/* An address handle keeps its LID where a MAC address would be, and its flags behind it. */
static inline unsigned int soft_ib_lid(const struct rxe_av *av)
{
	return (unsigned int)av->dmac[0] << 8 | av->dmac[1];
}

static inline bool soft_ib_group(unsigned int lid)
{
	return lid >= SOFT_IB_MLID;
}

static inline union ib_gid *soft_ib_mgid_of(unsigned int mlid)
{
	return soft_ib_mgid + mlid % SOFT_IB_GROUPS;
}

/* In host order; 0 without one. */
static inline u32 soft_ib_address(struct net_device *dev)
{
	return be32_to_cpu(inet_select_addr(dev, 0, RT_SCOPE_LINK));
}

static inline u16 soft_ib_own_lid(struct net_device *dev)
{
	return soft_ib_address(dev) & 0xff;
}

static inline u16 soft_ib_sender(struct sk_buff *skb)
{
	return be32_to_cpu(ip_hdr(skb)->saddr) & 0xff;
}

static inline void soft_ib_set_av(struct rxe_av *av, struct rdma_ah_attr *attr)
{
	unsigned int lid = rdma_ah_get_dlid(attr);

	eth_zero_addr(av->dmac);
	av->dmac[0] = (lid >> 8) & 0xff;
	av->dmac[1] = lid & 0xff;
	av->dmac[2] = rdma_ah_get_ah_flags(attr) & IB_AH_GRH;
	av->network_type = RXE_NETWORK_TYPE_IPV4;
	av->grh.traffic_class = 0;
	av->grh.hop_limit = 64;
}

static inline void soft_ib_get_av(const struct rxe_av *av, struct rdma_ah_attr *attr)
{
	attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(attr, soft_ib_lid(av));
	rdma_ah_set_ah_flags(attr, av->dmac[2] & IB_AH_GRH);
}

/* The addresses of a packet, as soon as its device is known. */
static inline void soft_ib_set_addresses(struct rxe_av *av, struct net_device *dev)
{
	unsigned int lid = soft_ib_lid(av);
	u32 own = soft_ib_address(dev), net = own & ~0xffu;
	struct sockaddr_in *from = &av->sgid_addr._sockaddr_in, *to = &av->dgid_addr._sockaddr_in;

	from->sin_family = to->sin_family = AF_INET;
	from->sin_addr.s_addr = cpu_to_be32(own);
	to->sin_addr.s_addr = cpu_to_be32(net | (soft_ib_group(lid) ? 0xff : lid & 0xff));
}

static inline bool soft_ib_to_itself(const struct rxe_av *av)
{
	return av->dgid_addr._sockaddr_in.sin_addr.s_addr ==
	       av->sgid_addr._sockaddr_in.sin_addr.s_addr;
}

static inline u16 soft_ib_source_port(const struct rxe_av *av, u16 otherwise)
{
	unsigned int lid = soft_ib_lid(av);

	return soft_ib_group(lid) ? lid : otherwise;
}

/* What precedes a datagram in its buffer: a GRH only if it came for a group. */
static inline void soft_ib_fill_grh(struct rxe_dev *rxe, struct sk_buff *skb, bool group, void *buf)
{
	struct ib_grh *grh = buf;
	u16 from = soft_ib_sender(skb);

	memset(grh, 0, SOFT_IB_GRH);
	if (!group)
		return;
	grh->version_tclass_flow = cpu_to_be32(6u << 28);
	grh->next_hdr = 0x1b;
	grh->hop_limit = 1;
	grh->dgid = *soft_ib_mgid_of(be16_to_cpu(udp_hdr(skb)->source));
	grh->sgid.global.subnet_prefix = rxe->port.subnet_prefix;
	/* whoever gets its own packet back knows it by its GUID; of others the LID will do */
	grh->sgid.global.interface_id =
		from == soft_ib_own_lid(soft_ib_ndev) ? rxe->port.port_guid : cpu_to_be64(from);
}

#endif
