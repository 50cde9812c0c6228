# SPDX-License-Identifier: BSD-2-Clause
# For tests/netns: one line a case.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what, work: set by the scripts
failed=0 group=

skip() { # WHY
	echo "ok $what # skipped: $1"
	exit 0
}

check() { # NAME COMMAND...: $group is in front of its name
	local name="$group$1"
	shift
	if "$@" >"$work/check.log" 2>&1; then
		echo "ok $name"
	else
		failed=1
		echo "not ok $name"
		tail -n 20 "$work/check.log"
		tail -n 15 "$work"/node*.log "$work"/*.json "$work"/*.err 2>/dev/null
	fi
}
