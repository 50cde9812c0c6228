/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SCTP_IN_H
#define DDPS_SCTP_IN_H
/*
 * Inside the engine:
 *   sctp_wire.c     chunks, parameters, causes, CRC32c	     sctp_cookie.c  State Cookies
 *   sctp_engine.c   the engine, its turn    sctp_find.c  who is meant by a packet
 *   sctp_packet.c   which packets are taken, and the table: chunk x state
 *   sctp_oob.c	     packets that belong to nothing, what is sent without association, ICMP
 *   sctp_setup.c    INIT, INIT ACK	     sctp_echo.c  COOKIE ECHO and ACK, restart
 *   sctp_assoc.c    an association's life   sctp_shut.c  SHUTDOWN, ABORT, ERROR
 *   sctp_rx.c	     DATA		     sctp_reasm.c  fragments
 *   sctp_straight.c DATA as most is: nothing is missing, nothing is held
 *   sctp_stream.c   order, holds, delivery  sctp_sack.c  SACKs sent and received
 *   sctp_path.c     states of paths, heartbeats, probes
 *   path/	     the list of paths
 *   sctp_msg.c	     messages to send	     sctp_tx.c	  packets out of them
 *   sctp_ctl.c	     packets without DATA    sctp_build.h what makes a packet
 *   sctp_api.c	     the rest of the calls
 *   sctp_check.c    what must hold of an association, in builds for tests
 *   parts/	     what knows no association: TSNs received, deadlines, memory
 *   send/	     what is outstanding, congestion control, path MTU
 *
 * A call or a packet changes an association and "touches" it.  settle_one() in sctp_engine.c then does what
 * follows of it for all that were touched: the steps of SHUTDOWN, the timer, a place in the queue
 * of those that have something to send.
 */
#include "common/error.h"
#include "common/siphash.h"
#include "common/system/assert.h"
#include "sctp/path/path_list.h"
#include "sctp/sctp_cookie.h"
#include "sctp/parts/sctp_map.h"
#include "sctp/parts/sctp_pool.h"
#include "sctp/parts/sctp_timer.h"
#include "sctp/send/tx_sent.h"
#include <stdlib.h>
#include <sys/queue.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define MS 1000000ull

#define DDPS_SC_STATES(X)                                                                          \
	X(CLOSED, "CLOSED")                                                                        \
	X(COOKIE_WAIT, "COOKIE-WAIT")                                                              \
	X(COOKIE_ECHOED, "COOKIE-ECHOED")                                                          \
	X(ESTABLISHED, "ESTABLISHED")                                                              \
	X(PENDING, "SHUTDOWN-PENDING")                                                             \
	X(SENT, "SHUTDOWN-SENT")                                                                   \
	X(RECEIVED, "SHUTDOWN-RECEIVED")                                                           \
	X(ACK_SENT, "SHUTDOWN-ACK-SENT")

enum ddps_sc_state {
#define DDPS_X(name, text) SC_##name,
	DDPS_SC_STATES(DDPS_X)
#undef DDPS_X
		SC_NSTATES
};

struct ddps_sc_path {
	struct ddps_sctp_assoc *a;
	struct ddps_sc_path *chain; /* in the table */
	LIST_ENTRY(ddps_sc_path) program;
	uint64_t asked; /* when all that lead to its program were asked last, or 0 */
	struct ddps_sctp_addr peer, local;
	uint16_t encap;
	uint8_t id;
	bool confirmed, hb_out, hb_now;
	bool doubt;  /* somebody says that nobody is there: the next heartbeat follows this one */
	bool failed; /* its data was moved to another one */
	enum ddps_sctp_path_state state;
	unsigned errors;
	uint64_t hb_at;	  /* the next heartbeat, or the time-out of the one outstanding */
	uint64_t hb_sent; /* when the last left */
	uint64_t hb_nonce, probe_nonce;
	uint16_t probe_size;	      /* last probe's, 0: none */
	uint64_t used;		      /* when something that measures the path was sent last */
	unsigned good;		      /* heartbeats answered in a row */
	uint8_t fails;		      /* times it failed soon after it was used again */
	uint64_t since;		      /* when it was used again */
	uint64_t roam_nonce, roam_at; /* 0: none; the next one not before */
	uint16_t roam, roam_asked; /* UDP ports: that the peer was seen at last; that was asked */
	struct ddps_sent_path tx;
};

LIST_HEAD(ddps_sc_program, ddps_sc_path);

/* A chunk, or several, ready to be sent. */
struct ddps_sc_blob {
	STAILQ_ENTRY(ddps_sc_blob) link;
	struct ddps_sctp_route to; /* stray packets */
	struct ddps_sc_path *path; /* else */
	size_t len;
	uint8_t octets[];
};
STAILQ_HEAD(ddps_sc_blobs, ddps_sc_blob);
#define DDPS_SC_BLOB_BIG 3000u /* larger ones are not copied: they leave alone */

/* A message to send; a DATA chunk of it. */
struct ddps_sc_msg;
struct ddps_sc_piece {
	struct ddps_sc_msg *m;
	uint32_t at, len;
	uint8_t flags;
};

struct ddps_sc_msg {
	STAILQ_ENTRY(ddps_sc_msg) link;
	uint64_t number;
	uint32_t ppid, len, cut; /* cut: octets that have a TSN */
	unsigned refs;		 /* pieces outstanding, and one while not all is cut */
	uint16_t sid, ssn;
	uint8_t flags;				      /* SC_DATA_U, SC_DATA_I */
	struct ddps_sc_piece whole;		      /* if it is one */
	uint8_t head[DDPS_SC_HDR + DDPS_SC_DATA_HDR]; /* room for headers: sctp_build.h */
	uint8_t data[];				      /* and as much as its pad */
};
STAILQ_HEAD(ddps_sc_msgs, ddps_sc_msg);

/* A message received and not delivered yet. */
struct ddps_sc_held {
	TAILQ_ENTRY(ddps_sc_held) link;
	UT_hash_handle hh;	/* in ahead */
	uint32_t key;		/* stream and SSN */
	struct ddps_sctp_msg m; /* .data is @octets */
	uint8_t octets[];
};
TAILQ_HEAD(ddps_sc_helds, ddps_sc_held);

/* A stream of which something must be remembered. */
struct ddps_sc_stream {
	uint16_t sid, next; /* SSN */
	bool hold, overrun;
	size_t octets;		   /* in @kept */
	struct ddps_sc_helds kept; /* held back */
	UT_hash_handle hh;
};

struct ddps_sc_run; /* fragments */

/* Addresses of a peer. */
#define DDPS_SC_ADDRS_MAX (1 + DDPS_SC_LISTED_MAX)

#define DDPS_SC_DUPS 20u

enum { /* to be sent */
       DUE_INIT = 1,
       DUE_ECHO = 2,
       DUE_COOKIE_ACK = 4,
       DUE_SHUTDOWN = 8,
       DUE_SHUTDOWN_ACK = 16,
       DUE_SACK = 32
};

enum { /* to be reported */
       NOTE_WRITABLE = 1,
       NOTE_ACKED = 2,
       NOTE_SHUTDOWN = 4,
       NOTE_DELIVER = 8,
       NOTE_GONE = 16,
       NOTE_ANSWERED = 32
};

struct ddps_sctp_assoc {
	struct ddps_sctp *e;
	const struct ddps_sctp_up *up;
	void *user;
	TAILQ_ENTRY(ddps_sctp_assoc) all_link, tx_link, touch_link, note_link;
	bool in_tx, touched, noted, freed, dead, dying, announced, by_us;
	bool any_port; /* of ours: the user has not chosen it */
	uint8_t state;
	uint8_t due;
	uint8_t notes;
	struct ddps_sc_timer timer;

	/* who */
	uint16_t port, peer_port, via;
	uint16_t nssn_out; /* of @ssn_out */
	uint32_t own_tag, peer_tag, tie_own, tie_peer, own_tsn, peer_tsn;
	uint16_t in_streams, out_streams, asked; /* asked: in INIT */
	bool has_adaptation, peer_has_adaptation, delay_sack_never;
	bool sealed, zero_checksum; /* the latter: the peer accepts it */
	bool counted;		    /* for max_assocs_per_addr */
	bool left;		    /* there was no room for all addresses of the peer */
	bool taken; /* the peer has sent what nobody sends who does not know the cookie */
	struct ddps_sctp_addr share; /* the first address: who has what is counted by address */
	uint32_t adaptation, peer_adaptation, mtu, host_mtu, fixed_mtu;
	struct ddps_sctp_addr *local;	/* @nlocal of them */
	uint8_t nlocal, npaths, npeers; /* npeers: given by the user */
	uint16_t report_len;
	/* @npaths of them; the first DDPS_SENT_PATHS carry what is sent.  While it has had one: &only */
	struct ddps_sc_path **path, *only;
	struct ddps_sctp_assoc *tag_chain; /* of those that have tags alike */
	struct ddps_sc_path *primary, *data_path, *last_heard, *sack_path, *ctl_path;

	/* set-up and end */
	uint8_t *cookie;
	size_t cookie_len;
	uint8_t *report;   /* of the peer's INIT ACK, until it is sent: @report_len octets */
	uint64_t ctl_at;   /* T1, T2 */
	uint64_t ctl_rto;  /* its next length */
	uint64_t ctl_sent; /* for an RTT; 0: resent */
	unsigned ctl_n;
	unsigned
		stale; /* cookies that the peer called so or did not know, and ports that others had */
	unsigned errors; /* in a row, of the association */
	unsigned stuck; /* T3s in a row for one chunk, larger than the path takes now: @stuck_tsn */
	uint32_t stuck_tsn;
	unsigned ndups;	   /* of @dups */
	uint64_t guard_at; /* T5 */
	struct ddps_kept_error why;

	/* sending */
	struct ddps_sc_blobs blobs;
	struct ddps_sent tx;
	struct ddps_sc_msgs queue;
	size_t unsent, buffered;
	size_t part; /* octets of chunks in the last packet of @queue, unless that is empty */
	uint64_t sent_n, acked_n;
	uint64_t full_n;       /* sent_n, when the peer had no room last */
	unsigned early;	       /* messages of @queue that have left with COOKIE ECHO */
	bool blocked, ask;     /* ask: the sender may want to send, though nothing waits */
	bool sack_alone;       /* it did not fit with data */
	unsigned nblobs, nbig; /* nbig: of these, larger than DDPS_SC_BLOB_BIG */
	uint16_t *ssn_out;     /* @nssn_out of them: the streams there were when one was needed */

	/* receiving */
	struct ddps_sc_map map;
	size_t held, kept; /* octets in our hands; in the user's */
	uint32_t told_rwnd;
	uint32_t took_in, took; /* the last period in which it has received, and octets in it */
	uint64_t sack_at;
	unsigned sack_packets;
	bool saw_data, paused;
	uint8_t net;	/* whose share of the inbox it has a part of */
	uint32_t *dups; /* DDPS_SC_DUPS; NULL: there were none */
	struct ddps_sc_stream *streams;
	struct ddps_sc_run *runs_first, *runs_last;
	struct ddps_sc_held *ahead; /* ordered ones that wait for another */
	struct ddps_sc_helds ready; /* to be delivered, in order of arrival */

	/* counters */
	uint64_t n_packets_out, n_packets_in, n_chunks_out, n_chunks_in, n_dups, n_gaps, n_restarts;
};
TAILQ_HEAD(ddps_sc_assocs, ddps_sctp_assoc);

struct ddps_sctp_port {
	struct ddps_sctp *e;
	struct {
		uint16_t via, port;
	} key;
	struct ddps_sctp_param param;
	ddps_sctp_accept_fn *accept;
	void *user;
	UT_hash_handle hh;
};

/* How many associations a peer has opened, and how many addresses beyond DDPS_SENT_PATHS it has in any: of
 * an IPv6 address the /64, all of which is one host's to choose from. */
struct ddps_sc_peer {
	struct ddps_sctp_addr addr;
	unsigned n, more;
	UT_hash_handle hh;
};

/* What size of packets got through to an address lately; another address may take its place. */
struct ddps_sc_way {
	struct ddps_sctp_addr to;
	uint16_t size; /* 0: none */
	uint64_t at;
};

/* What is left of so many a second. */
struct ddps_sc_bucket {
	double tokens;
	uint64_t at;
};

#define DDPS_SC_NETS  64u /* told apart where they share the inbox: the first is of none */
#define DDPS_SC_WAYS  256u
#define DDPS_SC_FOUND 256u
#define DDPS_SC_GONE  4096u /* tags of associations that ended lately */

struct ddps_sctp {
	struct ddps_sctp_config c;
	uint64_t now;
	struct ddps_siphash_key hash_key;
	struct ddps_sc_keys keys;
	struct ddps_sctp_port *ports;
	struct ddps_sc_path **paths;	  /* by ports and peer's address: chains */
	struct ddps_sctp_assoc **tags;	  /* by our tag: as many chains */
	struct ddps_sc_program *programs; /* by the peer's address and UDP port: as many */
	unsigned npaths, chains;	  /* a power of 2, or none yet */
	struct ddps_sc_path
		*found[DDPS_SC_FOUND]; /* of late, as long as they are in there; or NULL */
	struct ddps_sc_peer *peers;
	unsigned more; /* addresses beyond DDPS_SENT_PATHS, all associations */
	struct ddps_sc_heap heap;
	uint64_t looked; /* when packets were taken, or timers served, last */
	struct ddps_sc_assocs all, tx, touched, noted, dying;
	struct ddps_sc_blobs stray;
	struct ddps_sc_blobs spent; /* large ones that were sent since the last input or tick */
	struct ddps_sc_pool pool;
	struct ddps_sent_conf sent;
	struct ddps_sent_spares spares;
	struct ddps_sctp_stats st;
	struct ddps_sc_bucket answers, starts;
	/* Of config.inbox: */
	uint64_t period_at;
	uint32_t period;
	/* Associations that have received much in it, in the last one; by network, and how many of these there are */
	unsigned takers[DDPS_SC_NETS], takers_before[DDPS_SC_NETS], nets, nets_before;
	uint32_t share[DDPS_SC_NETS]; /* of each association there, octets */
	unsigned nstray;
	uint16_t next_port;
	bool busy; /* in input or tick */
	struct ddps_sc_way ways[DDPS_SC_WAYS];
	struct {
		uint32_t own, peer;
	} gone[DDPS_SC_GONE];
};

/* A packet being looked at. */
struct ddps_sc_rx {
	struct ddps_sctp *e;
	struct ddps_sctp_assoc *a;
	struct ddps_sc_path *path; /* it came from there */
	const struct ddps_sctp_route *from;
	const uint8_t *pkt;
	size_t len;
	struct ddps_sc_header h;
	/* Of its DATA chunks; gap: something is amiss, to be reported without delay; now_flag: I bit */
	bool data, fresh, dup, gap, now_flag, dropped;
	bool answered;
	size_t report_len, report_pad; /* the latter of the last cause, within the former */
	uint8_t report[512];	       /* causes for an ERROR */
};

/* ---- sctp_engine.c ---- */
uint32_t ddps_sc_random32(struct ddps_sctp *e); /* not 0 */
static inline void ddps_sc_touch(struct ddps_sctp_assoc *a)
{
	if (a->touched)
		return;
	a->touched = true;
	TAILQ_INSERT_TAIL(&a->e->touched, a, touch_link);
}
void ddps_sc_note(struct ddps_sctp_assoc *a, unsigned notes);
static inline void ddps_sc_time(struct ddps_sctp *e, uint64_t now)
{
	if (now > e->now)
		e->now = now;
}

/* ---- sctp_find.c ---- */
struct ddps_sc_path *ddps_sc_find(struct ddps_sctp *e, uint16_t via, uint16_t port,
				  uint16_t peer_port, const struct ddps_sctp_addr *peer);
struct ddps_sctp_port *ddps_sc_find_port(struct ddps_sctp *e, uint16_t via, uint16_t port);
/* Enter @p; false: no memory. */
bool ddps_sc_enter(struct ddps_sctp *e, struct ddps_sc_path *p);
void ddps_sc_leave(struct ddps_sctp *e, struct ddps_sc_path *p);
/* Our tag is @tag from now on. */
void ddps_sc_set_tag(struct ddps_sctp_assoc *a, uint32_t tag);
/* Whether an association between these ports has @tag of ours. */
bool ddps_sc_has_tag(const struct ddps_sctp *e, uint16_t via, uint16_t port, uint16_t peer_port,
		     uint32_t tag);
void ddps_sc_move(struct ddps_sctp_assoc *a, uint16_t port);
/* The peer's UDP port is @encap from now on. */
void ddps_sc_path_encap(struct ddps_sc_path *p, uint16_t encap);
/* Those that may lead to @peer at UDP port @encap, and perhaps a few others; there is one path at least. */
struct ddps_sc_program *ddps_sc_program_of(const struct ddps_sctp *e,
					   const struct ddps_sctp_addr *peer, uint16_t encap);
/* One of @n numbers of the network of @addr, other than 0: few have the same, and a peer cannot choose it. */
unsigned ddps_sc_net_of(const struct ddps_sctp *e, const struct ddps_sctp_addr *addr, unsigned n);
/* Count an association accepted from @addr; false: there are @most, or no memory. */
bool ddps_sc_peer_get(struct ddps_sctp *e, const struct ddps_sctp_addr *addr, unsigned most);
void ddps_sc_peer_put(struct ddps_sctp *e, const struct ddps_sctp_addr *addr);
/* The same of its addresses beyond DDPS_SENT_PATHS; put: @n of them. */
bool ddps_sc_more_get(struct ddps_sctp *e, const struct ddps_sctp_addr *addr);
void ddps_sc_more_put(struct ddps_sctp *e, const struct ddps_sctp_addr *addr, unsigned n);
/* The size of packets that a probe has found for @to in the last 10 minutes; 0: not known. */
uint16_t ddps_sc_way_size(const struct ddps_sctp *e, const struct ddps_sctp_addr *to);
void ddps_sc_way_set(struct ddps_sctp *e, const struct ddps_sctp_addr *to, uint16_t size);
/* Tags of an association that has ended; whether they are of one that did lately. */
void ddps_sc_gone_add(struct ddps_sctp *e, uint32_t own, uint32_t peer);
bool ddps_sc_gone_lately(const struct ddps_sctp *e, uint32_t own, uint32_t peer);
/* A free port; 0: none. */
uint16_t ddps_sc_free_port(struct ddps_sctp *e, uint16_t via, uint16_t peer_port,
			   const struct ddps_sctp_addr *peer);

/* ---- sctp_packet.c ---- */
/* @rx: .e and .from are set; .path is NULL, or all is as the packet before has left it, which came with this one. */
void ddps_sc_packet(struct ddps_sc_rx *rx, const uint8_t *pkt, size_t len);
typedef void ddps_sc_handler(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c);
/* Report what was not understood. */
void ddps_sc_report(struct ddps_sc_rx *rx, uint16_t cause, const void *val, size_t len);
/* Learn the UDP port, and what else a packet with the right tag says about its path. */
void ddps_sc_heard(struct ddps_sc_rx *rx);

/* ---- sctp_straight.c ---- */
/* The SACK that @r begins with, if there is one and it has no more than a cumulative ack; false: it is left. */
bool ddps_sc_straight_cum(struct ddps_sc_rx *rx, struct ddps_rbuf *r);
/* The DATA chunks that @r begins with, as long as each is as most are; returns how many. */
unsigned ddps_sc_straight_data(struct ddps_sc_rx *rx, struct ddps_rbuf *r);

/* ---- sctp_oob.c ---- */
/* The host at @p has refused our INIT by an ABORT: whether there are other addresses to be asked. */
bool ddps_sc_tries_others(struct ddps_sc_path *p);
/* Take one of the @rate a second, or @limited counts that there is none. */
bool ddps_sc_spend(struct ddps_sctp *e, struct ddps_sc_bucket *b, unsigned rate, uint64_t *limited);
bool ddps_sc_contains(const uint8_t *pkt, size_t len, uint8_t type, struct ddps_sc_chunk *c);
void ddps_sc_oob(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *first);
/* Send one packet that no association knows of: @chunks without header. */
void ddps_sc_stray(struct ddps_sctp *e, const struct ddps_sctp_route *to, uint16_t port,
		   uint16_t peer_port, uint32_t tag, const void *chunks, size_t len);
/* One that the system had no room for. */
void ddps_sc_stray_again(struct ddps_sctp *e, const struct ddps_sctp_out *out);
/* A stray packet back to where @rx is from: all of these together, c.answers_per_s. */
void ddps_sc_answer(struct ddps_sc_rx *rx, uint32_t tag, const void *chunks, size_t len);
/* An ABORT with one cause (0: none) as such an answer. */
void ddps_sc_stray_abort(struct ddps_sc_rx *rx, uint32_t tag, bool reflected, uint16_t cause,
			 const void *val, size_t len);

/* ---- sctp_setup.c ---- */
ddps_sc_handler ddps_sc_init_none, ddps_sc_init_wait, ddps_sc_init_echoed, ddps_sc_init_up,
	ddps_sc_init_ack_sent, ddps_sc_init_ack;
void ddps_sc_put_init(struct ddps_sctp_assoc *a, struct ddps_wbuf *w);

/* ---- sctp_echo.c ---- */
/* COOKIE ECHO first in a packet.  True: rx->a is set and the rest of the packet may be taken. */
bool ddps_sc_cookie_echo(struct ddps_sc_rx *rx, const struct ddps_sc_chunk *c);
ddps_sc_handler ddps_sc_cookie_ack, ddps_sc_stale;
/* Set up, once more. */
void ddps_sc_init_again(struct ddps_sctp_assoc *a);

/* ---- sctp_same_host.c ---- */
/* A set-up from where the peer of rx->a is, by another UDP port: it is refused, with @tag. */
bool ddps_sc_other_program(struct ddps_sc_rx *rx, uint32_t tag);
/* The peer has refused ours so: another port is tried.  false: none. */
bool ddps_sc_other_port(struct ddps_sctp_assoc *a);
/* Nobody has answered a cookie for long: another one is asked for.  false: it has to be that one. */
bool ddps_sc_dial_anew(struct ddps_sctp_assoc *a);
/* DATA or a SACK behind our COOKIE ECHO: whoever sends it has taken that. */
ddps_sc_handler ddps_sc_taken;
/* Whether this host has @addr, which @who, a peer elsewhere, has listed; the same, and it is counted. */
bool ddps_sc_is_own(const struct ddps_sctp *e, const struct ddps_sctp_addr *who,
		    const struct ddps_sctp_addr *addr);
bool ddps_sc_leaves_out(struct ddps_sctp_assoc *a, const struct ddps_sctp_addr *who,
			const struct ddps_sctp_addr *addr);
/* A packet with the peer's tag is our own host's answer to what we have sent to rx->path. */
bool ddps_sc_came_back(struct ddps_sc_rx *rx);

/* ---- sctp_assoc.c ---- */
struct ddps_sctp_assoc *ddps_sc_assoc_new(struct ddps_sctp *e, const struct ddps_sctp_param *p);
void ddps_sc_start_tx(struct ddps_sctp_assoc *a, uint32_t peer_rwnd);
void ddps_sc_start_rx(struct ddps_sctp_assoc *a, uint32_t peer_tsn);
/* Nothing sent, nothing received: for a restart. */
void ddps_sc_wipe(struct ddps_sctp_assoc *a);
/* It is over; gone() follows, with what why says. */
void ddps_sc_end(struct ddps_sctp_assoc *a, struct ddps_error why);
/* The memory goes, now. */
void ddps_sc_release(struct ddps_sctp_assoc *a);
void ddps_sc_restart_ctl(struct ddps_sctp_assoc *a, bool resent);
void ddps_sc_stop_ctl(struct ddps_sctp_assoc *a);
void ddps_sc_ctl_timeout(struct ddps_sctp_assoc *a);
void ddps_sc_move_ctl(struct ddps_sctp_assoc *a); /* nobody is there: to another address, now */
bool ddps_sc_count_error(struct ddps_sctp_assoc *a, struct ddps_sc_path *p);
const char *ddps_sc_state_name(enum ddps_sc_state s);
/* Queue chunks of @len octets, padded, to be filled in; NULL: no memory. */
uint8_t *ddps_sc_blob(struct ddps_sctp_assoc *a, struct ddps_sc_path *p, size_t len);
void ddps_sc_blobs_free(struct ddps_sc_blobs *q);

/* ---- sctp_shut.c ---- */
ddps_sc_handler ddps_sc_shutdown_est, ddps_sc_shutdown_received, ddps_sc_shutdown_sent,
	ddps_sc_shutdown_again, ddps_sc_shutdown_ack, ddps_sc_shutdown_complete, ddps_sc_abort_in,
	ddps_sc_error_in;
void ddps_sc_shutdown_ack_early(struct ddps_sc_rx *rx);
/* The steps that wait for everything to be acknowledged. */
void ddps_sc_shut_step(struct ddps_sctp_assoc *a);
/* ABORT with a cause, and the end. */
void ddps_sc_abort_out(struct ddps_sctp_assoc *a, uint16_t cause, const void *val, size_t len,
		       struct ddps_error why);
void ddps_sc_violation(struct ddps_sctp_assoc *a, const char *what);

/* ---- sctp_rx.c, sctp_reasm.c, sctp_stream.c, sctp_sack.c ---- */
ddps_sc_handler ddps_sc_data, ddps_sc_sack_in;
void ddps_sc_rx_done(struct ddps_sc_rx *rx);
void ddps_sc_charge(struct ddps_sctp_assoc *a, size_t len);
void ddps_sc_uncharge(struct ddps_sctp_assoc *a, size_t len);
#define DDPS_SC_ITEM 384u /* what a held item costs in addition to its octets: a lone fragment */
void ddps_sc_share_inbox(struct ddps_sctp *e);
#define DDPS_SC_PERIOD (100 * MS) /* in which it is counted who receives much */
/* Octets that are held: one chunk of all that is reported has to fit, with what it costs. */
static inline size_t ddps_sc_used(const struct ddps_sctp_assoc *a)
{
	const size_t octets = a->held + a->kept;

	return octets ? octets + DDPS_SC_ITEM : 0;
}
/* [9260-6.2-6] Less than a packet is not worth telling. */
static inline bool ddps_sc_is_shut(const struct ddps_sctp_assoc *a)
{
	return ddps_sc_used(a) + 1500 > a->e->c.rwnd;
}
static inline uint32_t ddps_sc_rwnd(const struct ddps_sctp_assoc *a)
{
	const struct ddps_sctp *e = a->e;
	uint32_t left, share;

	if (ddps_sc_is_shut(a))
		return 0;
	left = (uint32_t)(e->c.rwnd - ddps_sc_used(a));
	share = e->share[a->net];
	return left < share || e->now - e->period_at >= 2 * DDPS_SC_PERIOD ? left : share;
}
/* It is larger than what the peer knows. */
static inline bool ddps_sc_has_window_news(const struct ddps_sctp_assoc *a)
{
	return a->told_rwnd < a->e->c.rwnd && a->told_rwnd < ddps_sc_rwnd(a);
}
/* 0, DDPS_E_PROTOCOL, DDPS_E_NOMEM (as if it had not come), DDPS_E_LIMIT: too long. */
int ddps_sc_fragment(struct ddps_sctp_assoc *a, const struct ddps_sc_data *d);
int ddps_sc_fragment_fits(const struct ddps_sctp_assoc *a, const struct ddps_sc_data *d);
void ddps_sc_reasm_free(struct ddps_sctp_assoc *a);
/* A whole message; @own: its octets are pool memory of @m->len, to be taken over.
 * 0, DDPS_E_NOMEM (as if it had not come), DDPS_E_PROTOCOL. */
int ddps_sc_whole(struct ddps_sctp_assoc *a, const struct ddps_sctp_msg *m);
/* Whether ddps_sc_whole() would keep a copy. */
bool ddps_sc_would_hold(struct ddps_sctp_assoc *a, const struct ddps_sctp_msg *m);
void ddps_sc_deliver_ready(struct ddps_sctp_assoc *a);
void ddps_sc_streams_free(struct ddps_sctp_assoc *a);
/* What a SACK begins with, which is to leave now, so that none is due. */
static inline struct ddps_sc_sack_hdr ddps_sc_begin_sack(struct ddps_sctp_assoc *a)
{
	a->told_rwnd = ddps_sc_rwnd(a);
	a->sack_packets = 0;
	a->sack_at = DDPS_SC_NEVER;
	a->due &= (uint8_t)~DUE_SACK;
	return (struct ddps_sc_sack_hdr){ .type = SC_SACK,
					  .len = htobe16(sizeof(struct ddps_sc_sack_hdr)),
					  .cum = htobe32(a->map.cum),
					  .rwnd = htobe32(a->told_rwnd) };
}
size_t ddps_sc_put_sack(struct ddps_sctp_assoc *a, struct ddps_wbuf *w, size_t room);
void ddps_sc_sack_again(struct ddps_sctp_assoc *a, const struct ddps_sctp_out *out);
void ddps_sc_want_sack(struct ddps_sctp_assoc *a);
void ddps_sc_window_update(struct ddps_sctp_assoc *a);
void ddps_sc_take_sack(struct ddps_sctp_assoc *a, const struct ddps_sent_sack *s);
/* One without gaps and duplicates. */
void ddps_sc_take_cum(struct ddps_sctp_assoc *a, const struct ddps_sc_sack_hdr *h);

/* ---- sctp_path.c ---- */
void ddps_sc_path_good(struct ddps_sc_path *p);
void ddps_sc_path_error(struct ddps_sc_path *p);
void ddps_sc_path_refused(struct ddps_sc_path *p); /* its host says that nobody takes SCTP */
void ddps_sc_path_pick(struct ddps_sctp_assoc *a);
bool ddps_sc_is_silent(const struct ddps_sctp_assoc *a); /* every path has failed */
void ddps_sc_ask_paths(struct ddps_sctp_assoc *a);	 /* those that have not, immediately */
void ddps_sc_path_timer(struct ddps_sc_path *p);
void ddps_sc_path_start(struct ddps_sc_path *p);
ddps_sc_handler ddps_sc_heartbeat, ddps_sc_heartbeat_ack;
unsigned ddps_sc_overhead(const struct ddps_sc_path *p);
void ddps_sc_put_probe(struct ddps_sc_path *p, uint16_t size, struct ddps_wbuf *w);
static inline bool ddps_sc_sends_hb(const struct ddps_sctp_assoc *a)
{
	return a->state == SC_ESTABLISHED || a->state == SC_PENDING || a->state == SC_RECEIVED;
}
static inline uint64_t ddps_sc_pmtu_deadline(const struct ddps_sc_path *p)
{
	return ddps_sc_sends_hb(p->a) ? ddps_pmtu_deadline(&p->tx.pmtu) : DDPS_SC_NEVER;
}
static inline uint64_t ddps_sc_path_deadline(const struct ddps_sc_path *p)
{
	uint64_t at = ddps_sent_deadline(&p->a->tx, &p->tx), pm = ddps_sc_pmtu_deadline(p);

	if (p->hb_at < at)
		at = p->hb_at;
	return pm < at ? pm : at;
}
/* A HEARTBEAT of so many octets; returns its nonce. */
#define DDPS_SC_HB_LEN 40u
uint64_t ddps_sc_put_hb(struct ddps_wbuf *w, const struct ddps_sc_path *p);

/* ---- sctp_roam.c ---- */
/* Inside DTLS: the peer was seen at p->roam.  Ask there, unless that is known, or nothing was seen. */
void ddps_sc_roam(struct ddps_sc_path *p);
/* It has answered. */
void ddps_sc_roamed(struct ddps_sc_path *p);
/* A path that is due to be probed, with what @size; NULL: none. */
static inline struct ddps_sc_path *ddps_sc_probe_path(const struct ddps_sctp_assoc *a,
						      uint16_t *size)
{
	if (!ddps_sc_sends_hb(a))
		return NULL;
	for (unsigned i = 0; i < a->npaths; i++) {
		*size = ddps_pmtu_probe(&a->path[i]->tx.pmtu, a->e->now);
		if (*size)
			return a->path[i];
	}
	return NULL;
}
static inline bool ddps_sc_has_probe(const struct ddps_sctp_assoc *a)
{
	uint16_t size;

	return ddps_sc_probe_path(a, &size);
}

/* ---- sctp_msg.c, sctp_tx.c ---- */
void ddps_sc_acked(void *user, uint32_t tsn, void *chunk);
void ddps_sc_queue_free(struct ddps_sctp_assoc *a);
void ddps_sc_writable(struct ddps_sctp_assoc *a); /* it is blocked: is there room again? */
static inline void ddps_sc_may_write(struct ddps_sctp_assoc *a)
{
	if (a->blocked)
		ddps_sc_writable(a);
}
size_t ddps_sc_next_len(const struct ddps_sctp_assoc *a, size_t most);
/* The next piece, of so many octets; NULL: no memory. */
struct ddps_sc_piece *ddps_sc_cut(struct ddps_sctp_assoc *a, size_t len);
/* All of @m, of which nothing was cut. */
struct ddps_sc_piece *ddps_sc_whole_piece(struct ddps_sc_msg *m);
/* Give it back uncut. */
void ddps_sc_uncut(struct ddps_sctp_assoc *a, struct ddps_sc_piece *pc);
void ddps_sc_cut_done(struct ddps_sctp_assoc *a, struct ddps_sc_piece *pc);
int ddps_sc_assoc_output(struct ddps_sctp_assoc *a, struct ddps_sctp_out *out);
bool ddps_sc_all_acked(const struct ddps_sctp_assoc *a);

/* ---- what leaves ---- */
static inline bool ddps_sc_data_waits(const struct ddps_sctp_assoc *a)
{
	return (!STAILQ_EMPTY(&a->queue) || a->tx.nlost || a->ask) && ddps_sc_sends_hb(a);
}
static inline bool ddps_sc_has_output(const struct ddps_sctp_assoc *a)
{
	if (a->due || !STAILQ_EMPTY(&a->blobs))
		return true;
	return ddps_sc_sends_hb(a) &&
	       (!STAILQ_EMPTY(&a->queue) || a->tx.nlost || a->ask || ddps_sc_has_probe(a));
}

/* ---- sctp_check.c ---- */
#ifdef DDPS_ASSERTS
/* Lists, counts and sums of a living one are of one mind. */
void ddps_sc_check(const struct ddps_sctp_assoc *a);
size_t ddps_sc_reasm_held(const struct ddps_sctp_assoc *a);
#else
static inline void ddps_sc_check(const struct ddps_sctp_assoc *a)
{
	(void)a;
}
#endif

#endif
