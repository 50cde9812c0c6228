/* SPDX-License-Identifier: BSD-2-Clause */
/* libibverbs and libibumad, loaded when they are wanted. */
#include "ipoib_cm/verbs/verbs_lib.h"
#include <ddpsess/err.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define LIBRARY "libibverbs.so.1"

static int call_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return ibv_post_send(qp, wr, bad);
}

static int call_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return ibv_post_recv(qp, wr, bad);
}

static int call_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return ibv_post_srq_recv(srq, wr, bad);
}

static int call_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return ibv_poll_cq(cq, n, wc);
}

static int call_req_notify_cq(struct ibv_cq *cq, int solicited)
{
	return ibv_req_notify_cq(cq, solicited);
}

/* Return: 0 or an errno. */
static int join_netdev_group(int *fd, uint32_t ifindex, const uint8_t ip6[16], bool join)
{
	struct ipv6_mreq m = { .ipv6mr_interface = ifindex };

	if (*fd < 0)
		*fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return errno;
	memcpy(&m.ipv6mr_multiaddr, ip6, sizeof(m.ipv6mr_multiaddr));
	return setsockopt(*fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &m,
			  sizeof(m))
		       ? errno
		       : 0;
}

int ddps_verbs_lib_load(struct ddps_verbs_lib *lib, char *why, size_t why_len)
{
	void *at;

	*lib = (struct ddps_verbs_lib){ .post_send = call_post_send,
					.post_recv = call_post_recv,
					.post_srq_recv = call_post_srq_recv,
					.poll_cq = call_poll_cq,
					.req_notify_cq = call_req_notify_cq,
					.netdev_group = join_netdev_group };
	lib->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle) {
		snprintf(why, why_len,
			 "%s (Debian packages libibverbs1 and ibverbs-providers) cannot be "
			 "loaded: %s",
			 LIBRARY, dlerror());
		return DDPS_E_UNSUPPORTED;
	}
/* dlsym() gives an object pointer; copying its octets is what POSIX has in mind for functions. */
#define DDPS_X(name)                                                                               \
	at = dlsym(lib->handle, "ibv_" #name);                                                     \
	if (!at)                                                                                   \
		goto missing;                                                                      \
	memcpy(&lib->name, &at, sizeof(at));
	DDPS_VERBS_FUNCTIONS(DDPS_X)
#undef DDPS_X
	at = dlsym(lib->handle, "_ibv_query_gid_ex");
	memcpy(&lib->query_gid_ex, &at, sizeof(at));
	if (!ddps_umad_lib_load(&lib->umad, why, why_len))
		return 0;
	ddps_verbs_lib_unload(lib);
	return DDPS_E_UNSUPPORTED;
missing:
	snprintf(why, why_len, "%s is not what it should be: %s", LIBRARY, dlerror());
	ddps_verbs_lib_unload(lib);
	return DDPS_E_UNSUPPORTED;
}

void ddps_verbs_lib_unload(struct ddps_verbs_lib *lib)
{
	if (lib->umad.handle)
		ddps_umad_lib_unload(&lib->umad);
	if (lib->handle)
		dlclose(lib->handle);
	lib->handle = NULL;
}
