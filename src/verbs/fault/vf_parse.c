/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The language of rules.  A line is words and colons; '#' begins a comment.  The first thing that
 * is wrong ends the reading, and is told by line, column and what is expected there.
 */
#include "verbs/fault/vf.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MS_MAX	  (24 * 3600 * UINT64_C(1000))
#define COUNT_MAX UINT32_MAX

#define REORDER_MS 100

struct word {
	const char *at;
	size_t len; /* 0: the line ends here */
};

struct reader {
	const char *line, *at, *end; /* of the line */
	struct vf_error *error;
	unsigned number;
};

__attribute__((format(printf, 3, 4))) static int complain(struct reader *r, const char *at,
							  const char *fmt, ...)
{
	va_list ap;

	r->error->line = r->number;
	r->error->column = (unsigned)(at - r->line) + 1;
	va_start(ap, fmt);
	vsnprintf(r->error->why, sizeof r->error->why, fmt, ap);
	va_end(ap);
	for (char *c = r->error->why; *c; c++) /* it goes to a terminal */
		*c = (char)(*c < ' ' || *c == 127 ? '?' : *c);
	return -1;
}

static int expected(struct reader *r, struct word w, const char *what)
{
	if (!w.len)
		return complain(r, w.at, "expected %s, not the end of the line", what);
	return complain(r, w.at, "expected %s, not '%.*s'", what, w.len < 40 ? (int)w.len : 40,
			w.at);
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* A colon is a word by itself where a blank or the end follows; in addresses it is not. */
static bool ends_word(const struct reader *r, const char *c)
{
	return c == r->end || blank(*c) || *c == '#' ||
	       (*c == ':' && (c + 1 == r->end || blank(c[1]) || c[1] == '#'));
}

static struct word next(struct reader *r)
{
	struct word w;

	while (r->at < r->end && blank(*r->at))
		r->at++;
	w = (struct word){ r->at, 0 };
	if (r->at == r->end || *r->at == '#')
		return w;
	do
		w.len++;
	while (!ends_word(r, w.at) && !ends_word(r, w.at + w.len));
	r->at += w.len;
	return w;
}

static struct word peek(struct reader *r)
{
	const char *at = r->at;
	struct word w = next(r);

	r->at = at;
	return w;
}

static bool is(struct word w, const char *text)
{
	return strlen(text) == w.len && !memcmp(w.at, text, w.len);
}

/* Digits at the beginning of @w.  Return: how many, 0 also if the number is above @max. */
static size_t digits(struct word w, uint64_t max, uint64_t *value)
{
	size_t n = 0;

	*value = 0;
	for (; n < w.len && w.at[n] >= '0' && w.at[n] <= '9'; n++) {
		*value = *value * 10 + (uint64_t)(w.at[n] - '0');
		if (*value > max)
			return 0;
	}
	return n;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = { { "ms", 1 }, { "s", 1000 }, { "min", 60000 }, { NULL, 0 } };
static const struct unit sizes[] = {
	{ "", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 }, { NULL, 0 }
};

static bool with_unit(struct word w, const struct unit *u, uint64_t max, uint64_t *value)
{
	size_t n = digits(w, max, value);
	struct word rest = { w.at + n, w.len - n };

	for (; n && u->name; u++)
		if (is(rest, u->name)) {
			*value *= u->factor;
			return *value <= max;
		}
	return false;
}

static int read_time(struct reader *r, uint64_t *ms)
{
	struct word w = next(r);

	return with_unit(w, times, MS_MAX, ms)
		       ? 0
		       : expected(r, w, "a time up to a day, as 200ms, 3s or 1min");
}

static int read_count(struct reader *r, uint64_t *n)
{
	struct word w = next(r);

	return digits(w, COUNT_MAX, n) == w.len && *n ? 0 : expected(r, w, "a number from 1");
}

/* 5%, 0.01%: at most four places, which are millionths. */
static int read_chance(struct reader *r, uint64_t *millionths)
{
	static const char what[] = "a share as 5% or 0.01%, above 0 and up to 100%";
	struct word w = next(r), rest = w;
	uint64_t whole, part = 0, scale = 10000;
	size_t n = digits(w, 100, &whole);

	rest = (struct word){ w.at + n, w.len - n };
	if (n && rest.len > 1 && *rest.at == '.') {
		rest.at++;
		rest.len--;
		for (; rest.len && scale > 1 && *rest.at >= '0' && *rest.at <= '9'; rest.len--) {
			scale /= 10;
			part += (uint64_t)(*rest.at++ - '0') * scale;
		}
		if (scale == 10000)
			return expected(r, w, what);
	}
	*millionths = whole * 10000 + part;
	if (!n || !is(rest, "%") || !*millionths || *millionths > VF_CERTAIN)
		return expected(r, w, what);
	return 0;
}

static int read_name(struct reader *r, enum vf_kind kind, const char *what, int *value)
{
	struct word w = next(r);

	*value = w.len ? vf_value(kind, w.at, w.len) : -1;
	return *value >= 0 ? 0 : expected(r, w, what);
}

static int read_peer(struct reader *r, char *peer)
{
	struct word w = next(r);

	if (!w.len || w.len >= VF_PEER || is(w, ":"))
		return expected(r, w, "an address as 192.0.2.1 or 192.0.2.1:7174");
	memcpy(peer, w.at, w.len);
	peer[w.len] = 0;
	return 0;
}

static int read_qp(struct reader *r, struct vf_when *when)
{
	uint64_t n;

	if (read_count(r, &n))
		return -1;
	when->qp = (unsigned)n;
	return 0;
}

static bool moves_work(enum vf_point p)
{
	return p == VF_COMPLETION || p == VF_ibv_post_send;
}

/* What follows the word @w, which names a condition. */
static int condition(struct reader *r, struct word w, struct vf_when *when)
{
	if (is(w, "qp"))
		return read_qp(r, when);
	if (is(w, "peer"))
		return read_peer(r, when->peer);
	if (is(w, "opcode") && !moves_work(when->point))
		return complain(r, w.at, "opcode goes with 'completion' and ibv_post_send only");
	if (is(w, "opcode"))
		return read_name(r, VF_NAME_OPCODE,
				 "send, write, read, swap, add, bind, invalidate, recv or "
				 "recv-write",
				 &when->opcode);
	if (is(w, "nth"))
		return read_count(r, &when->nth);
	if (is(w, "every"))
		return read_count(r, &when->every);
	if (is(w, "first"))
		return read_count(r, &when->first);
	if (is(w, "chance"))
		return read_chance(r, &when->chance);
	if (is(w, "after"))
		return read_time(r, &when->after_ms);
	if (!is(w, "bytes"))
		return expected(r, w,
				"qp, peer, opcode, nth, every, first, chance, after, bytes or ':'");
	w = next(r);
	return with_unit(w, sizes, UINT64_C(1) << 50, &when->bytes)
		       ? 0
		       : expected(r, w, "a size as 4096, 64KiB, 1MiB or 1GiB");
}

static int conditions(struct reader *r, struct vf_when *when)
{
	struct word w;

	while (!is(w = next(r), ":")) {
		if (when->point == VF_TIME && !is(w, "qp"))
			return expected(r, w, "qp or ':'");
		if (condition(r, w, when))
			return -1;
	}
	return 0;
}

/* ---- effects ---- */

static bool has_connection(enum vf_point p)
{
	return p == VF_COMPLETION || p == VF_TIME || p == VF_ibv_post_send ||
	       p == VF_ibv_post_recv || p == VF_ibv_modify_qp || p == VF_ibv_query_qp;
}

static bool has_identifier(enum vf_point p)
{
	return has_connection(p) ||
	       (p >= VF_rdma_create_qp && p <= VF_rdma_disconnect && p != VF_rdma_get_request);
}

/* What the effect needs and the point has not, or NULL. */
static const char *lacks(enum vf_effect e, enum vf_point p)
{
	const bool call = p < VF_COMPLETION;

	switch (e) {
	case VF_FAIL:
		return call ? NULL : "goes with calls only";
	case VF_DELAY:
		return p != VF_TIME ? NULL : "goes with calls and completions only";
	case VF_STATUS:
	case VF_LOSE:
	case VF_REORDER:
		return p == VF_COMPLETION ? NULL : "goes with 'completion' only";
	case VF_RNR:
		return p == VF_ibv_post_recv || p == VF_ibv_post_srq_recv
			       ? NULL
			       : "goes with ibv_post_recv and ibv_post_srq_recv only";
	case VF_CORRUPT:
		return p == VF_ibv_post_send ? NULL : "goes with ibv_post_send only";
	case VF_RESET:
	case VF_SILENCE:
	case VF_HALF_OPEN:
		return has_connection(p) ? NULL
					 : "goes with 'completion', 'at', ibv_post_send, "
					   "ibv_post_recv, ibv_modify_qp and ibv_query_qp only";
	case VF_EVENT:
		return has_identifier(p) ? NULL : "goes with what concerns an identifier only";
	default:
		return NULL;
	}
}

/* NAME [ERRNO] [in TIME] */
static int read_event(struct reader *r, struct vf_rule *rule)
{
	struct word w;

	if (read_name(r, VF_NAME_EVENT, "an event, as RDMA_CM_EVENT_REJECTED", &rule->value))
		return -1;
	w = peek(r);
	if (w.len && !is(w, "in")) {
		if (read_name(r, VF_NAME_ERRNO, "an error as ETIMEDOUT, 'in' or the end",
			      &rule->status))
			return -1;
		w = peek(r);
	}
	if (!is(w, "in"))
		return 0;
	next(r);
	return read_time(r, &rule->ms);
}

static int arguments(struct reader *r, struct vf_rule *rule)
{
	switch (rule->what) {
	case VF_FAIL:
		return read_name(r, VF_NAME_ERRNO, "an error, as ENOMEM", &rule->value);
	case VF_STATUS:
		return read_name(r, VF_NAME_STATUS, "a status, as IBV_WC_RETRY_EXC_ERR",
				 &rule->value);
	case VF_ASYNC:
		return read_name(r, VF_NAME_ASYNC, "an event, as IBV_EVENT_PORT_ERR", &rule->value);
	case VF_EVENT:
		return read_event(r, rule);
	case VF_DELAY:
	case VF_RNR:
		return read_time(r, &rule->ms);
	case VF_REORDER:
		rule->ms = REORDER_MS;
		return peek(r).len ? read_time(r, &rule->ms) : 0;
	default:
		return 0;
	}
}

static int effect(struct reader *r, struct vf_rule *rule)
{
	struct word w = next(r);
	int what = w.len ? vf_value(VF_NAME_EFFECT, w.at, w.len) : -1;
	const char *why;

	if (what < 0)
		return expected(r, w,
				"fail, status, delay, lose, reorder, rnr, corrupt, reset, silence, "
				"half-open, event, async or remove-device");
	rule->what = (enum vf_effect)what;
	why = lacks(rule->what, rule->when.point);
	if (why)
		return complain(r, w.at, "'%.*s' %s", (int)w.len, w.at, why);
	if (arguments(r, rule))
		return -1;
	w = next(r);
	return w.len ? expected(r, w, "the end of the line") : 0;
}

static int read_rule(struct reader *r, struct vf_rule *rule)
{
	struct word w = next(r);
	int point;

	*rule = (struct vf_rule){
		.line = r->number,
		.when = { .point = VF_TIME, .opcode = VF_NOT_SAID, .chance = VF_CERTAIN }
	};
	if (is(w, "at")) {
		if (read_time(r, &rule->when.after_ms))
			return -1;
	} else if (is(w, "on")) {
		w = next(r);
		point = w.len ? vf_value(VF_NAME_POINT, w.at, w.len) : -1;
		if (point < 0 || point == VF_TIME)
			return expected(r, w, "a call, as ibv_reg_mr, or 'completion'");
		rule->when.point = (enum vf_point)point;
	} else {
		return expected(r, w, "'on' or 'at'");
	}
	return conditions(r, &rule->when) || effect(r, rule) ? -1 : 0;
}

int vf_parse(struct vf_rules *rules, const char *text, size_t len, struct vf_error *error)
{
	struct reader r = { .error = error };
	const char *end = text + len, *stop;

	rules->n = 0;
	memset(rules->seen, 0, sizeof rules->seen);
	for (const char *at = text; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		r.line = r.at = at;
		r.end = stop;
		r.number++;
		if (!peek(&r).len)
			continue;
		if (rules->n == VF_RULES) {
			complain(&r, at, "expected the end: a file has %d rules at most", VF_RULES);
			rules->n = 0;
			return -1;
		}
		if (read_rule(&r, &rules->rule[rules->n])) {
			rules->n = 0;
			return -1;
		}
		rules->n++;
	}
	return 0;
}
