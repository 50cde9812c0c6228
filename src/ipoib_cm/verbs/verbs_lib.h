/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VERBS_LIB_H
#define DDPS_VERBS_LIB_H
/*
 * The functions of libibverbs and libibumad that the port uses.  They are found at run time; tests
 * have others in their place.  What the header of libibverbs does inline is here, too, as a device
 * of a test has no such operations.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include "ipoib_cm/ports/port_umad_priv.h"

#define DDPS_VERBS_FUNCTIONS(X)                                                                    \
	X(get_device_list)                                                                         \
	X(free_device_list)                                                                        \
	X(get_device_name)                                                                         \
	X(get_device_guid)                                                                         \
	X(open_device)                                                                             \
	X(close_device)                                                                            \
	X(query_device)                                                                            \
	X(query_port)                                                                              \
	X(query_gid)                                                                               \
	X(query_pkey)                                                                              \
	X(alloc_pd)                                                                                \
	X(dealloc_pd)                                                                              \
	X(reg_mr)                                                                                  \
	X(dereg_mr)                                                                                \
	X(create_comp_channel)                                                                     \
	X(destroy_comp_channel)                                                                    \
	X(create_cq)                                                                               \
	X(destroy_cq)                                                                              \
	X(get_cq_event)                                                                            \
	X(ack_cq_events)                                                                           \
	X(create_srq)                                                                              \
	X(destroy_srq)                                                                             \
	X(create_qp)                                                                               \
	X(modify_qp)                                                                               \
	X(destroy_qp)                                                                              \
	X(create_ah)                                                                               \
	X(destroy_ah)                                                                              \
	X(attach_mcast)                                                                            \
	X(detach_mcast)                                                                            \
	X(get_async_event)                                                                         \
	X(ack_async_event)

struct ddps_verbs_lib {
	void *handle;
/* NOLINTBEGIN(bugprone-macro-parentheses): members of structs cannot have them */
#define DDPS_X(name) __typeof__(&(ibv_##name)) name;
	DDPS_VERBS_FUNCTIONS(DDPS_X)
#undef DDPS_X
	/* NOLINTEND(bugprone-macro-parentheses) */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited);
	/* NULL in libraries before 34 */
	int (*query_gid_ex)(struct ibv_context *ctx, uint32_t port, uint32_t index,
			    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
	/* A socket of the kernel's is or is not in a group of IPv6; *@fd is -1 or one of before. */
	int (*netdev_group)(int *fd, uint32_t ifindex, const uint8_t ip6[16], bool join);
	struct ddps_umad_lib umad;
};

/* Return: 0, or DDPS_E_UNSUPPORTED with one sentence in @why. */
int ddps_verbs_lib_load(struct ddps_verbs_lib *lib, char *why, size_t why_len);
/* Also one that was not loaded. */
void ddps_verbs_lib_unload(struct ddps_verbs_lib *lib);

#endif
