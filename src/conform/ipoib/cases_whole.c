/* SPDX-License-Identifier: BSD-2-Clause */
/* What all packets of the target had in common, whichever case they came in. */
#include "conform/ipoib/peer.h"

#define ECHO 84u

/* So that there is something to judge if this case is run alone. */
static void some_traffic(struct ci *ci)
{
	struct ci_conn *c;
	struct ci_reply r;

	ci_meet(ci, CI_RC_FLAG);
	ci->accept = true;
	ci_ping_ud(ci, ECHO, &r);
	c = ci_connect(ci, true);
	ci_echo_rc(ci, c, ECHO);
	(void)ci_replied(ci, ci->seq, ci_limit(ci, CI_PART_DATA), &r);
	ci_disconnect(ci, c);
}

static void judge_lint(struct ci *ci, enum ci_lint what)
{
	some_traffic(ci);
	CI_CHECK(ci, !ci->lint[what][0], "%s", ci->lint[what]);
}

CI_CALL(check_lint_icrc, judge_lint(ci, CI_LINT_ICRC));
CI_CALL(check_lint_packet, judge_lint(ci, CI_LINT_PACKET));
CI_CALL(check_lint_keys, judge_lint(ci, CI_LINT_KEYS));
CI_CALL(check_lint_encap, judge_lint(ci, CI_LINT_ENCAP));
CI_CALL(check_lint_source, judge_lint(ci, CI_LINT_SOURCE));
CI_CALL(check_lint_mad, judge_lint(ci, CI_LINT_MAD));

const struct ci_case ci_cases_whole[] = {
	{ "whole-icrc", "", "every packet had its ICRC (IBA 9.2.1.1)", CI_NEEDS_PACKETS,
	  check_lint_icrc },
	{ "whole-packets", "", "headers, pads and lengths were right (IBA 9.2)", CI_NEEDS_PACKETS,
	  check_lint_packet },
	{ "whole-keys", "4391-9.1.2-1 4392-4-2 4391-9.1-1",
	  "every datagram had the link's Q_Key and P_Key", CI_NEEDS_PACKETS, check_lint_keys },
	{ "whole-encapsulation", "4391-6-1 4391-6-2 4391-14-2 4755-4-1",
	  "every frame had its header, reserved octets 0", 0, check_lint_encap },
	{ "whole-source", "4755-2.2-1 4755-3.1-8 4391-9.1.1-3",
	  "every datagram came from the one UD queue pair", 0, check_lint_source },
	{ "whole-mads", "", "headers and reserved fields of every MAD were right (IBA 12.6)", 0,
	  check_lint_mad },
	{ 0 },
};
