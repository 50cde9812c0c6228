/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VD_H
#define DDPS_VD_H
/*
 * The drop-in for libibverbs and librdmacm: their calls mapped onto the public API of
 * libddpsess.  No protocol here, and no struct of rdma-core restated: its headers are included
 * and every object handed out begins with theirs.
 *
 *   vd_process.c	the one context of the process, its event thread
 *   vd_config.[ch]	what the settings say		vd_settings.c	where they stand
 *   vd_secure.[ch]	wires with TLS, and what is refused over them
 *   vd_device.c	the device, port and GIDs
 *   vd_none.c		what does not exist on iWARP	vd_names.c	names of values
 *   vd_count.c		the counters: at the end, and the port's for the view
 *   vd_socket.c		the system's sockets
 *   vd_whole.[ch]	what the program closes that is not its own
 *   vd_front.[ch]	the table of what stands in front	verbs_calls.def	the calls that it sees
 * ib/, the calls of libibverbs:
 *   vd_pd.c		protection domains and memory regions
 *   vd_domain.c	thread and parent domains	vd_import.c	objects by their handles
 *   vd_mw.c		memory windows		vd_moved.c	regions with offsets of their own
 *   vd_dm.c		device memory		vd_advise.c	paging on demand
 *   vd_fault.c		a region that the program unmapped	vd_srq.c	shared receive queues
 *   vd_cq.c		completion queues	vd_cq_ex.c	their extended form
 *   vd_channel.c	completion channels	vd_async.c	asynchronous events
 *   vd_qp.[ch]		queue pairs		vd_post.c	work requests	vd_wr.c	ibv_wr_*
 *   vd_plain.c		requests as most are
 *   vd_modify.c	their states		vd_rules.c	which of them InfiniBand allows
 *   vd_later.c		requests that wait for one	vd_flush.[ch]	Atomic Writes, Flushes
 * cm/, the calls of librdmacm and all else that connects:
 *   vd_id.c		identifiers		vd_event.c	events
 *   vd_conn.c		connections		vd_conn_event.c	what the library says of them
 *   vd_bind.c		own addresses, options	vd_lend.c	queue pairs of the program's for them
 *   vd_ep.c		rdma_create_ep and the synchronous forms	vd_addr.c	addresses
 *   vd_oob.[ch]	queue pairs that programs connect themselves
 *   vd_held.c		ends of connections that are reported later
 * ud/, datagrams: vd_ud.h
 * edge/, what stands in front of all these if the program is to see faults: ed.h
 *
 * The interface of rdma-core has no handle for the process, hence the one global in
 * vd_process.c.
 */
#include "common/system/lock.h"
#include "verbs/ib/vd_ports.h"
#include "verbs/cm/vd_addr.h"
#include "verbs/vd_config.h"
#include "verbs/vd_front.h"
#include "verbs/vd_whole.h"
#include <ddpsess/ddpsess.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#define VD_API __attribute__((visibility("default")))

/* What the device says of itself and what requests are cut to. */
#define VD_MAX_SGE    16
#define VD_MAX_WR     32768
#define VD_MAX_CQE    (1 << 22)
#define VD_MAX_INLINE 512
#define VD_MAX_DM     (1 << 20) /* octets of device memory in a process */
#define VD_MAX_RD     128	/* ib_send_lat and others take max_qp_rd_atom at its word */
#define VD_GIDS	      1
#define VD_MOVED      256 /* lists of moved regions */
#define VD_IRD	      16
#define VD_IMM_SEND   UINT32_MAX /* instead of a Write's length: Send with immediate data */
#define VD_DEVICES    8		 /* that a profile may have */
#define VD_IMM_AHEAD  0xfefefefe /* ... that has a payload: DDPS_OP_SEND_IMM */

#define vd_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define vd_id_of(rdma)		 vd_of(rdma, struct vd_id, id)

/* ---- the process ---- */

LIST_HEAD(vd_regions, vd_mr);
LIST_HEAD(vd_reserved, vd_id);
STAILQ_HEAD(vd_asyncs, vd_async);

struct vd_process {
	pid_t pid;
	bool ending, inherited; /* atomic: useless now: vd_whole.h */
	struct vd_mark mark;
	struct ddps_ctx *ctx;
	struct vd_config cfg;
	struct ddps_mutex lock;	     /* identifiers, their events, and which queue pair is whose */
	LIST_HEAD(, vd_id) requests; /* identifiers whose peer waits for an answer */
	LIST_HEAD(, vd_id) held; /* ... whose end is not told yet (vd_held.c), @hold_ms at most */
	unsigned hold_ms, timewait_ms;
	LIST_HEAD(, vd_qp) draining; /* in SQD, with something to tell (vd_later.c) ... */
	bool drain_watch;	     /* ... and a thread that does */
	struct vd_asyncs unacked;    /* asynchronous events that were fetched */
	pthread_cond_t acked;	     /* one of them less */
	pthread_cond_t ended;	     /* a session that was being closed has ended */
	int link_fd;		     /* netlink: an interface or address has changed; or -1 */
	int tell_fd;		     /* the process ends: its thread is to tell the counters ... */
	sem_t told;		     /* ... and has */
	struct ddps_capture *capture;
	struct ddps_watch *watch; /* or NULL */
	sem_t unwatched;	  /* it has been closed */
	struct vd_count *count;	  /* vd_count.c, or NULL */
	sem_t counted;		  /* its counters are with those of the processes that have ended */
	/* What identifiers of rdma_cm share, made on first use. */
	struct ddps_mutex shared_lock;
	struct ibv_context *shared[VD_DEVICES]; /* for each device */
	struct ibv_pd *shared_pd[VD_DEVICES];
	uint32_t last_number;	   /* atomic */
	struct vd_regions regions; /* for vd_fault.c */
	bool any_moved;		   /* atomic: there was one in @moved, by local key */
	struct vd_regions moved[VD_MOVED];
	pthread_rwlock_t moved_lock;  /* nothing is locked with it */
	struct ddps_mutex named_lock; /* of these four; nothing is locked with it */
	LIST_HEAD(, vd_pd) pds;
	LIST_HEAD(, vd_context) contexts;
	LIST_HEAD(, vd_dm) dms;
	size_t dm_used;
	struct ddps_mutex oob_lock;
	LIST_HEAD(, vd_oob_port) oob_ports;
	struct vd_ud *ud; /* atomic; made on first use, under @shared_lock */
	struct sigaction old_segv, old_bus;
	struct vd_evch *gone[16]; /* the last ones destroyed, of @gone_count: vd_event.c */
	unsigned gone_count;
};

/* The process's, made on first use and anew after a fork.  NULL: errno is set. */
struct vd_process *vd_process(void);
/*
 * The identifiers that have a socket to keep their port.  A child of fork closes its copies of them,
 * or the ports would stay taken.  No fork begins before vd_forks_release.
 */
struct vd_reserved *vd_forks_hold(void);
void vd_forks_release(void);
/* A number for a queue pair or shared queue; they need only differ. */
uint32_t vd_number(void);

/* Say which region it was when a fault ends the process (vd_fault.c). */
void vd_fault_watch(struct vd_process *p);
/* The same when the system has found the fault and a connection ends by it.  The lock is held. */
void vd_fault_tell(const struct vd_process *p, const struct ddps_error *e);
/* The process that a fault is to be judged by; takes no lock. */
struct vd_process *vd_fault_process(void);
/* A child's: the handlers that its parent had found. */
void vd_fault_inherit(struct vd_process *p);

/* The counters, to standard error (vd_count.c). */
void vd_stats_tell(struct ddps_ctx *ctx);
/*
 * The counters of the port for the view (vd_count.c): begin; what to wait for, or -1; somebody asks; the process
 * ends; it is a copy in a child of fork.
 */
void vd_count_open(struct vd_process *p);
int vd_count_fd(const struct vd_process *p);
void vd_count_answer(struct vd_process *p);
void vd_count_end(struct vd_process *p);
void vd_count_in_child(struct vd_process *p);
/* Begin the capture that the settings ask for.  What goes wrong is reported, and the program runs
 * without one (vd_capture.c). */
void vd_capture_open(struct vd_process *p, struct ddps_ctx_attr *attr);
/* At the end of the process: what could not be written. */
void vd_capture_tell(const struct vd_process *p);

/* A DDPS_E_* value as an errno value. */
int vd_errno(int err);

/* ---- verbs objects ---- */

struct vd_context {
	struct vd_process *p;
	struct ibv_device *device;
	struct vd_asyncs async;	     /* events that nobody has fetched */
	unsigned users;		     /* atomic: the program, domains and queues */
	LIST_ENTRY(vd_context) link; /* in vd_process.contexts */
	struct vd_port_seen port[VD_PORTS];
	bool roce;		/* it says that it is a RoCE device, or one of InfiniBand */
	bool lids;		/* ... of InfiniBand: vd_lid.h */
	unsigned ports, down;	/* how many; a bit for each that is always down */
	struct verbs_context v; /* ends with the struct ibv_context */
};

static inline struct vd_process *vd_process_of(const struct ibv_context *ctx)
{
	return vd_of(ctx, struct vd_context, v.context)->p;
}
static inline bool vd_is_roce(const struct ibv_context *ctx)
{
	return vd_of(ctx, struct vd_context, v.context)->roce;
}
static inline bool vd_has_lids(const struct ibv_context *ctx)
{
	return vd_of(ctx, struct vd_context, v.context)->lids;
}
static inline unsigned vd_port_count(const struct ibv_context *ctx)
{
	return vd_of(ctx, struct vd_context, v.context)->ports;
}
/* Whether it is the parent's, for calls that take a lock of an object's, by the cheapest way. */
static inline bool vd_is_inherited(const struct ibv_context *ctx)
{
	return __atomic_load_n(&vd_process_of(ctx)->inherited, __ATOMIC_RELAXED);
}

struct vd_pd {
	struct ibv_pd pd;
	struct ddps_pd *d;
	LIST_ENTRY(vd_pd) link; /* in vd_process.pds */
	struct vd_pd *of;	/* whose @d it is: a parent domain's, or an imported one's */
	unsigned users;		/* atomic: such as have this one for @of */
	struct vd_td *td;
	/* A parent domain's way to memory, or NULL. */
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		       uint64_t type);
	void (*free)(struct ibv_pd *pd, void *context, void *ptr, uint64_t type);
	void *pd_context;
};

struct vd_td {
	struct ibv_td td;
	unsigned users; /* atomic: parent domains */
};

struct vd_mw {
	struct ibv_mw mw;
	struct ddps_mr *d;
};

struct vd_mr {
	struct ibv_mr mr;
	LIST_ENTRY(vd_mr) link; /* in vd_process.regions */
	struct ddps_mr *d;
	bool imported; /* @d is another one's */
	unsigned access;
	uint8_t *mem;	  /* its first octet ... */
	uint64_t iova;	  /* ... and what requests call it */
	struct vd_dm *dm; /* whose memory it is, or NULL */
	void *mapped;	  /* of a DMA buffer, or NULL */
	size_t mapped_len;
	bool moved; /* in vd_process.moved, with: */
	LIST_ENTRY(vd_mr) moved_link;
};

struct vd_channel {
	struct ibv_comp_channel c; /* fd: an eventfd that counts events nobody has fetched */
	struct ddps_mutex lock;
	TAILQ_HEAD(, vd_cq) told; /* queues that have some */
	unsigned holders;	  /* atomic: the program, and threads that wait */
	bool gone;		  /* the program has destroyed it */
};

struct vd_cq {
	struct ibv_cq_ex cq; /* begins like struct ibv_cq */
	struct ddps_cq *d;
	unsigned taken; /* events fetched, for acknowledgement */
	unsigned told;	/* events in the channel; with the next one, under its lock */
	TAILQ_ENTRY(vd_cq) told_link;
	struct vd_ud_cq *ud;		 /* completions of datagrams */
	struct ibv_wc now;		 /* the extended form's current one, under: */
	struct ddps_mutex reading, acks; /* from start_poll to end_poll, unless @alone; of @taken */
	bool alone, stamped, lost; /* one polls; with time stamps; atomic: a datagram's was lost */
	uint64_t stamp;		   /* of what was polled last: CLOCK_MONOTONIC, ns */
	unsigned epoch, polls[2];  /* atomic: calls under way, by epoch */
	struct vd_async *overflow; /* kept until it has overflowed */
	void *front;		   /* what the front knows of it (vd_front.h) */
};

struct vd_async {
	struct ibv_async_event e;
	STAILQ_ENTRY(vd_async) link;
};

struct vd_srq {
	struct ibv_srq srq;
	struct ddps_srq *d;
	struct ibv_srq_attr attr;
	uint32_t number;
	struct vd_async *low; /* kept while it is armed, or NULL */
	unsigned ud_users;    /* atomic: queue pairs for datagrams */
	bool ud_waits;	      /* atomic: one of them does not read, since there was no receive */
	void *front;	      /* what the front knows of it (vd_front.h) */
};

#define VD_QPN_MASK 0xffffffu

enum vd_qp_phase { VD_QP_IDLE, VD_QP_UP, VD_QP_ERROR };

struct vd_qp {
	union {
		struct ibv_qp_ex qp; /* begins with struct ibv_qp */
		struct {	     /* the same, with what later headers have at its end */
			uint8_t older[offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void *)];
			void (*wr_atomic_write)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
						const void *octets);
			void (*wr_flush)(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
					 size_t len, uint8_t type, uint8_t level);
		} newer;
	};
	struct ddps_ep *ep;
	struct ddps_ep *tx; /* its own peer: what it sends through, else NULL */
	struct ibv_qp_init_attr init;
	struct vd_id *id; /* the identifier that it belongs to, or NULL */
	enum vd_qp_phase phase;
	bool closing;	       /* in order, by one side or the other */
	bool roce;	       /* on a device with that face */
	enum vd_placed placed; /* not VD_PLACED_FACE */
	bool fetches;	       /* atomic: the program has fetched a completion of it */
	bool overread; /* atomic: too many Reads were on their way, and no completion has said so yet */
	unsigned told;	  /* atomic: what was said of it, VD_WHY_* */
	bool allowed_all; /* else @allowed, DDPS_REMOTE_*: what the peer may do */
	unsigned allowed;
	struct ibv_qp_attr said; /* by the program: ibv_query_qp reports it */
	struct ddps_mutex lock;	 /* posting: vd_qp.h */
	/* Inline data lies here until its request is done: one slot more than requests. */
	uint8_t *inl;
	bool inl_own; /* of the program's allocator */
	struct ddps_mr *inl_mr;
	unsigned inl_seq;
	/* Requests that have a completion, and completions that the program has fetched.  All but @recvs_told atomic. */
	uint32_t sends_told, recvs_told, sends_fetched, recvs_fetched;
	struct vd_wr *wr;	       /* vd_wr.c: requests between wr_start and wr_complete */
	struct vd_oob *oob;	       /* vd_oob.c: made without an identifier */
	bool lent, by_cm;	       /* ... and given to one later; moved as one names it */
	STAILQ_HEAD(, vd_later) later; /* vd_later.c: requests that wait ... */
	unsigned nlater;
	LIST_ENTRY(vd_qp) drain_link; /* ... and whose end is reported, if @drains, by: */
	bool drains;
	struct vd_async *drained;
	struct vd_ud_qp *ud;	   /* of type UD, and then there is no @ep */
	struct vd_async *last_wqe; /* kept where receives are in a shared queue, or NULL */
	struct vd_async *fatal;	   /* kept for a session that fails; not of type UD */
};

static inline struct ddps_ep *vd_tx(const struct vd_qp *qp)
{
	return __builtin_expect(qp->tx != NULL, 0) ? qp->tx : qp->ep;
}

/* ---- rdma_cm objects ---- */

struct vd_event {
	struct rdma_cm_event e;
	STAILQ_ENTRY(vd_event) link;
	struct vd_id *id; /* whose unacknowledged count it is in */
	uint8_t pd[256];
};

struct vd_evch {
	struct rdma_event_channel ch; /* fd: an eventfd that counts queued events */
	struct vd_process *p;	      /* whose it is */
	STAILQ_HEAD(, vd_event) events;
};

enum vd_id_state {
	VD_ID_IDLE,
	VD_ID_BOUND,
	VD_ID_ADDR,
	VD_ID_ROUTE,
	VD_ID_LISTEN,
	VD_ID_REQUEST, /* a peer waits for an answer */
	VD_ID_CONNECTING,
	VD_ID_ACCEPTING,
	VD_ID_UP,
	VD_ID_DOWN
};

/*
 * rdma-core's rsockets run on the drop-in as any program does, but look behind the public part of
 * their identifiers: at a device, of which NULL sends them to the list of devices, and at whether
 * the identifier is synchronous, which theirs are: not 0, wherever it lies.
 */
struct vd_behind {
	void *device;
	uint8_t sync[56];
};

struct vd_id {
	struct rdma_cm_id id;
	struct vd_behind behind;
	struct vd_process *p; /* whose it is */
	enum vd_id_state state;
	bool sync;	  /* made without a channel: calls wait for their events */
	unsigned unacked; /* events fetched and not acknowledged */
	pthread_cond_t acked;
	struct ddps_listener *listener;
	struct ddps_request *request;
	struct vd_id *listen_id;	/* of a request */
	struct vd_qp *qp;		/* == id.qp */
	LIST_ENTRY(vd_id) request_link; /* in vd_process.requests, if: */
	bool requested;
	uint16_t peer_ird, peer_ord; /* of a request */
	bool told_down, parted, waited, told_free;
	struct vd_event *answer, *end;		     /* vd_event_keep; or NULL */
	uint64_t held_until;			     /* CLOCK_MONOTONIC, ms; or 0 */
	LIST_ENTRY(vd_id) held_link;		     /* in vd_process.held, if that is set */
	struct vd_oob_port *oob;		     /* a listener of vd_oob.c */
	int reserved;				     /* a socket that keeps its port, or -1 */
	LIST_ENTRY(vd_id) reserved_link;	     /* if it is not -1 */
	bool own_address, port_asked, reuse, afonly; /* to connect from; options ... */
	bool ack_said;		  /* @ack_timeout is one that the program has set */
	uint8_t ack_timeout, tos; /* ... or 0 */
	struct vd_qp *control;	  /* == qp: the library's, without work; and its queue */
	struct ibv_cq *control_cq;
	struct ibv_qp_init_attr ep_attr; /* rdma_create_ep on a listener: for its requests */
	struct ibv_pd *ep_pd;
	bool has_ep_attr;
	struct vd_ud_id *ud; /* of RDMA_PS_UDP, made when needed */
};

/* ---- between the files ---- */

struct ibv_device *vd_device(void);
/* A context that the program closes stays as long as there is something that it was opened for. */
void vd_context_hold(struct ibv_context *ctx);
void vd_context_release(struct ibv_context *ctx);
/* The context of the @i-th device that identifiers share, opened on first use. */
struct ibv_context *vd_shared_context(unsigned i);
struct ibv_pd *vd_shared_pd(unsigned i);

/* Its poll() has failed: it has to be called again, perhaps not immediately. */
void vd_poll_again(void);
/* A thread of the library's, which gets no signals but faults.  Return: 0 or errno. */
int vd_thread(void *(*run)(void *), void *arg);
struct vd_qp *vd_qp_new(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int vd_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vd_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void vd_wr_init(struct vd_qp *qp);
void vd_wr_fini(struct vd_qp *qp);
/* wr_complete, but what was built goes to @post, the queue pair not being locked any more. */
int vd_wr_complete_by(struct ibv_qp_ex *ex, int (*post)(struct ibv_qp *qp, struct ibv_send_wr *wr,
							struct ibv_send_wr **bad));
int vd_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
/* A queue, its channel's lock not being held, has an event (vd_channel.c); and has none any more. */
void vd_channel_tell(void *cq);
void vd_channel_forget(struct vd_cq *cq);
/* Wait for calls of vd_poll_cq that may know a queue pair which is gone by now. */
void vd_await_polls(struct ibv_cq *cq);
int vd_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *vd_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
void vd_cq_ex_init(struct vd_cq *cq);
uint64_t vd_clock_ns(clockid_t clock);

/* Shared receive queues (vd_srq.c). */
struct ibv_srq *vd_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *ex);
int vd_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int vd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* It fell below its limit; the lock is held. */
void vd_srq_low(struct vd_srq *srq);

/* Queue an asynchronous event; the lock is held. */
void vd_async_post(struct ibv_context *ctx, enum ibv_event_type type, void *element);
/* What a program waits for is reported without memory, too: its event is kept.  Return: 0 or ENOMEM. */
int vd_async_keep(struct vd_async **kept);
/* Queue the one that was kept; the lock is held. */
void vd_async_tell(struct ibv_context *ctx, enum ibv_event_type type, void *element,
		   struct vd_async **kept);
/* Completions of @qp were lost, since its queues overflowed; the lock is held. */
void vd_async_overflow(const struct ibv_qp *qp);
/* Drop what nobody fetched, wait until the rest is acknowledged; the lock is held. */
void vd_async_forget(struct ibv_context *ctx, const void *element);
/* Drop what nobody fetched, of the whole context. */
void vd_async_drop(struct ibv_context *ctx);
/* Take one from an eventfd, if somebody else has not, without ever blocking. */
void vd_eventfd_take(int fd);

/* What the library says of a session or listener (vd_conn_event.c); the lock is held. */
void vd_conn_event(struct vd_process *p, const struct ddps_event *ev);
/* An identifier on @ch, or with a channel of its own. */
struct vd_id *vd_id_new(struct rdma_event_channel *ch, void *context, enum rdma_port_space ps);
/* Give it device, domain and port; what a bound identifier has. */
int vd_id_bind_device(struct vd_id *id);
void vd_id_free(struct vd_id *id);
/* Onto the list of requests; and off it, if it is there.  The lock is held. */
void vd_request_note(struct vd_process *p, struct vd_id *id);
void vd_request_forget(struct vd_process *p, struct vd_id *id);
/* Keep a port for @id's address, chosen if it is 0.  Return: 0 or errno. */
int vd_reserve(struct vd_process *p, struct vd_id *id);
void vd_unreserve(struct vd_id *id);
/* Another socket, the library's, may have it too. */
void vd_lend_port(struct vd_id *id);
/* One to connect from, if sessions have ports of their own. */
void vd_source_port(struct vd_process *p, struct vd_id *id);
/* What rdma_init_qp_attr names for INIT and RTR. */
#define VD_QP_ATTR_MASK (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS)
/* Synchronous identifiers: wait for the next event.  Return: 0 or -1 with errno. */
int vd_sync(struct vd_id *id, int ret);

/*
 * The queue pair for a connection of @id (vd_lend.c): its own, one that the program has put there
 * or names by its number, else one without work, for a connection that carries but private data.
 * NULL: errno is set.
 */
struct vd_qp *vd_lend(struct vd_process *p, struct vd_id *id, const struct rdma_conn_param *conn);
void vd_control_free(struct vd_id *id);

/* As many Reads as a program names: 255 and the like mean "as many as there are". */
static inline uint16_t vd_reads(unsigned n)
{
	return (uint16_t)(n > VD_MAX_RD ? VD_MAX_RD : n);
}
/* The library's parameters for a connection; @conn may be NULL. */
void vd_conn_param(const struct vd_process *p, const struct rdma_conn_param *conn,
		   struct ddps_conn_param *to);
/* The address that stands for the host and its interface's index; a GID as it is made of one. */
unsigned vd_host_address(struct sockaddr_in *a4);
void vd_gid_of(const struct sockaddr_in *a4, union ibv_gid *gid);

int vd_fail(int error); /* sets errno, returns -1 */
/* For calls that return the number: errno has it as well, where a device's driver leaves it. */
int vd_refuse(int error);

#endif
