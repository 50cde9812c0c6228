/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_PEER_USRSCTP_IN_H
#define DDPS_TEST_PEER_USRSCTP_IN_H
/*
 * Inside the peer:
 *   usrsctp_net.c	UDP sockets (RFC 6951) and usrsctp's sockets
 *   usrsctp_up.c	what comes out of an association
 *   usrsctp.c		the backend's operations
 *
 * usrsctp knows a peer by a pointer (AF_CONN) and hands packets out by a callback.  Its upcalls are
 * not used: after every packet, call and tick all associations are looked at.
 */
#include "common/error.h"
#include "peer/usrsctp.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sctp_ddp/backend/sd_sock.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>
#include <utlist.h>

#define PATH 1400u /* octets of an SCTP packet */
#define TURN 64	   /* packets or items, then others have theirs */

struct way;

/* A UDP socket, and whoever was heard through it. */
struct link {
	struct peer *p;
	struct ddps_io io;
	uint16_t port;
	unsigned refs;
	struct way *ways;
	struct link *prev, *next;
};

/* What usrsctp knows a peer by. */
struct way {
	struct link *l;
	struct sockaddr_storage to;
	socklen_t len;
	struct way *next;
};

struct ddps_sd_endpoint {
	struct peer *p;
	struct link *l;
	struct socket *so;
	uint16_t port;
	const struct ddps_sd_listen_up *up;
	void *user;
	struct ddps_sd_endpoint *prev, *next;
};

struct ddps_sd_assoc {
	struct peer *p;
	struct link *l;
	struct socket *so; /* NULL: ended */
	const struct ddps_sd_assoc_up *up;
	void *user;
	struct ddps_sd_endpoint *ep; /* accepted, not announced yet */
	struct ddps_sd_assoc_info info;
	struct ddps_timer deadline;
	struct ddps_error end;
	bool up_seen, announced, paused, shut, peer_shut, want_write, want_dry;
	bool ending, told, freed;
	uint8_t *msg;
	size_t len;
	struct ddps_sd_assoc *prev, *next;
};

/* The context that uses it. */
struct peer {
	struct ddps_env *env;
	struct ddps_timer tick;
	struct ddps_task look;
	struct link *links;
	struct ddps_sd_endpoint *endpoints;
	struct ddps_sd_assoc *assocs;
};

/* ---- usrsctp_net.c ---- */

int us_output(void *addr, void *pkt, size_t len, uint8_t tos, uint8_t df);
/* What is at @to, seen from @l. */
struct way *us_way_to(struct link *l, const struct sockaddr_storage *to, socklen_t len);
int us_link_new(struct peer *p, const struct sockaddr_storage *at, socklen_t len,
		struct link **out);
/* Nobody reads it any more, and its port may be taken again. */
void us_link_put(struct link *l);
/* usrsctp may still send to a peer of an association that is gone: all go in the end. */
void us_link_free(struct link *l);
/* The address of @l with SCTP port @port. */
struct ddps_addr us_link_name(const struct link *l, uint16_t port, char *buf, size_t len);
/* A socket of usrsctp's bound to an SCTP port; NULL: it is taken. */
struct socket *us_socket_new(uint16_t port);

/* ---- usrsctp_up.c ---- */

struct ddps_sd_assoc *us_assoc_new(struct link *l, struct socket *so, const struct way *w,
				   uint16_t port, uint16_t peer_port);
/* It is over: gone() from the loop. */
void us_end_soon(struct ddps_sd_assoc *a, struct ddps_error e);
/* Nothing is at the UDP port that @l is connected to. */
void us_refused(struct link *l);
void us_release(struct ddps_sd_assoc *a);
/* At all endpoints and associations of a peer. */
void us_look(void *user);

#endif
