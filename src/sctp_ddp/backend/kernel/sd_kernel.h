/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_KERNEL_H
#define DDPS_SD_KERNEL_H
/*
 * Inside the backend for the kernel's SCTP (one-to-one sockets):
 *   sd_kernel.c	the backend's operations
 *   sd_kernel_rx.c	what comes out of an association: messages and notifications
 */
#include "common/error.h"
#include "sctp_ddp/sd_backend.h"
#include "sctp_ddp/backend/sd_part.h"
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
	struct ddps_sk_env *ke;
	struct ddps_io io;
	struct ddps_timer retry; /* no descriptor was left for a peer */
	uint16_t encap;
	const struct ddps_sd_listen_up *up;
	void *user;
	struct ddps_sd_endpoint *prev, *next;
};

struct ddps_sd_assoc {
	struct ddps_sk_env *ke;
	struct ddps_io io; /* fd -1: ended */
	struct ddps_task task;
	struct ddps_timer deadline;
	const struct ddps_sd_assoc_up *up;
	void *user;
	struct ddps_sd_endpoint *ep; /* accepted, not announced yet */
	struct ddps_sd_assoc_info info;
	bool accepted;
	bool connecting;
	bool up_seen;	/* COMM_UP was read; the indication may follow */
	bool announced; /* comm_up() or accepted() was called */
	bool peer_shut, shut, paused, want_write, want_dry;
	bool doomed, ended; /* end is set; gone() was called */
	bool serving, freed;
	uint64_t sent, sent_at_ask; /* messages; see sd_kernel_rx.c on_dry() */
	struct ddps_error end;
	struct ddps_sd_part part;
	struct ddps_sd_assoc *prev, *next;
};

/* ---- sd_kernel.c ---- */

/* The end is near: gone() from the loop. */
void ddps_sk_doom(struct ddps_sd_assoc *a, struct ddps_error e);
/* Wait for what is of interest now. */
void ddps_sk_watch(struct ddps_sd_assoc *a);
void ddps_sk_close(struct ddps_sd_assoc *a);
void ddps_sk_release(struct ddps_sd_assoc *a);
int ddps_sk_event(struct ddps_sd_assoc *a, uint16_t type, bool on);
/* Streams and addresses, known from COMM_UP on. */
void ddps_sk_addresses(struct ddps_sd_assoc *a);

/* ---- sd_kernel_rx.c ---- */

/* Deliver what @a has; @events are epoll's, or 0.  Called from the loop. */
void ddps_sk_serve(struct ddps_sd_assoc *a, uint32_t events);

#endif
