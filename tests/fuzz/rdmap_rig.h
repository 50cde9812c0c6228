/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_RDMAP_RIG_H
#define FUZZ_RDMAP_RIG_H
/*
 * One RDMAP stream for the fuzzer: its regions with a shadow of each, its work requests, and
 * what must be true of them at any time.
 */
#include "fuzz.h"
#include "rdmap/rdmap_priv.h"
#include "rdmap/rdmap_wire.h"
#include "rdmap_order.h"
#include "rdmap/srq.h"

#define RIG_REGIONS 6
#define RIG_WINDOWS 2
#define RIG_WORKS   ORDER_WORKS
#define RIG_SGE	    3
#define RIG_IRD	    3
#define RIG_MULPDU  400

enum rig_mode { RIG_WHOLE, RIG_DIRECT, RIG_DISTURB };

struct rig_region {
	struct ddps_mr *mr; /* NULL: deregistered, the memory is freed */
	uint8_t *mem, *shadow;
	uint16_t *cover; /* for each octet: work requests that may have it written */
	size_t len;
	uint32_t stag; /* the latest, also when it is gone */
	unsigned access, generation;
	bool foreign; /* bound to another stream */
};

struct rig_work {
	bool recv, shared, silent, done, settled;
	unsigned nsge;
	unsigned order; /* its number there */
	struct {
		unsigned region, generation;
		size_t off, len;
	} sge[RIG_SGE];
};

/* What a bind that was posted would give. */
struct rig_bind {
	unsigned window, region, generation, access;
	size_t off, len;
};

/* What a Read or atomic of ours asks the peer for. */
struct rig_ask {
	bool atomic;
	uint32_t stag, size, id;
	uint64_t to;
};

struct rig {
	struct ddps_stag_table *table;
	struct ddps_pd pd;
	struct ddps_srq srq;
	struct ddps_rdmap *r;
	struct rig_region region[RIG_REGIONS];
	struct ddps_mr *window[RIG_WINDOWS]; /* of one stream, and of all */
	struct rig_work work[RIG_WORKS];
	unsigned nwork;
	struct rig_bind bind[RIG_WORKS];
	unsigned nbinds;
	int64_t last_sq, last_rq; /* wr_id of the latest completion */
	bool rfc7306, use_srq, stall;
	/* from the upcalls */
	unsigned terms, term_segs, drains, firsts, unfetched;
	bool ready, started;
	bool dead; /* rx_segment has returned an error */
	/* a segment held back */
	uint8_t *held;
	size_t held_len;
	/* requests of ours that the peer has not answered, a ring; pulled and not done */
	struct rig_ask ask[16];
	unsigned nask, pulled;
	/* how segments are shown */
	enum rig_mode mode;
	size_t piece;					      /* octets placed at a time */
	void (*disturb)(struct rig *g, struct ddps_rbuf *in); /* between two pieces */
	struct ddps_rbuf *script;
	struct fuzz_log log;
	struct order order;
};

/* @flags: 1: RFC 7306, and with 0x80 Sends with immediate data; 2: a segment waits for its
 * receive; 4: a shared receive queue.  The stream is not started. */
void rig_init(struct rig *g, unsigned flags);
/* Flush, check that all work has ended, free everything. */
void rig_fini(struct rig *g);

void rig_register(struct rig *g, unsigned i);
void rig_deregister(struct rig *g, unsigned i);

/* Post; the pieces are read from @in. */
void rig_post_send(struct rig *g, struct ddps_rbuf *in);
void rig_post_recv(struct rig *g, struct ddps_rbuf *in);

/* One segment comes in. */
void rig_show(struct rig *g, const uint8_t *seg, size_t len);
/* The next one goes out. */
void rig_pull(struct rig *g, size_t mulpdu);

/* At most @octets may have changed since the last time, and only where something may. */
void rig_look(struct rig *g, size_t octets);

/* Between rdmap_rig.c and rdmap_memory.c. */

#define ALL_RIGHTS  (DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ)
#define ALL_FLUSHES (DDPS_FLUSHABLE | DDPS_PERSISTENT)

/* The upcall. */
int rig_persist(void *user, uint8_t *at, size_t len);
/* One request more, or with @by -1 one less, may have the octets of its pieces written. */
void rig_cover(struct rig *g, const struct rig_work *w, int by);
/* Whether a window gives the peer @right to [@at, @at + @len) of @m: one that is bound to it, and a
 * bind asked for as much. */
bool rig_by_window(const struct rig *g, const struct rig_region *m, size_t at, size_t len,
		   unsigned right);

#endif
