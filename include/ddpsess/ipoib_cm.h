/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IPOIB_CM_H
#define DDPSESS_IPOIB_CM_H
/*
 * IP over InfiniBand in connected mode (RFC 4755 on RFC 4391): addresses, packets, MTU and
 * InfiniBand communication management (CM) messages as values and octets.
 *
 * This is the header of a library of its own, libddpsess-ipoib.  It needs nothing of the session
 * stack, nor does that need it: a user of one does not have to link the other.  What the two share
 * are the error values of <ddpsess/err_codes.h>.
 *
 * The connection manager is in <ddpsess/ib_cm.h>, an IPoIB interface in <ddpsess/ipoib_if.h>, what
 * it asks of a fabric in <ddpsess/ipoib_port.h>, and a fabric in memory in <ddpsess/ipoib_sim.h>.
 *
 * Every function here is pure: no I/O, no clock, no heap, no global state; so each is thread safe
 * and none blocks.  Numbers are in host order, octet strings as on the wire.  A decoder leaves its
 * result untouched when it fails.
 */
#include <ddpsess/err_codes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** ddps_ipoib_strerror - the text of a DDPS_E_* value or 0.  Return: a constant string, never
 * NULL. */
DDPS_API const char *ddps_ipoib_strerror(int err);

/* ---- Link-layer address (RFC 4755 3.1) ---- */

#define DDPS_IPOIB_LLADDR_LEN  20
#define DDPS_IPOIB_GID_LEN     16
#define DDPS_IPOIB_RC	       0x80u /* flag: reliable connections supported */
#define DDPS_IPOIB_UC	       0x40u /* flag: unreliable connections supported */
#define DDPS_IPOIB_QPN_MAX     0xffffffu
#define DDPS_IPOIB_QPN_MCAST   0xffffffu
#define DDPS_IPOIB_LLADDR_TEXT 60 /* octets that its text needs, NUL included */
#define DDPS_IPOIB_GID_TEXT    46
#define DDPS_IPOIB_FLAGS_TEXT  8

struct ddps_ipoib_lladdr {
	uint8_t flags; /* DDPS_IPOIB_RC | DDPS_IPOIB_UC; 0 = datagrams only */
	uint32_t qpn;  /* the UD QP of the interface, 24 bits */
	uint8_t gid[DDPS_IPOIB_GID_LEN];
};

/**
 * ddps_ipoib_lladdr_encode - write a link-layer address as 20 octets
 *
 * Return: 0, or DDPS_E_INVAL: a reserved flag is set or the QPN has more than 24 bits.
 */
DDPS_API int ddps_ipoib_lladdr_encode(uint8_t out[DDPS_IPOIB_LLADDR_LEN],
				      const struct ddps_ipoib_lladdr *a);

/**
 * ddps_ipoib_lladdr_decode - read a link-layer address; reserved flags are dropped
 *
 * Return: 0, or DDPS_E_TRUNCATED: @len is below 20.  Octets after the 20th are not read.
 */
DDPS_API int ddps_ipoib_lladdr_decode(struct ddps_ipoib_lladdr *a, const void *buf, size_t len);

/**
 * ddps_ipoib_lladdr_cmp - order two addresses as RFC 4755 3.3 does for crossed requests
 *
 * The flags count as zero; octets are compared from the most significant one, so the QPN decides
 * before the GID.  Two addresses that compare equal name the same neighbour.
 *
 * Return: below, equal to or above 0 as @a is smaller than, equal to or larger than @b.
 */
DDPS_API int ddps_ipoib_lladdr_cmp(const struct ddps_ipoib_lladdr *a,
				   const struct ddps_ipoib_lladdr *b);

/** ddps_ipoib_lladdr_print - "80:00:00:48:fe:80:...": 20 octets, two hex digits each */
DDPS_API void ddps_ipoib_lladdr_print(char text[DDPS_IPOIB_LLADDR_TEXT],
				      const struct ddps_ipoib_lladdr *a);

/** ddps_ipoib_lladdr_parse - the inverse.  Return: 0 or DDPS_E_INVAL. */
DDPS_API int ddps_ipoib_lladdr_parse(struct ddps_ipoib_lladdr *a, const char *text);

/** ddps_ipoib_flags_print - "rc", "uc", "rc,uc" or "ud" (neither) */
DDPS_API void ddps_ipoib_flags_print(char text[DDPS_IPOIB_FLAGS_TEXT], uint8_t flags);

/** ddps_ipoib_flags_parse - the inverse, names in any order.  Return: 0 or DDPS_E_INVAL. */
DDPS_API int ddps_ipoib_flags_parse(uint8_t *flags, const char *text);

/** ddps_ipoib_gid_print - a GID in the text form of an IPv6 address */
DDPS_API void ddps_ipoib_gid_print(char text[DDPS_IPOIB_GID_TEXT],
				   const uint8_t gid[DDPS_IPOIB_GID_LEN]);

/** ddps_ipoib_gid_parse - the inverse.  Return: 0 or DDPS_E_INVAL. */
DDPS_API int ddps_ipoib_gid_parse(uint8_t gid[DDPS_IPOIB_GID_LEN], const char *text);

/* ---- Service ID (RFC 4755 3.5) ---- */

#define DDPS_IPOIB_SERVICE_ID_TEXT 19

enum ddps_ipoib_sid_form {
	DDPS_IPOIB_SID_RFC,   /* 0x01 00 000000 QPN */
	DDPS_IPOIB_SID_LINUX, /* 0x10 00 000000 QPN, what Linux listens on and connects to */
};

/**
 * ddps_ipoib_service_id - the service ID on which an interface listens
 * @sid:	set on success
 * @form:	RFC 4755's, or the one that Linux uses
 * @qpn:	the UD QPN in the link-layer address of that interface
 *
 * Return: 0, or DDPS_E_INVAL: the QPN has more than 24 bits, or no such form.
 */
DDPS_API int ddps_ipoib_service_id(uint64_t *sid, enum ddps_ipoib_sid_form form, uint32_t qpn);

/**
 * ddps_ipoib_service_id_split - which form a service ID has, and its QPN
 *
 * Return: 0, or DDPS_E_PROTOCOL: not a service ID of IPoIB (first octet, type or reserved octets).
 */
DDPS_API int ddps_ipoib_service_id_split(uint64_t sid, enum ddps_ipoib_sid_form *form,
					 uint32_t *qpn);

/** ddps_ipoib_service_id_print - "0x0100000000000048" */
DDPS_API void ddps_ipoib_service_id_print(char text[DDPS_IPOIB_SERVICE_ID_TEXT], uint64_t sid);

/** ddps_ipoib_service_id_parse - the inverse; "0x" and leading zeros may be left out.
 * Return: 0 or DDPS_E_INVAL. */
DDPS_API int ddps_ipoib_service_id_parse(uint64_t *sid, const char *text);

/* ---- CM private data (RFC 4755 6) ---- */

#define DDPS_IPOIB_PRIV_LEN  8
#define DDPS_IPOIB_PRIV_TEXT 17

struct ddps_ipoib_priv {
	uint32_t qpn;	 /* the sender's UD QPN; 0 = not given */
	uint32_t rx_mtu; /* largest message the sender accepts, encapsulation included */
};

/** ddps_ipoib_priv_encode - Return: 0, or DDPS_E_INVAL: the QPN has more than 24 bits. */
DDPS_API int ddps_ipoib_priv_encode(uint8_t out[DDPS_IPOIB_PRIV_LEN],
				    const struct ddps_ipoib_priv *p);

/** ddps_ipoib_priv_decode - Return: 0, or DDPS_E_TRUNCATED: @len is below 8. */
DDPS_API int ddps_ipoib_priv_decode(struct ddps_ipoib_priv *p, const void *buf, size_t len);

/** ddps_ipoib_priv_print - "000000480000fff4" */
DDPS_API void ddps_ipoib_priv_print(char text[DDPS_IPOIB_PRIV_TEXT],
				    const struct ddps_ipoib_priv *p);

/** ddps_ipoib_priv_parse - the inverse, 16 hex digits.  Return: 0 or DDPS_E_INVAL. */
DDPS_API int ddps_ipoib_priv_parse(struct ddps_ipoib_priv *p, const char *text);

/* ---- Encapsulation, ARP, Neighbour Discovery (RFC 4391 6, 9) ---- */

#define DDPS_IPOIB_ENCAP_LEN 4
#define DDPS_IPOIB_ARP_LEN   56
#define DDPS_IPOIB_ND_LEN    24
#define DDPS_IPOIB_GRH_LEN   40 /* room in front of every message received on a UD QP */

#define DDPS_IPOIB_TYPE_IPV4 0x0800
#define DDPS_IPOIB_TYPE_ARP  0x0806
#define DDPS_IPOIB_TYPE_RARP 0x8035
#define DDPS_IPOIB_TYPE_IPV6 0x86dd

/** ddps_ipoib_encap_encode - the header in front of every packet; reserved octets zero */
DDPS_API void ddps_ipoib_encap_encode(uint8_t out[DDPS_IPOIB_ENCAP_LEN], uint16_t type);

/**
 * ddps_ipoib_encap_decode - the type of a message and where its packet starts
 * @type:			the Ethernet type
 * @packet, @packet_len:	point into @buf behind the header
 * @buf, @len:			the message
 *
 * Return: 0, or DDPS_E_TRUNCATED: @len is below 4.
 */
DDPS_API int ddps_ipoib_encap_decode(uint16_t *type, const uint8_t **packet, size_t *packet_len,
				     const void *buf, size_t len);

#define DDPS_IPOIB_ARP_REQUEST 1
#define DDPS_IPOIB_ARP_REPLY   2

struct ddps_ipoib_arp {
	uint16_t op;
	struct ddps_ipoib_lladdr sender, target; /* a request's target: all zero */
	uint8_t sender_ip[4], target_ip[4];
};

/** ddps_ipoib_arp_encode - Return: 0, or DDPS_E_INVAL: an address that cannot be encoded. */
DDPS_API int ddps_ipoib_arp_encode(uint8_t out[DDPS_IPOIB_ARP_LEN],
				   const struct ddps_ipoib_arp *arp);

/**
 * ddps_ipoib_arp_decode - read an ARP packet, without the encapsulation header
 *
 * Return: 0, DDPS_E_TRUNCATED, or DDPS_E_UNSUPPORTED: not hardware type 32 with 20-octet addresses
 * for IPv4.
 */
DDPS_API int ddps_ipoib_arp_decode(struct ddps_ipoib_arp *arp, const void *buf, size_t len);

#define DDPS_IPOIB_ND_SOURCE 1
#define DDPS_IPOIB_ND_TARGET 2

/**
 * ddps_ipoib_nd_encode - a source or target link-layer address option
 *
 * Return: 0, or DDPS_E_INVAL: another option type, or an address that cannot be encoded.
 */
DDPS_API int ddps_ipoib_nd_encode(uint8_t out[DDPS_IPOIB_ND_LEN], uint8_t type,
				  const struct ddps_ipoib_lladdr *a);

/**
 * ddps_ipoib_nd_find - look for a link-layer address option among the options of a message
 * @a:		set if it is found
 * @type:	DDPS_IPOIB_ND_SOURCE or DDPS_IPOIB_ND_TARGET
 * @opts, @len:	all options of a Neighbour Discovery message
 *
 * Return: 1 found, 0 not there, DDPS_E_TRUNCATED (an option runs over the end) or DDPS_E_PROTOCOL
 * (an option of length 0, or this one of a length other than 24).
 */
DDPS_API int ddps_ipoib_nd_find(struct ddps_ipoib_lladdr *a, uint8_t type, const void *opts,
				size_t len);

/* ---- Multicast groups (RFC 4391 4) and the IPv6 interface identifier (RFC 4391 8) ---- */

#define DDPS_IPOIB_SCOPE_DEFAULT 2 /* link-local */

/**
 * ddps_ipoib_mgid_broadcast - the broadcast group of a link
 * @mgid:	set on success
 * @pkey:	partition; the full-membership bit (15) is set in the result
 * @scope:	0..15
 *
 * Return: 0, or DDPS_E_INVAL: a scope above 15.
 */
DDPS_API int ddps_ipoib_mgid_broadcast(uint8_t mgid[DDPS_IPOIB_GID_LEN], uint16_t pkey,
				       uint8_t scope);

/**
 * ddps_ipoib_mgid_ipv4 - the group that carries an IPv4 multicast or broadcast address
 * @mgid:	set on success
 * @ip:		the address
 * @pkey:	partition, as for ddps_ipoib_mgid_broadcast()
 * @scope:	that of the broadcast group of the link, whatever the scope of @ip
 *
 * Return: 0, or DDPS_E_INVAL: not 224.0.0.0/4 nor 255.255.255.255, or a scope above 15.
 */
DDPS_API int ddps_ipoib_mgid_ipv4(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[4],
				  uint16_t pkey, uint8_t scope);

/** ddps_ipoib_mgid_ipv6 - the same for ff00::/8.  Return: 0 or DDPS_E_INVAL. */
DDPS_API int ddps_ipoib_mgid_ipv6(uint8_t mgid[DDPS_IPOIB_GID_LEN], const uint8_t ip[16],
				  uint16_t pkey, uint8_t scope);

/**
 * ddps_ipoib_iid - the IPv6 interface identifier made from a port GUID
 * @iid:	set
 * @guid:	of the port
 * @modified:	the GUID already is a modified EUI-64: its u bit is not toggled
 */
DDPS_API void ddps_ipoib_iid(uint8_t iid[8], const uint8_t guid[8], bool modified);

/* ---- MTU (RFC 4755 5, 7.2) ---- */

#define DDPS_IPOIB_MTU_DEFAULT 2044u	   /* of the IP packet, on a link of MTU 2048 */
#define DDPS_IPOIB_MTU_CM_MAX  65520u	   /* largest that peers in the field accept */
#define DDPS_IPOIB_RX_MTU_MAX  0x80000000u /* 2^31: what RFC 4755 5 allows */
#define DDPS_IPOIB_MTU_MIN_V4  68u
#define DDPS_IPOIB_MTU_MIN_V6  1280u

/** ddps_ipoib_mtu_ud - the IP MTU of datagrams.  Return: it, or 0: @link_mtu below 4. */
DDPS_API uint32_t ddps_ipoib_mtu_ud(uint32_t link_mtu);

/**
 * ddps_ipoib_mtu_cm - the IP MTU of a connection, both ways
 * @rx_local, @rx_remote:	Receive MTU of both ends, from the private data
 *
 * Return: the smaller one less 4, or 0: one of them leaves no room for a packet or is above
 * DDPS_IPOIB_RX_MTU_MAX.
 */
DDPS_API uint32_t ddps_ipoib_mtu_cm(uint32_t rx_local, uint32_t rx_remote);

/* What is known of one destination; zero-initialise, then set ud. */
struct ddps_ipoib_dst_mtu {
	uint32_t ud;   /* IP MTU of datagrams to it */
	uint32_t conn; /* IP MTU of the connection to it that is up, or 0 */
};

/** ddps_ipoib_dst_mtu - the IP MTU towards a destination now */
DDPS_API uint32_t ddps_ipoib_dst_mtu(const struct ddps_ipoib_dst_mtu *d);

enum ddps_ipoib_fit {
	DDPS_IPOIB_FIT_SEND,	 /* as it is */
	DDPS_IPOIB_FIT_FRAGMENT, /* IPv4 without DF: fragment to the MTU */
	DDPS_IPOIB_FIT_TOO_BIG,	 /* answer fragmentation needed / packet too big */
	DDPS_IPOIB_FIT_DROP,	 /* multicast has nobody to answer */
};

/**
 * ddps_ipoib_mtu_fit - what to do with a packet of @len octets
 * @len:	of the IP packet
 * @d:		its destination; for multicast only @d->ud counts
 * @may_split:	an IPv4 packet without the Don't Fragment bit
 * @multicast:	to a multicast or broadcast address, hence never on a connection
 * @mtu:	receives the MTU to fragment to or to report
 */
DDPS_API enum ddps_ipoib_fit ddps_ipoib_mtu_fit(const struct ddps_ipoib_dst_mtu *d, size_t len,
						bool may_split, bool multicast, uint32_t *mtu);

#ifdef __cplusplus
}
#endif

/* The messages of communication management. */
#include <ddpsess/ib_cm_mad.h>
#endif
