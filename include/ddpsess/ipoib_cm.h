/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_CM_H
#define DDPSESS_IPOIB_CM_H
/*
 * IP over InfiniBand in connected mode (RFC 4755 on RFC 4391), as values and octets: addresses,
 * packets, MTUs, and the messages of communication management (CM).
 *
 * This header belongs to a library of its own, libddpsess-ipoib.  That library and the session
 * stack, libddpsess, need nothing of each other: a user of one does not have to link the other.
 * They share only the error values of <ddpsess/err_codes.h>.
 *
 * Other headers of libddpsess-ipoib:
 *
 *	<ddpsess/ib_cm_mad.h>	CM messages; this header includes it
 *	<ddpsess/ib_cm.h>	a connection manager
 *	<ddpsess/ipoib_if.h>	an IPoIB interface
 *	<ddpsess/ipoib_port.h>	what an interface needs of a fabric
 *	<ddpsess/ipoib_sim.h>	a fabric in memory
 *
 * Every function here is pure: no I/O, no clock, no heap, no global state.  So each is thread safe,
 * and none blocks.
 *
 * Numbers are in host order.  Octet strings are as on the wire.  A decoder leaves its result
 * untouched when it fails.
 */
#include <ddpsess/err_codes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ddps_ipoib_strerror - the text of an error
 * @err:	DDPS_E_*, 0, or any other value
 *
 * Return: a constant string, never NULL; "unknown error" for a value that is no error.
 */
DDPS_API const char *ddps_ipoib_strerror(int err);

/* ---- Link-layer address (RFC 4755 3.1) ---- */

#define DDPS_IPOIB_LLADDR_LEN  20
#define DDPS_IPOIB_GID_LEN     16
#define DDPS_IPOIB_RC	       0x80u /* flag: reliable connections supported */
#define DDPS_IPOIB_UC	       0x40u /* flag: unreliable connections supported */
#define DDPS_IPOIB_QPN_MAX     0xffffffu
#define DDPS_IPOIB_QPN_MCAST   0xffffffu /* stands for a multicast group */
#define DDPS_IPOIB_LLADDR_TEXT 60	 /* octets that its text needs, NUL included */
#define DDPS_IPOIB_GID_TEXT    46	 /* the same for a GID */
#define DDPS_IPOIB_FLAGS_TEXT  8	 /* the same for the flags */

/* The address of an IPoIB interface on its link. */
struct ddps_ipoib_lladdr {
	uint8_t flags;			 /* DDPS_IPOIB_RC | DDPS_IPOIB_UC; 0 = datagrams only */
	uint32_t qpn;			 /* the UD QP of the interface, 24 bits */
	uint8_t gid[DDPS_IPOIB_GID_LEN]; /* of its port */
};

/**
 * ddps_ipoib_lladdr_encode - write a link-layer address as 20 octets
 * @out:	receives the octets
 * @a:		address
 *
 * Return: 0, or DDPS_E_INVAL: a reserved flag is set or the QPN has more than 24 bits.
 */
DDPS_API int ddps_ipoib_lladdr_encode(uint8_t out[DDPS_IPOIB_LLADDR_LEN],
				      const struct ddps_ipoib_lladdr *a);

/**
 * ddps_ipoib_lladdr_decode - read a link-layer address
 * @a:		receives the address; reserved flags are dropped
 * @buf:	the octets
 * @len:	octets at @buf, 20 or more
 *
 * Return: 0, or DDPS_E_TRUNCATED: @len is below 20.  Octets after the 20th are not read.
 */
DDPS_API int ddps_ipoib_lladdr_decode(struct ddps_ipoib_lladdr *a, const void *buf, size_t len);

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
DDPS_API int ddps_ipoib_lladdr_cmp(const struct ddps_ipoib_lladdr *a,
				   const struct ddps_ipoib_lladdr *b);

/**
 * ddps_ipoib_lladdr_print - the text of a link-layer address
 * @text:	receives "80:00:00:48:fe:80:...": 20 octets, two hex digits each
 * @a:		address
 */
DDPS_API void ddps_ipoib_lladdr_print(char text[DDPS_IPOIB_LLADDR_TEXT],
				      const struct ddps_ipoib_lladdr *a);

/**
 * ddps_ipoib_lladdr_parse - read a link-layer address from its text
 * @a:		receives the address; reserved flags are dropped
 * @text:	as ddps_ipoib_lladdr_print() writes it
 *
 * Return: 0, or DDPS_E_INVAL: @text has another form.
 */
DDPS_API int ddps_ipoib_lladdr_parse(struct ddps_ipoib_lladdr *a, const char *text);

/**
 * ddps_ipoib_flags_print - the text of the flags of a link-layer address
 * @text:	receives "rc", "uc", "rc,uc" or "ud" (neither)
 * @flags:	reserved flags are ignored
 */
DDPS_API void ddps_ipoib_flags_print(char text[DDPS_IPOIB_FLAGS_TEXT], uint8_t flags);

/**
 * ddps_ipoib_flags_parse - read flags from their text
 * @flags:	receives the flags
 * @text:	as ddps_ipoib_flags_print() writes it, or with the names in any order
 *
 * Return: 0, or DDPS_E_INVAL: @text has another form.
 */
DDPS_API int ddps_ipoib_flags_parse(uint8_t *flags, const char *text);

/**
 * ddps_ipoib_gid_print - a GID in the text form of an IPv6 address
 * @text:	receives the text
 * @gid:	GID
 */
DDPS_API void ddps_ipoib_gid_print(char text[DDPS_IPOIB_GID_TEXT],
				   const uint8_t gid[DDPS_IPOIB_GID_LEN]);

/**
 * ddps_ipoib_gid_parse - read a GID from its text
 * @gid:	receives the GID
 * @text:	an IPv6 address
 *
 * Return: 0, or DDPS_E_INVAL: @text is no IPv6 address.
 */
DDPS_API int ddps_ipoib_gid_parse(uint8_t gid[DDPS_IPOIB_GID_LEN], const char *text);

/* ---- Service ID (RFC 4755 3.5) ---- */

#define DDPS_IPOIB_SERVICE_ID_TEXT 19 /* octets that its text needs, NUL included */

/* The two forms in use.  The last three octets are the QPN. */
enum ddps_ipoib_sid_form {
	DDPS_IPOIB_SID_RFC,   /* 0x01 00 000000 QPN: RFC 4755 3.5 */
	DDPS_IPOIB_SID_LINUX, /* 0x10 00 000000 QPN: what Linux listens on and connects to */
};

/**
 * ddps_ipoib_service_id - the service ID on which an interface listens
 * @sid:	receives the service ID; unchanged on failure
 * @form:	of the service ID
 * @qpn:	the UD QPN in the link-layer address of that interface
 *
 * Return: 0, or DDPS_E_INVAL: the QPN has more than 24 bits, or no such form.
 */
DDPS_API int ddps_ipoib_service_id(uint64_t *sid, enum ddps_ipoib_sid_form form, uint32_t qpn);

/**
 * ddps_ipoib_service_id_split - the form of a service ID, and its QPN
 * @sid:	service ID
 * @form:	receives the form
 * @qpn:	receives the QPN
 *
 * Return: 0, or DDPS_E_PROTOCOL: not a service ID of IPoIB (first octet, type or reserved octets).
 */
DDPS_API int ddps_ipoib_service_id_split(uint64_t sid, enum ddps_ipoib_sid_form *form,
					 uint32_t *qpn);

/**
 * ddps_ipoib_service_id_print - the text of a service ID
 * @text:	receives the text, such as "0x0100000000000048"
 * @sid:	service ID
 */
DDPS_API void ddps_ipoib_service_id_print(char text[DDPS_IPOIB_SERVICE_ID_TEXT], uint64_t sid);

/**
 * ddps_ipoib_service_id_parse - read a service ID from its text
 * @sid:	receives the service ID
 * @text:	1 to 16 hex digits; "0x" and leading zeros may be left out
 *
 * Return: 0, or DDPS_E_INVAL: @text has another form.
 */
DDPS_API int ddps_ipoib_service_id_parse(uint64_t *sid, const char *text);

/* ---- CM private data (RFC 4755 6) ---- */

#define DDPS_IPOIB_PRIV_LEN  8
#define DDPS_IPOIB_PRIV_TEXT 17 /* octets that its text needs, NUL included */

/* The private data of CM messages. */
struct ddps_ipoib_priv {
	uint32_t qpn; /* the sender's UD QPN, 24 bits; 0 = not given */
	/* Receive MTU: octets of the largest message that the sender accepts, encapsulation header
	 * included. */
	uint32_t rx_mtu;
};

/**
 * ddps_ipoib_priv_encode - write private data as 8 octets
 * @out:	receives the octets
 * @p:		private data
 *
 * Return: 0, or DDPS_E_INVAL: the QPN has more than 24 bits.
 */
DDPS_API int ddps_ipoib_priv_encode(uint8_t out[DDPS_IPOIB_PRIV_LEN],
				    const struct ddps_ipoib_priv *p);

/**
 * ddps_ipoib_priv_decode - read private data
 * @p:		receives the private data; the reserved octet is ignored
 * @buf:	the octets
 * @len:	octets at @buf, 8 or more.  Those after the 8th are not read
 *
 * Return: 0, or DDPS_E_TRUNCATED: @len is below 8.
 */
DDPS_API int ddps_ipoib_priv_decode(struct ddps_ipoib_priv *p, const void *buf, size_t len);

/**
 * ddps_ipoib_priv_print - the text of private data
 * @text:	receives 16 hex digits, such as "000000480000fff4"
 * @p:		private data
 */
DDPS_API void ddps_ipoib_priv_print(char text[DDPS_IPOIB_PRIV_TEXT],
				    const struct ddps_ipoib_priv *p);

/**
 * ddps_ipoib_priv_parse - read private data from its text
 * @p:		receives the private data
 * @text:	16 hex digits, as ddps_ipoib_priv_print() writes them
 *
 * Return: 0, or DDPS_E_INVAL: @text has another form.
 */
DDPS_API int ddps_ipoib_priv_parse(struct ddps_ipoib_priv *p, const char *text);

/* ---- Encapsulation, ARP, Neighbour Discovery (RFC 4391 6, 9) ---- */

#define DDPS_IPOIB_ENCAP_LEN 4
#define DDPS_IPOIB_ARP_LEN   56
#define DDPS_IPOIB_ND_LEN    24
#define DDPS_IPOIB_GRH_LEN   40 /* room in front of every message received on a UD QP */

/* What a packet is: the type in its encapsulation header, as for Ethernet. */
#define DDPS_IPOIB_TYPE_IPV4 0x0800
#define DDPS_IPOIB_TYPE_ARP  0x0806
#define DDPS_IPOIB_TYPE_RARP 0x8035
#define DDPS_IPOIB_TYPE_IPV6 0x86dd

/**
 * ddps_ipoib_encap_encode - write the encapsulation header, which is in front of every packet
 * @out:	receives the header; its reserved octets are 0
 * @type:	DDPS_IPOIB_TYPE_*
 */
DDPS_API void ddps_ipoib_encap_encode(uint8_t out[DDPS_IPOIB_ENCAP_LEN], uint16_t type);

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
DDPS_API int ddps_ipoib_encap_decode(uint16_t *type, const uint8_t **packet, size_t *packet_len,
				     const void *buf, size_t len);

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
DDPS_API int ddps_ipoib_arp_encode(uint8_t out[DDPS_IPOIB_ARP_LEN],
				   const struct ddps_ipoib_arp *arp);

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
DDPS_API int ddps_ipoib_arp_decode(struct ddps_ipoib_arp *arp, const void *buf, size_t len);

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
DDPS_API int ddps_ipoib_nd_encode(uint8_t out[DDPS_IPOIB_ND_LEN], uint8_t type,
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
DDPS_API int ddps_ipoib_nd_find(struct ddps_ipoib_lladdr *a, uint8_t type, const void *opts,
				size_t len);

/* ---- Multicast groups (RFC 4391 4) and the IPv6 interface identifier (RFC 4391 8) ---- */

#define DDPS_IPOIB_SCOPE_DEFAULT 2 /* link-local */

/**
 * ddps_ipoib_mgid_broadcast - the MGID of the broadcast group of a link
 * @mgid:	receives the MGID; unchanged on failure
 * @pkey:	partition; the full-membership bit (15) is set in the result
 * @scope:	0..15, DDPS_IPOIB_SCOPE_DEFAULT as a rule
 *
 * Return: 0, or DDPS_E_INVAL: @scope is above 15.
 */
DDPS_API int ddps_ipoib_mgid_broadcast(uint8_t mgid[DDPS_IPOIB_GID_LEN], uint16_t pkey,
				       uint8_t scope);

/**
 * ddps_ipoib_mgid_ipv4 - the MGID of the group that carries an IPv4 multicast or broadcast address
 * @mgid:	receives the MGID; unchanged on failure
 * @ip:		the address, octets as on the wire
 * @pkey:	partition, as for ddps_ipoib_mgid_broadcast()
 * @scope:	that of the broadcast group of the link, whatever the scope of @ip
 *
 * Return: 0, or DDPS_E_INVAL: not 224.0.0.0/4 nor 255.255.255.255, or a scope above 15.
 */
DDPS_API int ddps_ipoib_mgid_ipv4(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[4],
				  uint16_t pkey, uint8_t scope);

/**
 * ddps_ipoib_mgid_ipv6 - the MGID of the group that carries an IPv6 multicast address
 * @mgid:	receives the MGID; unchanged on failure
 * @ip:		the address, octets as on the wire
 * @pkey:	partition, as for ddps_ipoib_mgid_broadcast()
 * @scope:	as for ddps_ipoib_mgid_ipv4()
 *
 * Return: 0, or DDPS_E_INVAL: not in ff00::/8, or a scope above 15.
 */
DDPS_API int ddps_ipoib_mgid_ipv6(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[16],
				  uint16_t pkey, uint8_t scope);

/**
 * ddps_ipoib_iid - the IPv6 interface identifier made from a port GUID
 * @iid:	receives the identifier; may be @guid
 * @guid:	of the port, octets as on the wire
 * @modified:	the GUID already is a modified EUI-64: its u bit is not toggled
 */
DDPS_API void ddps_ipoib_iid(uint8_t iid[8], const uint8_t guid[8], bool modified);

/* ---- MTU (RFC 4755 5, 7.2) ---- */

#define DDPS_IPOIB_MTU_DEFAULT 2044u	   /* of the IP packet, on a link of MTU 2048 */
#define DDPS_IPOIB_MTU_CM_MAX  65520u	   /* largest that peers in the field accept */
#define DDPS_IPOIB_RX_MTU_MAX  0x80000000u /* 2^31: what RFC 4755 5 allows */
#define DDPS_IPOIB_MTU_MIN_V4  68u	   /* what every IPv4 link has to carry */
#define DDPS_IPOIB_MTU_MIN_V6  1280u	   /* what every IPv6 link has to carry */

/**
 * ddps_ipoib_mtu_ud - the IP MTU of datagrams
 * @link_mtu:	octets of a datagram on the link, encapsulation header included
 *
 * Return: @link_mtu less 4, in octets, or 0: @link_mtu is below 4.
 */
DDPS_API uint32_t ddps_ipoib_mtu_ud(uint32_t link_mtu);

/**
 * ddps_ipoib_mtu_cm - the IP MTU of a connection, in both directions
 * @rx_local:	Receive MTU of this end, in octets
 * @rx_remote:	Receive MTU of the other end, from its private data
 *
 * Return: the smaller one less 4, in octets, or 0: one of them is below 5 or above
 * DDPS_IPOIB_RX_MTU_MAX.
 */
DDPS_API uint32_t ddps_ipoib_mtu_cm(uint32_t rx_local, uint32_t rx_remote);

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
DDPS_API uint32_t ddps_ipoib_dst_mtu(const struct ddps_ipoib_dst_mtu *d);

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
DDPS_API enum ddps_ipoib_fit ddps_ipoib_mtu_fit(const struct ddps_ipoib_dst_mtu *d, size_t len,
						bool may_split, bool multicast, uint32_t *mtu);

#ifdef __cplusplus
}
#endif

/* The messages of communication management. */
#include <ddpsess/ib_cm_mad.h>
#endif
