/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VIEW_H
#define DDPS_VIEW_H
/* The view of a device's folders: which paths lead into it and back, counters, and answers by netlink. */
#include <stddef.h>
#include "view/view_counters.h"
#include <stdint.h>
#include <stdbool.h>
#include <sys/socket.h>

/*
 * Where @path leads: into @root if it is below /sys/class/infiniband, /sys/class/infiniband_verbs
 * or /dev/infiniband, however many slashes and dots it has; else @path itself.  Folders above it
 * ("..") are taken by name.  @buf: of @len octets; a path too long for it is left alone.
 */
const char *view_into(const char *root, const char *path, char *buf, size_t len);

/* Take @root off @path, in place, if it is there. */
void view_out_of(const char *root, char *path);

/*
 * Counters of the device's port, summed over the processes that show it: view_counters.h.  All of them now.
 * A process that does not answer within a moment counts as it did last.  false: another process keeps
 * locked what those have left that are gone.
 */
bool view_count_sum(const char *root, uint64_t sum[VIEW_NCOUNTERS]);
#define VIEW_COUNT_BUSY_WHY                                                                        \
	"another process has locked the counters of ddpsess for half a second, as one does that "  \
	"is stopped meanwhile (see lslocks)"

/*
 * A descriptor to read a counter's present value from, if @path leads to one, from the folder @dir (or
 * AT_FDCWD) if it is relative; @flags as for open.  -1: it leads to none, and errno is as it was;
 * VIEW_COUNT_BUSY: it cannot be read now, and errno is EBUSY.
 */
#define VIEW_COUNT_BUSY (-2)
int view_count_open(const char *root, int dir, const char *path, int flags);

/* "iwInRdmaReads", ... */
const char *view_count_name(unsigned i);

/*
 * What the kernel would say of its RDMA devices by netlink (NETLINK_RDMA), as the rdma tool of iproute2 asks.
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
