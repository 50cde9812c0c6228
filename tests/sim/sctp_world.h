/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_SCTP_WORLD_H
#define SIM_SCTP_WORLD_H
/* A world of SCTP engines: who is in it (sctp_user.c), what holds in it (sctp_sound.c). */
#include "sim/sim_main.h"
#include "sctp/send/tx_in.h"
#include "unit/sctp/sctp_net_fixture.h"
#include <ddpsess/err.h>
#include <inttypes.h>

#define STREAMS	 4
#define MSGS	 256u /* of a kind on a stream */
#define SLOTS	 64u
#define PORT	 5000
#define OURS	 10000 /* initiators' ports from here on */
#define SEC	 1000000000ull
#define HEAD	 12u /* its number, its length, the association */
#define MAX_LEN	 70000u
#define MESSAGES 120u /* of each side in trouble: enough for it to meet some */
#define OVERHEAD 65536u

enum {
	N_ASSOCS,
	N_MESSAGES,
	N_EARLY,
	N_ORDERLY,
	N_RESTARTS,
	N_BROKEN,
	N_PACKETS,
	N_LOST,
	N_NOMEM,
	N_WORLDS,
	N_SECONDS
};

struct slot;

/* T3s of one path, with no news of what was sent between; @before: the last one cannot have been
 * before that, since it was not there yet when it was looked at. */
struct row {
	const void *path;
	uint64_t t3s, looked, before, spurious, srtt, rttvar;
	uint32_t cum, sacked;
	unsigned n, good; /* good: heartbeats that were answered */
};

/* One end's use of one association. */
struct side {
	struct slot *slot;
	unsigned node, id;
	struct ddps_sctp_assoc *a;
	bool up, gone, shutting, blocked, paused, fresh;
	int code;
	uint64_t t3s;	 /* when it was looked at last */
	uint32_t cum;	 /* ... and a T3 had fired since the time before */
	uint32_t rwnd;	 /* as the peer told it then */
	unsigned crawls; /* T3s that brought something, since all is calm */
	struct row row[2];
	uint32_t told,
		told_high; /* TSNs that the peer was informed of: all up to here, and the highest */
	bool tells;	   /* ... at all */
	unsigned to_send, sent, received;
	uint64_t acked, before; /* before: messages of the association before a restart */
	uint32_t next_ordered[STREAMS], want_ordered[STREAMS], next_unordered[STREAMS];
	uint8_t seen[STREAMS][MSGS / 8];
};

/* A pair of endpoints, and the association that it has at the time. */
struct slot {
	struct side side[2];
	uint32_t salt;
	bool open, both, broken; /* broken: an end restarted */
	unsigned rounds;	 /* associations still to come */
};

/* What happens once in a world in which all is well. */
enum trouble {
	NO_TROUBLE,
	NARROWS,  /* the paths take less */
	THINS,	  /* ... much less */
	SLOWS,	  /* the paths take longer */
	REROUTES, /* nothing arrives for a while, and then the paths take less */
	LOSES,	  /* what node 0 sends for less than a round trip is lost */
	RESTS,	  /* node 0 does not run for a while */
	FAILS,	  /* the primary paths are dead for a while */
	TROUBLES,
	/* Contact with other hosts, by the seed alone: no association ends by it. */
	REFUSES = TROUBLES, /* nobody takes SCTP at the primary addresses any more, as ICMP says */
	CLAIMS,		    /* the same of the other addresses, from the beginning */
	SWITCHES	    /* a switch takes 1500 octets where 9000 went, and informs nobody */
};

struct world {
	struct sn_net net;
	uint64_t seed, touched; /* bits of slots */
	struct slot slot[SLOTS];
	unsigned nslots, paths, next;
	size_t max_len;
	uint32_t mtu; /* of the interfaces */
	bool harsh, restarts, failed, calm;
	bool clean;  /* the network brings everything, once and in order */
	bool steady; /* nothing is lost on its way, and no path takes less than before */
	bool sure;   /* the same, but sockets may be full, and RTTs differ */
	uint64_t rtt_least, rtt_most; /* 0: it changes */
	double poor;		      /* share of allocations that fail */
	enum trouble trouble;
	unsigned trouble_turn; /* when it comes at the earliest */
	bool troubled;	       /* it has come */
	bool eager;	       /* from then on whoever has something to send sends it immediately */
	bool brief;	       /* all messages are short */
	bool trickles;	       /* ... of few octets, one at a time */
	uint64_t well_at;      /* from then on nothing is lost but for its size */
	uint64_t false_holes;  /* bits of ends */
	struct sim_tally *t;
};

extern struct world w;

#define check(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond) && !w.failed) {                                                        \
			fprintf(stderr, "seed %" PRIu64 " at %.6f: ", w.seed,                      \
				(double)w.net.now / 1e9);                                          \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			w.failed = true;                                                           \
		}                                                                                  \
	} while (0)

/* sctp_user.c */
extern const struct ddps_sctp_up user_up;
void user_init(void);
/* An engine forgets it all, or a new association begins. */
void user_side(struct side *s);
bool user_usable(const struct side *s);
void user_send_some(struct side *s);
/* Whose association it is, by its ports; NULL: nobody's. */
struct side *user_whose(unsigned node, uint16_t port, uint16_t peer_port);
void user_accept(void *user, struct ddps_sctp_assoc *a);

/* sctp_sound.c */
/* It is to be looked at, once this event is over. */
static inline void sound_touch(const struct side *s)
{
	w.touched |= 1ull << (s->slot - w.slot);
}

/* What holds after each event, of all associations that it touched. */
void sound_all(void);
/* sctp_times.c */
void times_sent(struct side *s, const uint8_t *p, size_t len);
void sets_up(const struct side *s, const struct ddps_sctp_assoc *a);
void times(const struct side *s, const struct ddps_sctp_assoc *a);
/* It is not larger than all that is outstanding. */
bool is_window_tight(const struct ddps_sctp_assoc *a, uint32_t window);

/* sctp_trouble.c */
void trouble_choose(void);
bool trouble_is_contact(void);
/* How many messages a side sends; @n: in a world without trouble. */
unsigned trouble_messages(unsigned n);
/* How long what comes is to last; 0: for ever. */
uint64_t trouble_comes(unsigned turn);
/* How long all rest then. */
uint64_t trouble_ends(void);
/* Long after that. */
void trouble_over(void);
/* What it may add to an RTT that is measured. */
uint64_t trouble_rests(const struct side *s);

/* sctp_times.c: what trouble may cost */
void cost_begin(void);
/* DATA leaves. */
void cost_sent(const struct side *s, uint32_t tsn);
void cost_sound(const struct side *s, const struct ddps_sctp_assoc *a);
void cost_end(void);

/* sctp_times.c: acknowledgements */
void acks_begin(void);
void acks_sent(const struct side *s, uint32_t tsn);
/* A packet was taken, with SHUTDOWN or not. */
void acks_taken(const struct side *s, bool shutdown);
/* The event is over, and all has left that may. */
void acks_over(const struct side *s);

/* Nothing may be left of it all. */
void sound_empty(const struct sn_node *d);
/* What was sent follows of what is to be said, not of the round trip alone.  @was: before */
void sound_modest(const struct sim_tally *was);

#endif
