/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FABRIC_FAKE_IN_H
#define FABRIC_FAKE_IN_H
/*
 * The fabric in memory inside: adapters and their objects in fake.c, queue pairs and what they carry
 * in fake_qp.c, MADs and the administration in fake_mad.c.
 */
#include "fabric/fake.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE_LKEY 0x77

#define FAKE_CHECK(cond)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fake_broken(__FILE__, __LINE__, #cond);                                    \
	} while (0)

_Noreturn void fake_broken(const char *file, int line, const char *what);

/* Whether the function named is to fail now. */
bool fake_fails(struct fake *f, const char *name);

static inline struct fake *fake_of(struct ibv_context *ctx)
{
	return (struct fake *)(void *)((char *)ctx - offsetof(struct fake, ctx));
}

static inline unsigned fake_index(const struct fake *f)
{
	return (unsigned)(f - fake);
}

/* NULL: nobody has it. */
struct fake *fake_at_lid(uint16_t lid);
/* Whom a way leads to: on RoCE by its GID. */
struct fake *fake_at(const struct ibv_ah_attr *a);
const struct ibv_ah_attr *fake_attr_of(const struct ibv_ah *ah);
/* What that queue, or the shared one, has of a kind is posted no more. */
void fake_drop(struct fake *f, enum fake_kind kind, const struct fake_qp *q);

/* The functions of fake_lib. */
#define DDPS_X(name) __typeof__(ibv_##name) fake_##name;
DDPS_VERBS_FUNCTIONS(DDPS_X)
#undef DDPS_X
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited);
int fake_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *e, uint32_t flags, size_t size);
int fake_netdev_group(int *fd, uint32_t ifindex, const uint8_t ip6[16], bool join);

#endif
