/* SPDX-License-Identifier: BSD-2-Clause */
#include "ib_verbs_fake.h"
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TID_AT	  8
#define HOP_AT	  (56 + 47)
#define ATTR_AT	  16
#define METHOD_AT 3
#define STATUS_AT 4
#define AGENT_CM  0
#define AGENT_SA  1
#define AGENT_REP 2

struct fake fake[FAKES];
unsigned fake_devices;
struct ddps_sa *fake_sa;
uint8_t fake_hop;
bool fake_roce;
int fake_in_groups;
uint64_t fake_now;
static struct ibv_device *devices[FAKES + 1];

static struct fake *of(struct ibv_context *ctx)
{
	return (struct fake *)(void *)((char *)ctx - offsetof(struct fake, ctx));
}

/* Whether the function named is to fail now. */
static bool fails(struct fake *f, const char *name)
{
	if (!f->fail || strcmp(f->fail, name) != 0 || f->fail_after-- > 0)
		return false;
	f->fail_after = 0;
	errno = f->fail_errno;
	return true;
}

/* ---- devices ---- */

static struct ibv_device **get_device_list(int *n)
{
	for (unsigned i = 0; i < fake_devices; i++)
		devices[i] = &fake[i].dev;
	*n = (int)fake_devices;
	return devices;
}

static void free_device_list(struct ibv_device **list)
{
	(void)list;
}

static struct fake *of_dev(struct ibv_device *dev)
{
	return (struct fake *)(void *)((char *)dev - offsetof(struct fake, dev));
}

static const char *get_device_name(struct ibv_device *dev)
{
	return of_dev(dev)->name;
}

static __be64 get_device_guid(struct ibv_device *dev)
{
	return htobe64(0x1000 + (uint64_t)(of_dev(dev) - fake));
}

static struct ibv_context *open_device(struct ibv_device *dev)
{
	struct fake *f = of_dev(dev);

	if (fails(f, "open_device"))
		return NULL;
	f->n_obj++;
	f->ctx.async_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return &f->ctx;
}

static int close_device(struct ibv_context *ctx)
{
	of(ctx)->n_obj--;
	return close(ctx->async_fd);
}

static int query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->phys_port_cnt = 1;
	a->max_srq_wr = of(ctx)->max_srq_wr;
	return 0;
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *a)
{
	if (port != 1 || fails(of(ctx), "query_port"))
		return EINVAL;
	memcpy(a, &of(ctx)->port, sizeof(struct ibv_port_attr));
	return 0;
}

static int query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	if (port != 1 || index || fails(of(ctx), "query_gid"))
		return -1;
	*gid = of(ctx)->gid;
	return 0;
}

/* Index 0 is of version 1, 1 an IPv4 one, 2 as it should be. */
static int query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	struct fake *f = of(ctx);

	cr_assert_eq(size, sizeof(*e));
	cr_expect_eq(flags, 0);
	if (port != 1 || index > 3 || fails(f, "query_gid_ex"))
		return ENODATA;
	*e = (struct ibv_gid_entry){ .gid = f->gid,
				     .gid_index = index,
				     .port_num = port,
				     .gid_type =
					     index ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1,
				     .ndev_ifindex = 70 + index };
	if (index == 1) {
		memset(e->gid.raw, 0, 12);
		e->gid.raw[10] = e->gid.raw[11] = 0xff;
	} else if (index == 3) {
		e->gid.raw[0] = 0x20; /* a global address */
	}
	return 0;
}

static int netdev_group(int *fd, uint32_t ifindex, const uint8_t ip6[16], bool join)
{
	cr_expect_eq(ip6[0], 0xff);
	cr_expect_eq(ifindex, 72);
	cr_expect_eq(*fd, -1);
	if (fails(&fake[0], "netdev_group"))
		return fake[0].fail_errno;
	fake_in_groups += join ? 1 : -1;
	return 0;
}

static int query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	if (port != 1 || index >= 4)
		return -1;
	*pkey = htobe16(of(ctx)->pkey[index]);
	return 0;
}

/* ---- objects ---- */

static struct ibv_pd *alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd;

	if (fails(of(ctx), "alloc_pd"))
		return NULL;
	pd = calloc(1, sizeof(*pd));
	pd->context = ctx;
	of(ctx)->n_obj++;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	of(pd->context)->n_obj--;
	free(pd);
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr;

	(void)access;
	if (fails(of(pd->context), "reg_mr"))
		return NULL;
	mr = calloc(1, sizeof(*mr));
	*mr = (struct ibv_mr){ .context = pd->context, .addr = addr, .length = len, .lkey = 0x77 };
	of(pd->context)->n_mr++;
	return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
	of(mr->context)->n_mr--;
	free(mr);
	return 0;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *c;

	if (fails(of(ctx), "create_comp_channel"))
		return NULL;
	c = calloc(1, sizeof(*c));
	c->context = ctx;
	c->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	of(ctx)->n_obj++;
	return c;
}

static int destroy_comp_channel(struct ibv_comp_channel *c)
{
	of(c->context)->n_obj--;
	close(c->fd);
	free(c);
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *ctx, int n, void *user,
				struct ibv_comp_channel *c, int vector)
{
	struct fake *f = of(ctx);

	(void)n, (void)user, (void)c, (void)vector;
	if (fails(f, "create_cq"))
		return NULL;
	f->cq[f->n_cq].context = ctx;
	f->n_obj++;
	return &f->cq[f->n_cq++];
}

static int destroy_cq(struct ibv_cq *cq)
{
	struct fake *f = of(cq->context);

	f->n_obj--;
	f->n_wc[--f->n_cq] = 0;
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **user)
{
	(void)c, (void)cq, (void)user;
	errno = EAGAIN; /* it is polled in each turn */
	return -1;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq, (void)n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	return fails(of(cq->context), "req_notify_cq") ? EINVAL : 0;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct ibv_srq *s;

	cr_assert_leq(a->attr.max_wr, FAKE_WQES);
	if (fails(of(pd->context), "create_srq"))
		return NULL;
	s = calloc(1, sizeof(*s));
	s->context = pd->context;
	of(pd->context)->n_obj++;
	return s;
}

static int destroy_srq(struct ibv_srq *s)
{
	cr_expect_eq(of(s->context)->n_qp, 1, "only the UD queue pair is left");
	of(s->context)->n_obj--;
	of(s->context)->n_srq = 0;
	free(s);
	return 0;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct {
		struct ibv_ah ah;
		struct ibv_ah_attr attr;
	} * a;

	if (fails(of(pd->context), "create_ah"))
		return NULL;
	a = calloc(1, sizeof(*a));
	a->ah.context = pd->context;
	a->attr = *attr;
	of(pd->context)->n_ah++;
	return &a->ah;
}

static int destroy_ah(struct ibv_ah *ah)
{
	of(ah->context)->n_ah--;
	free(ah);
	return 0;
}

static const struct ibv_ah_attr *attr_of(const struct ibv_ah *ah)
{
	return (const void *)(ah + 1);
}

/* ---- queue pairs ---- */

static struct fake_qp *qp_of(struct ibv_qp *qp)
{
	return (struct fake_qp *)qp;
}

struct fake_qp *fake_qp_of(unsigned i, uint32_t qpn)
{
	for (unsigned k = 0; k < FAKE_QPS; k++)
		if (fake[i].qp[k].used && fake[i].qp[k].qp.qp_num == qpn)
			return &fake[i].qp[k];
	return NULL;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	static uint32_t number;
	struct fake *f = of(pd->context);
	struct fake_qp *q = f->qp;

	if (fails(f, "create_qp"))
		return NULL;
	while (q->used)
		q++;
	cr_assert_lt(q - f->qp, FAKE_QPS);
	memset(q, 0, sizeof(*q));
	q->used = true;
	q->init = *a;
	q->qp.context = pd->context;
	/* on RoCE those of all adapters are alike */
	q->qp.qp_num = 0x1000 + 0x10 * (fake_roce ? ++f->n_made : ++number);
	f->n_qp++;
	return &q->qp;
}

void fake_event(unsigned i, enum ibv_event_type type, struct ibv_qp *qp)
{
	struct ibv_async_event *e = &fake[i].event[fake[i].n_event++];

	cr_assert_leq(fake[i].n_event, FAKE_EVENTS);
	e->event_type = type;
	if (qp)
		e->element.qp = qp;
	else
		e->element.port_num = 1;
}

void fake_wc(unsigned i, unsigned cq, const struct ibv_wc *wc)
{
	cr_assert_lt(fake[i].n_wc[cq], 2 * FAKE_WQES);
	fake[i].wc[cq][fake[i].n_wc[cq]++] = *wc;
}

static unsigned index_of(const struct fake *f)
{
	return (unsigned)(f - fake);
}

static unsigned cq_index(const struct ibv_cq *cq)
{
	return (unsigned)(cq - of(cq->context)->cq);
}

static void flush(struct fake *f, struct fake_qp *q)
{
	for (unsigned k = 0; k < q->n_rx; k++) {
		const struct ibv_wc wc = { .wr_id = q->rx[k].wr_id,
					   .status = IBV_WC_WR_FLUSH_ERR,
					   .qp_num = q->qp.qp_num };

		fake_wc(index_of(f), cq_index(q->init.recv_cq), &wc);
	}
	q->n_rx = 0;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct fake_qp *q = qp_of(qp);
	struct fake *f = of(qp->context);

	if (fails(f, "modify_qp"))
		return f->fail_errno;
	if (mask & IBV_QP_QKEY && a->qkey >> 31 && !f->privileged)
		return EPERM;
	if (mask & IBV_QP_QKEY)
		q->attr.qkey = a->qkey;
	if (mask & IBV_QP_PKEY_INDEX)
		q->attr.pkey_index = a->pkey_index;
	if (mask & IBV_QP_AV)
		q->attr.ah_attr = a->ah_attr;
	if (mask & IBV_QP_DEST_QPN)
		q->attr.dest_qp_num = a->dest_qp_num;
	if (mask & IBV_QP_PATH_MTU)
		q->attr.path_mtu = a->path_mtu;
	if (mask & IBV_QP_TIMEOUT)
		q->attr.timeout = a->timeout;
	if (!(mask & IBV_QP_STATE))
		return 0;
	if (a->qp_state == IBV_QPS_RESET)
		q->n_rx = 0;
	if (a->qp_state == IBV_QPS_ERR && q->state != IBV_QPS_ERR) {
		flush(f, q);
		if (q->init.srq && !f->no_last_wqe)
			fake_event(index_of(f), IBV_EVENT_QP_LAST_WQE_REACHED, qp);
	}
	q->state = a->qp_state;
	return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	qp_of(qp)->used = false;
	of(qp->context)->n_qp--;
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *q = qp_of(qp);

	*bad = wr;
	if (fails(of(qp->context), "post_recv") || q->n_rx == FAKE_WQES)
		return ENOMEM;
	q->rx[q->n_rx++] = (struct fake_wqe){ wr->wr_id, (uint8_t *)(uintptr_t)wr->sg_list->addr,
					      wr->sg_list->length };
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake *f = of(srq->context);

	*bad = wr;
	if (fails(f, "post_srq_recv") || f->n_srq == FAKE_WQES)
		return ENOMEM;
	f->srq[f->n_srq++] = (struct fake_wqe){ wr->wr_id, (uint8_t *)(uintptr_t)wr->sg_list->addr,
						wr->sg_list->length };
	return 0;
}

static struct fake_wqe first(struct fake_wqe *w, unsigned *n)
{
	struct fake_wqe it = w[0];

	memmove(w, w + 1, --*n * sizeof(*w));
	return it;
}

/* ---- packets ---- */

static struct fake *node_at(uint16_t lid)
{
	for (unsigned i = 0; i < FAKES; i++)
		if (fake[i].port.lid == (lid & ~((1u << fake[i].port.lmc) - 1)))
			return &fake[i];
	return NULL;
}

/* Whom a way leads to: on RoCE by its GID. */
static struct fake *node_of(const struct ibv_ah_attr *a)
{
	for (unsigned i = 0; i < FAKES && fake_roce; i++)
		if (a->is_global && !memcmp(fake[i].gid.raw, a->grh.dgid.raw, 16))
			return &fake[i];
	return fake_roce ? NULL : node_at(a->dlid);
}

static bool is_group(const struct ibv_ah_attr *a)
{
	return fake_roce ? a->grh.dgid.raw[0] == 0xff : a->dlid >= 0xc000;
}

static bool attached(const struct fake *f, const struct ibv_ah_attr *a)
{
	for (unsigned i = 0; i < f->n_group; i++)
		if ((fake_roce || f->group[i].mlid == a->dlid) && a->is_global &&
		    !memcmp(f->group[i].mgid, a->grh.dgid.raw, 16))
			return true;
	return false;
}

static void ud_to(struct fake *from, const struct fake_qp *src, struct fake *to,
		  const struct ibv_send_wr *wr)
{
	const struct ibv_ah_attr *a = attr_of(wr->wr.ud.ah);
	struct ibv_wc wc = { .src_qp = src->qp.qp_num, .slid = from->port.lid };

	for (unsigned k = 0; k < FAKE_QPS; k++) {
		struct fake_qp *q = &to->qp[k];
		struct fake_wqe w;

		if (!q->used || q->init.qp_type != IBV_QPT_UD || q->state < IBV_QPS_RTR ||
		    q->state > IBV_QPS_RTS || !q->n_rx || q->attr.qkey != wr->wr.ud.remote_qkey ||
		    (!is_group(a) && q->qp.qp_num != wr->wr.ud.remote_qpn))
			continue;
		w = first(q->rx, &q->n_rx);
		memset(w.at, 0xff, 40); /* says "a group" to whoever looks at it without a GRH */
		if (a->is_global) {
			wc.wc_flags = IBV_WC_GRH;
			memcpy(w.at + 8, from->gid.raw, 16);
			memcpy(w.at + 24, a->grh.dgid.raw, 16);
		}
		wc.wr_id = w.wr_id;
		wc.qp_num = q->qp.qp_num;
		wc.byte_len = 40 + wr->sg_list->length;
		memcpy(w.at + 40, (void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
		fake_wc(index_of(to), cq_index(q->init.recv_cq), &wc);
	}
}

static enum ibv_wc_status rc_send(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	struct fake *to = node_of(&q->attr.ah_attr);
	struct fake_qp *peer = to ? fake_qp_of(index_of(to), q->attr.dest_qp_num) : NULL;
	struct fake_wqe w;
	struct ibv_wc wc = { .byte_len = wr->sg_list->length };

	if (!peer || peer->state < IBV_QPS_RTR || peer->state > IBV_QPS_RTS)
		return IBV_WC_RETRY_EXC_ERR;
	if (!to->n_srq)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	w = first(to->srq, &to->n_srq);
	cr_assert_leq(wr->sg_list->length, w.len);
	memcpy(w.at, (void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
	wc.wr_id = w.wr_id;
	wc.qp_num = peer->qp.qp_num;
	fake_wc(index_of(to), cq_index(peer->init.recv_cq), &wc);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status ud_post(struct fake *f, struct fake_qp *q, const struct ibv_send_wr *wr)
{
	enum ibv_wc_status status = f->ud_status;
	const struct ibv_ah_attr *a = attr_of(wr->wr.ud.ah);
	struct fake *to = is_group(a) ? NULL : node_of(a);

	f->ud_status = IBV_WC_SUCCESS;
	if (status)
		return status;
	if (to)
		ud_to(f, q, to, wr);
	for (unsigned i = 0; i < FAKES && is_group(a); i++)
		if (attached(&fake[i], a))
			ud_to(f, q, &fake[i], wr); /* the sender, too */
	return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake *f = of(qp->context);
	struct fake_qp *q = qp_of(qp);
	struct ibv_wc wc = { .wr_id = wr->wr_id, .qp_num = qp->qp_num };

	*bad = wr;
	cr_assert_eq(wr->sg_list->lkey, 0x77);
	if (fails(f, "post_send"))
		return ENOMEM;
	if (f->stuck)
		return 0;
	if (q->state != IBV_QPS_RTS)
		wc.status = IBV_WC_WR_FLUSH_ERR;
	else if (q->init.qp_type == IBV_QPT_UD)
		wc.status = ud_post(f, q, wr);
	else if (f->rc_status)
		wc.status = f->rc_status, f->rc_status = IBV_WC_SUCCESS;
	else
		wc.status = rc_send(q, wr);
	fake_wc(index_of(f), cq_index(q->init.send_cq), &wc);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fake *f = of(cq->context);
	unsigned c = cq_index(cq), k = f->n_wc[c] < (unsigned)n ? f->n_wc[c] : (unsigned)n;

	memcpy(wc, f->wc[c], k * sizeof(*wc));
	memmove(f->wc[c], f->wc[c] + k, (f->n_wc[c] -= k) * sizeof(*wc));
	return (int)k;
}

/* ---- groups, events ---- */

static int attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct fake *f = of(qp->context);

	if (fails(f, "attach_mcast"))
		return f->fail_errno;
	cr_assert_lt(f->n_group, FAKE_GROUPS);
	memcpy(f->group[f->n_group].mgid, gid->raw, 16);
	f->group[f->n_group++].mlid = lid;
	return 0;
}

static int detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct fake *f = of(qp->context);

	for (unsigned i = 0; i < f->n_group; i++)
		if (f->group[i].mlid == lid && !memcmp(f->group[i].mgid, gid->raw, 16)) {
			f->group[i] = f->group[--f->n_group];
			return 0;
		}
	cr_expect(false, "a group that was not attached");
	return EINVAL;
}

static int get_async_event(struct ibv_context *ctx, struct ibv_async_event *e)
{
	struct fake *f = of(ctx);

	if (!f->n_event) {
		errno = EAGAIN;
		return -1;
	}
	*e = f->event[0];
	memmove(f->event, f->event + 1, --f->n_event * sizeof(*f->event));
	return 0;
}

static void ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

/* ---- MADs ---- */

static int my_init(void)
{
	return fails(&fake[0], "umad_init") ? -1 : 0;
}

static int my_open(const char *name, int port)
{
	for (unsigned i = 0; i < fake_devices; i++)
		if (!strcmp(name, fake[i].name) && port == 1) {
			if (fails(&fake[i], "umad_open_port"))
				return -EIO;
			fake[i].n_obj++;
			return (int)i;
		}
	errno = ENODEV;
	return -EIO;
}

static int my_close(int fd)
{
	fake[fd].n_obj--;
	return 0;
}

static int my_fd(int fd)
{
	return fake[fd].ctx.async_fd;
}

static int my_register(int fd, int class, int version, uint8_t rmpp, long methods[])
{
	struct fake *f = &fake[fd];

	(void)version, (void)rmpp;
	if (fails(f, "umad_register"))
		return -EPERM;
	if (class == 7)
		return AGENT_CM;
	return !methods ? AGENT_SA : f->no_reports ? -EINVAL : AGENT_REP;
}

static size_t my_size(void)
{
	return sizeof(struct ib_user_mad);
}

static void *my_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

static ib_mad_addr_t *my_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

static int my_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

static int my_set_addr(void *umad, int lid, int qp, int sl, int qkey)
{
	ib_mad_addr_t *a = my_addr(umad);

	a->lid = htobe16((uint16_t)lid);
	a->qpn = htobe32((uint32_t)qp);
	a->sl = (uint8_t)sl;
	a->qkey = htobe32((uint32_t)qkey);
	return 0;
}

static int my_set_pkey(void *umad, int index)
{
	my_addr(umad)->pkey_index = (uint16_t)index;
	return 0;
}

static void mad_to(struct fake *to, int agent, const struct fake *from, const ib_mad_addr_t *a,
		   const uint8_t *mad)
{
	unsigned at = to->n_mad++;

	cr_assert_lt(at, FAKE_MADS);
	memset(&to->mad[at], 0, sizeof(to->mad[at]));
	to->mad[at].agent = agent;
	to->mad[at].addr = *a;
	to->mad[at].addr.lid = htobe16(from ? from->port.lid : FAKE_SA_LID);
	if (from && a->grh_present) /* the sender's, for an answer */
		memcpy(to->mad[at].addr.gid, from->gid.raw, 16);
	memcpy(to->mad[at].mad, mad, DDPS_CM_MAD_LEN);
}

static void from_sa(void *user, uint16_t lid, const uint8_t mad[DDPS_CM_MAD_LEN])
{
	static const ib_mad_addr_t a;
	struct fake *to = node_at(lid);
	uint8_t copy[DDPS_CM_MAD_LEN];

	(void)user;
	memcpy(copy, mad, sizeof(copy));
	if (copy[METHOD_AT] == DDPS_SA_GET_RESP && copy[ATTR_AT + 1] == DDPS_SA_PATH_RECORD)
		copy[HOP_AT] = fake_hop;
	if (to)
		mad_to(to, copy[METHOD_AT] == DDPS_SA_REPORT ? AGENT_REP : AGENT_SA, NULL, &a,
		       copy);
}

static int my_send(int fd, int agent, void *umad, int len, int timeout_ms, int retries)
{
	struct fake *f = &fake[fd], *to;
	struct ib_user_mad *m = umad;
	uint8_t mad[DDPS_CM_MAD_LEN];
	uint16_t lid = be16toh(m->addr.lid);
	struct ibv_ah_attr a = { .dlid = lid, .is_global = m->addr.grh_present };

	memcpy(a.grh.dgid.raw, m->addr.gid, 16);
	cr_assert_eq(len, DDPS_CM_MAD_LEN);
	cr_expect_eq(retries, 0);
	if (fails(f, "umad_send"))
		return -EIO;
	memcpy(mad, m->data, sizeof(mad));
	f->last_to = m->addr;
	if (f->stuck)
		return 0;
	if (agent == AGENT_SA) {
		cr_expect_gt(timeout_ms, 0, "the kernel drops the answer otherwise");
		memcpy(mad + TID_AT, (uint8_t[4]){ 0xab, 0xcd, 0, 1 }, 4); /* as the kernel does */
	}
	if (lid == FAKE_SA_LID && fake_sa && agent != AGENT_CM)
		ddps_sa_rx(fake_sa, f->port.lid, mad, fake_now);
	to = agent == AGENT_CM ? node_of(&a) : NULL;
	if (to)
		mad_to(to, AGENT_CM, f, &m->addr, mad);
	return 0;
}

static int my_recv(int fd, void *umad, int *len, int timeout_ms)
{
	struct fake *f = &fake[fd];
	struct ib_user_mad *m = umad;
	int agent = f->mad[0].agent;

	cr_assert_eq(timeout_ms, 0);
	if (!f->n_mad) {
		errno = EWOULDBLOCK;
		return -EWOULDBLOCK;
	}
	m->addr = f->mad[0].addr;
	m->status = f->mad[0].status;
	memcpy(m->data, f->mad[0].mad, DDPS_CM_MAD_LEN);
	*len = DDPS_CM_MAD_LEN;
	memmove(f->mad, f->mad + 1, --f->n_mad * sizeof(*f->mad));
	return agent;
}

const struct ddps_verbs_lib fake_lib = {
#define DDPS_X(name) .name = name,
	DDPS_VERBS_FUNCTIONS(DDPS_X)
#undef DDPS_X
		.post_send = post_send,
	.query_gid_ex = query_gid_ex,
	.netdev_group = netdev_group,
	.post_recv = post_recv,
	.post_srq_recv = post_srq_recv,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	.umad = { .umad_init = my_init,
		  .umad_open_port = my_open,
		  .umad_close_port = my_close,
		  .umad_get_fd = my_fd,
		  .umad_register = my_register,
		  .umad_size = my_size,
		  .umad_get_mad = my_mad,
		  .umad_get_mad_addr = my_addr,
		  .umad_status = my_status,
		  .umad_set_addr = my_set_addr,
		  .umad_set_pkey = my_set_pkey,
		  .umad_send = my_send,
		  .umad_recv = my_recv },
};

/* ---- life ---- */

void fake_sa_start(uint32_t qkey)
{
	struct ddps_sa_config c = { .gid = { 0xfe, 0x80, [15] = FAKE_SA_LID },
				    .lid = FAKE_SA_LID,
				    .pkey = { 0xffff },
				    .qkey = qkey,
				    .mtu = 4,
				    .rate = 7,
				    .life = 18,
				    .scope = 2,
				    .send = from_sa };

	fake_sa = ddps_sa_new(&c);
	cr_assert(fake_sa);
}

void fake_sa_stop(void)
{
	ddps_sa_free(fake_sa);
	fake_sa = NULL;
}

void fake_init(void)
{
	memset(fake, 0, sizeof(fake));
	fake_devices = FAKES;
	fake_hop = 0;
	fake_roce = false;
	fake_in_groups = 0;
	fake_now = 1;
	for (unsigned i = 0; i < FAKES; i++) {
		struct fake *f = &fake[i];

		snprintf(f->name, sizeof(f->name), "fake%u", i);
		f->port = (struct ibv_port_attr){ .state = IBV_PORT_ACTIVE,
						  .active_mtu = IBV_MTU_4096,
						  .gid_tbl_len = 1,
						  .pkey_tbl_len = 4,
						  .lid = (uint16_t)(8 * (i + 1)),
						  .sm_lid = FAKE_SA_LID,
						  .link_layer = IBV_LINK_LAYER_INFINIBAND };
		f->gid.raw[0] = 0xfe;
		f->gid.raw[1] = 0x80;
		f->gid.raw[15] = (uint8_t)(0x10 + i);
		f->pkey[0] = 0xffff;
		f->max_srq_wr = FAKE_WQES;
	}
	fake_sa_start(0x0b1b);
}

void fake_fini(void)
{
	fake_sa_stop();
	cr_expect_eq(fake_in_groups, 0, "%d groups of network devices are left", fake_in_groups);
	for (unsigned i = 0; i < FAKES; i++) {
		cr_expect_eq(fake[i].n_obj, 0, "%u objects of adapter %u are left", fake[i].n_obj,
			     i);
		cr_expect_eq(fake[i].n_mr + fake[i].n_ah + fake[i].n_qp + fake[i].n_group, 0,
			     "%u regions, %u address handles, %u queue pairs, %u groups are left",
			     fake[i].n_mr, fake[i].n_ah, fake[i].n_qp, fake[i].n_group);
	}
}

void fake_make_roce(void)
{
	fake_sa_stop();
	fake_roce = true;
	for (unsigned i = 0; i < FAKES; i++) {
		fake[i].port.link_layer = IBV_LINK_LAYER_ETHERNET;
		fake[i].port.lid = fake[i].port.sm_lid = 0;
		fake[i].dev.transport_type = IBV_TRANSPORT_IB;
	}
}
