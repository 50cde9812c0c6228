/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_KERN_SCTP_H
#define SIM_KERN_SCTP_H
/*
 * Inside SCTP of the simulated kernel: kern_sctp.c (ends, how they begin and end, messages),
 * kern_sctp_opt.c (options, and what else the system says of them).
 */
#include "sim/kern_in.h"
#include <netinet/sctp.h>

#define KS_SEC	 1000000000ull
#define KS_HOMES 4u

struct ks_item { /* a message, or a notification; in the order of arrival */
	struct ks_item *next;
	uint64_t at;
	bool note, unordered;
	uint16_t stream;
	uint32_t ppid;
	size_t len, off;
	uint8_t octets[];
};

struct ks_homes {
	unsigned host[KS_HOMES], n;
};

/* One end; of a listener, what the ends are like that it accepts. */
struct kern_sctp {
	struct kern_sctp *peer, *next; /* next: in a listener's queue */
	struct ks_item *first;
	size_t unread; /* octets of messages, and on their way here */
	unsigned events;
	bool linger, asked, dead, heard, shut, busy;
	bool gone;	     /* the peer's socket has been closed, in order */
	uint64_t up_at;	     /* when connect is through */
	uint64_t last_at;    /* all has arrived */
	uint64_t acked_at;   /* all that was sent is acknowledged */
	uint64_t shut_at;    /* the peer's SHUTDOWN arrives */
	uint64_t full_until; /* it takes nothing to send */
	uint64_t end_at;
	uint16_t end_how; /* a state of SCTP_ASSOC_CHANGE */
	int end_err, err;
	bool adaptation;
	uint32_t indication;
	uint16_t encap, streams;
	unsigned peer_host, primary;
	struct ks_homes own, theirs;
	uint16_t peer_port;
};

size_t ks_window(void);
size_t ks_used(const struct kern_sctp *t);
/* When what is sent now arrives: what is lost comes again after a while. */
uint64_t ks_arrival(void);
/* ... behind all that is on its way to @t. */
uint64_t ks_in_order(struct kern_sctp *t);
void ks_insert(struct kern_sctp *t, struct ks_item *it);
/* Of notifications: its bit in events. */
unsigned ks_bit(unsigned type);
void ks_note_change(struct kern_sctp *t, uint64_t at, uint16_t state);
void ks_note_dry(struct kern_sctp *t);
void ks_end(struct kern_sctp *t, uint64_t at, uint16_t how, int err);
void ks_abort_peer(struct kern_sctp *t);
/* What has happened by now. */
void ks_settle(struct kern_sctp *t);
bool ks_up(const struct kern_sctp *t);
bool ks_arrived(const struct kern_sctp *t);

#endif
