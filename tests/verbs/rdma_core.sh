#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own suite for verbs devices, over the drop-in, with each face and both wires, as somebody
# without rights.  No other setting: this is how a user runs it.
# usage: rdma_core.sh BUILD [TIMES]
# Skipped tests are counted, and bounded: a test that is skipped from now on shows here.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=tests/verbs
# shellcheck source=tests/verbs/lib.sh
. $here/lib.sh
suite=/usr/share/doc/rdma-core/tests
max_skipped=${MAX_SKIPPED:-36}
# What expects an adapter of InfiniBand, and fails on an iWARP one: docs/verbs.md has the reasons.
not_iwarp="test_mr_rereg_addr test_mr_rereg_pd test_rdmacm_async_traffic_external_qp"
drop_rights

mkdir "$work/suite" || exit 1
cp -r "$suite" "$work/suite/" || exit 1
gunzip -f "$work"/suite/tests/*.gz
rm -f "$work"/suite/tests/test_{mlx5,efa,efadv,cuda}*.py
chmod -R a+rX "$work"

# FACE LOG OPTION...
run_suite() {
	local log=$2 failed skipped status expected="" most=$max_skipped name="rdma-core, ${1:-no} face, over $wire"
	[ -n "$1" ] || expected=$not_iwarp
	[ "$1" != ib ] || most=$((most + 1)) # one is of RoCE alone
	PYTHONDONTWRITEBYTECODE=1 timeout 120 "${rights[@]}" "$sessctl" run --transport "$wire" "${@:3}" -- \
		/usr/bin/python3 "$work/suite/tests/run_tests.py" --dev ddp0 -v >"$log" 2>&1
	status=$?
	failed=$(sed -n 's/^\(ERROR\|FAIL\): \([a-z0-9_]*\) .*/\2/p' "$log" | sort | xargs)
	skipped=$(sed -n 's/^\(OK\|FAILED\) (.*skipped=\([0-9]*\)).*/\2/p' "$log")
	ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$log")
	if [ "$status" -le 1 ] && [ "$failed" = "$expected" ] && [ "${skipped:-999}" -le "$most" ]; then
		echo "ok contact 28a: $name: $((ran - skipped)) run, $skipped skipped, failed: ${failed:-none}$who"
	else
		echo "not ok contact 28a: $name: status $status, ${ran:-no} run, ${skipped:-?} skipped," \
			"failed: ${failed:-none}, expected: ${expected:-none}"
		tail -n 60 "$log"
	fi
}

for wire in tcp sctp; do
	for ((i = 1; i <= ${2:-1}; i++)); do
		run_suite "" "$work/$wire.default.$i"
		run_suite roce "$work/$wire.roce.$i" --face roce
		run_suite ib "$work/$wire.ib.$i" --face ib
		run_suite "roce, strict" "$work/$wire.strict.$i" --face roce --strict
	done
done
