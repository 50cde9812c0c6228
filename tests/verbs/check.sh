#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl run --check: each rule finds the mistake that it is for, in a program that has but this one,
# and nothing in programs that have none.  One line a case.
# usage: check.sh BUILD
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
wrong=$build/verbs-wrong
cd "$work" || exit 1
unset DDPSESS_CHECK DDPSESS_SUPPRESS
FOUND=66 # the status of a program that mistakes were found in
result() { # STATUS NAME
	if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2: $(tr '\n' ' ' <out)" && : >failed; fi
}
check() { # OPTION... MISTAKE: its status is $status
	timeout -k 2 20 "$sessctl" run "${@:1:$#-1}" -- "$wrong" "${!#}" >out 2>&1
	status=$?
}
rules() { # which were reported, each once
	sed -n 's/^ddpsess: check: \([a-z-]*\): .*/\1/p' out | sort -u | tr '\n' ' '
}

for wire in tcp sctp; do
	check --transport $wire --check right
	[ "$status" = 0 ] && [ ! -s out ]
	result $? "a program without a mistake over $wire"
	for mistake in send-changed recv-changed dereg-pending never-polled leak inline-size \
		sge-count post-after-error late-recv short-recv dereg-used qp-state queue-full; do
		check --transport $wire --check $mistake
		[ "$status" = $FOUND ] && [ "$(rules)" = "$mistake " ] && grep -q "^$wrong(" out
		result $? "$mistake over $wire"
	done
done

check --check wrong-rkey
[ "$status" = 0 ] && [ "$(wc -l <out)" = 2 ] &&
	grep -q '^ddpsess: queue pair [0-9]*, peer 127.0.0.1:[0-9]*: peer sent a Terminate: ' out &&
	grep -q '^ddpsess: queue pair [0-9]*, peer .*: this side ended .*invalid STag: .* unknown' out
result $? "why a connection ended, on both sides"
check wrong-rkey
[ "$status" = 0 ] && [ ! -s out ]
result $? "without --check it is not said"
check leak
[ "$status" = 0 ] && [ ! -s out ]
result $? "without --check nothing is said"
# What others print comes between two lines, and never into one.
python3 - "$sessctl" "$wrong" >out 2>&1 <<'END'
import socket, subprocess, sys
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
ours.settimeout(20)
with subprocess.Popen([sys.argv[1], "run", "--check", "--", sys.argv[2], "send-changed"], stderr=theirs) as program:
    theirs.close()
    writes = list(iter(lambda: ours.recv(65536), b""))
lines = [w for w in writes if w.startswith(b"ddpsess: check: send-changed: queue pair")]
assert len(lines) == 1 and len(lines[0]) > 128 and lines[0].endswith(b"\n"), writes
END
result $? "a report's line is one write"
printf '# known\nleak verbs-wrong\n' >known
check --check --suppress known leak
[ "$status" = 0 ] && [ ! -s out ]
result $? "what is suppressed is not said"
check --check --suppress known send-changed
[ "$status" = $FOUND ]
result $? "what is not suppressed is"
printf 'leak elsewhere\n' >known
check --check --suppress known leak
[ "$status" = $FOUND ]
result $? "a suppression is of its place alone"
printf 'leak x\nlek verbs-wrong\n' >known
check --check --suppress known leak
[ "$status" != 0 ] && [ "$(grep -c "^ddpsess: .*/known:2: there is no rule 'lek': use .* or 'leak';" out)" = 1 ]
result $? "a misspelt rule is an error that names all"
echo '*' >known
check --check --suppress known late-recv
[ "$status" = 0 ] && [ ! -s out ]
result $? "a star is every rule"

# Programs as Debian has them; what is found in fio and qperf is true: docs/check.md.
cat >fio.suppress <<'END'
leak fio(
late-recv fio(
leak qperf(
END
both() { # NAME SERVER CLIENT
	local server c s
	free_port
	# shellcheck disable=SC2086 # words are meant
	timeout -k 2 30 "$sessctl" run --check --suppress fio.suppress -- ${2//@/$port} >server 2>&1 &
	server=$!
	await_listener "$port"
	# shellcheck disable=SC2086
	timeout -k 2 30 "$sessctl" run --check --suppress fio.suppress -- ${3//@/$port} >client 2>&1
	c=$?
	wait $server
	s=$?
	cat server client >out
	[ "$c" = 0 ] && [ "$s" = 0 ] && ! grep -q '^ddpsess: check' out
	result $? "silent: $1 (client $c, server $s)"
}
o="-a 127.0.0.1 -p @ -C 20 -S 65000 -V"
both rping "rping -s $o" "rping -c $o"
export LD_PRELOAD=$build/verbs-clock.so
for p in "ib_send_bw -n 20 -q 4" "ib_send_lat -n 50" "ib_write_bw -n 5 -a" "ib_write_lat -n 50" \
	"ib_read_bw -b -n 20" "ib_send_bw -n 100 --use-srq"; do
	both "$p" "$p -F -R -p @" "$p -F -R -p @ 127.0.0.1"
done
unset LD_PRELOAD
both "qperf rc_lat" "qperf -lp @" "qperf -lp @ -cm 1 -t 1 -to 30 127.0.0.1 rc_lat quit"
o="--thread --ioengine=rdma --port=@ --bs=64k --size=1m --iodepth=8"
both "fio --verb=write" "fio --name=server $o --rw=read" \
	"fio --name=client $o --rw=write --hostname=127.0.0.1 --verb=write"
both "fio --verb=send" "fio --name=server $o --rw=read" \
	"fio --name=client $o --rw=write --hostname=127.0.0.1 --verb=send"
[ ! -e failed ]
