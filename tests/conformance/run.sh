#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The conformance cases against this build's own stack on both wires, and the report of what
# they and the other tests cover.  Prints one line a case.
# usage: run.sh SESSCTL DIRECTORY [--write]	--write replaces docs/conformance.md
set -u
sessctl=$(realpath "$1") out=$2
write=${3:-}
cd "$(dirname "$0")/../.." || exit 1
here=tests/conformance doc=docs/conformance.md
bad=0
mkdir -p "$out"

# One tab-separated line a case from the JSON lines, whose first members are in this order.
fields() {
	sed -n 's/^{"event":"case","case":"\([^"]*\)","transport":"\([^"]*\)","result":"\([^"]*\)","ids":"\([^"]*\)".*/\1\t\2\t\3\t\4/p'
}

: >"$out/wire"
for wire in tcp sctp; do
	"$sessctl" conform --self "$wire" --json >"$out/$wire.json" || bad=1
	fields <"$out/$wire.json" | grep -v $'\tskip\t' >>"$out/wire"
	if ! grep -q '"event":"summary"' "$out/$wire.json"; then
		echo "not ok conform --self $wire: it did not reach its end"
		bad=1
	fi
done
awk -F '\t' '{ print ($3 == "pass" ? "ok " : "not ok ") $1 " over " $2 }' "$out/wire"
grep -h '"result":"fail"' "$out"/*.json

sort -s -t "$(printf '\t')" -k 1,1 "$out/wire" >"$out/wire.sorted"
cat tests/unit/*.c tests/e2e/*.c | awk -f "$here/ids.awk" | sort -s >"$out/unit"
rm -f "$out/problems"
: >"$out/problems"
awk -v problems="$out/problems" -f "$here/report.awk" kind=reqs "$here"/reqs/*.tsv \
	kind=wire "$out/wire.sorted" kind=unit "$out/unit" >"$out/conformance.md"
if [ -s "$out/problems" ]; then
	sed 's/^/not ok conformance: /' "$out/problems"
	bad=1
else
	echo "ok every testable rule has its case"
fi
if [ "$write" = --write ]; then
	cp "$out/conformance.md" "$doc"
elif cmp -s "$out/conformance.md" "$doc"; then
	echo "ok $doc says what the tests cover"
else
	echo "not ok $doc is out of date (make conformance writes it): $(diff "$doc" \
		"$out/conformance.md" | grep -c '^[<>]') lines differ"
	bad=1
fi
exit "$bad"
