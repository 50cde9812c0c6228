/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_SCTP_ULP_H
#define FUZZ_SCTP_ULP_H
/* The world of fuzz_sctp.c, and the layer above the sessions in it. */
#include "fuzz.h"
#include "sctp_ddp/sd_assoc.h"
#include "support/fake_sctp.h"

#define SESSIONS 24
#define RAWS	 3
#define STREAMS	 4

struct ulp {
	struct world *w;
	struct ddps_llp *llp; /* NULL: free */
	bool initiator, enhanced, open, refused, peer_closed, closed, holding, held;
	bool free_inside, refuse;
	unsigned to_send, pulled, done;
	uint16_t next; /* DDP-SSN of the next segment, which its first octets say too */
};

/* What one end of a stream pair has seen of the other. */
struct seen {
	uint16_t next; /* DDP-SSN */
	bool begun, over, accepted;
};

struct peer {
	struct ddps_sd_assoc *raw;
	uint16_t tx[STREAMS];
	struct seen rx[STREAMS];
};

struct world {
	struct ddps_env env;
	struct ddps_uri uri;
	struct ddps_llp_param param;
	struct ddps_llp_listener *listener;
	struct ulp ulp[SESSIONS];
	unsigned nulp;
	struct peer peer[RAWS];
	unsigned npeer;
	uint64_t now;
};

extern const struct ddps_llp_data ulp_data;
extern const struct ddps_llp_up ulp_up;
extern const struct ddps_llp_listen_up ulp_listen_up; /* its user is the world */

/* NULL: there are as many as there may be. */
struct ulp *ulp_new(struct world *w);
/* It frees its session, if it has one. */
void ulp_leave(struct ulp *u);

#endif
