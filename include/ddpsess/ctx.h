/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_CTX_H
#define DDPSESS_CTX_H
/*
 * A context is the home of all other objects.  This header has the context, what drives it, and its
 * events.  <ddpsess/session.h> includes it, and has the rules for threads, fork and structs of
 * parameters.
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

/* IRD and ORD: 0..DDPS_RD_MAX, or left to the applications (RFC 6581 9.1). */
#define DDPS_RD_MAX 0x3FFE
#define DDPS_RD_ULP 0x3FFF

/* Private data: octets without and with the enhanced word (RFC 5044 7.1.1, RFC 6581 9). */
#define DDPS_PD_MAX	     512
#define DDPS_PD_MAX_ENHANCED 508

/* Ready-to-receive messages: zero-length Send, RDMA Write, RDMA Read (RFC 6581 9.2). */
#define DDPS_RTR_SEND  0x1u
#define DDPS_RTR_WRITE 0x2u
#define DDPS_RTR_READ  0x4u
#define DDPS_RTR_ALL   0x7u

/* ---- context ---- */

enum ddps_transport { DDPS_TRANSPORT_NONE, DDPS_TRANSPORT_TCP, DDPS_TRANSPORT_SCTP };

/* What went over the wire.  All of it is borrowed during the call. */
struct ddps_packet {
	enum ddps_transport transport;
	bool sent; /* by this side */
	/* With ports; IPv4 may be mapped to IPv6; AF_UNSPEC: not known.  Over SCTP the ports are in
	 * the packet, and 0 here. */
	const struct sockaddr *local, *peer;
	/* SCTP: one packet, from its common header on, with the checksum; not the UDP header.
	 * TCP: octets of the stream, next in their direction. */
	const struct iovec *iov; /* may have more octets than @len */
	int niov;
	size_t len;
	void *reserved[4];
};

/* Called with the context's lock held: do not call back into the library. */
typedef void ddps_capture_fn(void *user, const struct ddps_packet *p);

enum ddps_log_level { DDPS_LOG_ERROR, DDPS_LOG_WARN, DDPS_LOG_INFO, DDPS_LOG_DEBUG };

/* Called with the context's lock held: do not call back into the library. */
typedef void ddps_log_fn(void *user, enum ddps_log_level level, const char *facility,
			 const char *message);

struct ddps_ctx_attr {
	size_t struct_size; /* sizeof(struct ddps_ctx_attr), set by ddps_ctx_attr_init */
	bool thread;	    /* start one library thread that drives the context */
	bool poll_drives;   /* with a thread: ddps_cq_poll of an empty queue drives the context
				    * too, so the poller does not wait for the thread.  The thread
				    * keeps away until 1 ms after the last such poll.  It comes back
				    * immediately when a queue is armed */
	uint16_t max_ird, max_ord; /* ceilings for every session, 0..DDPS_RD_MAX */
	uint32_t max_regions;	   /* memory regions registered at the same time */
	ddps_log_fn *log; /* NULL: stderr if DDPSESS_DEBUG or DDPSESS_LOG is set, else none */
	void *log_user;
	/* What programs made for verbs adapters count on.  A request, or receive, that names memory
	 * it may not use is taken; it ends with DDPS_WC_LOCAL_ACCESS when its turn comes.  A peer's
	 * atomics need a right of their own.  Any session of a domain may invalidate a region of it
	 * that is bound to none, also where others use it (else RFC 5040 8.1.1 forbids that). */
	bool verbs_rules;
	/* Requests that are posted one by one leave together: the first one since the program looked
	 * at a completion queue leaves immediately.  Those behind it leave when it looks at one
	 * (ddps_cq_poll, _wait, _arm, _arm_next) or at events, or when the context is driven
	 * 0.1 ms later; with a thread that is at most 1 ms later, or more if the thread gets no
	 * processor.  64 requests, or 32 KiB, wait for no others, nor does anything while a queue
	 * of the session is armed. */
	bool gather;
	uint8_t reserved[6];
	/* Called for all that this context sends and receives over TCP, and over SCTP with backend
	 * native.  NULL: nothing is captured.  Capturing costs time. */
	ddps_capture_fn *capture;
	void *capture_user;
};

/**
 * ddps_ctx_attr_init_sized - ddps_ctx_attr_init for languages that cannot call it
 * @attr:	filled
 * @size:	what it takes in the caller's memory; nothing is written beyond
 *
 * Thread safe.  Never blocks.
 */
DDPS_API void ddps_ctx_attr_init_sized(struct ddps_ctx_attr *attr, size_t size);

/**
 * ddps_ctx_attr_init - fill in the defaults
 * @attr:	no thread, no poll_drives, no gather, max_ird = max_ord = DDPS_RD_MAX, 65536 regions, no log,
 *		no capture
 */
static inline void ddps_ctx_attr_init(struct ddps_ctx_attr *attr)
{
	ddps_ctx_attr_init_sized(attr, sizeof *attr);
}

/**
 * ddps_ctx_new - create a context: the home of all other objects
 * @out:	set on success only
 * @attr:	NULL for the defaults
 *
 * Return: 0, or DDPS_E_INVAL, DDPS_E_UNSUPPORTED (a member of a later release is set),
 * DDPS_E_NOMEM, DDPS_E_SYSTEM (errno is set).
 */
DDPS_API int ddps_ctx_new(struct ddps_ctx **out, const struct ddps_ctx_attr *attr);

/**
 * ddps_ctx_free - abort what is still open, free everything that belongs to the context
 * @ctx:	may be NULL.  All objects made from it become invalid.
 *
 * Waits for the library thread, for a host name lookup under way, and up to 1 s for rejections
 * to reach their peers and SCTP associations to shut down.  Peers of sessions that are still
 * open see an abort.  Not to be called while another thread uses the context.
 */
DDPS_API void ddps_ctx_free(struct ddps_ctx *ctx);

/**
 * ddps_ctx_settle - end every session in order before the process ends
 * @ctx:	stays as it is, and so do its objects; nothing is freed
 * @timeout_ms:	how long this may take at most; below 0 counts as 0
 *
 * The kernel delivers what a process has written to TCP after its end; nobody does that for SCTP in
 * userspace.  Blocks until all posted work has been written to TCP, and SCTP associations are shut
 * down, all data acknowledged.  Unlike with ddps_ctx_free, other threads may be in calls on the
 * context.  A signal handler may call it, even if the signal has interrupted such a call.
 *
 * Return: 0, DDPS_E_TIMEDOUT if something is still under way, DDPS_E_FORKED.
 */
DDPS_API int ddps_ctx_settle(struct ddps_ctx *ctx, int timeout_ms);

/**
 * ddps_ctx_flush - hand to the wire what waits for other requests (struct ddps_ctx_attr: gather)
 * @ctx:	a context
 * @timeout_ms:	how long to wait for the context's lock; below 0 counts as 0
 *
 * For a program that ends, or will not call the library for a while.  Without @gather a request waits
 * only over SCTP, while others are not acknowledged yet and the program polls without a pause.  It
 * leaves when ddps_cq_poll finds nothing else to take.  As with ddps_ctx_settle, a signal handler
 * may call it.
 *
 * Return: 0, DDPS_E_TIMEDOUT (another call held the lock all the time), DDPS_E_FORKED.
 */
DDPS_API int ddps_ctx_flush(struct ddps_ctx *ctx, int timeout_ms);

/**
 * ddps_ctx_fd - descriptor that is readable when ddps_progress has something to do
 * @ctx:	a context without a thread of its own
 *
 * Timers are included, so poll needs no timeout.  The library owns the descriptor, which stays the
 * same.  A program that polls a completion queue without a pause, and later sleeps on the
 * descriptor, calls this each time before it sleeps: the sockets that it has polled are watched
 * again from then on.  Without the call that may take up to 16 ms.
 *
 * Return: the descriptor (epoll), or DDPS_E_FORKED.
 */
DDPS_API int ddps_ctx_fd(struct ddps_ctx *ctx);

/**
 * ddps_progress - do what is due: sockets, timers, state machines
 * @ctx:	context
 * @timeout_ms:	0 returns immediately; > 0 waits that long for something to do; -1 without limit
 *
 * Blocks for at most @timeout_ms, and no longer than until another thread has done what there was
 * to do, or a completion or an event is there, or a signal handler ran.  In a context with a thread
 * it does nothing and returns 0.
 *
 * Return: the number of descriptors and timers served, which may be 0 before the time is up;
 * or DDPS_E_FORKED, DDPS_E_SYSTEM.
 */
DDPS_API int ddps_progress(struct ddps_ctx *ctx, int timeout_ms);

/* ---- events ---- */

enum ddps_event_type {
	DDPS_EV_CONNECT_REQUEST, /* @request waits for ddps_accept or ddps_reject */
	DDPS_EV_ESTABLISHED,	 /* both directions carry work requests */
	DDPS_EV_REJECTED,    /* final: the peer's application said no; info, private data valid */
	DDPS_EV_FAILED,	     /* final: never established; error says why */
	DDPS_EV_TERMINATED,  /* a Terminate was sent or received; DDPS_EV_CLOSED follows */
	DDPS_EV_PEER_CLOSED, /* the peer sends nothing more; this side may, until ddps_disconnect */
	DDPS_EV_CLOSED,	     /* final: error.code is 0 after an orderly end */
	DDPS_EV_LISTENER_FAILED, /* final for @listener */
	DDPS_EV_REQUEST_GONE,	 /* final: @request's peer went away; the request is invalid now */
	DDPS_EV_SRQ_LIMIT	 /* fewer receives are in @srq than ddps_srq_arm asked for */
};

/* What was negotiated.  Peer values are the peer's view: peer_ird limits our ord. */
struct ddps_conn_info {
	enum ddps_transport transport;
	bool initiator;
	char local[72], peer[72]; /* "192.0.2.1:7174", "[2001:db8::1]:7174" */
	bool enhanced;
	uint16_t ird, ord;	     /* effective, own */
	uint16_t peer_ird, peer_ord; /* as received, DDPS_RD_ULP visible; 0 if not enhanced */
	bool p2p;
	unsigned rtr;	   /* the one RTR type used, DDPS_RTR_*, or 0 */
	unsigned peer_rtr; /* the types the peer flagged */
	uint32_t mulpdu;   /* octets */
	struct {
		uint8_t rev;
		bool crc, markers_tx, markers_rx;
	} mpa; /* transport TCP only */
	struct {
		char backend[12]; /* "native" or "kernel" */
		uint16_t stream;  /* the pair's stream identifier */
		uint16_t encap;	  /* peer's UDP port, 0: SCTP directly on IP */
	} sctp;			  /* transport SCTP only */
	uint64_t reserved[4];
};

struct ddps_event {
	enum ddps_event_type type;
	struct ddps_ep *ep; /* NULL for requests and listeners */
	struct ddps_request *request;
	struct ddps_listener *listener; /* of requests, and of the listener's own events */
	struct ddps_srq *srq;		/* SRQ_LIMIT */
	void *user;			/* the endpoint's, the shared queue's, or the listener's */
	struct ddps_conn_info info;	/* all types but LISTENER_FAILED and SRQ_LIMIT */
	struct ddps_error error;
	void *reserved[4];
	size_t private_data_len; /* CONNECT_REQUEST, ESTABLISHED (initiator), REJECTED */
	uint8_t private_data[DDPS_PD_MAX];
};

/**
 * ddps_event_fd - descriptor that is readable while events are queued
 * @ctx:	context
 *
 * Only ddps_event_get makes it unreadable.  The library owns it.
 *
 * Return: the descriptor, or DDPS_E_FORKED.
 */
DDPS_API int ddps_event_fd(struct ddps_ctx *ctx);

/**
 * ddps_event_get - take the next event
 * @ctx:	context
 * @ev:		filled if there is one; a copy, nothing to give back
 *
 * It drives nothing and does not block.  An endpoint, request, listener or shared queue comes in its
 * turn, which is that of its oldest event that was not taken.  Then all of its events come, one call
 * each, in the order of enum ddps_event_type.
 *
 * Return: 1, or 0 if there is none, or DDPS_E_FORKED.
 */
DDPS_API int ddps_event_get(struct ddps_ctx *ctx, struct ddps_event *ev);

/**
 * ddps_event_wait - take the next event; drive the context until there is one
 * @ctx:	context
 * @ev:		filled on success
 * @timeout_ms:	-1 without limit
 *
 * Blocks for at most @timeout_ms, however much peers send; also returns when a signal handler ran.
 * Any number of threads may be in this, ddps_cq_wait and ddps_progress on one context.  One of them
 * serves it for all; the others wake up when what they wait for has come.
 *
 * Return: 0, or DDPS_E_TIMEDOUT, DDPS_E_AGAIN (interrupted by a signal), DDPS_E_SYSTEM,
 * DDPS_E_FORKED.
 */
DDPS_API int ddps_event_wait(struct ddps_ctx *ctx, struct ddps_event *ev, int timeout_ms);

/**
 * ddps_event_name - "established", "closed", ...
 * Return: a constant string, never NULL.
 */
DDPS_API const char *ddps_event_name(enum ddps_event_type type);

#ifdef __cplusplus
}
#endif

#endif
