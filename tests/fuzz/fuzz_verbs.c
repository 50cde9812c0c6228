/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of an adapter above an adapter and a fabric of this file's: completions of what was
 * posted and of what was not, with any status and length; MADs and answers of the administration
 * good, spoilt and made up; events of any kind; tables, LIDs and states that change; calls that fail.
 * What an interface asks comes in between, also from inside what it is told.
 *
 * The adapter has each buffer once, and no more of them than its queues hold; address handles in use
 * stay; what goes up fits; and nothing is left at the end.
 */
#include "fuzz.h"
#include "ipoib_cm/verbs/vport_in.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define STEPS_MAX 300
#define QPS	  12
#define MAX_QPS	  6
#define WQES	  1200
#define WCS	  64
#define MADS	  32
#define EVENTS	  8
#define TOKENS	  8
#define MS	  UINT64_C(1000000)
#define CM	  0
#define SA	  1
#define REPORT	  2
#define SM	  9

enum { POSTED_UD_IN, POSTED_UD_OUT, POSTED_MSG_IN, POSTED_MSG_OUT };

struct wqe {
	uint64_t wr_id;
	uint8_t *at;
	uint32_t len;
	int kind, qp;
	struct ibv_ah *ah;
};

static struct world {
	struct ibv_context ctx;
	struct ibv_device dev;
	struct ibv_pd pd;
	struct ibv_srq srq;
	struct ibv_comp_channel channel;
	struct ibv_cq cq[2];
	unsigned n_cq;
	struct {
		struct ibv_qp qp;
		bool used, ud;
		unsigned in, out; /* posted */
		uint32_t rx_mtu;
	} q[QPS];
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint16_t pkey[3];
	struct wqe posted[WQES];
	unsigned n_posted, srq_in, srq_max;
	uint64_t ghost; /* a work request of before */
	struct ibv_wc wc[2][WCS];
	unsigned n_wc[2];
	struct ibv_async_event ev[EVENTS];
	unsigned n_ev;
	struct {
		int agent, status, len;
		ib_mad_addr_t from;
		uint8_t mad[DDPS_CM_MAD_LEN];
	} mad[MADS];
	unsigned n_mad;
	uint8_t query[DDPS_CM_MAD_LEN]; /* the latest one */
	unsigned n_ah, n_mr, n_group, n_netdev, n_obj;
	unsigned fail; /* so many calls from here one fails; 0: none */
	int null;
} w;

static struct ddps_ib_verbs *v;
static uint64_t now;
static uint32_t rc[MAX_QPS]; /* that the interface has; 0: none */
static ddps_cm_addr token[TOKENS];
static struct ddps_ipoib_path path;
static unsigned n_token, inside; /* inside: what to do in the next call up */

static bool fails(void)
{
	if (!w.fail || --w.fail)
		return false;
	errno = ENOMEM;
	return true;
}

/* ---- the adapter ---- */

static struct ibv_device *list[2] = { &w.dev };

static struct ibv_device **get_device_list(int *n)
{
	*n = 1;
	return list;
}

static void free_device_list(struct ibv_device **l)
{
	FUZZ_CHECK(l == list);
}

static const char *get_device_name(struct ibv_device *d)
{
	return d == &w.dev ? "hostile" : "";
}

static __be64 get_device_guid(struct ibv_device *d)
{
	return d == &w.dev ? htobe64(7) : 0;
}

static struct ibv_context *open_device(struct ibv_device *d)
{
	FUZZ_CHECK(d == &w.dev);
	w.ctx.async_fd = w.null;
	w.n_obj++;
	return &w.ctx;
}

static int close_device(struct ibv_context *c)
{
	FUZZ_CHECK(c == &w.ctx);
	w.n_obj--;
	return 0;
}

static int query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->phys_port_cnt = 1;
	a->max_srq_wr = 300;
	return c == &w.ctx ? 0 : EINVAL;
}

static int query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *a)
{
	FUZZ_CHECK(c == &w.ctx && port == 1);
	if (fails())
		return EINVAL;
	memcpy(a, &w.port, sizeof(w.port));
	return 0;
}

static int query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	FUZZ_CHECK(c == &w.ctx && port == 1 && !index);
	*gid = w.gid;
	return fails() ? -1 : 0;
}

static int query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
			struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	FUZZ_CHECK(c == &w.ctx && port == 1 && !flags && size == sizeof(*e));
	*e = (struct ibv_gid_entry){ .gid = w.gid, .gid_type = IBV_GID_TYPE_ROCE_V2 };
	return index || fails() ? ENODATA : 0;
}

static int query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
	FUZZ_CHECK(c == &w.ctx && port == 1 && index >= 0);
	if (index >= 3 || fails())
		return -1;
	*pkey = htobe16(w.pkey[index]);
	return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *c)
{
	w.pd.context = c;
	w.n_obj++;
	return &w.pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	FUZZ_CHECK(pd == &w.pd && !w.n_mr && !w.n_ah);
	w.n_obj--;
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t len, int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	FUZZ_CHECK(pd == &w.pd && mr && at && len && access == IBV_ACCESS_LOCAL_WRITE);
	w.n_mr++;
	return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	w.n_mr--;
	return 0;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *c)
{
	w.channel = (struct ibv_comp_channel){ .context = c, .fd = w.null };
	w.n_obj++;
	return &w.channel;
}

static int destroy_comp_channel(struct ibv_comp_channel *c)
{
	FUZZ_CHECK(c == &w.channel);
	w.n_obj--;
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *c, int n, void *user,
				struct ibv_comp_channel *channel, int vector)
{
	FUZZ_CHECK(c == &w.ctx && n > 0 && !user && channel == &w.channel && !vector);
	w.n_obj++;
	return &w.cq[w.n_cq++];
}

static int destroy_cq(struct ibv_cq *cq)
{
	FUZZ_CHECK(cq == &w.cq[0] || cq == &w.cq[1]);
	w.n_obj--;
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **user)
{
	(void)c, (void)cq, (void)user;
	errno = EAGAIN;
	return -1;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	(void)cq, (void)n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)cq, (void)solicited;
	return 0;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	FUZZ_CHECK(pd == &w.pd && a->attr.max_wr && a->attr.max_wr <= 300);
	w.srq_max = a->attr.max_wr;
	w.n_obj++;
	return &w.srq;
}

static void drop_posted(int kind, int qp)
{
	for (unsigned i = w.n_posted; i-- > 0;)
		if (w.posted[i].kind == kind && w.posted[i].qp == qp) {
			w.ghost = w.posted[i].wr_id;
			w.posted[i] = w.posted[--w.n_posted];
		}
}

static int destroy_srq(struct ibv_srq *s)
{
	FUZZ_CHECK(s == &w.srq);
	drop_posted(POSTED_MSG_IN, -1);
	w.n_obj--;
	return 0;
}

static int index_of(const struct ibv_qp *qp)
{
	for (int i = 0; i < QPS; i++)
		if (&w.q[i].qp == qp && w.q[i].used)
			return i;
	fuzz_fail(__FILE__, __LINE__, "a queue pair that there is not");
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	FUZZ_CHECK(pd == &w.pd && a->sq_sig_all);
	if (fails())
		return NULL;
	for (int i = 0; i < QPS; i++)
		if (!w.q[i].used) {
			memset(&w.q[i], 0, sizeof(w.q[i]));
			w.q[i].used = true;
			w.q[i].ud = a->qp_type == IBV_QPT_UD;
			w.q[i].qp.qp_num = (uint32_t)(0x100 + i); /* the same again and again */
			w.n_obj++;
			return &w.q[i].qp;
		}
	fuzz_fail(__FILE__, __LINE__, "more queue pairs than were allowed");
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	int i = index_of(qp);

	FUZZ_CHECK(!(mask & IBV_QP_AV) || a->ah_attr.port_num == 1);
	FUZZ_CHECK(!(mask & IBV_QP_PATH_MTU) || (a->path_mtu >= 1 && a->path_mtu <= 5));
	FUZZ_CHECK(!(mask & IBV_QP_SQ_PSN) || a->sq_psn <= 0xffffff || !w.q[i].ud);
	if (fails())
		return EINVAL;
	if (mask & IBV_QP_STATE && a->qp_state == IBV_QPS_RESET) {
		drop_posted(POSTED_UD_IN, i);
		drop_posted(POSTED_UD_OUT, i);
		w.q[i].in = w.q[i].out = 0;
	}
	return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	int i = index_of(qp);

	for (int k = POSTED_UD_IN; k <= POSTED_MSG_OUT; k++)
		drop_posted(k, i);
	w.q[i].used = false;
	w.n_obj--;
	return 0;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
	struct ibv_ah *ah;

	FUZZ_CHECK(pd == &w.pd && a->port_num == 1 && w.n_ah < VP_AHS);
	if (fails())
		return NULL;
	ah = calloc(1, sizeof(*ah));
	w.n_ah++;
	return ah;
}

static int destroy_ah(struct ibv_ah *ah)
{
	for (unsigned i = 0; i < w.n_posted; i++)
		FUZZ_CHECK(w.posted[i].ah != ah);
	free(ah);
	w.n_ah--;
	return 0;
}

/* Nobody else has that buffer. */
static void post(const struct wqe *e)
{
	FUZZ_CHECK(w.n_posted < WQES && e->at);
	for (unsigned i = 0; i < w.n_posted; i++)
		FUZZ_CHECK(w.posted[i].at != e->at && w.posted[i].wr_id != e->wr_id);
	w.posted[w.n_posted++] = *e;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int i = index_of(qp);
	struct wqe e = { wr->wr_id,
			 (uint8_t *)(uintptr_t)wr->sg_list->addr,
			 wr->sg_list->length,
			 w.q[i].ud ? POSTED_UD_OUT : POSTED_MSG_OUT,
			 i,
			 w.q[i].ud ? wr->wr.ud.ah : NULL };

	*bad = wr;
	if (fails())
		return ENOMEM;
	FUZZ_CHECK(wr->num_sge == 1 && wr->opcode == IBV_WR_SEND && !wr->next);
	FUZZ_CHECK(w.q[i].out++ < (w.q[i].ud ? VP_UD_TX : VP_QP_TX));
	FUZZ_CHECK(e.len <= (w.q[i].ud ? 4096u : VP_MSG_LEN));
	post(&e);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int i = index_of(qp);
	struct wqe e = { wr->wr_id,
			 (uint8_t *)(uintptr_t)wr->sg_list->addr,
			 wr->sg_list->length,
			 POSTED_UD_IN,
			 i,
			 NULL };

	*bad = wr;
	if (fails())
		return ENOMEM;
	FUZZ_CHECK(w.q[i].ud && w.q[i].in++ < VP_UD_RX);
	post(&e);
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct wqe e = { wr->wr_id,
			 (uint8_t *)(uintptr_t)wr->sg_list->addr,
			 wr->sg_list->length,
			 POSTED_MSG_IN,
			 -1,
			 NULL };

	*bad = wr;
	if (fails())
		return ENOMEM;
	FUZZ_CHECK(srq == &w.srq && w.srq_in++ < w.srq_max);
	post(&e);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	unsigned c = cq == &w.cq[1], k = w.n_wc[c] < (unsigned)n ? w.n_wc[c] : (unsigned)n;

	memcpy(wc, w.wc[c], k * sizeof(*wc));
	memmove(w.wc[c], w.wc[c] + k, (w.n_wc[c] -= k) * sizeof(*wc));
	return (int)k;
}

static int attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	FUZZ_CHECK(w.q[index_of(qp)].ud && gid->raw[0] == 0xff && lid >= DDPS_MLID_FIRST);
	if (fails())
		return ENOMEM;
	FUZZ_CHECK(w.n_group++ < DDPS_SAC_GROUPS);
	return 0;
}

static int detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	FUZZ_CHECK(w.q[index_of(qp)].ud && gid->raw[0] == 0xff && lid && w.n_group-- > 0);
	return 0;
}

static int netdev_group(int *fd, uint32_t ifindex, const uint8_t ip6[16], bool join)
{
	FUZZ_CHECK(*fd == -1 && !ifindex && ip6[0] == 0xff);
	if (join && fails())
		return ENODEV;
	w.n_netdev += join ? 1u : -1u;
	FUZZ_CHECK(w.n_netdev <= DDPS_SAC_GROUPS);
	return 0;
}

static int get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	FUZZ_CHECK(c == &w.ctx);
	if (!w.n_ev)
		return -1;
	*e = w.ev[0];
	memmove(w.ev, w.ev + 1, --w.n_ev * sizeof(*w.ev));
	return 0;
}

static void ack_async_event(struct ibv_async_event *e)
{
	(void)e;
}

/* ---- MADs ---- */

static int my_init(void)
{
	return 0;
}

static int my_open(const char *name, int port)
{
	FUZZ_CHECK(!strcmp(name, "hostile") && port == 1);
	w.n_obj++;
	return 5;
}

static int my_close(int fd)
{
	FUZZ_CHECK(fd == 5);
	w.n_obj--;
	return 0;
}

static int my_fd(int fd)
{
	return fd == 5 ? w.null : -1;
}

static int my_register(int fd, int class, int version, uint8_t rmpp, long methods[])
{
	FUZZ_CHECK(fd == 5 && version == 2 && !rmpp);
	return class == 7 ? CM : methods ? REPORT : SA;
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
	FUZZ_CHECK(qp == 1 && (uint32_t)qkey == DDPS_CM_QKEY && sl >= 0 && sl < 16);
	my_addr(umad)->lid = htobe16((uint16_t)lid);
	return 0;
}

static int my_set_pkey(void *umad, int index)
{
	my_addr(umad)->pkey_index = (uint16_t)index;
	return 0;
}

static int my_send(int fd, int agent, void *umad, int len, int timeout_ms, int retries)
{
	struct ib_user_mad *m = umad;

	FUZZ_CHECK(fd == 5 && len == DDPS_CM_MAD_LEN && !retries && timeout_ms >= 0);
	FUZZ_CHECK(agent >= CM && agent <= REPORT && (agent == SA) == !!timeout_ms);
	if (agent == SA)
		memcpy(w.query, m->data, sizeof(w.query));
	return fails() ? -EIO : 0;
}

static int my_recv(int fd, void *umad, int *len, int timeout_ms)
{
	struct ib_user_mad *m = umad;
	int agent = w.mad[0].agent;

	FUZZ_CHECK(fd == 5 && *len == DDPS_CM_MAD_LEN && !timeout_ms);
	if (!w.n_mad)
		return -EWOULDBLOCK;
	m->addr = w.mad[0].from;
	m->status = (uint32_t)w.mad[0].status;
	memcpy(m->data, w.mad[0].mad, DDPS_CM_MAD_LEN);
	*len = w.mad[0].len;
	memmove(w.mad, w.mad + 1, --w.n_mad * sizeof(*w.mad));
	return agent;
}

static const struct ddps_verbs_lib lib = {
#define DDPS_X(name) .name = name,
	DDPS_VERBS_FUNCTIONS(DDPS_X)
#undef DDPS_X
		.post_send = post_send,
	.post_recv = post_recv,
	.post_srq_recv = post_srq_recv,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	.query_gid_ex = query_gid_ex,
	.netdev_group = netdev_group,
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

/* ---- what goes up, and what is asked from inside ---- */

static void ask_inside(uint32_t qpn)
{
	struct ddps_ipoib_port *p = ddps_ib_verbs_port(v);
	unsigned what = inside;

	inside = 0;
	if (what & 1)
		p->ops->qp_destroy(p, qpn ? qpn : rc[what % MAX_QPS]);
	if (what & 2)
		p->ops->qp_stop(p, qpn ? qpn : rc[what % MAX_QPS]);
	if (what & 4)
		(void)p->ops->mad_send(p, token[what % TOKENS], w.query);
	if (what & 8)
		(void)p->ops->resolve(p, w.gid.raw);
}

static void on_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame, size_t len,
		  uint64_t t)
{

	FUZZ_CHECK(user == &w && from && frame && t == now && len <= 4096);
	ask_inside(0);
}

static void on_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t t)
{
	FUZZ_CHECK(user == &w && t == now && len == DDPS_CM_MAD_LEN &&
		   ((const uint8_t *)mad)[1] == 7);
	token[n_token++ % TOKENS] = from;
	ask_inside(0);
}

static void on_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t t)
{
	FUZZ_CHECK(user == &w && t == now && frame && qpn >= 0x100 && qpn < 0x100 + QPS);
	FUZZ_CHECK(w.q[qpn - 0x100].used && !w.q[qpn - 0x100].ud);
	FUZZ_CHECK(len <= w.q[qpn - 0x100].rx_mtu);
	ask_inside(qpn);
}

static void on_qp_error(void *user, uint32_t qpn, int err, uint64_t t)
{
	FUZZ_CHECK(user == &w && t == now && err < 0 && w.q[qpn - 0x100].used);
	ask_inside(qpn);
}

static void on_path(void *user, const uint8_t *gid, const struct ddps_ipoib_path *p, uint64_t t)
{
	FUZZ_CHECK(user == &w && gid && t == now);
	FUZZ_CHECK(!p || (p->addr && p->mtu >= 1 && p->mtu <= 5 && p->life <= 31));
	if (p)
		path = *p;
	ask_inside(0);
}

static void on_joined(void *user, const uint8_t *mgid, int err, uint32_t mtu, uint64_t t)
{
	FUZZ_CHECK(user == &w && mgid[0] == 0xff && t == now && !err == !!mtu && mtu <= 4096);
	ask_inside(0);
}

static void on_link(void *user, bool up, uint64_t t)
{
	FUZZ_CHECK(user == &w && t == now && up == ddps_ib_verbs_info(v)->active);
}

static const struct ddps_ipoib_up up = { sizeof(up),  on_ud,   on_mad,	  on_qp,
					 on_qp_error, on_path, on_joined, on_link };

/* ---- the fabric ---- */

static void completion(struct ddps_rbuf *in)
{
	const unsigned what = ddps_rbuf_u8(in), which = ddps_rbuf_u16(in);
	const unsigned status = what & 3 ? IBV_WC_SUCCESS : ddps_rbuf_u8(in) % 22;
	const uint32_t len = what & 4 ? ddps_rbuf_u32(in) : ddps_rbuf_u16(in) % 5000;
	struct ibv_wc wc = { .status = (enum ibv_wc_status)status,
			     .byte_len = len,
			     .qp_num = 0x100u + ddps_rbuf_u8(in) % (QPS + 1),
			     .src_qp = 0x100u + (what >> 6),
			     .slid = what & 8 ? w.port.lid : 77,
			     .wc_flags = what & 16 ? IBV_WC_GRH : 0 };
	struct wqe e = { .kind = POSTED_UD_OUT };
	unsigned c;

	if (!w.n_posted || (what & 0x63) == 0x20) {
		wc.wr_id = what & 4 ? w.ghost : (uint64_t)which << 32 | which << 8; /* nobody's */
	} else {
		e = w.posted[which % w.n_posted];
		w.posted[which % w.n_posted] = w.posted[w.n_posted - 1];
		w.n_posted--;
		w.ghost = wc.wr_id = e.wr_id;
		if (e.kind == POSTED_MSG_IN)
			w.srq_in--;
		else if (e.kind == POSTED_UD_IN)
			w.q[e.qp].in--;
		else
			w.q[e.qp].out--;
		if (e.kind == POSTED_UD_IN || e.kind == POSTED_MSG_IN) {
			size_t got;
			const uint8_t *octets = fuzz_some(in, 60, &got);

			if (got)
				memcpy(e.at, octets, got);
			if (e.kind == POSTED_UD_IN && what & 0x40)
				memcpy(e.at + 8, w.gid.raw, 16);
		}
	}
	c = e.kind == POSTED_UD_OUT || e.kind == POSTED_MSG_OUT; /* tx_cq is made second */
	if (w.n_wc[c] < WCS)
		w.wc[c][w.n_wc[c]++] = wc;
}

/* The answer to the latest query, spoilt or not. */
static void answer(uint8_t *m, unsigned what, struct ddps_rbuf *in)
{
	memcpy(m, w.query, DDPS_CM_MAD_LEN);
	m[3] = DDPS_SA_GET_RESP;
	if (m[17] == DDPS_SA_MCMEMBER_RECORD) {
		struct ddps_sa_mcm r;

		ddps_sa_mcm_get(&r, m);
		r.qkey = what & 16 ? 0x80000b1b : 0x0b1b;
		r.mlid = (uint16_t)(0xc000 + (what >> 5));
		r.mtu = 0x84;
		r.rate = 0x83;
		r.life = 0x92;
		ddps_sa_mcm_put(m, &r);
	} else if (m[17] == DDPS_SA_PATH_RECORD) {
		struct ddps_sa_pr r;

		ddps_sa_pr_get(&r, m);
		r.dlid = (uint16_t)(1 + (what >> 5));
		r.slid = w.port.lid;
		r.hop = what & 16 ? 4 : 0;
		r.mtu = 0x84;
		r.life = 0x92;
		ddps_sa_pr_put(m, &r);
	}
	for (unsigned i = 0; i < (what & 3); i++) {
		unsigned at = ddps_rbuf_u8(in);

		m[at] ^= ddps_rbuf_u8(in);
	}
}

static void mad(struct ddps_rbuf *in)
{
	unsigned kind = ddps_rbuf_u8(in), what = ddps_rbuf_u8(in);
	size_t got;
	const uint8_t *octets;

	if (w.n_mad == MADS)
		return;
	memset(&w.mad[w.n_mad], 0, sizeof(w.mad[0]));
	w.mad[w.n_mad].agent = kind & 3;
	w.mad[w.n_mad].status = (kind & 0x1c) == 4 ? 110 : 0;
	w.mad[w.n_mad].len = (kind & 0x1c) == 8 ? (int)(what * 2) : DDPS_CM_MAD_LEN;
	w.mad[w.n_mad].from = (ib_mad_addr_t){ .lid = htobe16((uint16_t)(what & 7)),
					       .sl = (uint8_t)(what & 15),
					       .path_bits = (uint8_t)what,
					       .grh_present = kind >> 5 & 1,
					       .hop_limit = (uint8_t)what,
					       .pkey_index = (uint16_t)(what >> 2) };
	w.mad[w.n_mad].from.gid[15] = (uint8_t)what;
	if (kind & 0x40) {
		answer(w.mad[w.n_mad].mad, what, in);
	} else {
		octets = fuzz_some(in, 120, &got);
		if (got)
			memcpy(w.mad[w.n_mad].mad, octets, got);
		w.mad[w.n_mad].mad[0] = 1;
		w.mad[w.n_mad].mad[1] = kind & 0x80 ? 3 : 7;
		w.mad[w.n_mad].mad[2] = 2;
	}
	w.n_mad++;
}

static void event(struct ddps_rbuf *in)
{
	static const enum ibv_event_type of_qp[] = {
		IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
		IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED
	};
	static const enum ibv_event_type of_port[] = { IBV_EVENT_PORT_ERR,
						       IBV_EVENT_PORT_ACTIVE,
						       IBV_EVENT_LID_CHANGE,
						       IBV_EVENT_PKEY_CHANGE,
						       IBV_EVENT_GID_CHANGE,
						       IBV_EVENT_SM_CHANGE,
						       IBV_EVENT_CLIENT_REREGISTER,
						       IBV_EVENT_DEVICE_FATAL,
						       IBV_EVENT_CQ_ERR,
						       IBV_EVENT_SRQ_ERR };
	unsigned b = ddps_rbuf_u8(in), q = (b >> 3) % QPS;
	struct ibv_async_event e = { .event_type = of_port[b % 10] };

	e.element.port_num = (int)(1 + (b >> 7));
	if (b & 4 && w.q[q].used) {
		e.event_type = of_qp[b % 6];
		e.element.qp = &w.q[q].qp;
	}
	if (w.n_ev < EVENTS && !w.n_ev) /* one at a time: its queue pair is still there then */
		w.ev[w.n_ev++] = e;
}

/* The subnet and the adapter's tables. */
static void change(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), value = ddps_rbuf_u8(in);

	switch (b & 7) {
	case 0:
		w.port.lid = (uint16_t)value;
		break;
	case 1:
		w.port.lmc = (uint8_t)value;
		break;
	case 2:
		w.port.sm_lid = (uint16_t)(value & 1 ? SM : 0);
		break;
	case 3:
		w.port.state = value % 6;
		break;
	case 4:
		w.pkey[value % 3] = (uint16_t)(value & 0x80   ? 0xffff
					       : value & 0x40 ? 0x7fff
							      : 0x8001);
		break;
	case 5:
		w.gid.raw[15] = (uint8_t)(value & 1);
		break;
	case 6:
		w.port.active_mtu = 1 + value % 5;
		break;
	default:
		w.port.pkey_tbl_len = (uint16_t)(value & 3);
	}
}

/* ---- what an interface asks ---- */

static void group_of(uint8_t mgid[16], unsigned nr)
{
	memcpy(mgid, (uint8_t[16]){ 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff }, 16);
	mgid[15] = (uint8_t)nr;
	if (!(nr & 15))
		memset(mgid + 12, 0xff, 4); /* the broadcast group */
}

static void ask_qp(struct ddps_ipoib_port *p, unsigned what, unsigned nr)
{
	static const uint8_t frame[VP_MSG_LEN];
	struct ddps_ipoib_qp_to to = {
		.qpn = nr, .path = path, .ack_timeout = 14, .retry_count = 7, .rnr_retry = 7
	};
	uint32_t *qpn = &rc[nr % MAX_QPS], rx_mtu = 4 + nr * 100;

	if (nr & 0x40)
		to.path = (struct ddps_ipoib_path){ .addr = token[nr % TOKENS] };
	switch (what) {
	case 0:
		if (!*qpn && !p->ops->qp_create(p, DDPS_CM_RC, rx_mtu, qpn))
			w.q[*qpn - 0x100].rx_mtu = rx_mtu;
		break;
	case 1:
		(void)p->ops->qp_ready(p, *qpn, &to);
		break;
	case 2:
		for (unsigned i = 0; i < 1 + nr / 4; i++)
			(void)p->ops->qp_send(p, *qpn, frame, nr * 256u);
		break;
	case 3:
		p->ops->qp_stop(p, *qpn);
		break;
	default:
		p->ops->qp_destroy(p, *qpn);
		*qpn = 0;
	}
}

static void ask(struct ddps_rbuf *in)
{
	struct ddps_ipoib_port *p = ddps_ib_verbs_port(v);
	unsigned what = ddps_rbuf_u8(in), nr = ddps_rbuf_u8(in);
	struct ddps_ipoib_lladdr to = { .qpn = DDPS_IPOIB_QPN_MCAST };
	static const uint8_t frame[4200];
	uint8_t gid[16] = { 0xfe, 0x80, [15] = (uint8_t)nr };

	group_of(to.gid, nr);
	switch (what % 11) {
	case 0:
		(void)p->ops->join(p, to.gid);
		break;
	case 1:
		p->ops->leave(p, to.gid);
		break;
	case 2:
		(void)p->ops->ud_send(p, &to, NULL, frame, nr * 20u);
		break;
	case 3:
		to.qpn = nr;
		(void)p->ops->ud_send(p, &to, &path, frame, nr * 20u);
		break;
	case 4:
		(void)p->ops->resolve(p, gid);
		break;
	case 5:
		(void)p->ops->mad_send(p, token[nr % TOKENS], w.query);
		break;
	default:
		ask_qp(p, what % 11 - 6, nr);
	}
}

/* ---- invariants ---- */

static void bounds(void)
{
	for (unsigned k = 0; k < VP_KINDS; k++) {
		const struct vp_pool *p = &v->pool[k];
		unsigned n = 0;

		for (uint32_t i = 0; i < p->n; i++)
			n += p->buf[i].out;
		FUZZ_CHECK(n == p->n_out && n <= p->n);
	}
	FUZZ_CHECK(w.n_ah <= VP_AHS && v->dues.n <= MAX_QPS);
	FUZZ_CHECK(v->answers.n <= VP_ANSWERS);
}

static void turn(uint64_t ns)
{
	now += ns;
	for (unsigned i = 0; ddps_ib_verbs_run(v, now); i++)
		FUZZ_CHECK(i < 100);
}

static void step(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in);

	switch (b & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
		completion(in);
		break;
	case 4:
	case 5:
	case 6:
		mad(in);
		break;
	case 7:
		event(in);
		break;
	case 8:
		change(in);
		break;
	case 9:
		w.fail = 1 + (b >> 4);
		break;
	case 10:
		inside = b >> 4;
		break;
	case 11:
	case 12:
	case 13:
		ask(in);
		break;
	default:
		turn(b & 0x10 ? MS * 1000 * (b >> 5) : MS * (b >> 5));
		bounds();
	}
}

static void world(bool roce)
{
	memset(&w, 0, sizeof(w));
	memset(rc, 0, sizeof(rc));
	memset(token, 0, sizeof(token));
	memset(&path, 0, sizeof(path));
	n_token = inside = 0;
	now = 1000 * MS;
	w.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	FUZZ_CHECK(w.null >= 0);
	w.dev.transport_type = IBV_TRANSPORT_IB;
	w.port = (struct ibv_port_attr){ .state = IBV_PORT_ACTIVE,
					 .active_mtu = IBV_MTU_4096,
					 .gid_tbl_len = 1,
					 .pkey_tbl_len = 3,
					 .lid = roce ? 0 : 3,
					 .sm_lid = roce ? 0 : SM,
					 .link_layer = roce ? IBV_LINK_LAYER_ETHERNET
							    : IBV_LINK_LAYER_INFINIBAND };
	w.gid.raw[0] = 0xfe;
	w.gid.raw[1] = 0x80;
	w.gid.raw[15] = 1;
	w.pkey[0] = 0xffff;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	struct ddps_ib_verbs_config c;
	uint8_t mgid[16];
	char why[400];

	world(ddps_rbuf_u8(&in) & 1);
	ddps_ib_verbs_config_init(&c);
	c.device = "hostile";
	c.max_qps = MAX_QPS;
	c.seed = 1;
	c.up = &up;
	c.tx_octets = c.rx_octets = 4 * VP_MSG_LEN;
	FUZZ_CHECK(!ddps_vport_new(&v, &c, &lib, why, sizeof(why)));
	ddps_ib_verbs_user(v, &w);
	turn(0);
	group_of(mgid, 0);
	FUZZ_CHECK(!v->port.ops->join(&v->port, mgid));
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		step(&in);
	w.fail = 0;
	turn(0);
	bounds();
	ddps_ib_verbs_free(v);
	FUZZ_CHECK(!w.n_obj && !w.n_mr && !w.n_ah && !w.n_group && !w.n_netdev);
	close(w.null);
	return 0;
}
