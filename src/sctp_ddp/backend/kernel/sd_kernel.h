/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_KERNEL_H
#define DDPS_SD_KERNEL_H
/*
 * Inside the backend for the kernel's SCTP (one-to-one sockets):
 *   sd_kernel.c	the backend's operations
 *   sd_kernel_sock.c	its sockets: options, UDP encapsulation, names
 *   sd_kernel_rx.c	what comes out of an association
 *   ../sd_life.c	what follows from that
 */
#include "sctp_ddp/backend/sd_life.h"
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <utlist.h>

/* One context's use of the backend. */
struct ddps_sk_env {
	struct ddps_env *env;
	uint8_t *rx_buf; /* DDPS_SD_MSG_MAX octets */
	struct ddps_sd_assoc *assocs;
	struct ddps_sd_endpoint *endpoints;
};

struct ddps_sd_endpoint {
	struct ddps_sd_owner owner;
	struct ddps_sk_env *ke;
	struct ddps_io io;
	struct ddps_timer retry; /* no descriptor was left for a peer */
	uint16_t encap;
	struct ddps_sd_endpoint *prev, *next;
};

struct ddps_sd_assoc {
	struct ddps_sd_life life;
	struct ddps_sk_env *ke;
	struct ddps_io io; /* fd -1: ended */
	struct ddps_task task;
	bool connecting;
	uint64_t sent, sent_at_ask; /* messages; see sd_kernel_rx.c on_dry() */
	struct ddps_sd_assoc *prev, *next;
};

/* ---- sd_kernel.c ---- */

/* The end is near: gone() from the loop. */
void ddps_sk_doom(struct ddps_sd_assoc *a, struct ddps_error e);
/* Wait for what is of interest now. */
void ddps_sk_watch(struct ddps_sd_assoc *a);
void ddps_sk_close(struct ddps_sd_assoc *a);
void ddps_sk_release(struct ddps_sd_assoc *a);

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
/* Its own name, or its peer's. */
void ddps_sk_name(int fd, bool peer, char *buf, size_t len);
/* A notification of this type from now on; no longer. */
int ddps_sk_event(struct ddps_sd_assoc *a, uint16_t type, bool on);
/* Addresses, known from COMM_UP on. */
void ddps_sk_addresses(struct ddps_sd_assoc *a);

/* ---- sd_kernel_rx.c ---- */

extern const struct ddps_sd_life_ops ddps_sk_life;
/* Deliver what @a has; @events are epoll's, or 0.  Called from the loop. */
void ddps_sk_serve(struct ddps_sd_assoc *a, uint32_t events);

#endif
