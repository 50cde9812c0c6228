/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FAKE_UDP_H
#define FAKE_UDP_H
/*
 * In place of socket(), recvmmsg(), recvmsg(), sendmsg() and sendmmsg(), by the linker's --wrap:
 * what a socket has to read is given, and what is sent goes to the target, one datagram at a time.  Raw sockets become datagram sockets, so
 * that no right is needed for them.
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
	int fail_recv, fail_send; /* an errno for the next one */
	unsigned fail_times;	  /* for that many sends */
	bool few;		  /* the next sendmmsg() takes one message */
	bool failed;		  /* one did; the target's to clear */
	struct sockaddr_in icmp_to;
	uint8_t quoted[64];
	size_t nquoted; /* an error in the queue of fd, or 0 */
	uint8_t icmp_type, icmp_code;
	void (*sent)(int fd, const struct msghdr *m, const uint8_t *pkt, size_t len);
};

/* All zero, nothing to read. */
struct fake_udp *fake_udp_reset(void);

#endif
