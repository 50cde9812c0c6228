#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The same seed gives the same trace: whole runs of two programs that have one thread, N times on each
# wire, their traces compared octet for octet; and another seed gives another.  One line a case.
# usage: traces.sh BUILD [N [PATTERN]]
set -u
runs=${2:-20} pattern=${3:-.}
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# Calls, requests and completions of either queue, by number and by chance; of one connection and of
# four.  The last rule of the first one ends the program.
cat >ibv_rc_pingpong.rules <<-END
	on ibv_reg_mr: delay 1ms
	on ibv_post_send chance 5%: delay 1ms
	on ibv_post_recv every 29: delay 1ms
	on completion opcode send chance 5%: delay 1ms
	on completion opcode recv chance 20%: delay 1ms
	on completion chance 10%: reorder 1ms
	on ibv_post_send chance 10%: corrupt
	on ibv_post_send nth 90: fail ENOMEM
END
cat >ucmatose.rules <<-END
	on rdma_create_id: delay 1ms
	on rdma_resolve_addr chance 50%: delay 1ms
	on ibv_reg_mr chance 50%: delay 1ms
	on ibv_post_send chance 10%: delay 1ms
	on completion chance 10%: delay 1ms
	on completion chance 10%: reorder 1ms
END
server() { # PROGRAM
	case $1 in
	ibv_rc_pingpong) echo "$1 -g 0 -n 100 -s 100 -p $port" ;;
	ucmatose) echo "$1 -c 4 -C 20 -p $port" ;;
	esac
}
client() {
	case $1 in
	ibv_rc_pingpong) echo "$(server "$1") 127.0.0.1" ;;
	ucmatose) echo "$(server "$1") -s 127.0.0.1" ;;
	esac
}

# Its client has the rules, and $trace is what they did.
run() { # PROGRAM SEED
	local pid
	free_port
	rm -f trace
	# shellcheck disable=SC2046 # words are meant
	timeout -k 2 20 "$sessctl" run -- $(server "$1") >server.out 2>&1 &
	pid=$!
	await_listener "$port"
	# shellcheck disable=SC2046
	timeout -k 2 20 "$sessctl" run --faults "$1.rules" --seed "$2" --trace trace -- \
		$(client "$1") >client.out 2>&1
	status=$?
	kill "$pid" 2>/dev/null
	{ wait "$pid"; } 2>/dev/null
	trace=$(cat trace 2>/dev/null)
}

# Each rule must have fired, or nothing is compared.
all_fired() { # PROGRAM
	local line
	for ((line = 1; line <= $(wc -l <"$1.rules"); line++)); do
		grep -q ": line $line: " <<<"$trace" || return 1
	done
}

traces() { # PROGRAM
	local name="$1 over $DDPSESS_TRANSPORT" first i
	[[ $name =~ $pattern ]] || return 0
	run "$1" 1
	first=$trace
	if ! all_fired "$1"; then
		report "$name" "a rule did not fire (status $status)" trace client.out
		return
	fi
	for ((i = 2; i <= runs; i++)); do
		run "$1" 1
		if [ "$trace" != "$first" ]; then
			report "$name" "run $i has another trace" <(diff <(echo "$first") <(echo "$trace")) client.out
			return
		fi
	done
	run "$1" 2
	[ "$trace" != "$first" ]
	i=$?
	report "$name: $runs runs, one trace of $(wc -l <<<"$first") lines" "${i/#0/}"
}

for DDPSESS_TRANSPORT in tcp sctp; do
	export DDPSESS_TRANSPORT
	traces ibv_rc_pingpong
	traces ucmatose
done
[ ! -e "$work/failed" ]
