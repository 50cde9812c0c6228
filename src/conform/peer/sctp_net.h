/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_SCTP_NET_H
#define DDPS_CONFORM_SCTP_NET_H
/*
 * Between user messages (sctp.c) and what carries them: packets made by hand, in UDP or directly
 * on IP (sctp_packet.c and sctp_data.c), or the SCTP of the operating system (sctp_kernel.c).
 */
#include "conform/peer/inside.h"
#include <poll.h>

#define CF_SCTP_STREAMS 4096u /* asked for, each way: RFC 5043 section 8 */
#define CF_SCTP_DDP	1u    /* adaptation indication: RFC 5043 section 5.1 */
#define CF_SCTP_FDS	18

struct cf_queued {
	struct cf_queued *next;
	struct cf_msg m;
};

struct cf_assoc {
	struct cf_net *net;
	void *below; /* the carrier's */
	unsigned number;
	bool up, gone;
	char end[160]; /* why it is gone */
	const char *
		note; /* what is strange at its set-up, for whom the target keeps waiting, or NULL */
	struct cf_queued *first, **last;
	size_t held; /* octets in it: what the case has not read yet */
};

struct cf_carrier {
	/* Wait for associations; @uri is where.  Return: 0 or an errno. */
	int (*listen)(struct cf_net *n, const struct cf_at *at, char *uri, size_t len);
	/* Begin one.  Return: 0 or an errno. */
	int (*dial)(struct cf_assoc *as, const struct cf_at *at);
	/* What to poll for. */
	size_t (*fds)(struct cf_net *n, struct pollfd *p, size_t max);
	uint64_t (*due)(struct cf_net *n); /* the next timer; UINT64_MAX: none runs */
	/* Takes in what has come, and runs timers. */
	void (*step)(struct cf_net *n);
	/* One unordered message.  Return: false: not now, step() first. */
	bool (*send)(struct cf_assoc *as, uint16_t stream, uint32_t ppid, const void *p,
		     size_t len);
	void (*shutdown)(struct cf_assoc *as);
	void (*abort)(struct cf_assoc *as); /* it is gone then */
	void (*close)(struct cf_net *n);    /* ABORT whatever is left, free all */
};

extern const struct cf_carrier cf_sctp_packets, cf_sctp_kernel;
/* Whether the operating system has SCTP. */
bool cf_sctp_kernel_there(void);

struct cf_net {
	struct cf *cf;
	const struct cf_carrier *carrier;
	void *below;
	bool listening;
	char uri[160];		  /* where, if so */
	struct cf_assoc *waiting; /* for the target to come */
	struct cf_msg msg;	  /* the latest one read */
};

/*
 * For cases that make every packet themselves: a link to the target of which nothing was sent, or,
 * if the target is the initiator, a socket that it was asked to connect to (below is NULL then).
 */
struct cf_assoc *cf_sctp_bare(struct cf *cf);

/* ---- from a carrier ---- */

/* The one that waits for the target, which has come; NULL: nobody does. */
struct cf_assoc *cf_sctp_accept(struct cf_net *n);
/* A whole message of the target. */
void cf_sctp_heard(struct cf_assoc *as, uint16_t stream, uint32_t ppid, bool unordered,
		   const uint8_t *data, size_t len);
void cf_sctp_gone(struct cf_assoc *as, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
