/* SPDX-License-Identifier: BSD-2-Clause */
/* The librdmacm port: active connects on a channel adapter. */
#include "ipoib_cm/ports/port_rdmacm.h"
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "librdmacm.so.1"

#define FUNCTIONS(X)                                                                               \
	X(rdma_create_event_channel)                                                               \
	X(rdma_destroy_event_channel)                                                              \
	X(rdma_create_id)                                                                          \
	X(rdma_destroy_id)                                                                         \
	X(rdma_resolve_addr)                                                                       \
	X(rdma_resolve_route)                                                                      \
	X(rdma_connect)                                                                            \
	X(rdma_establish)                                                                          \
	X(rdma_disconnect)                                                                         \
	X(rdma_get_cm_event)                                                                       \
	X(rdma_ack_cm_event)                                                                       \
	X(rdma_event_str)

struct ddps_rdmacm {
	void *handle;
	ddps_rdmacm_tell tell;
	void *user;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ddps_rdmacm_result *res; /* of the connect that goes on */
/* NOLINTBEGIN(bugprone-macro-parentheses): members of structs cannot have them */
#define DDPS_X(name) __typeof__(&(name)) name;
	FUNCTIONS(DDPS_X)
#undef DDPS_X
	/* NOLINTEND(bugprone-macro-parentheses) */
};

static int load_rdmacm(struct ddps_rdmacm *r, char *why, size_t why_len)
{
	void *at;

	r->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!r->handle)
		goto missing;
/* dlsym() gives an object pointer; copying its octets is what POSIX has in mind for functions. */
#define DDPS_X(name)                                                                               \
	at = dlsym(r->handle, #name);                                                              \
	if (!at)                                                                                   \
		goto missing;                                                                      \
	memcpy(&r->name, &at, sizeof(at));
	FUNCTIONS(DDPS_X)
#undef DDPS_X
	return 0;
missing:
	snprintf(why, why_len, "%s (Debian package librdmacm1) cannot be used: %s", LIBRARY,
		 dlerror());
	return DDPS_E_UNSUPPORTED;
}

static int open_channel(struct ddps_rdmacm *r, char *why, size_t why_len)
{
	int err = load_rdmacm(r, why, why_len);

	if (err)
		return err;
	r->channel = r->rdma_create_event_channel();
	if (r->channel && !r->rdma_create_id(r->channel, &r->id, NULL, RDMA_PS_IB))
		return 0;
	snprintf(why, why_len, "no RDMA connection manager in the kernel, or no device: %s",
		 strerror(errno));
	return DDPS_E_UNSUPPORTED;
}

int ddps_rdmacm_open(struct ddps_rdmacm **out, ddps_rdmacm_tell tell, void *user, char *why,
		     size_t why_len)
{
	struct ddps_rdmacm *r = calloc(1, sizeof(*r));
	int err;

	if (!r) {
		snprintf(why, why_len, "not enough memory");
		return DDPS_E_NOMEM;
	}
	r->tell = tell;
	r->user = user;
	err = open_channel(r, why, why_len);
	if (err) {
		ddps_rdmacm_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void ddps_rdmacm_close(struct ddps_rdmacm *r)
{
	if (!r)
		return;
	if (r->id)
		r->rdma_destroy_id(r->id);
	if (r->channel)
		r->rdma_destroy_event_channel(r->channel);
	/* libibverbs below it leaves state behind that its unloading would strand */
	free(r);
}

void ddps_rdmacm_address(struct sockaddr_ib *a, const struct ddps_cm_req *req)
{
	*a = (struct sockaddr_ib){ .sib_family = AF_IB,
				   .sib_pkey = htobe16(req->pkey),
				   .sib_sid = htobe64(req->service_id),
				   .sib_sid_mask = htobe64(UINT64_MAX) };
	memcpy(&a->sib_addr, req->primary.remote_gid, DDPS_IPOIB_GID_LEN);
}

bool ddps_rdmacm_takes(const char *name)
{
	static const char *const taken[] = { "service_id",
					     "pkey",
					     "qpn",
					     "resp_resources",
					     "init_depth",
					     "flow_control",
					     "retry_count",
					     "rnr_retry",
					     "srq",
					     "private_data",
					     "primary.remote_gid" };

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (!strcmp(taken[i], name))
			return true;
	return false;
}

static void report_rdmacm_event(struct ddps_rdmacm *r, const struct rdma_cm_event *ev)
{
	const struct rdma_conn_param *p = &ev->param.conn;

	r->tell(r->user, r->rdma_event_str(ev->event), ev->status);
	if (!r->res)
		return;
	if (ev->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		r->res->qpn = p->qp_num;
	else if (ev->event == RDMA_CM_EVENT_REJECTED)
		r->res->reason = (uint16_t)ev->status;
	else
		return;
	if (p->private_data && p->private_data_len >= DDPS_IPOIB_PRIV_LEN)
		memcpy(r->res->priv, p->private_data, DDPS_IPOIB_PRIV_LEN);
}

/* The next event.  Return: 0 if it is @want, else what its absence means. */
static int await_rdmacm_event(struct ddps_rdmacm *r, enum rdma_cm_event_type want, int timeout_ms)
{
	struct pollfd p = { .fd = r->channel->fd, .events = POLLIN };
	enum rdma_cm_event_type got;
	struct rdma_cm_event *ev;
	int n = poll(&p, 1, timeout_ms);

	if (n == 0)
		return DDPS_E_TIMEDOUT;
	if (n < 0 || r->rdma_get_cm_event(r->channel, &ev))
		return DDPS_E_SYSTEM;
	report_rdmacm_event(r, ev);
	got = ev->event;
	r->rdma_ack_cm_event(ev);
	return got == want			  ? 0
	       : got == RDMA_CM_EVENT_REJECTED	  ? DDPS_E_REJECTED
	       : got == RDMA_CM_EVENT_UNREACHABLE ? DDPS_E_TIMEDOUT
						  : DDPS_E_SYSTEM;
}

static int resolve_rdmacm_route(struct ddps_rdmacm *r, const struct ddps_cm_req *req,
				int timeout_ms)
{
	struct sockaddr_ib a;
	int err;

	ddps_rdmacm_address(&a, req);
	if (r->rdma_resolve_addr(r->id, NULL, (struct sockaddr *)&a, timeout_ms))
		return DDPS_E_SYSTEM;
	err = await_rdmacm_event(r, RDMA_CM_EVENT_ADDR_RESOLVED, timeout_ms);
	if (err)
		return err;
	if (r->rdma_resolve_route(r->id, timeout_ms))
		return DDPS_E_SYSTEM;
	return await_rdmacm_event(r, RDMA_CM_EVENT_ROUTE_RESOLVED, timeout_ms);
}

static int send_rdmacm_request(struct ddps_rdmacm *r, const struct ddps_cm_req *req, int timeout_ms)
{
	struct rdma_conn_param p = { .private_data = req->private_data,
				     .private_data_len = sizeof(req->private_data),
				     .responder_resources = req->resp_resources,
				     .initiator_depth = req->init_depth,
				     .flow_control = req->flow_control,
				     .retry_count = req->retry_count,
				     .rnr_retry_count = req->rnr_retry,
				     .srq = req->srq,
				     .qp_num = req->qpn };
	int err;

	if (r->rdma_connect(r->id, &p))
		return DDPS_E_SYSTEM;
	err = await_rdmacm_event(r, RDMA_CM_EVENT_CONNECT_RESPONSE, timeout_ms);
	if (err)
		return err;
	return r->rdma_establish(r->id) ? DDPS_E_SYSTEM : 0;
}

int ddps_rdmacm_connect(struct ddps_rdmacm *r, const struct ddps_cm_req *req, int timeout_ms,
			struct ddps_rdmacm_result *res, char *why, size_t why_len)
{
	const char *step = "resolving the address";
	int err;

	memset(res, 0, sizeof(*res));
	r->res = res;
	errno = 0;
	err = resolve_rdmacm_route(r, req, timeout_ms);
	if (!err) {
		step = "connecting";
		err = send_rdmacm_request(r, req, timeout_ms);
	}
	r->res = NULL;
	if (err)
		snprintf(why, why_len, "%s: %s", step,
			 err == DDPS_E_SYSTEM && errno ? strerror(errno)
						       : ddps_ipoib_strerror(err));
	return err;
}

int ddps_rdmacm_disconnect(struct ddps_rdmacm *r, int timeout_ms)
{
	if (r->rdma_disconnect(r->id))
		return DDPS_E_SYSTEM;
	return await_rdmacm_event(r, RDMA_CM_EVENT_DISCONNECTED, timeout_ms);
}
