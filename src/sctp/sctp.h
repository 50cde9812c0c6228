/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_H
#define DDPS_SCTP_H
/*
 * SCTP (RFC 9260): an engine that does no I/O.
 *
 * Datagrams and the time go in, datagrams come out, one deadline is asked for, events come up.
 * One engine holds all endpoints and associations that share it; several engines do not know of
 * each other.  An engine is used by one thread at a time.  No function blocks.
 *
 * Time is in nanoseconds of a monotonic clock.  A time earlier than one given before counts as
 * that one.
 *
 * Turn of the user's loop:
 *
 *	ddps_sctp_input()	whatever was received, a batch at a time
 *	ddps_sctp_tick()	when ddps_sctp_deadline() has come
 *	ddps_sctp_output()	until it says 0: after input, after tick, after sends
 *
 * Upcalls are made from ddps_sctp_input(), ddps_sctp_icmp() and ddps_sctp_tick() only.  From
 * inside an upcall every function may be called but these three and ddps_sctp_free().  After
 * ddps_sctp_assoc_free() nothing is called for that association any more.
 *
 * "Packet" means one SCTP packet: over UDP the payload of a datagram, else what follows the IP
 * header.  Ports are in host order, addresses are octets in network order.
 */
#include <ddpsess/err.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct ddps_sctp;	/* an engine */
struct ddps_sctp_port;	/* a listener */
struct ddps_sctp_assoc; /* an association */

#define DDPS_SCTP_SHARE_LEAST                                                                      \
	65536u /* octets that an association may always have held: no packet is larger */
#define DDPS_SCTP_ADDRS_MAX 8 /* that a user may give: its own, or the peer's */

/* An IP address.  Unused octets are 0.  IPv4 is never given as a v4-mapped IPv6 address. */
struct ddps_sctp_addr {
	uint8_t family; /* 4, 6, or 0: none, not known */
	uint8_t ip[16];
	uint32_t scope; /* IPv6 link-local: the interface; else 0 */
};
static inline bool ddps_sc_addr_eq(const struct ddps_sctp_addr *a, const struct ddps_sctp_addr *b)
{
	return a->family == b->family && a->scope == b->scope &&
	       !memcmp(a->ip, b->ip, sizeof a->ip);
}
bool ddps_sc_loopback(const struct ddps_sctp_addr *a);

/* Where a packet comes from or goes to. */
struct ddps_sctp_route {
	struct ddps_sctp_addr peer;
	struct ddps_sctp_addr local; /* out: family 0 leaves the choice to the system */
	uint16_t encap;		     /* peer's UDP port (RFC 6951), 0: straight on IP */
	uint16_t via; /* the user's number of the socket; part of an endpoint's identity */
	/* It is inside DTLS (RFC 8261), which has authenticated it: addresses are nothing but a way there,
	 * and its checksum may be zero (RFC 9653).  All of one @via are, or none. */
	bool sealed;
	uint16_t
		seen; /* in, sealed, none after it was before: the UDP port that it came from; else 0 */
};

/* Bounds and times.  ddps_sctp_defaults() fills it; change what is to differ. */
struct ddps_sctp_config {
	/* Fills @len octets that nobody can foresee.  Keys, tags and nonces are made of it. */
	void (*random)(void *user, void *buf, size_t len);
	/* Every packet as it is on the wire, after the CRC was added; NULL: no tap.  @sent: we
	 * sent it, else it came in (its CRC was right).  Borrowed. */
	void (*tap)(void *user, uint64_t now, bool sent, const struct ddps_sctp_route *r,
		    const struct iovec *iov, int niov);
	/* Which of @local, ours, what goes to @peer should come from; @n or more: the system may
	 * choose.  Asked where an association has several, for each new path; NULL: as @n. */
	unsigned (*source)(void *user, const struct ddps_sctp_addr *peer,
			   const struct ddps_sctp_addr *local, unsigned n);
	/* Whether this host has @a.  What a peer elsewhere lists and this host has, too, is left out:
	 * what is sent there would come back.  NULL: none is. */
	bool (*own)(void *user, const struct ddps_sctp_addr *a);
	void *user; /* for all of these */

	unsigned max_assocs;	      /* all of the engine; 65536 */
	unsigned max_assocs_per_addr; /* accepted from one peer, IPv4 address or IPv6 /64; 16384 */
	/* Addresses beyond eight of an association, 0.9 KiB each: of all, and of those of one peer, IPv4
	 * address or IPv6 /64; 16384, 1024.  What comes from there is taken, and nothing else is sent
	 * there than what it asks for. */
	unsigned max_more_addrs, max_more_addrs_per_addr;
	size_t rwnd; /* octets each association may have held; 4 MiB */
	/* Octets that wait below the engine until they are taken, of all associations together.  While
	 * several receive much, the window of each is no larger than its share of them, or 64 KiB; 0: there is no
	 * bound. */
	size_t inbox;
	/* Octets held out of order, all associations; as much again for what fills gaps; 256 MiB. */
	size_t max_held;
	size_t send_buffer;  /* octets not yet acknowledged; 4 MiB */
	size_t unsent;	     /* of these, octets not yet sent; 256 KiB */
	size_t max_message;  /* reassembled; 1 MiB */
	unsigned max_chunks; /* chunks that are not DATA, in one packet; 64 */
	unsigned icmp_grace; /* refused port after set-up: 1 counts as an error of the path only, 0
			      * ends the path, and the association with its last confirmed one; 1 */

	uint32_t rto_initial_ms, rto_min_ms, rto_max_ms; /* 1000, 400, 60000 */
	uint32_t sack_delay_ms;				 /* 20; at most 500 */
	/* How long the SACK of a lone short packet that asks for it (RFC 9260 6.2) may wait for
	 * an answer of the user, to leave with that; 0 */
	uint32_t sack_grace_us;
	uint32_t cookie_life_ms;    /* 60000 */
	uint32_t hb_interval_ms;    /* 30000; 0: no heartbeats */
	uint32_t shutdown_guard_ms; /* 0: 5 x rto_max_ms */
	unsigned assoc_max_retrans, path_max_retrans, init_max_retrans; /* 10, 5, 8 */
	unsigned answers_per_s; /* to packets that no association takes, all kinds; 1000 */
	unsigned starts_per_s;	/* INIT ACKs; further INITs are dropped; 50000 */
};

/* What an association or a listener is to be.  Zero it, set what matters. */
struct ddps_sctp_param {
	uint16_t port;	     /* ours; connect: 0 for any */
	uint16_t via;	     /* socket that it uses */
	uint16_t streams;    /* asked for and offered, each way; 0: 4096 */
	bool has_adaptation; /* send an Adaptation Layer Indication (RFC 5061 4.2.6) */
	uint32_t adaptation;
	uint32_t mtu; /* largest IP packet of the interface; 0: 1500 */
	/* What every way within this host takes, its loopback interface's MTU: packets begin with
	 * that there.  0: not known */
	uint32_t host_mtu;
	uint32_t fixed_mtu;    /* no path MTU discovery, this IP packet size; 0: discover */
	bool sealed;	       /* its packets are: see struct ddps_sctp_route */
	bool delay_sack_never; /* a SACK for each packet */
	unsigned max_per_addr; /* a listener's own max_assocs_per_addr; 0: the engine's */
	/* Our addresses that the peer may use.  With fewer than two none is named to the peer, who
	 * then uses the one that our packets come from; so it must be behind a NAT. */
	struct ddps_sctp_addr local[DDPS_SCTP_ADDRS_MAX];
	unsigned nlocal;
};

/* A user message.  @iov is borrowed during the upcall. */
struct ddps_sctp_msg {
	uint16_t stream;
	uint16_t ssn; /* of an ordered one */
	uint32_t ppid;
	bool unordered;
	const uint8_t *data; /* in the datagram's own buffer if it came in one chunk */
	size_t len;
};

enum ddps_sctp_path_state {
	DDPS_SCTP_UNCONFIRMED, /* listed by the peer, not verified yet */
	DDPS_SCTP_ACTIVE,
	DDPS_SCTP_DOUBTFUL, /* potentially failed (RFC 7829): another one is used if there is one */
	DDPS_SCTP_INACTIVE
};

struct ddps_sctp_up {
	/* The peer has answered our INIT: ddps_sctp_info() is complete.  What is sent from inside
	 * leaves with the packet that ends the set-up, as much as fits (RFC 9260 5.1).  A peer that
	 * answers once more is reported again.  May be NULL. */
	void (*answered)(void *user);
	/* The association is up; ddps_sctp_info() is complete. */
	void (*up)(void *user);
	/* One whole message. */
	void (*message)(void *user, const struct ddps_sctp_msg *m);
	/* After ddps_sctp_send() returned DDPS_E_AGAIN: room again. */
	void (*writable)(void *user);
	/* Messages up to number @n (ddps_sctp_sent()) are acknowledged for good.  At most one a
	 * batch of input. */
	void (*acked)(void *user, uint64_t n);
	/* The peer began SHUTDOWN: nothing more will come, sends fail. */
	void (*peer_shutdown)(void *user);
	/* The peer restarted.  All that was sent or held before is void; numbers go on. */
	void (*restarted)(void *user);
	/* A path changed its state.  May be NULL. */
	void (*path)(void *user, const struct ddps_sctp_addr *peer, enum ddps_sctp_path_state s);
	/* The host at @peer answers, by ICMP, that nothing takes SCTP there: that path is INACTIVE.  If
	 * it is the last one gone() follows instead.  May be NULL. */
	void (*refused)(void *user, const struct ddps_sctp_addr *peer);
	/* A held stream has had its share: all of it is dropped, and all that comes on it is, until
	 * it is held no more (ddps_sctp_hold_stream()).  May be NULL if no stream is ever held. */
	void (*overrun)(void *user, uint16_t stream);
	/* Inside DTLS: the peer has answered at UDP port @encap, and is there from now on.  False: that port
	 * is another one's, and it stays where it was.  May be NULL. */
	bool (*roamed)(void *user, uint16_t encap);
	/* The association is gone; last upcall.  Code 0: SHUTDOWN went its way.  What is left is to
	 * be freed by ddps_sctp_assoc_free(). */
	void (*gone)(void *user, const struct ddps_error *e);
};

/* ---- engine ---- */

/**
 * ddps_sctp_defaults - fill in the defaults named above
 * @c:	@c->random, @c->tap, @c->source and @c->user are set to NULL
 */
void ddps_sctp_defaults(struct ddps_sctp_config *c);

/**
 * ddps_sctp_new - make an engine
 * @c:		copied; @c->random must be set
 * @now:	the time
 *
 * Return: 0, or
 *   DDPS_E_INVAL	no random, or a time out of its range
 *   DDPS_E_NOMEM
 */
int ddps_sctp_new(const struct ddps_sctp_config *c, uint64_t now, struct ddps_sctp **out);

/* Frees an engine with all that it has.  Nothing is sent, no upcall is made. */
void ddps_sctp_free(struct ddps_sctp *e);

/* One received packet, or several of one size: GRO. */
struct ddps_sctp_in {
	struct ddps_sctp_route from; /* .local: the address it was sent to, if known */
	uint8_t *data;	 /* may be written to (the checksum field is), not beyond @len */
	size_t len;	 /* of all */
	size_t seg_size; /* of each but the last; 0 or >= @len: it is one */
	bool again;	 /* .from is that of the one before, which is not asked of the first */
};

/**
 * ddps_sctp_input - take received packets
 * @in, @n:	in the order of arrival; borrowed
 *
 * Acknowledgements are made up when all of the batch was looked at.  Malformed packets are dropped
 * and counted.
 */
void ddps_sctp_input(struct ddps_sctp *e, const struct ddps_sctp_in *in, unsigned n, uint64_t now);

enum ddps_sctp_icmp {
	DDPS_SCTP_ICMP_TOO_BIG,	      /* fragmentation needed, packet too big */
	DDPS_SCTP_ICMP_UNREACH_PORT,  /* port unreachable: over UDP as the next one, else ignored */
	DDPS_SCTP_ICMP_UNREACH_PROTO, /* protocol unreachable, unknown next header */
	DDPS_SCTP_ICMP_UNREACH	      /* host, net and the like */
};

/**
 * ddps_sctp_icmp - an ICMP error about a packet that we sent
 * @r:		.peer, .encap, .via: where the quoted packet went to
 * @mtu:	TOO_BIG: the size of an IP packet that would pass
 * @quote, @len: the quoted packet from its SCTP header on, as much as there is
 *
 * Believed only if the quote has the Verification Tag (or the Initiate Tag) of an association.
 */
void ddps_sctp_icmp(struct ddps_sctp *e, const struct ddps_sctp_route *r, enum ddps_sctp_icmp what,
		    uint32_t mtu, const uint8_t *quote, size_t len, uint64_t now);

/*
 * Somebody who need not be believed says that nobody has the port of @a's peer any more: it is asked now, and again
 * after the least RTO for each time that this comes.  Silence ends it as it always does, sooner.
 */
void ddps_sctp_doubt(struct ddps_sctp_assoc *a, uint64_t now);
/* Inside DTLS: something empty has come from the peer's UDP port @encap, as ddps_sctp_route.seen has it for packets. */
void ddps_sctp_seen(struct ddps_sctp_assoc *a, uint16_t encap, uint64_t now);

/* Least that an output buffer has. */
#define DDPS_SCTP_HEAD_MIN 4096u
#define DDPS_SCTP_IOV_MIN  16u

/* Packets to send: all to one place, all of @seg_size octets, but for the last, which may be
 * shorter.  Each begins with an iovec of its own. */
struct ddps_sctp_out {
	/* set by the caller */
	struct iovec *iov; /* room for @iov_max of them */
	unsigned iov_max;  /* >= DDPS_SCTP_IOV_MIN */
	uint8_t *head;	   /* room for @head_max octets: headers and short payloads */
	size_t head_max;   /* >= DDPS_SCTP_HEAD_MIN */
	unsigned max_segs; /* >= 1 */
	size_t max_len;	   /* of all packets; at least one is given even if longer */
	/* set by the engine */
	struct ddps_sctp_route to;
	unsigned niov, nsegs;
	size_t len, seg_size;
	/* One packet, larger than the path takes: let IP fragment it, our own system where it is IPv6,
	 * into the least size.  Else DF. */
	bool fragment;
	bool probe; /* one packet, to be sent alone: a path MTU probe */
	/* private */
	bool data; /* it has DATA, in packets from @pn on */
	bool sack; /* and a SACK next to the DATA */
	uint16_t port, peer_port;
	uint64_t pn;
};

/**
 * ddps_sctp_output - the next packets to send
 *
 * @out's iovecs lead into @out->head and into memory of the engine; they are valid until the next
 * call of any other function of this engine.  So several may be asked for, then sent together.
 *
 * Return: 1, or 0: nothing now
 */
int ddps_sctp_output(struct ddps_sctp *e, struct ddps_sctp_out *out, uint64_t now);

/* The system refused @out, since no packet of more than @mtu octets (IP) can leave there: EMSGSIZE.
 * Nothing of it was sent. */
void ddps_sctp_refused(struct ddps_sctp *e, const struct ddps_sctp_out *out, uint32_t mtu,
		       uint64_t now);

/* The system had no room for @out, or not for all of it: EAGAIN.  What is of use still is available
 * again, and is no loss on the way.  @out->head is as it was. */
void ddps_sctp_unsent(struct ddps_sctp *e, const struct ddps_sctp_out *out, uint64_t now);

/* When ddps_sctp_tick() is next needed; UINT64_MAX: never.  Ask after all that was sent. */
uint64_t ddps_sctp_deadline(const struct ddps_sctp *e);
/* Whether ddps_sctp_output() may have something. */
bool ddps_sctp_pending(const struct ddps_sctp *e);
/* Let timers fire and tell what is to be reported. */
void ddps_sctp_tick(struct ddps_sctp *e, uint64_t now);

/* ---- endpoints ---- */

/* Called for each association that a peer opened.  Within it, ddps_sctp_assoc_set_up() or
 * ddps_sctp_assoc_free() is called; up() is not called for it. */
typedef void ddps_sctp_accept_fn(void *user, struct ddps_sctp_assoc *a);

/**
 * ddps_sctp_listen - take associations on a port
 * @p:		copied; .port is not 0
 * @accept:	called with @user
 *
 * Return: 0, or
 *   DDPS_E_INVAL	port 0, bad address, streams or MTU
 *   DDPS_E_BUSY	(via, port) has a listener
 *   DDPS_E_NOMEM
 */
int ddps_sctp_listen(struct ddps_sctp *e, const struct ddps_sctp_param *p,
		     ddps_sctp_accept_fn *accept, void *user, struct ddps_sctp_port **out);

/* No more are taken; those there live on. */
void ddps_sctp_unlisten(struct ddps_sctp_port *l);

/**
 * ddps_sctp_connect - open an association
 * @p:		copied
 * @peer, @n:	addresses of the peer, the primary one first; 1 .. DDPS_SCTP_ADDRS_MAX
 * @port:	the peer's SCTP port
 * @encap:	the peer's UDP port, 0: straight on IP
 *
 * up() or gone() follows.
 *
 * Return: 0, or
 *   DDPS_E_INVAL	addresses, ports or MTU make no sense; or @p->local has none of a family that
 *			@peer has
 *   DDPS_E_BUSY	there is one between these endpoints, or no port is free
 *   DDPS_E_LIMIT	max_assocs
 *   DDPS_E_NOMEM
 */
int ddps_sctp_connect(struct ddps_sctp *e, const struct ddps_sctp_param *p,
		      const struct ddps_sctp_addr *peer, unsigned n, uint16_t port, uint16_t encap,
		      const struct ddps_sctp_up *up, void *user, uint64_t now,
		      struct ddps_sctp_assoc **out);

void ddps_sctp_assoc_set_up(struct ddps_sctp_assoc *a, const struct ddps_sctp_up *up, void *user);

/* ---- associations ---- */

#define DDPS_SCTP_UNORDERED 1u
#define DDPS_SCTP_SACK_NOW  2u /* ask the peer for an acknowledgement (RFC 9260 3.3.1) */

/**
 * ddps_sctp_send - hand one message over, whole or not at all
 * @iov:	copied; more than 0 octets.  What is sent is that copy
 *
 * A message longer than one packet takes is fragmented.  Before up() it waits, from answered() on.
 *
 * Return: 0, or
 *   DDPS_E_AGAIN	no room; writable() follows
 *   DDPS_E_INVAL	no such stream, nothing to send
 *   DDPS_E_TOO_LONG	longer than send_buffer
 *   DDPS_E_STATE	the peer has not answered yet, or it is shutting down
 *   DDPS_E_NOMEM
 */
int ddps_sctp_send(struct ddps_sctp_assoc *a, uint16_t stream, uint32_t ppid, unsigned flags,
		   const struct iovec *iov, int niov, uint64_t now);

/**
 * ddps_sctp_place - where an unordered message of @len octets can be filled in
 *
 * Return: a place, which ddps_sctp_placed() is called for before anything else; NULL: ddps_sctp_send() says why.
 */
uint8_t *ddps_sctp_place(struct ddps_sctp_assoc *a, uint16_t stream, size_t len);
/* What ddps_sctp_place() gave, with the same @stream and @len, is handed over, or unless @filled is given back. */
void ddps_sctp_placed(struct ddps_sctp_assoc *a, uint8_t *at, uint16_t stream, uint32_t ppid,
		      size_t len, bool filled);

/* When DATA was sent, or sent again, that the peer has not answered by any packet; 0: it has. */
uint64_t ddps_sctp_asked_at(const struct ddps_sctp_assoc *a);

/* Messages handed over so far, from 1; and of these, acknowledged for good. */
uint64_t ddps_sctp_sent(const struct ddps_sctp_assoc *a);
uint64_t ddps_sctp_acked(const struct ddps_sctp_assoc *a);
/* Whether DATA is under way, none of it lost as far as is known: an acknowledgement will come. */
bool ddps_sctp_under_way(const struct ddps_sctp_assoc *a);
/* Octets of one message that go into one packet on every path, now. */
size_t ddps_sctp_max_chunk(const struct ddps_sctp_assoc *a);
/* The same of the packet that ends with what was handed over last, and waits; 0: nothing waits, or it is full. */
size_t ddps_sctp_room(const struct ddps_sctp_assoc *a);

/* What has come, and what is coming up just now, is acknowledged with the next packet: it does not wait for an
 * answer of the user.  Only from an upcall. */
void ddps_sctp_sack_now(struct ddps_sctp_assoc *a);

/* No messages are delivered while it is on; they are held, and the receive window closes. */
void ddps_sctp_pause(struct ddps_sctp_assoc *a, bool on, uint64_t now);

/**
 * ddps_sctp_hold_stream - deliver nothing of one stream, the others go on
 *
 * What comes is held, up to a share of the receive window, max(64 KiB, rwnd / 8): see overrun().
 * Off: what was held is delivered by the next tick; a stream that was overrun is taken again.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_NOMEM
 */
int ddps_sctp_hold_stream(struct ddps_sctp_assoc *a, uint16_t stream, bool on, uint64_t now);

/* The user itself keeps @octets more (or fewer) of what it was given: the window is that smaller. */
void ddps_sctp_keep(struct ddps_sctp_assoc *a, int64_t octets, uint64_t now);

/* SHUTDOWN after all is sent and acknowledged; gone() follows. */
void ddps_sctp_shutdown(struct ddps_sctp_assoc *a, uint64_t now);
/* ABORT with User-Initiated Abort; gone() follows. @reason may be NULL. */
void ddps_sctp_abort(struct ddps_sctp_assoc *a, const char *reason, uint64_t now);
/* The user forgets it; no upcall any more.  ABORT if it is still there. */
void ddps_sctp_assoc_free(struct ddps_sctp_assoc *a, uint64_t now);

/* Make the path to @peer the one that is used if it works.  0, or DDPS_E_INVAL: no such path. */
int ddps_sctp_set_primary(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *peer,
			  uint64_t now);

/* ---- what there is to see ---- */

struct ddps_sctp_path_info {
	struct ddps_sctp_addr peer, local;
	uint16_t encap;
	enum ddps_sctp_path_state state;
	bool primary, in_use;
	uint64_t srtt_ns, rttvar_ns, rto_ns, min_rtt_ns; /* 0: not measured */
	uint64_t cwnd, ssthresh, flight;		 /* octets; ssthresh UINT64_MAX: none yet */
	uint64_t retransmitted, timeouts;		 /* DATA chunks; T3-rtx */
	uint32_t mtu;					 /* of an IP packet */
	unsigned errors;				 /* in a row */
};

struct ddps_sctp_info {
	const char *state; /* as RFC 9260 names it: "ESTABLISHED" */
	uint16_t port, peer_port, via;
	uint16_t in_streams, out_streams;
	bool has_adaptation, by_us;
	bool zero_checksum; /* this side need not fill it in: the peer said so */
	bool behind;	    /* what waited when the peer had no room last is not all acknowledged */
	uint32_t adaptation;
	uint32_t tag, peer_tag;
	unsigned npaths;
	uint64_t peer_rwnd, rwnd;
	uint64_t unsent, unacked;					       /* octets */
	uint64_t sent_packets, received_packets, sent_chunks, received_chunks; /* DATA chunks */
	uint64_t retransmitted, timeouts, duplicates, gaps; /* gaps: blocks reported to us */
	uint64_t out_of_order;				    /* octets held now */
	uint64_t restarts;
};

void ddps_sctp_info(const struct ddps_sctp_assoc *a, struct ddps_sctp_info *info);
/* @i < npaths.  0 or DDPS_E_INVAL. */
int ddps_sctp_path_info(const struct ddps_sctp_assoc *a, unsigned i,
			struct ddps_sctp_path_info *info);

/* X(name): what happened since the engine was made. */
#define DDPS_SCTP_COUNTERS(X)                                                                      \
	X(packets_in)                                                                              \
	X(packets_out)                                                                             \
	X(bad_crc)                                                                                 \
	X(zero_crc)                                                                                \
	X(malformed)                                                                               \
	X(bad_tag)                                                                                 \
	X(out_of_the_blue)                                                                         \
	X(answers_limited)                                                                         \
	X(init_in)                                                                                 \
	X(inits_limited)                                                                           \
	X(cookies_bad)                                                                             \
	X(cookies_stale)                                                                           \
	X(refused_full)                                                                            \
	X(addrs_left)                                                                              \
	X(addrs_sealed)                                                                            \
	X(addrs_own)                                                                               \
	X(addrs_taken)                                                                             \
	X(strange_addrs)                                                                           \
	X(restarts)                                                                                \
	X(restarts_refused)                                                                        \
	X(aborts_in)                                                                               \
	X(aborts_out)                                                                              \
	X(errors_in)                                                                               \
	X(violations)                                                                              \
	X(unknown_chunks)                                                                          \
	X(window_drops)                                                                            \
	X(held_full)                                                                               \
	X(overruns)                                                                                \
	X(icmp_believed)                                                                           \
	X(icmp_ignored)                                                                            \
	X(ports_learned)                                                                           \
	X(roamed)                                                                                  \
	X(path_failures)                                                                           \
	X(no_memory)

struct ddps_sctp_stats {
	unsigned assocs;
	uint64_t held; /* octets out of order, all associations */
#define DDPS_X(name) uint64_t name;
	DDPS_SCTP_COUNTERS(DDPS_X)
#undef DDPS_X
};

void ddps_sctp_stats(const struct ddps_sctp *e, struct ddps_sctp_stats *s);

#endif
