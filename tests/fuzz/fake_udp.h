/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FAKE_UDP_H
#define FAKE_UDP_H
/*
 * In place of socket(), recvmmsg(), recvmsg(), sendmsg() and sendmmsg(), by the linker's --wrap:
 * what a socket has to read is given, datagrams of one size from one sender as one buffer if the
 * target wants that (GRO), and what is sent goes to the target, runs cut up (GSO).  Raw sockets
 * become datagram sockets, so that no right is needed for them.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define FAKE_UDP_MAX 10 /* datagrams; a read takes fewer */

struct fake_datagram {
	struct sockaddr_in from;
	struct in_addr to;
	size_t len;
	uint8_t octets[128];
	bool cut; /* longer than the room for it */
};

struct fake_udp {
	int fd; /* that has these to read */
	struct fake_datagram d[FAKE_UDP_MAX];
	unsigned nd, taken;
	bool gro;
	int fail_recv, fail_send; /* an errno for the next one */
	/* in the error queue, about a packet to @from that began with these octets */
	bool icmp_there;
	struct fake_datagram icmp;
	void (*sent)(int fd, const struct msghdr *m, const uint8_t *pkt, size_t len);
};

/* All zero, nothing to read. */
struct fake_udp *fake_udp_reset(void);

#endif
