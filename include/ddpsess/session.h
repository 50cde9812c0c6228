/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_SESSION_H
#define DDPSESS_SESSION_H
/*
 * Listeners and endpoints: an RDMA session over whatever wire the URI names.  <ddpsess/ctx.h> has
 * contexts and events.
 *
 * Life of a session, initiator:  ddps_ep_new, ddps_post_recv..., ddps_connect,
 * DDPS_EV_ESTABLISHED, work requests (wr.h), ddps_disconnect, DDPS_EV_CLOSED, ddps_ep_free.
 * Responder:  ddps_listen, DDPS_EV_CONNECT_REQUEST, ddps_ep_new, ddps_post_recv...,
 * ddps_accept or ddps_reject, then the same.
 *
 * Threads: every function may be called from any thread; calls on one context are
 * serialised by one lock, which nobody else holds in a single-threaded program.  While one thread
 * frees an object, no other thread may use it.  No function blocks unless its description says so.
 * Events and completions are fetched, no callback brings them.  Of the program's functions the
 * library calls its log, its capture, and what it gives ddps_cq_on_notify.
 *
 * fork: a child must not use its parent's context; every call on one in the child returns
 * DDPS_E_FORKED and touches nothing.  The library closes the child's copies of the context's sockets
 * inside fork.  So what the parent ends has ended: peers learn of it, ports are free again.
 * Its copies of descriptors that the program may have asked for (ddps_ctx_fd, ddps_event_fd,
 * ddps_cq_fd) stay until ddps_ctx_free, which closes them in the child and frees the context.
 *
 * closefrom: a program that closes descriptors which are not its own has no use of a context any more.
 * Its calls return DDPS_E_SYSTEM, with EBADF in errno, from the moment on when the library notices.
 * Each call that makes, connects or ends something looks; one that only posts or polls does not.  The
 * numbers may be files of the program's by then, and the library leaves these alone.  A context that
 * is made afterwards works.
 *
 * Structs of parameters begin with struct_size, which is the caller's sizeof; the _init functions
 * set it.  So a program keeps working with a later release of the library.  There structs may have
 * more members at their ends; those that the program does not know have their defaults.  A program
 * that is newer than the library is refused with DDPS_E_UNSUPPORTED if it sets what the library
 * does not have.  Members named reserved are 0.  All rules: docs/abi.md.
 */
#include <ddpsess/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- connection parameters ---- */

struct ddps_conn_param {
	size_t struct_size;
	/* negotiation, both wires (RFC 6581) */
	uint16_t ird, ord;	   /* 0..DDPS_RD_MAX, or DDPS_RD_ULP: left to the applications */
	uint16_t ulp_ird, ulp_ord; /* in force here while ird or ord is DDPS_RD_ULP */
	uint16_t need_ord;	   /* responder: reject if the peer's IRD is below this */
	bool ird_hard;		   /* never raise ird above what is given here */
	bool plain;		   /* initiator: unenhanced set-up, no IRD/ORD exchange */
	bool p2p;		   /* initiator: peer-to-peer model */
	unsigned rtr;	   /* RTR types this side can send (initiator) or take (responder) */
	bool rtr_strict;   /* responder: a first message that is no RTR is an error */
	bool legacy_retry; /* initiator: peer closed on an enhanced request: try plain once, if
			    * neither plain nor p2p is set */
	/* MPA (RFC 5044); no meaning over SCTP */
	bool crc;     /* false: suggest no CRCs; used only if both sides suggest it */
	bool markers; /* ask the peer to send markers */
	/* private data, borrowed for the call only */
	const void *private_data;
	size_t private_data_len; /* 0..512, 0..508 when enhanced */
	/* deadlines in milliseconds, 0: none */
	uint32_t connect_ms;	   /* transport connection, name lookup included */
	uint32_t refused_retry_ms; /* initiator: how long a refusal by the transport (nobody
				      listens yet) is answered by another try, within connect_ms */
	uint32_t setup_ms;	   /* peer's setup frame, whole */
	uint32_t first_fpdu_ms;	   /* responder: the initiator's first message */
	uint32_t close_ms;	   /* graceful disconnect: see ddps_disconnect; over SCTP
				    * of the association, if no other session is on it */
	uint32_t max_mulpdu;	   /* 0: what the path gives */
	/* Initiator: if nothing came in this many milliseconds after the session was established,
	 * send one zero-length RDMA Write, once; 0: never.  For Linux soft-iWARP as responder,
	 * which can overlook a first message right behind its Reply until more arrives.  Takes no
	 * place in the send queue and completes nothing. */
	uint32_t nudge_ms;
	uint32_t reserved;
	/* Initiator: the address of this host to connect from, as in struct ddps_conn_info ("192.0.2.1:0",
	 * "[2001:db8::1]:4000"); port 0 lets the system choose, and is the only one over SCTP, where
	 * sessions share an association; there it may be a list, "192.0.2.1,[2001:db8::1]:0", and
	 * is the same as the URI's local=, which then is to be absent.  NULL: the system chooses
	 * both.  Borrowed for the call. */
	const char *local;
};

/** ddps_conn_param_init_sized - as ddps_ctx_attr_init_sized */
DDPS_API void ddps_conn_param_init_sized(struct ddps_conn_param *p, size_t size);

/**
 * ddps_conn_param_init - fill in the defaults
 * @p:		enhanced, client-server, ird = ord = 16, all RTR types, CRC on, markers off,
 *		connect 10 s, no retry after a refusal, setup 10 s, first FPDU 60 s, close 5 s,
 *		no nudge
 */
static inline void ddps_conn_param_init(struct ddps_conn_param *p)
{
	ddps_conn_param_init_sized(p, sizeof *p);
}

/**
 * ddps_uri_check - whether a URI has the right form, and what is wrong with it
 * @uri:	as for ddps_listen
 * @why, @len:	receives one sentence that names the bad part, "" if there is none
 *
 * Looks up nothing.  Thread safe.
 *
 * Return: 0, or DDPS_E_ADDRESS.
 */
DDPS_API int ddps_uri_check(const char *uri, char *why, size_t len);

/* ---- listening ---- */

struct ddps_listen_param {
	size_t struct_size;
	unsigned backlog; /* kernel accept queue */
	/* Peers in set-up, waiting for the application or, over TCP, rejected and not gone yet.
	 * What happens beyond: half_open_full and half_open_given_up in stats.h */
	unsigned max_half_open;
	uint32_t setup_ms;	  /* deadline for a peer's whole setup frame */
	unsigned rtr;		  /* RTR types taken by sessions of this listener, not 0 */
	bool rtr_mismatch_accept; /* no common RTR type: still ask the application */
	void *user;		  /* comes back in events */
};

/** ddps_listen_param_init_sized - as ddps_ctx_attr_init_sized */
DDPS_API void ddps_listen_param_init_sized(struct ddps_listen_param *p, size_t size);

/** ddps_listen_param_init - defaults: backlog 1024, 1024 half-open, 5 s, all RTR types */
static inline void ddps_listen_param_init(struct ddps_listen_param *p)
{
	ddps_listen_param_init_sized(p, sizeof *p);
}

/**
 * ddps_listen - wait for initiators
 * @ctx:	context
 * @uri:	"tcp://HOST:PORT" or "sctp://HOST:PORT[?backend=auto|kernel|native][&encap=PORT|off]
 *		[&per-address=N]";
 *		HOST an address, [IPv6], a name, or empty for any; port 0 lets the system choose.
 *		With sctp:// HOST may be a list of at most 8 addresses, with commas: the endpoint
 *		has them all, and the set-up lists them to peers.  N is how many associations a peer may have
 * @p:		NULL for the defaults
 * @out:	set on success only
 *
 * A host name is looked up before this returns, which can block; addresses never block.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_ADDRESS (URI or name), DDPS_E_UNSUPPORTED (backend, or a
 * member of a later release is set), DDPS_E_NOMEM, DDPS_E_SYSTEM (errno is set: EADDRINUSE, EACCES, ...), DDPS_E_FORKED.
 */
DDPS_API int ddps_listen(struct ddps_ctx *ctx, const char *uri, const struct ddps_listen_param *p,
			 struct ddps_listener **out);

/**
 * ddps_listener_uri - the bound URI, with the port the system chose and the backend in use
 * @l:		listener
 * @buf, @len:	receives a terminated string
 *
 * Return: the string's length, or DDPS_E_TOO_LONG if @len is too small, DDPS_E_FORKED.
 */
DDPS_API int ddps_listener_uri(struct ddps_listener *l, char *buf, size_t len);

/**
 * ddps_listener_free - stop listening
 * @l:		may be NULL.  Requests whose event was not fetched yet are refused.  Those that the
 *		program holds are still to be answered; an event about one of them names no
 *		listener any more.  Sessions already accepted stay.
 */
DDPS_API void ddps_listener_free(struct ddps_listener *l);

/* ---- endpoints ---- */

/*
 * What becomes of a Send of the peer that finds no posted receive.
 *
 * TERMINATE: as RFC 5040 and RFC 5041 say, the session ends with Terminate 1/2/02.
 *
 * STALL: it waits, with all that the peer sent behind it on this session, until a receive is
 * posted; this side's sending goes on.  Over TCP nothing is read meanwhile, so that TCP slows the
 * peer down; less than 1 MiB that was read already is kept.  Over SCTP the other sessions of the
 * association go on while what waits is kept, up to 4 MiB or 16384 messages a session; behind
 * that the whole association is not read until half of it is gone, so that SCTP slows the peer
 * down.  What comes behind the waiting Send includes the peer's close and its Terminate; a reset
 * is noticed immediately.  Once the peer has closed a Send waits for one more second, counted from the
 * last message that was taken, then the rule is TERMINATE.  ddps_disconnect waits at most close_ms
 * for the receive if the end of the session needs it (outstanding Reads); when all posted work has
 * ended, the rule is TERMINATE.
 */
enum ddps_no_recv { DDPS_NO_RECV_TERMINATE, DDPS_NO_RECV_STALL };

struct ddps_ep_attr {
	size_t struct_size;
	struct ddps_pd *pd;	     /* required */
	struct ddps_cq *send_cq;     /* required */
	struct ddps_cq *recv_cq;     /* required; may be send_cq */
	uint32_t sq_depth, rq_depth; /* work requests, 1..65535 */
	uint32_t max_sge;	     /* pieces of one work request, 1..16 */
	bool rfc7306; /* Immediate Data and atomics, both ways: agree on it with the peer's
		       * application first, the wire has no way to ask (RFC 7306 1.1) */
	/* Work posted once the session ends or has ended is not refused: it completes as flushed,
	 * behind all that was posted before.  And ddps_abort takes an endpoint that was never
	 * connected: its receives are flushed and no event comes. */
	bool flush_late;
	void *user; /* comes back in events and completions */
	enum ddps_no_recv no_recv;
	/* How many receives of @srq this endpoint may have taken whose completions were not
	 * fetched yet; 0: half of the queue's depth, rounded up.  A peer that sends more
	 * waits, as with STALL but whatever no_recv says, until one is fetched. */
	uint32_t srq_share;
	/* A shared receive queue (wr.h) of @pd, or NULL.  With one, rq_depth is ignored and
	 * ddps_post_recv is refused. */
	struct ddps_srq *srq;
	/* With rfc7306: DDPS_OP_SEND_IMM is understood.  Agree on it with the peer's application
	 * first, as on rfc7306: such a Send is two messages that no RFC makes one. */
	bool send_imm;
	uint8_t reserved[7]; /* 0 */
};

/** ddps_ep_attr_init_sized - as ddps_ctx_attr_init_sized */
DDPS_API void ddps_ep_attr_init_sized(struct ddps_ep_attr *attr, size_t size);

/**
 * ddps_ep_attr_init - defaults: 64 work requests each way, 4 pieces, no RFC 7306,
 * DDPS_NO_RECV_TERMINATE
 */
static inline void ddps_ep_attr_init(struct ddps_ep_attr *attr)
{
	ddps_ep_attr_init_sized(attr, sizeof *attr);
}

/**
 * ddps_ep_new - create an unconnected endpoint (queue pair)
 * @ctx:	context
 * @attr:	pd, cqs and srq must belong to @ctx and outlive the endpoint
 * @out:	set on success only
 *
 * Receives may be posted immediately.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_UNSUPPORTED (a member of a later release is set),
 * DDPS_E_NOMEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_new(struct ddps_ctx *ctx, const struct ddps_ep_attr *attr,
			 struct ddps_ep **out);

/**
 * ddps_ep_free - destroy an endpoint; aborts its session if there is one
 * @ep:		may be NULL.  Events and completions of it that were not fetched are dropped.
 *		A receive of a shared queue that it has taken and not completed goes back there.
 */
DDPS_API void ddps_ep_free(struct ddps_ep *ep);

/**
 * ddps_ep_allow - what the peer may do in this session at all, whatever regions allow
 * @ep:		endpoint, connected or not
 * @rights:	of DDPS_REMOTE_WRITE, DDPS_REMOTE_READ, DDPS_REMOTE_ATOMIC; all of them at first
 *
 * What is refused ends the session with a Terminate, as a missing right of a region does (RFC 5040
 * 7.1).  It holds for what comes in after the call.
 *
 * Return: 0, or DDPS_E_INVAL (other bits), DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_allow(struct ddps_ep *ep, unsigned rights);

/* Of ddps_ep_hush. */
#define DDPS_HUSH_SENDS 0x1
#define DDPS_HUSH_RECVS 0x2

/**
 * ddps_ep_hush - flushed completions come without a notification
 * @ep:		endpoint, connected or not
 * @queues:	of DDPS_HUSH_SENDS, DDPS_HUSH_RECVS; none of them at first
 *
 * What is flushed when the session ends can be polled as before.  But it makes no descriptor readable,
 * calls no function of ddps_cq_on_notify and ends no arming, so whoever sleeps on them sleeps on.
 * This is for programs made for InfiniBand, where a queue pair that goes flushes nothing.  A later
 * call without a queue's bit makes up for that queue: one notification, if something was flushed
 * meanwhile and the queue is not empty yet.
 *
 * Return: 0, or DDPS_E_INVAL (other bits), DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_hush(struct ddps_ep *ep, unsigned queues);

/**
 * ddps_connect - open a session as initiator
 * @ep:		endpoint that was never connected
 * @uri:	as for ddps_listen, port required; names are looked up without blocking.  With
 *		sctp:// a list of addresses of the peer, the first one preferred; and &local=HOST,...
 *		this host's addresses that the peer learns.  Without it these are the ones that the
 *		system uses towards each address of a list (backend kernel: all of the host's).
 *		Each family of the list needs one
 * @p:		NULL for the defaults
 *
 * Exactly one of DDPS_EV_ESTABLISHED, DDPS_EV_REJECTED and DDPS_EV_FAILED follows.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_ADDRESS (URI, or local), DDPS_E_TOO_LONG (private data; nothing
 * was sent), DDPS_E_STATE, DDPS_E_UNSUPPORTED, DDPS_E_NOMEM, DDPS_E_SYSTEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_connect(struct ddps_ep *ep, const char *uri, const struct ddps_conn_param *p);

/**
 * ddps_accept - answer a request with yes
 * @req:	from DDPS_EV_CONNECT_REQUEST; consumed by 0, DDPS_E_IRD, DDPS_E_RTR and DDPS_E_CLOSED
 * @ep:		endpoint that was never connected, receives posted
 * @p:		NULL for the defaults
 *
 * DDPS_EV_ESTABLISHED follows immediately in the client-server model, and in the peer-to-peer
 * model when the initiator's RTR has arrived; otherwise DDPS_EV_FAILED, also when memory for the
 * session is short.  Sends may be posted immediately; they leave when the wire permits
 * (RFC 5044 7.1.2).
 *
 * If the peer offers less IRD than need_ord the request is rejected, as RFC 6581 9.1 allows:
 * the call returns DDPS_E_IRD and the request is consumed.
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_TOO_LONG, DDPS_E_STATE (endpoint used before), DDPS_E_IRD,
 * DDPS_E_RTR, DDPS_E_CLOSED (the peer has gone), DDPS_E_UNSUPPORTED (a member of a later release
 * is set), DDPS_E_FORKED.
 */
DDPS_API int ddps_accept(struct ddps_request *req, struct ddps_ep *ep,
			 const struct ddps_conn_param *p);

/**
 * ddps_reject - answer a request with no
 * @req:	from DDPS_EV_CONNECT_REQUEST; consumed by 0 and DDPS_E_CLOSED
 * @private_data, @len:	for the peer's application, 0..512 octets, 0..508 if enhanced
 *
 * Return: 0, or DDPS_E_TOO_LONG, DDPS_E_INVAL, DDPS_E_CLOSED (the peer has gone),
 * DDPS_E_FORKED.
 */
DDPS_API int ddps_reject(struct ddps_request *req, const void *private_data, size_t len);

/**
 * ddps_disconnect - end a session in order
 * @ep:		endpoint
 *
 * Work already posted is carried out (outstanding Reads and atomics included), then the session
 * closes; new posts fail.  DDPS_EV_CLOSED follows.  A session that is not established yet is
 * aborted instead, and DDPS_EV_FAILED follows (error.code DDPS_E_CLOSED).
 *
 * When posted work makes no progress for close_ms, or the peer has not closed close_ms after that work
 * has ended, the session is aborted (error.code DDPS_E_TIMEDOUT); what the peer sends and asks for
 * meanwhile changes nothing.  Calling it again does nothing.
 *
 * Return: 0, or DDPS_E_STATE (never connected), DDPS_E_FORKED.
 */
DDPS_API int ddps_disconnect(struct ddps_ep *ep);

/**
 * ddps_abort - end a session immediately; outstanding work completes as flushed
 * @ep:		endpoint
 *
 * DDPS_EV_CLOSED (DDPS_EV_FAILED if not established yet) follows.  If the session has ended already,
 * nothing happens and nothing follows.
 *
 * Return: 0, or DDPS_E_STATE (never connected, and no flush_late), DDPS_E_FORKED.
 */
DDPS_API int ddps_abort(struct ddps_ep *ep);

/**
 * ddps_ep_info - what was negotiated
 * @ep:		endpoint that is or was established
 * @info:	filled on success
 *
 * Return: 0, or DDPS_E_STATE (never established), DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_info(struct ddps_ep *ep, struct ddps_conn_info *info);

/**
 * ddps_ep_unfetched - how many of its completions nobody has taken yet
 * @ep:		endpoint
 *
 * Flushed ones do not count.  ddps_ep_free drops what is left.  It drives nothing and does not
 * block; it looks at every completion in the queues, so it is not for each message.  Any thread may
 * call it.
 *
 * Return: 0 or more, or DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_unfetched(struct ddps_ep *ep);

#ifdef __cplusplus
}
#endif
#endif
