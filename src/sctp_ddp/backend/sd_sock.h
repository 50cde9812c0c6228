/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_SOCK_H
#define DDPS_SD_SOCK_H
/*
 * Sockets below an SCTP of ours, UDP (RFC 6951) or raw IP: options, control messages and address
 * forms.
 */
#include "common/uri.h"
#include <time.h> /* for the next one */

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

union ddps_sd_cmsg {
	size_t align; /* as struct cmsghdr, whose data has no size: it may not stand amidst others */
	uint8_t buf[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo)) +
		    CMSG_SPACE(sizeof(int)) +
		    CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
};

/* What of it ddps_sd_sock_source() fills, at most. */
#define DDPS_SD_SOURCE_LEN CMSG_SPACE(sizeof(struct in6_pktinfo))

/* A socket with what each of them wants; -1 and errno.  @gso: it knows runs of packets. */
int ddps_sd_sock_open(int family, bool raw, bool *gso);
/* Octets, overhead included, that the kernel holds for us. */
int ddps_sd_sock_rcvbuf(int fd);
/* Whether the kernel keeps packets whole. */
void ddps_sd_sock_set_df(int fd, int family, bool on);
/* The MTU of the link towards @to; 0: not known. */
uint32_t ddps_sd_sock_mtu(const struct sockaddr_storage *to);
/* That of the link on which this host talks to itself. */
uint32_t ddps_sd_sock_host_mtu(void);
/* Which of our addresses a packet came to (ss_family 0: not said) ...  Returns the size of the
 * datagrams that the kernel put together, or 0. */
int ddps_sd_sock_dest(struct msghdr *m, struct sockaddr_storage *local);
/* ... and send from that one. */
void ddps_sd_sock_source(struct msghdr *m, union ddps_sd_cmsg *ctrl,
			 const struct sockaddr_storage *local);
/* Have the kernel cut what it sends into datagrams of @size octets; after the above. */
void ddps_sd_sock_segment(struct msghdr *m, union ddps_sd_cmsg *ctrl, uint16_t size);
/* What a message of the error queue is about; false: it does not say. */
bool ddps_sd_sock_error(struct msghdr *m, struct sock_extended_err *e);
/* Step over the IP header that a raw IPv4 socket shows; false: no whole SCTP packet. */
bool ddps_sd_sock_strip_ip(int family, uint8_t **pkt, size_t *len);
void ddps_sd_set_port(struct sockaddr_storage *ss, uint16_t port);
uint16_t ddps_sd_port_number(const struct sockaddr_storage *ss);
/* Whether each of the peer's addresses can be reached from one of ours; none of ours: from any. */
bool ddps_sd_sock_families_fit(const struct ddps_uri_addrs *from, const struct ddps_uri_addrs *to);

#endif
