/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of TLS 1.3.  The input makes records of a peer who has the right keys, most of them well formed, and
 * then perhaps octets that are not; a model says what they have to lead to.  Received in two different cuts, in
 * place and to another buffer, they have to lead there.  Then the end seals from pieces, which another end has to
 * open.
 */
#include "fuzz.h"
#include "secure/record/record_in.h"
#include "support/aead_stub.h"
#include <errno.h>

#define WIRE_MAX (1u << 17)

enum { CLIENT = 1, LIMIT = 2, BIG_SUITE = 4 };
enum { OP_TYPED, OP_DATA, OP_UPDATE, OP_TICKET, OP_EMPTY, OP_ALERT, OP_CHANGE, OP_RAW, OPS };

/* What the records so far have led to, and their keys. */
struct model {
	bool client, closed, failed, owes;
	int alert; /* that is due, or -1 */
	unsigned idle, tickets, updates, data, octets;
	size_t inner_max;
	uint8_t head[4];
	unsigned have;
	size_t body;  /* of the message that is read, to come */
	uint8_t last; /* octet of it */
	/* the forger's */
	enum ddps_suite suite;
	struct ddps_rec_keys k;
	_Alignas(DDPS_AEAD_ALIGN) uint8_t st[64];
};

static void model_fails(struct model *m, int alert)
{
	m->failed = true;
	m->alert = alert;
}

static void model_idle(struct model *m)
{
	if (++m->idle > 32)
		model_fails(m, 10);
}

static void set_keys(enum ddps_suite suite, struct ddps_rec_keys *k)
{
	ddps_rec_expand(suite, k->secret, "key", ddps_suite_key_len(suite), k->key);
	ddps_rec_expand(suite, k->secret, "iv", 12, k->iv);
	k->seq = 0;
}

static void next_keys(struct model *m)
{
	uint8_t next[48];

	ddps_rec_expand(m->suite, m->k.secret, "traffic upd", ddps_suite_hash_len(m->suite), next);
	memcpy(m->k.secret, next, sizeof next);
	set_keys(m->suite, &m->k);
	aead_stub()->wipe(m->st);
	FUZZ_CHECK(!aead_stub()->init(m->st, m->suite, m->k.key));
}

/* An octet of a handshake message, behind which are @left in its record.  True: keys changed. */
static bool model_octet(struct model *m, uint8_t octet, size_t left)
{
	bool ticket;

	if (m->have < 4) {
		m->head[m->have++] = octet;
		if (m->have < 4)
			return false;
		m->body = (size_t)m->head[1] << 16 | (size_t)m->head[2] << 8 | m->head[3];
		ticket = m->head[0] == 4 && m->client;
		if (!ticket && m->head[0] != 24)
			model_fails(m, 10);
		else if (ticket ? m->body < 14 || m->body > 131337 : m->body != 1)
			model_fails(m, 50);
		return false;
	}
	m->last = octet;
	if (--m->body)
		return false;
	m->have = 0;
	if (m->head[0] == 4) {
		m->tickets++;
		return false;
	}
	if (m->last > 1)
		model_fails(m, 47);
	else if (left)
		model_fails(m, 10);
	if (m->failed)
		return false;
	m->updates++;
	m->owes |= m->last;
	return true;
}

/* A record whose tag is right. */
static void model_record(struct model *m, const uint8_t *inner, size_t n)
{
	bool changed = false;
	uint8_t type;

	if (n > m->inner_max) {
		model_fails(m, 22);
		return;
	}
	while (n && !inner[n - 1])
		n--;
	type = n ? inner[--n] : 0;
	if (type < 21 || type > 23 || (!n && type != 23)) {
		model_fails(m, 10);
	} else if (type == 21) {
		if (n != 2)
			model_fails(m, 50);
		else if (inner[1] != 0 && inner[1] != 90)
			model_fails(m, -1);
		else if (m->have)
			model_fails(m, 10);
		else if (inner[1])
			model_idle(m);
		else
			m->closed = true;
	} else if (type == 23) {
		m->data += n > 0;
		m->octets += (unsigned)n;
		if (m->have) {
			m->data -= n > 0;
			m->octets -= (unsigned)n;
			model_fails(m, 10);
		} else if (n) {
			m->idle = 0;
		} else {
			model_idle(m);
		}
	} else {
		for (size_t i = 0; i < n && !m->failed; i++)
			changed |= model_octet(m, inner[i], n - 1 - i);
		if (!m->failed && (changed || m->have))
			model_idle(m);
	}
	if (changed)
		next_keys(m);
}

/* ---- the stream ---- */

struct stream {
	struct model m;
	uint8_t wire[WIRE_MAX];
	size_t len;
	bool broken; /* what comes then is not of the peer's making */
};

/* Seal as the peer, and say what has to come of it. */
static void add_record(struct stream *s, const uint8_t *inner, size_t n)
{
	struct iovec iov = { (void *)inner, n };
	uint8_t *out = s->wire + s->len, nonce[12];
	struct ddps_rec_half half = { 0 };

	if (s->len + n + DDPS_REC_OVERHEAD > WIRE_MAX || s->broken || s->m.failed)
		return;
	memcpy(half.iv, s->m.k.iv, sizeof half.iv);
	ddps_rec_nonce(&half, s->m.k.seq++, nonce);
	out[0] = 23;
	out[1] = out[2] = 3;
	out[3] = (uint8_t)((n + 16) >> 8);
	out[4] = (uint8_t)(n + 16);
	FUZZ_CHECK(!aead_stub()->seal(s->m.st, nonce, out, 5, &iov, 1, out + 5));
	s->len += 5 + n + 16;
	if (!s->m.closed)
		model_record(&s->m, inner, n);
}

static void add_typed(struct stream *s, uint8_t type, const uint8_t *p, size_t n, size_t pad)
{
	uint8_t *inner = calloc(1, n + 1 + pad);

	FUZZ_CHECK(inner);
	if (n)
		memcpy(inner, p, n);
	inner[n] = type;
	add_record(s, inner, n + 1 + pad);
	free(inner);
}

/* A handshake message of the input, in records of so many octets. */
static void add_message(struct stream *s, const uint8_t *p, size_t n, size_t each)
{
	while (n) {
		size_t part = n < each ? n : each;

		add_typed(s, 22, p, part, 0);
		p += part;
		n -= part;
	}
}

static void add_ticket(struct stream *s, struct ddps_rbuf *in)
{
	size_t len = ddps_rbuf_u8(in), each = ddps_rbuf_u8(in) + 1u;
	uint8_t msg[4 + 256 + 5] = { 4, 0, 0, (uint8_t)len };
	bool update = ddps_rbuf_u8(in) & 1;

	memcpy(msg + 4 + len, (uint8_t[]){ 24, 0, 0, 1, 1 }, 5);
	add_message(s, msg, 4 + len + (update ? 5 : 0), each);
}

/* A record of which a bit is another: it leads to nothing but the end. */
static void add_changed(struct stream *s, uint8_t a)
{
	struct model before = s->m;
	size_t at = s->len;

	if (s->broken || s->m.failed || s->m.closed || a % 8 > 3)
		return;
	add_typed(s, 23, &a, 1, 0);
	if (s->len == at)
		return;
	s->wire[at + 5 + a % (s->len - at - 5)] ^= (uint8_t)(1u << a % 8);
	s->m = before;
	model_fails(&s->m, 20);
}

static void add_op(struct stream *s, struct ddps_rbuf *in)
{
	uint8_t op = ddps_rbuf_u8(in) % OPS, a = ddps_rbuf_u8(in);
	const uint8_t *p;
	size_t n;

	switch (op) {
	case OP_TYPED:
		n = ddps_rbuf_u16(in) % 700;
		p = fuzz_some(in, n, &n);
		add_typed(s, a, p, n, ddps_rbuf_u8(in));
		break;
	case OP_DATA:
		n = a & 1 ? 16384u - a / 2 : a;
		p = calloc(1, n + 1);
		FUZZ_CHECK(p);
		add_typed(s, 23, p, n, a & 2 ? a : 0);
		free((void *)p);
		break;
	case OP_UPDATE:
		add_message(s, (uint8_t[]){ 24, 0, 0, 1, a % 3, 24, 0 }, a % 7 ? 5 : 5 + a / 7 % 3,
			    a > 200 ? 2 : 7);
		break;
	case OP_TICKET:
		add_ticket(s, in);
		break;
	case OP_EMPTY:
		for (unsigned i = 0; i < a % 40u; i++)
			add_typed(s, 23, NULL, 0, i);
		break;
	case OP_ALERT:
		add_typed(s, 21, (uint8_t[]){ 1, a % 100 }, 2, 0);
		break;
	case OP_CHANGE:
		add_changed(s, a);
		break;
	default:
		p = fuzz_some(in, a, &n);
		if (s->broken || s->m.failed || s->m.closed || s->len + n > WIRE_MAX || !n)
			break;
		memcpy(s->wire + s->len, p, n);
		s->len += n;
		s->broken = true;
	}
}

/* ---- receiving ---- */

static void *begin_rec_end(const struct ddps_rec_config *c, struct ddps_rec **r)
{
	void *mem = aligned_alloc(DDPS_AEAD_ALIGN, ddps_rec_size(c));

	FUZZ_CHECK(mem && !ddps_rec_init(mem, c, r));
	return mem;
}

struct seen {
	unsigned data, octets, needs;
	bool closed, failed;
};

static struct seen receive_records(struct ddps_rec *r, const struct stream *s, uint64_t cut)
{
	struct seen seen = { 0 };
	size_t at = 0, there = 0;

	while (!seen.failed && at <= s->len) {
		size_t have = there - at, room;
		uint8_t *copy = fuzz_exact(s->wire + at, have), *to = copy + DDPS_REC_HEADER;
		struct ddps_rec_opened o;

		cut = cut * 6364136223846793005u + 1;
		room = have > DDPS_REC_OVERHEAD ? have - DDPS_REC_HEADER - DDPS_AEAD_TAG : 1;
		if (cut >> 40 & 1)
			to = malloc(room);
		o = ddps_rec_open(r, copy, have, to);
		FUZZ_CHECK(o.used <= have && o.len <= DDPS_REC_CONTENT);
		FUZZ_CHECK((o.what == DDPS_REC_DATA) == (o.len > 0));
		if (to != copy + DDPS_REC_HEADER)
			free(to);
		free(copy);
		at += o.used;
		seen.data += o.what == DDPS_REC_DATA;
		seen.octets += (unsigned)o.len;
		seen.failed = o.what == DDPS_REC_FAILED;
		seen.closed |= o.what == DDPS_REC_CLOSED;
		if (o.what == DDPS_REC_MORE)
			FUZZ_CHECK(have < DDPS_REC_WIRE_MAX && !o.used);
		if (o.what == DDPS_REC_MORE || seen.closed) {
			if (there == s->len)
				break;
			there += 1 + (cut >> 33) % (cut >> 41 & 1 ? 30000 : 40);
			there = there < s->len ? there : s->len;
		}
	}
	return seen;
}

static void compare_with_model(struct ddps_rec *r, const struct stream *s, const struct seen *seen)
{
	const struct model *m = &s->m;
	const struct ddps_rec_stats *stats = ddps_rec_stats(r);
	struct ddps_error e;

	FUZZ_CHECK(seen->data == m->data && seen->octets == m->octets);
	FUZZ_CHECK(stats->tickets == m->tickets && stats->updates_got == m->updates);
	FUZZ_CHECK(seen->closed == m->closed);
	FUZZ_CHECK(ddps_rec_owes(r) == m->owes);
	if (s->broken)
		FUZZ_CHECK(!m->failed);
	else
		FUZZ_CHECK(seen->failed == m->failed);
	if (m->failed)
		FUZZ_CHECK(ddps_rec_alert_due(r) == m->alert);
	FUZZ_CHECK(ddps_rec_end(r) == (m->closed && !m->failed));
	e = ddps_rec_error(r);
	FUZZ_CHECK((e.code == 0) == (m->closed && !m->failed));
	FUZZ_CHECK(e.text[0] && !strchr(e.text, '%'));
}

/* What it seals the other end opens, whatever came before. */
static void send_back(struct ddps_rec *r, struct ddps_rec *peer, struct ddps_rbuf in)
{
	static uint8_t plain[DDPS_REC_CONTENT], wire[DDPS_REC_WIRE_MAX + DDPS_REC_UPDATE],
		got[DDPS_REC_CONTENT + 1];
	struct ddps_rec_opened o;
	unsigned quiet = 0;
	ssize_t n;

	while (fuzz_more(&in)) {
		struct iovec iov[3];
		size_t len = 0, opened = 0;

		for (int i = 0; i < 3; i++) {
			size_t some = ddps_rbuf_u8(&in) * (i == 1 ? 60u : 1u);

			if (some > ddps_rec_room(r) - len)
				some = ddps_rec_room(r) - len;
			iov[i] = (struct iovec){ plain + len, some };
			len += some;
		}
		n = ddps_rec_seal(r, iov, 3, wire, sizeof wire);
		FUZZ_CHECK(n > 0);
		for (size_t at = 0; at < (size_t)n; at += o.used) {
			o = ddps_rec_open(peer, wire + at, (size_t)n - at, got);
			quiet = o.what == DDPS_REC_DATA ? 0 : quiet + 1;
			if (o.what == DDPS_REC_FAILED) { /* empty ones and KeyUpdates */
				FUZZ_CHECK(quiet == DDPS_REC_IDLE_MAX + 1);
				return;
			}
			FUZZ_CHECK(o.what == DDPS_REC_NONE || o.what == DDPS_REC_DATA);
			FUZZ_CHECK(!memcmp(got, plain, o.len));
			opened += o.len;
		}
		FUZZ_CHECK(opened == len);
	}
	n = ddps_rec_seal_alert(r, 0, wire, sizeof wire);
	FUZZ_CHECK(n == DDPS_REC_ALERT);
	FUZZ_CHECK(ddps_rec_open(peer, wire, (size_t)n, got).what == DDPS_REC_CLOSED);
	FUZZ_CHECK(ddps_rec_seal(r, NULL, 0, wire, sizeof wire) == -EPIPE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	uint8_t flags = ddps_rbuf_u8(&in);
	struct ddps_rec_config c[2] = { { .aead = aead_stub() }, { .aead = aead_stub() } };
	struct stream *s = calloc(1, sizeof *s);

	FUZZ_CHECK(s);
	for (int i = 0; i < 2; i++) {
		c[i].suite = flags & BIG_SUITE ? DDPS_SUITE_AES_256_GCM : DDPS_SUITE_AES_128_GCM;
		memset(c[i].tx.secret, i + 1, sizeof c[i].tx.secret);
		set_keys(c[i].suite, &c[i].tx);
		c[!i].rx = c[i].tx;
	}
	c[0].client = flags & CLIENT;
	c[0].update_at = 20;
	if (flags & LIMIT)
		c[0].own_limit = c[0].peer_limit = 200;
	s->m = (struct model){ .client = c[0].client,
			       .alert = -1,
			       .inner_max = flags & LIMIT ? 200 : 16385,
			       .suite = c[1].suite,
			       .k = c[1].tx };
	FUZZ_CHECK(!aead_stub()->init(s->m.st, s->m.suite, s->m.k.key));
	for (int i = 0; i < 60 && fuzz_more(&in); i++)
		add_op(s, &in);
	for (int turn = 0; turn < 2; turn++) {
		struct ddps_rec *end, *peer;
		void *mem = begin_rec_end(&c[0], &end), *mem2 = begin_rec_end(&c[1], &peer);
		struct seen seen = receive_records(end, s, turn ? size + 7 : 1);

		compare_with_model(end, s, &seen);
		send_back(end, peer, ddps_rbuf_init(data, size));
		ddps_rec_wipe(end);
		ddps_rec_wipe(peer);
		free(mem);
		free(mem2);
	}
	aead_stub()->wipe(s->m.st);
	free(s);
	FUZZ_CHECK(!aead_stub_alive);
	return 0;
}
