/* SPDX-License-Identifier: BSD-2-Clause */
/* Own addresses of identifiers: binding, options, what of them a queue pair has to know. */
#include "verbs/ud/vd_ud.h"
#include "verbs/cm/vd_oob.h"
#include "verbs/vd.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ACK_TIMEOUT_MAX 31 /* 4.096 us times 2 to the power of it */

/* Whether an address is this host's: the system lets a socket have it, with any port. */
static int check_local(const struct sockaddr *sa)
{
	struct sockaddr_storage ss = { 0 };
	int fd, err = 0;

	memcpy(&ss, sa, vd_sa_len(sa));
	*vd_port_of(&ss) = 0;
	ddps_uncancellable();
	fd = socket(sa->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&ss, vd_sa_len(sa)))
		err = errno;
	if (fd >= 0)
		close(fd);
	ddps_uncancellable_end();
	return err;
}

/* A socket with the address of @id, whose port is chosen if it is 0; or -1. */
static int open_bound_socket(const struct vd_config *cfg, struct vd_id *id, int reuse)
{
	struct sockaddr_storage *ss = &id->id.route.addr.src_storage;
	const int type = vd_over_sctp(cfg) || vd_ud_id(id) ? SOCK_DGRAM : SOCK_STREAM;
	int fd = socket(ss->ss_family, type | SOCK_CLOEXEC, 0), v6only = id->afonly, err;
	socklen_t len = sizeof *ss;

	if (fd < 0)
		return -1;
	if (reuse)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
	if (ss->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only);
	if (!bind(fd, (struct sockaddr *)ss, vd_sa_len((struct sockaddr *)ss)) &&
	    !getsockname(fd, (struct sockaddr *)ss, &len))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* The same, and the identifier has it.  Return: 0 or errno. */
static int keep_bound(const struct vd_config *cfg, struct vd_id *id, int reuse)
{
	struct vd_reserved *list = vd_forks_hold();
	int err = 0;

	id->reserved = open_bound_socket(cfg, id, reuse);
	if (id->reserved >= 0) {
		LIST_INSERT_HEAD(list, id, reserved_link);
	} else {
		err = errno;
	}
	vd_forks_release();
	return err;
}

/* Any IPv6 address means any of IPv4 as well, unless the program has said otherwise. */
void vd_listen_uri(const struct vd_process *p, const struct vd_id *id, char *buf, size_t len)
{
	const struct sockaddr *sa = &id->id.route.addr.src_addr;
	unsigned port = ntohs(id->id.route.addr.src_sin.sin_port);

	if (sa->sa_family != AF_INET6 || !vd_is_any(sa) || id->afonly)
		vd_uri(&p->cfg, sa, buf, len);
	else if (vd_over_sctp(&p->cfg))
		snprintf(buf, len, "%s://:%u?encap=%u", p->cfg.transport, port, port);
	else
		snprintf(buf, len, "%s://:%u", p->cfg.transport, port);
}

/* The UDP port may be one of this process's own, which new listeners share. */
static int try_listening(struct vd_process *p, struct vd_id *id)
{
	struct ddps_listener *l;
	char uri[160];
	int err;

	vd_listen_uri(p, id, uri, sizeof uri);
	err = ddps_listen(p->ctx, uri, NULL, &l);
	if (err)
		return vd_errno(err);
	ddps_listener_free(l);
	return 0;
}

/*
 * A port of RDMA_PS_UDP need not be free for UDP: rsockets have one number for both.  Whoever only
 * sends from it needs no socket there.
 */
static bool may_share(const struct vd_id *id)
{
	const struct vd_reserved *list = vd_forks_hold();
	const struct vd_id *other;

	LIST_FOREACH(other, list, reserved_link)
		if (vd_ud_id(other) &&
		    other->id.route.addr.src_sin.sin_port == id->id.route.addr.src_sin.sin_port)
			break;
	vd_forks_release();
	return !other;
}

/*
 * The port of a bound identifier is its own from then on: a socket keeps it until there is a
 * listener or a connection.  What is left of connections that have ended does not count: adapters
 * do not know of it.  Over SCTP the number has to be free for UDP.
 */
int vd_reserve(struct vd_process *p, struct vd_id *id)
{
	/* Of two UDP sockets that share a port one gets nothing. */
	int err = keep_bound(&p->cfg, id, id->reuse && !vd_ud_id(id));

	if (err != EADDRINUSE || !rdma_get_src_port(&id->id))
		return err;
	if (vd_ud_id(id))
		return may_share(id) ? 0 : err;
	return vd_over_sctp(&p->cfg) ? try_listening(p, id) : keep_bound(&p->cfg, id, 1);
}

void vd_unreserve(struct vd_id *id)
{
	if (id->reserved < 0)
		return;
	(void)vd_forks_hold();
	LIST_REMOVE(id, reserved_link);
	vd_close(id->p, id->reserved);
	id->reserved = -1;
	vd_forks_release();
}

void vd_lend_port(struct vd_id *id)
{
	int one = 1;

	if (id->reserved >= 0)
		setsockopt(id->reserved, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
}

void vd_source_port(struct vd_process *p, struct vd_id *id)
{
	/* Over SCTP it is that of the association, which sessions share. */
	if (vd_over_sctp(&p->cfg) && !vd_ud_id(id)) {
		vd_unreserve(id);
		if (!id->port_asked)
			*vd_port_of(&id->id.route.addr.src_storage) = 0;
		return;
	}
	/* Where all are taken, one is left to connect(), which can share them among peers. */
	if (id->reserved < 0 && !rdma_get_src_port(&id->id) && vd_reserve(p, id))
		id->reserved = -1;
}

int vdi_rdma_bind_addr(struct rdma_cm_id *ibid, struct sockaddr *addr)
{
	struct vd_id *id = vd_id_of(ibid);
	struct vd_process *p = vd_id_process(id);
	int err;

	if (!p)
		return -1;
	if (!addr)
		return vd_fail(EINVAL);
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return vd_fail(EAFNOSUPPORT);
	if (id->state != VD_ID_IDLE)
		return vd_fail(EINVAL);
	err = check_local(addr);
	if (err)
		return vd_fail(err);
	memcpy(&ibid->route.addr.src_storage, addr, vd_sa_len(addr));
	id->port_asked = rdma_get_src_port(ibid);
	err = vd_reserve(p, id);
	if (err)
		return vd_fail(err);
	id->state = VD_ID_BOUND;
	/* A wildcard belongs to no device: rdma_bind_addr(3). */
	return vd_is_any(addr) ? 0 : vd_id_bind_device(id);
}

static int set_flag(const struct vd_id *id, bool *flag, const void *value, size_t len)
{
	int v;

	if (len != sizeof v || !value || id->state > VD_ID_BOUND)
		return EINVAL;
	memcpy(&v, value, sizeof v);
	*flag = v;
	return 0;
}

/* TCP and SCTP have timers of their own, as an RNIC has.  ibv_query_qp reports it, and in strict mode it counts
 * (vd_qp_answer). */
static int set_ack_timeout(struct vd_id *id, const void *value, size_t len)
{
	if (len != 1 || !value || *(const uint8_t *)value > ACK_TIMEOUT_MAX || vd_ud_id(id))
		return EINVAL;
	id->ack_timeout = *(const uint8_t *)value;
	id->ack_said = true;
	if (id->qp)
		id->qp->said.timeout = id->ack_timeout;
	return 0;
}

/* Of the packets of its connections and listener.  It is taken at any time, and of what is there by then
 * it changes nothing, as on an adapter. */
static int set_tos(struct vd_id *id, const void *value, size_t len)
{
	if (len != 1 || !value)
		return EINVAL;
	id->tos = *(const uint8_t *)value;
	return 0;
}

static int set_option(struct vd_id *id, int level, int name, const void *value, size_t len)
{
	if (level == RDMA_OPTION_IB)
		return name == RDMA_OPTION_IB_PATH ? EOPNOTSUPP : ENOSYS;
	if (level != RDMA_OPTION_ID)
		return ENOSYS;
	switch (name) {
	case RDMA_OPTION_ID_REUSEADDR:
		return set_flag(id, &id->reuse, value, len);
	case RDMA_OPTION_ID_AFONLY:
		return set_flag(id, &id->afonly, value, len);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return set_ack_timeout(id, value, len);
	case RDMA_OPTION_ID_TOS:
		return set_tos(id, value, len);
	default:
		return ENOSYS;
	}
}

VD_API int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	int err = set_option(vd_id_of(id), level, name, value, len);

	return err ? vd_fail(err) : 0;
}

/* The GID of the host with this address, as a program would get it. */
static void get_sockaddr_gid(const struct sockaddr *sa, union ibv_gid *gid)
{
	if (sa->sa_family == AF_INET6)
		memcpy(gid->raw, &((const struct sockaddr_in6 *)sa)->sin6_addr, sizeof gid->raw);
	else
		vd_gid_of((const struct sockaddr_in *)sa, gid);
}

/*
 * What a program that moves its queue pair itself would set: on iWARP the state and the rights, and on
 * InfiniBand to INIT what the table of moves wants there.
 * The rest is filled in for whoever looks at it anyway.
 */
VD_API int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const enum ibv_qp_state state = attr->qp_state;

	if (state != IBV_QPS_INIT && state != IBV_QPS_RTR && state != IBV_QPS_RTS)
		return vd_fail(EINVAL);
	if (vd_ud_id(vd_id_of(id))) {
		vd_ud_init_attr(attr, mask);
		return 0;
	}
	memset(attr, 0, sizeof *attr);
	attr->qp_state = state;
	attr->port_num = attr->ah_attr.port_num = 1;
	attr->path_mtu = IBV_MTU_1024;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	attr->ah_attr.is_global = 1;
	attr->ah_attr.grh.hop_limit = 255;
	get_sockaddr_gid(&id->route.addr.dst_addr, &attr->ah_attr.grh.dgid);
	attr->max_rd_atomic = attr->max_dest_rd_atomic = VD_MAX_RD;
	*mask = state == IBV_QPS_RTS ? IBV_QP_STATE : VD_QP_ATTR_MASK;
	if (state == IBV_QPS_INIT && vd_is_ib(vd_id_of(id)))
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	return 0;
}
