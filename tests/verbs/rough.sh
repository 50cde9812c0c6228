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
forever=(-F -R -D 1 --run_infinitely)

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
	local name="$2 over $DDPSESS_TRANSPORT, its $1 interrupted" other sign=
	local -A pid status
	[[ $name =~ $pattern ]] || return 0
	free_port
	"${load[@]}" "$2" "${forever[@]}" -p "$port" >"$work/server" 2>&1 &
	pid[server]=$!
	"${load[@]}" "$2" "${forever[@]}" -p "$port" 127.0.0.1 >"$work/client" 2>&1 &
	pid[client]=$!
	[ "$1" = client ] && other=server || other=client
	await_result "$work/client" || sign="nothing was transferred"
	kill -INT "${pid[$1]}"
	wait "${pid[$1]}"
	status[$1]=$?
	wait "${pid[$other]}"
	status[$other]=$?
	# It was the signal that ended the one; the other neither hangs, crashes nor calls it a success.
	[ "${status[$1]}" != 130 ] || status[$1]=0
	case ${status[$other]} in
	0) status[$other]="0, which is no error" ;;
	124 | 137 | 139) ;;
	*) status[$other]=0 ;;
	esac
	report "$name" "${sign:-${status[client]}}" "${status[server]}"
}

for DDPSESS_TRANSPORT in tcp sctp; do
	export DDPSESS_TRANSPORT
	for program in ib_write_bw ib_read_bw ib_send_bw; do
		interrupted client "$program"
		interrupted server "$program"
	done
done
exit "$failed"
