# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The guest goes down in mid-transfer, and its program calls our listener again from the same port:
# an SCTP restart.  The old session ends, and the program comes in at its first attempt.  In UDP and on IP.
# needs: sessctl
judged_sctp
sctp_over_udp
guest "sysctl -q -w net.ipv4.ip_local_port_range='40000 40000'
	head -c 24000000 /dev/zero >/tmp/long; head -c 300000 /dev/urandom >/tmp/short"
"$lab" save booted
init_came() { # HOW OFTEN
	[ "$(wire -Y "ip.src == $GUEST && sctp.chunk_type == 1 && sctp.dstport == $port" | wc -l)" -ge "$1" ]
}

restarted() { # RUN QUERY
	local inits
	mkdir "$work/dir$1"
	listen "sctp://$HOST:0?backend=native&$2" --dir "$work/dir$1"
	guest_start put "timeout 90 sessctl put /tmp/long 'sctp://$HOST:$port/long?backend=kernel&$2'"
	await 60 captured $(($1 * 4000000)) || fail "$2: no octets arrive"
	# Held until the INIT is there: else the guest aborts what it does not know, and all is over.
	kill -STOP "$pid_listen"
	"$lab" reset booted
	# the kernel's random numbers come from the snapshot too: others, please
	guest "head -c 512 /dev/hwrng >/dev/urandom"
	guest_start again "timeout 60 sessctl put /tmp/short 'sctp://$HOST:$port/short?backend=kernel&$2'"
	await 30 init_came 2 || fail "$2: no second INIT"
	kill -CONT "$pid_listen"
	status=0
	guest_wait again 90 || status=$?
	guest_output again >"$work/there"
	[ "$status" = 0 ] ||
		fail "$2: put after the restart: $(tail -n 2 "$work/there" | tr '\n' ' ')"
	same_digest "$work/dir$1/short" /tmp/short
	inits=$(wire -Y "ip.src == $GUEST && sctp.chunk_type == 1 && sctp.dstport == $port" -T fields \
		-e sctp.srcport -e sctp.init_initiate_tag | sort -u)
	[ "$(wc -l <<<"$inits")" = 2 ] || fail "$2: not two tags: $(tr '\n' ' ' <<<"$inits")"
	[ "$(cut -f 1 <<<"$inits" | sort -u)" = 40000 ] || fail "$2: other ports: $inits"
	await 20 grep -q 'restarted' "$work/listen.out" ||
		fail "$2: the old session: $(grep -v '"listening"' "$work/listen.out" | tail -n 1)"
	kill "$pid_listen"
	wait "$pid_listen" 2>/dev/null || true
}

restarted 1 "$IN_UDP"
restarted 2 "$ON_IP"
