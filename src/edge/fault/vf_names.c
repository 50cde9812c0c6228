/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that rules and traces use: those of rdma-core's headers. */
#include "edge/fault/vf.h"
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

struct name {
	const char *text;
	int value;
};

struct names {
	const struct name *at;
	size_t n;
	const char *prefix; /* that may be left out */
};

#define N(x)                                                                                       \
	{                                                                                          \
#x, x                                                                              \
	}

static const struct name points[] = {
#define VD_CALL(name)  { #name, VF_##name },
#define VD_POINT(name) { #name, VF_##name },
#include "verbs/verbs_calls.def"
	{ "completion", VF_COMPLETION },
	{ "time", VF_TIME },
};

static const struct name effects[] = {
	{ "fail", VF_FAIL },
	{ "status", VF_STATUS },
	{ "delay", VF_DELAY },
	{ "lose", VF_LOSE },
	{ "reorder", VF_REORDER },
	{ "rnr", VF_RNR },
	{ "corrupt", VF_CORRUPT },
	{ "reset", VF_RESET },
	{ "silence", VF_SILENCE },
	{ "half-open", VF_HALF_OPEN },
	{ "event", VF_EVENT },
	{ "async", VF_ASYNC },
	{ "remove-device", VF_REMOVE },
};

static const struct name opcodes[] = {
	{ "send", IBV_WC_SEND },
	{ "write", IBV_WC_RDMA_WRITE },
	{ "read", IBV_WC_RDMA_READ },
	{ "swap", IBV_WC_COMP_SWAP },
	{ "add", IBV_WC_FETCH_ADD },
	{ "bind", IBV_WC_BIND_MW },
	{ "invalidate", IBV_WC_LOCAL_INV },
	{ "flush", 8 }, /* IBV_WC_FLUSH, IBV_WC_ATOMIC_WRITE: of later headers */
	{ "atomic-write", 9 },
	{ "recv", IBV_WC_RECV },
	{ "recv-write", IBV_WC_RECV_RDMA_WITH_IMM },
};

static const struct name statuses[] = {
	N(IBV_WC_SUCCESS),
	N(IBV_WC_LOC_LEN_ERR),
	N(IBV_WC_LOC_QP_OP_ERR),
	N(IBV_WC_LOC_EEC_OP_ERR),
	N(IBV_WC_LOC_PROT_ERR),
	N(IBV_WC_WR_FLUSH_ERR),
	N(IBV_WC_MW_BIND_ERR),
	N(IBV_WC_BAD_RESP_ERR),
	N(IBV_WC_LOC_ACCESS_ERR),
	N(IBV_WC_REM_INV_REQ_ERR),
	N(IBV_WC_REM_ACCESS_ERR),
	N(IBV_WC_REM_OP_ERR),
	N(IBV_WC_RETRY_EXC_ERR),
	N(IBV_WC_RNR_RETRY_EXC_ERR),
	N(IBV_WC_LOC_RDD_VIOL_ERR),
	N(IBV_WC_REM_INV_RD_REQ_ERR),
	N(IBV_WC_REM_ABORT_ERR),
	N(IBV_WC_INV_EECN_ERR),
	N(IBV_WC_INV_EEC_STATE_ERR),
	N(IBV_WC_FATAL_ERR),
	N(IBV_WC_RESP_TIMEOUT_ERR),
	N(IBV_WC_GENERAL_ERR),
	N(IBV_WC_TM_ERR),
	N(IBV_WC_TM_RNDV_INCOMPLETE),
};

static const struct name events[] = {
	N(RDMA_CM_EVENT_ADDR_RESOLVED),	  N(RDMA_CM_EVENT_ADDR_ERROR),
	N(RDMA_CM_EVENT_ROUTE_RESOLVED),  N(RDMA_CM_EVENT_ROUTE_ERROR),
	N(RDMA_CM_EVENT_CONNECT_REQUEST), N(RDMA_CM_EVENT_CONNECT_RESPONSE),
	N(RDMA_CM_EVENT_CONNECT_ERROR),	  N(RDMA_CM_EVENT_UNREACHABLE),
	N(RDMA_CM_EVENT_REJECTED),	  N(RDMA_CM_EVENT_ESTABLISHED),
	N(RDMA_CM_EVENT_DISCONNECTED),	  N(RDMA_CM_EVENT_DEVICE_REMOVAL),
	N(RDMA_CM_EVENT_MULTICAST_JOIN),  N(RDMA_CM_EVENT_MULTICAST_ERROR),
	N(RDMA_CM_EVENT_ADDR_CHANGE),	  N(RDMA_CM_EVENT_TIMEWAIT_EXIT),
};

static const struct name asyncs[] = {
	N(IBV_EVENT_CQ_ERR),
	N(IBV_EVENT_QP_FATAL),
	N(IBV_EVENT_QP_REQ_ERR),
	N(IBV_EVENT_QP_ACCESS_ERR),
	N(IBV_EVENT_COMM_EST),
	N(IBV_EVENT_SQ_DRAINED),
	N(IBV_EVENT_PATH_MIG),
	N(IBV_EVENT_PATH_MIG_ERR),
	N(IBV_EVENT_DEVICE_FATAL),
	N(IBV_EVENT_PORT_ACTIVE),
	N(IBV_EVENT_PORT_ERR),
	N(IBV_EVENT_LID_CHANGE),
	N(IBV_EVENT_PKEY_CHANGE),
	N(IBV_EVENT_SM_CHANGE),
	N(IBV_EVENT_SRQ_ERR),
	N(IBV_EVENT_SRQ_LIMIT_REACHED),
	N(IBV_EVENT_QP_LAST_WQE_REACHED),
	N(IBV_EVENT_CLIENT_REREGISTER),
	N(IBV_EVENT_GID_CHANGE),
	N(IBV_EVENT_WQ_FATAL),
};

#define TABLE(x, prefix)                                                                           \
	{                                                                                          \
		x, sizeof(x) / sizeof *(x), prefix                                                 \
	}
static const struct names all[] = {
	[VF_NAME_POINT] = TABLE(points, ""),
	[VF_NAME_EFFECT] = TABLE(effects, ""),
	[VF_NAME_OPCODE] = TABLE(opcodes, ""),
	[VF_NAME_STATUS] = TABLE(statuses, "IBV_WC_"),
	[VF_NAME_EVENT] = TABLE(events, "RDMA_CM_EVENT_"),
	[VF_NAME_ASYNC] = TABLE(asyncs, "IBV_EVENT_"),
};

#define ERRNO_END 134 /* one above the last of Linux */

static bool is_same_name(const char *name, const char *word, size_t len)
{
	return strlen(name) == len && !strncasecmp(name, word, len);
}

static int errno_value(const char *word, size_t len)
{
	for (int i = 1; i < ERRNO_END; i++) {
		const char *name = strerrorname_np(i);

		if (name && is_same_name(name, word, len))
			return i;
	}
	return -1;
}

int vf_value(enum vf_kind kind, const char *word, size_t len)
{
	const struct names *t;

	if (kind == VF_NAME_ERRNO)
		return errno_value(word, len);
	t = &all[kind];
	for (size_t i = 0; i < t->n; i++)
		if (is_same_name(t->at[i].text, word, len) ||
		    is_same_name(t->at[i].text + strlen(t->prefix), word, len))
			return t->at[i].value;
	return -1;
}

const char *vf_name(enum vf_kind kind, int value)
{
	if (kind == VF_NAME_ERRNO)
		return strerrorname_np(value);
	for (size_t i = 0; i < all[kind].n; i++)
		if (all[kind].at[i].value == value)
			return all[kind].at[i].text;
	return NULL;
}
