/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs of the port.  A thread takes what other ports send, and looks at what ibsim says of this one: each
 * change becomes the event that a driver would report.
 */
#include "port.h"
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#undef ibv_query_port
#undef ibv_reg_mr

#define API	__attribute__((visibility("default")))
#define GRH	40
#define LOOK_MS 20
#define LOST_MS 600 /* a connection that gets nothing for so long has failed */
#define LONGEST 70000
#define GROUPS	64
#define MCAST	0xc000

enum kind { DATAGRAM, MESSAGE, ACK };

struct packet {
	uint8_t kind, grh;
	uint16_t slid, dlid, pkey;
	uint32_t from, to, qkey;
	uint8_t sgid[16], dgid[16];
	uint8_t data[LONGEST];
};
#define HEAD offsetof(struct packet, data)

/* A work request, or a message that waits for one. */
struct item {
	struct item *next;
	uint64_t id, at_ms;
	struct ibv_sge sge;
	size_t len;
	uint8_t data[];
};

struct list {
	struct item *first, **end;
};

struct cq {
	struct ibv_cq cq;
	struct list wc; /* data: a struct ibv_wc */
	int pipe, armed;
};

struct srq {
	struct ibv_srq srq;
	struct list recv;
};

struct qp {
	struct ibv_qp qp;
	struct qp *next;
	struct list recv, waiting, unacked;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;
	enum ibv_qp_state state;
	uint16_t pkey_index, dlid;
	uint32_t qkey, dqpn;
	struct {
		uint8_t gid[16];
		uint16_t lid;
	} group[GROUPS];
	unsigned n_groups;
};

struct ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct port_state port;
static struct qp *qps;
static int data = -1, events[2], notices[2];
static struct ibv_context context;
static struct ibv_device device = { .node_type = IBV_NODE_CA,
				    .transport_type = IBV_TRANSPORT_IB,
				    .name = "ibsim0" };

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

static void clear(struct list *l)
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

static void fail_qp(struct qp *q, enum ibv_wc_status why)
{
	if (q->state == IBV_QPS_ERR)
		return;
	q->state = IBV_QPS_ERR;
	flush_qp_list(q, &q->unacked, q->send_cq, why);
	flush_qp_list(q, &q->recv, q->recv_cq, IBV_WC_WR_FLUSH_ERR);
	clear(&q->waiting);
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

static void gid_of_port(uint8_t gid[16])
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
			fail_qp(q, IBV_WC_RETRY_EXC_ERR);
	pthread_mutex_unlock(&lock);
}

static void *run_port_thread(void *arg)
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
		gid_of_port(p.sgid);
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

static int post_port_verbs_guest_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
				      struct ibv_send_wr **bad)
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

static int post_port_verbs_guest_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
				      struct ibv_recv_wr **bad)
{
	(void)bad;
	pthread_mutex_lock(&lock);
	post_recv_list(&((struct qp *)qp)->recv, wr);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	pthread_mutex_lock(&lock);
	post_recv_list(&((struct srq *)srq)->recv, wr);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int poll_port_verbs_guest_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
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

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	pthread_mutex_lock(&lock);
	((struct cq *)cq)->armed = 1;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* ---- the device ---- */

API struct ibv_device **ibv_get_device_list(int *n)
{
	static struct ibv_device *list[2] = { &device };

	if (n)
		*n = 1;
	return port_open() ? NULL : list;
}

API void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

API const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

API __be64 ibv_get_device_guid(struct ibv_device *d)
{
	(void)d;
	return htobe64(port.guid - 1);
}

API struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	pthread_t thread;

	if (port_open() || port_ask(&port) || pipe(events) || pipe(notices))
		return NULL;
	data = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s.port", getenv("FABRIC_DIR"),
		 getenv("SIM_HOST"));
	unlink(a.sun_path);
	if (data < 0 || bind(data, (struct sockaddr *)&a, sizeof(a)) ||
	    pthread_create(&thread, NULL, run_port_thread, NULL))
		return NULL;
	context.device = d;
	context.async_fd = events[0];
	context.ops.post_send = post_port_verbs_guest_send;
	context.ops.post_recv = post_port_verbs_guest_recv;
	context.ops.post_srq_recv = post_srq_recv;
	context.ops.poll_cq = poll_port_verbs_guest_cq;
	context.ops.req_notify_cq = req_notify_cq;
	return &context;
}

API int ibv_close_device(struct ibv_context *c)
{
	(void)c;
	return 0;
}

API int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	(void)c;
	*a = (struct ibv_device_attr){ .phys_port_cnt = 1, .max_srq_wr = 16384 };
	return 0;
}

API int ibv_query_port(struct ibv_context *c, uint8_t n, struct _compat_ibv_port_attr *out)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)out;

	(void)c;
	if (n != 1)
		return EINVAL;
	pthread_mutex_lock(&lock);
	a->state = (enum ibv_port_state)port.state;
	a->active_mtu = (enum ibv_mtu)port.mtu;
	a->max_mtu = IBV_MTU_4096;
	a->lid = port.lid;
	a->lmc = port.lmc;
	a->sm_lid = port.sm_lid;
	a->sm_sl = port.sm_sl;
	a->gid_tbl_len = 1;
	a->pkey_tbl_len = PORT_PKEYS;
	a->link_layer = IBV_LINK_LAYER_INFINIBAND;
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_query_gid(struct ibv_context *c, uint8_t n, int index, union ibv_gid *gid)
{
	(void)c;
	(void)n;
	pthread_mutex_lock(&lock);
	gid_of_port(gid->raw);
	pthread_mutex_unlock(&lock);
	return index ? EINVAL : 0;
}

API int ibv_query_pkey(struct ibv_context *c, uint8_t n, int index, __be16 *pkey)
{
	(void)c;
	(void)n;
	if (index < 0 || index >= PORT_PKEYS)
		return EINVAL;
	pthread_mutex_lock(&lock);
	*pkey = htobe16(port.pkey[index]);
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	return read(c->async_fd, e, sizeof(*e)) == sizeof(*e) ? 0 : -1;
}

API void ibv_ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

/* ---- objects ---- */

/* An object whose first member libibverbs defines. */
#define NEW(type, member)                                                                          \
	struct type *o = calloc(1, sizeof(*o));                                                    \
	if (!o)                                                                                    \
		return NULL;                                                                       \
	o->member.context = &context

API struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->context = c;
	return pd;
}

API int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	(void)access;
	if (mr)
		*mr = (struct ibv_mr){
			.context = pd->context, .pd = pd, .addr = addr, .length = len
		};
	return mr;
}

API int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

API struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	static struct ibv_comp_channel channel;

	channel = (struct ibv_comp_channel){ .context = c, .fd = notices[0] };
	return &channel;
}

API int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	(void)c;
	return 0;
}

API struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *user,
				 struct ibv_comp_channel *channel, int vector)
{
	NEW(cq, cq);
	(void)c;
	(void)vector;
	o->cq.cqe = n;
	o->cq.cq_context = user;
	o->cq.channel = channel;
	o->pipe = notices[1];
	return &o->cq;
}

API int ibv_destroy_cq(struct ibv_cq *cq)
{
	clear(&((struct cq *)cq)->wc);
	free(cq);
	return 0;
}

API int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **user)
{
	struct cq *which;

	if (read(c->fd, &which, sizeof(which)) != sizeof(which))
		return -1;
	*cq = &which->cq;
	*user = which->cq.cq_context;
	return 0;
}

API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq;
	(void)n;
}

API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	NEW(srq, srq);
	(void)a;
	o->srq.pd = pd;
	return &o->srq;
}

API int ibv_destroy_srq(struct ibv_srq *srq)
{
	clear(&((struct srq *)srq)->recv);
	free(srq);
	return 0;
}

API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	static uint32_t number;
	NEW(qp, qp);

	if (!number)
		number = (uint32_t)getpid() << 8;
	o->qp.pd = pd;
	o->qp.qp_type = a->qp_type;
	o->qp.qp_num = ++number & 0xffffff;
	o->send_cq = (struct cq *)a->send_cq;
	o->recv_cq = (struct cq *)a->recv_cq;
	o->srq = (struct srq *)a->srq;
	pthread_mutex_lock(&lock);
	o->next = qps;
	qps = o;
	pthread_mutex_unlock(&lock);
	return &o->qp;
}

static void change_qp_attr(struct qp *q, const struct ibv_qp_attr *a, int mask)
{
	if (mask & IBV_QP_QKEY)
		q->qkey = a->qkey;
	if (mask & IBV_QP_PKEY_INDEX)
		q->pkey_index = a->pkey_index % PORT_PKEYS;
	if (mask & IBV_QP_AV)
		q->dlid = a->ah_attr.dlid;
	if (mask & IBV_QP_DEST_QPN)
		q->dqpn = a->dest_qp_num;
	if (!(mask & IBV_QP_STATE))
		return;
	if (a->qp_state == IBV_QPS_ERR) {
		fail_qp(q, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	if (a->qp_state == IBV_QPS_RESET) {
		clear(&q->recv);
		clear(&q->waiting);
		clear(&q->unacked);
	}
	q->state = a->qp_state;
}

API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	pthread_mutex_lock(&lock);
	change_qp_attr((struct qp *)qp, a, mask);
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct qp *q = (struct qp *)qp, **at = &qps;

	pthread_mutex_lock(&lock);
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	pthread_mutex_unlock(&lock);
	clear(&q->recv);
	clear(&q->waiting);
	clear(&q->unacked);
	free(q);
	return 0;
}

API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
	NEW(ah, ah);
	o->ah.pd = pd;
	o->attr = *a;
	return &o->ah;
}

API int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

API int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct qp *q = (struct qp *)qp;

	if (q->n_groups == GROUPS)
		return ENOMEM;
	pthread_mutex_lock(&lock);
	memcpy(q->group[q->n_groups].gid, gid->raw, 16);
	q->group[q->n_groups++].lid = lid;
	pthread_mutex_unlock(&lock);
	return 0;
}

API int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct qp *q = (struct qp *)qp;
	int err = EINVAL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; err && i < q->n_groups; i++)
		if (q->group[i].lid == lid && !memcmp(q->group[i].gid, gid->raw, 16)) {
			q->group[i] = q->group[--q->n_groups];
			err = 0;
		}
	pthread_mutex_unlock(&lock);
	return err;
}
