/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_ROUTE_H
#define DDPS_SD_ROUTE_H
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * The size of packet, IP header included, that the route to @to takes as it was configured: its
 * device's MTU, or less if the route says so.  What ICMP made the kernel believe is not in it: that
 * is not verified.  0: not known.
 */
uint32_t ddps_sd_route_mtu(const struct sockaddr_storage *to);

/* The same of the kernel's answer, @len octets of rtnetlink at @buf; 0: it says nothing.  @device: the
 * MTU of a device by its index, or 0. */
uint32_t ddps_sd_route_read(const uint8_t *buf, size_t len,
			    uint32_t (*device)(void *user, uint32_t index), void *user);

#endif
