# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# tshark judges SCTP: payload protocols 16 and 17, good CRC32c checksums, nothing malformed.
# quick
# needs: sessctl
capture ip proto 132
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&encap=off"
transfer put 300000 "sctp://$GUEST:$PORT" "backend=usrsctp&encap=off"
kill "$pid_capture"
wait "$pid_capture" 2>/dev/null || true
tshark -n -o sctp.checksum:'CRC-32C' -r "$work/wire.pcap" -V >"$work/wire.txt" 2>/dev/null
ids=$(wire -T fields -e sctp.data_payload_proto_id | tr , '\n' | grep . | sort -un | tr '\n' ' ')
[ "$ids" = "16 17 " ] || fail "payload protocols: $ids"
good=$(grep -c 'Checksum.*\[correct\]' "$work/wire.txt") || fail "tshark: no good checksum"
packets=$(wire -Y sctp | wc -l)
[ "$good" = "$packets" ] || fail "$good of $packets checksums good"
if grep -qE 'Malformed|\[incorrect' "$work/wire.txt"; then
	fail "tshark: $(grep -m 1 -E 'Malformed|\[incorrect' "$work/wire.txt")"
fi
detail "$packets packets judged by tshark"
