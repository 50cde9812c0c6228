/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_LLP_H
#define DDPS_LLP_H
/*
 * The lower-layer contract: what MPA/TCP and SCTP both offer to the layers above
 * (RFC 5041 section 3, RFC 5044, RFC 5043).
 *
 * Calls go down (ops), events come up (up).  An LLP never calls up from inside a call from
 * above, with two exceptions: kick() may call tx_next() and tx_done(), nothing else.  An error
 * met in a down call is reported later, from the loop.
 *
 * Upper layers may call any op, free() included, from inside an upcall; after free() nothing
 * is called any more, and an LLP that has just made an upcall must be ready for that: it looks
 * at nothing of its own afterwards unless it has made sure that it still exists.
 */
#include "common/log.h"
#include "common/loop/loop.h"
#include "common/spare.h"
#include "common/system/lock.h"
#include "common/uri.h"
#include <ddpsess/stats.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Why secured listeners refuse peers: of struct ddps_ctx_stats. */
enum ddps_refused {
	DDPS_REFUSED_IDENTITY,
	DDPS_REFUSED_NOT_LISTED,
	DDPS_REFUSED_PROTOCOL,
	DDPS_REFUSED_GONE,
	DDPS_REFUSED_REASONS
};

#define DDPS_TOLD_CODES 128u /* errors have numbers below it */

/* How many refusals for one error were logged, since when, and how many were not since the last one. */
struct ddps_told {
	uint64_t since, untold;
	unsigned said;
};

/* What one context shares among its sessions. */
struct ddps_env {
	struct ddps_loop *loop;
	struct ddps_log log;
	ddps_capture_fn *capture; /* or NULL */
	void *capture_user;
	uint8_t *scratch;	 /* DDPS_SCRATCH_LEN octets, free for use during one callback */
	uint64_t idle_ended;	 /* counted by SCTP: associations that carried nothing, too many */
	uint64_t half_open_full; /* counted by listeners: max_half_open was reached */
	uint64_t half_open_given_up; /* and a peer that said nothing had to go for another */
	struct ddps_spares mpa_tx, mpa_copied, mpa_rx; /* MPA's */
	unsigned aheads;	  /* MPA's: connections that read ahead while they stall */
	struct ddps_llp *lenders; /* those that refer to user memory: see ddps_llp_lend */
	void *sctp; /* the SCTP provider's own, made on first use, freed by its fini */
	/* Secured wires: what the program opened, or NULL; the thread of handshakes, and how it comes in:
	 * enter() returns 0 with the context's lock held. */
	struct ddps_secure *secure;
	struct ddps_shaker *shaker;
	int (*enter)(void *ctx);
	void (*leave)(void *ctx);
	void *ctx;
	uint64_t refused[DDPS_REFUSED_REASONS], reloads_failed; /* counted by told.h */
	uint64_t secured_held;					/* counted by shaker.h */
	struct ddps_secured_stats secured;
	struct ddps_told told[DDPS_TOLD_CODES];
	struct ddps_mpa_late_list *late; /* mpa_tls_late.c's */
	uint8_t *sealed;		 /* scratch for what is read there, made on first use */
	struct ddps_vaults *vaults;	 /* where the keys of its wires share pages, or NULL */
};

/* @env has a capture. */
static inline void ddps_env_show(const struct ddps_env *env, const struct ddps_packet *p)
{
	ddps_uncancellable_by_others();
	env->capture(env->capture_user, p);
	ddps_uncancellable_end();
}

#define DDPS_SCRATCH_LEN (512u * 1024)

/* A setup message: MPA Request or Reply, RFC 5043 Initiate, Accept or Reject. */
struct ddps_setup {
	bool enhanced;	   /* S = 1 / function codes 5..7 */
	bool reject;	   /* answers only */
	const uint8_t *pd; /* borrowed; begins with the enhanced word if enhanced ... */
	size_t pd_len;	   /* ... then >= 4, but for a rejection, which may lack the word */
};

/* rx_segment: not now, show it again after resume(). */
#define DDPS_LLP_HOLD 1

/* What TCP says of its connection. */
struct ddps_llp_tcp {
	uint64_t retransmitted; /* segments */
	uint64_t srtt_ns;
	uint64_t cwnd, unacked; /* octets */
	bool asked;	   /* something was sent, or it was probed, and no acknowledgement came */
	uint64_t heard_ns; /* ago: the last acknowledgement */
};

/* What an LLP needs to know of a connection; the rest is for the layers above. */
struct ddps_llp_param {
	bool crc, markers; /* MPA only */
	bool shm;	   /* TCP: shared memory in its place, where both sides can */
	uint32_t connect_ms, setup_ms, first_fpdu_ms, close_ms; /* 0: none */
	uint32_t max_mulpdu;					/* 0: what the path gives */
	uint32_t keepalive_ms, unacked_ms;			/* TCP; 0: none */
	bool stalls;	  /* connect: rx_segment may say DDPS_LLP_HOLD for long */
	const char *host; /* connect, secured: the URI's; borrowed until connect() returns */
};

/* One DDP segment to send. */
#define DDPS_SEG_HDR_MAX 70 /* untagged DDP header 18 + largest RDMAP header 52 */
#define DDPS_SEG_IOV_MAX 18

struct ddps_seg {
	uint8_t hdr[DDPS_SEG_HDR_MAX]; /* DDP header and RDMAP header */
	size_t hdr_len;
	struct iovec pay[DDPS_SEG_IOV_MAX]; /* user memory, valid until tx_done counts it */
	int npay;
	bool final; /* a hint: to ask for another one now would be in vain */
	size_t pay_len;
	size_t left; /* a hint for tx_into(): payload that follows in the same message.  Who pulls sets it to 0 */
};

struct ddps_llp;
struct ddps_who;

/* Octets at the beginning of struct ddps_llp, and of the @user of struct ddps_llp_data, that each message needs. */
#define DDPS_LLP_OFTEN	    240u
#define DDPS_LLP_DATA_OFTEN 352u

/* The data's way, straight to DDP and RDMAP.  @user is the one given with the vtable. */
struct ddps_llp_data {
	/* Pull the next segment of at most @mulpdu octets (header + payload).
	 * Return 1, or 0: nothing now (kick() says when that changes). */
	int (*tx_next)(void *user, struct ddps_seg *seg, size_t mulpdu);

	/* The same, written to @to, if it has exactly @len octets, and begins and ends no message.
	 * false: nothing was done, tx_next() is to be asked.  NULL: always so. */
	bool (*tx_into)(void *user, uint8_t *to, size_t len);

	/* The @n oldest segments pulled and not yet counted were taken over entirely:
	 * reliable transfer is the LLP's business, the payload memory is free. */
	void (*tx_done)(void *user, unsigned n);

	/* One whole, verified segment, in order (RFC 5044 3; RFC 5043 DDP-SSN order).
	 * Return 0, or < 0: an error was found above; everything that follows on this half is
	 * to be dropped silently (RFC 5041 7.1), except for close and abort.
	 * Or DDPS_LLP_HOLD: it cannot be taken now.  The LLP keeps it, shows nothing that
	 * came behind it, a close in order included, and shows it again after resume().
	 * Sending goes on.  What is kept meanwhile is bounded, see held(). */
	int (*rx_segment)(void *user, const uint8_t *seg, size_t len);

	/* Direct placement, only where no digest has to be verified first.  A segment of
	 * @seg_len octets begins with the @have octets at @hdr (>= 18, or the whole).
	 * Return the number of header octets (14 or 18) if the payload can be read straight
	 * into its buffer; 0: give it whole, by rx_segment. */
	size_t (*rx_direct)(void *user, const uint8_t *hdr, size_t have, size_t seg_len);
	/* Where the payload octets from @off on go: fills at most @max iovecs in order and
	 * returns how many.  Asked again before every read, since memory may be revoked in
	 * between.  Return < 0: as rx_segment; discard the rest of the segment. */
	int (*rx_direct_iov)(void *user, size_t off, struct iovec *iov, int max);
	/* All payload octets of it are in place.  Return as rx_segment. */
	int (*rx_direct_end)(void *user);
};

/* What becomes of a connection, for the session layer.  @user as above. */
struct ddps_llp_up {
	/* Initiator: the peer's answer.  After an accept the next call down is open(),
	 * terminate-as-first-segment by open() and kick(), abort() or free(). */
	void (*answer)(void *user, const struct ddps_setup *s);

	/* A receive error with a Terminate code (MPA 2/0/02, 2/0/03).  Nothing more comes in;
	 * the send half still works unless the fence is closed. */
	void (*fault)(void *user, const struct ddps_error *e);

	/* Peer closed its direction in order (FIN between FPDUs; session Terminate). */
	void (*peer_closed)(void *user);

	/* It has, but its close waits behind what was answered by DDPS_LLP_HOLD; told once or
	 * more. */
	void (*peer_closing)(void *user);

	/* The end: code 0 after shutdown() on both sides, else why.  Last upcall. */
	void (*closed)(void *user, const struct ddps_error *e);
};

struct ddps_llp_ops {
	/* Responder: answer the request.  On accept, reception is on before the answer
	 * leaves.  On reject the carrier is wound up by itself; closed() follows.
	 * @p is copied.  Return 0 or DDPS_E_*. */
	int (*answer)(struct ddps_llp *llp, const struct ddps_setup *s,
		      const struct ddps_llp_param *p);
	/* Initiator: the answer is taken; enter full operation. */
	void (*open)(struct ddps_llp *llp);
	/* tx_next() has something: send now as much as the wire takes. */
	void (*kick)(struct ddps_llp *llp);
	/* Largest segment the LLP takes now, octets. */
	size_t (*mulpdu)(struct ddps_llp *llp);
	/* After DDPS_LLP_HOLD: show the segment again, from the loop.  Else nothing. */
	void (*resume)(struct ddps_llp *llp);
	/* Octets that came in and are kept here: incomplete, out of order or held. */
	size_t (*held)(const struct ddps_llp *llp);
	/* User memory is about to go: keep a copy of what segments pulled and not yet counted
	 * still refer to.  Return 0 or DDPS_E_NOMEM. */
	int (*keep_copy)(struct ddps_llp *llp);
	/* Graceful: when tx_next() returns 0, close our direction; closed() follows when the
	 * peer has closed too, or after close_ms as an abort with DDPS_E_TIMEDOUT, whatever the
	 * peer sends or asks for meanwhile. */
	void (*shutdown)(struct ddps_llp *llp);
	/* shutdown() was called, and what is to be sent has not all been handed to SCTP, or been
	 * acknowledged by the peer's TCP. */
	bool (*leaving)(const struct ddps_llp *llp);
	/* Immediately, unsent data is lost; closed() follows with DDPS_E_CLOSED. */
	void (*abort)(struct ddps_llp *llp);
	/* Whether the peer's host has yet to acknowledge something that was sent, or sent again; and for
	 * how long it can have been so at most, in ns. */
	bool (*unanswered)(struct ddps_llp *llp, uint64_t *most);
	/* Release everything, aborting first if needed.  No upcall any more. */
	void (*free)(struct ddps_llp *llp);
	/* transport, addresses, mulpdu and the mpa or sctp part; local and peer, the texts, only where there is no number. */
	void (*info)(struct ddps_llp *llp, struct ddps_conn_info *info);
	/* Of the association below, whole structs; NULL: there is none.  0, DDPS_E_STATE,
	 * DDPS_E_UNSUPPORTED; DDPS_E_INVAL: no such path. */
	int (*assoc_stats)(struct ddps_llp *llp, struct ddps_assoc_stats *st);
	int (*path_stats)(struct ddps_llp *llp, uint32_t path, struct ddps_path_stats *st);
	int (*set_primary)(struct ddps_llp *llp, uint32_t path);
	/* NULL: it is not TCP.  0 or DDPS_E_STATE. */
	int (*tcp_stats)(const struct ddps_llp *llp, struct ddps_llp_tcp *st);
	/* Who the peer is; NULL: nobody knows, the wire is not secured. */
	const struct ddps_who *(*peer_id)(const struct ddps_llp *llp);
};

/* Embedded first in the LLP's own structure. */
struct ddps_llp {
	const struct ddps_llp_ops *ops;
	const struct ddps_llp_up *up;
	void *user;
	const struct ddps_llp_data *data;
	void *data_user;
	bool half_close; /* after peer_closed() our own direction may stay in use */
	bool has_codes;	 /* it has Terminate codes of its own: MPA yes, SCTP no */
	bool unheard;	 /* closed(): what others had used before was just being closed, or aborted,
			  * by the peer, and nothing of this request was answered: it may be dialled
			  * anew */
	struct ddps_llp *lend_next, **lend_prev; /* in env->lenders; lend_prev NULL: not there */
};

/* Before segments can flow: whom they go to and come from. */
static inline void ddps_llp_attach(struct ddps_llp *llp, const struct ddps_llp_data *data,
				   void *data_user)
{
	llp->data = data;
	llp->data_user = data_user;
}

/* What @llp was given to send refers to user memory, or not any more: whoever revokes memory asks
 * those in the list to keep a copy, and nobody else.  Idempotent. */
static inline void ddps_llp_lend(struct ddps_env *env, struct ddps_llp *llp, bool lends)
{
	if (lends == (llp->lend_prev != NULL))
		return;
	if (lends) {
		llp->lend_next = env->lenders;
		llp->lend_prev = &env->lenders;
		if (llp->lend_next)
			llp->lend_next->lend_prev = &llp->lend_next;
		env->lenders = llp;
		return;
	}
	*llp->lend_prev = llp->lend_next;
	if (llp->lend_next)
		llp->lend_next->lend_prev = llp->lend_prev;
	llp->lend_prev = NULL;
}

/* ---- listening ---- */

struct ddps_llp_listener;

struct ddps_llp_listen_up {
	/* A peer's whole, valid request.  The callee sets llp->up and llp->user and owns @llp
	 * from now on; the next call down is answer(), before which ddps_llp_attach() comes if it
	 * accepts, abort() or free(). */
	void (*request)(void *user, struct ddps_llp *llp, const struct ddps_setup *s);
	/* Listening came to an end by itself. */
	void (*failed)(void *user, const struct ddps_error *e);
};

struct ddps_llp_listen_param {
	unsigned backlog;
	unsigned max_half_open; /* set-ups under way and requests not answered yet */
	uint32_t setup_ms;
	uint32_t keepalive_ms; /* TCP: what most sessions will ask for; 0: that is not known */
};

struct ddps_llp_listener {
	const struct ddps_llp_provider *provider;
};

/* ---- the two providers ---- */

/* What is left of a context that goes, from the least on. */
enum ddps_left {
	DDPS_LEFT_NOTHING,
	DDPS_LEFT_END, /* peers have everything, and may answer to the end */
	DDPS_LEFT_WORK
};

struct ddps_llp_provider {
	const char *scheme;
	/*
	 * @sa: where to; @setup, @p: copied.  Everything is reported through @up later, also
	 * a connection that fails immediately.  ddps_llp_attach() comes before open().
	 * Return 0 or DDPS_E_* (nothing was started).
	 */
	int (*connect)(struct ddps_env *env, const struct ddps_uri *uri, const struct sockaddr *sa,
		       socklen_t sa_len, const struct ddps_setup *setup,
		       const struct ddps_llp_param *p, const struct ddps_llp_up *up, void *user,
		       struct ddps_llp **out);
	/* Return 0 or DDPS_E_* (errno set with DDPS_E_SYSTEM). */
	int (*listen)(struct ddps_env *env, const struct ddps_uri *uri, const struct sockaddr *sa,
		      socklen_t sa_len, const struct ddps_llp_listen_param *p,
		      const struct ddps_llp_listen_up *up, void *user,
		      struct ddps_llp_listener **out);
	/* The bound URI; snprintf's return value. */
	int (*listener_uri)(struct ddps_llp_listener *l, char *buf, size_t len);
	/* Set-ups under way are dropped; requests handed up live on. */
	void (*listener_free)(struct ddps_llp_listener *l);
	/* The context goes: end in order what sessions shared that are gone; @all: also where they
	 * wait for nothing but the peer's end.  Return what that still takes; called again
	 * then.  NULL if nothing is shared. */
	enum ddps_left (*wind_up)(struct ddps_env *env, bool all);
	/* The context goes: free what hangs on @env.  NULL if nothing can. */
	void (*fini)(struct ddps_env *env);
};

extern const struct ddps_llp_provider ddps_mpa_provider;   /* src/mpa_tcp */
extern const struct ddps_llp_provider ddps_tls_provider;   /* the same inside TLS */
extern const struct ddps_llp_provider ddps_shm_provider;   /* the same through shared memory */
extern const struct ddps_llp_provider ddps_sctp_provider;  /* src/sctp_ddp */
extern const struct ddps_llp_provider ddps_sctps_provider; /* the same inside DTLS */

#endif
