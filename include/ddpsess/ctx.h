/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_CTX_H
#define DDPSESS_CTX_H
/*
 * Contexts and their events.  A context is the home of all other objects: listeners, endpoints,
 * queues and memory.  Objects of two contexts cannot be used together.
 *
 * A context has work to do: read and write sockets, run timers.  Doing this work is called driving
 * the context.  There are three ways; a program chooses one:
 *
 *	attr.thread = true;                     the library's own thread drives it
 *	ddps_event_wait(), ddps_cq_wait()       the thread that waits drives it
 *	ddps_ctx_fd() and ddps_progress()       the program's own event loop drives it
 *
 * <ddpsess/session.h> includes this header.  The rules for threads, fork and structs of parameters
 * are there.
 */
#include <ddpsess/err.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sockaddr; /* <sys/socket.h> */
struct iovec;	 /* <sys/uio.h> */

struct ddps_ctx;
struct ddps_pd;
struct ddps_cq;
struct ddps_ep;
struct ddps_listener;
struct ddps_request;
struct ddps_srq;

/* IRD is how many RDMA Reads of the peer a session answers at the same time; ORD is how many of its
 * own it may have outstanding.  Values are 0..DDPS_RD_MAX.  DDPS_RD_ULP means that the applications
 * agree on a value by themselves (RFC 6581 9.1). */
#define DDPS_RD_MAX 0x3FFE
#define DDPS_RD_ULP 0x3FFF

/* The most private data in a set-up message, in octets: in the plain set-up of RFC 5044 7.1.1, and
 * in the enhanced one of RFC 6581 9, where four octets carry IRD and ORD. */
#define DDPS_PD_MAX	     512
#define DDPS_PD_MAX_ENHANCED 508

/* Types of ready-to-receive (RTR) message, the initiator's first message in the peer-to-peer model:
 * a zero-length Send, RDMA Write or RDMA Read (RFC 6581 9.2). */
#define DDPS_RTR_SEND  0x1u
#define DDPS_RTR_WRITE 0x2u
#define DDPS_RTR_READ  0x4u
#define DDPS_RTR_ALL   0x7u

/* ---- context ---- */

enum ddps_transport {
	DDPS_TRANSPORT_NONE,
	DDPS_TRANSPORT_TCP,
	DDPS_TRANSPORT_SCTP,
	DDPS_TRANSPORT_SHM /* memory that two processes of a host share, below MPA */
};

/* What went over the wire, for a capture.  The memory is valid only during the call. */
struct ddps_packet {
	enum ddps_transport transport;
	bool sent; /* true: sent by this side; false: received */
	/* Addresses and ports.  An IPv4 address may be mapped to IPv6.
	 * AF_UNSPEC: not known.  Over SCTP the ports are 0 here, because the packet has them. */
	const struct sockaddr *local, *peer;
	/* SCTP: one packet, from its common header on, with the checksum; without a UDP header.
	 * TCP: the next octets of the stream in this direction. */
	const struct iovec *iov; /* may describe more octets than @len; only @len count */
	int niov;		 /* entries of @iov */
	size_t len;		 /* octets */
	void *reserved[4];
};

/* Gets each packet; @user is attr.capture_user.  It runs with the context's lock held, so it must
 * not call the library. */
typedef void ddps_capture_fn(void *user, const struct ddps_packet *p);

enum ddps_log_level { DDPS_LOG_ERROR, DDPS_LOG_WARN, DDPS_LOG_INFO, DDPS_LOG_DEBUG };

/* Gets each line of the log; @user is attr.log_user.  @facility is the part of the library that
 * logs, such as "session".  It runs with the context's lock held, so it must not call the
 * library. */
typedef void ddps_log_fn(void *user, enum ddps_log_level level, const char *facility,
			 const char *message);

struct ddps_secure;

struct ddps_ctx_attr {
	size_t struct_size; /* sizeof(struct ddps_ctx_attr), set by ddps_ctx_attr_init */
	bool thread;	    /* start one library thread that drives the context */
	/* With a thread: ddps_cq_poll of an empty queue drives the context too, so that the program
	 * does not wait for the thread.  While a program polls like this the thread sleeps, 1 ms at
	 * a time.  It resumes immediately when a queue is armed or another thread waits. */
	bool poll_drives;
	uint16_t max_ird, max_ord; /* upper limits for every session, 0..DDPS_RD_MAX */
	/* The most memory regions registered at the same time, windows included; not 0. */
	uint32_t max_regions;
	/* Where log lines go.  NULL: to stderr if the environment has DDPSESS_DEBUG or DDPSESS_LOG,
	 * otherwise nowhere; except that a sentence goes to stderr for each peer that a listener of
	 * secured wires refuses, at most 10 a second of one kind, and for files of theirs that have
	 * changed and cannot be used.  DDPSESS_LOG=none suppresses that. */
	ddps_log_fn *log;
	void *log_user;
	/* The rules that programs for verbs adapters expect.  There are three differences.  A work
	 * request or receive on memory that it may not use is accepted; it completes with
	 * DDPS_WC_LOCAL_ACCESS when its turn comes.  A peer's atomics need DDPS_REMOTE_ATOMIC.  A
	 * peer may invalidate every region of the protection domain that is not bound to one
	 * endpoint, even if other sessions use it; otherwise RFC 5040 8.1.1 forbids this. */
	bool verbs_rules;
	/* Send small requests together, although the program posts them one by one.  The first one
	 * since the program looked at a completion queue leaves immediately.  Those behind it leave
	 * when the program looks at a queue (ddps_cq_poll, _wait, _arm, _arm_next) or at events, or
	 * when the context is driven 0.1 ms later.  With a thread that is at most 1 ms later,
	 * unless the thread gets no processor.  64 requests, or 32 KiB, do not wait for more.
	 * A look that takes only some of a queue's completions lets nothing go for up to 20 us.
	 * Nothing waits while a queue of the session is armed. */
	bool gather;
	uint8_t reserved[6]; /* 0 */
	/* Called for all that this context sends and receives over TCP, and over SCTP with backend
	 * native.  NULL: nothing is captured.  Capturing makes sessions slower. */
	ddps_capture_fn *capture;
	void *capture_user;
	/* Who this program is, and whom it accepts, on secured wires (ddpsess/secure.h).  NULL: it
	 * uses none.  The context keeps it, the program may close its own. */
	struct ddps_secure *secure;
};

/**
 * ddps_ctx_attr_init_sized - ddps_ctx_attr_init for languages that cannot call it
 * @attr:	receives the defaults
 * @size:	the size of the struct in the caller's memory, in octets; nothing is written beyond
 *
 * Thread safe.  Never blocks.
 */
DDPS_API void ddps_ctx_attr_init_sized(struct ddps_ctx_attr *attr, size_t size);

/**
 * ddps_ctx_attr_init - fill in the defaults
 * @attr:	receives the defaults
 *
 * The defaults are: no thread, no poll_drives, no verbs_rules, no gather,
 * max_ird = max_ord = DDPS_RD_MAX, 65536 regions, no log function, no capture.
 *
 * Thread safe.  Never blocks.
 */
static inline void ddps_ctx_attr_init(struct ddps_ctx_attr *attr)
{
	ddps_ctx_attr_init_sized(attr, sizeof *attr);
}

/**
 * ddps_ctx_new - create a context: the home of all other objects
 * @out:	receives the context; unchanged on failure
 * @attr:	copied; NULL for the defaults
 *
 * The program owns the context and frees it with ddps_ctx_free.  Thread safe.  Does not block.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @out is NULL, a limit is out of range, max_regions is 0, or a reserved member is
 *   not 0
 * - DDPS_E_UNSUPPORTED: a member of a later release is set
 * - DDPS_E_NOMEM
 * - DDPS_E_SYSTEM: the system refused a descriptor or the thread; errno is set
 */
DDPS_API int ddps_ctx_new(struct ddps_ctx **out, const struct ddps_ctx_attr *attr);

/**
 * ddps_ctx_free - abort what is still open, free everything that belongs to the context
 * @ctx:	may be NULL.  All objects made from it become invalid.
 *
 * A peer whose session is still open sees that session aborted.  For an orderly end call
 * ddps_disconnect or ddps_ctx_settle before: docs/ends.md says what each way to end guarantees.
 *
 * Blocks.  Waits for the library thread, for a host name lookup under way, and up to 1 s until
 * rejections have reached their peers and SCTP associations are shut down.  Sessions that were
 * disconnected and have not ended yet are finished in order: that may take up to 5 s in place of the
 * 1 s.  Their completions are dropped.  No other thread may use the context meanwhile.  In a child of fork it frees the child's copy and sends nothing.  If the
 * program has closed the library's descriptors (<ddpsess/session.h>: closefrom) the memory is not
 * freed.
 */
DDPS_API void ddps_ctx_free(struct ddps_ctx *ctx);

/**
 * ddps_ctx_settle - end every session in order before the process ends
 * @ctx:	context; it and its objects stay, nothing is freed
 * @timeout_ms:	the most time that this may take, in milliseconds; below 0 counts as 0
 *
 * A program calls this before it ends.  After 0 nothing is lost, whatever it does next:
 * ddps_ctx_free, exit, exec, or dying by a signal.  docs/ends.md says what that means, and what
 * other ways to end guarantee.
 *
 * Every session is disconnected, as by ddps_disconnect.  Blocks until the peer's TCP has
 * acknowledged all posted work, and SCTP associations are shut down, all data acknowledged.  A peer
 * that does not answer to the shutdown is waited for until @timeout_ms, and then does not count.  Peers
 * have up to 0.2 s more to end their side too, over SCTP 2 s; what they refuse until then is reported.
 * Unlike with ddps_ctx_free, other threads may be in calls on the context.  A signal handler may call
 * this function, even if the signal has interrupted a call on the context.
 *
 * Return: 0: every session with posted work has ended in order, or ends so and its peer has
 * acknowledged all and refused nothing; or
 * - DDPS_E_TIMEDOUT: something is still under way, or another call held the lock all the time
 * - DDPS_E_RESET: a session with posted work ended otherwise, meanwhile or at any time before: by a
 *   Terminate of either side, a reset, ddps_abort.  Some of the work may not have arrived, or was
 *   refused.  A later call says so again until the session's endpoint is freed.
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ctx_settle(struct ddps_ctx *ctx, int timeout_ms);

/**
 * ddps_ctx_flush - send the requests that wait for others
 * @ctx:	context
 * @timeout_ms:	how long to wait for the context's lock, in milliseconds; below 0 counts as 0
 *
 * A program calls this before it ends, or before it does not call the library for a while.
 *
 * A request with DDPS_WR_MORE waits for the one behind it.  With @gather in struct ddps_ctx_attr,
 * requests wait as described there.  Without @gather any other request waits only over SCTP, and
 * only if two conditions are met: earlier ones are not acknowledged yet, and the program polls
 * without a pause.  It leaves when ddps_cq_poll finds nothing else to take.
 *
 * Any thread may call this, and so may a signal handler.  It does not wait until anything has
 * arrived.
 *
 * Return: 0, or
 * - DDPS_E_TIMEDOUT: another call held the lock all the time
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_ctx_flush(struct ddps_ctx *ctx, int timeout_ms);

/**
 * ddps_ctx_fd - descriptor that is readable when ddps_progress has something to do
 * @ctx:	a context without a library thread
 *
 * Timers are included, so poll needs no timeout.  The descriptor is the same each time.  The
 * library owns it: do not read or close it.
 *
 * A program that polls a completion queue without a pause, and then sleeps on the descriptor, calls
 * this each time before it sleeps.  While the program polls, the library does not watch the sockets
 * through the descriptor; this call makes it watch them again.  Without the call that may take up
 * to 16 ms.
 *
 * Return: the descriptor (of epoll), or DDPS_E_FORKED.
 */
DDPS_API int ddps_ctx_fd(struct ddps_ctx *ctx);

/**
 * ddps_progress - drive the context: do what sockets and timers have to do
 * @ctx:	context
 * @timeout_ms:	0: return immediately; above 0: wait that many milliseconds for something to do;
 *		-1: wait without limit
 *
 * Blocks for at most @timeout_ms, and no longer than until another thread has done what there was
 * to do, or a completion or an event is there, or a signal handler ran.  In a context with a thread
 * it does nothing and returns 0.
 *
 * Return: how many descriptors and timers were served, which may be 0 before the time is up, or
 * - DDPS_E_SYSTEM: errno is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_progress(struct ddps_ctx *ctx, int timeout_ms);

/* ---- events ---- */

enum ddps_event_type {
	DDPS_EV_CONNECT_REQUEST, /* @request waits for ddps_accept or ddps_reject */
	DDPS_EV_ESTABLISHED,	 /* the session is open: both sides may send */
	/* Last event: the peer's application has rejected the connection.  info and private data
	 * are valid. */
	DDPS_EV_REJECTED,
	DDPS_EV_FAILED, /* last event: the session was never established; error has the reason */
	/* An error of one side ended the session: error.by_peer says whose Terminate it was.  One of
	 * this side's is sent unless the protocol forbids it or the connection is gone.
	 * DDPS_EV_CLOSED follows. */
	DDPS_EV_TERMINATED,
	/* The peer sends nothing more.  Over TCP this side may still send, until ddps_disconnect.
	 * Over SCTP it can post nothing more: work already posted is carried out, and then
	 * DDPS_EV_CLOSED follows. */
	DDPS_EV_PEER_CLOSED,
	DDPS_EV_CLOSED, /* last event: the session has ended; error.code is 0 if in order */
	DDPS_EV_LISTENER_FAILED, /* last event of @listener: it accepts nothing more */
	/* Last event of @request: @request's peer went away before it was answered.  Nothing has to
	 * be done: the answer to it, also of another thread, is DDPS_E_CLOSED. */
	DDPS_EV_REQUEST_GONE,
	DDPS_EV_SRQ_LIMIT, /* @srq has fewer receives than ddps_srq_arm asked for */
	/* The peer has closed in order, but messages of it still wait for receives, for a second now.
	 * They go on waiting; DDPS_EV_PEER_CLOSED comes behind them.  See DDPS_NO_RECV_STALL. */
	DDPS_EV_PEER_CLOSING
};

/* An address as numbers. */
struct ddps_addr {
	uint8_t ip[16]; /* IPv6, or IPv4 in the first four octets */
	uint32_t scope; /* the interface of a link-local IPv6 address; else 0 */
	uint16_t port;	/* in host order */
	uint8_t family; /* 4, 6, or 0: there is none, as over shm:// */
	uint8_t reserved;
};

/* What was negotiated.  A peer's value is what the peer said of itself: peer_ird limits this side's
 * ord. */
struct ddps_conn_info {
	enum ddps_transport transport;
	bool initiator;
	char local[72], peer[72]; /* "192.0.2.1:7174", "[2001:db8::1]:7174" */
	bool enhanced;		  /* the enhanced set-up of RFC 6581 was used */
	uint16_t ird, ord;	  /* of this side, in force */
	/* As received, DDPS_RD_ULP visible; 0 without the enhanced set-up. */
	uint16_t peer_ird, peer_ord;
	bool p2p;	   /* peer-to-peer model */
	unsigned rtr;	   /* the one RTR type used, DDPS_RTR_*, or 0 */
	unsigned peer_rtr; /* the RTR types that the peer offered */
	uint32_t mulpdu;   /* the longest DDP segment now, in octets (RFC 5044 4.5) */
	struct {
		uint8_t rev;			  /* MPA revision: 1, or 2 if enhanced */
		bool crc, markers_tx, markers_rx; /* in use; _tx: this side sends, _rx: receives */
	} mpa;					  /* transports TCP and SHM only */
	struct {
		char backend[12]; /* "native" or "kernel" */
		uint16_t stream;  /* stream identifier of the session in its association */
		uint16_t encap;	  /* the peer's UDP port (RFC 6951); 0: SCTP directly on IP */
	} sctp;			  /* transport SCTP only */
	struct {
		uint32_t pid, uid,
			gid; /* of the peer, as the system says; of a listener: when it began to */
		uint32_t reserved;
	} shm;					/* transport SHM only */
	struct ddps_addr local_addr, peer_addr; /* what the texts local and peer say */
	uint64_t reserved[2];
};

struct ddps_event {
	enum ddps_event_type type;
	struct ddps_ep *ep;		/* NULL for requests, listeners and shared queues */
	struct ddps_request *request;	/* CONNECT_REQUEST, REQUEST_GONE */
	struct ddps_listener *listener; /* of requests, and of the listener's own events */
	struct ddps_srq *srq;		/* SRQ_LIMIT */
	void *user;			/* the endpoint's, the shared queue's, or the listener's */
	struct ddps_conn_info info;	/* all types but LISTENER_FAILED and SRQ_LIMIT */
	struct ddps_error error;	/* of the types that report an end or a Terminate */
	void *reserved[4];
	/* Octets of private data from the peer: CONNECT_REQUEST, ESTABLISHED (initiator),
	 * REJECTED. */
	size_t private_data_len;
	uint8_t private_data[DDPS_PD_MAX];
};

/**
 * ddps_event_fd - descriptor that is readable while events are queued
 * @ctx:	context
 *
 * Only ddps_event_get makes it unreadable.  The library owns the descriptor: do not read or close
 * it.
 *
 * Return: the descriptor, or DDPS_E_FORKED.
 */
DDPS_API int ddps_event_fd(struct ddps_ctx *ctx);

/**
 * ddps_event_get - take the next event
 * @ctx:	context
 * @ev:		receives a copy of the event, if there is one; nothing in it has to be freed
 *
 * Does not drive the context and does not block.
 *
 * Events come in this order.  Endpoints, requests, listeners and shared queues take turns: the one
 * with the oldest event comes first.  Then all of its events come, one call each, in the order of
 * enum ddps_event_type.
 *
 * Return: 1, or 0 if there is no event, or DDPS_E_FORKED.
 */
DDPS_API int ddps_event_get(struct ddps_ctx *ctx, struct ddps_event *ev);

/**
 * ddps_event_wait - take the next event; drive the context until there is one
 * @ctx:	context
 * @ev:		receives a copy of the event on success; nothing in it has to be freed
 * @timeout_ms:	the most time to wait, in milliseconds; -1: without limit
 *
 * Blocks for at most @timeout_ms, however much peers send; also returns when a signal handler ran.
 * Any number of threads may be in this, ddps_cq_wait and ddps_progress on one context.  One of them
 * drives the context for all.  The others wake up when what they wait for has come.
 *
 * Return: 0, or
 * - DDPS_E_TIMEDOUT: no event came in time
 * - DDPS_E_AGAIN: a signal handler ran
 * - DDPS_E_SYSTEM: errno is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_event_wait(struct ddps_ctx *ctx, struct ddps_event *ev, int timeout_ms);

/**
 * ddps_event_name - the name of an event type: "established", "closed", ...
 * @type:	any value
 *
 * Thread safe.  Never blocks.
 *
 * Return: a constant string, never NULL.
 */
DDPS_API const char *ddps_event_name(enum ddps_event_type type);

#ifdef __cplusplus
}
#endif

#endif
