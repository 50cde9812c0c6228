/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_CONFORM_IPOIB_H
#define DDPSESS_CONFORM_IPOIB_H
/*
 * The conformance suite for nodes of IPoIB in connected mode (RFC 4391, RFC 4392, RFC 4755), and
 * for communication management as far as these need it.  It consists of a peer and of cases, which
 * decide what the peer sends and what must come back.  The command "sessctl ipoib conform" uses
 * these functions.
 *
 * The peer is a node on an InfiniBand subnet whose packets travel in UDP; <ddpsess/ib_udp.h> says
 * how.  The target is any other node there.  The suite finds it by ARP, and makes it talk by ICMP
 * echo requests, which it has to answer.
 *
 * Instead of UDP the suite can use a port of another fabric, such as that of an adapter
 * (<ddpsess/ib_verbs.h>).  Such a port makes packets and queue pairs itself.  So cases that need
 * packets of their own are skipped, and their results say so.  MADs and datagrams are still the
 * suite's, octet for octet.
 *
 * What the peer shares with libddpsess-ipoib.  Packets, MADs, ICRC, queue pairs and the subnet
 * administration of the peer are written a second time, from the specifications: with
 * libddpsess-ipoib it has nothing in common.
 *
 * Cases, results and counts are those of <ddpsess/conform.h>.
 *
 * Threads: one run at a time in a process.  Part of libddpsess-conform.
 */
#include <ddpsess/conform.h>
#include <ddpsess/ipoib_port.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of a port that was opened. */
struct ddps_conform_ipoib_node {
	uint8_t gid[16];
	uint32_t qpn;  /* of its UD queue pair */
	uint16_t pkey; /* of the link */
	uint16_t reserved;
};

/*
 * How to use a port of a fabric.  It is opened again for each neighbour that the suite is to the
 * target, so that each has another UD queue pair.  All functions are required.
 */
struct ddps_conform_ipoib_fabric {
	size_t struct_size; /* sizeof(struct ddps_conform_ipoib_fabric) */
	void *user;	    /* the first argument of all functions */
	/*
	 * Opens the port.  It calls the functions of @up, with @up_user as user, only from inside
	 * run.  @node receives what is known of the port.
	 *
	 * Return: the port, or NULL: it cannot be opened, and @why has a sentence that says why.
	 */
	struct ddps_ipoib_port *(*open)(void *user, const struct ddps_ipoib_up *up, void *up_user,
					struct ddps_conform_ipoib_node *node, char *why,
					size_t why_len);
	/* Closes the port. */
	void (*close)(void *user);
	/* Lets the port work until something has come, at most until @until, which is nanoseconds
	 * of CLOCK_MONOTONIC. */
	void (*run)(void *user, uint64_t until);
	/* Return: how many messages sent on a queue pair the target has not acknowledged. */
	unsigned (*waiting)(void *user, uint32_t qpn);
};

/* What to run, and against what.  Strings and @fabric are borrowed for the run. */
struct ddps_conform_ipoib_options {
	size_t struct_size; /* set by ddps_conform_ipoib_options_init() */
	/* On the wire */
	uint8_t ip4[4];	      /* the suite's; its last octet, 1..254, is the LID */
	uint8_t broadcast[4]; /* zero: x.x.x.255, or 127.255.255.255 if it is a loopback */
	uint16_t udp_port;    /* of all nodes; not 0 */
	/* LID of the subnet administration.  0 or the LID of ip4: the suite is the administration,
	 * and waits for the target to join; then cases that look at the target's queries can be
	 * run. */
	uint16_t sa_lid;
	uint8_t gid[16]; /* the suite's, in fe80::/64 */
	/* On the link */
	uint8_t target[4];   /* the target's IPv4 address */
	uint8_t target6[16]; /* an IPv6 address of it; zero: cases that need one are skipped */
	/* The first of the suite's own addresses on the link, and how many it has: 3 or more.  For
	 * each case the suite is another neighbour, with another address.  The target's is not
	 * among them. */
	uint8_t link_ip4[4];
	uint16_t n_link_ip4;
	uint16_t pkey; /* of the link; bit 15 alone is no P_Key */
	/* What the administration says, if it is the suite: Q_Key, MTU 1 = 256 ... 5 = 4096 octets,
	 * packet lifetime 0..31 for 4.096 us * 2^life. */
	uint32_t qkey;
	uint8_t mtu;
	uint8_t life;
	uint8_t thorough; /* 1: flip each bit of each message, 0: one bit of each octet */
	uint8_t reserved; /* 0 */
	/* Which cases */
	const char *pattern; /* those whose name matches, as for file names; NULL: all */
	/* What is known of the target already: "linux-ib_ipoib", or a file as for struct
	 * ddps_conform_options; NULL: none. */
	const char *profile;
	/* The longest wait for the target, in milliseconds, 1..INT32_MAX.  Waits for what never came
	 * before, or for ARP of a target that is gone, take a quarter of the one before. */
	uint32_t wait_ms;
	uint32_t seed; /* random: for identifiers of all kinds */
	/* NULL: packets in UDP.  With a fabric the port has its own addresses, P_Key and link, and
	 * the administration is the fabric's.  Then ip4, broadcast and gid are ignored, sa_lid is
	 * 0, and udp_port, pkey, qkey, mtu and life may keep their defaults. */
	const struct ddps_conform_ipoib_fabric *fabric;
};

/**
 * ddps_conform_ipoib_options_init_sized - ddps_conform_ipoib_options_init() for languages that
 * cannot call it
 * @o:		receives the defaults
 * @size:	the size of @o in the caller's memory, in octets; nothing is written beyond
 */
DDPS_API void ddps_conform_ipoib_options_init_sized(struct ddps_conform_ipoib_options *o,
						    size_t size);

/**
 * ddps_conform_ipoib_options_init - fill in the defaults
 * @o:		receives the defaults; the program sets at least ip4, gid, target, link_ip4 and seed
 *
 * The defaults are: UDP port 4791, the suite is the administration, 64 addresses, P_Key 0xffff,
 * Q_Key 0x80000b1b, MTU 2048, lifetime 18 (1 s), all cases, waits of 15 s.
 */
static inline void ddps_conform_ipoib_options_init(struct ddps_conform_ipoib_options *o)
{
	ddps_conform_ipoib_options_init_sized(o, sizeof(*o));
}

/**
 * ddps_conform_ipoib_case - read the list of cases
 * @i:		which one, from 0 on
 * @c:		receives the case; unchanged on failure.  wires is DDPS_CONFORM_IB, target and self
 *		are 0
 *
 * Thread safe.  Does not block.
 *
 * Return: 0, or DDPS_E_INVAL: there are not so many.
 */
DDPS_API int ddps_conform_ipoib_case(size_t i, struct ddps_conform_case *c);

/**
 * ddps_conform_ipoib_run - run cases, one after the other
 * @o:		what to run, and against what
 * @calls:	NULL: none
 * @sum:	receives the counts on success; may be NULL.  If all are 0, no case matches the
 *		pattern
 * @why:	receives, on an error one sentence that says what is wrong; may be NULL if @why_len
 *		is 0
 * @why_len:	octets of room at @why
 *
 * Blocks until all cases are done, or @calls ends the run.  A wait for the target takes at most
 * wait_ms.  The suite itself needs no privilege.
 *
 * Return: 0: it ran, whatever the verdicts are; or
 * - DDPS_E_INVAL: a member of @o is out of range, or a struct_size is below that of this release
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_ADDRESS: the profile cannot be read
 * - DDPS_E_SYSTEM: the UDP sockets cannot be opened
 * - DDPS_E_REFUSED: the target does not join, or answers no ARP request or request for a
 *   connection; or the port of a fabric cannot be opened, or cannot join
 * - DDPS_E_NOMEM
 */
DDPS_API int ddps_conform_ipoib_run(const struct ddps_conform_ipoib_options *o,
				    const struct ddps_conform_calls *calls,
				    struct ddps_conform_sum *sum, char *why, size_t why_len);

#ifdef __cplusplus
}
#endif
#endif
