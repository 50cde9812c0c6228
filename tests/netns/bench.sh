#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# iperf3 through sessctl ipoib bridge, and the same without it: a table for docs/ipoib.md.
# usage: SESSCTL=... bench.sh [SECONDS]
# shellcheck disable=SC2154,SC2034 # variables of lib.bash
set -u
here=$(dirname "$0")
# shellcheck source=/dev/null
. "$here/lib.bash"
seconds=${1:-5}

skip() {
	echo "bench.sh: cannot run: $1" >&2
	exit 1
}

cpu() { # seconds that both bridges have used
	for n in "${!pids[@]}"; do
		cat "/proc/${pids[$n]}/stat"
	done | awk -v tick="$(getconf CLK_TCK)" '{ s += $14 + $15 } END { print s / tick }'
}

measure() { # LABEL ADDRESS
	local server i before after
	in_ns 2 timeout $((seconds + 20)) iperf3 -s -1 -B "$2" >"$work/server.log" 2>&1 &
	server=$!
	for ((i = 0; i < 100; i++)); do
		in_ns 2 ss -ltn | grep -q :5201 && break
		nap
	done
	before=$(cpu)
	in_ns 1 timeout $((seconds + 15)) iperf3 -J -O 1 -c "$2" -t "$seconds" >"$work/client.json" || cat "$work/client.json"
	after=$(cpu)
	wait "$server"
	python3 - "$1" "$before" "$after" "$work/client.json" <<-'PY'
		import json, sys
		label, before, after, path = sys.argv[1:]
		end = json.load(open(path))["end"]
		bits = end["sum_received"]["bits_per_second"]
		octets = end["sum_received"]["bytes"]
		cpu = (float(after) - float(before)) / (octets / 2**30)
		print("| %s | %.2f | %d | %s |" % (label, bits / 1e9, end["sum_sent"]["retransmits"],
		      "%.1f" % cpu if cpu else "-"))
	PY
}

run() { # LABEL KIND MODE OPTION...
	local label=$1 n
	kind=$2
	up 1 "$3" "${@:4}"
	up 2 "$3" "${@:4}"
	ready 1 2 || {
		cat "$work"/node*.log
		exit 1
	}
	in_ns 1 python3 "$here/ping.py" 10.9.0.2 84
	measure "$label" 10.9.0.2
	for n in 1 2; do
		kill -TERM "${pids[$n]}" && wait "${pids[$n]}"
		unset "pids[$n]"
	done
}

start_net skip
echo "| | Gbit/s | retransmits | seconds of processor a GiB, both bridges |"
echo "|---|---|---|---|"
measure "the veth pair alone" 192.0.2.2
run "connections over TCP, MTU 65520" tcp rc
run "connections over TCP, MTU 2044" tcp rc --mtu 2048
run "connections over SCTP, MTU 65520" sctp rc
run "connections over SCTP, MTU 2044" sctp rc --mtu 2048
run "datagrams, MTU 2044" tcp ud
