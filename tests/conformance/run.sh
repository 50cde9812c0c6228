#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The conformance cases against this build's own stack on both wires, those of IPoIB against its own
# node, and the report of what they and the other tests cover.  Prints one line a case.
# usage: run.sh SESSCTL DIRECTORY [--write]	--write replaces docs/conformance.md and docs/peers.md
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
# Both at the same time: SCTP's cases spend theirs waiting.
"$sessctl" conform --self sctp --json --pcap "$out/sctp.pcap" --pcap-all >"$out/sctp.json" &
"$sessctl" conform --self tcp --json --pcap "$out/tcp.pcap" --pcap-all >"$out/tcp.json" || bad=1
wait $! || bad=1
"$sessctl" ipoib conform --self ours --json >"$out/ib.json" || bad=1
for wire in tcp sctp ib; do
	fields <"$out/$wire.json" | grep -v $'\tskip\t' >>"$out/wire"
	if ! grep -q '"event":"summary"' "$out/$wire.json"; then
		echo "not ok conform over $wire: it did not reach its end"
		bad=1
	fi
done
awk -F '\t' '{ print ($3 == "pass" ? "ok " : "not ok ") $1 " over " $2 }' "$out/wire"
grep -h '"result":"fail"' "$out"/*.json

# Packets that were on the wire have DF set, those made malformed on purpose the identification 0bad.
if command -v tshark >/dev/null; then
	judge() { # FILTER
		tshark -r "$out/sctp.pcap" -o sctp.checksum:crc32c -Y "ip.flags.df == 1 && ($1)" \
			-T fields -e frame.number -e ip.src -e sctp.chunk_type -e _ws.expert.message 2>/dev/null
	}
	bad_if='_ws.malformed || sctp.checksum.status == 0'
	judge "ip.id != 0x0bad && ($bad_if)" >"$out/malformed"
	if [ -s "$out/malformed" ]; then
		echo "not ok tshark finds packets malformed that no case made so on purpose"
		head -n 20 "$out/malformed"
		bad=1
	elif [ -z "$(judge "ip.id == 0x0bad && ($bad_if)" | head -n 1)" ]; then
		echo "not ok tshark finds nothing malformed, not even what is: it was not looked at"
		bad=1
	else
		echo "ok tshark finds nothing malformed but what was made so on purpose"
	fi
	# By our dissectors, what the target (192.0.2.2) sent is whole, except where a path of a case broke
	# it on the way.  Over TCP Wireshark 4.0 calls a Terminate with a tagged header malformed; ours reads
	# that to its end.
	dissect() { # WIRE FILTER
		tshark -n -X lua_script:tools/wireshark/ddpsess.lua -r "$out/$1.pcap" -Y "$2" 2>&1 |
			grep -v '^Running as user'
	}
	ours='ip.src == 192.0.2.2 && ip.id != 0x0bad && (iwarp_mpa || ddp_sctp || ddp_sctp_session)'
	for wire in tcp sctp; do
		dissect $wire "$ours && (rdmap_terminate.short || ddp_sctp.bad || ddp_sctp_session.bad ||
			_ws.lua.error || (_ws.malformed && !rdmap_terminate))" >"$out/dissected"
		if [ -s "$out/dissected" ]; then
			echo "not ok the dissectors find malformed what the stack sent over $wire"
			head -n 20 "$out/dissected"
			bad=1
		elif [ "$(dissect $wire "$ours" | wc -l)" -lt 300 ]; then
			echo "not ok the dissectors find no sessions over $wire"
			bad=1
		else
			echo "ok the dissectors find nothing malformed that the stack sent over $wire"
		fi
	done
else
	echo "skip tshark is not here: packets are not judged by it"
fi

sort -s -t "$(printf '\t')" -k 1,1 "$out/wire" >"$out/wire.sorted"
awk -f "$here/ids.awk" tests/unit/*.c tests/unit/*/*.c tests/e2e/*.c >"$out/unit" || bad=1
sort -s -o "$out/unit" "$out/unit"
rm -f "$out/problems"
: >"$out/problems"
# in the order of the RFCs, the purposes of other suites behind them
sort -s -t - -k 1.1,1.4n "$here"/reqs/[!s]*.tsv "$here"/reqs/sctp*.tsv >"$out/reqs"
awk -v problems="$out/problems" -f "$here/report.awk" kind=reqs "$out/reqs" "$here/reqs/suites.tsv" kind=wire \
	"$out/wire.sorted" kind=unit "$out/unit" >"$out/conformance.md"
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
if [ "$write" = --write ]; then
	"$here/peers.sh" --take ours "$out"/{tcp,sctp,ib}.json
	"$here/peers.sh" "$sessctl" --write
fi
"$here/peers.sh" --check "$sessctl" || bad=1
exit "$bad"
