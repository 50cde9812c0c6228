/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_SESSION_H
#define DDPSESS_SESSION_H
/*
 * Listeners and endpoints: an RDMA session over TCP or SCTP, as the URI says.  <ddpsess/ctx.h> has
 * contexts and events, <ddpsess/wr.h> has memory, work requests and completions.
 *
 * The life of a session, at the initiator, which connects:
 *
 *	ddps_ep_new, ddps_post_recv, ...
 *	ddps_connect
 *	DDPS_EV_ESTABLISHED
 *	work requests (wr.h)
 *	ddps_disconnect
 *	DDPS_EV_CLOSED
 *	ddps_ep_free
 *
 * At the responder, which waits for initiators:
 *
 *	ddps_listen
 *	DDPS_EV_CONNECT_REQUEST
 *	ddps_ep_new, ddps_post_recv, ...
 *	ddps_accept or ddps_reject
 *	DDPS_EV_ESTABLISHED, and so on as above
 *
 * Threads: every function may be called from any thread.  Each context has one lock, so that calls
 * on one context run one after the other.  In a program with one thread and no library thread, no
 * call ever waits for it.  While one thread frees an object, no other thread may use it.  No
 * function blocks unless its description says so.
 *
 * What an event hands out: endpoints, listeners and shared queues are the program's, and only the
 * program frees them.  It may do so while other threads fetch events: an event of the object is
 * either fetched before, or dropped.  Then who frees it waits for those threads that have fetched
 * one.  With several threads that fetch, one can fetch DDPS_EV_CLOSED of an endpoint while another
 * still handles an earlier event of it.  Then the program counts the users of each endpoint: under
 * one lock of its own it fetches and adds one, and the last user after DDPS_EV_CLOSED frees it.  Or
 * it leaves all events to one thread.  A request needs no freeing.  It stays valid after it was
 * answered or its peer has gone, in every thread: a later answer is DDPS_E_CLOSED.  (A context
 * remembers the last 256 requests that were answered, and the last 65536 whose peers have gone.)
 *
 * Cancellation: a thread that is cancelled is so outside of this library's locks.  That is true of
 * PTHREAD_CANCEL_DEFERRED, the default; _ASYNCHRONOUS leaves locks taken.  No function but
 * ddps_ctx_settle is a cancellation point, so a call that waits for events or completions ends before
 * its thread does.  If a thread that calls nothing else is to be cancelled, give its waits a timeout,
 * and call pthread_testcancel() between them.  Only where a process has a single thread, which has
 * cancelled itself, the next function that it calls may be where it ends.
 *
 * Callbacks: Events and completions are fetched, no callback brings them.  The library calls only
 * four functions of the program: its log, its capture, and what it gives ddps_cq_on_notify and
 * ddps_watch_add.
 *
 * fork: a child must not use its parent's context.  Every call on one in the child returns
 * DDPS_E_FORKED and touches nothing.  The library closes the child's copies of the context's
 * sockets inside fork.  So a session ends when the parent ends it: the peer is informed, and the
 * port is free again.  Three descriptors stay open in the child if the program has asked for them
 * (ddps_ctx_fd, ddps_event_fd, ddps_cq_fd).  ddps_ctx_free in the child closes them and frees the
 * child's memory.
 *
 * closefrom: a program that closes descriptors which are not its own cannot use its contexts any
 * more.  Their calls return DDPS_E_SYSTEM, with EBADF in errno, from the moment on when the library
 * notices.  The library checks when a context, listener, endpoint or completion queue is made,
 * connected, answered, ended or freed, in ddps_cq_arm, ddps_ctx_fd, ddps_event_fd, ddps_ctx_flush and
 * ddps_ctx_settle, and elsewhere before it uses a descriptor, unless it has checked within the last
 * 50 us, or, in the same call, no more than three uses of a descriptor ago.  So a call that only posts
 * or polls may still succeed, but nothing is sent.  By then the numbers may belong to files of the
 * program: these are neither read, nor written, nor closed.  Only who closes all, opens files of his
 * own and calls the library again within those 50 us is not noticed.  A thread that sleeps in a wait
 * meanwhile may sleep on until the time of that is up, for ever without one.  A context that is made
 * afterwards works.
 *
 * Every function that returns errors may also return DDPS_E_FORKED, and DDPS_E_SYSTEM after such a
 * closefrom.
 *
 * Structs of parameters begin with struct_size, which is the caller's sizeof; the _init functions
 * set it.  So a program keeps working with a later release of the library.  There, structs may have
 * more members at their ends; those that the program does not know have their defaults.  A program
 * that is newer than the library is refused with DDPS_E_UNSUPPORTED if it sets what the library
 * does not have.  Any other struct_size is DDPS_E_INVAL.  Members named reserved are 0.  All rules:
 * docs/abi.md.
 */
#include <ddpsess/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- connection parameters ---- */

/* How to connect or accept.  Both sides use this struct; a comment says where only one does. */
struct ddps_conn_param {
	size_t struct_size;
	/* Negotiation, over TCP and SCTP (RFC 6581 9).  ird is how many RDMA Reads of the peer this
	 * side answers at the same time, ord is how many of its own it may have outstanding. */
	uint16_t ird, ord;	   /* 0..DDPS_RD_MAX, or DDPS_RD_ULP: left to the applications */
	uint16_t ulp_ird, ulp_ord; /* in force at this side while ird or ord is DDPS_RD_ULP */
	/* Responder: reject if the peer's IRD is below this.  Has no effect if the set-up is not
	 * enhanced, or if the peer's IRD or ord here is DDPS_RD_ULP. */
	uint16_t need_ord;
	bool ird_hard; /* never raise ird above what is given here */
	bool plain;    /* initiator: unenhanced set-up, no IRD/ORD exchange */
	bool p2p;      /* initiator: peer-to-peer model; not with plain */
	/* RTR types, DDPS_RTR_*, that this side can send (initiator) or receive (responder).  Not 0
	 * at a responder, nor with p2p. */
	unsigned rtr;
	bool rtr_strict; /* responder: a first message that is no RTR is an error */
	/* Initiator: if the peer closed on an enhanced request: try plain once.  Has no effect with
	 * p2p. */
	bool legacy_retry;
	/* MPA (RFC 5044), which is over TCP and shared memory only */
	/* false: suggest no CRCs; they are left out only if both sides suggest it.  With tls:// the URI
	 * says it (crc=1), and the default is none; so it is with
	 * shm://, where only a peer that insists on them gets them. */
	bool crc;
	bool markers; /* ask the peer to send markers */
	/* Private data for the peer's application, borrowed for the call only. */
	const void *private_data;
	size_t private_data_len; /* octets: 0..512, 0..508 when enhanced */
	/* Time limits in milliseconds, 0: none */
	uint32_t connect_ms; /* transport connection, name lookup included */
	/* Initiator: how long to try again if the transport refuses the connection, because nobody
	 * listens yet.  It is tried again every 20 ms, within connect_ms.  0: no second try. */
	uint32_t refused_retry_ms;
	uint32_t setup_ms;	/* for the peer's whole setup frame */
	uint32_t first_fpdu_ms; /* responder: for the initiator's first message */
	/* For the end of a session: see ddps_disconnect.  Over SCTP also for the end of the
	 * association, if it carries no other session. */
	uint32_t close_ms;
	/* The most octets of a DDP segment to send, 128 or more; 0: what the path gives. */
	uint32_t max_mulpdu;
	/* Initiator: if nothing came in this many milliseconds after the session was established,
	 * send one zero-length RDMA Write, once; 0: never.  It is for Linux soft-iWARP as
	 * responder.  That can overlook a first message that follows its Reply closely, until more
	 * arrives.  The Write takes no place in the send queue and completes nothing. */
	uint32_t nudge_ms;
	uint32_t reserved; /* 0 */
	/* Initiator: the address of this host to connect from, such as "192.0.2.1:0" or
	 * "[2001:db8::1]:4000".  Port 0 lets the system choose.  NULL: the system chooses address
	 * and port.  Borrowed for the call.
	 *
	 * Over SCTP the port has to be 0, because sessions share an association.  There it may be a
	 * list: "192.0.2.1,[2001:db8::1]:0".  Such a list is the same as local= in the URI, so only
	 * one of the two may be given.  Over shm:// there are no addresses: DDPS_E_UNSUPPORTED. */
	const char *local;
	/* TCP: how long an idle session waits for a peer whose host has vanished, in milliseconds: it
	 * asks after half of that, and several times more (TCP keepalive; seconds are rounded).  Then
	 * it ends with DDPS_E_TIMEDOUT.  0: for ever, if this side sends nothing.  Over SCTP
	 * heartbeats find out.  For this side alone: each side has its own. */
	uint32_t keepalive_ms;
	/* TCP: how long what was sent may stay unacknowledged, in milliseconds; 0: as long as the
	 * system tries, which is about a quarter of an hour on Linux.  Not for sessions whose peer may
	 * stall: a window that stays closed for so long ends the session, too. */
	uint32_t unacked_ms;
	/* TCP: if the peer is a process of the same user on this host, in the same network namespace, and
	 * has this set too, the session goes through shared memory once it is set up, without CRCs.
	 * Addresses, private data and events stay those of TCP; ddps_ep_info says which it is.  If that
	 * cannot be, it stays on TCP; a peer that takes the memory and says nothing of it ends the
	 * set-up at its deadline. */
	bool shm;
	uint8_t reserved2[3]; /* 0 */
	/* Initiator: how long one address of a host name may take to take a connection of the transport, in
	 * milliseconds, while others are left to try.  0: as much as each of them, of what is left of connect_ms.
	 * The last one has all that is left.  Once it is there, setup_ms bounds the rest, and no other is tried. */
	uint32_t address_ms;
};

/**
 * ddps_conn_param_init_sized - ddps_conn_param_init for languages that cannot call it
 * @p:		receives the defaults
 * @size:	as for ddps_ctx_attr_init_sized
 *
 * Thread safe.  Never blocks.
 */
DDPS_API void ddps_conn_param_init_sized(struct ddps_conn_param *p, size_t size);

/**
 * ddps_conn_param_init - fill in the defaults
 * @p:		receives the defaults
 *
 * The defaults are: enhanced set-up, client-server model, ird = ord = ulp_ird = ulp_ord = 16, all
 * RTR types, CRC on, markers off, connect 10 s, no retry after a refusal, setup 10 s, first FPDU 60
 * s, close 5 s, no nudge, keepalive 60 s, no limit for what is unacknowledged, TCP even if the peer
 * is on this host, an equal share of connect_ms for each address.
 *
 * Thread safe.  Never blocks.
 */
static inline void ddps_conn_param_init(struct ddps_conn_param *p)
{
	ddps_conn_param_init_sized(p, sizeof *p);
}

/**
 * ddps_uri_check - whether a URI has the right form, and what is wrong with it
 * @uri:	as for ddps_listen
 * @why:	receives one sentence that names the bad part, "" if there is none
 * @len:	octets of room at @why
 *
 * Looks up no name.  Thread safe.  Never blocks.
 *
 * Return: 0, or DDPS_E_ADDRESS.
 */
DDPS_API int ddps_uri_check(const char *uri, char *why, size_t len);

/* ---- listening ---- */

struct ddps_listen_param {
	size_t struct_size;
	unsigned backlog; /* length of the kernel's accept queue */
	/* The most half-open peers, 1 or more.  These are peers that are in set-up, waiting for the
	 * application or, over TCP, rejected and not gone yet.  At shm:// listeners 64 are the most,
	 * since each may hold descriptors.  What happens beyond: half_open_full and
	 * half_open_given_up in stats.h */
	unsigned max_half_open;
	uint32_t setup_ms; /* deadline for a peer's whole setup frame, in milliseconds */
	unsigned rtr;	   /* RTR types, DDPS_RTR_*, that sessions of this listener accept; not 0 */
	/* What to do with an initiator that offers no common RTR type.  true: still ask the
	 * application; false: reject it. */
	bool rtr_mismatch_accept;
	void *user; /* comes back in events */
};

/**
 * ddps_listen_param_init_sized - ddps_listen_param_init for languages that cannot call it
 * @p:		receives the defaults
 * @size:	as for ddps_ctx_attr_init_sized
 *
 * Thread safe.  Never blocks.
 */
DDPS_API void ddps_listen_param_init_sized(struct ddps_listen_param *p, size_t size);

/**
 * ddps_listen_param_init - fill in the defaults
 * @p:		receives the defaults
 *
 * These are the defaults: backlog 1024, 1024 half-open, 5 s, all RTR types.
 *
 * Thread safe.  Never blocks.
 */
static inline void ddps_listen_param_init(struct ddps_listen_param *p)
{
	ddps_listen_param_init_sized(p, sizeof *p);
}

/**
 * ddps_listen - wait for initiators
 * @ctx:	context
 * @uri:	where to listen, for example "tcp://192.0.2.1:7174"
 * @p:		copied; NULL for the defaults
 * @out:	receives the listener; unchanged on failure
 *
 * The URI is "tcp://HOST:PORT" or
 * "sctp://HOST:PORT[?backend=auto|kernel|native][&encap=PORT|off][&per-address=N]", both with tos=N.  HOST is an
 * address, an IPv6 address in brackets, a name, or empty for any; port 0 lets the system choose.
 * With sctp:// HOST may be a list of at most 8 addresses, separated by commas.  The endpoint then
 * has all of them, and peers learn them in the set-up.  N is how many associations a peer may have.
 * "tls://HOST:PORT[?crc=1][&markers=1]" and "sctps://HOST:PORT[?encap=PORT][&per-address=N]" are the secured wires, for which the
 * context needs credentials (struct ddps_ctx_attr.secure).  "shm:///PATH" and "shm://@NAME" are for peers on this
 * host: a socket's file, whose permissions say who may connect, or an abstract name, at which only this process's
 * user may.  ddpsess(7) describes every part.
 *
 * The program owns the listener and frees it with ddps_listener_free.  Each initiator causes a
 * DDPS_EV_CONNECT_REQUEST.
 *
 * A host name is looked up before this returns, which can block.  If the process has forked less than
 * a second ago, the child may still have a copy of a socket with the same port: then this waits for
 * the port or abstract name, for a second at most.  Otherwise, with an address it never blocks.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @out is NULL, or a member of @p is out of range
 * - DDPS_E_ADDRESS: the URI is malformed, or the name could not be looked up
 * - DDPS_E_NO_CERT: the URI is a secured one, and the context was given no credentials
 * - DDPS_E_UNSUPPORTED: the backend cannot be used, or a member of a later release is set
 * - DDPS_E_NOMEM
 * - DDPS_E_SYSTEM: errno is set: EADDRINUSE, EACCES, ...
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_listen(struct ddps_ctx *ctx, const char *uri, const struct ddps_listen_param *p,
			 struct ddps_listener **out);

/**
 * ddps_listener_uri - the URI for peers, with the port and the backend that were chosen
 * @l:		listener
 * @buf:	receives the URI, terminated by 0
 * @len:	octets of room at @buf
 *
 * Options that are of this side alone, per-address and tos, are not in it.
 *
 * Return: the length of the text, or
 * - DDPS_E_TOO_LONG if @len is too small
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_listener_uri(struct ddps_listener *l, char *buf, size_t len);

/**
 * ddps_listener_free - stop listening
 * @l:		may be NULL
 *
 * Requests whose event was not fetched yet are refused.  Requests that the program has fetched
 * stay, and it still has to answer them; later events of these requests have no listener.  Sessions
 * already accepted stay.
 */
DDPS_API void ddps_listener_free(struct ddps_listener *l);

/* ---- endpoints ---- */

/*
 * What to do with a Send of the peer if no receive is posted for it.
 *
 * TERMINATE: the session ends with Terminate 1/2/02, as RFC 5040 and RFC 5041 say.
 *
 * STALL: it waits, with all that the peer sent behind it on this session, until a receive is
 * posted.  This side still sends meanwhile.
 *
 * Over TCP nothing is read while a Send waits, so that TCP slows the peer down.  Less than 1 MiB
 * that was read already is kept.
 *
 * Over SCTP sessions share an association.  An initiator whose endpoint stalls gets one of its own.
 * What waits is kept: up to 4 MiB or 16384 messages of a session, and up to 16 MiB of an
 * association.  Up to there the other sessions of the association go on.  What is kept beyond that
 * makes the association's receive window smaller by twice as much, so that SCTP slows the peer down
 * (backend kernel: the association is not read until half of it is gone).  If the window is shut
 * for 5 s, and other sessions have to wait because of that, the session that holds most ends with
 * DDPS_E_LIMIT.
 *
 * A close and a Terminate of the peer wait behind the Send too.  Once the peer has closed in order,
 * and all that it sent has arrived at this host, nothing is lost any more: what waits goes to
 * receives that are posted later, even if the peer has reset the connection meanwhile or its process
 * has ended.  A second after the close DDPS_EV_PEER_CLOSING reports it.  A reset without such a
 * close is noticed immediately, and what waits is lost.
 *
 * The wait ends if this program ends the session.  ddps_disconnect waits at most close_ms for the
 * receive, and only if the session cannot end without it because Reads are outstanding; when all
 * posted work has ended, the rule is TERMINATE.
 */
enum ddps_no_recv { DDPS_NO_RECV_TERMINATE, DDPS_NO_RECV_STALL };

struct ddps_ep_attr {
	size_t struct_size;
	struct ddps_pd *pd;	     /* required */
	struct ddps_cq *send_cq;     /* required */
	struct ddps_cq *recv_cq;     /* required; may be send_cq */
	uint32_t sq_depth, rq_depth; /* work requests, 1..65535 */
	uint32_t max_sge;	     /* pieces of one work request, 1..16 */
	/* Immediate Data and atomics, both ways.  First agree on it with the peer's application,
	 * because the protocol has no way to ask for it (RFC 7306 1.1). */
	bool rfc7306;
	/* Work that is posted when the session ends, or has ended, is not refused: it completes as
	 * flushed, behind all that was posted before.  In addition, ddps_abort accepts an endpoint
	 * that was never connected: its receives are flushed and no event comes. */
	bool flush_late;
	void *user; /* comes back in events and completions */
	enum ddps_no_recv no_recv;
	/* The share of @srq that this endpoint may hold: receives that it has taken and whose
	 * completions were not fetched yet.  0: half of the queue's depth, rounded up.  A peer that
	 * sends more waits until one is fetched, as with STALL, whatever no_recv says. */
	uint32_t srq_share;
	/* A shared receive queue (wr.h) of @pd, or NULL.  With one, rq_depth is ignored and
	 * ddps_post_recv is refused. */
	struct ddps_srq *srq;
	/* With rfc7306: DDPS_OP_SEND_IMM may be used.  First agree on it with the peer's
	 * application: such a Send is two messages, and that they belong together is in no RFC. */
	bool send_imm;
	/* With rfc7306: DDPS_OP_ATOMIC_WRITE and DDPS_OP_FLUSH, both ways.  First agree on them with the
	 * peer's application: they are in no RFC, and whoever does not know them ends the session. */
	bool flush;
	uint8_t reserved[6]; /* 0 */
};

/**
 * ddps_ep_attr_init_sized - ddps_ep_attr_init for languages that cannot call it
 * @attr:	receives the defaults
 * @size:	as for ddps_ctx_attr_init_sized
 *
 * Thread safe.  Never blocks.
 */
DDPS_API void ddps_ep_attr_init_sized(struct ddps_ep_attr *attr, size_t size);

/**
 * ddps_ep_attr_init - fill in the defaults
 * @attr:	receives the defaults; the program sets @pd, @send_cq and @recv_cq
 *
 * These are the defaults: 64 work requests each way, 4 pieces, no RFC 7306, no shared receive
 * queue, DDPS_NO_RECV_TERMINATE.
 *
 * Thread safe.  Never blocks.
 */
static inline void ddps_ep_attr_init(struct ddps_ep_attr *attr)
{
	ddps_ep_attr_init_sized(attr, sizeof *attr);
}

/**
 * ddps_ep_new - create an unconnected endpoint (queue pair)
 * @ctx:	context
 * @attr:	copied; pd, cqs and srq must belong to @ctx and outlive the endpoint
 * @out:	receives the endpoint; unchanged on failure
 *
 * The program owns the endpoint and frees it with ddps_ep_free.  Receives may be posted
 * immediately.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a required member is missing, out of range, or of another context
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_NOMEM
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_new(struct ddps_ctx *ctx, const struct ddps_ep_attr *attr,
			 struct ddps_ep **out);

/**
 * ddps_ep_free - destroy an endpoint; abort its session if there is one
 * @ep:		may be NULL
 *
 * A session that is ending in order is aborted as well, if work is still under way.
 *
 * Events and completions of the endpoint that were not fetched are dropped.  A receive of a shared
 * queue that it has taken and not completed goes back there.
 */
DDPS_API void ddps_ep_free(struct ddps_ep *ep);

/**
 * ddps_ep_allow - limit what the peer may do in this session, whatever regions allow
 * @ep:		endpoint, connected or not
 * @rights:	of DDPS_REMOTE_WRITE, DDPS_REMOTE_READ, DDPS_REMOTE_ATOMIC; all of them at first
 *
 * This is for what comes in after the call.  What is refused ends the session with a Terminate, as
 * a missing right of a region does (RFC 5040 7.1).
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @rights has other bits
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_allow(struct ddps_ep *ep, unsigned rights);

/**
 * ddps_ep_reads_max - limit how many Reads and atomics of this side may be on their way
 * @ep:		endpoint, connected or not
 * @n:		how many, at least 1; as many as both sides agreed on (ord of struct ddps_conn_info) at first
 *
 * The others wait in the send queue, and what was posted behind them waits, too.  A number above ord
 * changes nothing.  This is for what is sent after the call.  Thread safe.  Never blocks.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @n is 0
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_reads_max(struct ddps_ep *ep, uint16_t n);

/**
 * ddps_ep_answer_within - end the session if the peer's host does not acknowledge
 * @ep:		endpoint, connected or not
 * @ms:		for how long, in milliseconds; 0, which is what an endpoint begins with: no limit
 *
 * The limit is for the peer's TCP or SCTP, while this side has work under way.  It does not matter
 * what the peer's program does: a window that stays closed for hours is acknowledged all the time.
 * So a host that is gone and a program that stalls are not the same, as they are to unacked_ms of
 * struct ddps_conn_param.
 *
 * If the host has acknowledged nothing of what it was sent for @ms, the session ends with
 * DDPS_E_TIMEDOUT, at most @ms / 4 + 50 later.  The oldest work request in the send queue
 * completes with DDPS_WC_UNANSWERED, the others with DDPS_WC_FLUSHED.  It is the same if TCP gives
 * up first.  A host that vanishes when it has acknowledged all, but its program owes an answer, is
 * found by keepalive_ms and by SCTP's heartbeats.  Linux probes a window that was closed for long
 * ever more seldom, every two minutes in the end, and only unanswered probes count then.
 *
 * Less than a second is too short: TCP and SCTP need about as long to send again what was lost.
 *
 * Over the kernel's SCTP it has no effect, since that does not show when it has heard its peer: the
 * session ends when SCTP gives up.
 *
 * A later call sets another limit, which counts from that call.  Thread safe.  Never blocks.  Looks only while work is under way.
 *
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_answer_within(struct ddps_ep *ep, uint32_t ms);

/* For ddps_ep_mute. */
#define DDPS_MUTE_SENDS 0x1
#define DDPS_MUTE_RECVS 0x2

/**
 * ddps_ep_mute - flushed completions come without a notification
 * @ep:		endpoint, connected or not
 * @queues:	of DDPS_MUTE_SENDS, DDPS_MUTE_RECVS; none of them at first
 *
 * What is flushed when the session ends can be polled as before.  But it makes no descriptor
 * readable, calls no function of ddps_cq_on_notify and ends no arming.  So a thread that sleeps
 * until a notification comes is not woken.  This is for programs made for InfiniBand, where the end
 * of a queue pair flushes nothing.
 *
 * A later call without a queue's bit makes up for that queue: one notification, if something was
 * flushed meanwhile and the queue is not empty yet.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @queues has other bits
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_mute(struct ddps_ep *ep, unsigned queues);

/**
 * ddps_connect - open a session as initiator
 * @ep:		endpoint that was never connected
 * @uri:	where the peer listens, for example "tcp://server.example:7174"
 * @p:		copied; NULL for the defaults
 *
 * The URI is as for ddps_listen, but needs a host and a port.  A name is looked up without
 * blocking.
 *
 * With sctp:// HOST may be a list of addresses of the peer, the first one preferred.
 * &local=HOST,... is the list of this host's addresses that the peer learns.  Without it these are
 * the ones that the system uses towards each address of a list (backend kernel: all of the host's).
 * local= needs one of each family that HOST has, IPv4 or IPv6.
 *
 * Exactly one of DDPS_EV_ESTABLISHED, DDPS_EV_REJECTED and DDPS_EV_FAILED follows.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a member of @p is out of range or contradicts another, or local addresses are
 *   given twice
 * - DDPS_E_ADDRESS (URI, or local): it is malformed
 * - DDPS_E_NO_CERT: the URI is a secured one, and the context was given no credentials
 * - DDPS_E_TOO_LONG (private data; nothing was sent)
 * - DDPS_E_STATE: the endpoint was used before
 * - DDPS_E_UNSUPPORTED: the backend cannot be used, local has a port over SCTP, or a member of a
 *   later release is set
 * - DDPS_E_NOMEM
 * - DDPS_E_SYSTEM: errno is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_connect(struct ddps_ep *ep, const char *uri, const struct ddps_conn_param *p);

/**
 * ddps_accept - answer a request with yes
 * @req:	from DDPS_EV_CONNECT_REQUEST
 * @ep:		endpoint that was never connected, receives posted
 * @p:		copied; NULL for the defaults
 *
 * The request is used up if this returns 0, DDPS_E_IRD, DDPS_E_RTR or DDPS_E_CLOSED.  After any other
 * error it can still be accepted or rejected.
 *
 * DDPS_EV_ESTABLISHED follows: immediately in the client-server model, and in the peer-to-peer
 * model when the initiator's RTR has arrived.  DDPS_EV_FAILED follows instead if that does not
 * come, or if memory for the session is short.  Sends may be posted immediately; they leave when
 * the protocol permits (RFC 5044 7.1.2).
 *
 * If the peer offers less IRD than need_ord the request is rejected, as RFC 6581 9.1 allows.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a member of @p is out of range, or @ep belongs to another context
 * - DDPS_E_TOO_LONG: private data
 * - DDPS_E_STATE: the endpoint was used before
 * - DDPS_E_IRD: the peer's IRD is below need_ord; the request was rejected
 * - DDPS_E_RTR: the peer offers no RTR type that this side can accept; the request was rejected
 * - DDPS_E_CLOSED: the peer has gone, or the request was answered before
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_accept(struct ddps_request *req, struct ddps_ep *ep,
			 const struct ddps_conn_param *p);

/**
 * ddps_reject - answer a request with no
 * @req:	from DDPS_EV_CONNECT_REQUEST; used up by 0 and DDPS_E_CLOSED
 * @private_data: for the peer's application, 0..512 octets, 0..508 if enhanced
 * @len:	its length in octets
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @private_data is NULL and @len is not 0
 * - DDPS_E_TOO_LONG: private data
 * - DDPS_E_CLOSED: the peer has gone, or the request was answered before
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_reject(struct ddps_request *req, const void *private_data, size_t len);

/**
 * ddps_disconnect - end a session in order
 * @ep:		endpoint
 *
 * Work already posted is carried out (outstanding Reads and atomics included), then the session
 * closes; new posts fail.  DDPS_EV_CLOSED follows.  Calling it again does nothing.
 *
 * A session that is not established yet is aborted instead, and DDPS_EV_FAILED follows (error.code
 * DDPS_E_CLOSED).
 *
 * There are two time limits of close_ms each.  The first is for posted work: it starts again
 * whenever that makes progress.  The second begins when that work has ended.  It is one for all
 * that is left: the peer's close and, over TCP, the peer's acknowledgement of everything.  When a
 * limit is over, the session is aborted (error.code DDPS_E_TIMEDOUT); what the peer sends and asks
 * for meanwhile changes nothing.  Over TCP the kernel still delivers what it has had, until
 * the peer has taken nothing for close_ms and 10 s, but nobody reports whether that arrives.
 *
 * Does not block.  A program that ends now waits for DDPS_EV_CLOSED, or calls ddps_ctx_settle or
 * ddps_ctx_free: docs/ends.md.
 *
 * Return: 0, or
 * - DDPS_E_STATE: never connected
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_disconnect(struct ddps_ep *ep);

/**
 * ddps_abort - end a session immediately; outstanding work completes as flushed
 * @ep:		endpoint
 *
 * DDPS_EV_CLOSED (DDPS_EV_FAILED if not established yet) follows.  If the session has ended
 * already, nothing happens and nothing follows.  The peer sees DDPS_E_RESET; over SCTP only if
 * nothing else uses the association, else an end in order (docs/ends.md).
 *
 * Return: 0, or
 * - DDPS_E_STATE: never connected, and attr.flush_late is not set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_abort(struct ddps_ep *ep);

/**
 * ddps_ep_info - what was negotiated
 * @ep:		endpoint that is or was established
 * @info:	receives a copy; unchanged on failure
 *
 * Return: 0, or
 * - DDPS_E_STATE: never established
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ep_info(struct ddps_ep *ep, struct ddps_conn_info *info);

/**
 * ddps_ep_number - by which number others know an endpoint
 * @ep:		endpoint
 *
 * From 1 on, in the order in which the context's endpoints were made.  No other one of the context ever has it.
 * sessctl stat, its metrics and the probes show a session by it.  Thread safe.  Never blocks.
 */
DDPS_API uint64_t ddps_ep_number(const struct ddps_ep *ep);

/**
 * ddps_ep_unfetched - how many completions of an endpoint are still in its queues
 * @ep:		endpoint
 *
 * These are the ones that ddps_ep_free would drop.  Flushed ones do not count.
 *
 * Does not drive the context and does not block.  It looks at every completion in the two queues,
 * so it is too slow to be called for each message.
 *
 * Return: 0 or more, or DDPS_E_FORKED.
 */
DDPS_API int ddps_ep_unfetched(struct ddps_ep *ep);

#ifdef __cplusplus
}
#endif
#endif
