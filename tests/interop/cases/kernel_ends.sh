# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Ends and restarts with the kernel's SCTP.

serve_there() {
	guest_start rdma "example-rdma_peer -b 67108864 -s '$theirs'"
	guest_listens "$PORT" sctp
}

ends_there() { # WHAT
	guest_wait rdma 20 && fail "$1: taken for an orderly end in the guest"
	grep -q rdma_peer: <<<"$(guest_output rdma)" || fail "$1: the guest's end says nothing"
}

# SCTP sessions that end in mid-transfer: one end killed, or aborted by its program; the other end
# has an error immediately, kernel in the guest, our engine here.
# needs: example-rdma_peer
case-kernel-abrupt() {
	judged_sctp
	sctp_over_udp
	theirs="sctp://$GUEST:$PORT?backend=kernel&$IN_UDP"
	ours=${theirs/backend=kernel/backend=native}
	serve_there
	before=$(sctp_count InUnorderChunks)
	host_start rdma timeout 90 "$build/example-rdma_peer" -c "$ours"
	sctp_in_transfer "$before"
	# shellcheck disable=SC2016 # for the guest's shell
	guest 'kill -9 $(pidof ld-linux-x86-64.so.2)'
	status=0
	host_wait rdma || status=$?
	[ "$status" = 1 ] || fail "guest killed: status $status here, not 1"
	detail "$(tail -n 1 "$work/rdma.err")"

	serve_there
	host timeout 90 "$build/example-rdma_peer" -a -c "$ours" >"$work/out" 2>"$work/err" ||
		fail "abort here: $(tail -n 1 "$work/err")"
	ends_there "abort here"

	rdma_listen "sctp://$HOST:0?backend=native&$IN_UDP" -b 67108864
	guest "timeout 90 example-rdma_peer -a -c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'" ||
		fail "abort in the guest"
	status=0
	host_wait rdma || status=$?
	[ "$status" = 1 ] || fail "abort in the guest: status $status here, not 1"
}

# Our program is killed in mid-transfer, so that nobody sends an ABORT.  As server it is there again
# immediately: the kernel's data meet an engine that does not know them, and the guest's program has an
# error.  As client it stays away: the kernel gives up.  The next session works.
# needs: example-rdma_peer
case-kernel-ours-killed() {
	judged_sctp
	sctp_over_udp
	guest "sysctl -q -w net.sctp.rto_max=1000 net.sctp.association_max_retrans=3 \
		net.sctp.path_max_retrans=2 net.sctp.hb_interval=500"
	rdma_listen "sctp://$HOST:0?backend=native&$IN_UDP" -b 67108864
	guest_start rdma "timeout 90 example-rdma_peer -c 'sctp://$HOST:$port?backend=kernel&$IN_UDP'"
	await 60 captured 4000000 || fail "no octets arrive"
	kill -9 "$pid_rdma"
	wait "$pid_rdma" 2>/dev/null || true
	rdma_listen "sctp://$HOST:$port?backend=native&$IN_UDP" -b 500000
	guest_wait rdma 30 && fail "the guest's client took a killed server for an orderly one"
	guest_output rdma | grep -q rdma_peer: || fail "the guest's client says nothing"
	wire_has "ip.src == $HOST && sctp.chunk_type == 6 && sctp.abort_t_bit == 1" ||
		fail "no ABORT with T for what belongs to nothing"
	rdma_called "$IN_UDP" "after the restart"
	host_wait rdma || fail "after the restart: $(tail -n 1 "$work/rdma.err")"
	digests_agree "$work/rdma.out" "$work/there"

	rdma_there "$IN_UDP" -b 67108864
	before=$(sctp_count InUnorderChunks)
	host_start rdma "$build/example-rdma_peer" \
		-c "sctp://$GUEST:$PORT?backend=native&$IN_UDP"
	sctp_in_transfer "$before"
	kill -9 "$pid_rdma"
	guest_wait rdma 40 && fail "the guest's server took a killed client for an orderly one"
	guest_output rdma | grep -q rdma_peer: || fail "the guest's server says nothing"
	rdma_there "$IN_UDP" -b 500000
	rdma_calls "$IN_UDP" "after the kill"
	guest_wait rdma 30 || fail "rdma_peer there: $(guest_output rdma | tail -n 1)"
}

# The guest goes down in mid-transfer and is up again immediately, with nothing of its associations
# (a snapshot of the booted guest): our session ends with an error, and the next one works.  In UDP
# and on IP, the guest as server.
# needs: example-rdma_peer
case-kernel-reboot() {
	judged_sctp
	sctp_over_udp
	"$lab" save booted
	for query in "$IN_UDP" "$ON_IP"; do
		before=$(sctp_count InUnorderChunks)
		rdma_there "$query" -b 67108864
		host_start rdma timeout 90 "$build/example-rdma_peer" \
			-c "sctp://$GUEST:$PORT?backend=native&$query"
		sctp_in_transfer "$before"
		"$lab" reset booted
		from=$SECONDS status=0
		host_wait rdma || status=$?
		took=$((SECONDS - from))
		[ "$status" = 1 ] || fail "$query: status $status here, not 1"
		grep -q 'peer aborted the SCTP association' "$work/rdma.err" ||
			fail "$query: $(tail -n 1 "$work/rdma.err")"
		[ "$took" -le 15 ] || fail "$query: noticed after $took s"
		rdma_there "$query" -b 500000
		rdma_calls "$query" "after the reboot"
		guest_wait rdma 30 || fail "$query: rdma_peer there: $(guest_output rdma | tail -n 1)"
		guest_output rdma >"$work/there"
		digests_agree "$work/here" "$work/there"
		told="${told+$told, }$query $took s"
	done
	detail "noticed: $told"
}

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

# The guest goes down in mid-transfer, and its program calls our listener again from the same port:
# an SCTP restart.  The old session ends, and the program comes in at its first attempt.  In UDP and on IP.
# needs: sessctl
case-kernel-restart() {
	judged_sctp
	sctp_over_udp
	guest "sysctl -q -w net.ipv4.ip_local_port_range='40000 40000'
		head -c 24000000 /dev/zero >/tmp/long; head -c 300000 /dev/urandom >/tmp/short"
	"$lab" save booted
	restarted 1 "$IN_UDP"
	restarted 2 "$ON_IP"
}
