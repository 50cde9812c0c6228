/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_EDGE_ED_H
#define DDPS_EDGE_ED_H
/*
 * The edge of the drop-in: what stands between the program's calls and their implementation, if the
 * program is to see faults.  Without rules a call of the control path costs a test and the data
 * path nothing: its functions are put into the device's table when it is opened.
 *
 *   ed_main.c	settings, the trace, which rule fires	ed_calls.c, ed_cm.c	the calls
 *   ed_qp.c	queue pairs, as the edge knows them	ed_post.c	work requests
 *   ed_memory.c	memory that is registered
 *   ed_poll.c	completions and their order	ed_effect.c	what rules do to connections
 *   ed_profile.c	devices by a profile	ed_limit.c	their limits
 *   ed_strict.c	what adapters refuse	ed_rnr.c	Sends without a receive
 *   ck*.[ch]	the program's own mistakes
 *   ed_silence.c	connections that fall silent	ed_clock.c	what comes later
 *
 * ed.lock is held for moments only and never while the implementation is called: a program's thread
 * may hold a queue pair's lock (between wr_start and wr_complete) when it gets here.  The process's
 * lock may be held around it.
 */
#include "verbs/vd.h"
#include "edge/ck.h"
#include "edge/fault/vf.h"
#include "edge/profile/vp.h"
#include <sys/stat.h>

/* rdma-core puts macros over these, which are defined here */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ED_BUCKETS 256

/* A receive that the device gets later. */
struct ed_recv {
	STAILQ_ENTRY(ed_recv) link;
	struct ibv_recv_wr wr;
	struct ibv_sge sge[VD_MAX_SGE];
};

/* A receive queue: a queue pair's or a shared one. */
struct ed_rq {
	STAILQ_HEAD(, ed_recv) recvs;
	uint64_t until; /* ms; the device gets none before */
	unsigned n, max;
};

/* Memory that a corrupted request is sent from. */
struct ed_copy {
	SLIST_ENTRY(ed_copy) link;
	struct ibv_mr *mr;
	uint8_t octets[];
};

/* Places of a send queue, with which of them a completion comes; NULL: it is not counted. */
struct ed_depth {
	uint8_t *told;
	uint32_t size, head, used;
	bool enforced, off;
};

struct ed_qp {
	LIST_ENTRY(ed_qp) link; /* in its bucket */
	struct ibv_qp *qp;
	unsigned number; /* the how many-th */
	unsigned busy;	 /* calls that use it; its end waits for them */
	bool mute; /* atomic: no completion of it and no event of its connection is reported */
	uint64_t bytes;
	uint64_t drawn[2][VF_RULES]; /* of its send queue, of its receive queue */
	struct ed_rq rq;
	SLIST_HEAD(, ed_copy) copies;
	struct ed_depth depth;
	/* ck_work.c */
	struct ck_queue sends, recvs;
	bool failed;	 /* the program has seen it fail */
	uint64_t stalls; /* that were reported */
	struct {
		uint64_t stalls, taken, since;
	} rnr; /* ed_rnr.c */
	struct ck_trace made;
	char peer[VF_PEER + 20];
};

struct ed_srq {
	LIST_ENTRY(ed_srq) link;
	struct ibv_srq *srq;
	unsigned busy;
	struct ed_rq rq;
	struct ck_queue recvs;
};

/* A completion that the program gets later. */
struct ed_held {
	STAILQ_ENTRY(ed_held) link;
	struct ibv_wc wc;
	uint64_t stamp; /* vd_cq.stamp */
	uint64_t due;	/* ms */
	bool swap;	/* when one of another queue has been reported, too */
};

struct ed_cq {
	LIST_ENTRY(ed_cq) link;
	struct ibv_cq *cq;
	unsigned busy;
	struct ddps_mutex polls; /* who polls keeps the order */
	STAILQ_HEAD(, ed_held) held;
	bool armed, polled;
};

/* An event of rdma_cm that comes later. */
struct ed_later {
	STAILQ_ENTRY(ed_later) link;
	struct vd_id *id;
	int event, status;
	uint64_t due;
};

/* What a call or a completion is about; all may be NULL. */
struct ed_subject {
	struct ed_qp *qp;
	struct rdma_cm_id *id;
	struct ibv_context *ctx;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	int opcode; /* VF_NOT_SAID */
	unsigned queue;
};

LIST_HEAD(ed_qps, ed_qp);

struct ed {
	struct ddps_mutex lock;
	pthread_cond_t less; /* something is less busy */
	pthread_cond_t wake; /* for ed_clock.c */
	bool asked;	     /* atomic: the settings have been read */
	bool on, strict;
	struct vf_rules rules;
	int trace;
	struct stat trace_self;
	uint64_t lines; /* of the trace */
	uint64_t begun; /* ms */
	struct ed_qps qps[ED_BUCKETS];
	LIST_HEAD(, ed_srq) srqs;
	LIST_HEAD(, ed_cq) cqs;
	STAILQ_HEAD(, ed_later) later;
	struct vd_id *telling; /* whose event is just being reported */
	unsigned qp_count;
	pid_t clock; /* the process whose clock runs */
	bool done[VF_RULES];
	bool port_down, removed;   /* atomic */
	struct vp_profile profile; /* without devices: there is none */
	struct ibv_device device[VP_DEVICES];
	unsigned count[VP_DEVICES][VP_LIMITS]; /* of objects */
	bool news;			       /* for the clock */
	LIST_HEAD(, ed_id) ids;
	int (*query_port)(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
			  size_t len);
	int (*query_device_ex)(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
			       struct ibv_device_attr_ex *attr, size_t len);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *ctx,
					  struct ibv_cq_init_attr_ex *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
	struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
				    unsigned access);
};

extern struct ed ed;

/* Whether there is anything to do. */
static inline bool ed_on(void)
{
	if (!__atomic_load_n(&ed.asked, __ATOMIC_ACQUIRE))
		vd_config();
	return ed.on;
}
static inline bool ed_on_at_all(void)
{
	if (!__atomic_load_n(&ed.asked, __ATOMIC_ACQUIRE))
		vd_config();
	return ed.on || ed.profile.n;
}
static inline bool ed_is_removed(void)
{
	return __atomic_load_n(&ed.removed, __ATOMIC_RELAXED);
}
static inline bool ed_is_mute(const struct ed_qp *q)
{
	return __atomic_load_n(&q->mute, __ATOMIC_RELAXED);
}
static inline void ed_set_mute(struct ed_qp *q, bool mute)
{
	__atomic_store_n(&q->mute, mute, __ATOMIC_RELAXED);
}
uint64_t ed_ms(void);

/* The rule that fires, traced; or NULL. */
const struct vf_rule *ed_ask(enum vf_point point, const struct ed_subject *s);

/*
 * Before a call of the program.  Return: 0, it is to be made; an errno value, it fails; or ED_DONE,
 * what it would have done is done.
 */
#define ED_DONE (-1)
int ed_call(enum vf_point point, const struct ed_subject *s);

/* ---- profiles ---- */

static inline bool ed_profiled(void)
{
	return ed_on_at_all() && ed.profile.n;
}
/* What @device is; NULL: there is no profile. */
const struct vp_device *ed_device_of(const struct ibv_device *device);
/* The list of devices by a profile. */
struct ibv_device **ed_device_list(int *num);
void ed_profile_dress(struct vd_context *c);
/* Into a new context (ed_calls.c): vd_front.h. */
void ed_dress(struct ibv_context *ctx);
/* What the drop-in has, for vp_parse. */
extern const uint64_t ed_most[VP_LIMITS];
/* They have been read. */
void ed_profile_start(void);
void ed_profile_fill(struct vd_front *front);
void ed_show_device(struct ibv_context *ctx, struct ibv_device_attr *attr);
int ed_show_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len);
int ed_show_gid(struct ibv_context *ctx, unsigned port, unsigned index, struct ibv_gid_entry *e);
/* Limits.  One more object, or ENOMEM; and one less. */
int ed_take(struct ibv_context *ctx, enum vp_limit what);
void ed_give(struct ibv_context *ctx, enum vp_limit what);
/* What is asked for against what a device of the profile has.  Return: 0 or errno. */
int ed_check_qp(struct ibv_context *ctx, const struct ibv_qp_cap *cap, enum ibv_qp_type type,
		bool srq);
int ed_check(const struct ibv_context *ctx, enum vp_limit what, uint64_t wanted);
/* Made within them, whoever has asked for it: as librdmacm's calls do, and those of the program. */
int ed_make_id_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_cq *ed_make_cq(struct ibv_context *ctx, int cqe, void *user, struct ibv_comp_channel *ch,
			  int vector);
struct ibv_srq *ed_make_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init);
/* What is granted: inline data. */
void ed_granted(struct ibv_qp *qp, struct ibv_qp_cap *cap);
int ed_check_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ed_check_conn(const struct rdma_cm_id *id, const struct rdma_conn_param *conn);
/* @conn with what the device can, in @to; NULL stays NULL. */
struct rdma_conn_param *ed_clamp(const struct rdma_cm_id *id, struct rdma_conn_param *conn,
				 struct rdma_conn_param *to);

/* ---- strict mode (ed_strict.c) ---- */

/* Devices for it, where no profile has any; what a profile does not say. */
void ed_strict_start(const struct vd_config *cfg);
/* Whether an adapter could pin this memory, too, within the limit of the process; @instead_of may be
 * NULL.  Return: 0 or errno. */
int ed_pin(const struct ibv_context *ctx, const struct ibv_mr *instead_of, const void *addr,
	   size_t len);
/* Return: 0, or errno: an adapter refuses it. */
int ed_strict_type(const struct ibv_context *ctx, enum ibv_qp_type type);
int ed_strict_send(const struct ed_qp *q, const struct ibv_send_wr *wr);

/* Sends that have waited for too long end their connection.  Return: when the next look is due. */
uint64_t ed_rnr_due(uint64_t now);
/* A queue pair may be connected now: look when it is due. */
void ed_rnr_begins(void);

/* ---- objects.  What is returned is busy until ed_done. ---- */

struct ed_qp *ed_qp_of(struct ibv_qp *qp);
struct ed_qp *ed_qp_numbered(uint32_t qp_num);
/* The next one, for one after the other: NULL is before the first. */
struct ed_qp *ed_qp_next(struct ed_qp *qp);
void ed_qp_done(struct ed_qp *qp);
void ed_qp_new(struct ibv_qp *qp);
/* Octets that it sends or has received, this request included. */
void ed_moved(struct ed_qp *qp, size_t octets);
/* Before it goes; waits until nobody uses it. */
void ed_qp_gone(struct ibv_qp *qp);
struct ed_srq *ed_srq_of(struct ibv_srq *srq);
void ed_srq_done(struct ed_srq *srq);
/*
 * Before it is destroyed, which may fail: it waits until nobody uses it, and no look of the edge's own
 * finds it.  Then one of the other two, with what this has returned.
 */
struct ed_srq *ed_srq_leave(struct ibv_srq *srq);
void ed_srq_stays(struct ed_srq *srq);
void ed_srq_free(struct ed_srq *srq);
struct ed_cq *ed_cq_of(struct ibv_cq *cq);
void ed_cq_done(struct ed_cq *cq);
/* As those of shared receive queues. */
struct ed_cq *ed_cq_leave(struct ibv_cq *cq);
void ed_cq_stays(struct ed_cq *cq);
void ed_cq_free(struct ed_cq *cq);
/* Where its peer is, "" if it has none. */
void ed_peer_of(const struct rdma_cm_id *id, const struct ibv_qp *qp, char *text, size_t len);

/* ---- how full its send queue is, as of an adapter (ed_depth.c) ---- */

/* Whether a device of the profile has a limit that wants it. */
bool ed_depth_wanted(void);
void ed_depth_init(struct ed_qp *q, const struct vd_qp *v);
/* Whether its completion is reported, if it succeeds. */
bool ed_is_told(const struct ed_qp *q, const struct ibv_send_wr *wr);
/* One more request.  Return: whether there is a place. */
bool ed_depth_take(struct ed_qp *q, bool told);
/* It was refused. */
void ed_depth_undo(struct ed_qp *q);
/* The drop-in has taken it without a place. */
void ed_depth_passed(struct ed_qp *q);
/* The program fetches a completion of it. */
void ed_depth_done(struct ed_qp *q, const struct ibv_wc *wc);
/* It has gone back to RESET. */
void ed_depth_anew(struct ibv_qp *qp);

/* ---- data path ---- */

int ed_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ed_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int ed_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int ed_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int ed_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Receives that are due.  Return: when the next one is, or UINT64_MAX. */
uint64_t ed_recvs_due(uint64_t now);
/* Completions that are due wake who waits for them.  Return: as above; ed.lock is held. */
uint64_t ed_completions_due(uint64_t now);

/* ---- effects ---- */

/* What @rule, which may be NULL, says of a call or request.  Return: as ed_call. */
int ed_apply(const struct vf_rule *rule, const struct ed_subject *s);
/* Those effects that are no matter of the call or completion itself. */
void ed_do(const struct vf_rule *rule, const struct ed_subject *s);
/* The connection ends, as by the device. */
void ed_break(struct ed_qp *qp);
/* What the peer sends does not arrive any more. */
void ed_silence(struct ed_qp *qp);
/* Whether the program has it still; ed.lock is held. */
bool ed_id_is_known(const struct vd_id *id);
/* An identifier goes: what is to come for it does not. */
void ed_event_forget(struct rdma_cm_id *id);
uint64_t ed_events_due(uint64_t now);
/* All identifiers that the program knows get this event. */
void ed_ids_tell(int event);
/* Whether it is about the device, and so done once. */
bool ed_is_once(const struct vf_rule *rule);
void ed_nap(uint64_t ms);
/* A rule with "at": its line in the trace. */
void ed_tell_time(const struct vf_rule *rule);
/* Something has changed that the clock is to know of: it runs from the first call on. */
void ed_clock_wake(void);

/* How the calls of libibverbs ask: what each is about, and whether it is made. */

#define SUBJECT(...) const struct ed_subject s = { .opcode = VF_NOT_SAID, __VA_ARGS__ }
#define ASK(name)    (ed_on() ? ed_call(VF_##name, &s) : 0)

/* Memory of the device, within its limits (ed_memory.c). */
struct ibv_mr *ed_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
			    unsigned access);

#endif
