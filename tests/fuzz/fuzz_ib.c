/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ports of an InfiniBand subnet, one with the administration, and a wire between them that
 * loses, doubles, turns around and spoils packets, or makes up its own: headers, MADs, answers of
 * the administration, reports.  What an interface asks of a port comes in between.
 *
 * As long as nothing is made up, each message of a reliable connection arrives once, in order and
 * unchanged.  Memory and timers are always within their bounds, and nothing is left at the end.
 */
#include "fuzz.h"
#include "ipoib_cm/ib/pkt.h"
#include "ipoib_cm/ib/node_in.h"
#include "mutate.h"

#define STEPS_MAX 400
#define WIRE	  64
#define MAX_QPS	  4
#define MEMORY	  (64u << 10)
#define MESSAGE	  1500
#define MS	  UINT64_C(1000000)
#define QKEY	  0x80001234u

struct flying {
	uint16_t slid, lid;
	struct ddps_ib_pkt p;
	uint8_t data[DDPS_IB_MTU_MAX];
};

static struct side {
	struct ddps_ib_node *n;
	uint16_t lid;
	uint32_t rc, uc, extra; /* queue pairs; 0: destroyed */
	uint32_t sent, got;	/* messages of the reliable one */
	bool full, destroy_inside;
} side[2];

static struct flying wire[WIRE];
static unsigned n_wire;
static uint64_t now;
static bool honest; /* nothing was made up or spoilt */

static bool take_ib_fuzz_send(void *user, uint16_t lid, unsigned group, struct ddps_ib_pkt *p)
{
	struct side *s = user;
	struct flying *f = &wire[n_wire];
	uint8_t head[DDPS_IB_HEAD_MAX];

	FUZZ_CHECK(group < DDPS_SAC_GROUPS && p->len <= DDPS_IB_MTU_MAX);
	FUZZ_CHECK(ddps_ib_pkt_encode(head, p) >= DDPS_IB_BTH_LEN);
	if (s->full)
		return false;
	if (n_wire == WIRE) /* lost */
		return true;
	*f = (struct flying){ .slid = s->lid, .lid = lid, .p = *p };
	if (p->len)
		memcpy(f->data, p->data, p->len);
	n_wire++;
	return true;
}

/* ---- what goes up ---- */

static void take_ib_fuzz_ud(void *user, const struct ddps_ipoib_ud_from *from, const void *frame,
			    size_t len, uint64_t t)
{
	FUZZ_CHECK(user && from && (frame || !len) && t == now);
}

static void take_ib_fuzz_mad(void *user, ddps_cm_addr from, const void *mad, size_t len, uint64_t t)
{
	FUZZ_CHECK(user && from && mad && len == DDPS_CM_MAD_LEN && t == now);
}

static void take_ib_fuzz_qp(void *user, uint32_t qpn, const void *frame, size_t len, uint64_t t)
{
	struct side *s = user;
	const uint8_t *p = frame;
	uint32_t nr;

	FUZZ_CHECK(t == now && len <= MESSAGE);
	if (qpn == s->rc && honest) {
		FUZZ_CHECK(len >= 4);
		memcpy(&nr, p, 4);
		FUZZ_CHECK(nr == s->got);
		for (size_t i = 4; i < len; i++)
			FUZZ_CHECK(p[i] == (uint8_t)(nr + i));
		s->got++;
	}
	if (s->destroy_inside && qpn == s->uc) {
		ddps_ib_node_qp_destroy(ddps_ib_node_port(s->n), qpn);
		s->uc = 0;
	}
}

static void take_ib_fuzz_qp_error(void *user, uint32_t qpn, int err, uint64_t t)
{
	struct side *s = user;

	FUZZ_CHECK(t == now && err && qpn);
	if (qpn == s->rc) {
		ddps_ib_node_qp_destroy(ddps_ib_node_port(s->n), qpn);
		s->rc = 0;
	}
}

static void take_ib_fuzz_path(void *user, const uint8_t gid[DDPS_IPOIB_GID_LEN],
			      const struct ddps_ipoib_path *path, uint64_t t)
{
	FUZZ_CHECK(user && gid && t == now);
	FUZZ_CHECK(!path || (path->addr && path->addr < DDPS_SA_LIDS && path->mtu <= 5));
}

static void take_ib_fuzz_joined(void *user, const uint8_t mgid[DDPS_IPOIB_GID_LEN], int err,
				uint32_t mtu, uint64_t t)
{
	FUZZ_CHECK(user && mgid && t == now && !err == !!mtu && mtu <= 4096);
}

static void take_ib_fuzz_link(void *user, bool up, uint64_t t)
{
	(void)user, (void)up, (void)t;
}

static const struct ddps_ipoib_up up = {
	sizeof(up),	     take_ib_fuzz_ud,	    take_ib_fuzz_mad,
	take_ib_fuzz_qp,     take_ib_fuzz_qp_error, take_ib_fuzz_path,
	take_ib_fuzz_joined, take_ib_fuzz_link
};

/* ---- the wire ---- */

static void deliver_ib_packet(const struct flying *f)
{
	uint8_t *exact = fuzz_exact(f->data, f->p.len);
	struct ddps_ib_pkt p = f->p;
	bool mcast = f->lid >= DDPS_MLID_FIRST;

	p.data = exact;
	for (unsigned i = 0; i < 2; i++)
		if (mcast || f->lid == side[i].lid)
			ddps_ib_node_rx(side[i].n, f->slid, mcast ? f->lid : 0, &p, now);
	free(exact);
}

static void carry_ib_packet(unsigned at, bool keep)
{
	static struct flying f; /* what it causes goes on the wire */

	if (at >= n_wire)
		return;
	f = wire[at];
	if (!keep)
		memmove(&wire[at], &wire[at + 1], (--n_wire - at) * sizeof(*wire));
	deliver_ib_packet(&f);
}

static void flush_ib_wire(void)
{
	for (unsigned i = 0; n_wire && i < 4 * WIRE; i++)
		carry_ib_packet(0, false);
}

/* Octets of the input over a packet that is on its way. */
static void spoil_flying_packet(struct ddps_rbuf *in)
{
	struct flying *f = n_wire ? &wire[ddps_rbuf_u8(in) % n_wire] : NULL;
	uint8_t what = ddps_rbuf_u8(in);

	if (!f)
		return;
	honest = false;
	if (f->p.len && what & 1)
		f->data[ddps_rbuf_u16(in) % f->p.len] ^= (uint8_t)(what | 1);
	else
		f->p.psn = (f->p.psn + what) & DDPS_IB_PSN_MASK;
	if (what & 2)
		f->slid = what >> 3 ? what >> 3 : 1; /* what has none the port drops */
	if (what & 4)
		f->p.opcode ^= what >> 3;
}

static const struct ddps_ib_udp_hdr outside = { 0x0a000002, 0x0a000001, 0xc000, 4791, 0 };

/* A packet as octets of the input, as a socket would give it; half of them need the right ICRC. */
static void deliver_raw_packet(struct side *s, struct ddps_rbuf *in)
{
	uint16_t from = ddps_rbuf_u8(in), mlid = ddps_rbuf_u8(in);
	const uint16_t slid = from ? from : 1;
	size_t len, want = ddps_rbuf_u16(in) % 600;
	const uint8_t *at = fuzz_some(in, want, &len);
	uint8_t *exact = fuzz_exact(at, len);
	struct ddps_ib_pkt p;

	honest = false;
	if (!ddps_ib_pkt_decode(&p, exact, len)) {
		FUZZ_CHECK(p.data >= exact && p.data + p.len + p.pad + 4 == exact + len);
		if (ddps_ib_icrc_check(&outside, exact, len) != DDPS_IB_ICRC_BAD || !(mlid & 2))
			ddps_ib_node_rx(s->n, slid, mlid & 1 ? (uint16_t)(0xc000 + mlid) : 0, &p,
					now);
	}
	free(exact);
}

/* A MAD for QP 1, its record from the input. */
static void send_fuzzed_mad(struct side *s, struct ddps_rbuf *in)
{
	static const uint16_t attr[] = { 1, 2, 3, 0x12, 0x35, 0x38, 0x10, 0x13 };
	static const uint8_t method[] = { 1, 2, 3, 6, 0x15, 0x81, 0x86, 0x95 };
	uint8_t m[DDPS_CM_MAD_LEN], kind = ddps_rbuf_u8(in), more = ddps_rbuf_u8(in);
	struct ddps_sa_head h = { .method = method[kind & 7],
				  .attr = attr[kind >> 3 & 7],
				  .tid = (uint32_t)(s == &side[0] ? 0 : 100) + ddps_rbuf_u8(in),
				  .mask = ddps_rbuf_u32(in) };
	struct ddps_ib_pkt p = { .opcode = DDPS_IB_UD | DDPS_IB_SEND_ONLY,
				 .pkey = 0xffff,
				 .qpn = DDPS_IB_GSI_QPN,
				 .qkey = DDPS_CM_QKEY,
				 .data = m,
				 .len = sizeof(m) };
	size_t len;
	const uint8_t *at;

	honest = false;
	h.status = more & 1 ? 0x0300 : 0;
	ddps_sa_mad_begin(m, &h);
	if (more & 2) { /* of a group that somebody may know */
		memcpy(ddps_sa_record(m), (uint8_t[]){ 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff }, 6);
		ddps_sa_record(m)[15] = more >> 4;
		memcpy(ddps_sa_record(m) + 16, (uint8_t[]){ 0xfe, 0x80 }, 2);
		ddps_sa_record(m)[36] = 0xc0;
		ddps_sa_record(m)[38] = 0x84;
		ddps_sa_record(m)[48] = more >> 4;
	}
	at = fuzz_some(in, more & 4 ? 40 : 8, &len);
	for (size_t i = 0; i < len; i++)
		ddps_sa_record(m)[i] ^= at[i];
	ddps_ib_node_rx(s->n, more & 8 ? 1 : 2, 0, &p, now);
}

/* ---- what an interface does ---- */

static void send_rc_message(struct side *s, uint32_t qpn, size_t len)
{
	static uint8_t m[MESSAGE];
	struct ddps_ipoib_port *port = ddps_ib_node_port(s->n);

	len = 4 + len % (MESSAGE - 4);
	memcpy(m, &s->sent, 4);
	for (size_t i = 4; i < len; i++)
		m[i] = (uint8_t)(s->sent + i);
	if (!port->ops->qp_send(port, qpn, m, len) && qpn == s->rc)
		s->sent++;
}

static void make_fuzzed_mgid(uint8_t mgid[16], uint8_t nr)
{
	memcpy(mgid, (uint8_t[16]){ 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = (uint8_t)(nr & 15) },
	       16);
	if (!(nr & 15))
		memset(mgid + 12, 0xff, 4); /* the broadcast group */
}

static void ask_ib_port(struct side *s, struct ddps_rbuf *in)
{
	struct ddps_ipoib_port *port = ddps_ib_node_port(s->n);
	uint8_t what = ddps_rbuf_u8(in), nr = ddps_rbuf_u8(in), gid[16] = { 0xfe, 0x80 };
	struct ddps_ipoib_lladdr to = { .qpn = DDPS_IPOIB_QPN_MCAST };
	static const uint8_t frame[3000];

	make_fuzzed_mgid(to.gid, nr);
	gid[15] = nr & 3;
	switch (what % 7) {
	case 0:
		(void)port->ops->join(port, to.gid);
		break;
	case 1:
		port->ops->leave(port, to.gid);
		break;
	case 2:
		(void)port->ops->ud_send(port, &to, NULL, frame, nr * 11u);
		break;
	case 3:
		(void)port->ops->resolve(port, gid);
		break;
	case 4:
		(void)port->ops->qp_create(port, DDPS_CM_RC, MESSAGE, &s->extra);
		break;
	case 5:
		port->ops->qp_destroy(port, s->extra);
		break;
	default:
		s->full = !s->full;
		if (!s->full)
			ddps_ib_node_pump(s->n, now);
	}
}

static void check_port_bounds(void)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct ddps_ib_node *n = side[i].n;

		FUZZ_CHECK(n->env.tx.used <= MEMORY && n->env.rx.used <= MEMORY);
		FUZZ_CHECK(n->dues.n <= MAX_QPS);
		for (uint32_t k = 1; k <= n->dues.n; k++) {
			FUZZ_CHECK(n->dues.heap[k]->place == k);
			FUZZ_CHECK(k == 1 || n->dues.heap[k / 2]->at <= n->dues.heap[k]->at);
		}
	}
}

static void tick_ib_ports(uint64_t ns)
{
	now += ns;
	for (unsigned i = 0; i < 2; i++) {
		ddps_ib_node_tick(side[i].n, now);
		FUZZ_CHECK(ddps_ib_node_due(side[i].n) > now);
	}
}

static void take_ib_step(struct ddps_rbuf *in)
{
	uint8_t what = ddps_rbuf_u8(in);
	struct side *s = &side[what >> 7];

	switch (what & 15) {
	case 0:
	case 1:
		carry_ib_packet(ddps_rbuf_u8(in), what & 64); /* perhaps twice */
		break;
	case 2:
		carry_ib_packet(0, false);
		break;
	case 3:
		flush_ib_wire();
		break;
	case 4: /* lost */
		n_wire -= n_wire > 0;
		break;
	case 5:
		spoil_flying_packet(in);
		break;
	case 6:
		deliver_raw_packet(s, in);
		break;
	case 7:
		send_fuzzed_mad(s, in);
		break;
	case 8:
	case 9:
		send_rc_message(s, s->rc, ddps_rbuf_u16(in));
		break;
	case 10:
		send_rc_message(s, s->uc, ddps_rbuf_u16(in));
		break;
	case 11:
	case 12:
		ask_ib_port(s, in);
		break;
	case 13:
		s->destroy_inside = true;
		break;
	default:
		tick_ib_ports(MS * ddps_rbuf_u8(in) * (what & 64 ? 1000 : 5));
	}
	check_port_bounds();
}

/* ---- life ---- */

static void make_ib_side(unsigned i)
{
	struct side *s = &side[i];
	struct ddps_ib_node_config c = { .lid = (uint16_t)(1 + i),
					 .sa_lid = 1,
					 .qpn = 0x48 + i,
					 .pkey = 0xffff,
					 .scope = 2,
					 .mtu_max = 5,
					 .mtu = 2,
					 .life = 14,
					 .qkey = QKEY,
					 .max_qps = MAX_QPS,
					 .tx_octets = MEMORY,
					 .rx_octets = MEMORY,
					 .seed = 100 * i,
					 .send = take_ib_fuzz_send,
					 .wire = s,
					 .up = &up };

	*s = (struct side){ .lid = c.lid };
	memcpy(c.gid, (uint8_t[16]){ 0xfe, 0x80, [15] = (uint8_t)(1 + i) }, 16);
	FUZZ_CHECK(!ddps_ib_node_new(&s->n, &c));
	ddps_ib_node_user(s->n, s);
	ddps_ib_node_tick(s->n, now);
}

static void connect_both(bool uc)
{
	uint32_t qpn[2];

	for (unsigned i = 0; i < 2; i++) {
		struct ddps_ipoib_port *port = ddps_ib_node_port(side[i].n);

		FUZZ_CHECK(!port->ops->qp_create(port, uc ? DDPS_CM_UC : DDPS_CM_RC, MESSAGE,
						 &qpn[i]));
		*(uc ? &side[i].uc : &side[i].rc) = qpn[i];
	}
	for (unsigned i = 0; i < 2; i++) {
		struct ddps_ipoib_port *port = ddps_ib_node_port(side[i].n);
		const struct ddps_ipoib_qp_to to = { .qpn = qpn[!i],
						     .tx_psn = 0xfffff0 + i,
						     .rx_psn = 0xfffff0 + !i,
						     .path = { .addr = (ddps_cm_addr)(2 - i),
							       .mtu = 1 },
						     .ack_timeout = 14,
						     .retry_count = 7,
						     .rnr_retry = 7 };

		FUZZ_CHECK(!port->ops->qp_ready(port, qpn[i], &to));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	uint8_t mgid[16];

	now = 1000 * MS;
	n_wire = 0;
	honest = true;
	make_fuzzed_mgid(mgid, 0);
	for (unsigned i = 0; i < 2; i++) {
		make_ib_side(i);
		FUZZ_CHECK(!ddps_ib_node_port(side[i].n)->ops->join(ddps_ib_node_port(side[i].n),
								    mgid));
	}
	flush_ib_wire();
	connect_both(false);
	connect_both(true);
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		take_ib_step(&in);
	/* an honest wire at the end: what was sent on the reliable connection is there */
	for (unsigned i = 0; i < 2; i++) {
		side[i].full = false;
		ddps_ib_node_pump(side[i].n, now);
	}
	for (unsigned i = 0; honest && side[0].rc && side[1].rc && i < 2000 &&
			     (side[0].got != side[1].sent || side[1].got != side[0].sent);
	     i++) {
		flush_ib_wire();
		tick_ib_ports(50 * MS);
	}
	if (honest && side[0].rc && side[1].rc)
		FUZZ_CHECK(side[0].got == side[1].sent && side[1].got == side[0].sent);
	for (unsigned i = 0; i < 2; i++) {
		ddps_ib_node_qp_destroy(ddps_ib_node_port(side[i].n), side[i].rc);
		ddps_ib_node_qp_destroy(ddps_ib_node_port(side[i].n), side[i].uc);
	}
	check_port_bounds();
	for (unsigned i = 0; i < 2; i++)
		ddps_ib_node_free(side[i].n);
	return 0;
}

/* deliver_raw_packet()'s octets: a packet as a peer makes it. */
static size_t new_packet(uint8_t *p, struct fuzz_dice *d)
{
	size_t n = fuzz_new_ib_packet(p + 5, &outside, 0x48 + fuzz_roll(d, 4), QKEY, d);

	p[0] = (uint8_t)(6 | fuzz_roll(d, 2) << 7);
	p[1] = (uint8_t)(1 + fuzz_roll(d, 2));
	memcpy(p + 2, (uint8_t[]){ 2, (uint8_t)(n >> 8), (uint8_t)n }, 3);
	return 5 + n;
}

/* As take_ib_step() reads them, but for one that spoils when nothing is on its way. */
static size_t get_ib_fuzz_step_len(const uint8_t *p, size_t n)
{
	static const uint8_t lens[16] = { 2, 2, 1, 1, 1, 3, 5, 0, 3, 3, 3, 3, 3, 1, 2, 2 };
	size_t len = lens[p[0] & 15];

	if ((p[0] & 15) == 5 && n > 2 && p[2] & 1)
		len += 2;
	else if (len == 5 && n > 4)
		len += (size_t)(p[3] << 8 | p[4]) % 600;
	else if (!len)
		len = 8 + (n > 2 && p[2] & 4 ? 40 : 8);
	return len < n ? len : n;
}

static size_t change_ib_fuzz_step(uint8_t *p, size_t n, struct fuzz_dice *d)
{
	if (!n || fuzz_roll(d, 2))
		return new_packet(p, d);
	return 1 + (n > 1 ? LLVMFuzzerMutate(p + 1, n - 1, n - 1) : 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static const struct fuzz_script script = { 0, get_ib_fuzz_step_len, change_ib_fuzz_step };

	return fuzz_mutate_script(&script, data, size, max, seed);
}
