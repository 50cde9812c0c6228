/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libibumad port behind a libibumad of this file's: CM messages, answers of the subnet
 * administrator good, spoilt, late or of others, sends that come back, and errors, while messages
 * are received and paths asked for.  A model says what each call must give, and when.
 */
#include "fuzz.h"
#include "ipoib_cm/ports/port_sa.h"
#include "ipoib_cm/ports/port_umad_priv.h"
#include <endian.h>
#include <errno.h>

#define STEPS_MAX 400
#define QUEUE_MAX 200
#define EPOCH	  (UINT64_C(1) << 60) /* ns */
#define MS	  UINT64_C(1000000)
#define CM_AGENT  3
#define SA_AGENT  4
#define HEADER	  64 /* of the library, in front of a message */
#define SM_LID	  9

struct message {
	int agent, error, status; /* error: in place of a message */
	ib_mad_addr_t from;
	unsigned len, ms; /* ms: it takes so long to come */
	uint8_t mad[DDPS_CM_MAD_LEN];
};

struct buffer {
	int status;
	ib_mad_addr_t addr;
	uint8_t pad[HEADER - sizeof(int) - sizeof(ib_mad_addr_t)];
	uint8_t mad[DDPS_CM_MAD_LEN];
};

static struct world {
	struct ddps_umad u;
	struct message in[QUEUE_MAX];
	unsigned head, tail;
	unsigned kept[QUEUE_MAX], nkept, overrun; /* of the messages, what the port has aside */
	unsigned undelivered, queries;
	uint32_t first_tid; /* of the path that is asked for */
	uint64_t now, asked;
	uint8_t dgid[DDPS_IPOIB_GID_LEN];
	int fail_send;
} w;

/* ---- the library ---- */

static size_t fake_umad_fuzz_size(void)
{
	return HEADER;
}

static void *fake_umad_fuzz_mad(void *umad)
{
	return ((struct buffer *)umad)->mad;
}

static ib_mad_addr_t *fake_umad_fuzz_addr(void *umad)
{
	return &((struct buffer *)umad)->addr;
}

static int fake_umad_fuzz_status(void *umad)
{
	return ((struct buffer *)umad)->status;
}

static int fake_umad_fuzz_set_addr(void *umad, int lid, int qp, int sl, int qkey)
{
	ib_mad_addr_t *a = fake_umad_fuzz_addr(umad);

	FUZZ_CHECK(qp == 1 && (uint32_t)qkey == DDPS_CM_QKEY && lid >= 0 && lid <= 0xffff);
	FUZZ_CHECK(sl >= 0 && sl < 16);
	a->lid = htobe16((uint16_t)lid);
	a->sl = (uint8_t)sl;
	return 0;
}

static int fake_umad_fuzz_set_pkey(void *umad, int index)
{
	fake_umad_fuzz_addr(umad)->pkey_index = (uint16_t)index;
	return 0;
}

/* A query as it should be, or what the script sends. */
static int fake_umad_fuzz_send(int fd, int agent, void *umad, int len, int timeout_ms, int retries)
{
	struct buffer *b = umad;

	FUZZ_CHECK(fd == 7 && len == DDPS_CM_MAD_LEN && !retries);
	if (agent == SA_AGENT) {
		struct ddps_rbuf r = ddps_rbuf_init(b->mad + 8, 8);

		FUZZ_CHECK(ddps_rbuf_be(&r, 8) == w.first_tid + w.queries && timeout_ms > 0);
		FUZZ_CHECK(b->addr.lid == htobe16(SM_LID) && !memcmp(b->mad + 64, w.dgid, 16));
		w.queries++;
		w.asked = w.now;
	} else {
		FUZZ_CHECK(agent == CM_AGENT && !timeout_ms && b->addr.path_bits == 2);
	}
	return w.fail_send ? -EIO : 0;
}

static int fake_umad_fuzz_recv(int fd, void *umad, int *len, int timeout_ms)
{
	struct message *m = &w.in[w.head];
	struct buffer *b = umad;

	FUZZ_CHECK(fd == 7 && *len == DDPS_CM_MAD_LEN && timeout_ms >= 0);
	if (w.head == w.tail || m->ms > (unsigned)timeout_ms) {
		if (w.head != w.tail)
			m->ms -= (unsigned)timeout_ms;
		w.now += (uint64_t)timeout_ms * MS;
		fuzz_time_set(w.now);
		return -ETIMEDOUT;
	}
	w.now += m->ms * MS;
	fuzz_time_set(w.now);
	w.head++;
	if (m->error)
		return m->error;
	b->status = m->status;
	b->addr = m->from;
	memcpy(b->mad, m->mad, m->len);
	*len = (int)m->len;
	return m->agent;
}

/* ---- what must come of it ---- */

static bool is_nothing(const struct message *m)
{
	return m->error == -EINTR || m->error == -EAGAIN || m->error == -EPERM;
}

static uint16_t get_umad_fuzz_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* What an answer says, with IBA's offsets; DDPS_E_AGAIN: it is none to query @tid. */
static int model_answer(const uint8_t *p, uint32_t tid)
{
	static const uint8_t head[] = { 1, 3, 2, 0x81 };

	if (memcmp(p, head, 4) != 0 || get_umad_fuzz_be16(p + 16) != 0x35 ||
	    get_umad_fuzz_be16(p + 12) != tid >> 16 || get_umad_fuzz_be16(p + 14) != (tid & 0xffff))
		return DDPS_E_AGAIN;
	if (get_umad_fuzz_be16(p + 4))
		return get_umad_fuzz_be16(p + 4) == 0x300 ? DDPS_E_ADDRESS : DDPS_E_PROTOCOL;
	return get_umad_fuzz_be16(p + 96) && get_umad_fuzz_be16(p + 98) && (p[110] & 63) >= 1 &&
			       (p[110] & 63) <= 5 && (p[112] & 63) < 32
		       ? 0
		       : DDPS_E_PROTOCOL;
}

static void check_umad_fuzz_path(const struct ddps_sa_path *p, const uint8_t *mad)
{
	FUZZ_CHECK(!memcmp(p->path.remote_gid, mad + 64, 16));
	FUZZ_CHECK(!memcmp(p->path.local_gid, mad + 80, 16));
	FUZZ_CHECK(p->path.remote_lid == get_umad_fuzz_be16(mad + 96) &&
		   p->path.local_lid == get_umad_fuzz_be16(mad + 98));
	FUZZ_CHECK(p->path.flow_label ==
		   ((uint32_t)get_umad_fuzz_be16(mad + 100) << 8 | mad[102]) % (1u << 20));
	FUZZ_CHECK(p->path.hop_limit == mad[103] && p->path.traffic_class == mad[104]);
	FUZZ_CHECK(p->pkey == get_umad_fuzz_be16(mad + 106) && p->path.sl == (mad[109] & 15));
	FUZZ_CHECK(p->mtu == (mad[110] & 63) && p->path.rate == (mad[111] & 63));
	FUZZ_CHECK(p->life == (mad[112] & 63));
	FUZZ_CHECK(ddps_umad_lid(ddps_umad_addr(p)) == get_umad_fuzz_be16(mad + 96));
}

/* What the port has read without giving it back. */
static void account(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct message *m = &w.in[i];

		if (m->error)
			continue;
		if (m->status)
			w.undelivered++;
		else if (m->agent == CM_AGENT && w.nkept == DDPS_UMAD_KEPT)
			w.overrun++;
		else if (m->agent == CM_AGENT)
			w.kept[w.nkept++] = i;
	}
}

static void path_step(unsigned b)
{
	unsigned tries = 1 + (b & 3), ms = 1 + (b >> 2 & 15), before = w.head;
	struct ddps_sa_path p;
	const struct message *last;
	int res;

	memset(w.dgid, (int)b, sizeof w.dgid);
	w.queries = 0;
	w.first_tid = w.u.sa_tid + 1;
	res = ddps_umad_path(&w.u, w.dgid, tries, (int)ms, &p);
	account(before, w.head);
	FUZZ_CHECK(w.queries >= 1 && w.queries <= tries);
	last = w.head > before ? &w.in[w.head - 1] : NULL;
	if (w.fail_send) {
		FUZZ_CHECK(res == DDPS_E_SYSTEM && w.head == before);
	} else if (res == DDPS_E_TIMEDOUT) {
		FUZZ_CHECK(w.queries == tries && w.now >= w.asked + ms * MS);
	} else if (res == DDPS_E_SYSTEM) {
		FUZZ_CHECK(last && last->error && !is_nothing(last));
	} else {
		FUZZ_CHECK(last && !last->error && !last->status && last->agent == SA_AGENT);
		FUZZ_CHECK(model_answer(last->mad, w.u.sa_tid) == res);
		FUZZ_CHECK(w.now < w.asked + (ms + 1) * MS);
	}
	/* nothing that ends it was passed over */
	for (unsigned i = before; i + 1 < w.head; i++)
		FUZZ_CHECK(!w.in[i].error || is_nothing(&w.in[i]));
	for (unsigned i = before; i + 1 < w.head && w.queries == 1; i++)
		FUZZ_CHECK(w.in[i].error || w.in[i].status || w.in[i].agent != SA_AGENT ||
			   model_answer(w.in[i].mad, w.u.sa_tid) == DDPS_E_AGAIN);
	if (!res)
		check_umad_fuzz_path(&p, last->mad);
}

static void check_message(const struct message *m, const uint8_t *mad, ddps_cm_addr from)
{
	FUZZ_CHECK(!memcmp(mad, m->mad, DDPS_CM_MAD_LEN));
	FUZZ_CHECK(ddps_umad_lid(from) == be16toh(m->from.lid) &&
		   (from >> 16 & 0xff) == m->from.sl && (from >> 24 & 0xff) == m->from.path_bits &&
		   from >> 32 == m->from.pkey_index);
}

static void recv_step(unsigned b)
{
	unsigned before = w.head;
	uint8_t mad[DDPS_CM_MAD_LEN];
	const struct message *m;
	ddps_cm_addr from;
	int res = ddps_umad_recv(&w.u, (int)(b & 15), mad, &from);

	if (w.nkept) {
		FUZZ_CHECK(res == 1 && w.head == before);
		check_message(&w.in[w.kept[0]], mad, from);
		memmove(w.kept, w.kept + 1, --w.nkept * sizeof w.kept[0]);
		return;
	}
	m = w.head > before ? &w.in[before] : NULL;
	FUZZ_CHECK(w.head <= before + 1);
	if (!m || (m->error && is_nothing(m))) {
		FUZZ_CHECK(!res);
	} else if (m->error) {
		FUZZ_CHECK(res == DDPS_E_SYSTEM);
	} else if (m->status || m->agent != CM_AGENT) {
		FUZZ_CHECK(!res);
		w.undelivered += m->status != 0;
	} else {
		FUZZ_CHECK(res == 1);
		check_message(m, mad, from);
	}
}

/* ---- the script ---- */

static void make_sa_answer(struct message *m, struct ddps_rbuf *in, unsigned later)
{
	static const uint8_t values[] = { 0,	7,    0,    3,	 0x01, 0x23, 0x45, 0x01, 9,
					  0x81, 0x80, 0x01, 0xa, 0xb5, 0x84, 0xc7, 0x92 };
	unsigned spoilt = ddps_rbuf_u8(in);

	ddps_sa_path_query(m->mad, w.u.sa_tid + 1 + later, w.u.info.gid, w.dgid);
	m->mad[3] = 0x81;
	memcpy(m->mad + 96, values, sizeof values);
	for (unsigned i = 0; i < (spoilt & 3); i++) {
		unsigned at = ddps_rbuf_u8(in);

		m->mad[spoilt & 4 ? at % 18 : spoilt & 8 ? 96 + at % 18 : at] = ddps_rbuf_u8(in);
	}
}

static void message_step(unsigned b, struct ddps_rbuf *in)
{
	static const int errors[] = { -EINTR, -EAGAIN, -EPERM, -EIO };
	unsigned odd = ddps_rbuf_u8(in);
	struct message *m = &w.in[w.tail];
	size_t n;

	if (w.tail == QUEUE_MAX)
		return;
	*m = (struct message){ .ms = odd & 7, .len = DDPS_CM_MAD_LEN };
	m->agent = b & 8 ? SA_AGENT : CM_AGENT;
	if (odd >> 5 == 7)
		m->error = errors[b & 3];
	else if (odd >> 5 == 6)
		m->status = 110;
	else if (odd >> 5 == 5)
		m->agent = 5;
	m->from = (ib_mad_addr_t){ .lid = htobe16((uint16_t)(odd << 4)),
				   .sl = (uint8_t)(odd & 15),
				   .path_bits = (uint8_t)(b >> 4),
				   .pkey_index = (uint16_t)(odd >> 3) };
	if (b & 8) {
		make_sa_answer(m, in, b >> 4 & 3);
	} else {
		const uint8_t *data = fuzz_some(in, b >> 4, &n);

		if (n)
			memcpy(m->mad, data, n);
		m->len = (unsigned)n;
	}
	w.tail++;
}

static void step_umad_fuzz(struct ddps_rbuf *in)
{
	const uint8_t mad[DDPS_CM_MAD_LEN] = { 1 };
	unsigned b = ddps_rbuf_u8(in);

	switch (b & 7) {
	case 0:
	case 1:
	case 2:
		message_step(b, in);
		break;
	case 3:
		recv_step(b >> 3);
		break;
	case 4:
		path_step(ddps_rbuf_u8(in));
		break;
	case 5:
		FUZZ_CHECK(ddps_umad_send(&w.u, 0x102030405u | UINT64_C(2) << 24, mad) ==
			   (w.fail_send ? DDPS_E_SYSTEM : 0));
		break;
	case 6:
		for (unsigned i = 0; i < b >> 3; i++) /* many together */
			message_step(0x10, in);
		break;
	default:
		w.fail_send = b & 8;
		break;
	}
	FUZZ_CHECK(w.u.n_kept == w.nkept);
	FUZZ_CHECK(ddps_umad_stats(&w.u)->overrun == w.overrun);
	FUZZ_CHECK(ddps_umad_stats(&w.u)->undelivered == w.undelivered);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);

	memset(&w, 0, sizeof w);
	w.now = EPOCH;
	fuzz_time_set(w.now);
	w.u.lib = (struct ddps_umad_lib){ .umad_size = fake_umad_fuzz_size,
					  .umad_get_mad = fake_umad_fuzz_mad,
					  .umad_get_mad_addr = fake_umad_fuzz_addr,
					  .umad_status = fake_umad_fuzz_status,
					  .umad_set_addr = fake_umad_fuzz_set_addr,
					  .umad_set_pkey = fake_umad_fuzz_set_pkey,
					  .umad_send = fake_umad_fuzz_send,
					  .umad_recv = fake_umad_fuzz_recv };
	w.u.fd = 7;
	w.u.cm_agent = CM_AGENT;
	w.u.sa_agent = SA_AGENT;
	w.u.info.sm_lid = SM_LID;
	w.u.buf = malloc(HEADER + DDPS_CM_MAD_LEN);
	FUZZ_CHECK(w.u.buf);
	for (int i = 0; i < STEPS_MAX && fuzz_more(&in); i++)
		step_umad_fuzz(&in);
	free(w.u.buf);
	fuzz_time_set(0);
	return 0;
}
