#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each fault that is put in on purpose still changes the file that it names.  make mutate, make plants and
# the conformance mutations run them; only the last of these is part of make check.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0 n=0
while IFS=$'\t' read -r list file expression; do
	n=$((n + 1))
	read -ra files <<<"${file//+/ }"
	if ! cat "${files[@]}" >/dev/null; then
		echo "not ok $list: there is no $file"
	elif sed -E "$expression" "${files[@]}" | cmp -s - <(cat "${files[@]}"); then
		echo "not ok $list: '$expression' changes nothing in $file"
	else
		continue
	fi
	bad=1
done < <(
	awk -F '\t' -v OFS='\t' '!/^(#|$)/ { print FILENAME, $1, $2 }' tests/mutate/attacks.txt \
		tests/conformance/mutations/*.txt
	awk -F '\t' -v OFS='\t' '!/^(#|$)/ { print FILENAME, $2, $3 }' tests/sim/plants.txt
)
[ "$n" -gt 50 ] || { echo "not ok mutations: only $n were found" && bad=1; }
[ "$bad" != 0 ] || echo "ok each of $n faults on purpose changes something"
exit "$bad"
