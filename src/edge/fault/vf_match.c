/* SPDX-License-Identifier: BSD-2-Clause */
/* Which rule fires, and the line of the trace. */
#include "edge/fault/vf.h"
#include <stdio.h>
#include <string.h>

/* Steele, Lea and Flood's SplitMix64, one step. */
static uint64_t mix_rule_seed(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t vf_draw(uint64_t seed, uint64_t rule, uint64_t queue, uint64_t n)
{
	return mix_rule_seed(mix_rule_seed(mix_rule_seed(mix_rule_seed(seed) ^ rule) ^ queue) ^ n);
}

/* The address alone or with its port; brackets of IPv6 may be left out with the port. */
static bool is_named_peer(const char *want, const char *peer)
{
	size_t n = strlen(want);

	if (!peer)
		return false;
	if (!strcmp(want, peer))
		return true;
	if (*peer == '[' && *want != '[')
		return !strncmp(peer + 1, want, n) && peer[n + 1] == ']';
	return !strncmp(peer, want, n) && peer[n] == ':' && !strchr(peer + n + 1, ':');
}

static bool is_met(const struct vf_when *w, const struct vf_event *e)
{
	return w->point == e->point && (!w->qp || w->qp == e->qp) &&
	       (w->opcode == VF_NOT_SAID || w->opcode == e->opcode) &&
	       (!*w->peer || is_named_peer(w->peer, e->peer)) && e->ms >= w->after_ms &&
	       e->bytes >= w->bytes;
}

/* Of what the other conditions agree with, this one is the @n-th. */
static bool is_counted(const struct vf_when *w, uint64_t n)
{
	return (!w->nth || n == w->nth) && (!w->every || n % w->every == 0) &&
	       (!w->first || n <= w->first);
}

/*
 * Queues do not disturb each other: which one's completion comes first depends on time, and what is
 * drawn for it does not.
 */
static bool is_drawn(struct vf_rules *r, unsigned i, const struct vf_event *e)
{
	uint64_t queue = e->qp * UINT64_C(2) + e->queue;
	uint64_t n;

	if (r->rule[i].when.chance == VF_CERTAIN)
		return true;
	n = e->drawn ? ++e->drawn[i] : r->seen[i];
	return vf_draw(r->seed, i, queue, n) % VF_CERTAIN < r->rule[i].when.chance;
}

const struct vf_rule *vf_match(struct vf_rules *r, const struct vf_event *e)
{
	const struct vf_rule *fires = NULL;

	for (unsigned i = 0; i < r->n; i++) {
		bool drawn;

		if (!is_met(&r->rule[i].when, e))
			continue;
		r->seen[i]++;
		drawn = is_drawn(r, i, e);
		if (!fires && drawn && is_counted(&r->rule[i].when, r->seen[i]))
			fires = &r->rule[i];
	}
	return fires;
}

static const struct {
	enum vf_kind kind;
	bool has_name, has_ms;
} argument[VF_EFFECTS] = {
	[VF_FAIL] = { VF_NAME_ERRNO, true, false },
	[VF_STATUS] = { VF_NAME_STATUS, true, false },
	[VF_DELAY] = { 0, false, true },
	[VF_REORDER] = { 0, false, true },
	[VF_RNR] = { 0, false, true },
	[VF_EVENT] = { VF_NAME_EVENT, true, false },
	[VF_ASYNC] = { VF_NAME_ASYNC, true, false },
};

void vf_trace(char text[VF_TEXT], uint64_t number, const struct vf_event *e,
	      const struct vf_rule *rule)
{
	char qp[24] = "", op[24] = "", what[64] = "";
	const char *name = e->opcode == VF_NOT_SAID ? NULL : vf_name(VF_NAME_OPCODE, e->opcode);

	if (e->qp)
		snprintf(qp, sizeof qp, " qp %u", e->qp);
	if (name)
		snprintf(op, sizeof op, " %s", name);
	if (argument[rule->what].has_name)
		snprintf(what, sizeof what, " %s", vf_name(argument[rule->what].kind, rule->value));
	else if (argument[rule->what].has_ms)
		snprintf(what, sizeof what, " %llums", (unsigned long long)rule->ms);
	snprintf(text, VF_TEXT, "%llu %s%s%s: line %u: %s%s", (unsigned long long)number,
		 vf_name(VF_NAME_POINT, (int)e->point), op, qp, rule->line,
		 vf_name(VF_NAME_EFFECT, (int)rule->what), what);
}
