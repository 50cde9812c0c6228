/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VIEW_NLDEV_H
#define DDPS_VIEW_NLDEV_H
/* What the kernel would say of its RDMA devices by netlink (NETLINK_RDMA), as the rdma tool of iproute2 asks. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/*
 * The protocol of the socket that a program gets for one of NETLINK_RDMA: every kernel has it, and nobody
 * in the kernel listens there.
 */
#define VIEW_NLDEV_PROTOCOL NETLINK_USERSOCK

/* Whether what goes to @addr by the socket @fd is for the kernel, and the socket is such a one. */
bool view_nldev_is_asked(int fd, const struct sockaddr *addr, socklen_t len);

/*
 * Put the answers to @msg where @fd will receive them.  They are in files below @root: nldev/DEVICE,
 * nldev/DEVICE.PORT and nldev/sys have the attributes of one answer each.
 * Return: the octets of @msg, or -1 with errno.
 */
ssize_t view_nldev_answer(const char *root, int fd, const struct msghdr *msg);

#endif
