#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own suite for verbs devices, over the drop-in and both wires, as somebody without rights.
# usage: rdma_core.sh BUILD [TIMES]
# Skipped tests are counted, and bounded: a test that is skipped from now on shows here.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=tests/verbs
# shellcheck source=tests/verbs/lib.sh
. $here/lib.sh
suite=/usr/share/doc/rdma-core/tests
max_skipped=${MAX_SKIPPED:-37}
drop_rights

mkdir "$work/suite" || exit 1
cp -r "$suite" "$work/suite/" || exit 1
gunzip -f "$work"/suite/tests/*.gz
rm -f "$work"/suite/tests/test_{mlx5,efa,efadv,cuda}*.py
chmod -R a+rX "$work"

for wire in tcp sctp; do
	for ((i = 1; i <= ${2:-1}; i++)); do
		log=$work/$wire.$i
		DDPSESS_TRANSPORT=$wire DDPSESS_PLACED=all DDPSESS_FACE=roce PYTHONDONTWRITEBYTECODE=1 timeout 120 \
			"${load[@]}" /usr/bin/python3 "$work/suite/tests/run_tests.py" --dev ddp0 -v \
			>"$log" 2>&1
		status=$?
		ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$log")
		skipped=$(sed -n 's/^OK (skipped=\([0-9]*\)).*/\1/p' "$log")
		if [ "$status" = 0 ] && [ -n "$skipped" ] && [ "$skipped" -le "$max_skipped" ]; then
			echo "ok rdma-core over $wire: $((ran - skipped)) passed, $skipped skipped$who"
		else
			echo "not ok rdma-core over $wire: status $status, ${ran:-no} run, ${skipped:-?} skipped"
			tail -n 60 "$log"
		fi
	done
done
