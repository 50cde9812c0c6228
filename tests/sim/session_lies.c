/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that lies.  The library runs there too, so that its sessions begin and have a state;
 * what it sends is changed on its way out, and more is sent than it says: MPA frames in a stream,
 * messages over SCTP, SCTP packets.  All checksums are right, but where the lie is a wrong one.
 */
#include "common/bytes.h"
#include "mpa_tcp/mpa_crc.h"
#include "rdmap/rdmap_wire.h"
#include "sctp/sctp.h"
#include "sim/kern_in.h"
#include "sim/session_world.h"

#define FRAME	 (65535u + 6 + 3)
#define MPA_HEAD 20u
#define STREAMS	 256u

struct lies {
	uint32_t msn[DDPS_QN_COUNT];
	bool started;  /* MPA: FPDUs follow */
	bool whatever; /* it has become nonsense */
	size_t len, last_len;
	uint8_t buf[FRAME], last[FRAME];
};

static uint32_t be32(const uint8_t *p)
{
	struct ddps_rbuf r = ddps_rbuf_init(p, 4);

	return (uint32_t)ddps_rbuf_be(&r, 4);
}

static void put_be(uint8_t *p, uint64_t v, unsigned n)
{
	while (n--)
		*p++ = (uint8_t)(v >> 8 * n);
}

static void noise(uint8_t *p, size_t len)
{
	uint64_t state = sim_like(UINT64_MAX);

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)sim_next(&state);
}

/* ---- DDP segments ---- */

/* An STag and an offset that mean something at one of the others, or nearly. */
static void some_memory(uint32_t *stag, uint64_t *to)
{
	const struct end *e = &world.pair[sim_like(world.npairs)].end[sim_like(2)];
	struct ddps_mr *mr[6];
	unsigned i = (unsigned)sim_like(6);

	/* rather one that is there, and not the liar's own */
	for (unsigned k = 0; k < 16 && (!e->bait || kern.liars >> e->host & 1); k++)
		e = &world.pair[sim_like(world.npairs)].end[sim_like(2)];
	memcpy(mr, (struct ddps_mr *[]){ e->sink, e->src, e->local, e->atomic, e->inv, e->tx },
	       sizeof mr);

	*stag = (uint32_t)sim_like(UINT32_MAX);
	*to = sim_like(UINT64_MAX);
	if (e->bait && sim_like(2)) {
		*stag = ddps_mr_stag(e->bait);
		*to = ddps_mr_to(e->bait) + sim_like(8);
		return;
	}
	if (!mr[i])
		return;
	*stag = ddps_mr_stag(mr[i]) ^ (sim_like(8) ? 0 : 1u << sim_like(32));
	*to = ddps_mr_to(mr[i]) + sim_like(3 * RECV_LEN * SLOTS) - sim_like(8) * RECV_LEN;
}

/* The fields of a Read Request, the payload of Terminates and so on. */
static void alter_payload(uint8_t *p, size_t len)
{
	uint32_t stag;
	uint64_t to;

	some_memory(&stag, &to);
	if (len >= 28 && sim_like(2)) {
		put_be(p + (sim_like(2) ? 0 : 16), stag, 4);
		put_be(p + (sim_like(2) ? 4 : 20), to, 8);
	} else if (len >= 4) {
		put_be(p + sim_like(len / 4) * 4, sim_like(2) ? stag : sim_like(100000), 4);
	}
}

/* The answer to a Read becomes one to an atomic operation. */
static size_t other_answer(const struct lies *l, uint8_t *s)
{
	s[0] = 0x41;
	s[1] = 0x40 | DDPS_OP_WIRE_ATOMIC_RESP;
	put_be(s + 2, 0, 4);
	put_be(s + 6, DDPS_QN_ATOMIC, 4);
	put_be(s + 10, l->msn[DDPS_QN_ATOMIC] + 1, 4);
	put_be(s + 14, 0, 4);
	put_be(s + 18, sim_like(4) ? 0 : sim_like(16), 4);
	noise(s + 22, 8);
	return 30;
}

/* In place, with room for a few octets more; returns the new length. */
static size_t alter_session_lies(const struct lies *l, uint8_t *s, size_t len)
{
	size_t head = len && s[0] & 0x80 ? 14 : 18;
	uint32_t stag;
	uint64_t to;

	if (len < head)
		return len;
	if ((s[1] & 15) == DDPS_OP_WIRE_READ_RESP && (len == head || !sim_like(3)))
		return other_answer(l, s);
	switch (sim_like(9)) {
	case 0:
		s[sim_like(head)] = (uint8_t)sim_like(256);
		break;
	case 1:
		s[sim_like(head)] ^= (uint8_t)(1u << sim_like(8));
		break;
	case 2: /* STag and offset, or the message's number */
		some_memory(&stag, &to);
		if (head == 14) {
			put_be(s + 2, stag, 4);
			put_be(s + 6, to, 8);
		} else {
			put_be(s + 10, be32(s + 10) + (uint32_t)sim_like(4) - 2, 4);
		}
		break;
	case 3:
		put_be(s + head - 4, be32(s + head - 4) + (uint32_t)sim_like(65536) - 32768, 4);
		break;
	case 4:
		s[0] ^= 0x40;
		break;
	case 5:
		s[1] = (uint8_t)(0x40 | sim_like(16));
		break;
	case 6:
		return sim_like(len + 1);
	case 7:
		put_be(s + 2, sim_like(2) ? 0 : UINT32_MAX, 4);
		break;
	default:
		alter_payload(s + head, len - head);
	}
	return len;
}

/* An unrequested one, into @s, which has room for 2048 octets. */
static size_t forge(const struct lies *l, uint8_t *s)
{

	/* What answers a request usually finds one open. */
	const unsigned ops[] = { (unsigned)sim_like(12), DDPS_OP_WIRE_WRITE,
				 DDPS_OP_WIRE_WRITE,	 DDPS_OP_WIRE_READ_REQ,
				 DDPS_OP_WIRE_READ_RESP, DDPS_OP_WIRE_ATOMIC_RESP };
	unsigned op = ops[sim_like(6)], qn = (unsigned)sim_like(5);
	size_t head = op == DDPS_OP_WIRE_WRITE || op == DDPS_OP_WIRE_READ_RESP ? 14 : 18;
	size_t len = op == DDPS_OP_WIRE_READ_REQ     ? 28
		     : op == DDPS_OP_WIRE_TERMINATE  ? 4 + sim_like(60)
		     : op == DDPS_OP_WIRE_IMM	     ? 8
		     : op >= DDPS_OP_WIRE_ATOMIC_REQ ? (op & 1 ? 12 : 52)
						     : sim_like(sim_like(2) ? 48 : 1400);
	uint32_t stag;
	uint64_t to;

	noise(s, head + len);
	s[0] = (uint8_t)(0x01 | (sim_like(4) ? 0x40 : 0) | (head == 14 ? 0x80 : 0));
	s[1] = (uint8_t)(0x40 | op);
	some_memory(&stag, &to);
	put_be(s + 2, stag, 4);
	if (head == 14) {
		put_be(s + 6, to, 8);
	} else {
		if (sim_like(4)) /* the one that is this operation's */
			qn = op == DDPS_OP_WIRE_READ_REQ || op == DDPS_OP_WIRE_ATOMIC_REQ ? 1u
			     : op == DDPS_OP_WIRE_TERMINATE				  ? 2u
			     : op == DDPS_OP_WIRE_ATOMIC_RESP				  ? 3u
											  : 0u;
		put_be(s + 6, qn, 4);
		put_be(s + 10, (qn < DDPS_QN_COUNT ? l->msn[qn] : 0) + sim_like(3), 4);
		put_be(s + 14, sim_like(4) ? 0 : sim_like(70000), 4);
	}
	if (op == DDPS_OP_WIRE_ATOMIC_RESP)
		put_be(s + head, sim_like(2) ? 0 : sim_like(16), 4);
	else if (sim_like(2))
		alter_payload(s + head, len);
	return head + len;
}

static void note_session_lies(struct lies *l, const uint8_t *s, size_t len)
{
	uint32_t qn = len >= 18 && !(s[0] & 0x80) ? be32(s + 6) : DDPS_QN_COUNT;

	if (qn < DDPS_QN_COUNT)
		l->msn[qn] = be32(s + 10);
}

/* ---- streams ---- */

static void put_fpdu(uint8_t *f, size_t len, bool crc, kern_put *put, void *to)
{
	size_t n = (2 + len + 3) & ~(size_t)3;

	put_be(f, len, 2);
	memset(f + 2 + len, 0, n - 2 - len);
	ddps_mpa_crc_store(f + n, ddps_mpa_crc(DDPS_MPA_CRC_INIT, f, n) ^ !crc);
	put(to, f, n + 4);
}

/* How long the frame in front of @l is; 0: that is not known yet. */
static size_t frame(const struct lies *l)
{
	size_t n = 0;

	if (!l->started && l->len >= MPA_HEAD)
		n = MPA_HEAD + (be32(l->buf + 16) & 0xffff);
	else if (l->started && l->len >= 2)
		n = ((2 + (be32(l->buf) >> 16) + 3) & ~3u) + 4;
	return n <= l->len ? n : 0;
}

/* A start frame; false: the stream ends. */
static bool lie_at_start(struct lies *l, uint8_t *f, size_t len, kern_put *put, void *to)
{
	static uint8_t more[2100];

	switch (sim_like(8)) {
	case 0:
		f[sim_like(MPA_HEAD)] ^= (uint8_t)(1u << sim_like(8));
		break;
	case 1:
		f[16 + sim_like(len - 16)] = (uint8_t)sim_like(256);
		break;
	case 2: /* twice */
		put(to, f, len);
		break;
	case 3: /* too early */
		put_fpdu(more, forge(l, more + 2), true, put, to);
		break;
	case 4: /* never */
		return true;
	case 5:
		put(to, f, sim_like(len));
		return false;
	case 6: /* Request for Reply */
		f[9] ^= 'q' ^ 'p';
		break;
	default: /* the length */
		put_be(f + 18, sim_like(1024), 2);
	}
	put(to, f, len);
	return true;
}

static bool lie_in_fpdu(struct lies *l, uint8_t *f, size_t len, kern_put *put, void *to)
{
	static uint8_t more[2100];
	size_t n = be32(f) >> 16;

	switch (sim_like(16)) {
	case 0:
	case 1:
		put_fpdu(f, alter_session_lies(l, f + 2, n), true, put, to);
		return true;
	case 4:
		put(to, f, len);
		break;
	case 5: /* lost */
		return true;
	case 6: /* one of before */
		if (l->last_len)
			put(to, l->last, l->last_len);
		break;
	case 7:
		if (sim_like(2)) {
			put_fpdu(f, n, false, put, to);
			return true;
		}
		noise(more, 200);
		put(to, more, sim_like(200));
		break;
	case 8: /* in the midst of it */
		put(to, f, sim_like(len));
		return false;
	default:
		put_fpdu(more, forge(l, more + 2), true, put, to);
	}
	put(to, f, len);
	return true;
}

static bool one_frame(struct lies *l, size_t len, kern_put *put, void *to)
{
	static uint8_t f[FRAME + 64];
	bool goes_on = true;

	memcpy(f, l->buf, len);
	if (l->started)
		note_session_lies(l, f + 2, len - 6);
	if (!kern_chance(kern.f.lie, &kern.n.lie))
		put(to, f, len);
	else
		goes_on = (l->started ? lie_in_fpdu : lie_at_start)(l, f, len, put, to);
	memcpy(l->last, l->buf, len);
	l->last_len = len;
	l->started = true;
	return goes_on;
}

/* Of a stream of a host that lies. */
static bool lie_in_stream(void **state, const uint8_t *p, size_t len, kern_put *put, void *to)
{
	struct lies *l = *state;
	bool goes_on = true;
	size_t n;

	if (!l)
		*state = l = memset(kern_alloc(sizeof *l), 0, sizeof *l);
	while (len) {
		size_t k = len < sizeof l->buf - l->len ? len : sizeof l->buf - l->len;

		memcpy(l->buf + l->len, p, k);
		l->len += k;
		p += k;
		len -= k;
		while (goes_on && (n = frame(l))) {
			goes_on = one_frame(l, n, put, to);
			l->len -= n;
			memmove(l->buf, l->buf + n, l->len);
		}
		if (l->len == sizeof l->buf || !goes_on)
			l->len = 0;
	}
	return goes_on;
}

/* ---- messages over SCTP ---- */

static struct lies of_stream[STREAMS];
static uint16_t delta[STREAMS]; /* messages put in so far */

static size_t forge_message(const struct lies *l, uint8_t *m, uint16_t ssn, uint32_t *ppid)
{
	put_be(m, ssn, 2);
	if (sim_like(2)) {
		*ppid = sim_like(8) ? 16 : (uint32_t)sim_like(1u << 31);
		return 2 + forge(l, m + 2);
	}
	*ppid = 17;
	put_be(m + 2, sim_like(10), 2);
	noise(m + 4, 600);
	return 4 + (sim_like(2) ? sim_like(600) : 0);
}

/* The message is altered; what comes in front of it is put. */
static void lie_in_message(struct kern_message *m, kern_message_put *put, void *to)
{
	struct lies *l = &of_stream[m->stream % STREAMS];
	static struct kern_message more;
	uint16_t ssn = (uint16_t)(be32(m->octets) >> 16);

	switch (sim_like(12)) {
	case 0:
	case 1:
		if (m->ppid == 16)
			m->len = 2 + alter_session_lies(l, m->octets + 2, m->len - 2);
		break;
	case 7:
		m->len = sim_like(m->len + 1);
		break;
	default: /* one more, in its place */
		more.stream = m->stream;
		more.unordered = m->unordered;
		more.len = forge_message(l, more.octets, ssn, &more.ppid);
		put(to, &more);
		delta[m->stream % STREAMS]++;
		put_be(m->octets, ssn + 1u, 2);
		break;
	case 4: /* the same again, with this number or the next */
		put(to, m);
		if (!sim_like(2))
			break;
		delta[m->stream % STREAMS]++;
		put_be(m->octets, ssn + 1u, 2);
		break;
	case 5: /* other numbers, streams, kinds */
		if (sim_like(3))
			put_be(m->octets + (sim_like(2) && m->len > 3 ? 2 : 0), sim_like(65536), 2);
		else
			m->stream = (uint16_t)sim_like(8);
		break;
	case 6:
		m->ppid = sim_like(2) ? 33 - m->ppid : (uint32_t)sim_like(1u << 31);
		m->unordered = !m->unordered;
		break;
	}
}

/* A message of a host that lies; it may be what it should be. */
static void perhaps_lie(struct kern_message *m, kern_message_put *put, void *to)
{
	uint16_t *d = &delta[m->stream % STREAMS];

	if (m->len >= 2) {
		uint16_t ssn = (uint16_t)(be32(m->octets) >> 16);

		if (!ssn)
			*d = 0;
		put_be(m->octets, (uint16_t)(ssn + *d), 2);
		if (m->ppid == 16)
			note_session_lies(&of_stream[m->stream % STREAMS], m->octets + 2,
					  m->len - 2);
	}
	kern_whose = kern.host;
	if (m->len >= 4 && kern_chance(kern.f.lie, &kern.n.lie))
		lie_in_message(m, put, to);
}

/* ---- ... of our engine ---- */

int __real_ddps_sctp_send(struct ddps_sctp_assoc *a, uint16_t stream, uint32_t ppid, unsigned flags,
			  const struct iovec *iov, int niov, uint64_t now);
int __wrap_ddps_sctp_send(struct ddps_sctp_assoc *a, uint16_t stream, uint32_t ppid, unsigned flags,
			  const struct iovec *iov, int niov, uint64_t now);

struct to_engine {
	struct ddps_sctp_assoc *a;
	unsigned flags;
	uint64_t now;
	int err; /* of the last */
};

static void put_to_engine(void *to, const struct kern_message *m)
{
	struct to_engine *e = to;
	struct iovec iov = { (void *)(uintptr_t)m->octets, m->len };

	e->err = __real_ddps_sctp_send(e->a, m->stream, m->ppid,
				       (e->flags & ~(unsigned)DDPS_SCTP_UNORDERED) |
					       (m->unordered ? DDPS_SCTP_UNORDERED : 0),
				       &iov, 1, e->now);
}

int __wrap_ddps_sctp_send(struct ddps_sctp_assoc *a, uint16_t stream, uint32_t ppid, unsigned flags,
			  const struct iovec *iov, int niov, uint64_t now)
{
	static struct kern_message m;
	struct to_engine to = { a, flags, now, 0 };

	if (!(kern.liars >> kern.host & 1))
		return __real_ddps_sctp_send(a, stream, ppid, flags, iov, niov, now);
	m.stream = stream;
	m.ppid = ppid;
	m.unordered = flags & DDPS_SCTP_UNORDERED;
	m.len = 0;
	for (int i = 0; i < niov; m.len += iov[i++].iov_len)
		if (iov[i].iov_len)
			memcpy(m.octets + m.len, iov[i].iov_base, iov[i].iov_len);
	perhaps_lie(&m, put_to_engine, &to);
	put_to_engine(&to, &m);
	return to.err;
}

/* ---- packets ---- */

/* Of SCTP, with its checksum; returns the new length. */
static size_t lie_in_packet(uint8_t *p, size_t len)
{
	size_t at = 12;

	if (len < 16 || sim_like(8)) /* mostly it lies in what packets carry */
		return len;
	for (unsigned skip = (unsigned)sim_like(3); skip-- && at + 8 < len;) {
		size_t n = ((be32(p + at) & 0xffff) + 3u) & ~3u;

		at += n ? n : 4;
	}
	if (at + 4 > len)
		at = 12;
	switch (sim_like(5)) {
	case 0:
		p[at] = (uint8_t)sim_like(16);
		break;
	case 1:
		put_be(p + at + 2, sim_like(len), 2);
		break;
	case 2:
		p[at + sim_like(len - at)] = (uint8_t)sim_like(256);
		break;
	case 3: /* a TSN, a gap, a window ... */
		at += 4 * sim_like((len - at) / 4);
		put_be(p + at, be32(p + at) + (uint32_t)sim_like(64) - 32, 4);
		break;
	default:
		len = at + sim_like(len - at);
	}
	memset(p + 8, 0, 4);
	ddps_mpa_crc_store(p + 8, ddps_mpa_crc(DDPS_MPA_CRC_INIT, p, len));
	return len;
}

void lies_begin(unsigned hosts)
{
	kern.liars = hosts;
	kern_lie_stream = lie_in_stream;
	kern_lie_packet = lie_in_packet;
	kern_lie_message = perhaps_lie;
	memset(delta, 0, sizeof delta);
	for (unsigned i = 0; i < STREAMS; i++)
		memset(of_stream[i].msn, 0, sizeof of_stream[i].msn);
}
