/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers of RDMA_PS_UDP.  There is no connection: whoever calls rdma_connect asks the listener for
 * the number and Q_Key of a queue pair, as the SIDR messages of InfiniBand do, and asks again until
 * it has an answer.
 */
#include "common/system/random.h"
#include "verbs/cm/vd_event.h"
#include "verbs/cm/vd_oob.h"
#include "verbs/ud/vd_ud_in.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define RETRY_MS     50 /* and then twice as long each time */
#define RETRY_MS_MAX 1000
#define PATIENCE_MS  60000 /* a program may take long until it accepts */

struct vd_ud_id *ud_id_of(struct vd_id *id)
{
	ddps_assert_held(&id->p->lock);
	if (id->ud)
		return id->ud;
	id->ud = calloc(1, sizeof *id->ud);
	if (id->ud) {
		id->ud->id = id;
		id->ud->sock.fd = -1;
	}
	return id->ud;
}

void ud_ib_pad(const struct vd_id *id, struct rdma_ud_param *param, unsigned room,
	       uint8_t pd[static 256])
{
	struct rdma_conn_param conn = { .private_data = param->private_data,
					.private_data_len = param->private_data_len };

	vd_ib_pad(id, &conn, room, pd);
	param->private_data = conn.private_data;
	param->private_data_len = conn.private_data_len;
}

int ud_event(struct vd_event *e, const struct rdma_ud_param *param)
{
	if (!e)
		return ENOMEM;
	/* Of a group it is the program's own word, which has no length. */
	e->e.param.ud = *param;
	if (param->private_data_len) {
		memcpy(e->pd, param->private_data, param->private_data_len);
		e->e.param.ud.private_data = e->pd;
	}
	return vd_event_queue(e);
}

int ud_id_watch(struct vd_ud *ud, struct vd_ud_id *u)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = u };
	int err = ud_sock_adopt(&u->sock, u->id->reserved);

	ddps_assert_held(&ud->p->lock);
	if (!err && epoll_ctl(ud->cm_epfd, EPOLL_CTL_ADD, u->sock.fd, &ev))
		err = errno;
	if (err)
		u->sock.fd = -1;
	return err;
}

static void unwatch(struct vd_ud *ud, struct vd_ud_id *u)
{
	if (u->sock.fd >= 0)
		epoll_ctl(ud->cm_epfd, EPOLL_CTL_DEL, u->sock.fd, NULL);
	u->sock.fd = -1;
}

static void stop_asking(struct vd_ud_id *u)
{
	if (u->asks)
		LIST_REMOVE(u, link);
	u->asks = false;
}

void vd_ud_id_free(struct vd_id *id)
{
	struct vd_ud_id *u = id->ud;

	if (!u)
		return;
	ddps_assert_held(&id->p->lock);
	vd_ud_refuse(id);
	ud_leave_all(id);
	stop_asking(u);
	if (id->p->ud)
		unwatch(id->p->ud, u);
	free(u->listener);
	free(u);
	id->ud = NULL;
	id->id.route.path_rec = NULL;
}

int vd_ud_route(struct vd_id *id)
{
	struct vd_ud_id *u;
	struct ud_addr a;

	ddps_lock(&id->p->lock);
	u = ud_id_of(id);
	ddps_unlock(&id->p->lock);
	if (!u)
		return ENOMEM;
	u->path = (struct ibv_sa_path_rec){ .hop_limit = 64,
					    .reversible = 1,
					    .numb_path = 1,
					    .pkey = 0xffff,
					    .mtu = IBV_MTU_1024 };
	ud_from_sockaddr(&id->id.route.addr.src_addr, &a);
	memcpy(&u->path.sgid, &a.ip, sizeof a.ip);
	ud_from_sockaddr(&id->id.route.addr.dst_addr, &a);
	memcpy(&u->path.dgid, &a.ip, sizeof a.ip);
	if (a.ifindex <= UINT16_MAX)
		u->path.dlid = htons((uint16_t)a.ifindex);
	id->id.route.path_rec = &u->path;
	id->id.route.num_paths = 1;
	return 0;
}

void vd_ud_init_attr(struct ibv_qp_attr *attr, int *mask)
{
	const enum ibv_qp_state state = attr->qp_state;

	memset(attr, 0, sizeof *attr);
	attr->qp_state = state;
	attr->port_num = 1;
	attr->qkey = UD_QKEY_CM;
	*mask = IBV_QP_STATE;
	if (state == IBV_QPS_INIT)
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	else if (state == IBV_QPS_RTS)
		*mask |= IBV_QP_SQ_PSN;
}

/* ---- asking ---- */

static void give_up_asking(struct vd_ud *ud, struct vd_ud_id *u, int status,
			   const struct rdma_ud_param *p)
{
	static const struct rdma_ud_param none;

	stop_asking(u);
	unwatch(ud, u);
	u->id->state = VD_ID_DOWN;
	ud_event(vd_event_kept(u->id, &u->id->answer, RDMA_CM_EVENT_UNREACHABLE, status),
		 p ? p : &none);
}

static void ask_listener(struct vd_ud_id *u, uint64_t now)
{
	/* Lost or refused, it is sent again; that is reported below. */
	if (send(u->sock.fd, u->req, u->req_len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		u->retry_ms = RETRY_MS;
	u->retry_at = now + u->retry_ms;
	u->retry_ms = u->retry_ms < RETRY_MS_MAX ? u->retry_ms * 2 : RETRY_MS_MAX;
}

/* Where the number of its port is taken by something else, it asks from another. */
static int own_socket(struct vd_process *p, struct vd_id *id)
{
	uint16_t *port = vd_port_of(&id->id.route.addr.src_storage), said = *port;
	int err = 0;

	if (id->reserved < 0) {
		*port = 0;
		err = vd_reserve(p, id);
		*port = said ? said : *port;
	}
	return err;
}

static int start_asking(struct vd_ud *ud, struct vd_id *id, const struct rdma_conn_param *conn)
{
	struct ud_header h = { .type = UD_REQ };
	struct vd_ud_id *u = id->ud; /* vd_ud_route has made it */
	struct sockaddr *dst = &id->id.route.addr.dst_addr;
	int err;

	if (ddps_random(&u->ask, sizeof u->ask))
		return EIO;
	h.ask = u->ask;
	h.pd_len = conn && conn->private_data ? conn->private_data_len : 0;
	h.src = id->id.qp ? id->id.qp->qp_num : conn ? conn->qp_num & VD_QPN_MASK : 0;
	if (h.pd_len > UD_PD_REQ)
		return EINVAL;
	memset(u->req, 0, sizeof u->req);
	ud_put(&h, u->req);
	if (h.pd_len)
		memcpy(u->req + UD_HEADER, conn->private_data, h.pd_len);
	u->req_len = ud_cm_len(UD_REQ, h.pd_len);
	err = own_socket(ud->p, id);
	if (err)
		return err;
	/* Answers come from there and nowhere else. */
	if (connect(id->reserved, dst, vd_sa_len(dst)))
		return errno;
	err = ud_id_watch(ud, u);
	if (err)
		return err;
	u->retry_ms = RETRY_MS;
	u->give_up = ud_now_ms() + PATIENCE_MS;
	u->refused_until = ud_now_ms() + ud->p->cfg.retry_ms;
	LIST_INSERT_HEAD(&ud->asking, u, link);
	u->asks = true;
	id->state = VD_ID_CONNECTING;
	ask_listener(u, ud_now_ms());
	return 0;
}

int vd_ud_connect(struct vd_id *id, const struct rdma_conn_param *conn)
{
	struct vd_ud *ud = ud_of_process();
	int err;

	if (!ud)
		return -1;
	ddps_lock(&ud->p->lock);
	err = start_asking(ud, id, conn);
	ddps_unlock(&ud->p->lock);
	ud_wake(ud);
	return err ? vd_fail(err) : vd_sync(id, 0);
}

static void take_ud_answer(struct vd_ud *ud, struct vd_ud_id *u, const struct ud_packet *pk,
			   const struct ud_header *h)
{
	struct rdma_ud_param param = { .private_data = pk->data + UD_HEADER,
				       .private_data_len = h->pd_len,
				       .qp_num = h->src,
				       .qkey = h->qkey };
	uint8_t pd[256];
	struct ud_addr to;

	ud_ib_pad(u->id, &param, UD_PD_REP, pd);
	ud_from_sockaddr(&u->id->id.route.addr.dst_addr, &to);
	ud_ah_attr_of(&to, &param.ah_attr);
	if (h->status) {
		give_up_asking(ud, u, h->status, &param);
		return;
	}
	stop_asking(u);
	unwatch(ud, u);
	u->id->state = VD_ID_UP;
	ud_event(vd_event_kept(u->id, &u->id->answer, RDMA_CM_EVENT_ESTABLISHED, 0), &param);
}

static void read_ud_answers(struct vd_ud *ud, struct vd_ud_id *u)
{
	uint8_t octets[UD_HEADER + UD_PD_REP + 1];
	struct ud_packet pk = { .data = octets };
	struct ud_header h;

	for (int i = 0; u->asks && i < UD_BATCH; i++) { /* a flood lets others have the lock */
		errno = 0;
		if (!ud_recv(&u->sock, &pk, 1, sizeof octets)) {
			/* The host says that nobody listens there; it may soon. */
			if (errno == ECONNREFUSED && ud_now_ms() >= u->refused_until)
				give_up_asking(ud, u, -ECONNREFUSED, NULL);
			else if (errno == ECONNREFUSED)
				u->retry_ms = RETRY_MS;
			return;
		}
		if (ud_get(octets, pk.len, &h) && h.type == UD_REP && h.ask == u->ask)
			take_ud_answer(ud, u, &pk, &h);
	}
}

/* ---- the thread ---- */

uint64_t ud_cm_due(const struct vd_ud *ud)
{
	uint64_t due = UINT64_MAX;
	const struct vd_ud_id *u;

	ddps_assert_held(&ud->p->lock);
	LIST_FOREACH(u, &ud->asking, link)
		if (u->retry_at < due)
			due = u->retry_at;
	return due;
}

void ud_cm_serve(struct vd_ud *ud)
{
	struct epoll_event ev[UD_BATCH];
	/* No identifier goes while the lock is held, but one may be done with by the first event. */
	int n = epoll_wait(ud->cm_epfd, ev, UD_BATCH, 0);
	struct vd_ud_id *next;

	for (int i = 0; i < n; i++) {
		struct vd_ud_id *u = ev[i].data.ptr;

		if (u->listener)
			ud_listener_readable(ud, u);
		else
			read_ud_answers(ud, u);
	}
	for (struct vd_ud_id *u = LIST_FIRST(&ud->asking); u; u = next) {
		next = LIST_NEXT(u, link);
		if (ud_now_ms() >= u->give_up)
			give_up_asking(ud, u, -ETIMEDOUT, NULL);
		else if (ud_now_ms() >= u->retry_at)
			ask_listener(u, ud_now_ms());
	}
}
