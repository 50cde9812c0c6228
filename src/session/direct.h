/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_SESSION_DIRECT_H
#define DDPS_SESSION_DIRECT_H
/*
 * For the drop-in, which is linked with the library: requests and completions with the context's lock taken once
 * for many of them, and completions where they lie.
 */
#include <ddpsess/wr.h>

/* Take the lock.  Return: 0, or as all functions on a context that is gone. */
int ddps_direct_enter(struct ddps_ep *ep);
void ddps_direct_leave(struct ddps_ep *ep);
/* With the lock: ddps_post_send.  What an op does not use of @wr need not be set. */
int ddps_direct_send(struct ddps_ep *ep, const struct ddps_send_wr *wr);
/* With the lock: whether the endpoint may send from these pieces. */
bool ddps_direct_may_read(struct ddps_ep *ep, const struct ddps_sge *sge, int n);
/* With the lock: ddps_post_recv. */
int ddps_direct_recv(struct ddps_ep *ep, uint64_t wr_id, const struct ddps_sge *sge, uint32_t nsge);

/*
 * As ddps_cq_poll, but the completions stay in the queue, @first and those behind it.  If there are any, the lock is
 * held until ddps_direct_taken.
 */
int ddps_direct_poll(struct ddps_cq *cq, const struct ddps_wc **first, int max);
/* The first @n of them go, and the lock.  Return: whether the queue has more. */
bool ddps_direct_taken(struct ddps_cq *cq, int n);

#endif
