#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The example of docs/faults.md: rstream ends by itself without the rule and does not with it.  And
# programs that handle what befalls them end in time.  And what the tests of rules reach is all there
# is.  One line a case.
# usage: faults.sh BUILD
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$work" || exit 1
result() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok $2"
	else
		echo "not ok $2: client's status ${client:-none}; $(cat trace client 2>&1 | tr '\n' ';')"
		: >"$work/failed"
	fi
}
rules() { # LINE...
	printf '%s\n' "$@" >rules
	rm -f trace
}

# SECONDS SERVER CLIENT: the client has the rules; its status is $client
both() {
	local server
	free_port
	# shellcheck disable=SC2086 # words are meant
	timeout -k 2 20 "$sessctl" run -- ${2//@/$port} >server 2>&1 &
	server=$!
	await_listener "$port"
	# shellcheck disable=SC2086
	timeout -k 2 "$1" "$sessctl" run --faults rules --seed 3 --trace trace -- ${3//@/$port} >client 2>&1
	client=$?
	kill "$server" 2>/dev/null
	wait "$server"
}

stream="rstream -T v -C 20 -S 4096 -p @"
rules
both 20 "$stream" "$stream -s 127.0.0.1"
[ "$client" = 0 ] && [ ! -s trace ]
result $? "rstream without a rule ends"
rules 'on completion opcode send nth 3: status RETRY_EXC_ERR'
both 4 "$stream" "$stream -s 127.0.0.1"
{ [ "$client" = 124 ] || grep -q '^rrecv: Invalid argument' client; } &&
	grep -qx '1 completion send qp 1: line 1: status IBV_WC_RETRY_EXC_ERR' trace
result $? "rstream with a failed request waits for ever, or says that it failed"

# Its threads race for what it ends with: 0 when it learns of the end of the connection first.
told() { [ "$client" != 0 ] || grep -q '^cq completion failed' client; }

ping="-a 127.0.0.1 -p @ -C 20"
for rule in 'on completion opcode send nth 3: status RETRY_EXC_ERR' 'on rdma_connect: event REJECTED' \
	'on ibv_reg_mr nth 2: fail ENOMEM' 'on rdma_resolve_addr: event ADDR_ERROR'; do
	rules "$rule"
	both 10 "rping -s $ping" "rping -c $ping"
	told && [ "$client" != 124 ] && grep -q 'line 1' trace
	result $? "rping ends: $rule"
done
# Each value that the installed headers know has a test of its own name.
reached() { # ENUM HEADER PREFIX
	local all got
	all=$(sed -n "/^enum $1 {/,/^};/p" "$2" | grep -oE "\b$3[A-Z0-9_]+" | sort)
	got=$(grep -ohE "^(Test\(verbs_fault_[a-z]+, |[A-Z]+\()$3[A-Z0-9_]+" "$here"/verbs_fault*_test.c |
		grep -oE "$3[A-Z0-9_]+\$" | sort)
	[ -n "$all" ] && [ -z "$(comm -23 <(echo "$all") <(echo "$got"))" ]
	result $? "$1: each of its $(wc -l <<<"$all") values has a test"
}
reached ibv_wc_status /usr/include/infiniband/verbs.h IBV_WC_
reached ibv_event_type /usr/include/infiniband/verbs.h IBV_EVENT_
reached rdma_cm_event_type /usr/include/rdma/rdma_cma.h RDMA_CM_EVENT_
[ ! -e "$work/failed" ]
