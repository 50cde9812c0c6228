#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One of two unmodified programs is interrupted in the midst of a transfer: the other ends, with an
# error.  One line a case.
# usage: rough.sh BUILD [PATTERN]
set -u
pattern=${2:-.}
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
# A line for each second, written when it is due; what the shell starts ignores SIGINT otherwise.
load=(env --default-signal=INT timeout 60 "$sessctl" run -- stdbuf -oL)
forever=(-F -R --run_infinitely)
# perftest on iWARP counts receives of the server, and does not look at its completion queue while it has
# no request under way and no receive is left: if the server ends then, it never sees that.  So many
# are not used up.
many=(-r 8000)

# Until the client has said that something was transferred in a second.
await_result() { # FILE
	local i
	for ((i = 0; i < 600; i++)); do
		! grep -Esq '^ *65536 +[1-9]' "$1" || return 0
		sleep 0.05
	done
	return 1
}

interrupted() { # client|server PROGRAM
	local name="$2 over $DDPSESS_TRANSPORT, its $1 interrupted" other status
	local -A pid
	local run=("${forever[@]}")
	[[ $name =~ $pattern ]] || return 0
	free_port
	[ "$2" != ib_send_bw ] || run+=("${many[@]}")
	# what an earlier case left there is no result of this one
	rm -f "$work/server" "$work/client"
	# perftest's thread that prints goes on when main() has returned, and writes a time to
	# where the parameters were: the server's is not to wake up when the client's has printed.
	"${load[@]}" "$2" "${run[@]}" -D 30 -p "$port" >"$work/server" 2>&1 &
	pid[server]=$!
	"${load[@]}" "$2" "${run[@]}" -D 1 -p "$port" 127.0.0.1 >"$work/client" 2>&1 &
	pid[client]=$!
	[ "$1" = client ] && other=server || other=client
	await_result "$work/client" && status="" || status="nothing was transferred"
	kill -INT "${pid[$1]}"
	wait "${pid[$1]}"
	[ "$?" = 130 ] || status+=" the $1 has gone by itself"
	wait "${pid[$other]}"
	case $? in
	0) status+=" the $other says that all is well" ;;
	124 | 137) status+=" the $other hangs" ;;
	139) status+=" the $other crashed" ;;
	esac
	report "$name" "$status" "$work/client" "$work/server"
}

# It has two associations, and one that only receives sends nothing.  A heartbeat comes within 10.5 s, and the
# answer to it is for both.
killed() {
	local name="contact 7: ib_send_bw over $DDPSESS_TRANSPORT, its client killed" status begun
	local -A pid
	[[ $name =~ $pattern ]] || return 0
	free_port
	rm -f "$work/server" "$work/client"
	"${load[@]}" ib_send_bw "${forever[@]}" "${many[@]}" -D 30 -p "$port" >"$work/server" 2>&1 &
	pid[server]=$!
	"$sessctl" run -- stdbuf -oL ib_send_bw "${forever[@]}" "${many[@]}" -D 1 -p "$port" 127.0.0.1 \
		>"$work/client" 2>&1 &
	pid[client]=$!
	await_result "$work/client" && status="" || status="nothing was transferred"
	kill -KILL "${pid[client]}"
	begun=$SECONDS
	wait "${pid[client]}" 2>/dev/null
	wait "${pid[server]}"
	case $? in
	0) status+=" the server says that all is well" ;;
	124 | 137) status+=" the server hangs" ;;
	139) status+=" the server crashed" ;;
	esac
	[ $((SECONDS - begun)) -le 14 ] || status+=" the server saw it after $((SECONDS - begun)) s"
	report "$name" "$status" "$work/client" "$work/server"
}

for DDPSESS_TRANSPORT in tcp sctp; do
	export DDPSESS_TRANSPORT
	for program in ib_write_bw ib_read_bw ib_send_bw; do
		interrupted client "$program"
		interrupted server "$program"
	done
	killed
done
finish
