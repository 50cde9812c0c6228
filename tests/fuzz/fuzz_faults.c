/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of faults: what is taken is sound, what is not is reported with its place in the text. */
#include "fuzz.h"
#include "edge/fault/vf.h"

static void check_faults_fuzz_sound(const struct vf_rule *rule)
{
	FUZZ_CHECK(rule->line && rule->what < VF_EFFECTS && rule->when.point <= VF_TIME);
	FUZZ_CHECK(rule->when.chance && rule->when.chance <= VF_CERTAIN);
	FUZZ_CHECK(rule->value >= 0 && rule->status >= 0 && rule->ms <= 24 * 3600 * 1000);
	FUZZ_CHECK(memchr(rule->when.peer, 0, sizeof rule->when.peer));
	FUZZ_CHECK(rule->what != VF_FAIL || vf_name(VF_NAME_ERRNO, rule->value));
	FUZZ_CHECK(rule->what != VF_STATUS || vf_name(VF_NAME_STATUS, rule->value));
}

/* An event that the rule's conditions agree with, but for its counts. */
static void fires(struct vf_rules *r, const struct vf_rule *rule)
{
	struct vf_event e = { rule->when.point,
			      rule->when.qp,
			      rule->when.peer,
			      rule->when.opcode,
			      rule->when.after_ms,
			      rule->when.bytes,
			      0,
			      NULL };
	const struct vf_rule *got = vf_match(r, &e);
	char text[VF_TEXT];

	if (!got)
		return;
	FUZZ_CHECK(got->when.point == rule->when.point && got <= r->rule + r->n);
	vf_trace(text, 1, &e, got);
	FUZZ_CHECK(memchr(text, 0, sizeof text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vf_rules *r = calloc(1, sizeof *r);
	struct vf_error e = { 0 };

	FUZZ_CHECK(r);
	if (vf_parse(r, (const char *)data, size, &e)) {
		FUZZ_CHECK(!r->n && e.line && e.column && e.column <= size + 1);
		FUZZ_CHECK(*e.why && memchr(e.why, 0, sizeof e.why));
	}
	for (unsigned i = 0; i < r->n; i++) {
		check_faults_fuzz_sound(&r->rule[i]);
		fires(r, &r->rule[i]);
	}
	free(r);
	return 0;
}
