/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_USRSCTP_SOCK_H
#define DDPS_SD_USRSCTP_SOCK_H
/* The socket options, control messages and address forms that a carrier needs. */
#include "sctp_ddp/backend/sd_usrsctp.h"
#include <linux/errqueue.h>

union ddps_us_cmsg {
	struct cmsghdr align;
	uint8_t buf[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo)) +
		    CMSG_SPACE(sizeof(int)) +
		    CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
};

/* A socket with what every carrier wants; -1 and errno.  @gso: it knows runs of packets. */
int ddps_us_sock_open(int family, bool raw, bool *gso);
/* Octets, overhead included, that the kernel holds for us. */
int ddps_us_sock_rcvbuf(int fd);
/* Whether the kernel keeps packets whole. */
void ddps_us_sock_set_df(int fd, int family, bool on);
/* The MTU of the link towards @to; 0: not known. */
uint32_t ddps_us_sock_mtu(const struct sockaddr_storage *to);
/* Which of our addresses a packet came to (ss_family 0: not said) ...  Returns the size of the
 * datagrams that the kernel put together, or 0. */
int ddps_us_sock_dest(struct msghdr *m, struct sockaddr_storage *local);
/* ... and send from that one. */
void ddps_us_sock_source(struct msghdr *m, union ddps_us_cmsg *ctrl,
			 const struct sockaddr_storage *local);
/* Have the kernel cut what it sends into datagrams of @size octets; after the above. */
void ddps_us_sock_segment(struct msghdr *m, union ddps_us_cmsg *ctrl, uint16_t size);
/* What a message of the error queue is about; false: it does not say. */
bool ddps_us_sock_error(struct msghdr *m, struct sock_extended_err *e);
/* Step over the IP header that a raw IPv4 socket shows; false: no whole SCTP packet. */
bool ddps_us_sock_strip_ip(int family, uint8_t **pkt, size_t *len);
void ddps_us_sock_key(struct ddps_us_addr *key, const struct sockaddr_storage *ss, bool raw);
/* An IPv4 peer on an IPv6 socket. */
bool ddps_us_sock_is_mapped(const struct sockaddr_storage *ss);

#endif
