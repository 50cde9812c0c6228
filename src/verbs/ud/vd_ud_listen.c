/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners of RDMA_PS_UDP.  A request becomes an identifier, as of a connection; whoever asks again
 * while the program thinks is not heard, and whoever has an answer gets the same once more.
 */
#include "verbs/cm/vd_event.h"
#include "verbs/ud/vd_ud_in.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BACKLOG_MAX 128
#define REFUSED	    2 /* the status of a SIDR response that says so */

int vd_ud_listen(struct vd_id *id, unsigned backlog)
{
	struct vd_ud *ud = ud_of_process();
	struct vd_ud_id *u;
	int err;

	if (!ud)
		return -1;
	if (id->reserved < 0)
		return vd_fail(EADDRINUSE);
	ddps_lock(&ud->p->lock);
	u = ud_id_of(id);
	if (u)
		u->listener = calloc(1, sizeof *u->listener);
	err = u && u->listener ? ud_id_watch(ud, u) : ENOMEM;
	if (!err) {
		u->listener->backlog = !backlog || backlog > BACKLOG_MAX ? BACKLOG_MAX : backlog;
		id->state = VD_ID_LISTEN;
	}
	ddps_unlock(&ud->p->lock);
	ud_wake(ud);
	return err ? vd_fail(err) : 0;
}

/* ---- requests; the lock is held ---- */

static bool is_same_ud_addr(const struct ud_addr *a, const struct ud_addr *b)
{
	return a->port == b->port && !memcmp(&a->ip, &b->ip, sizeof a->ip);
}

static void send_ud_answer(const struct vd_ud_id *l, const struct ud_answer *a)
{
	struct iovec iov = { (void *)a->data, a->len };

	ud_send(&l->sock, &a->to, &a->from, 0, &iov, 1);
}

static bool say_again(const struct vd_ud_id *l, const struct ud_packet *pk, uint64_t ask)
{
	for (unsigned i = 0; i < UD_ANSWERS; i++) {
		const struct ud_answer *a = &l->listener->answers[i];

		if (a->len && a->ask == ask && is_same_ud_addr(&a->to, &pk->from)) {
			send_ud_answer(l, a);
			return true;
		}
	}
	return false;
}

/* Whether it waits already, or there is no room for it. */
static bool is_ud_request_waiting(const struct vd_process *p, const struct vd_ud_id *l,
				  const struct ud_packet *pk, uint64_t ask)
{
	const struct vd_id *id;
	unsigned n = 0;

	LIST_FOREACH(id, &p->requests, request_link) {
		if (id->listen_id != l->id)
			continue;
		n++;
		if (id->ud->ask == ask && is_same_ud_addr(&id->ud->peer, &pk->from))
			return true;
	}
	return n >= l->listener->backlog;
}

static void to_route(const struct ud_addr *a, sa_family_t family, struct sockaddr_storage *ss)
{
	ud_to_sockaddr(a, IN6_IS_ADDR_V4MAPPED(&a->ip) ? AF_INET : family, ss);
}

static void take_ud_request(struct vd_process *p, struct vd_ud_id *l, const struct ud_packet *pk,
			    const struct ud_header *h)
{
	struct rdma_ud_param param = { .private_data = pk->data + UD_HEADER,
				       .private_data_len = h->pd_len };
	struct vd_id *id = vd_id_new(l->id->id.channel, l->id->id.context, RDMA_PS_UDP);
	struct ud_addr own = { .ip = pk->to, .ifindex = pk->from.ifindex };
	uint8_t pd[256];

	if (!id || vd_id_bind_device(id) || !ud_id_of(id)) {
		free(id); /* the peer asks again */
		return;
	}
	ud_ib_pad(id, &param, UD_PD_REQ, pd);
	own.port = ntohs(rdma_get_src_port(&l->id->id));
	id->state = VD_ID_REQUEST;
	id->listen_id = l->id;
	id->ud->peer = pk->from;
	id->ud->local = pk->to;
	id->ud->ask = h->ask;
	to_route(&own, AF_INET6, &id->id.route.addr.src_storage);
	to_route(&pk->from, AF_INET6, &id->id.route.addr.dst_storage);
	vd_request_note(p, id);
	if (ud_event(vd_event_new(id, l->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0), &param) != ENOMEM)
		return;
	vd_request_forget(p, id); /* the peer asks again */
	id->state = VD_ID_DOWN;
	vd_id_free(id);
}

void ud_listener_readable(struct vd_ud *ud, struct vd_ud_id *l)
{
	uint8_t octets[UD_HEADER + UD_PD_REQ + 1];
	struct ud_packet pk = { .data = octets };
	struct ud_header h;

	ddps_assert_held(&ud->p->lock);
	for (int i = 0; i < UD_BATCH && ud_recv(&l->sock, &pk, 1, sizeof octets); i++) {
		if (!ud_get(octets, pk.len, &h) || h.type != UD_REQ) {
			ud->stats.malformed++;
			continue;
		}
		if (!say_again(l, &pk, h.ask) && !is_ud_request_waiting(ud->p, l, &pk, h.ask))
			take_ud_request(ud->p, l, &pk, &h);
	}
}

/* ---- answers ---- */

static int answer_ud_request(struct vd_id *id, struct ud_header *h, const void *data, size_t len)
{
	struct vd_ud_id *l;
	struct ud_answer *a;

	if (id->state != VD_ID_REQUEST) /* without its listener it is one no more */
		return id->state == VD_ID_DOWN ? ECONNRESET : EINVAL;
	if (len > UD_PD_REP)
		return EINVAL;
	l = id->listen_id->ud;
	h->type = UD_REP;
	h->ask = id->ud->ask;
	h->pd_len = (uint8_t)len;
	a = &l->listener->answers[l->listener->next++ % UD_ANSWERS];
	a->to = id->ud->peer;
	if (!ud_is_link_local(&a->to.ip))
		a->to.ifindex = 0;
	a->from = id->ud->local;
	a->ask = h->ask;
	a->len = UD_HEADER + len;
	ud_put(h, a->data);
	if (len)
		memcpy(a->data + UD_HEADER, data, len);
	send_ud_answer(l, a);
	vd_request_forget(id->p, id);
	id->state = h->status ? VD_ID_DOWN : VD_ID_UP;
	return 0;
}

int vd_ud_accept(struct vd_id *id, const struct rdma_conn_param *conn)
{
	struct ud_header h = { .qkey = UD_QKEY_CM };
	size_t len = conn && conn->private_data ? conn->private_data_len : 0;
	int err;

	h.src = id->id.qp ? id->id.qp->qp_num : conn ? conn->qp_num : 0;
	if (!id->ud || !h.src || h.src > VD_QPN_MASK)
		return vd_fail(EINVAL);
	if (id->qp && id->qp->ud)
		h.qkey = id->qp->ud->qkey;
	ddps_lock(&id->p->lock);
	err = answer_ud_request(id, &h, conn ? conn->private_data : NULL, len);
	ddps_unlock(&id->p->lock);
	return err ? vd_fail(err) : 0;
}

int vd_ud_reject(struct vd_id *id, const void *data, uint8_t len)
{
	struct ud_header h = { .status = REFUSED };
	int err;

	if (!id->ud)
		return vd_fail(EINVAL);
	ddps_lock(&id->p->lock);
	err = answer_ud_request(id, &h, data, data ? len : 0);
	ddps_unlock(&id->p->lock);
	return err ? vd_fail(err) : 0;
}

void vd_ud_refuse(struct vd_id *id)
{
	struct ud_header h = { .status = REFUSED };

	ddps_assert_held(&id->p->lock);
	if (id->ud && id->state == VD_ID_REQUEST)
		answer_ud_request(id, &h, NULL, 0);
}
