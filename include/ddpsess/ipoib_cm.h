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
 *
 * Threads, in all headers of the library: an object, with those that it was given to, is used by
 * one thread at a time.  Objects that were not given to each other share nothing, so each thread
 * may have some of its own.  The library has no threads.
 *
 * Cancellation, in all headers of the library: what works in memory only is no cancellation point.
 * The ports of <ddpsess/ib_udp.h>, <ddpsess/ib_verbs.h>, <ddpsess/ib_umad.h> and
 * <ddpsess/ib_rdmacm.h> call the system or other libraries, also when an interface calls them.  A
 * thread that is cancelled there leaves objects in the midst of a change: nobody may use or free
 * them any more.  So a thread that may be cancelled calls them with cancellation switched off
 * (pthread_setcancelstate).
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

/* ---- Encapsulation (RFC 4391 6) ---- */

#define DDPS_IPOIB_ENCAP_LEN 4
#define DDPS_IPOIB_GRH_LEN   40 /* room in front of every message received on a UD QP */

/* What a packet is: the type in its encapsulation header, as for Ethernet. */
#define DDPS_IPOIB_TYPE_IPV4 0x0800
#define DDPS_IPOIB_TYPE_ARP  0x0806
#define DDPS_IPOIB_TYPE_RARP 0x8035
#define DDPS_IPOIB_TYPE_IPV6 0x86dd

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

#ifdef __cplusplus
}
#endif

/* The messages of communication management. */
#include <ddpsess/ib_cm_mad.h>
#endif
