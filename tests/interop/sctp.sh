# shellcheck shell=bash disable=SC2034,SC2154 # shared with lib.sh and the cases
# SPDX-License-Identifier: BSD-2-Clause
# What the cases of the kernel's SCTP are made of; run.sh sources this behind lib.sh.

ENCAP=9899
IN_UDP="encap=$ENCAP"
ON_IP="encap=off"

sctp_over_udp() { # the guest's kernel SCTP, encapsulated
	guest "sysctl -q -w net.sctp.udp_port=$ENCAP net.sctp.encap_port=$ENCAP" ||
		fail "the guest's kernel has no SCTP over UDP"
}

# Every SCTP packet from now on is captured, and judged when the case has passed.
judged_sctp() {
	capture sctp or udp port "$ENCAP" or 'ip6 proto 132'
	judge_at_end=judge_sctp
}

# A port that the system chose may be some protocol's; what is in DATA is not tshark's to judge.
judging() { # TSHARK-OPTION...
	wire -o sctp.checksum:CRC-32C -d sctp.port==1-65535,data "$@"
}

# tshark's judgement: each checksum is good, nothing is malformed.  On a busy machine tcpdump may miss
# packets, which is reported.
judge_sctp() {
	local packets missed bad='_ws.malformed or _ws.expert.group == "Malformed"'
	kill "$pid_capture"
	wait "$pid_capture" 2>/dev/null || true
	missed=$(sed -n 's/^\([1-9][0-9]*\) packets dropped by kernel/, \1 missed/p' "$work/capture.err")
	bad+=' or sctp.checksum.status != "Good" or sctp.chunk_length.bad or sctp.parameter_length.bad'
	packets=$(judging -Y sctp | wc -l)
	[ "$packets" -gt 8 ] || fail "tshark: only $packets SCTP packets seen"
	judging -Y "sctp and ($bad)" >"$work/bad.txt"
	[ ! -s "$work/bad.txt" ] ||
		fail "tshark: $(wc -l <"$work/bad.txt") bad packets, $(head -n 1 "$work/bad.txt")"
	[ ! -e "$work/detail" ] || packets="$(cat "$work/detail"); $packets"
	detail "$packets packets judged by tshark$missed"
}

# Of /proc/net/sctp/snmp in the guest, since it began.
sctp_count() { # NAME
	guest "sed -n 's/^Sctp$1[[:space:]]*//p' /proc/net/sctp/snmp"
}

# What the guest's SCTP has got since there were BEFORE makes a transfer in its middle.
sctp_in_transfer() { # BEFORE, of sctp_count InUnorderChunks
	guest "for ((i = 0; i < 600; i++)); do
		n=\$(sed -n 's/^SctpInUnorderChunks[[:space:]]*//p' /proc/net/sctp/snmp)
		[ \$((n - $1)) -gt 200 ] && exit 0; sleep 0.05; done; exit 1" || fail "no octets arrive"
}

# So much was captured.
captured() { # OCTETS
	[ "$(stat -c %s "$work/wire.pcap")" -ge "$1" ]
}

rdma_there() { # QUERY OPTION...: our server in the guest, on the kernel's SCTP
	local query=$1
	shift
	guest_start rdma "example-rdma_peer $* -s 'sctp://$GUEST:$PORT?backend=kernel&$query'"
	guest_listens "$PORT" sctp
}

rdma_calls() { # QUERY WHAT: our engine calls it
	host timeout 300 "$build/example-rdma_peer" -c "sctp://$GUEST:$PORT?backend=native&$1" \
		>"$work/here" 2>"$work/err" || fail "$2, rdma_peer here: $(tail -n 1 "$work/err")"
}

rdma_called() { # QUERY WHAT: the guest calls ours, at $port
	LAB_LIMIT=310 guest "timeout 300 example-rdma_peer \
		-c 'sctp://$HOST:$port?backend=kernel&$1'" >"$work/there" ||
		fail "$2, rdma_peer there: $(tail -n 1 "$work/there")"
}

# Written and read back at random offsets, either end as client; digests equal.
bulk_both_ways() { # QUERY OCTETS
	rdma_there "$1" -b "$2"
	rdma_calls "$1" "$2 octets"
	guest_wait rdma 30 || fail "rdma_peer there: $(guest_output rdma | tail -n 1)"
	guest_output rdma >"$work/there"
	digests_agree "$work/here" "$work/there"
	rdma_listen "sctp://$HOST:0?backend=native&$1" -b "$2"
	rdma_called "$1" "$2 octets"
	host_wait rdma || fail "rdma_peer here as server: $(tail -n 1 "$work/rdma.err")"
	digests_agree "$work/rdma.out" "$work/there"
}

# A file from the guest to our listener, and back.
guest_puts_and_gets() { # OCTETS QUERY
	mkdir "$work/dir"
	listen "sctp://$HOST:0?backend=native&$2" --dir "$work/dir"
	LAB_LIMIT=250 guest "head -c $1 /dev/urandom >/tmp/own &&
		timeout 120 sessctl put /tmp/own 'sctp://$HOST:$port/own?backend=kernel&$2' &&
		timeout 120 sessctl get 'sctp://$HOST:$port/own?backend=kernel&$2' /tmp/again &&
		cmp /tmp/own /tmp/again" >"$work/there" 2>&1 ||
		fail "put and get in the guest: $(tail -n 1 "$work/there")"
	same_digest "$work/dir/own" /tmp/own
}

# In the capture: packets that came twice, and TSNs that came late.
some_disordered() {
	wire -Y "ip.src == $GUEST && sctp.data_tsn" -T fields -e ip.id -e sctp.data_tsn_raw |
		awk -F '\t' '
		{
			split($2, tsn, ",")
			twice += seen[$0]++ > 0
			late += last != "" && tsn[1] < last
			last = tsn[1]
		}
		END {
			print twice + 0 " twice, " late + 0 " late"
			exit !(twice && late)
		}' >"$work/disorder" || fail "no disorder: $(cat "$work/disorder")"
}

# ---- a second way ----

second_net() { # 10.77.1.1 and 10.77.1.2, on the same link; the host's side outlives a case
	host ip neigh flush dev tap0 to 10.77.1.2 nud permanent
	host ip addr replace 10.77.1.1/24 dev tap0
	guest "ip addr add 10.77.1.2/24 dev eth0"
}

cut_it() { # what goes there is for nobody
	host ip neigh replace 10.77.1.2 lladdr 02:00:00:00:00:98 nud permanent dev tap0
	guest "ip neigh replace 10.77.1.1 lladdr 02:00:00:00:00:99 nud permanent dev eth0"
}

mend_it() {
	host ip neigh del 10.77.1.2 dev tap0
	guest "ip neigh del 10.77.1.1 dev eth0"
}

# The longest time without a new cumulative TSN from there, in seconds.
pause_seen() { # DISPLAY-FILTER
	wire -Y "$1 && sctp.chunk_type == 3" -T fields -e frame.time_relative \
		-e sctp.sack_cumulative_tsn_ack_raw | awk -F '\t' '
		{ sub(/,.*/, "", $2) }
		$2 != last { if (n++ && $1 - at > most) most = $1 - at; at = $1; last = $2 }
		END { printf "%.1f", most }'
}

data_goes_to() { # ADDRESS...: to each
	local a ip
	for a; do
		ip=ip
		[[ $a != *:* ]] || ip=ipv6
		[ "$(wire -Y "$ip.dst == $a && sctp.chunk_type == 0" | wc -l)" -gt 100 ] ||
			fail "no data to $a"
	done
}

# ---- sessctl conform ----

# Every case of SCTP itself, one after the other, with sctp_hold as the kernel's user; CONFORM in the
# environment is a pattern for some of them.  $work/conform.out has the results.  Fails on what the
# profile linux-sctp does not know, and on what it says of a case that passes.
conform_sctp() { # responder|initiator SESSCTL-OPTION... URI
	local role=$1 name new=
	shift
	"$sessctl" conform --list --case "${CONFORM:-assoc-*}" | awk -F '\t' -v role="$role" \
		'$1 ~ /^assoc-/ && $3 == role && $4 == "any" { print $1 }' >"$work/names"
	[ -s "$work/names" ] || skip "no case '${CONFORM-}' for a $role"
	while read -r name; do
		# 3 s are much, but not on every machine, and Linux begins with an RTO of 3 s that doubles for
		# lost HEARTBEATs, too: what is not as expected is asked with patience
		conform_sctp_case "$name" 3 "$@" || conform_sctp_case "$name" 40 "$@" ||
			new+="$name: $(sed -nE 's/.*"why":"([^"]*)".*/\1/p' "$work/$name.out"), "
		cat "$work/$name.out" >>"$work/conform.out"
		"$lab" status >/dev/null || fail "behind $name the guest is down"
	done <"$work/names"
	[ ! -d "${CONFORM_KEEP-}" ] || cp "$work/conform.out" "$CONFORM_KEEP/${work##*/}.json"
	[ -z "$new" ] || fail "not as in the profile: $new"
	detail "$(grep -c '"result":"pass"' "$work/conform.out") pass," \
		"$(grep -c '"result":"known"' "$work/conform.out") as in the profile"
}

# One case; what it says in $work/CASE.out.  What the profile says may be need not be.
conform_sctp_case() { # CASE SECONDS SESSCTL-OPTION... URI
	local name=$1 limit=$2 line
	shift 2
	host timeout 150 "$sessctl" conform --profile linux-sctp --timeout "$limit" --json \
		--case "$name" "$@" </dev/null >"$work/$name.out" 2>"$work/$name.err" || true
	line=$(grep '"event":"case"' "$work/$name.out") || fail "$name: $(tail -n 1 "$work/$name.err")"
	case $line in
	*'"result":"fail"'* | *'"result":"skip"'*) return 1 ;;
	*'"result":"pass"'*'"known":"may '*) ;;
	*'"result":"pass"'*'"known":"'*) return 1 ;;
	esac
}
