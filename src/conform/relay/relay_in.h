/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_RELAY_IN_H
#define DDPS_CONFORM_RELAY_IN_H
/* What the two kinds of relay share: time, chance, and pieces that wait for their time. */
#include "conform/relay/relay.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "conform/peer/peer.h"

#define RELAY_LINKS 16			  /* TCP connections at a time */
#define RELAY_FDS   (1 + 2 * RELAY_LINKS) /* that it waits for, its own end not counted */
#define RELAY_HELD  65536u		  /* octets that wait in one direction */
#define RELAY_READ  65536u		  /* read at a time: more than a datagram has */

struct piece {
	struct piece *next;
	uint64_t due;	       /* ns */
	enum cf_stroke stroke; /* at its place in the stream, without octets */
	size_t len, gone;
	bool wrong; /* changed on the way */
	uint8_t b[];
};

/* One direction: a queue in order of time. */
struct lane {
	struct piece *first;
	size_t held;
	uint64_t last_due; /* TCP: nothing overtakes */
};

struct tcp_link {
	LIST_ENTRY(tcp_link) of_relay;
	int fd[2]; /* [0]: the partner's, [1]: the target's */
	unsigned number;
	struct lane lane[2];	/* [0]: to the target, [1]: from it */
	bool ended[2], shut[2]; /* nothing more comes from fd[i]; lane i has handed that on */
	uint64_t seen;		/* octets to the target that were read */
	bool struck, dead;
	uint64_t stall; /* until then */
};

struct cf_relay {
	struct cf_relay_plan plan;
	bool udp;
	struct sockaddr_storage to;
	socklen_t to_len;
	struct cf_trace *trace;
	uint64_t begin;
	pthread_t thread;
	int stop[2]; /* a pipe whose writing end is closed at the end */
	int front;   /* TCP: listens; UDP: the partner's side */
	uint16_t port;
	uint64_t chance;
	unsigned links_made; /* counted from the first one's number; UDP: that */
	atomic_int refusal;  /* errno */
	_Atomic uint64_t connections, refused, passed, lost, doubled, flipped, strokes;
	/* TCP */
	LIST_HEAD(, tcp_link) links;
	/* UDP */
	int back; /* connected to the target */
	struct sockaddr_storage from;
	socklen_t from_len;
	struct lane lane[2];
	uint64_t seen, stall;
	uint8_t buf[RELAY_READ];
};

uint64_t relay_now(void);
/* 0 to @n - 1. */
uint32_t relay_chance(struct cf_relay *r, uint32_t n);
/* Behind all that is due no later; NULL if there is no memory, then it is lost. */
struct piece *relay_push(struct lane *l, const void *p, size_t len, uint64_t due);
struct piece *relay_pop(struct lane *l);
/* When a piece that comes now is due. */
uint64_t relay_due(struct cf_relay *r, uint64_t now);

/*
 * One turn of either kind: _fds fills in what to wait for and gives when to look again at the latest
 * (UINT64_MAX: no need), _turn deals with what has come and with what is due.
 */
size_t relay_tcp_fds(struct cf_relay *r, struct pollfd *p, uint64_t *next);
void relay_tcp_turn(struct cf_relay *r);
void relay_tcp_end(struct cf_relay *r);
size_t relay_udp_fds(struct cf_relay *r, struct pollfd *p, uint64_t *next);
void relay_udp_turn(struct cf_relay *r);
void relay_udp_end(struct cf_relay *r);

/*
 * A partner that is known to be good: this project's own stack as initiator, through a relay.
 * It needs nothing of the target's application, since zero-length RDMA Reads are answered below it.
 *
 * Calls fail the case like those of peer.h.
 */

/* A session through a relay of this kind.  False: it was not made; cf_partner_why() says why. */
bool cf_partner_connects(struct cf *cf, const struct cf_relay_plan *plan);
/*
 * So many zero-length Reads, @depth at a time.  In self mode each @depth is followed by a block of
 * octets that is written to the target, read back and compared.  False: the session ended meanwhile.
 */
bool cf_partner_works(struct cf *cf, unsigned reads, unsigned depth);
/*
 * Both of that where the relay does damage: whether all of the work was done.  Whatever takes longer than
 * a tenth of the run's limit is given up.
 */
bool cf_partner_manages(struct cf *cf, const struct cf_relay_plan *plan, unsigned reads);
/* Why a session was not made, or has ended. */
const char *cf_partner_why(struct cf *cf);
struct cf_relay_sum cf_partner_relay(struct cf *cf);
/* Nothing is left of it: relay, session, context.  Nothing to end is fine. */
void cf_partner_end(struct cf *cf);

#endif
