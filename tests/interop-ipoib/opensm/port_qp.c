/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of the port.  A thread takes what other ports send, and looks at what ibsim says of this one: each
 * change becomes the event that a driver would report.
 */
#include "port_qp.h"
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct port_state port;
struct qp *qps;
int data = -1, events[2], notices[2];

/* ---- lists ---- */

static void add_item_test(struct list *l, struct item *i)
{
	i->next = NULL;
	if (!l->first)
		l->end = &l->first;
	*l->end = i;
	l->end = &i->next;
}

static struct item *take_first_item(struct list *l)
{
	struct item *i = l->first;

	if (i)
		l->first = i->next;
	return i;
}

void port_drop_list(struct list *l)
{
	struct item *i;

	while ((i = take_first_item(l)))
		free(i);
}

static struct item *item_new(size_t len)
{
	struct item *i = calloc(1, sizeof(*i) + len);

	if (!i)
		abort();
	i->len = len;
	return i;
}

static uint64_t read_port_verbs_guest_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- completions and events ---- */

static void complete_to_cq(struct cq *c, const struct ibv_wc *wc)
{
	struct item *i = item_new(sizeof(*wc));

	memcpy(i->data, wc, sizeof(*wc));
	add_item_test(&c->wc, i);
	if (c->armed && write(c->pipe, &c, sizeof(c)) == sizeof(c))
		c->armed = 0;
}

static void report_qp_event(enum ibv_event_type type, struct qp *q)
{
	struct ibv_async_event e = { .event_type = type };

	if (q)
		e.element.qp = &q->qp;
	else
		e.element.port_num = 1;
	if (write(events[1], &e, sizeof(e)) != sizeof(e))
		abort();
}

static void flush_qp_list(struct qp *q, struct list *l, struct cq *c, enum ibv_wc_status first)
{
	struct ibv_wc wc = { .status = first, .qp_num = q->qp.qp_num };
	struct item *i;

	while ((i = take_first_item(l))) {
		wc.wr_id = i->id;
		complete_to_cq(c, &wc);
		wc.status = IBV_WC_WR_FLUSH_ERR;
		free(i);
	}
}

void port_fail_qp(struct qp *q, enum ibv_wc_status why)
{
	if (q->state == IBV_QPS_ERR)
		return;
	q->state = IBV_QPS_ERR;
	flush_qp_list(q, &q->unacked, q->send_cq, why);
	flush_qp_list(q, &q->recv, q->recv_cq, IBV_WC_WR_FLUSH_ERR);
	port_drop_list(&q->waiting);
	if (q->srq)
		report_qp_event(IBV_EVENT_QP_LAST_WQE_REACHED, q);
}

/* ---- packets ---- */

/* To all ports: each knows what is for it. */
static void send_packet(struct packet *p, size_t len)
{
	const char *dir = getenv("FABRIC_DIR");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	DIR *d = opendir(dir);
	struct dirent *e;

	p->slid = port.lid;
	while (d && port.state == PORT_ACTIVE && (e = readdir(d))) {
		int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir, e->d_name);

		if (n > 5 && !strcmp(a.sun_path + n - 5, ".port"))
			(void)sendto(data, p, HEAD + len, 0, (struct sockaddr *)&a, sizeof(a));
	}
	if (d)
		closedir(d);
}

static bool same_partition(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && (a & 0x7fff) && ((a | b) & 0x8000);
}

void port_gid(uint8_t gid[16])
{
	uint64_t part[2] = { htobe64(port.prefix), htobe64(port.guid) };

	memcpy(gid, part, sizeof(part));
}

static void send_qp_ack(const struct qp *q)
{
	static struct packet p;

	p = (struct packet){ .kind = ACK,
			     .dlid = q->dlid,
			     .pkey = port.pkey[q->pkey_index],
			     .from = q->qp.qp_num,
			     .to = q->dqpn };
	send_packet(&p, 0);
}

/* Into the receive that is first. */
static void receive_qp_packet(struct qp *q, struct item *to, const struct packet *p, size_t len)
{
	const size_t grh = p->kind == DATAGRAM ? GRH : 0;
	struct ibv_wc wc = { .wr_id = to->id,
			     .qp_num = q->qp.qp_num,
			     .opcode = IBV_WC_RECV,
			     .src_qp = p->from,
			     .slid = p->slid,
			     .byte_len = (uint32_t)(grh + len) };
	uint8_t *b = (uint8_t *)(uintptr_t)to->sge.addr;

	if (grh + len > to->sge.length) {
		wc.status = IBV_WC_LOC_LEN_ERR;
	} else {
		if (grh)
			memset(b, 0xa5, grh);
		if (p->grh) {
			wc.wc_flags = IBV_WC_GRH;
			memcpy(b + 8, p->sgid, 16);
			memcpy(b + 24, p->dgid, 16);
		}
		memcpy(b + grh, p->data, len);
	}
	complete_to_cq(q->recv_cq, &wc);
	free(to);
}

static void take_message(struct qp *q, const struct packet *p, size_t len)
{
	struct list *l = q->srq ? &q->srq->recv : &q->recv;
	struct item *to = take_first_item(l);

	if (to) {
		receive_qp_packet(q, to, p, len);
		if (q->qp.qp_type == IBV_QPT_RC)
			send_qp_ack(q);
		return;
	}
	to = item_new(HEAD + len); /* as after "receiver not ready" */
	memcpy(to->data, p, HEAD + len);
	add_item_test(&q->waiting, to);
}

static void take_waiting_packets(struct qp *q)
{
	struct list *l = q->srq ? &q->srq->recv : &q->recv;
	struct item *i;

	while (l->first && (i = take_first_item(&q->waiting))) {
		take_message(q, (const struct packet *)i->data, i->len - HEAD);
		free(i);
	}
}

static void complete_acked_send(struct qp *q)
{
	struct ibv_wc wc = { .qp_num = q->qp.qp_num };
	struct item *i = take_first_item(&q->unacked);

	if (!i)
		return;
	wc.wr_id = i->id;
	free(i);
	if (q->unacked.first)
		q->unacked.first->at_ms = read_port_verbs_guest_ms();
	complete_to_cq(q->send_cq, &wc);
}

static bool in_group(const struct qp *q, const struct packet *p)
{
	for (unsigned i = 0; i < q->n_groups; i++)
		if (q->group[i].lid == p->dlid && !memcmp(q->group[i].gid, p->dgid, 16))
			return true;
	return false;
}

static void to_qp(struct qp *q, const struct packet *p, size_t len)
{
	if ((q->state != IBV_QPS_RTS && q->state != IBV_QPS_RTR) ||
	    !same_partition(p->pkey, port.pkey[q->pkey_index]))
		return;
	if (p->kind == DATAGRAM) {
		if (q->qp.qp_type == IBV_QPT_UD && p->qkey == q->qkey && q->recv.first &&
		    (p->dlid >= MCAST ? in_group(q, p) : p->to == q->qp.qp_num))
			receive_qp_packet(q, take_first_item(&q->recv), p, len);
	} else if (q->qp.qp_type != IBV_QPT_UD && p->to == q->qp.qp_num && p->from == q->dqpn &&
		   p->slid == q->dlid) {
		if (p->kind == ACK)
			complete_acked_send(q);
		else
			take_message(q, p, len);
	}
}

static void take_packet(void)
{
	static struct packet p;
	ssize_t len = recv(data, &p, sizeof(p), MSG_DONTWAIT);

	if (len < (ssize_t)HEAD)
		return;
	pthread_mutex_lock(&lock);
	if (port.state == PORT_ACTIVE && (p.dlid >= MCAST || p.dlid == port.lid))
		for (struct qp *q = qps; q; q = q->next)
			to_qp(q, &p, (size_t)len - HEAD);
	pthread_mutex_unlock(&lock);
}

/* ---- what ibsim says ---- */

/* The manager has asked the ports to register again: it is written where watch.c leaves it. */
static bool is_to_reregister(void)
{
	static struct timespec last;
	static bool known;
	char path[200];
	struct stat st = { 0 };
	bool is;

	snprintf(path, sizeof(path), "%s/reregister", getenv("FABRIC_DIR"));
	(void)stat(path, &st);
	is = known && (st.st_mtim.tv_sec != last.tv_sec || st.st_mtim.tv_nsec != last.tv_nsec);
	last = st.st_mtim;
	known = true;
	return is;
}

static void look_at_port_state(void)
{
	struct port_state is, was;

	if (port_ask(&is))
		return;
	pthread_mutex_lock(&lock);
	was = port;
	port = is;
	pthread_mutex_unlock(&lock);
	if (was.state == PORT_ACTIVE && is.state != PORT_ACTIVE)
		report_qp_event(IBV_EVENT_PORT_ERR, NULL);
	if (memcmp(was.pkey, is.pkey, sizeof(is.pkey)))
		report_qp_event(IBV_EVENT_PKEY_CHANGE, NULL);
	if (was.prefix != is.prefix)
		report_qp_event(IBV_EVENT_GID_CHANGE, NULL);
	if (was.lid != is.lid || was.lmc != is.lmc)
		report_qp_event(IBV_EVENT_LID_CHANGE, NULL);
	if (was.sm_lid != is.sm_lid || was.sm_sl != is.sm_sl)
		report_qp_event(IBV_EVENT_SM_CHANGE, NULL);
	if (was.state != PORT_ACTIVE && is.state == PORT_ACTIVE)
		report_qp_event(IBV_EVENT_PORT_ACTIVE, NULL);
	if (is_to_reregister())
		report_qp_event(IBV_EVENT_CLIENT_REREGISTER, NULL);
}

static void give_up_old_sends(void)
{
	const uint64_t now = read_port_verbs_guest_ms();

	pthread_mutex_lock(&lock);
	for (struct qp *q = qps; q; q = q->next)
		if (q->unacked.first && now > q->unacked.first->at_ms + LOST_MS)
			port_fail_qp(q, IBV_WC_RETRY_EXC_ERR);
	pthread_mutex_unlock(&lock);
}

void *port_serve(void *arg)
{
	struct pollfd p = { .fd = data, .events = POLLIN };
	uint64_t next = 0;

	for (;;) {
		if (poll(&p, 1, LOOK_MS) > 0)
			take_packet();
		if (read_port_verbs_guest_ms() < next)
			continue;
		look_at_port_state();
		give_up_old_sends();
		next = read_port_verbs_guest_ms() + LOOK_MS;
	}
	return arg;
}

/* ---- operations ---- */

static void send_one_wr(struct qp *q, const struct ibv_send_wr *wr)
{
	static struct packet p;
	struct ibv_wc wc = { .wr_id = wr->wr_id, .qp_num = q->qp.qp_num };
	const size_t len = wr->sg_list->length;
	struct item *i;

	p = (struct packet){ .kind = MESSAGE,
			     .dlid = q->dlid,
			     .from = q->qp.qp_num,
			     .to = q->dqpn,
			     .pkey = port.pkey[q->pkey_index] };
	memcpy(p.data, (const void *)(uintptr_t)wr->sg_list->addr, len);
	if (q->qp.qp_type == IBV_QPT_UD) {
		const struct ibv_ah_attr *a = &((const struct ah *)wr->wr.ud.ah)->attr;

		p.kind = DATAGRAM;
		p.dlid = a->dlid;
		p.to = wr->wr.ud.remote_qpn;
		p.qkey = wr->wr.ud.remote_qkey;
		p.grh = a->is_global;
		memcpy(p.dgid, a->grh.dgid.raw, 16);
		port_gid(p.sgid);
	}
	if (q->state != IBV_QPS_RTS) {
		wc.status = IBV_WC_WR_FLUSH_ERR;
		complete_to_cq(q->send_cq, &wc);
		return;
	}
	if (q->qp.qp_type == IBV_QPT_RC) {
		i = item_new(0);
		i->id = wr->wr_id;
		i->at_ms = read_port_verbs_guest_ms();
		add_item_test(&q->unacked, i);
	} else {
		complete_to_cq(q->send_cq, &wc);
	}
	send_packet(&p, len);
}

int port_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)bad;
	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next)
		send_one_wr((struct qp *)qp, wr);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void post_recv_list(struct list *l, const struct ibv_recv_wr *wr)
{
	for (; wr; wr = wr->next) {
		struct item *i = item_new(0);

		i->id = wr->wr_id;
		i->sge = wr->sg_list[0];
		add_item_test(l, i);
	}
	for (struct qp *q = qps; q; q = q->next)
		take_waiting_packets(q);
}

int port_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	pthread_mutex_lock(&lock);
	post_recv_list(&((struct qp *)qp)->recv, wr);
	pthread_mutex_unlock(&lock);
	return 0;
}

int port_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	pthread_mutex_lock(&lock);
	post_recv_list(&((struct srq *)srq)->recv, wr);
	pthread_mutex_unlock(&lock);
	return 0;
}

int port_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct item *i;
	int got = 0;

	pthread_mutex_lock(&lock);
	while (got < n && (i = take_first_item(&((struct cq *)cq)->wc))) {
		memcpy(&wc[got++], i->data, sizeof(*wc));
		free(i);
	}
	pthread_mutex_unlock(&lock);
	return got;
}

int port_arm_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	pthread_mutex_lock(&lock);
	((struct cq *)cq)->armed = 1;
	pthread_mutex_unlock(&lock);
	return 0;
}
