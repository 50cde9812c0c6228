/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FAKE_SCTP_H
#define FAKE_SCTP_H
/*
 * An SCTP in memory behind the backend contract: deterministic, driven by the loop, with
 * knobs for faults.  Raw ends are the test's own: it sends and reads single user messages.
 * One network per process; Criterion runs every test in a process of its own.
 */
#include "sctp_ddp/sd_backend.h"
#include <sys/queue.h>

extern const struct ddps_sd_backend fake_sctp;

/* What new associations are like; set before they are made. */
extern struct fake_sctp_net {
	uint16_t in_streams, out_streams;
	bool no_adaptation; /* of raw ends */
	uint32_t adaptation;
	size_t max_user_data;
	unsigned room;	  /* messages in flight before send() says DDPS_E_AGAIN; 0: any */
	uint32_t reorder; /* seed; 0: in order */
	bool hold_dry;
	const char *from;  /* whom info() names as peer; NULL: 127.0.0.1:2 */
	int fail;	   /* of connect() and listen() */
	unsigned connects; /* counted */
} fake_sctp_net;

struct fake_sctp_msg {
	TAILQ_ENTRY(fake_sctp_msg) link;
	uint16_t stream;
	uint32_t ppid;
	bool unordered;
	size_t len;
	uint8_t data[];
};

TAILQ_HEAD(fake_sctp_queue, fake_sctp_msg);

struct ddps_sd_assoc {
	TAILQ_ENTRY(ddps_sd_assoc) link; /* raw ends */
	struct ddps_env *env;
	const struct ddps_sd_assoc_up *up;
	void *user;
	struct ddps_sd_assoc *peer;
	struct ddps_sd_assoc_info info;
	struct ddps_task task;
	struct fake_sctp_queue in;    /* on the way to this end */
	struct fake_sctp_queue inbox; /* raw ends: arrived */
	struct ddps_sd_endpoint *accept_at;
	struct ddps_error error;
	bool raw, comm_up, restart, shut, peer_shut, over, told, busy, freed;
	/* knobs, may be changed at any time; fake_sctp_poke() afterwards */
	bool hold;     /* deliver nothing to this end */
	bool hold_dry; /* tell this end of no acknowledgements */
	unsigned room; /* of this end's sending */
	size_t packet_room;
	uint32_t reorder;
	/* counted */
	unsigned nin, narrived; /* on the way; in the inbox */
	unsigned asks, agains, aborts, shutdowns, flushes;
	bool ask, want_room;
};

/* A raw end that connects to a listener's port; it is up when the loop has run. */
struct ddps_sd_assoc *fake_sctp_raw_connect(struct ddps_env *env, uint16_t port);
/* A port whose associations end at raw ends; and the newest of them, or NULL. */
void fake_sctp_raw_listen(struct ddps_env *env, uint16_t port);
struct ddps_sd_assoc *fake_sctp_raw_accepted(uint16_t port);
void fake_sctp_raw_send(struct ddps_sd_assoc *raw, uint16_t stream, uint32_t ppid, const void *data,
			size_t len);
/* The oldest message that has arrived at a raw end, to be freed; NULL: none. */
struct fake_sctp_msg *fake_sctp_raw_take(struct ddps_sd_assoc *raw);

void fake_sctp_poke(struct ddps_sd_assoc *a);
void fake_sctp_ordered(struct ddps_sd_assoc *raw, uint16_t stream, uint32_t ppid, const void *data,
		       size_t len);
/* The listening endpoint at @port fails. */
void fake_sctp_fail(uint16_t port, int code);
/* Both ends lose the association. */
void fake_sctp_lose(struct ddps_sd_assoc *a, int code);
/* The peer of @a has restarted it. */
void fake_sctp_restart(struct ddps_sd_assoc *a);

/* Free raw ends and endpoints, after the provider's fini. */
void fake_sctp_cleanup(void);

#endif
