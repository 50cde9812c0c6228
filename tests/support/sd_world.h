/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_WORLD_H
#define SD_WORLD_H
/* A loop, the SCTP provider over the SCTP in memory, and a layer above that records. */
#include "sctp_ddp/sd_assoc.h"
#include "support/fake_sctp.h"

#define SD_PORT	    7174
#define SD_RAW_PORT 7200
#define SD_SEG_HDR  18u /* octets of a segment's header; its first 4 are its number */

/* The layer above one session. */
struct sd_ulp {
	struct sd_world *w;
	struct ddps_llp *llp; /* NULL: free */
	/* behaviour */
	bool no_open;	   /* does not open after an accept */
	bool no_shut;	   /* does not shut down when the peer has closed */
	bool kick_on_done; /* as who posts the next when one is sent */
	bool kick_on_pull, abort_on_pull;
	struct sd_ulp *abort_on_done; /* another session ends when one is sent */
	bool free_on_answer, free_on_segment, abort_on_segment;
	int rx_result;	  /* of rx_segment; DDPS_LLP_HOLD is counted in holds only */
	unsigned to_send; /* segments */
	size_t pay_len;
	size_t asked; /* record: octets of a segment that there was room for last */
	/* record */
	unsigned answers, peer_closes, peer_closings, closes, segments, holds, pulled, done;
	bool rejected, enhanced;
	uint8_t pd[512];
	size_t pd_len;
	bool telling;
	bool out_of_order; /* segments came in another order than they were numbered */
	uint32_t expect;   /* number of the next segment */
	size_t last_len;
	struct ddps_error error;
};

struct sd_world {
	struct ddps_env env;
	struct ddps_uri uri;
	struct ddps_llp_listen_param lparam;
	struct ddps_llp_param param;
	struct ddps_llp_listener *listener;
	/* requests: answered immediately if @accept, else kept */
	bool accept;
	unsigned accept_send; /* segments an accepted session sends */
	struct sd_ulp *req;   /* in order of arrival; never freed before the end */
	unsigned nreq, max_req;
	int listener_error;
	long live;	/* pieces of memory that were there before */
	char log[4096]; /* last warnings and errors */
};

void sd_world_init(struct sd_world *w);
void sd_world_fini(struct sd_world *w);
/* Serve the loop until nothing is left to do now. */
void sd_run(struct sd_world *w);
/* The same until *@flag is not 0, waiting for timers; at most two seconds. */
void sd_run_until(struct sd_world *w, const unsigned *flag);
void sd_listen(struct sd_world *w);
int sd_connect(struct sd_world *w, struct sd_ulp *u, uint16_t port, bool enhanced, const void *pd,
	       size_t pd_len);
int sd_answer(struct sd_ulp *u, bool reject, const void *pd, size_t pd_len);
void sd_free(struct sd_ulp *u);
struct ddps_sd_pair *sd_pair_of(struct sd_ulp *u);
struct ddps_sd_carrier *sd_carrier_of(struct sd_world *w, unsigned n);

/* A raw end connected to the listener, and one that a session's association ended at. */
struct ddps_sd_assoc *sd_raw_to_listener(struct sd_world *w);
/* A raw end that the listener's side has an open session with on @stream. */
struct ddps_sd_assoc *sd_raw_open(struct sd_world *w, uint16_t stream);
/* A session connecting to a raw end: its Initiate was taken. */
struct ddps_sd_assoc *sd_raw_initiated(struct sd_world *w, struct sd_ulp *u, bool enhanced);

/* Send a control message or numbered segment from a raw end, then serve the loop. */
void sd_send(struct sd_world *w, struct ddps_sd_assoc *raw, uint16_t stream, const char *hex);
/* A message that @p holds says that it is so long that all take @octets. */
void sd_weigh_held(struct ddps_sd_pair *p, size_t octets);
void sd_send_segment(struct sd_world *w, struct ddps_sd_assoc *raw, uint16_t stream, uint16_t ssn,
		     uint32_t number);
void sd_push_segment(struct ddps_sd_assoc *raw, uint16_t stream, uint16_t ssn, uint32_t number,
		     size_t len);
/* The next message at a raw end is this control message. */
void sd_expect(struct ddps_sd_assoc *raw, uint16_t stream, const char *hex);
/* No message there. */
void sd_expect_silence(struct ddps_sd_assoc *raw);
/* The state of the pair there, IDLE if there is none. */
enum ddps_sd_state sd_state(struct sd_world *w, unsigned carrier, uint16_t stream);

#endif
