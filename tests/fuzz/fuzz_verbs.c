/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of an adapter above an adapter in memory (tests/fabric) that is stuck: completions of what
 * was posted and of what was not, with any status and length; MADs and answers of the administration
 * good, spoilt and made up; events of any kind; tables, LIDs and states that change; calls that fail.
 * What an interface asks comes in between, also from inside the calls that inform it.
 *
 * The adapter has each buffer once, and no more of them than its queues hold; address handles in use
 * stay; what goes up fits; and nothing is left at the end.
 */
#include "fuzz.h"
#include "fabric/fake.h"
#include <endian.h>
#include <errno.h>

#define STEPS_MAX 300
#define QPS	  12 /* with those that are about to end */
#define MAX_QPS	  6
#define SRQ_MAX	  300
#define PKEYS	  3
#define WCS	  64
#define MADS	  32
#define TOKENS	  8
#define QPN	  0x100u /* the first */
#define MS	  UINT64_C(1000000)
#define SM	  9

static struct fake *const w = &fake[0];
static struct ddps_ib_verbs *v;
static uint64_t now;
static uint32_t rc[MAX_QPS]; /* that the interface has; 0: none */
static uint32_t rx_mtu[QPS]; /* of the queue pair with that number */
static ddps_cm_addr token[TOKENS];
static struct ddps_ipoib_path path;
static unsigned n_token, inside; /* inside: what to do in the next call up */

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
		(void)p->ops->mad_send(p, token[what % TOKENS], w->query);
	if (what & 8)
		(void)p->ops->resolve(p, w->gid.raw);
}

static void take_verbs_fuzz_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
			       size_t len, uint64_t t)
{
	FUZZ_CHECK(user == w && from && frame && t == now && len <= 4096);
	ask_inside(0);
}

static void take_verbs_fuzz_mad(void *user, ddps_cm_addr from, const void *mad, size_t len,
				uint64_t t)
{
	FUZZ_CHECK(user == w && t == now && len == DDPS_CM_MAD_LEN &&
		   ((const uint8_t *)mad)[1] == 7);
	token[n_token++ % TOKENS] = from;
	ask_inside(0);
}

static void take_verbs_fuzz_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t t)
{
	const struct fake_qp *q = fake_qp_of(0, qpn);

	FUZZ_CHECK(user == w && t == now && frame && q && q->init.qp_type != IBV_QPT_UD);
	FUZZ_CHECK(len <= rx_mtu[qpn - QPN]);
	ask_inside(qpn);
}

static void take_verbs_fuzz_qp_error(void *user, uint32_t qpn, int err, uint64_t t)
{
	FUZZ_CHECK(user == w && t == now && err < 0 && fake_qp_of(0, qpn));
	ask_inside(qpn);
}

static void take_verbs_fuzz_path(void *user, const uint8_t *gid, const struct ddps_ipoib_path *p,
				 uint64_t t)
{
	FUZZ_CHECK(user == w && gid && t == now);
	FUZZ_CHECK(!p || (p->addr && p->mtu >= 1 && p->mtu <= 5 && p->life <= 31));
	if (p)
		path = *p;
	ask_inside(0);
}

static void take_verbs_fuzz_joined(void *user, const uint8_t *mgid, int err, uint32_t mtu,
				   uint64_t t)
{
	FUZZ_CHECK(user == w && mgid[0] == 0xff && t == now && !err == !!mtu && mtu <= 4096);
	ask_inside(0);
}

static void take_verbs_fuzz_link(void *user, bool up, uint64_t t)
{
	FUZZ_CHECK(user == w && t == now && up == ddps_ib_verbs_info(v)->active);
}

static const struct ddps_ipoib_up up = { sizeof(up),
					 take_verbs_fuzz_ud,
					 take_verbs_fuzz_mad,
					 take_verbs_fuzz_qp,
					 take_verbs_fuzz_qp_error,
					 take_verbs_fuzz_path,
					 take_verbs_fuzz_joined,
					 take_verbs_fuzz_link };

/* ---- the fabric ---- */

static void give_adapter_completion(struct ddps_rbuf *in)
{
	const unsigned what = ddps_rbuf_u8(in), which = ddps_rbuf_u16(in);
	const unsigned status = what & 3 ? IBV_WC_SUCCESS : ddps_rbuf_u8(in) % 22;
	const uint32_t len = what & 4 ? ddps_rbuf_u32(in) : ddps_rbuf_u16(in) % 5000;
	struct ibv_wc wc = { .status = (enum ibv_wc_status)status,
			     .byte_len = len,
			     .qp_num = QPN + ddps_rbuf_u8(in) % (QPS + 1),
			     .src_qp = QPN + (what >> 6),
			     .slid = what & 8 ? w->port.lid : 77,
			     .wc_flags = what & 16 ? IBV_WC_GRH : 0 };
	struct fake_wqe e = { .kind = FAKE_UD_OUT };
	unsigned c;

	if (!w->n_posted || (what & 0x63) == 0x20) {
		wc.wr_id = what & 4 ? w->ghost : (uint64_t)which << 32 | which << 8; /* nobody's */
	} else {
		e = fake_take(0, which % w->n_posted);
		wc.wr_id = e.wr_id;
	}
	if (e.kind == FAKE_UD_IN || e.kind == FAKE_MSG_IN) {
		size_t got;
		const uint8_t *octets = fuzz_some(in, 60, &got);

		if (got)
			memcpy(e.at, octets, got);
		if (e.kind == FAKE_UD_IN && what & 0x40)
			memcpy(e.at + 8, w->gid.raw, 16);
	}
	c = e.kind == FAKE_UD_OUT || e.kind == FAKE_MSG_OUT; /* tx_cq is made second */
	if (w->n_wc[c] < WCS)
		fake_wc(0, c, &wc);
}

/* The answer to the latest query, spoilt or not. */
static void spoil_sa_answer(uint8_t *m, unsigned what, struct ddps_rbuf *in)
{
	memcpy(m, w->query, DDPS_CM_MAD_LEN);
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
		r.slid = w->port.lid;
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

static void give_adapter_mad(struct ddps_rbuf *in)
{
	unsigned kind = ddps_rbuf_u8(in), what = ddps_rbuf_u8(in);
	__typeof__(&w->mad[0]) m = &w->mad[w->n_mad];
	size_t got;
	const uint8_t *octets;

	if (w->n_mad == MADS)
		return;
	memset(m, 0, sizeof(*m));
	m->agent = kind & 3;
	m->status = (kind & 0x1c) == 4 ? ETIMEDOUT : 0;
	m->len = (kind & 0x1c) == 8 ? (int)(what * 2) : DDPS_CM_MAD_LEN;
	m->addr = (ib_mad_addr_t){ .lid = htobe16((uint16_t)(what & 7)),
				   .sl = (uint8_t)(what & 15),
				   .path_bits = (uint8_t)what,
				   .grh_present = kind >> 5 & 1,
				   .hop_limit = (uint8_t)what,
				   .pkey_index = (uint16_t)(what >> 2) };
	m->addr.gid[15] = (uint8_t)what;
	if (kind & 0x40) {
		spoil_sa_answer(m->mad, what, in);
	} else {
		octets = fuzz_some(in, 120, &got);
		if (got)
			memcpy(m->mad, octets, got);
		m->mad[0] = 1;
		m->mad[1] = kind & 0x80 ? 3 : 7;
		m->mad[2] = 2;
	}
	w->n_mad++;
}

static void give_adapter_event(struct ddps_rbuf *in)
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

	if (w->n_event) /* one at a time: its queue pair is still there then */
		return;
	if (b & 4 && w->qp[q].used) {
		fake_event(0, of_qp[b % 6], &w->qp[q].qp);
		return;
	}
	fake_event(0, of_port[b % 10], NULL);
	w->event[0].element.port_num = (int)(1 + (b >> 7));
}

/* The subnet and the adapter's tables. */
static void change_subnet(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in), value = ddps_rbuf_u8(in);

	switch (b & 7) {
	case 0:
		w->port.lid = (uint16_t)value;
		break;
	case 1:
		w->port.lmc = (uint8_t)value;
		break;
	case 2:
		w->port.sm_lid = (uint16_t)(value & 1 ? SM : 0);
		break;
	case 3:
		w->port.state = value % 6;
		break;
	case 4:
		w->pkey[value % PKEYS] = (uint16_t)(value & 0x80   ? 0xffff
						    : value & 0x40 ? 0x7fff
								   : 0x8001);
		break;
	case 5:
		w->gid.raw[15] = (uint8_t)(value & 1);
		break;
	case 6:
		w->port.active_mtu = 1 + value % 5;
		break;
	default:
		w->port.pkey_tbl_len = (uint16_t)(value & 3);
	}
}

/* ---- what an interface asks ---- */

static void make_adapter_mgid(uint8_t mgid[16], unsigned nr)
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
	uint32_t *qpn = &rc[nr % MAX_QPS], len = 4 + nr * 100;

	if (nr & 0x40)
		to.path = (struct ddps_ipoib_path){ .addr = token[nr % TOKENS] };
	switch (what) {
	case 0:
		if (!*qpn && !p->ops->qp_create(p, DDPS_CM_RC, len, qpn))
			rx_mtu[*qpn - QPN] = len;
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

static void ask_adapter_port(struct ddps_rbuf *in)
{
	struct ddps_ipoib_port *p = ddps_ib_verbs_port(v);
	unsigned what = ddps_rbuf_u8(in), nr = ddps_rbuf_u8(in);
	struct ddps_ipoib_lladdr to = { .qpn = DDPS_IPOIB_QPN_MCAST };
	static const uint8_t frame[4200];
	uint8_t gid[16] = { 0xfe, 0x80, [15] = (uint8_t)nr };

	make_adapter_mgid(to.gid, nr);
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
		(void)p->ops->mad_send(p, token[nr % TOKENS], w->query);
		break;
	default:
		ask_qp(p, what % 11 - 6, nr);
	}
}

/* ---- invariants ---- */

static void check_pool_bounds(void)
{
	for (unsigned k = 0; k < VP_KINDS; k++) {
		const struct vp_pool *p = &v->pool[k];
		unsigned n = 0;

		for (uint32_t i = 0; i < p->n; i++)
			n += p->buf[i].out;
		FUZZ_CHECK(n == p->n_out && n <= p->n);
	}
	FUZZ_CHECK(v->dues.n <= MAX_QPS);
	FUZZ_CHECK(v->answers.n <= VP_ANSWERS);
}

static void turn_adapter_port(uint64_t ns)
{
	now += ns;
	for (unsigned i = 0; ddps_ib_verbs_run(v, now); i++)
		FUZZ_CHECK(i < 100);
}

static void take_adapter_step(struct ddps_rbuf *in)
{
	unsigned b = ddps_rbuf_u8(in);

	switch (b & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
		give_adapter_completion(in);
		break;
	case 4:
	case 5:
	case 6:
		give_adapter_mad(in);
		break;
	case 7:
		give_adapter_event(in);
		break;
	case 8:
		change_subnet(in);
		break;
	case 9:
		w->fail_in = 1 + (b >> 4);
		break;
	case 10:
		inside = b >> 4;
		break;
	case 11:
	case 12:
	case 13:
		ask_adapter_port(in);
		break;
	default:
		turn_adapter_port(b & 0x10 ? MS * 1000 * (b >> 5) : MS * (b >> 5));
		check_pool_bounds();
	}
}

static void make_adapter_world(unsigned kind)
{
	const bool roce = kind & 1;

	fake_init();
	fake_devices = 1;
	if (roce)
		fake_make_roce();
	memset(rc, 0, sizeof(rc));
	memset(token, 0, sizeof(token));
	memset(&path, 0, sizeof(path));
	n_token = inside = 0;
	now = 1000 * MS;
	w->stuck = w->no_last_wqe = w->same_numbers = true;
	w->privileged = !(kind & 2);
	w->max_qp = QPS;
	w->max_srq_wr = SRQ_MAX;
	w->fail_errno = ENOMEM;
	w->port.pkey_tbl_len = PKEYS;
	if (!roce)
		w->port.sm_lid = SM;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	struct ddps_ib_verbs_config c;
	uint8_t mgid[16];
	char why[400];

	make_adapter_world(ddps_rbuf_u8(&in));
	ddps_ib_verbs_config_init(&c);
	c.device = w->name;
	c.max_qps = MAX_QPS;
	c.seed = 1;
	c.up = &up;
	c.tx_octets = c.rx_octets = 4 * VP_MSG_LEN;
	FUZZ_CHECK(!ddps_vport_new(&v, &c, &fake_lib, why, sizeof(why)));
	ddps_ib_verbs_user(v, w);
	turn_adapter_port(0);
	make_adapter_mgid(mgid, 0);
	FUZZ_CHECK(!v->port.ops->join(&v->port, mgid));
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		take_adapter_step(&in);
	w->fail_in = 0;
	turn_adapter_port(0);
	check_pool_bounds();
	ddps_ib_verbs_free(v);
	fake_fini();
	return 0;
}
