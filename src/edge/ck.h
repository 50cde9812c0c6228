/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_EDGE_CK_H
#define DDPS_EDGE_CK_H
/*
 * sessctl run --check: mistakes of the program's own that an adapter punishes later or elsewhere.
 * Each rule has a name (docs/check.md); a report has that name, what is wrong, and where.
 *
 *   ck_report.c	reports, each once, and what is suppressed
 *   ck_work.c		requests under way and the memory that is the device's meanwhile
 *   ck_object.c	regions, limits of common adapters, what is left at the end
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define CK_FRAMES 24
#define CK_PIECES 16
/* What the least of the adapters takes that Linux has drivers for: docs/check.md. */
#define CK_COMMON_INLINE 256
#define CK_COMMON_SGE	 6

/* The rules, and what they are called. */
#define CK_RULES(X)                                                                                \
	X(SEND_CHANGED, "send-changed")                                                            \
	X(RECV_CHANGED, "recv-changed")                                                            \
	X(LATE_RECV, "late-recv")                                                                  \
	X(SHORT_RECV, "short-recv")                                                                \
	X(DEREG_PENDING, "dereg-pending")                                                          \
	X(DEREG_USED, "dereg-used")                                                                \
	X(NEVER_POLLED, "never-polled")                                                            \
	X(POST_AFTER_ERROR, "post-after-error")                                                    \
	X(QP_STATE, "qp-state")                                                                    \
	X(QUEUE_FULL, "queue-full")                                                                \
	X(INLINE_SIZE, "inline-size")                                                              \
	X(SGE_COUNT, "sge-count")                                                                  \
	X(LEAK, "leak")

#define CK_ENUM(rule, name) CK_##rule,
enum ck_rule { CK_RULES(CK_ENUM) CK_ANY };
#undef CK_ENUM

struct ck_trace {
	int n;
	void *frame[CK_FRAMES];
};

/* A request under way. */
struct ck_work {
	STAILQ_ENTRY(ck_work) link;
	uint64_t wr_id;
	bool told;  /* its completion is reported, whatever it is */
	bool known; /* @sum is of its memory */
	int n;
	struct ibv_sge sge[CK_PIECES];
	uint64_t sum;
	struct ck_trace posted;
};

STAILQ_HEAD(ck_queue, ck_work);

struct ed_qp;
struct ck_region;

/* Return: -1, the file of suppressions cannot be read, which was reported. */
int ck_start(const char *suppress);
bool ck_on(void);
/* After a fork: what was noted is the parent's.  ed.lock is held. */
void ck_in_child(void);
/* The same for regions. */
void ck_forget_regions(void);

__attribute__((format(printf, 3, 4))) void ck_report(enum ck_rule rule, const struct ck_trace *also,
						     const char *fmt, ...);
/* As ck_report, about a place that was noted. */
__attribute__((format(printf, 3, 4))) void
ck_report_at(enum ck_rule rule, const struct ck_trace *at, const char *fmt, ...);
void ck_note(struct ck_trace *t);

/* ---- requests.  None of these is called with a lock held. ---- */

void ck_queue_free(struct ck_queue *q);
struct ck_work *ck_send(struct ed_qp *q, const struct ibv_send_wr *wr);
/* More requests than an adapter's queue has places. */
void ck_queue_full(const struct ed_qp *q, unsigned places);
struct ck_work *ck_recv(struct ed_qp *q, struct ck_queue *to, const struct ibv_recv_wr *wr);
/* It was refused; @w may be NULL. */
void ck_not_posted(struct ck_queue *q, struct ck_work *w);
void ck_completed(struct ed_qp *q, const struct ibv_wc *wc);

/* ---- objects ---- */

void ck_qp_asked(const struct ibv_qp_cap *cap, bool srq);
/* Before it is modified so, or gets a request. */
void ck_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
void ck_post_state(const struct ed_qp *q, bool recv);
void ck_registered(const struct ibv_mr *mr, unsigned access);
/* It has other memory or rights now, under the same key. */
void ck_reregistered(const struct ibv_mr *mr, unsigned access);
/* Before it goes.  Return: what is known of it, for ck_deregistered; NULL: nothing. */
struct ck_region *ck_deregister(const struct ibv_mr *mr);
/* It has gone, and another thread may have one at its address already. */
void ck_deregistered(struct ck_region *r);
/* It has failed, or its end has begun: requests end without their memory. */
bool ck_flushes(const struct ed_qp *q);
/* Before a queue pair goes: whether its queues were ever polled. */
void ck_unpolled(struct ibv_qp *qp);
/* Whether a piece is memory of ours that no peer may write. */
bool ck_is_own(const struct ibv_sge *sge);
/* Whether the region of that key has gone, and where it went. */
bool ck_is_gone(uint32_t lkey, struct ck_trace *at);
/* Report what is left. */
void ck_left(void);
/* The process ends.  Return: whether there were reports. */
bool ck_end(void);

#endif
