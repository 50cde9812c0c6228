/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_ADVERT_H
#define DDPSESS_ADVERT_H
/*
 * The advert: what one program sends another one to say where in its memory that may read or write.
 * It travels in private data or in a message.  RDMA itself has no form for it, so each program could
 * have its own; this one is what the C and the Python programs of this library share.
 *
 * An advert is DDPS_ADVERT_LEN octets on the wire, numbers in network order:
 *
 *	octets 0-3	the STag
 *	octets 4-11	the tagged offset of the first octet
 *	octets 12-19	how many octets there are
 *
 * A length of 0 says that there is no memory.  An advert gives no right by itself: the region has to be
 * registered with DDPS_REMOTE_READ or DDPS_REMOTE_WRITE, and stays valid until ddps_mr_dereg.
 */
#include <ddpsess/err.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_ADVERT_LEN 20

/* Memory of the peer, or of this program as the peer is to see it. */
struct ddps_advert {
	uint64_t to;	   /* tagged offset of the first octet: @to of struct ddps_send_wr */
	uint64_t length;   /* octets */
	uint32_t stag;	   /* @stag of struct ddps_send_wr */
	uint32_t reserved; /* 0 */
};

/**
 * ddps_advert_encode - write an advert as octets
 * @out:	receives DDPS_ADVERT_LEN octets
 * @a:		advert
 *
 * Thread safe.  Never blocks.
 */
DDPS_API void ddps_advert_encode(uint8_t out[DDPS_ADVERT_LEN], const struct ddps_advert *a);

/**
 * ddps_advert_decode - read the advert of a peer
 * @a:		receives it; unchanged on failure
 * @buf:	octets of the peer
 * @len:	octets at @buf
 *
 * What it says is the peer's word.  Wrong values end the session when they are used, and harm
 * nothing here.
 *
 * Thread safe.  Never blocks.
 *
 * Return: 0, or DDPS_E_PROTOCOL: @len is not DDPS_ADVERT_LEN, or the memory would run beyond 2^64.
 */
DDPS_API int ddps_advert_decode(struct ddps_advert *a, const void *buf, size_t len);

#ifdef __cplusplus
}
#endif
#endif
