/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_IB_NET_H
#define DDPS_PORT_IB_NET_H
/* The network below a port whose packets are UDP's: the interface that has its address. */
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IB_NET_OVERHEAD                                                                            \
	80 /* of IPv4, UDP and the longest InfiniBand headers: as other stacks have it */

struct ib_net {
	char name[IF_NAMESIZE];
	bool known;   /* the system says which interfaces there are */
	bool found;   /* one has the address */
	bool up;      /* that one can send */
	unsigned mtu; /* of that one */
};

/* @ip: host order. */
void ddps_ib_net_look(struct ib_net *net, uint32_t ip);
/* Why nothing can be sent now, with what to try; "": it can. */
void ddps_ib_net_why(const struct ib_net *net, uint32_t ip, char *why, size_t why_len);
/* The largest code of an InfiniBand MTU that the network carries; 0: none. */
uint8_t ddps_ib_net_code(const struct ib_net *net);
/* Whether a node can send to itself. */
bool ddps_ib_net_loopback(void);

#endif
