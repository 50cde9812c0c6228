/* SPDX-License-Identifier: BSD-2-Clause */
/* libibverbs and libibumad, loaded when they are wanted. */
#include "ipoib_cm/verbs/verbs_lib.h"
#include <ddpsess/err.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libibverbs.so.1"

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return ibv_post_send(qp, wr, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return ibv_post_recv(qp, wr, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return ibv_post_srq_recv(srq, wr, bad);
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return ibv_poll_cq(cq, n, wc);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	return ibv_req_notify_cq(cq, solicited);
}

int ddps_verbs_lib_load(struct ddps_verbs_lib *lib, char *why, size_t why_len)
{
	void *at;

	*lib = (struct ddps_verbs_lib){ .post_send = post_send,
					.post_recv = post_recv,
					.post_srq_recv = post_srq_recv,
					.poll_cq = poll_cq,
					.req_notify_cq = req_notify_cq };
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
