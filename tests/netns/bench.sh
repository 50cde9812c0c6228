#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# iperf3 through sessctl ipoib bridge, and the same without it: a table for docs/ipoib.md.
# usage: SESSCTL=... bench.sh [SECONDS [rc]]	rc: only what reliable connections carry
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

run() { # LABEL MODE OPTION...
	local label=$1 n
	up 1 "$2" "${@:3}"
	up 2 "$2" "${@:3}"
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

start_net
echo "| | Gbit/s | retransmits | seconds of processor a GiB, both bridges |"
echo "|---|---|---|---|"
measure "the veth pair alone" 192.0.2.2
run "connections, MTU 65520" rc
run "connections, MTU 2044" rc --mtu 2048
[ "${2:-}" != rc ] || exit 0
run "unreliable connections, MTU 65520" uc
run "datagrams, MTU 2044" ud
