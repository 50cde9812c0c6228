#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Wireshark dissectors: what tshark shows by them of some conformance cases, of the messages of
# sessctl's services and of CM messages, against recorded text.  All cases are judged by
# tests/conformance/run.sh.
# usage: dissectors.sh [--write]	BUILD: where sessctl is; --write replaces the recorded text
set -u
cd "$(dirname "$0")/../.." || exit 1
sessctl=$(realpath "${BUILD:-build/opt}")/sessctl
lua=$PWD/tools/wireshark/ddpsess.lua
text=$PWD/tests/package/dissectors
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
listener=
cleanup() { [ -z "$listener" ] || kill "$listener"; }
if ! command -v tshark >/dev/null; then
	echo "ok dissectors # skipped: no tshark (Debian package tshark)"
	exit 0
fi

# A line a packet that has any of the fields, without those in front of a tab that are empty.
shown() { # FILE FIELD...
	local file=$1 f fields=()
	shift
	for f in "$@"; do fields+=(-e "$f"); done
	tshark -n -X "lua_script:$lua" -r "$file" -T fields "${fields[@]}" 2>"$work/tshark.err" |
		sed -E 's/\t+/ /g; s/ $//'
}

compare() { # NAME
	[ "${write:-}" != --write ] || cp "$work/$1" "$text/$1"
	diff "$text/$1" "$work/$1" >"$work/diff" || cat "$work/tshark.err" >>"$work/diff"
	[ ! -s "$work/diff" ]
	result $? "$1" "$work/diff"
}
write=${1:-}

setup=(rdma_setup.ird rdma_setup.ord rdma_setup.peer_to_peer rdma_setup.rtr_send rdma_setup.rtr_write
	rdma_setup.rtr_read)
session=(ip.src ddp_sctp.ssn ddp_sctp_session.function iwarp_rdma.opcode rdmap_ext.opcode
	iwarp_rdma.atomic.opcode rdmap_terminate.layer rdmap_terminate.type rdmap_terminate.code
	rdmap_terminate.meaning rdmap_terminate.opcode rdmap_terminate.qn)
for wire in tcp sctp; do
	for name in neg-p2p-rtr-read neg-reject neg-p2p-told-6 rfc7306-fetch-add rfc7306-imm \
		rfc7306-unaligned-add; do
		"$sessctl" conform --self $wire --case $name --pcap "$work/c.pcap" --pcap-all >/dev/null
		[ -s "$work/all" ] || head -c 24 "$work/c.pcap" >"$work/all"
		tail -c +25 "$work/c.pcap" >>"$work/all"
	done
	shown "$work/all" "${session[@]}" "${setup[@]}" >"$work/$wire"
	rm "$work/all"
	compare $wire
done

# Messages of sessctl, and nothing that tshark takes for RPC over RDMA.
dd if=/dev/zero of="$work/file" bs=100000 count=1 2>/dev/null
mkdir "$work/dir"
for wire in tcp sctp; do
	uri=$([ $wire = tcp ] && echo tcp://127.0.0.1:0 || echo "sctp://127.0.0.1:0?backend=native&encap=0")
	mkfifo "$work/said.$wire"
	timeout 60 "$sessctl" listen --json --count 2 --dir "$work/dir" "$uri" >"$work/said.$wire" &
	listener=$!
	exec {said}<"$work/said.$wire"
	read -r -t 20 -u "$said" line
	uri=$(sed -E 's/.*"uri":"([^"]*)".*/\1/' <<<"$line")
	"$sessctl" put --json --capture "$work/put" "$work/file" "$uri/file.$wire" >/dev/null
	"$sessctl" ping --json --count 2 --interval 0 --capture "$work/ping" "$uri" >/dev/null
	wait "$listener"
	listener=
	exec {said}<&-
	for f in put ping; do
		shown "$work/$f" sessctl.type sessctl.op sessctl.size sessctl.length sessctl.text \
			_ws.malformed rpcordma | grep .
	done >"$work/sessctl"
	sed -i "s/file\.$wire/file.WIRE/" "$work/sessctl"
	compare sessctl
done

# A verbs program under the drop-in; the second process of the same name writes next to it.
dropin() { # WIRE
	local base=$work/rping.$1 port n
	sessctl_run() { timeout 60 "$sessctl" run --transport "$1" --capture "$base" --retry 20 -- "${@:2}"; }
	read -r port < <(shuf -i 20000-30000 -n 1)
	sessctl_run "$1" rping -s -a 127.0.0.1 -p "$port" -C 2 >/dev/null 2>&1 &
	for ((n = 0; n < 200; n++)); do
		[ ! -s "$base" ] || break
		sleep 0.05
	done
	sessctl_run "$1" rping -c -a 127.0.0.1 -p "$port" -C 2 >/dev/null 2>&1 || return
	wait $! || return
	for f in "$base" "$base".*; do
		for n in 0x00 0x01 0x02 0x03; do # Write, Read Request, Read Response, Send
			shown "$f" iwarp_rdma.opcode | grep -q "$n" || return
		done
		! shown "$f" _ws.malformed | grep -q . || return
	done
	[ "$(echo "$base"*)" != "$base" ]
}
if command -v rping >/dev/null; then
	for wire in tcp sctp; do
		dropin $wire
		result $? "drop-in over $wire"
	done
else
	echo "ok drop-in # skipped: no rping (Debian package rdmacm-utils)"
fi

cat >"$work/cm.json" <<'EOT'
{"message":"REQ","fields":{"local_id":7,"service_id":"0x1000000000000049","private_data":"0000004a0000fff4"}}
{"message":"REP","fields":{"local_id":9,"remote_id":7,"private_data":"000000490000fff4"}}
{"message":"RTU","fields":{"local_id":7,"remote_id":9,"private_data":"0000004a0000fff4"}}
{"message":"REQ","fields":{"local_id":8,"service_id":"0x0100000000000050","private_data":"0000004a00000800"}}
{"message":"REJ","fields":{"remote_id":8,"reason":28,"private_data":"0000005000000800"}}
{"message":"REQ","fields":{"local_id":11,"service_id":"0x0000000001061c06","private_data":"0000004a0000fff4"}}
EOT
"$sessctl" ipoib mad --capture "$work/cm.pcap" "$work/cm.json" >/dev/null
shown "$work/cm.pcap" frame.number infiniband.mad.attributeid ipoib_cm.qpn ipoib_cm.mtu \
	ipoib_cm.service_form ipoib_cm.service_qpn >"$work/ipoib"
compare ipoib
