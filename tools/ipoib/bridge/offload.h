/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_OFFLOAD_H
#define SESSCTL_OFFLOAD_H
/*
 * What a network adapter does for the kernel, here for a TUN device: TCP segments cut from one long
 * packet and checksums on the way out, segments of one flow put together on the way in.  Each
 * packet of such a device has a struct virtio_net_hdr before it.  No I/O.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OFFLOAD_HDR    10u /* octets of a struct virtio_net_hdr */
#define OFFLOAD_PACKET 65535u

/* One IP packet, whole, with its checksums.  OFFLOAD_HDR octets before it may be overwritten. */
typedef void offload_out_fn(void *arg, uint8_t *packet, size_t len);

/*
 * What the device gave: header and packet, @len octets, which are changed.  @out is called for each
 * packet.  Return: how many there were; -1: a header that does not go with the packet.
 */
int offload_out(uint8_t *buf, size_t len, offload_out_fn *out, void *arg);

/* Takes what the device is to get: a header, and a packet in one or two parts. */
typedef void offload_in_fn(void *arg, const uint8_t hdr[OFFLOAD_HDR], const void *packet,
			   size_t len, const void *rest, size_t rest_len);

/* Segments of one flow that wait for more; all zero: none. */
struct offload_in {
	offload_in_fn *in;
	void *arg;
	unsigned n; /* segments */
	bool v6;
	size_t l4, head; /* octets of the IP header; of that and TCP's */
	size_t len;	 /* of the packet that they make */
	size_t size;	 /* payload of each but the last */
	uint32_t seq;	 /* of the next one */
	uint8_t packet[OFFLOAD_PACKET];
};

/* A packet for the device; it may wait until the next call of these two. */
void offload_in(struct offload_in *o, const uint8_t *packet, size_t len);
void offload_in_flush(struct offload_in *o);

#endif
