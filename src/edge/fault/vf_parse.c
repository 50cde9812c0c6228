/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The language of rules.  A line is words and colons; '#' begins a comment.  The first thing that
 * is wrong ends the reading, and is reported by line, column and what is expected there.
 */
#include "edge/fault/vf.h"
#include "edge/fault/vf_words.h"
#include <string.h>

#define MS_MAX	  (24 * 3600 * UINT64_C(1000))
#define COUNT_MAX UINT32_MAX

#define REORDER_MS 100

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = { { "ms", 1 }, { "s", 1000 }, { "min", 60000 }, { NULL, 0 } };
static const struct unit sizes[] = {
	{ "", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 }, { NULL, 0 }
};

static bool with_unit(struct vf_word w, const struct unit *u, uint64_t max, uint64_t *value)
{
	size_t n = vf_digits(w, max, value);
	struct vf_word rest = { w.at + n, w.len - n };

	for (; n && u->name; u++)
		if (vf_is(rest, u->name)) {
			*value *= u->factor;
			return *value <= max;
		}
	return false;
}

static int read_time(struct vf_reader *r, uint64_t *ms)
{
	struct vf_word w = vf_next(r);

	return with_unit(w, times, MS_MAX, ms)
		       ? 0
		       : vf_expected(r, w, "a time up to a day, as 200ms, 3s or 1min");
}

static int read_count(struct vf_reader *r, uint64_t *n)
{
	struct vf_word w = vf_next(r);

	return vf_digits(w, COUNT_MAX, n) == w.len && *n ? 0 : vf_expected(r, w, "a number from 1");
}

/* 5%, 0.01%: at most four places, which are millionths. */
static int read_chance(struct vf_reader *r, uint64_t *millionths)
{
	static const char what[] = "a share as 5% or 0.01%, above 0 and up to 100%";
	struct vf_word w = vf_next(r), rest;
	uint64_t whole, part = 0, scale = 10000;
	size_t n = vf_digits(w, 100, &whole);

	rest = (struct vf_word){ w.at + n, w.len - n };
	if (n && rest.len > 1 && *rest.at == '.') {
		rest.at++;
		rest.len--;
		for (; rest.len && scale > 1 && *rest.at >= '0' && *rest.at <= '9'; rest.len--) {
			scale /= 10;
			part += (uint64_t)(*rest.at++ - '0') * scale;
		}
		if (scale == 10000)
			return vf_expected(r, w, what);
	}
	*millionths = whole * 10000 + part;
	if (!n || !vf_is(rest, "%") || !*millionths || *millionths > VF_CERTAIN)
		return vf_expected(r, w, what);
	return 0;
}

static int read_rule_name(struct vf_reader *r, enum vf_kind kind, const char *what, int *value)
{
	struct vf_word w = vf_next(r);

	*value = w.len ? vf_value(kind, w.at, w.len) : -1;
	return *value >= 0 ? 0 : vf_expected(r, w, what);
}

static int read_rule_peer(struct vf_reader *r, char *peer)
{
	struct vf_word w = vf_next(r);

	if (!vf_is_name(w, VF_PEER))
		return vf_expected(r, w, "an address as 192.0.2.1 or 192.0.2.1:7174");
	memcpy(peer, w.at, w.len);
	peer[w.len] = 0;
	return 0;
}

static int read_qp(struct vf_reader *r, struct vf_when *when)
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
static int condition(struct vf_reader *r, struct vf_word w, struct vf_when *when)
{
	if (vf_is(w, "qp"))
		return read_qp(r, when);
	if (vf_is(w, "peer"))
		return read_rule_peer(r, when->peer);
	if (vf_is(w, "opcode") && !moves_work(when->point))
		return vf_complain(r, w.at, "opcode goes with 'completion' and ibv_post_send only");
	if (vf_is(w, "opcode"))
		return read_rule_name(r, VF_NAME_OPCODE,
				      "send, write, read, swap, add, bind, invalidate, flush, "
				      "atomic-write, recv or recv-write",
				      &when->opcode);
	if (vf_is(w, "nth"))
		return read_count(r, &when->nth);
	if (vf_is(w, "every"))
		return read_count(r, &when->every);
	if (vf_is(w, "first"))
		return read_count(r, &when->first);
	if (vf_is(w, "chance"))
		return read_chance(r, &when->chance);
	if (vf_is(w, "after"))
		return read_time(r, &when->after_ms);
	if (!vf_is(w, "bytes"))
		return vf_expected(
			r, w, "qp, peer, opcode, nth, every, first, chance, after, bytes or ':'");
	w = vf_next(r);
	return with_unit(w, sizes, UINT64_C(1) << 50, &when->bytes)
		       ? 0
		       : vf_expected(r, w, "a size as 4096, 64KiB, 1MiB or 1GiB");
}

static int conditions(struct vf_reader *r, struct vf_when *when)
{
	struct vf_word w;

	while (!vf_is(w = vf_next(r), ":")) {
		if (when->point == VF_TIME && !vf_is(w, "qp"))
			return vf_expected(r, w, "qp or ':'");
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

static bool point_has_identifier(enum vf_point p)
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
		return point_has_identifier(p) ? NULL
					       : "goes with what concerns an identifier only";
	default:
		return NULL;
	}
}

/* NAME [ERRNO] [in TIME] */
static int read_event(struct vf_reader *r, struct vf_rule *rule)
{
	struct vf_word w;

	if (read_rule_name(r, VF_NAME_EVENT, "an event, as RDMA_CM_EVENT_REJECTED", &rule->value))
		return -1;
	w = vf_peek(r);
	if (w.len && !vf_is(w, "in")) {
		if (read_rule_name(r, VF_NAME_ERRNO, "an error as ETIMEDOUT, 'in' or the end",
				   &rule->status))
			return -1;
		w = vf_peek(r);
	}
	if (!vf_is(w, "in"))
		return 0;
	vf_next(r);
	return read_time(r, &rule->ms);
}

static int arguments(struct vf_reader *r, struct vf_rule *rule)
{
	switch (rule->what) {
	case VF_FAIL:
		return read_rule_name(r, VF_NAME_ERRNO, "an error, as ENOMEM", &rule->value);
	case VF_STATUS:
		return read_rule_name(r, VF_NAME_STATUS, "a status, as IBV_WC_RETRY_EXC_ERR",
				      &rule->value);
	case VF_ASYNC:
		return read_rule_name(r, VF_NAME_ASYNC, "an event, as IBV_EVENT_PORT_ERR",
				      &rule->value);
	case VF_EVENT:
		return read_event(r, rule);
	case VF_DELAY:
	case VF_RNR:
		return read_time(r, &rule->ms);
	case VF_REORDER:
		rule->ms = REORDER_MS;
		return vf_peek(r).len ? read_time(r, &rule->ms) : 0;
	default:
		return 0;
	}
}

static int effect(struct vf_reader *r, struct vf_rule *rule)
{
	struct vf_word w = vf_next(r);
	int what = w.len ? vf_value(VF_NAME_EFFECT, w.at, w.len) : -1;
	const char *why;

	if (what < 0)
		return vf_expected(
			r, w,
			"fail, status, delay, lose, reorder, rnr, corrupt, reset, silence, "
			"half-open, event, async or remove-device");
	rule->what = (enum vf_effect)what;
	why = lacks(rule->what, rule->when.point);
	if (why)
		return vf_complain(r, w.at, "'%.*s' %s", (int)w.len, w.at, why);
	if (arguments(r, rule))
		return -1;
	w = vf_next(r);
	return w.len ? vf_expected(r, w, "the end of the line") : 0;
}

static int read_rule(struct vf_reader *r, struct vf_rule *rule)
{
	struct vf_word w = vf_next(r);
	int point;

	*rule = (struct vf_rule){
		.line = r->number,
		.when = { .point = VF_TIME, .opcode = VF_NOT_SAID, .chance = VF_CERTAIN }
	};
	if (vf_is(w, "at")) {
		if (read_time(r, &rule->when.after_ms))
			return -1;
	} else if (vf_is(w, "on")) {
		w = vf_next(r);
		point = w.len ? vf_value(VF_NAME_POINT, w.at, w.len) : -1;
		if (point < 0 || point == VF_TIME)
			return vf_expected(r, w, "a call, as ibv_reg_mr, or 'completion'");
		rule->when.point = (enum vf_point)point;
	} else {
		return vf_expected(r, w, "'on' or 'at'");
	}
	return conditions(r, &rule->when) || effect(r, rule) ? -1 : 0;
}

int vf_parse(struct vf_rules *rules, const char *text, size_t len, struct vf_error *error)
{
	struct vf_reader r = { .error = error };
	const char *end = text + len, *stop;

	rules->n = 0;
	memset(rules->seen, 0, sizeof rules->seen);
	for (const char *at = text; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		r.line = r.at = at;
		r.end = stop;
		r.number++;
		if (!vf_peek(&r).len)
			continue;
		if (rules->n == VF_RULES) {
			vf_complain(&r, at, "expected the end: a file has %d rules at most",
				    VF_RULES);
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
