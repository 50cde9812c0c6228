/* SPDX-License-Identifier: BSD-2-Clause */
/* Codec of the messages of sessctl's services: one table, one order of fields. */
#include "xfer/proto.h"
#include <string.h>
#include <errno.h>
#include <unistd.h>

enum field {
	F_FORCE = 1 << 0,
	F_OP = 1 << 1,
	F_NSLOTS = 1 << 2,
	F_SLOT = 1 << 3,
	F_LEN = 1 << 4,
	F_PAUSE = 1 << 5,
	F_STAG = 1 << 6,
	F_TO = 1 << 7,
	F_OFF = 1 << 8,
	F_SIZE = 1 << 9,
	F_DIGEST = 1 << 10,
	F_TEXT = 1 << 11,
	F_DEPTH = 1 << 12,
	F_KIND = 1 << 13
};

static const struct {
	const char *name;
	unsigned fields;
} layout[MSG_NTYPES] = {
	[MSG_PUT] = { "PUT", F_FORCE | F_SIZE | F_TEXT },
	[MSG_GET] = { "GET", F_TEXT },
	[MSG_PING] = { "PING", F_OP | F_LEN | F_PAUSE },
	[MSG_GO] = { "GO", F_NSLOTS | F_LEN | F_STAG | F_TO },
	[MSG_FILE] = { "FILE", F_SIZE },
	[MSG_CHUNK] = { "CHUNK", F_SLOT | F_LEN | F_OFF },
	[MSG_READY] = { "READY", F_SLOT | F_LEN | F_STAG | F_TO | F_OFF },
	[MSG_CREDIT] = { "CREDIT", F_SLOT },
	[MSG_DONE] = { "DONE", F_DIGEST },
	[MSG_OK] = { "OK", F_DIGEST },
	[MSG_REFUSE] = { "REFUSE", F_TEXT },
	[MSG_ERROR] = { "ERROR", F_TEXT },
	[MSG_PERF] = { "PERF", F_OP | F_LEN | F_DEPTH },
	[MSG_PUT_BY] = { "PUT_BY", F_FORCE | F_SIZE | F_KIND | F_TEXT },
	[MSG_GET_BY] = { "GET_BY", F_KIND | F_TEXT },
};

const char *msg_name(enum msg_type type)
{
	return type < MSG_NTYPES && layout[type].name ? layout[type].name : "?";
}

const char *ping_op_name(enum ping_op op)
{
	static const char *const name[] = { "send", "write", "read" };

	return op < PING_NOPS ? name[op] : "?";
}

const char *perf_op_name(enum perf_op op)
{
	return op == PERF_PING ? "ping" : op == PERF_BOTH ? "both" : ping_op_name((enum ping_op)op);
}

/* A position in a message; @failed is sticky. */
struct cursor {
	uint8_t *out;	   /* encoding */
	const uint8_t *in; /* decoding */
	size_t left;
	bool failed;
};

static bool has_cursor_room(struct cursor *c, size_t n)
{
	if (c->failed || n > c->left) {
		c->failed = true;
		return false;
	}
	c->left -= n;
	return true;
}

static void put_cursor_number(struct cursor *c, uint64_t v, size_t n)
{
	if (!has_cursor_room(c, n))
		return;
	for (size_t i = 0; i < n; i++)
		*c->out++ = (uint8_t)(v >> (8 * (n - 1 - i)));
}

static uint64_t get_cursor_number(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if (!has_cursor_room(c, n))
		return 0;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | *c->in++;
	return v;
}

/* Ranges are the same both ways: what is not sent is not taken either. */
static const char *out_of_range(const struct msg *m, unsigned fields)
{
	bool long_one = m->type == MSG_PING || m->type == MSG_PERF || m->type == MSG_GO;
	uint32_t len_max = long_one ? PING_MAX : SLOT_LEN_MAX;
	unsigned nops = m->type == MSG_PERF ? (unsigned)PERF_NOPS : (unsigned)PING_NOPS;

	if (fields & F_OP && m->op >= nops)
		return "unknown kind of operation";
	if (fields & F_KIND && m->kind >= DIGEST_KINDS)
		return "unknown digest";
	if (fields & F_DEPTH && (!m->depth || m->depth > PERF_DEPTH_MAX))
		return "depth out of range";
	if (fields & F_NSLOTS && m->nslots > SLOTS_MAX)
		return "too many window slots";
	if (fields & F_SLOT && m->slot >= SLOTS_MAX)
		return "window slot that does not exist";
	if (fields & F_LEN && m->len > len_max)
		return "length over the limit";
	if (fields & F_PAUSE && m->pause_ms > PAUSE_MAX_MS)
		return "pause over the limit";
	/* off + len must not wrap; files end at 2^63 - 1 anyway */
	if (fields & (F_OFF | F_SIZE) && (m->off > INT64_MAX || m->size > INT64_MAX))
		return "offset over the limit";
	return NULL;
}

size_t msg_encode(const struct msg *m, uint8_t *buf, size_t size)
{
	struct cursor c = { .out = buf, .left = size };
	unsigned f = m->type < MSG_NTYPES ? layout[m->type].fields : 0;
	size_t text_len = strlen(m->text);

	if (!f || out_of_range(m, f) || (f & F_TEXT && !text_len))
		return 0;
	put_cursor_number(&c, PROTO_MAGIC, 2);
	put_cursor_number(&c, PROTO_VERSION, 1);
	put_cursor_number(&c, m->type, 1);
	const struct {
		unsigned f;
		uint64_t v;
		size_t n;
	} row[] = { { F_FORCE, m->force, 1 }, { F_OP, m->op, 1 },	{ F_NSLOTS, m->nslots, 1 },
		    { F_SLOT, m->slot, 1 },   { F_LEN, m->len, 4 },	{ F_PAUSE, m->pause_ms, 4 },
		    { F_STAG, m->stag, 4 },   { F_TO, m->to, 8 },	{ F_OFF, m->off, 8 },
		    { F_SIZE, m->size, 8 },   { F_DEPTH, m->depth, 4 }, { F_KIND, m->kind, 1 },
		    { F_TEXT, text_len, 2 } };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (f & row[i].f)
			put_cursor_number(&c, row[i].v, row[i].n);
	if (f & F_DIGEST && has_cursor_room(&c, sizeof m->digest))
		c.out = (uint8_t *)memcpy(c.out, m->digest, sizeof m->digest) + sizeof m->digest;
	if (f & F_TEXT && has_cursor_room(&c, text_len))
		memcpy(c.out, m->text, text_len);
	return c.failed ? 0 : size - c.left;
}

/* The text, whose length is on the wire already; it must be the rest of the message. */
static void get_text(struct cursor *c, struct msg *m)
{
	size_t n = (size_t)get_cursor_number(c, 2);

	if (!n || n > MSG_TEXT_MAX || n != c->left || memchr(c->in, 0, n)) {
		c->failed = true;
		return;
	}
	has_cursor_room(c, n);
	memcpy(m->text, c->in, n);
	m->text[n] = 0;
}

static const char *get_fields(struct cursor *c, struct msg *m, unsigned f)
{
	uint8_t force = f & F_FORCE ? (uint8_t)get_cursor_number(c, 1) : 0;

	m->force = force;
	m->op = f & F_OP ? (uint8_t)get_cursor_number(c, 1) : 0;
	m->nslots = f & F_NSLOTS ? (uint8_t)get_cursor_number(c, 1) : 0;
	m->slot = f & F_SLOT ? (uint8_t)get_cursor_number(c, 1) : 0;
	m->len = f & F_LEN ? (uint32_t)get_cursor_number(c, 4) : 0;
	m->pause_ms = f & F_PAUSE ? (uint32_t)get_cursor_number(c, 4) : 0;
	m->stag = f & F_STAG ? (uint32_t)get_cursor_number(c, 4) : 0;
	m->to = f & F_TO ? get_cursor_number(c, 8) : 0;
	m->off = f & F_OFF ? get_cursor_number(c, 8) : 0;
	m->size = f & F_SIZE ? get_cursor_number(c, 8) : 0;
	m->depth = f & F_DEPTH ? (uint32_t)get_cursor_number(c, 4) : 0;
	m->kind = f & F_KIND ? (uint8_t)get_cursor_number(c, 1) : DIGEST_SHA256;
	if (f & F_DIGEST && has_cursor_room(c, sizeof m->digest)) {
		memcpy(m->digest, c->in, sizeof m->digest);
		c->in += sizeof m->digest;
	}
	if (f & F_TEXT)
		get_text(c, m);
	if (c->failed || c->left)
		return "message with a wrong length";
	if (force > 1)
		return "unknown flag";
	return out_of_range(m, f);
}

int msg_decode(struct msg *m, const uint8_t *buf, size_t len, const char **why)
{
	struct cursor c = { .in = buf, .left = len };
	uint64_t magic = get_cursor_number(&c, 2), version = get_cursor_number(&c, 1),
		 type = get_cursor_number(&c, 1);

	m->text[0] = 0;
	if (c.failed || magic != PROTO_MAGIC)
		*why = "not a message of sessctl";
	else if (version != PROTO_VERSION)
		*why = "message of another version of sessctl";
	else if (type >= MSG_NTYPES || !layout[type].fields)
		*why = "message of an unknown type";
	else {
		m->type = (enum msg_type)type;
		*why = get_fields(&c, m, layout[type].fields);
	}
	return *why ? -1 : 0;
}

/* ---- what both ends of a transfer do with files ---- */

ssize_t file_read(int fd, uint8_t *buf, size_t len, uint64_t off)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, buf + got, len - got, (off_t)(off + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

uint32_t file_slot_len(uint64_t size)
{
	return size < SLOT_LEN_MAX ? (uint32_t)size : SLOT_LEN_MAX;
}

uint8_t file_nslots(uint64_t size)
{
	uint64_t n = size / SLOT_LEN_MAX + (size % SLOT_LEN_MAX ? 1 : 0);

	return (uint8_t)(n < SLOTS_MAX ? n : SLOTS_MAX);
}
