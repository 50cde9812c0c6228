/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_KERNEL_H
#define DDPS_SD_KERNEL_H
/*
 * Inside the backend for the kernel's SCTP (one-to-one sockets):
 *   sd_kernel.c	the backend's operations
 *   sd_kernel_dial.c	how one is connected
 *   sd_kernel_sock.c	its sockets: options, UDP encapsulation, names
 *   sd_kernel_homes.c	several addresses; what there is to see of an association
 *   sd_kernel_rx.c	what comes out of an association
 *   sd_kernel_life.c	what follows from that: it comes up, messages go up, it ends
 */
#include "common/error.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sctp_ddp/sd_backend.h"
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <sys/queue.h>

enum ddps_sk_what {
	DDPS_SK_NOTHING,    /* to read now */
	DDPS_SK_END,	    /* of the socket: sys_errno, 0: as both sides wanted, or an ABORT */
	DDPS_SK_DATA,	    /* stream, ppid, unordered, data, len, eor */
	DDPS_SK_UP,	    /* in_streams, out_streams */
	DDPS_SK_INDICATION, /* adaptation */
	DDPS_SK_LOST,	    /* its cause is the socket's error */
	DDPS_SK_RESTART,
	DDPS_SK_SHUT_DONE,
	DDPS_SK_PEER_SHUT,
	DDPS_SK_DRY,
	DDPS_SK_PART_LOST, /* the rest of a message will not come */
	DDPS_SK_OTHER	   /* a notification that nothing follows from */
};

/* What one read of the socket brought. */
struct ddps_sk_item {
	enum ddps_sk_what what;
	int sys_errno;
	bool eor, unordered;
	uint16_t stream, in_streams, out_streams;
	uint32_t ppid, adaptation;
	const uint8_t *data;
	size_t len;
};

/* Who listens; an endpoint begins with it. */
struct ddps_sk_owner {
	const struct ddps_sd_listen_up *up;
	void *user;
};

struct ddps_sk_life {
	struct ddps_env *env;
	const struct ddps_sd_assoc_up *up;
	void *user;
	const struct ddps_sk_owner *ep; /* accepted, not announced yet */
	struct ddps_timer deadline;
	struct ddps_sd_assoc_info info;
	bool accepted;
	bool up_seen;	/* COMM_UP was read; the indication may follow */
	bool announced; /* comm_up() or accepted() was called */
	bool peer_shut, shut, paused, want_write, want_dry;
	bool ending, ended; /* end is set; gone() was called */
	bool serving, freed;
	struct ddps_error end;
	struct ddps_sd_part part;
};

/* One context's use of the backend. */
struct ddps_sk_env {
	struct ddps_env *env;
	uint8_t *rx_buf; /* DDPS_SD_MSG_MAX octets */
	TAILQ_HEAD(, ddps_sd_assoc) assocs;
	LIST_HEAD(, ddps_sd_endpoint) endpoints;
};

struct ddps_sd_endpoint {
	struct ddps_sk_owner owner;
	struct ddps_sk_env *ke;
	struct ddps_io io;
	struct ddps_timer retry; /* no descriptor was left for a peer */
	uint16_t encap;
	bool list; /* of addresses */
	uint8_t tos;
	int family;
	LIST_ENTRY(ddps_sd_endpoint) of_env;
};

struct ddps_sd_assoc {
	struct ddps_sk_life life;
	struct ddps_sk_env *ke;
	struct ddps_io io; /* fd -1: ended */
	struct ddps_task task;
	bool connecting;
	struct ddps_sk_dial *dial;  /* it is made to one of several addresses, or was */
	uint64_t sent, sent_at_ask; /* messages; see sd_kernel_rx.c on_dry() */
	uint64_t octets;	    /* read */
	TAILQ_ENTRY(ddps_sd_assoc) of_env;
};

/* ---- sd_kernel.c ---- */

/* What a context has of its own, made if there is none yet.  0 or DDPS_E_NOMEM. */
int ddps_sk_env_get(struct ddps_env *env, void **ctx, struct ddps_sk_env **out);
/* NULL: no memory; @fd stays the caller's then. */
struct ddps_sd_assoc *ddps_sk_assoc_new(struct ddps_sk_env *ke, int fd);
/* The end is near: gone() from the loop. */
void ddps_sk_end_soon(struct ddps_sd_assoc *a, struct ddps_error e);
/* Wait for what is of interest now. */
void ddps_sk_watch(struct ddps_sd_assoc *a);
void ddps_sk_close(struct ddps_sd_assoc *a);
void ddps_sk_release(struct ddps_sd_assoc *a);

/* ---- sd_kernel_dial.c ---- */

/* As in struct ddps_sd_backend. */
int ddps_sk_dial(struct ddps_env *env, void **ctx, const struct ddps_uri *uri,
		 const struct sockaddr *sa, socklen_t sa_len, const struct ddps_llp_param *param,
		 const struct ddps_sd_assoc_up *up, void *user, struct ddps_sd_assoc **out);
/* The set-up has failed so: the next address of the list is tried.  false: there is none, or that would not help. */
bool ddps_sk_dial_next(struct ddps_sd_assoc *a, int sys_errno);

/* ---- sd_kernel_sock.c ---- */

/* Whether the kernel has SCTP. */
bool ddps_sk_available(void);
/* -1 and errno; *@err is DDPS_E_UNSUPPORTED where the kernel has no SCTP. */
int ddps_sk_socket(int family, int *err);
/* Connect over UDP to this port of the peer's, DDPS_URI_ENCAP_OFF: directly on IP, ..._DEFAULT: as
 * the system says (net.sctp.encap_port); 0, or DDPS_E_UNSUPPORTED with errno. */
int ddps_sk_encap_to(int fd, int family, int port);
/* Listen on @wanted, 0: whatever there is, < 0: not over UDP.  *@encap: the UDP port, or 0. */
int ddps_sk_encap_at(int wanted, uint16_t *encap);
/* What it is bound to. */
struct ddps_addr ddps_sk_name(int fd, char *buf, size_t len);
/* Off: its end is in order, and the kernel carries it out after the socket is closed. */
void ddps_sk_abort_on_close(struct ddps_sd_assoc *a, bool on);
/* A notification of this type from now on; no longer. */
int ddps_sk_event(struct ddps_sd_assoc *a, uint16_t type, bool on);
/* Addresses, known from COMM_UP on. */
void ddps_sk_addresses(struct ddps_sd_assoc *a);

/* ---- sd_kernel_homes.c ---- */

/* Of a socket for @sa and the URI's lists. */
int ddps_sk_family(const struct sockaddr *sa, const struct ddps_uri *uri);
/* Whether each address of the peer has one of ours, if those are given. */
bool ddps_sk_families_fit(const struct sockaddr *sa, const struct ddps_uri *uri);
/* Bind to all of @list; connect to all of it.  0, or -1 and errno. */
int ddps_sk_bind(int fd, const struct ddps_uri_addrs *list);
int ddps_sk_connect(int fd, const struct ddps_uri_addrs *list);
/* "192.0.2.1,[2001:db8::1]:7174": what it is bound to. */
void ddps_sk_endpoint_text(int fd, char *buf, size_t len);
/* The peer's address that is preferred: getpeername() has the last one of a list.  0, DDPS_E_STATE. */
int ddps_sk_primary(const struct ddps_sd_assoc *a, struct sockaddr_storage *ss);
/* The kernel's notification of a path goes to the log. */
void ddps_sk_path_note(const struct ddps_sd_assoc *a, const struct sctp_paddr_change *n);
/* As in struct ddps_sd_backend. */
int ddps_sk_assoc_stats(struct ddps_sd_assoc *a, struct ddps_assoc_stats *st);
int ddps_sk_path_stats(struct ddps_sd_assoc *a, uint32_t path, struct ddps_path_stats *st);
int ddps_sk_set_primary(struct ddps_sd_assoc *a, uint32_t path);

/* ---- sd_kernel_rx.c ---- */

/* For SCTP_SENDER_DRY: when all that was sent by now has been acknowledged. */
void ddps_sk_ask_dry(struct ddps_sd_assoc *a);
struct ddps_sk_item ddps_sk_take(struct ddps_sd_assoc *a);
/* SO_ERROR, which is reset. */
int ddps_sk_so_error(const struct ddps_sd_assoc *a);
/* What an end with this errno means. */
struct ddps_error ddps_sk_why(const struct ddps_sd_assoc *a, int sys_errno);
/* The event that want_dry asked for; it may be stale. */
void ddps_sk_dry(struct ddps_sd_assoc *a);
/* Deliver what @a has; @events are epoll's, or 0.  Called from the loop. */
void ddps_sk_serve(struct ddps_sd_assoc *a, uint32_t events);

/* ---- sd_kernel_life.c ---- */

/* For a new association, all of whose octets are 0. */
void ddps_sk_life_init(struct ddps_sk_life *l, struct ddps_env *env);
/* Whether there is anything to do with it but to end it. */
bool ddps_sk_life_alive(const struct ddps_sk_life *l);
/* One item; returns whether there may be more. */
bool ddps_sk_life_step(struct ddps_sk_life *l);
/* The socket has ended, with this errno or 0. */
void ddps_sk_life_on_end(struct ddps_sk_life *l, int sys_errno);
/* A turn of the loop begins: whether there is anything to read. */
bool ddps_sk_life_enter(struct ddps_sk_life *l);
/* It ends: gone() if it is over, and release() if it was freed; then false. */
bool ddps_sk_life_leave(struct ddps_sk_life *l);

/* Operations of struct ddps_sd_backend. */
void ddps_sk_life_set_up(struct ddps_sd_assoc *a, const struct ddps_sd_assoc_up *up, void *user);
void ddps_sk_life_abort(struct ddps_sd_assoc *a);
void ddps_sk_life_free(struct ddps_sd_assoc *a);

#endif
