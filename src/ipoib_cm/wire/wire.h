/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_IPOIB_WIRE_H
#define DDPS_IPOIB_WIRE_H
/*
 * Codecs and sums that the interface and the tests use and no program does: link-layer addresses as
 * octets, encapsulation, ARP, Neighbour Discovery, groups, MTUs, and two of CM messages.  As
 * <ddpsess/ipoib_cm.h> says of its own: pure, thread safe, not blocking.
 */
#include <ddpsess/ipoib_cm.h>

/**
 * ddps_ipoib_lladdr_encode - write a link-layer address as 20 octets
 * @out:	receives the octets
 * @a:		address
 *
 * Return: 0, or DDPS_E_INVAL: a reserved flag is set or the QPN has more than 24 bits.
 */
int ddps_ipoib_lladdr_encode(uint8_t out[DDPS_IPOIB_LLADDR_LEN], const struct ddps_ipoib_lladdr *a);

/**
 * ddps_ipoib_lladdr_decode - read a link-layer address
 * @a:		receives the address; reserved flags are dropped
 * @buf:	the octets
 * @len:	octets at @buf, 20 or more
 *
 * Return: 0, or DDPS_E_TRUNCATED: @len is below 20.  Octets after the 20th are not read.
 */
int ddps_ipoib_lladdr_decode(struct ddps_ipoib_lladdr *a, const void *buf, size_t len);

/**
 * ddps_ipoib_lladdr_cmp - compare two addresses as RFC 4755 3.3 does for crossed requests
 * @a:		one address
 * @b:		the other
 *
 * The flags count as 0.  Octets are compared from the most significant one, so the QPN decides
 * before the GID.  Two addresses that compare equal name the same neighbour.
 *
 * Return: below, equal to or above 0 as @a is smaller than, equal to or larger than @b.
 */
int ddps_ipoib_lladdr_cmp(const struct ddps_ipoib_lladdr *a, const struct ddps_ipoib_lladdr *b);

/**
 * ddps_ipoib_encap_encode - write the encapsulation header, which is in front of every packet
 * @out:	receives the header; its reserved octets are 0
 * @type:	DDPS_IPOIB_TYPE_*
 */
void ddps_ipoib_encap_encode(uint8_t out[DDPS_IPOIB_ENCAP_LEN], uint16_t type);

/**
 * ddps_ipoib_encap_decode - split a message into its type and its packet
 * @type:	receives the type, which may be any
 * @packet:	receives where the packet begins: a pointer into @buf behind the header
 * @packet_len:	receives the length of the packet in octets, which may be 0
 * @buf:	the message; its reserved octets are ignored
 * @len:	octets at @buf
 *
 * Return: 0, or DDPS_E_TRUNCATED: @len is below 4.
 */
int ddps_ipoib_encap_decode(uint16_t *type, const uint8_t **packet, size_t *packet_len,
			    const void *buf, size_t len);

#define DDPS_IPOIB_ARP_LEN 56
#define DDPS_IPOIB_ND_LEN  24

#define DDPS_IPOIB_ARP_REQUEST 1
#define DDPS_IPOIB_ARP_REPLY   2

/* An ARP packet for IPv4 (RFC 4391 9.2). */
struct ddps_ipoib_arp {
	uint16_t op;				 /* DDPS_IPOIB_ARP_* */
	struct ddps_ipoib_lladdr sender, target; /* a request's target: all zero */
	uint8_t sender_ip[4], target_ip[4];
};

/**
 * ddps_ipoib_arp_encode - write an ARP packet, without the encapsulation header
 * @out:	receives the packet
 * @arp:	what it says
 *
 * Return: 0, or DDPS_E_INVAL: an address that cannot be encoded, as for ddps_ipoib_lladdr_encode().
 */
int ddps_ipoib_arp_encode(uint8_t out[DDPS_IPOIB_ARP_LEN], const struct ddps_ipoib_arp *arp);

/**
 * ddps_ipoib_arp_decode - read an ARP packet, without the encapsulation header
 * @arp:	receives what it says; op may have any value
 * @buf:	the packet
 * @len:	octets at @buf.  Those after the 56th are not read
 *
 * Return: 0, or
 * - DDPS_E_TRUNCATED: @len is below 56
 * - DDPS_E_UNSUPPORTED: not hardware type 32 with 20-octet addresses for IPv4
 */
int ddps_ipoib_arp_decode(struct ddps_ipoib_arp *arp, const void *buf, size_t len);

/* Options of Neighbour Discovery (RFC 4391 9.3). */
#define DDPS_IPOIB_ND_SOURCE 1 /* source link-layer address */
#define DDPS_IPOIB_ND_TARGET 2 /* target link-layer address */

/**
 * ddps_ipoib_nd_encode - write a source or target link-layer address option
 * @out:	receives the option
 * @type:	DDPS_IPOIB_ND_SOURCE or DDPS_IPOIB_ND_TARGET
 * @a:		the address in it
 *
 * Return: 0, or DDPS_E_INVAL: another option type, or an address that cannot be encoded.
 */
int ddps_ipoib_nd_encode(uint8_t out[DDPS_IPOIB_ND_LEN], uint8_t type,
			 const struct ddps_ipoib_lladdr *a);

/**
 * ddps_ipoib_nd_find - look for a link-layer address option among the options of a message
 * @a:		receives the address of the first such option, if there is one
 * @type:	DDPS_IPOIB_ND_SOURCE or DDPS_IPOIB_ND_TARGET
 * @opts:	all options of a Neighbour Discovery message
 * @len:	octets at @opts
 *
 * Options behind the one that is found are not looked at.
 *
 * Return: 1: found, 0: not there, or
 * - DDPS_E_TRUNCATED: an option runs over the end
 * - DDPS_E_PROTOCOL: an option of length 0, or this one of a length other than 24 octets
 */
int ddps_ipoib_nd_find(struct ddps_ipoib_lladdr *a, uint8_t type, const void *opts, size_t len);

/**
 * ddps_ipoib_mgid_ipv4 - the MGID of the group that carries an IPv4 multicast or broadcast address
 * @mgid:	receives the MGID; unchanged on failure
 * @ip:		the address, octets as on the wire
 * @pkey:	partition, as for ddps_ipoib_mgid_broadcast()
 * @scope:	that of the broadcast group of the link, whatever the scope of @ip
 *
 * Return: 0, or DDPS_E_INVAL: not 224.0.0.0/4 nor 255.255.255.255, or a scope above 15.
 */
int ddps_ipoib_mgid_ipv4(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[4], uint16_t pkey,
			 uint8_t scope);

/**
 * ddps_ipoib_mgid_ipv6 - the MGID of the group that carries an IPv6 multicast address
 * @mgid:	receives the MGID; unchanged on failure
 * @ip:		the address, octets as on the wire
 * @pkey:	partition, as for ddps_ipoib_mgid_broadcast()
 * @scope:	as for ddps_ipoib_mgid_ipv4()
 *
 * Return: 0, or DDPS_E_INVAL: not in ff00::/8, or a scope above 15.
 */
int ddps_ipoib_mgid_ipv6(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[16], uint16_t pkey,
			 uint8_t scope);

/**
 * ddps_ipoib_mtu_cm - the IP MTU of a connection, in both directions
 * @rx_local:	Receive MTU of this end, in octets
 * @rx_remote:	Receive MTU of the other end, from its private data
 *
 * Return: the smaller one less 4, in octets, or 0: one of them is below 5 or above
 * DDPS_IPOIB_RX_MTU_MAX.
 */
uint32_t ddps_ipoib_mtu_cm(uint32_t rx_local, uint32_t rx_remote);

/* What is known of one destination.  Set it to 0, then set ud. */
struct ddps_ipoib_dst_mtu {
	uint32_t ud;   /* IP MTU of datagrams to it, in octets */
	uint32_t conn; /* IP MTU of the connection to it that is up, in octets, or 0 */
};

/**
 * ddps_ipoib_dst_mtu - the IP MTU towards a destination now
 * @d:		destination
 *
 * Return: the MTU of the connection if there is one, else that of datagrams, in octets.
 */
uint32_t ddps_ipoib_dst_mtu(const struct ddps_ipoib_dst_mtu *d);

/* What to do with a packet. */
enum ddps_ipoib_fit {
	DDPS_IPOIB_FIT_SEND,	 /* it fits: send it as it is */
	DDPS_IPOIB_FIT_FRAGMENT, /* IPv4 without DF: fragment it to the MTU */
	DDPS_IPOIB_FIT_TOO_BIG,	 /* answer with "fragmentation needed" or "packet too big" */
	DDPS_IPOIB_FIT_DROP,	 /* multicast: drop it without an answer */
};

/**
 * ddps_ipoib_mtu_fit - what to do with a packet
 * @d:		its destination; for multicast only @d->ud counts
 * @len:	length of the IP packet, in octets
 * @may_split:	it is an IPv4 packet without the Don't Fragment bit
 * @multicast:	it goes to a multicast or broadcast address, hence never on a connection
 * @mtu:	receives the MTU to fragment to or to report, in octets; always set
 *
 * Return: one of enum ddps_ipoib_fit.
 */
enum ddps_ipoib_fit ddps_ipoib_mtu_fit(const struct ddps_ipoib_dst_mtu *d, size_t len,
				       bool may_split, bool multicast, uint32_t *mtu);

/**
 * ddps_cm_private_data - the private data of a message
 * @mad:	message with a valid hdr.attr_id
 * @len:	receives how many octets it has, 92..224
 *
 * Return: where it is in @mad, or NULL: the attribute ID is unknown.
 */
uint8_t *ddps_cm_private_data(struct ddps_cm_mad *mad, size_t *len);

/**
 * ddps_cm_time_code - the 5-bit time for a duration
 * @ns:	nanoseconds
 *
 * Return: the smallest 5-bit time that is not below @ns; 31 if none is.
 */
uint8_t ddps_cm_time_code(uint64_t ns);

#endif
