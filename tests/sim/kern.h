/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_KERN_H
#define SIM_KERN_H
/*
 * A kernel made of a seed: sockets, epoll, timers and the clock, by the linker's --wrap, so that the
 * library runs as it is, many hosts in one process, in simulated time.  TCP streams are cut anywhere,
 * delayed, corrupted and reset; datagrams are lost, doubled, delayed, corrupted and overtake each
 * other; descriptors and memory run out.  What reads or waits never blocks: poll() moves the clock.
 *
 * Host H has the address 10.0.0.(H + 1).  IPv4 only.  Datagrams to a group reach the sockets of all hosts
 * that have joined it, the sender's own, too.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERN_HOSTS 8u

/* Faults by kind, as they are counted. */
#define KERN_FAULTS(X)                                                                             \
	X(short_io, "short reads and writes")                                                      \
	X(again, "sends refused for a while")                                                      \
	X(reset, "resets")                                                                         \
	X(refused, "connects refused or lost")                                                     \
	X(lost, "datagrams lost")                                                                  \
	X(doubled, "datagrams doubled")                                                            \
	X(late, "datagrams late")                                                                  \
	X(corrupt, "octets altered")                                                               \
	X(descriptors, "calls without descriptors")                                                \
	X(memory, "allocations failed")                                                            \
	X(calls, "calls interrupted or failed")                                                    \
	X(icmp, "ICMP errors")                                                                     \
	X(lie, "lies")                                                                             \
	X(nobufs, "sends without memory")

#define KERN_WHO 32u /* hosts, then who the world says */

struct kern_faults { /* the share that meets with each */
#define DDPS_X(name, text) double name;
	KERN_FAULTS(DDPS_X)
#undef DDPS_X
};

struct kern {
	uint64_t now, seed; /* ns */
	unsigned host;	    /* who calls */
	unsigned who;	    /* whose descriptors those are that are made now: kern_be() */
	bool locks_only; /* whoever has none may be cancelled: threads of a library, or one that promises no more */
	struct kern_faults f;
	struct {
#define DDPS_X(name, text) uint64_t name;
		KERN_FAULTS(DDPS_X)
#undef DDPS_X
	} n;
	uint64_t tick; /* ns that a call takes; 0: none */
	uint64_t full; /* ns for which a stream that refuses is full, at most; 0: a moment */
	uint64_t delay, jitter; /* one way */
	size_t window;		/* octets of a stream that are on their way or unread */
	size_t datagrams;	/* of one socket, unread */
	unsigned mtu;
	unsigned liars;	     /* hosts, as bits: what they send goes through kern_lie_...() */
	bool gso, tells;     /* the second: routers say what is too long for them */
	bool sctp;	     /* it has SCTP ... */
	unsigned sctp_udp;   /* ... also in UDP, at this port */
	unsigned streams;    /* ... of so many at most; 0: as many as asked for */
	unsigned program;    /* whose descriptors those are that are made now, for kern_kill() */
	uint64_t dark_until; /* nothing passes between hosts */
	unsigned mute;	/* hosts, as bits, of which nothing is heard: what they end ends silently */
	uint64_t polls; /* calls of poll() */
	uint64_t torn;	/* streams and associations that a program ended with a reset or an ABORT */
	/* One call fails, by its number since the start, in its n-th way; 0: none. */
	uint64_t calls, fail_call;
	unsigned fail_way, ways; /* ways: how many it has */
	bool any_way;		 /* those that fail by chance do so in any of them, not the first */
	uint64_t shortage,
		short_until; /* ns for which from that call on each fails that needs something */
	const char *failed;  /* its name */
	int how;	     /* the errno */
	bool brief;
	/* One allocation fails, or all from that one on, until there is memory again. */
	uint64_t allocations, fail_allocation, fail_until;
	bool fail_on;
	uint64_t live; /* allocations that were not freed, since the process began */
};
extern struct kern kern;

void kern_start(uint64_t seed);
/* Frees what is left; returns how many descriptors nobody has closed. */
unsigned kern_stop(void);
/* Descriptors that are open. */
unsigned kern_open(void);
/* When the next thing happens by itself; UINT64_MAX: never. */
uint64_t kern_next(void);
/* The clock goes there. */
void kern_go(uint64_t at);
/* A program is killed: its datagram sockets are closed, and its descriptors do nothing any more. */
void kern_kill(unsigned program);
/* Reset a stream of @host, any. */
void kern_cut(unsigned host);
/* A NAT in front of it forgets all its sockets for datagrams but that of @but: each seems to have another port, and what
 * is sent to the one before is lost. */
void kern_rebind(unsigned host, uint16_t but);
/*
 * How a call waits until @ready or, then false, until @until.  The usual one lets time pass; a program
 * of several threads has another one, which lets others run.
 */
extern bool (*kern_block)(bool (*ready)(void *arg), void *arg, uint64_t until);
/* What a stream brings instead of @p; false: and then it ends. */
typedef void kern_put(void *to, const uint8_t *p, size_t len);
extern bool (*kern_lie_stream)(void **state, const uint8_t *p, size_t len, kern_put *put, void *to);
struct kern_message { /* of SCTP */
	uint16_t stream;
	uint32_t ppid;
	bool unordered;
	size_t len;
	uint8_t octets[1 << 17];
};
typedef void kern_message_put(void *to, const struct kern_message *m);
/* A message altered; what comes in front of it is put. */
extern void (*kern_lie_message)(struct kern_message *m, kern_message_put *put, void *to);
/* A datagram altered in its place; its new length. */
extern size_t (*kern_lie_packet)(uint8_t *p, size_t len);
/* Sees each datagram that leaves; NULL: nobody looks. */
extern void (*kern_watch)(const uint8_t *p, size_t len);
/* Alters any datagram in its place; its new length.  NULL: nobody does. */
extern size_t (*kern_alter)(uint8_t *p, size_t len);
/*
 * Descriptors made from now on are @who's, or a host's own below KERN_HOSTS.  @owner names it: what
 * happens to one does not depend on what others do.
 */
void kern_be(unsigned who, uint32_t owner);

#endif
