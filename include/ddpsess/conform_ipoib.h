/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_CONFORM_IPOIB_H
#define DDPSESS_CONFORM_IPOIB_H
/*
 * The conformance suite for nodes of IPoIB in connected mode (RFC 4391, RFC 4392, RFC 4755), and
 * for communication management as far as these need it; part of libddpsess-conform.  It is a peer
 * on an InfiniBand subnet whose packets travel in UDP (<ddpsess/ib_udp.h> says how), and cases that
 * decide what it sends.  "sessctl ipoib conform" is made of these functions.
 *
 * A port of another fabric can be given instead, such as that of an adapter (<ddpsess/ib_verbs.h>).
 * It makes packets, queue pairs and connections itself, so cases that need packets of their own are
 * skipped and say so; MADs and datagrams are the suite's, octet for octet.
 *
 * The target is any node there: found by ARP, made to talk by ICMP echoes, which it has to answer.
 * Packets, MADs, ICRC, queue pairs and the subnet administration of this peer are written a second
 * time, from the specifications; with libddpsess-ipoib it has nothing in common.
 *
 * Results are those of <ddpsess/conform.h>.  One run at a time in a process.
 */
#include <ddpsess/conform.h>
#include <ddpsess/ipoib_port.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of a port that was opened. */
struct ddps_conform_ipoib_node {
	uint8_t gid[16];
	uint32_t qpn; /* of its UD queue pair */
	uint16_t pkey;
	uint16_t reserved;
};

/*
 * A port of a fabric.  It is opened again for each neighbour that the suite is to the target, so
 * each has another UD queue pair.
 */
struct ddps_conform_ipoib_fabric {
	size_t struct_size; /* sizeof(struct ddps_conform_ipoib_fabric) */
	void *user;
	/* A port.  It calls @up with @up_user for what comes in, from inside run() only.  NULL and
	 * a sentence in @why: there is none. */
	struct ddps_ipoib_port *(*open)(void *user, const struct ddps_ipoib_up *up, void *up_user,
					struct ddps_conform_ipoib_node *node, char *why,
					size_t why_len);
	void (*close)(void *user);
	/* Its work, until something has come, at most until @until (ns, CLOCK_MONOTONIC). */
	void (*run)(void *user, uint64_t until);
	/* How many messages on that queue pair the peer has not acknowledged. */
	unsigned (*waiting)(void *user, uint32_t qpn);
};

struct ddps_conform_ipoib_options {
	size_t struct_size; /* set by ddps_conform_ipoib_options_init() */
	/* On the wire */
	uint8_t ip4[4];	      /* own; its last octet is the LID */
	uint8_t broadcast[4]; /* zero: x.x.x.255, or 127.255.255.255 if it is a loopback */
	uint16_t udp_port;
	/* LID of the subnet administration.  0 or the own one: the suite is that, and waits for the
	 * target to join; then cases that look at the target's queries can be run. */
	uint16_t sa_lid;
	uint8_t gid[16]; /* own; fe80::/64 */
	/* On the link */
	uint8_t target[4];   /* the target's IPv4 address */
	uint8_t target6[16]; /* an IPv6 address of it; zero: cases that need one are skipped */
	uint8_t link_ip4[4]; /* the first of the suite's own addresses */
	uint16_t n_link_ip4; /* how many: each case is another neighbour; at least 3 */
	uint16_t pkey;
	uint32_t qkey;	  /* what the administration says, if it is the suite */
	uint8_t mtu;	  /* likewise: 1 = 256 ... 5 = 4096 */
	uint8_t life;	  /* likewise: 5-bit packet lifetime */
	uint8_t thorough; /* 1: each bit of each message is flipped, not one of each octet */
	uint8_t reserved;
	/* Which cases */
	const char *pattern; /* whose name matches, as for file names; NULL: all */
	const char *profile; /* "linux-ib_ipoib", or a file of "CASE WHAT IT DOES" lines; or NULL */
	uint32_t wait_ms;    /* the longest wait for the target; at least 1 */
	uint32_t seed;	     /* random: identifiers of all kinds */
	/* NULL: packets in UDP.  Else ip4, broadcast, udp_port, sa_lid, gid, qkey, mtu and life are
	 * not looked at, the administration is the fabric's, and sa_lid is 0. */
	const struct ddps_conform_ipoib_fabric *fabric;
};

/** ddps_conform_ipoib_options_init_sized - ddps_conform_ipoib_options_init() for languages that
 * cannot call it
 * @o: filled
 * @size: what @o takes in the caller's memory; nothing is written beyond */
DDPS_API void ddps_conform_ipoib_options_init_sized(struct ddps_conform_ipoib_options *o,
						    size_t size);

/**
 * ddps_conform_ipoib_options_init - defaults; ip4, gid, target, link_ip4 and seed have to be set
 *
 * UDP port 4791, the suite is the administration, 64 addresses, P_Key 0xffff, Q_Key 0x80000b1b, MTU
 * 2048, lifetime 18 (1 s), all cases, waits of 15 s.
 */
static inline void ddps_conform_ipoib_options_init(struct ddps_conform_ipoib_options *o)
{
	ddps_conform_ipoib_options_init_sized(o, sizeof(*o));
}

/**
 * ddps_conform_ipoib_case - look at the cases
 * @i:	0, 1, ...
 * @c:	filled on success; wires is DDPS_CONFORM_IB, target and self are 0
 *
 * Return: 0, or DDPS_E_INVAL: there are not so many.
 */
DDPS_API int ddps_conform_ipoib_case(size_t i, struct ddps_conform_case *c);

/**
 * ddps_conform_ipoib_run - run cases, one after the other
 * @o:		what and against whom
 * @calls:	NULL: none
 * @sum:	how many cases had which verdict; may be NULL.  All 0: no case has such a name
 * @why:	on an error one sentence that says what is wrong; may be NULL with @why_len 0
 * @why_len:	its size
 *
 * Blocks until all is done; a wait for the target takes at most wait_ms.  Needs no privilege.
 *
 * Return: 0: it ran, and @sum has the outcome; or DDPS_E_INVAL (@o or @calls), DDPS_E_UNSUPPORTED
 * (something is set behind what this release knows), DDPS_E_ADDRESS (a profile that cannot be
 * read), DDPS_E_SYSTEM (sockets), DDPS_E_REFUSED (the target does not join, or answers no ARP
 * request; the port of a fabric cannot be opened), DDPS_E_NOMEM.
 */
DDPS_API int ddps_conform_ipoib_run(const struct ddps_conform_ipoib_options *o,
				    const struct ddps_conform_calls *calls,
				    struct ddps_conform_sum *sum, char *why, size_t why_len);

#ifdef __cplusplus
}
#endif
#endif
