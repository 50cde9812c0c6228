/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_WR_H
#define DDPSESS_WR_H
/*
 * Memory regions, work requests and completions.
 *
 * How to send a message and to learn that it has left:
 *
 *	ddps_mr_reg(pd, buf, sizeof buf, 0, NULL, &mr);
 *	sge = (struct ddps_sge){ buf, len, ddps_mr_stag(mr) };
 *	wr = (struct ddps_send_wr){ .op = DDPS_OP_SEND, .sge = &sge, .nsge = 1 };
 *	ddps_post_send(ep, &wr);
 *	ddps_cq_wait(cq, &wc, 1, -1);
 *
 * Threads: as in session.h, with one addition.  While ddps_mr_place or ddps_mr_change changes a
 * region, or a window is bound, no other thread may call a function on that region or window.
 * Posted work may use it meanwhile.
 */
#include <ddpsess/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_mr;

/* ---- protection domains and memory regions ---- */

/**
 * ddps_pd_new - create a protection domain: regions and endpoints meet inside one
 * @ctx:	context
 * @out:	receives the protection domain; unchanged on failure
 *
 * An endpoint can use the regions of its own protection domain, and of no other.  The program owns
 * the protection domain and frees it with ddps_pd_free.
 *
 * Return: 0, or DDPS_E_NOMEM, DDPS_E_FORKED.
 */
DDPS_API int ddps_pd_new(struct ddps_ctx *ctx, struct ddps_pd **out);

/**
 * ddps_pd_free - destroy a protection domain
 * @pd:		may be NULL
 *
 * Return: 0, or
 * - DDPS_E_BUSY while regions, endpoints or shared receive queues use it
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_pd_free(struct ddps_pd *pd);

/* Rights.  Reading locally is always allowed.  A region may have any of them together. */
#define DDPS_LOCAL_WRITE   0x1u	 /* receive into, or be the sink of a local RDMA Read */
#define DDPS_REMOTE_WRITE  0x2u	 /* the peer may write with RDMA Write */
#define DDPS_REMOTE_READ   0x4u	 /* the peer may read with RDMA Read */
#define DDPS_REMOTE_ATOMIC 0x10u /* the peer may use atomics (RFC 7306) */
#define DDPS_ZERO_BASED	   0x8u	 /* tagged offsets start at 0, else at the virtual address */
#define DDPS_BIND	   0x20u /* memory windows may be bound to it */
#define DDPS_FLUSHABLE	   0x40u /* the peer may use FLUSH, without DDPS_FLUSH_PERSISTENT */
#define DDPS_PERSISTENT	   0x80u /* the peer may use FLUSH with DDPS_FLUSH_PERSISTENT */

/**
 * ddps_mr_reg - register memory and give it an STag
 * @pd:		protection domain
 * @addr:	the first octet of the memory
 * @len:	its length, 0..2^48 octets
 * @access:	rights, see below
 * @ep:		NULL: any session of the PD may use the region; else that endpoint's session alone
 *		(RFC 5041 8.2)
 * @out:	receives the region; unchanged on failure
 *
 * The memory stays the program's and must stay mapped until ddps_mr_dereg has returned.
 *
 * The region has any of these rights together; 0 is enough for what this side sends or writes:
 * - DDPS_LOCAL_WRITE: receive into it, or have it as the sink of a local RDMA Read
 * - DDPS_REMOTE_WRITE: the peer may write with RDMA Write
 * - DDPS_REMOTE_READ: the peer may read with RDMA Read
 * - DDPS_REMOTE_ATOMIC: the peer may use atomics (RFC 7306)
 * - DDPS_ZERO_BASED: tagged offsets start at 0, otherwise at the virtual address
 * - DDPS_BIND: memory windows may be bound to it
 * - DDPS_FLUSHABLE, DDPS_PERSISTENT: the peer may use FLUSH (see ddps_post_send).  A region with
 *   DDPS_PERSISTENT is a shared mapping of files of a file system that keeps them: not tmpfs, ramfs
 *   or hugetlbfs, no overlay whose upper folder is on one or cannot be seen, and no file that was deleted.  Give the file its blocks before (posix_fallocate): a Write
 *   into a hole of it, while the disk is full, ends the process by SIGBUS, as a store there does.
 *
 * The peer names the region by its STag (steering tag).  The program itself names it by the same
 * value, as lkey in struct ddps_sge.  The STag cannot be guessed (RFC 5042 6.1.1).
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a NULL argument, an unknown right, memory that wraps, or @ep of another PD
 * - DDPS_E_UNSUPPORTED: DDPS_PERSISTENT, and the memory is no such mapping, or /proc cannot be read
 * - DDPS_E_LIMIT (max_regions)
 * - DDPS_E_NOMEM
 * - DDPS_E_SYSTEM: no random numbers
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_mr_reg(struct ddps_pd *pd, void *addr, size_t len, unsigned access,
			 struct ddps_ep *ep, struct ddps_mr **out);

/**
 * ddps_mr_place - give a region's first octet another tagged offset
 * @mr:		region that no peer knows of yet
 * @to:		any value such that the region ends below 2^64
 *
 * ddps_mr_reg makes this offset 0 or the virtual address.  This function makes it any other value.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a window, or @to and the length of the region add up to 2^64 or more
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_mr_place(struct ddps_mr *mr, uint64_t to);

/* What ddps_mr_change changes. */
#define DDPS_CHANGE_ACCESS 0x1u /* @access */
#define DDPS_CHANGE_MEMORY 0x2u /* @addr, @len; tagged offsets are those of a new region */
#define DDPS_CHANGE_PD	   0x4u /* @pd, of the same context */

/* What a region is after ddps_mr_change. */
struct ddps_mr_change {
	struct ddps_pd *pd;
	void *addr;
	size_t len;
	unsigned access;
	uint32_t reserved; /* 0 */
};

/**
 * ddps_mr_change - other rights, memory or protection domain for a region
 * @mr:		region; if it was invalidated, it is valid again
 * @what:	DDPS_CHANGE_*, one or more
 * @to:		copied; only what @what names is used
 *
 * The STag stays.  A peer or work request that uses the region meanwhile finds either the old state
 * or the new one.  When this returns, nothing reads or writes memory that is no longer part of the
 * region.  Work posted before is checked once more when its turn comes.
 *
 * Return: 0, or an error, and then the region is as it was
 * - DDPS_E_INVAL: a window, a bad range, unknown rights or bits
 * - DDPS_E_UNSUPPORTED: as for ddps_mr_reg
 * - DDPS_E_BUSY (windows are bound to it)
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_mr_change(struct ddps_mr *mr, unsigned what, const struct ddps_mr_change *to);

/**
 * ddps_mw_new - create a memory window: an STag for a part of a region
 * @pd:		protection domain of the regions
 * @shared:	true: every session of the PD may use it; false: only the session that binds it
 * @out:	receives the window; unchanged on failure
 *
 * To bind a window, and to revoke it again, is cheaper than to register memory.  Nobody can use the
 * window before DDPS_OP_BIND has bound it.  ddps_mr_stag, ddps_mr_to and ddps_mr_dereg accept a
 * window.  A window counts as a region in max_regions.  Its STag is no local key.
 *
 * Return: as ddps_mr_reg.
 */
DDPS_API int ddps_mw_new(struct ddps_pd *pd, bool shared, struct ddps_mr **out);

/**
 * ddps_mr_dereg - revoke the STag and free the region; when this returns, nothing reads or writes
 * the memory
 * @mr:		region or window, may be NULL
 *
 * Posted work that still names it completes in error, and a peer that names it gets a Terminate.
 * What is being sent from the memory is copied first; if memory for the copy is short, that session
 * is aborted.
 *
 * Return: 0, or
 * - DDPS_E_BUSY (windows are bound to the region, or a posted request binds the window)
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_mr_dereg(struct ddps_mr *mr);

/**
 * ddps_mr_stag - the STag, for the peer and for struct ddps_sge
 * @mr:		region or window
 *
 * Thread safe.  Never blocks.
 *
 * Return: the STag, never 0.
 */
DDPS_API uint32_t ddps_mr_stag(const struct ddps_mr *mr);

/**
 * ddps_mr_to - the tagged offset of the region's first octet
 * @mr:		region, or window that is bound
 *
 * Thread safe.  Never blocks.
 *
 * Return: the offset, which the peer gives in an RDMA Read or Write.
 */
DDPS_API uint64_t ddps_mr_to(const struct ddps_mr *mr);

/* ---- completion queues ---- */

enum ddps_wc_status {
	DDPS_WC_SUCCESS,
	DDPS_WC_LOCAL_ACCESS, /* own memory: bad key, bounds or rights; the session was terminated */
	DDPS_WC_LENGTH,	 /* the message was longer than the receive; the session was terminated */
	DDPS_WC_REMOTE,	 /* the peer sent a Terminate for this work request */
	DDPS_WC_FLUSHED, /* the session ended before it was done */
	DDPS_WC_UNANSWERED /* the same, since the peer's host acknowledged nothing any more; only after
			    * ddps_ep_answer_within, and of the oldest work request in the send queue */
};

enum ddps_op {
	DDPS_OP_SEND,
	DDPS_OP_WRITE,
	DDPS_OP_READ,
	DDPS_OP_RECV, /* completions only */
	/* RFC 7306, on endpoints with attr.rfc7306 */
	DDPS_OP_IMM,	   /* Immediate Data: 8 octets for the peer's receive completion */
	DDPS_OP_WRITE_IMM, /* RDMA Write, then Immediate Data; one completion for both */
	DDPS_OP_FETCH_ADD,
	DDPS_OP_CMP_SWAP,
	/* These two send nothing to the peer. */
	DDPS_OP_BIND,	   /* bind a memory window */
	DDPS_OP_LOCAL_INV, /* invalidate a region or window of one's own */
	DDPS_OP_SEND_IMM,  /* with attr.rfc7306 and attr.send_imm: Send with immediate data, which
			    * takes one receive of the peer */
	/* With attr.rfc7306 and attr.flush, see ddps_post_send. */
	DDPS_OP_ATOMIC_WRITE, /* 8 octets that nobody sees in part */
	DDPS_OP_FLUSH	      /* what was written before is visible there, or persistent */
};

#define DDPS_IMM_OCTETS	     8
#define DDPS_SEND_IMM_OCTETS 4 /* with SEND_IMM; the library uses the other four */

/* A completion. */
struct ddps_wc {
	uint64_t wr_id; /* of the work request */
	struct ddps_ep *ep;
	void *user; /* of the endpoint */
	enum ddps_op op;
	enum ddps_wc_status status;
	uint32_t len;	   /* RECV, READ, atomics: octets that arrived in the buffer; else 0 */
	uint32_t inv_stag; /* if invalidated: the STag */
	union {
		uint8_t imm[DDPS_IMM_OCTETS]; /* if has_imm: the octets that the peer sent */
		uint64_t original; /* FETCH_ADD, CMP_SWAP: the value before, host byte order */
	};
	bool solicited;	  /* RECV: the peer sent with Solicited Event */
	bool invalidated; /* RECV: the peer sent with Invalidate; inv_stag was revoked */
	/* RECV: the peer sent Immediate Data.  Then len is 0 and the buffer is untouched.  With
	 * send_imm it may also be a Send that has such data: the last four octets of imm are
	 * 0xFE. */
	bool has_imm;
	struct ddps_triple term; /* REMOTE: what the Terminate says; else 0 */
	uint8_t reserved[2];	 /* 0; an entry is one cache line of 64 octets, and stays so */
	uint64_t time_ns;	 /* after ddps_cq_stamp: when it was queued; else 0 */
};

/**
 * ddps_cq_new - create a completion queue
 * @ctx:	context
 * @depth:	completions it holds, 1..2^22
 * @out:	receives the queue; unchanged on failure
 *
 * If the queue overflows, the sessions whose completions do not fit are terminated (0/0/00); other
 * queues are untouched (RFC 5042 6.4.6).  The program owns the queue and frees it with
 * ddps_cq_free.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @out is NULL, or @depth is out of range
 * - DDPS_E_NOMEM
 * - DDPS_E_SYSTEM: no descriptor is free; errno is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_cq_new(struct ddps_ctx *ctx, uint32_t depth, struct ddps_cq **out);

/**
 * ddps_cq_free - destroy a completion queue
 * @cq:		may be NULL
 *
 * Return: 0, or
 * - DDPS_E_BUSY while endpoints use it
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_cq_free(struct ddps_cq *cq);

/**
 * ddps_cq_resize - have a completion queue hold more or fewer
 * @cq:		completion queue
 * @depth:	completions it holds from now on, 1..2^22
 *
 * Endpoints may use the queue meanwhile, and threads may poll it or wait on it: they lose nothing, and
 * completions stay in order.  An arming stays, too.  A queue that has overflowed stays so.  On failure
 * the queue is as it was.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @depth is out of range, or more completions than that wait to be fetched
 * - DDPS_E_NOMEM
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_cq_resize(struct ddps_cq *cq, uint32_t depth);

/**
 * ddps_cq_stamp - have each completion say when it was queued
 * @cq:		completion queue
 *
 * From then on time_ns in struct ddps_wc is set, in nanoseconds of CLOCK_MONOTONIC.  It is the time
 * when the library put the completion into the queue, not when the program took it.  For each
 * completion the library then has to read the clock.
 *
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_stamp(struct ddps_cq *cq);

/**
 * ddps_cq_overflowed - whether a completion was lost because the queue was full
 * @cq:		completion queue
 *
 * A session with two queues ends when either overflows: this says which one it was.  It stays so.
 * Thread safe.  Never blocks, apart from the context's lock.
 *
 * Return: 1 or 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_overflowed(struct ddps_cq *cq);

/**
 * ddps_cq_fd - descriptor that becomes readable after ddps_cq_arm
 * @cq:		completion queue
 *
 * A program that wants to sleep until a completion comes does this: call ddps_cq_arm, take what is
 * there with ddps_cq_poll, and sleep in poll or epoll until the descriptor is readable.
 *
 * ddps_cq_arm makes it unreadable again.  With ddps_cq_arm_next the program reads it.  The library
 * owns the descriptor: do not close it.
 *
 * Return: the descriptor, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_fd(struct ddps_cq *cq);

/**
 * ddps_cq_arm - ask for one notification on the descriptor
 * @cq:		completion queue
 * @solicited_only: only for a solicited receive or an error
 *
 * If completions are queued already the descriptor is readable immediately.
 *
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_arm(struct ddps_cq *cq, bool solicited_only);

/**
 * ddps_cq_arm_next - ask for one more notification, of a completion not notified yet
 * @cq:		completion queue, which is never armed by ddps_cq_arm
 * @solicited_only: as for ddps_cq_arm
 *
 * This is how verbs arm a queue.  It is for programs that wait for several queues together and
 * leave some of them unpolled: no completion causes two notifications, and no notification is taken
 * back.
 *
 * The descriptor counts the notifications.  A program that finds the descriptor readable takes one
 * by reading 8 octets.  EAGAIN from that read means that another thread has taken it.
 *
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_arm_next(struct ddps_cq *cq, bool solicited_only);

/**
 * ddps_cq_on_notify - have a function called for each notification, instead of the descriptor
 * @cq:		completion queue
 * @fn:		called when the descriptor would become readable; NULL: back to the descriptor
 * @user:	the argument of @fn
 *
 * The thread that drives the context calls @fn, or ddps_cq_arm and ddps_cq_arm_next do.  The
 * context is locked then, so @fn must not block, and must not call this library.  Once ddps_cq_free
 * has returned, @fn is not called any more.
 *
 * Return: 0, or DDPS_E_FORKED.
 */
DDPS_API int ddps_cq_on_notify(struct ddps_cq *cq, void (*fn)(void *user), void *user);

/**
 * ddps_cq_poll - take completions
 * @cq:		completion queue
 * @wc:		array of at least @max entries
 * @max:	1 or more
 *
 * Does not block.  In a context without a thread, or with poll_drives, it drives the context first
 * if the queue is empty, and now and then also if it is not.  That can queue events.  So a program
 * that is about to sleep takes events (ddps_event_get) after its last poll.
 *
 * After 31 polls in a row that found nothing, on any queues of the context, a poll of an empty
 * queue lets other threads run first (sched_yield).  After fewer, down to one, where what came was
 * found only then: a peer that has no other processor sends nothing while this side polls.
 *
 * Return: how many were taken, 0..@max, or
 * - DDPS_E_SYSTEM: errno is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_cq_poll(struct ddps_cq *cq, struct ddps_wc *wc, int max);

/**
 * ddps_cq_wait - take completions; drive the context until there is at least one
 * @cq:		completion queue
 * @wc:		array of at least @max entries
 * @max:	1 or more
 * @timeout_ms:	the most time to wait, in milliseconds; -1: without limit
 *
 * Blocks for at most @timeout_ms, however much peers send; also returns when a signal handler ran.
 * Other threads may wait on the same context, see ddps_event_wait.
 *
 * Return: how many were taken, or
 * - DDPS_E_TIMEDOUT: no completion came in time
 * - DDPS_E_AGAIN: a signal handler ran
 * - DDPS_E_SYSTEM: errno is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_cq_wait(struct ddps_cq *cq, struct ddps_wc *wc, int max, int timeout_ms);

/* ---- work requests ---- */

/* A piece of registered memory.  This struct never changes: another form would have a flag of its
 * own. */
struct ddps_sge {
	void *addr;
	uint32_t len;
	uint32_t lkey; /* ddps_mr_stag() of the region that holds it; any value if len is 0 */
};

/* Flags of a request. */
#define DDPS_WR_SILENT	   0x1u /* no completion if it succeeds */
#define DDPS_WR_SOLICITED  0x2u /* SEND, SEND_IMM, IMM, WRITE_IMM: Solicited Event (RFC 5040 5.3) */
#define DDPS_WR_INVALIDATE 0x4u /* SEND: with Invalidate of @stag (RFC 5040 5.3) */
#define DDPS_WR_FENCE	   0x8u /* start when all earlier RDMA Reads and atomics have completed */
/*
 * Another ddps_post_send on this endpoint follows immediately.  The request may wait for one
 * without this flag, which then hands all of them to the wire together.  If a later call fails, it
 * still hands over what was queued before it.  If none follows, the request leaves when the program
 * next drives the context, looks at any completion queue or at events (ddps_cq_poll, _wait, _arm,
 * _arm_next, ddps_event_get, _wait, ddps_progress), or calls ddps_disconnect, ddps_ctx_flush or
 * ddps_ctx_settle.
 */
#define DDPS_WR_MORE 0x10u
/*
 * SEND, SEND_IMM, WRITE, WRITE_IMM, IMM: complete when the peer has it, and a Write is in its
 * memory.  Without this flag they complete when they have left this side.
 *
 * The library sends an RDMA Read of 0 octets behind the request.  Its response proves that the
 * request has arrived (RFC 5040 5.5).  That Read counts as outstanding: it counts for ORD.  Up to
 * eight requests with this flag, posted one behind the other, share one Read.
 *
 * If the peer sends a Terminate for such a Write, that completes it with DDPS_WC_REMOTE.  If the
 * Terminate does not say what it is for, the oldest request with this flag gets that status.
 */
#define DDPS_WR_PLACED 0x20u

/*
 * An atomic operation (RFC 7306 5) works on 8 octets of the peer, at an address that is a multiple
 * of 8; a Terminate 0/2/07 is the answer otherwise.  This is about the address, not the tagged
 * offset.  The peer's region needs DDPS_REMOTE_ATOMIC, or both DDPS_REMOTE_READ and
 * DDPS_REMOTE_WRITE; if the peer's context has verbs_rules, it needs DDPS_REMOTE_ATOMIC.  All
 * values here are in host byte order.  The peer's memory is in the peer's byte order.
 *
 * FETCH_ADD adds @data.  @mask divides the value into fields that are added separately.  A 1 in
 * @mask marks the top bit of a field: carries do not leave a field.  @mask 0 is one field of 64
 * bits.
 *
 * CMP_SWAP compares the bits of @compare_mask with those of @compare.  If they are equal it
 * replaces the bits of @mask by those of @data.  @compare_mask 0 always matches: a plain swap.
 * Note that @mask 0 replaces nothing.
 *
 * At the responder an atomic operation is one indivisible step.  This holds for all sessions of the
 * process, and for its own __atomic operations on an aligned uint64_t.  It does not hold for RDMA
 * Writes and Reads.
 */
struct ddps_atomic {
	uint64_t data;
	uint64_t mask;
	uint64_t compare, compare_mask; /* CMP_SWAP */
};

/*
 * BIND gives a memory window a part of a region.
 *
 * @sge[0] of the request is that part.  The region needs DDPS_BIND.  It has to be of the same PD,
 * and not bound to one endpoint.  Without a piece, or with one of 0 octets, the window is unbound.
 *
 * @stag of the request becomes the window's STag.  It is the present one, as it is or with another
 * low octet.  Tagged offsets are those of the region, or start at 0 with DDPS_ZERO_BASED.  Remote
 * rights that change memory need DDPS_LOCAL_WRITE in the region.
 *
 * A window that is not shared has to be unbound or invalidated before it is bound again.
 *
 * If a BIND cannot be done when its turn comes it completes with DDPS_WC_LOCAL_ACCESS and ends the
 * session, as every work request on bad memory does.
 */
struct ddps_bind {
	struct ddps_mr *window; /* not deregistered before the request has completed */
	unsigned access;	/* of DDPS_REMOTE_*, DDPS_ZERO_BASED */
	uint32_t reserved;	/* 0 */
};

/* @atomic.mask of FLUSH, see ddps_post_send. */
#define DDPS_FLUSH_VISIBLE    0x1u /* needs DDPS_FLUSHABLE */
#define DDPS_FLUSH_PERSISTENT 0x2u /* needs DDPS_PERSISTENT */
#define DDPS_FLUSH_REGION     0x4u /* the whole region, whatever @to and @atomic.data say */

/* A request.  Later releases may add members at the end.  The library reads such a member only if a
 * new flag or op says so; an older library refuses that flag or op. */
struct ddps_send_wr {
	uint64_t wr_id;	 /* comes back in the completion */
	enum ddps_op op; /* any but RECV */
	unsigned flags;	 /* DDPS_WR_* */
	/* Pieces of this side's memory; copied.  They are the source, or for READ and atomics the
	 * sink.  READ, atomics and BIND have one piece at most, of 8 octets for atomics.  IMM,
	 * LOCAL_INV, ATOMIC_WRITE and FLUSH have none. */
	const struct ddps_sge *sge;
	uint32_t nsge; /* 0..max_sge; the sum of lengths is below 2^32 */
	/* The peer's region for WRITE, WRITE_IMM, READ, atomics, ATOMIC_WRITE and FLUSH.  The peer's STag to invalidate
	 * for a SEND with DDPS_WR_INVALIDATE.  This side's own STag for BIND and LOCAL_INV. */
	uint32_t stag;
	uint64_t to; /* the peer's tagged offset for the same */
	/* IMM, WRITE_IMM, ATOMIC_WRITE: sent as they are.  SEND_IMM: the first DDPS_SEND_IMM_OCTETS. */
	uint8_t imm[DDPS_IMM_OCTETS];
	struct ddps_atomic atomic; /* FETCH_ADD, CMP_SWAP; FLUSH, which ignores the rest */
	struct ddps_bind bind;	   /* BIND */
};

/**
 * ddps_post_send - queue a Send, RDMA Write, RDMA Read (RFC 5040 5) or an operation of RFC 7306
 * @ep:		established, or accepted and waiting for the initiator
 * @wr:		copied; the library uses the memory that it names until the completion
 *
 * Does not block.  Completions come in the order of posting.  A Send, Write or Immediate Data that
 * completed has left this side.  Only with DDPS_WR_PLACED does it also prove that the peer has it.
 * Atomics count as Reads: for ORD, for the fence, and in the order of their responses.
 *
 * A session that ends completes with an error all that was not completed before, in the order of
 * posting.
 *
 * The peer's close (DDPS_EV_PEER_CLOSED) does not end the session yet.  But the peer answers
 * nothing any more.  So Reads, atomics and requests with DDPS_WR_PLACED complete as
 * DDPS_WC_FLUSHED, but Sends and Writes behind them still go out, and complete with success when
 * they have left (RFC 5041 6.2.1).  A Send or Write with DDPS_WR_PLACED goes out too; nobody
 * confirms it.  New requests that need an answer are refused from then on, also with
 * attr.flush_late, and before DDPS_EV_ESTABLISHED.
 *
 * ATOMIC_WRITE and FLUSH are of no RFC.  To the peer they are Atomic Requests of RFC 7306 with an
 * AOpCode of their own (14, 15).  So they count as atomics, in every respect: they are carried out
 * behind all earlier requests of the session, one behind the other, and a later Send may overtake
 * them unless it has DDPS_WR_FENCE.  Both complete when the peer has carried them out.
 *
 * ATOMIC_WRITE writes the 8 octets of @imm, as they are, to an address that is a multiple of 8; a
 * Terminate 0/2/07 is the answer otherwise.  Nobody sees some of them without the others.  The
 * peer's region needs DDPS_REMOTE_WRITE.
 *
 * FLUSH is about @atomic.data octets from @to on, or about the whole region.  @atomic.mask
 * (DDPS_FLUSH_*) says what the earlier Writes of this session to them are when it completes: visible
 * to all threads and processes of the peer's host, or persistent.  The peer's region needs the right
 * for each of both.
 * Persistent means that the system of the peer has written the files to their device (msync, MS_SYNC).
 * While it does so, the other sessions of the peer's context wait.  If it fails, the session ends by a
 * Terminate 1/0/00 and the request completes with DDPS_WC_REMOTE.
 *
 * The flags of @wr are DDPS_WR_*.
 *
 * A queue's memory grows with what is posted at the same time, up to its depth.
 *
 * Return: 0, or
 * - DDPS_E_STATE: not connected; or closing, unless attr.flush_late is set; or a READ, an atomic or
 *   DDPS_WR_PLACED that nobody would answer
 * - DDPS_E_LIMIT: queue full, or READ, an atomic or DDPS_WR_PLACED with ORD 0; with flush_late: the
 *   CQ has no room
 * - DDPS_E_UNSUPPORTED: attr.rfc7306 is off, or attr.send_imm for SEND_IMM, or attr.flush for
 *   ATOMIC_WRITE and FLUSH
 * - DDPS_E_INVAL: too many pieces, an atomic's sink is not of 8 octets, unknown op or flag, a FLUSH
 *   that is neither to be visible nor persistent, or a bind that names no window of the PD
 * - DDPS_E_TOO_LONG: 2^32 octets or more
 * - DDPS_E_ACCESS: lkey unknown, of another PD, out of bounds, or without the right (with
 *   verbs_rules the completion says so instead)
 * - DDPS_E_NOMEM
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_post_send(struct ddps_ep *ep, const struct ddps_send_wr *wr);

/**
 * ddps_post_recv - queue a buffer for one Send, or one Immediate Data, of the peer
 * @ep:		any time before the session ends
 * @wr_id:	comes back in the completion
 * @sge:	copied; pieces filled in order, each with DDPS_LOCAL_WRITE
 * @nsge:	how many pieces.  With 0 pieces the receive is for a Send of 0 octets, or for
 *		Immediate Data, which never writes to the buffer
 *
 * The memory is the library's until the completion.  Does not block.
 *
 * Return: 0, or
 * - DDPS_E_STATE: the session ends or has ended, and attr.flush_late is not set
 * - DDPS_E_LIMIT: queue full; with flush_late: the CQ has no room
 * - DDPS_E_INVAL: too many pieces; also an endpoint with a shared receive queue
 * - DDPS_E_TOO_LONG: 2^32 octets or more
 * - DDPS_E_ACCESS: as for ddps_post_send
 * - DDPS_E_NOMEM
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_post_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge,
			    uint32_t nsge);

/* ---- registered memory, without a session ---- */

#define DDPS_COPY_SGE_MAX 16

/**
 * ddps_sge_gather - copy what pieces of registered memory hold, as a Send would read them
 * @pd:		protection domain of the regions; regions bound to one endpoint are refused
 * @sge:	pieces, read in order
 * @nsge:	how many, 0..DDPS_COPY_SGE_MAX
 * @to:		receives the octets
 * @len:	in: room at @to; out, on success: the octets that were copied
 *
 * This is for programs that carry messages of their own next to sessions, with the same keys.  Once
 * ddps_mr_dereg has returned nothing reads the region here either.  Does not block.
 *
 * Return: 0, or one of these errors.  Unless 0, nothing was copied.
 * - DDPS_E_INVAL: a NULL argument, or too many pieces
 * - DDPS_E_ACCESS: an lkey unknown, of another PD or out of bounds
 * - DDPS_E_TOO_LONG: the pieces hold more than @len
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_sge_gather(struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge,
			     void *to, size_t *len);

/**
 * ddps_sge_scatter - copy octets into pieces of registered memory, as a receive would be filled
 * @pd:		as for ddps_sge_gather
 * @sge:	pieces, filled in order, each with DDPS_LOCAL_WRITE
 * @nsge:	how many, 0..DDPS_COPY_SGE_MAX
 * @from:	what is copied
 * @len:	octets at @from
 *
 * Does not block.
 *
 * Return: 0, or one of these errors.  Unless 0, nothing was copied.
 * - DDPS_E_INVAL: a NULL argument, or too many pieces
 * - DDPS_E_ACCESS: as for ddps_sge_gather, and for a piece without the right, even if @len does not
 *   reach it
 * - DDPS_E_TOO_LONG: the pieces have less room than @len
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_sge_scatter(struct ddps_pd *pd, const struct ddps_sge *sge, uint32_t nsge,
			      const void *from, size_t len);

/* ---- shared receive queues ---- */

/**
 * ddps_srq_new - create a receive queue for several endpoints of a protection domain
 * @pd:		protection domain of the endpoints and of the memory
 * @depth:	receives it holds, 1..65535.  One into which a message is being received counts too
 * @max_sge:	pieces of one receive, 1..16
 * @user:	comes back in DDPS_EV_SRQ_LIMIT
 * @out:	receives the queue, for struct ddps_ep_attr; unchanged on failure
 *
 * A message takes the oldest receive when its first segment arrives (RFC 5041 5.3).  The completion
 * goes to the receive CQ of the endpoint that got the message, and names that endpoint.
 *
 * If the queue is empty the endpoint's no_recv rule applies; endpoints that wait are served in the
 * order in which they came.  When an endpoint's session ends, only the receive it had taken is
 * flushed.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a NULL argument, or one that is out of range
 * - DDPS_E_NOMEM
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_srq_new(struct ddps_pd *pd, uint32_t depth, uint32_t max_sge, void *user,
			  struct ddps_srq **out);

/**
 * ddps_srq_free - destroy a shared receive queue; posted receives end without a completion
 * @srq:	may be NULL
 *
 * Return: 0, or
 * - DDPS_E_BUSY while endpoints use it
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_srq_free(struct ddps_srq *srq);

/**
 * ddps_post_srq_recv - queue a buffer for one Send of any of the peers
 * @srq:	shared receive queue
 * @wr_id:	comes back in the completion
 * @sge:	as for ddps_post_recv; regions bound to one endpoint are refused
 * @nsge:	as for ddps_post_recv
 *
 * Does not block.
 *
 * Return: 0, or
 * - DDPS_E_LIMIT: queue full
 * - DDPS_E_INVAL: too many pieces
 * - DDPS_E_TOO_LONG: 2^32 octets or more
 * - DDPS_E_ACCESS: as for ddps_post_send
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_post_srq_recv(struct ddps_srq *srq, uint64_t wr_id, const struct ddps_sge *sge,
				uint32_t nsge);

/**
 * ddps_srq_arm - ask for one DDPS_EV_SRQ_LIMIT
 * @srq:	shared receive queue
 * @limit:	it comes when fewer than so many receives are posted, or immediately if that is so
 *		already; 0 asks for none.  At most the depth.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @limit is above the depth
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_srq_arm(struct ddps_srq *srq, uint32_t limit);

/**
 * ddps_srq_posted - how many receives a shared queue holds that no message has taken
 * @srq:	shared receive queue
 *
 * Return: 0..65535, or DDPS_E_FORKED.
 */
DDPS_API int ddps_srq_posted(struct ddps_srq *srq);

/**
 * ddps_take_srq_recv - take the oldest receive out of a shared queue, for a message of the caller's
 * @srq:	shared receive queue
 * @wr_id:	set on success
 * @sge:	room for the max_sge of the queue; set on success
 * @nsge:	set on success: how many pieces the receive has
 *
 * This is for a message that comes by another way than a session.  ddps_sge_scatter fills the
 * pieces.  There is no completion, so the caller reports it by itself.  ddps_srq_arm counts it like
 * any other that was taken.
 *
 * Return: 0, or
 * - DDPS_E_AGAIN: the queue is empty
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_take_srq_recv(struct ddps_srq *srq, uint64_t *wr_id, struct ddps_sge *sge,
				uint32_t *nsge);

/**
 * ddps_op_name, ddps_wc_status_name - constant strings, never NULL
 *
 * Thread safe.  Never blocks.
 *
 * Return: "write", ... or "success", ...; "unknown" for any other value.
 */
DDPS_API const char *ddps_op_name(enum ddps_op op);
DDPS_API const char *ddps_wc_status_name(enum ddps_wc_status status);

#ifdef __cplusplus
}
#endif
#endif
