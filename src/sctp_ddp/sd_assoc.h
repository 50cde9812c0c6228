/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SD_ASSOC_H
#define DDPS_SD_ASSOC_H
/*
 * One association as the DDP adaptation sees it (a carrier), its stream pairs and the sessions
 * on them.  A session is what the layers above hold; a pair is the protocol's side of it and
 * outlives it until both directions have drained (RFC 5043 6.6).
 *
 *	carrier 1 --- n pair 1 --- 0..1 session
 *
 * Upcalls are made from the loop only, but for tx_next and tx_done out of kick().  The end of a
 * session is always told by a task of its own, so no list is walked meanwhile.
 */
#include "common/error.h"
#include "common/shares.h"
#include "sctp_ddp/sd_backend.h"
#include "sctp_ddp/sd_order.h"
#include "sctp_ddp/sd_sm.h"
#include <netinet/in.h>
#include <sys/queue.h>

/* [5043-6.4-3] Initiates of one association that wait for an answer, either way: this side
 * sends no more immediately, and refuses more. */
#define DDPS_SD_PENDING_MAX 16u
/* Messages that may come before a ULP's decision, or behind a request that was given up. */
#define DDPS_SD_EARLY_MAX    64u
#define DDPS_SD_EARLY_OCTETS (64u * 1024)
/* Messages held out of order, octets: one session, and all of one association. */
#define DDPS_SD_HELD_SESSION (8u << 20)
#define DDPS_SD_HELD_ASSOC   (32u << 20)
/*
 * What waits behind a segment that the layer above holds back, of one session or of all of an
 * association.  Up to here only that session stands still.  What it holds beyond that is taken off
 * the association's receive window, twice, so that the window is shut well before a session holds
 * all that it may, or has used up the window of DDP-SSNs; a message counts for DDPS_SD_STALL_ITEM
 * octets at least.  So SCTP slows the peer down, and as long as there is any window the other
 * sessions go on, and new ones are set up.  The kernel's window cannot be made smaller, and its octets
 * come in one order: it is read on, as far as the other engine's window would let it, and then not until
 * half of that is gone.
 *
 * A session that stalls by its own setting has an association of its own.  Where only the
 * responder's side stalls the peer may have put others next to it: with the window shut they wait
 * DDPS_SD_PAUSE_MS, then the session that holds most ends.
 */
#define DDPS_SD_STALL_OCTETS   (4u << 20)
#define DDPS_SD_STALL_MESSAGES 16384u
#define DDPS_SD_STALL_ITEM     256u
#define DDPS_SD_STALL_ASSOC    (16u << 20)
#define DDPS_SD_PAUSE_MS       5000u
/* Associations that peers opened and that carry no session any more: of one listener, and of these
 * from one address (common/shares.h).  Beyond that the one that has been idle longest is ended, of that
 * address, or of the one that has most of them. */
#define DDPS_SD_IDLE_LISTENER 256u
#define DDPS_SD_IDLE_PEER     32u
/* [5043-10-d1] Messages of one session not known to be acknowledged. */
#define DDPS_SD_IN_FLIGHT_MAX 32767u

struct ddps_sd_provider;
struct ddps_sd_carrier;
struct ddps_sd_pair;

TAILQ_HEAD(ddps_sd_carrier_list, ddps_sd_carrier);

struct ddps_sd_listener {
	struct ddps_llp_listener base; /* first */
	struct ddps_env *env;
	const struct ddps_sd_backend *b;
	struct ddps_sd_endpoint *endpoint;
	const struct ddps_llp_listen_up *up;
	void *user;
	struct ddps_llp_listen_param param;
	unsigned half_open;	   /* associations without a request yet, requests not answered */
	struct ddps_shares silent; /* the former, by address */
	struct ddps_shares idle;   /* without a session, by address */
};

struct ddps_sd_session {
	struct ddps_llp llp; /* first */
	struct ddps_env *env;
	struct ddps_sd_carrier *carrier;   /* while attached: waiting, or on a pair */
	struct ddps_sd_pair *pair;	   /* NULL while waiting and after the end */
	TAILQ_ENTRY(ddps_sd_session) link; /* while waiting */
	struct ddps_task task;		   /* reports the end, or resumes reception after open() */
	struct ddps_timer timer;	   /* connect_ms while waiting, close_ms while shutting */
	struct ddps_llp_param param;
	bool initiator;
	bool enhanced; /* initiator: kind of Initiate */
	bool joined;   /* an association that was up already */
	bool opened;   /* segments may flow up and down */
	bool shutting;
	bool stalled; /* the layer above holds a segment back: it and all behind it wait in order */
	bool rx_dead; /* the layer above takes nothing more */
	bool ended : 1;
	/* Its association is gone, and all is here that the peer sent before it closed the session. */
	bool outlives : 1;
	struct ddps_sd_order rest; /* that, in order, the Terminate last */
	bool *freed;		   /* while segments of it are shown: set if @this is freed */
	uint8_t *pd;		   /* initiator: private data while waiting */
	size_t pd_len;
	struct ddps_kept_error error;
};

struct ddps_sd_pair {
	struct ddps_sd_carrier *carrier;
	struct ddps_sd_session *sess; /* NULL: drains in the background */
	struct ddps_sd_sm sm;
	struct ddps_sd_order rx;
	uint16_t stream;
	bool waits, brim; /* as counted by the carrier */
	uint32_t over;	  /* octets beyond its share, while it waits; as added up by the carrier */
	bool closing;	  /* a Terminate is held in rx, ... */
	uint16_t closing_ssn; /* ... this one */

	/* sending; numbers of type uint64_t count the carrier's messages, from 1 */
	uint16_t tx;	    /* next DDP-SSN */
	uint16_t base;	    /* all before this one are acknowledged */
	uint16_t probe_tx;  /* base as soon as probe_seq is acknowledged */
	uint64_t probe_seq; /* 0: none */
	uint64_t last_seq;  /* last message sent, 0: known to have arrived */
	uint64_t data_seq;  /* the last one ahead of our Terminate, once that is sent */
	uint64_t ctl_seq;   /* own Initiate or Accept, 0: known to have arrived */
	uint16_t ctl;	    /* function code to send before all else, 0: none */
	bool term_due;	    /* send Terminate now */
	bool owe_term;	    /* send it when it cannot overtake */
	bool want_seg; /* tx_next has neither said 0 nor that more would be in vain since the last kick */
	uint8_t *pd; /* private data of ctl */
	size_t pd_len;
	bool in_ctl, in_seg, in_dry;
	unsigned turns; /* as of the carrier, when it had its last one */
	TAILQ_ENTRY(ddps_sd_pair) ctl_link, seg_link, dry_link;

	struct ddps_timer timer; /* answer to our Initiate */
	uint32_t answer_ms;
	struct ddps_sd_asked
		*asked; /* P1: the peer's Initiate, while the peer is judged; or NULL */
};

/* The private data of an Initiate. */
struct ddps_sd_asked {
	size_t len;
	uint8_t pd[];
};

TAILQ_HEAD(ddps_sd_pair_list, ddps_sd_pair);
TAILQ_HEAD(ddps_sd_session_list, ddps_sd_session);

enum ddps_sd_carrier_state {
	DDPS_SD_COMING, /* association not up yet */
	DDPS_SD_UP,
	DDPS_SD_GOING /* shutting down or aborted: gone() follows */
};

struct ddps_sd_stats {
	unsigned dropped; /* messages no session was there for, late ones included */
	unsigned ordered; /* taken although sent as ordered */
	unsigned bad_ppid;
};

/* Where an association of ours goes to, and from where. */
struct ddps_sd_goal {
	TAILQ_ENTRY(ddps_sd_goal) link; /* once it is a carrier's */
	struct ddps_sd_carrier *carrier;
	unsigned place; /* by what follows: where it is among the provider's */
	int encap;
	uint8_t tos;
	bool secured;
	char *host; /* secured: as in struct ddps_llp_param; "": none */
	unsigned nto, nfrom;
	struct sockaddr_in6 at[]; /* to, then from; an IPv4 address takes part of its place */
};

/* NULL is nothing. */
void ddps_sd_goal_free(struct ddps_sd_goal *g);

TAILQ_HEAD(ddps_sd_goal_list, ddps_sd_goal);

struct ddps_sd_carrier {
	TAILQ_ENTRY(ddps_sd_carrier) link;
	struct ddps_sd_provider *prov;
	struct ddps_env *env;
	const struct ddps_sd_backend *b;
	struct ddps_sd_assoc *assoc;
	enum ddps_sd_carrier_state state;
	struct ddps_sd_listener *listener; /* shows Initiates to the ULP; NULL: all refused */
	struct ddps_share share; /* of the listener: fresh, of the silent ones; else of the idle */
	struct ddps_sd_goal *goal;		/* opened by us, for reuse; NULL: by the peer */
	struct ddps_addr local_addr, peer_addr; /* family 0 before they are known */
	uint32_t max_user_data;			/* as in struct ddps_sd_assoc_info */
	uint16_t encap;
	bool by_us;
	bool served;	/* the peer has answered a request of ours */
	bool fresh;	/* counted by the listener: no Initiate yet */
	bool mute;	/* no memory for @answered: no stray message is answered any more */
	bool ebbs;	/* GOING in order, by us: what the peer sends until it sees that comes up */
	bool peer_shut; /* GOING in order, by the peer */

	unsigned usable;  /* stream ids below this one have a partner */
	unsigned ndry;	  /* pairs in @dry */
	unsigned next_id; /* where the search for a free id goes on */
	struct ddps_sd_pair **pairs;
	unsigned npairs_size, npairs;
	uint8_t *answered; /* bits, see struct ddps_sd_sm; NULL: of no stream */
	struct ddps_sd_session_list waiting;
	unsigned nsessions;	    /* attached, the waiting included */
	unsigned outgoing, pending; /* pairs in A1, in P1 */
	size_t held;		    /* octets, all pairs */
	unsigned nwaiting, nbrim;   /* pairs that are stalled; those that hold much */
	uint32_t over, over_shut;   /* of all pairs; when the window was shut */
	uint32_t kept;		    /* octets taken off the window */
	bool paused; /* the receive window is shut, or SCTP is not read and it closes */
	bool alone;  /* for one session that may stall: no other comes in */
	struct ddps_timer pause_timer;
	struct ddps_timer linger;

	/* sending */
	struct ddps_sd_pair_list ctl, seg;
	struct ddps_seg *tx_seg; /* while running, and as long as tx_pair is set: pulled, not taken
				  * by SCTP yet */
	uint8_t *tx_copy;	 /* its payload, if user memory had to be let go, or NULL */
	struct ddps_sd_pair *tx_pair;
	unsigned turns; /* that sessions have used up */
	bool bulk; /* a segment as large as may be was handed over, since a turn ended with nothing held up */
	uint32_t turn; /* octets of segments that the session whose turn it is has sent */
	bool blocked;  /* until writable() */
	bool broken;   /* until gone() */
	bool resets;   /* its only session was given up: it is to be aborted */
	bool judging;  /* its peer is: sessions wait, either side's */
	bool refused;  /* its peer would not be let in any more: no session is added */
	bool stuck;    /* its last session gave up: it is to be aborted unless another one came */
	bool running;
	struct ddps_task task;

	/* what is acknowledged */
	struct ddps_sd_pair_list dry;
	uint64_t sent, acked;
	bool asked;
	bool quiet; /* no segments until dry() */

	struct ddps_sd_stats stats;
	struct ddps_timer quiet_timer[]; /* one, where the backend has no acks */
};

#define DDPS_SD_GOALS 256u

/* A backend, and what it keeps for this context; NULL: it was not needed yet. */
struct ddps_sd_slot {
	const struct ddps_sd_backend *b;
	void *ctx;
};

struct ddps_sd_provider {
	struct ddps_sd_slot slot[3];	    /* by backend; the last: another one */
	bool other_connects, other_listens; /* whatever the URI says */
	unsigned lingers;		    /* begun so far */
	struct ddps_sd_carrier_list carriers;
	struct ddps_sd_goal_list goals[DDPS_SD_GOALS]; /* of those carriers that have one */
	struct ddps_seg *seg; /* for the next carrier that sends; or NULL */
};

/* ---- sd_provider.c ---- */
/* Have @b connect, listen, or both for every URI of @env from now on; always the same one.  0 or
 * DDPS_E_NOMEM. */
int ddps_sd_use_backend(struct ddps_env *env, const struct ddps_sd_backend *b, bool connects,
			bool listens);

/* ---- sd_listen.c ---- */
/* Listen below @slot: 0 or an error, as listen, listener_uri and listener_free of a provider, which the caller
 * enters into @out. */
int ddps_sd_listen(struct ddps_env *env, struct ddps_sd_slot *slot, const struct ddps_uri *uri,
		   const struct sockaddr *sa, socklen_t sa_len,
		   const struct ddps_llp_listen_param *p, const struct ddps_llp_listen_up *up,
		   void *user, struct ddps_llp_listener **out);
int ddps_sd_listener_uri(struct ddps_llp_listener *base, char *buf, size_t len);
void ddps_sd_listener_free(struct ddps_llp_listener *base);

/* ---- sd_assoc.c: carriers ---- */
struct ddps_sd_carrier *ddps_sd_carrier_new(struct ddps_env *env, struct ddps_sd_provider *prov,
					    const struct ddps_sd_backend *b);
/* Ends nothing in order: for fini, and when the association is no more. */
void ddps_sd_carrier_free(struct ddps_sd_carrier *c);
/* Put @s into the queue; it is started when the association and the limit permit. */
void ddps_sd_carrier_wait(struct ddps_sd_carrier *c, struct ddps_sd_session *s);
void ddps_sd_carrier_start_waiting(struct ddps_sd_carrier *c);
bool ddps_sd_carrier_full(const struct ddps_sd_carrier *c);
/* Sessions or pairs became fewer or more: wind up or keep. */
void ddps_sd_carrier_idle(struct ddps_sd_carrier *c);
/* It is being shut down, by either side: not for ever. */
void ddps_sd_carrier_leave(struct ddps_sd_carrier *c);
/* The context goes: shut down immediately if no session is left; @all: or only such as wait for the peer's
 * Terminate.  May free @c. */
void ddps_sd_carrier_wind_up(struct ddps_sd_carrier *c, bool all);
/* Something has not been sent, or not been acknowledged. */
bool ddps_sd_carrier_has_work(const struct ddps_sd_carrier *c);
/* The path MTU may have changed: ask for the message size again [5043-9-1]. */
void ddps_sd_carrier_refresh(struct ddps_sd_carrier *c);
/* Give the whole association up. */
void ddps_sd_carrier_abort(struct ddps_sd_carrier *c, const struct ddps_error *why);
/* The same for one that its only session has given up, also from inside an upcall.  @soon: it is in use up the stack. */
void ddps_sd_carrier_reset(struct ddps_sd_carrier *c, bool soon);
/* Its first Initiate is here, or it goes: its listener does not count it as silent any more. */
void ddps_sd_carrier_spoke(struct ddps_sd_carrier *c);
/* The listener goes. */
void ddps_sd_carrier_orphan(struct ddps_sd_carrier *c);
/* Every session is lost, for the reason @why.  Unless @all, those are left that one side has ended, and whose last
 * octets the peer has yet to acknowledge: acked() or gone() says whether it has. */
void ddps_sd_carrier_lose(struct ddps_sd_carrier *c, const struct ddps_error *why, bool all);
/* It does not count as one without a session any more. */
void ddps_sd_carrier_not_idle(struct ddps_sd_carrier *c);

/* ---- sd_up.c: what the backend says of it ---- */
extern const struct ddps_sd_assoc_up ddps_sd_carrier_up;
/* The association is up and set in @c.  0, or DDPS_E_* and @why filled. */
int ddps_sd_carrier_begin(struct ddps_sd_carrier *c, struct ddps_error *why);
/* "192.0.2.1:7174", or "" before its peer is known. */
struct ddps_sd_name {
	char text[72];
};
struct ddps_sd_name ddps_sd_carrier_peer(const struct ddps_sd_carrier *c);
/* As ddps_log() in "sctp", behind that name, which is made only if somebody reads it. */
void ddps_sd_log(const struct ddps_sd_carrier *c, enum ddps_log_level level, const char *fmt, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* ---- sd_check.c ---- */
/* What @c counts is what there is.  Between two calls from the backend or the loop; in builds for
 * tests. */
#ifdef DDPS_ASSERTS
void ddps_sd_check(const struct ddps_sd_carrier *c);
#else
static inline void ddps_sd_check(const struct ddps_sd_carrier *c)
{
	(void)c;
}
#endif

/* ---- sd_pair.c ---- */
struct ddps_sd_pair *ddps_sd_pair_new(struct ddps_sd_carrier *c, uint16_t stream);
/* Whether a stray message on the idle @stream was answered since the last Initiate. */
bool ddps_sd_pair_answered(const struct ddps_sd_carrier *c, unsigned stream);
struct ddps_sd_pair *ddps_sd_pair_find(const struct ddps_sd_carrier *c, unsigned stream);
/* Tell the machine and do what it says.  @m, @why: as the event needs, else NULL.  The pair is
 * gone afterwards if the event was DRAINED or LOST. */
void ddps_sd_pair_step(struct ddps_sd_pair *p, enum ddps_sd_event ev, const struct ddps_sd_msg *m,
		       const struct ddps_error *why);
/* A segment has its turn: it goes up, unless nobody is there for it. */
void ddps_sd_pair_deliver(struct ddps_sd_pair *p, const uint8_t *data, size_t len);
/* What the peer sent fits no legal sequence. */
struct ddps_error ddps_sd_illegal(const struct ddps_sd_msg *m, enum ddps_sd_state old);
/* Our Terminate, or what stands for it, has been handed to SCTP. */
static inline bool ddps_sd_pair_said_all(const struct ddps_sd_pair *p)
{
	return (p->sm.state == DDPS_SD_LT || p->sm.state == DDPS_SD_DRAIN) && !p->ctl &&
	       !p->term_due;
}
/* As far as is known not all that was handed to SCTP has arrived. */
static inline bool ddps_sd_pair_unacked(const struct ddps_sd_pair *p)
{
	return p->carrier->acked < p->last_seq;
}
/* Its session has just been detached: end it on the wire. */
void ddps_sd_pair_give_up(struct ddps_sd_pair *p);
/* Nor what followed its Initiate or Accept: whoever has ended the session has got that. */
static inline bool ddps_sd_pair_data_unacked(const struct ddps_sd_pair *p)
{
	return p->last_seq != p->ctl_seq && ddps_sd_pair_unacked(p);
}
/* One side has ended the session, and whether all that this side has sent arrived is to be seen yet. */
bool ddps_sd_pair_in_doubt(const struct ddps_sd_pair *p);
/* Its association goes, for the reason @why.  @p is gone afterwards. */
void ddps_sd_pair_lose(struct ddps_sd_pair *p, const struct ddps_error *why);
/* The peer was judged: an Initiate that waits for that is shown, or refused. */
void ddps_sd_pair_judged(struct ddps_sd_pair *p, const struct ddps_error *why);
void ddps_sd_pair_detached(struct ddps_sd_pair *p);

/* ---- sd_rx.c ---- */
void ddps_sd_rx_message(struct ddps_sd_carrier *c, uint16_t stream, uint32_t ppid,
			const uint8_t *data, size_t len);
/* Take held messages whose turn has come. */
void ddps_sd_rx_resume(struct ddps_sd_pair *p);
/* @c was not read for DDPS_SD_PAUSE_MS: if others wait for one session, that one ends. */
void ddps_sd_rx_pause_over(struct ddps_sd_carrier *c);
void ddps_sd_rx_strip(struct ddps_sd_pair *p);
void ddps_sd_rx_reset(struct ddps_sd_pair *p);

/* ---- sd_tx.c ---- */
void ddps_sd_tx_control(struct ddps_sd_pair *p);
void ddps_sd_tx_segments(struct ddps_sd_pair *p);
/* The same, now: tx_next() and tx_done() may be called from inside. */
void ddps_sd_tx_kick(struct ddps_sd_pair *p);
/* Copy the payload of a segment of @p that SCTP has not taken yet.  0 or DDPS_E_NOMEM. */
int ddps_sd_tx_keep_copy(struct ddps_sd_pair *p);
/* The segment in tx_seg was taken over, or is given up. */
void ddps_sd_tx_let_go(struct ddps_sd_carrier *c);
void ddps_sd_tx_run(struct ddps_sd_carrier *c);
/* Send a Terminate that is owed, resume segments: whatever is possible now. */
void ddps_sd_tx_check(struct ddps_sd_pair *p);
/* How much the wait for an acknowledgement may cost the others on the association. */
enum ddps_sd_patience {
	DDPS_SD_WHENEVER, /* nothing */
	DDPS_SD_SOON,	  /* after a while no segments are sent */
	DDPS_SD_NOW	  /* none from now on */
};

/* Where acknowledgements have to be asked for: have no segments sent in a while; or not. */
void ddps_sd_tx_quiet(struct ddps_sd_carrier *c, bool soon);
/* Call ddps_sd_tx_check() when more is acknowledged. */
void ddps_sd_tx_wait_dry(struct ddps_sd_pair *p, enum ddps_sd_patience patience);
void ddps_sd_tx_dry(struct ddps_sd_carrier *c);
/* The association begins anew, and nothing of it is held. */
void ddps_sd_rx_restart(struct ddps_sd_carrier *c);
/* Messages up to number @upto are acknowledged. */
void ddps_sd_tx_acked(struct ddps_sd_carrier *c, uint64_t upto);
/* Start over at DDP-SSN 0. */
void ddps_sd_tx_reset(struct ddps_sd_pair *p);
/* All that was sent is history: a new association, as it were. */
void ddps_sd_tx_restart(struct ddps_sd_carrier *c);

/* ---- sd_session.c ---- */
struct ddps_sd_session *ddps_sd_session_new(struct ddps_env *env, bool initiator);
void ddps_sd_session_attach(struct ddps_sd_session *s, struct ddps_sd_carrier *c,
			    struct ddps_sd_pair *p);
/* Tell @s soon that it is over; it belongs to nothing any more. */
void ddps_sd_session_end(struct ddps_sd_session *s, const struct ddps_error *e);
/* The same by a fault of this side, which the peer learns as if the program had given @s up. */
void ddps_sd_session_fail(struct ddps_sd_session *s, const struct ddps_error *e);
void ddps_sd_session_connect_timer(struct ddps_sd_session *s);
/* All is here that the peer sent before it closed the session. */
bool ddps_sd_session_has_all(const struct ddps_sd_session *s);
/* The association goes, for the reason @why.  false: the session is lost with it, since not all is here. */
bool ddps_sd_session_outlive(struct ddps_sd_session *s, const struct ddps_error *why);

#endif
