/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CM agent of one port: messages of a peer, most of them about connections that exist, calls
 * of its user and the passing of time, as the script has it.
 */
#include "fuzz.h"
#include "ipoib_cm/cm/cm_own.h"
#include "mutate.h"
#include <ddpsess/ib_cm.h>

#define STEPS_MAX 300
#define KNOWN	  16
#define MAX_CONNS 6
#define SID	  UINT64_C(0x0100000000000049)
#define OUR_GUID  UINT64_C(0x0002c90300001000)

struct rig {
	struct ddps_cm *cm;
	struct ddps_cm_outs o;
	uint64_t now;
	uint32_t id[KNOWN]; /* that have been reported or made */
	unsigned nid;
};

static void learn(struct rig *g, uint32_t id)
{
	for (unsigned i = 0; i < g->nid && i < KNOWN; i++)
		if (g->id[i] == id)
			return;
	g->id[g->nid++ % KNOWN] = id;
}

/* What came out of a call that succeeded. */
static void look_at_cm_outs(struct rig *g)
{
	const struct ddps_cm_outs *o = &g->o;
	struct ddps_cm_mad m;
	uint64_t due = ddps_cm_deadline(g->cm);

	FUZZ_CHECK(o->n_send <= 2 && o->n_report <= 1);
	for (unsigned i = 0; i < o->n_send; i++) {
		FUZZ_CHECK(!ddps_cm_mad_decode(&m, o->send[i].mad, DDPS_CM_MAD_LEN));
		FUZZ_CHECK(m.hdr.attr_id != DDPS_CM_REQ || m.u.req.ca_guid == OUR_GUID);
	}
	for (unsigned i = 0; i < o->n_report; i++) {
		FUZZ_CHECK(ddps_cm_state(g->cm, o->report[i].id) == o->report[i].state);
		learn(g, o->report[i].id);
	}
	FUZZ_CHECK(due == DDPS_CM_NEVER || due < DDPS_CM_NEVER / 2);
}

/* ---- messages ---- */

/* The IDs of a message: of a connection that we know, and one of few of the peer's. */
static void give_ids(struct rig *g, struct ddps_cm_mad *m, unsigned b)
{
	uint32_t ours = g->nid ? g->id[b % (g->nid < KNOWN ? g->nid : KNOWN)] : 0;
	uint32_t theirs = 0x55667780u + (b >> 4 & 3);

	switch (m->hdr.attr_id) {
	case DDPS_CM_REQ:
		m->u.req.local_id = theirs;
		break;
	case DDPS_CM_SIDR_REQ:
	case DDPS_CM_SIDR_REP:
		m->u.sidr_req.request_id = theirs;
		break;
	default: /* all others begin with the two */
		m->u.rtu.local_id = theirs;
		m->u.rtu.remote_id = ours;
		break;
	}
}

static void put_odd_cm_field(struct ddps_cm_mad *m, uint8_t b, uint8_t v)
{
	switch (m->hdr.attr_id) {
	case DDPS_CM_REQ:
		m->u.req.service_id = v & 1 ? SID + 1 : SID;
		m->u.req.ca_guid = OUR_GUID + (v & 2 ? 0x1000 : 0x2000);
		m->u.req.qpn = 0x450 + (v >> 2 & 3);
		m->u.req.pkey = v & 0x10 ? 0x7ffe : 0x7fff;
		m->u.req.local_cm_timeout = 20;
		m->u.req.max_cm_retries = v >> 5;
		m->u.req.primary.remote_gid[15] = b & 0x80 ? 8 : 9;
		break;
	case DDPS_CM_REP:
		m->u.rep.qpn = 0x450 + (v & 3);
		m->u.rep.ca_guid = OUR_GUID + (v & 4 ? 0x1000 : 0x2000);
		break;
	case DDPS_CM_MRA:
		m->u.mra.msg = v & 3;
		m->u.mra.service_timeout = v >> 3;
		break;
	case DDPS_CM_REJ:
		m->u.rej.msg = v & 3;
		m->u.rej.reason = v >> 2;
		m->u.rej.info_len = b & 0x80 ? 8 : 0;
		memcpy(m->u.rej.ari, "\0\x02\xc9\x03\0\0\x20\0", 8);
		break;
	case DDPS_CM_DREQ:
		m->u.dreq.remote_qpn = 0x451 + (v & 1);
		break;
	default:
		break;
	}
}

static void receive_cm_message(struct rig *g, struct ddps_rbuf *in)
{
	unsigned attr = DDPS_CM_REQ + ddps_rbuf_u8(in) % 11;
	uint8_t b = ddps_rbuf_u8(in), v = ddps_rbuf_u8(in);
	uint8_t mad[DDPS_CM_MAD_LEN], *exact;
	struct ddps_cm_mad m;
	int err;

	ddps_cm_mad_init(&m, (uint16_t)attr, v);
	put_odd_cm_field(&m, b, v);
	give_ids(g, &m, b);
	FUZZ_CHECK(!ddps_cm_mad_encode(mad, &m));
	if (v == 0xff) { /* one octet is another */
		v = ddps_rbuf_u8(in);
		mad[v] ^= ddps_rbuf_u8(in);
	} else if (v == 0xfe) { /* fields have other values */
		struct fuzz_dice d = { ddps_rbuf_u16(in) };

		fuzz_mutate_cm(mad, &d);
	}
	exact = fuzz_exact(mad, sizeof mad);
	err = ddps_cm_rx(g->cm, exact, sizeof mad, b & 7, g->now, &g->o);
	FUZZ_CHECK(!err || (!g->o.n_send && !g->o.n_report));
	look_at_cm_outs(g);
	free(exact);
}

static void receive_raw(struct rig *g, struct ddps_rbuf *in)
{
	size_t n;
	const uint8_t *p = fuzz_some(in, ddps_rbuf_u8(in) + 1u, &n);
	uint8_t *exact = fuzz_exact(p, n);

	if (ddps_cm_rx(g->cm, exact, n, 1, g->now, &g->o))
		FUZZ_CHECK(!g->o.n_send && !g->o.n_report);
	look_at_cm_outs(g);
	free(exact);
}

/* ---- the user ---- */

static int connect_new(struct rig *g, uint8_t v)
{
	struct ddps_cm_connect c = { .packet_life = v & 31, .to = 3, .user = g };
	uint32_t id;
	int err;

	c.req.qpn = 0x451 + (v & 1);
	c.req.service_id = SID;
	c.req.local_cm_timeout = c.req.remote_cm_timeout = 18;
	c.req.max_cm_retries = v >> 5;
	err = ddps_cm_connect(g->cm, &c, g->now, &id, &g->o);
	if (!err)
		learn(g, id);
	return err;
}

static void call_cm(struct rig *g, struct ddps_rbuf *in)
{
	uint8_t b = ddps_rbuf_u8(in), v = ddps_rbuf_u8(in);
	uint32_t id = g->nid ? g->id[(b >> 4) % (g->nid < KNOWN ? g->nid : KNOWN)] : v;
	enum ddps_cm_state was = ddps_cm_state(g->cm, id);
	struct ddps_cm_rep rep = { .qpn = 0x451 + (v & 1) };
	int err;

	switch (b & 15) {
	case 0:
	case 1:
		err = connect_new(g, v);
		FUZZ_CHECK(!err || err == DDPS_E_LIMIT);
		break;
	case 2:
	case 3:
		err = ddps_cm_reply(g->cm, id, &rep, g->now, &g->o);
		break;
	case 4:
		err = ddps_cm_ready(g->cm, id, NULL, g->now, &g->o);
		break;
	case 5:
		err = ddps_cm_reject(g->cm, id, (uint16_t)v, NULL, g->now, &g->o);
		break;
	case 6:
		err = ddps_cm_delay(g->cm, id, v & 31, NULL, g->now, &g->o);
		break;
	case 7:
		err = ddps_cm_abort(g->cm, id, (uint16_t)v, g->now, &g->o);
		break;
	case 8:
		err = ddps_cm_withdraw(g->cm, id, g->now, &g->o);
		break;
	case 9:
		err = ddps_cm_disconnect(g->cm, id, g->now, &g->o);
		break;
	case 10:
		err = ddps_cm_closed(g->cm, id, g->now, &g->o);
		break;
	case 11:
		err = ddps_cm_data_is_rtu(g->cm, id, g->now, &g->o);
		break;
	default:
		ddps_cm_data_seen(g->cm, id);
		return;
	}
	if (!err)
		look_at_cm_outs(g);
	else if ((b & 15) > 1)
		FUZZ_CHECK(ddps_cm_state(g->cm, id) == was);
}

/* Time passes: a little, or until something is due; all that is due is served. */
static void pass_cm_time(struct rig *g, unsigned v)
{
	uint64_t due = ddps_cm_deadline(g->cm);

	if (v & 1 && due != DDPS_CM_NEVER && due > g->now)
		g->now = due;
	else
		g->now += UINT64_C(1) << (v >> 1) % 36;
	for (int i = 0; ddps_cm_tick(g->cm, g->now, &g->o); i++) {
		FUZZ_CHECK(i < 1000);
		look_at_cm_outs(g);
	}
	due = ddps_cm_deadline(g->cm);
	FUZZ_CHECK(due > g->now);
}

/* Left alone, with what the user owes given, every connection comes to its end. */
static void rest_until_ended(struct rig *g)
{
	uint64_t due;

	for (unsigned i = 0; i < g->nid && i < KNOWN; i++) {
		ddps_cm_reject(g->cm, g->id[i], 28, NULL, g->now, &g->o);
		ddps_cm_disconnect(g->cm, g->id[i], g->now, &g->o);
		ddps_cm_closed(g->cm, g->id[i], g->now, &g->o);
	}
	for (int i = 0; (due = ddps_cm_deadline(g->cm)) != DDPS_CM_NEVER; i++) {
		FUZZ_CHECK(i < 10000);
		g->now = due > g->now ? due : g->now;
		FUZZ_CHECK(ddps_cm_tick(g->cm, g->now, &g->o) == 1);
		look_at_cm_outs(g);
		if (g->o.n_report && g->o.report[0].state != DDPS_CM_ST_IDLE) {
			uint32_t id = g->o.report[0].id;

			ddps_cm_disconnect(g->cm, id, g->now, &g->o);
			ddps_cm_closed(g->cm, id, g->now, &g->o);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ddps_cm_config cfg = { .struct_size = sizeof(cfg),
					    .ca_guid = OUR_GUID,
					    .tid_high = 5,
					    .id_seed = 0x11223344,
					    .max_conns = MAX_CONNS };
	struct ddps_cm_listener l = { .service_id = SID, .pkey = 0xffff };
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	struct rig g = { .now = 1000000 };

	l.gid[15] = 9;
	FUZZ_CHECK(!ddps_cm_new(&g.cm, &cfg) && !ddps_cm_listen(g.cm, &l));
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++) {
		unsigned b = ddps_rbuf_u8(&in);

		if (b & 1)
			receive_cm_message(&g, &in);
		else if (b & 2)
			call_cm(&g, &in);
		else if (b < 0xf0)
			pass_cm_time(&g, b >> 2);
		else
			receive_raw(&g, &in);
	}
	rest_until_ended(&g);
	ddps_cm_free(g.cm);
	return 0;
}

/* ---- scripts ---- */

static size_t get_cm_fuzz_step_len(const uint8_t *p, size_t n)
{
	size_t len = 1;

	if (p[0] & 1)
		len = n > 3 && p[3] >= 0xfe ? 6 : 4;
	else if (p[0] & 2)
		len = 3;
	else if (p[0] >= 0xf0)
		len = n > 1 ? 3u + p[1] : 2;
	return len < n ? len : n;
}

/* A message with odd fields, or one from an end that knows no connection; else as libFuzzer likes. */
static size_t change_cm_fuzz_step(uint8_t *p, size_t n, struct fuzz_dice *d)
{
	if (n && !fuzz_roll(d, 2)) {
		n = 1 + (n > 1 ? LLVMFuzzerMutate(p + 1, n - 1, n - 1) : 0);
	} else if (fuzz_roll(d, 4)) {
		p[0] = 1;
		p[1] = (uint8_t)fuzz_roll(d, 11);
		p[2] = (uint8_t)fuzz_roll(d, 256);
		p[3] = fuzz_roll(d, 2) ? 0xfe : (uint8_t)fuzz_roll(d, 256);
		p[4] = (uint8_t)fuzz_roll(d, 256);
		p[5] = (uint8_t)fuzz_roll(d, 256);
		n = p[3] >= 0xfe ? 6 : 4;
	} else {
		p[0] = 0xf0;
		p[1] = DDPS_CM_MAD_LEN - 1;
		memset(p + 2, 0, DDPS_CM_MAD_LEN);
		fuzz_mutate_cm(p + 2, d);
		n = 2 + DDPS_CM_MAD_LEN;
	}
	return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static const struct fuzz_script script = { 0, get_cm_fuzz_step_len, change_cm_fuzz_step };

	return fuzz_mutate_script(&script, data, size, max, seed);
}
