# shellcheck shell=bash disable=SC2034,SC2154 # shared with run.sh and the cases
# SPDX-License-Identifier: BSD-2-Clause
# What the cases are made of.  run.sh sources this, then the case, in a shell of its own.
#
# A case passes if it ends without calling fail or skip and no command in it fails (set -e).
# Host commands run in the lab's network, where the guest is 10.77.0.2 and the host 10.77.0.1.
# From run.sh: lab (lab.sh), build (build/opt), work (the case's own folder, removed later).

GUEST=10.77.0.2
HOST=10.77.0.1
GUEST6=fd77::2
HOST6=fd77::1
PORT=7174
sessctl=$build/sessctl
started=()
export LAB_LIMIT=${LAB_LIMIT:-120} # seconds for what is called in the guest

# ---- the end of a case ----

detail() { # TEXT: shown behind the result
	echo "$*" >"$work/detail"
}

fail() { # TEXT
	detail "$*"
	exit 1
}

skip() { # TEXT
	detail "$*"
	exit 77
}

finish() {
	local status=$? p
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	for p in "${started[@]}"; do
		kill "$p" 2>/dev/null || true
	done
	[ -z "${undo_at_end-}" ] || "$undo_at_end"
	[ "$status" != 0 ] && [ ! -e "$work/detail" ] &&
		detail "status $status from ${failed_at-the case}"
	exit "$status"
}
trap finish EXIT

# Behind the case's last command.
ended() {
	[ -z "${judge_at_end-}" ] || "$judge_at_end"
}
set -E
trap 'failed_at="${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND"' ERR

# ---- running things ----

host() { # COMMAND...
	"$lab" ns "$@"
}

guest() { # 'COMMAND'
	"$lab" run "$1"
}

host_start() { # NAME COMMAND...: output in $work/NAME.out and .err
	local name=$1
	shift
	rm -f "$work/$name.out" "$work/$name.err"
	"$lab" ns "$@" >"$work/$name.out" 2>"$work/$name.err" &
	started+=($!)
	eval "pid_$name=$!"
}

host_wait() { # NAME: its exit status
	local p=pid_$1
	wait "${!p}"
}

guest_start() { # NAME 'COMMAND': output in the guest's /tmp/NAME.out, exit status in .rc
	guest "rm -f /tmp/$1.rc /tmp/$1.out; { $2; echo \$? >/tmp/$1.rc; } >/tmp/$1.out 2>&1 </dev/null &"
}

guest_wait() { # NAME SECONDS: its exit status
	local rc
	rc=$(guest "for ((i = 0; i < $2 * 10; i++)); do
		[ -s /tmp/$1.rc ] && exec cat /tmp/$1.rc; sleep 0.1; done; echo 124")
	return "${rc:-124}"
}

guest_output() { # NAME
	guest "cat /tmp/$1.out"
}

# Ask until it is so.
await() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

guest_listens() { # PORT [tcp|sctp]
	local set='tn'
	[ "${2-tcp}" = tcp ] || set='Sn'
	guest "for ((i = 0; i < 200; i++)); do
		ss -Hl$set | grep -qE '[]:.*0-9]:$1 ' && exit 0; sleep 0.05; done; exit 1" ||
		fail "nothing listens on port $1 in the guest"
}

# What several cases need in the guest goes into the snapshot.
guest_prepare() {
	local f programs=()
	for f in ${INTEROP_PROGRAMS-sessctl example-rping_peer example-rdma_peer example-many_peer}; do
		[ ! -x "$build/$f" ] || programs+=("$build/$f")
	done
	[ ${#programs[@]} = 0 ] || { guest_install "${programs[@]}" && "$lab" save; }
}

# Programs with every library they need, so that the guest's own do not matter.
guest_install() { # FILE...
	local f stage
	stage=$(mktemp -d "$work/stage.XXXXXX")
	mkdir -p "$stage/opt/lib" "$stage/opt/libexec" "$stage/usr/bin"
	for f; do
		cp -L "$f" "$stage/opt/libexec/"
		ldd "$f" | sed -nE 's/.*=> (\/[^ ]+) .*/\1/p; s/^\t(\/[^ ]+) .*/\1/p' |
			while read -r so; do cp -Ln "$so" "$stage/opt/lib/"; done
		f=$(basename "$f")
		# shellcheck disable=SC2016 # for the guest's shell
		printf '#!/bin/bash\nexec %s --library-path /opt/lib /opt/libexec/%s "$@"\n' \
			'/opt/lib/ld-linux-*' "$f" >"$stage/usr/bin/$f"
		chmod 755 "$stage/usr/bin/$f"
	done
	strip --strip-debug "$stage"/opt/libexec/*
	tar -C "$stage" -cf "$stage.tar" opt usr
	"$lab" push "$stage.tar" /tmp/install.tar
	guest 'tar -C / -xf /tmp/install.tar && rm /tmp/install.tar'
	rm -rf "$stage" "$stage.tar"
}

# ---- peers ----

siw() { # vanilla | param NAME=VALUE...
	guest "siwmode $*" >"$work/siwmode" || fail "siwmode $* failed"
}

rping_server() { # [OPTION...]: in the guest, on siw
	guest_start rping "rping -s -a $GUEST -p $PORT $*"
	guest_listens $PORT
}

# rping's server waits for the next ping when the client leaves, and may call that an error.
rping_ended() {
	guest_wait rping 30 || [ "$(guest_output rping | grep -v 'DISCONNECT EVENT' |
		grep -cv 'wait for RDMA_READ_ADV state\|^cq completion in ERROR')" = 0 ] ||
		fail "rping -s: $(guest_output rping | tail -n 1)"
}

# sessctl connect to siw; what it said is in $work/connect.out, its exit status in $status.
connect() { # OPTION...
	status=0
	host timeout 90 "$sessctl" connect --json --timeout 60 "$@" "tcp://$GUEST:$PORT" \
		>"$work/connect.out" 2>"$work/connect.err" || status=$?
}

connected() { # OPTION...: the same, and it has to work
	connect "$@"
	[ "$status" = 0 ] || fail "connect: status $status, $(head -n 1 "$work/connect.err")"
}

# The same, but the end may be a reset: siw can miss an RTR that a close follows immediately.
established() { # OPTION...
	connect "$@"
	grep -q '"established"' "$work/connect.out" ||
		fail "connect: status $status, $(head -n 1 "$work/connect.err")"
}

# sessctl listen in the lab's network; sets $port and $uri, output in $work/listen.out.
listen() { # URI OPTION...
	local at=$1
	shift
	host_start listen "$sessctl" listen --json "$@" "$at"
	await 30 grep -q '"listening"' "$work/listen.out" ||
		fail "listen: $(tail -n 1 "$work/listen.err")"
	uri=$(json "$work/listen.out" listening uri)
	port=${uri%%\?*}
	port=${port##*:}
}

# siw calls sessctl, whose protocol its rping does not speak: only the set-up is of interest.
siw_sets_up() { # LISTEN-OPTION...
	listen "tcp://$HOST:0" --count 1 "$@"
	guest "timeout 90 rping -c -a $HOST -p $port -C 1" >/dev/null || true
	await 30 grep -q '"established"' "$work/listen.out" ||
		fail "not established: $(tail -n 1 "$work/listen.out" "$work/listen.err")"
}

# Our example NAME_peer here as server; sets $port.
peer_listens() { # NAME URI [OPTION...]
	local name=$1
	shift
	host_start "$name" "$build/example-${name}_peer" -s "$@"
	await 20 grep -q "^listening on" "$work/$name.out" ||
		fail "${name}_peer: $(tail -n 1 "$work/$name.err")"
	port=$(sed -nE "s/^listening on [a-z]+:\/\/.*:([0-9]+).*/\1/p" "$work/$name.out")
}

rping_listen() { # URI [OPTION...]
	peer_listens rping "$@"
}

rdma_listen() { # URI [OPTION...]
	peer_listens rdma "$@"
}

many_listen() { # URI [OPTION...]
	peer_listens many "$@"
}

# A session's octets are arriving in the guest.
in_transfer() {
	guest "for ((i = 0; i < 600; i++)); do
		ss -Hnti sport = :$PORT | grep -qE 'bytes_received:[0-9]{6}' && exit 0
		sleep 0.05; done; exit 1" || fail "no octets arrive in the guest"
}

siw_peer_server() { # OPTION...: in the guest, on siw
	guest_start siw_peer "siw_peer -s $GUEST $* $PORT"
	guest_listens $PORT
}

# Both ends printed the digest of the same octets.
digests_agree() { # FILE FILE
	local one two
	one=$(grep '^digest' "$1") || fail "no digest here"
	two=$(grep '^digest' "$2") || fail "no digest in the guest"
	[ "$one" = "$two" ] || fail "digests: here '$one', there '$two'"
}

sessctl_in_guest() { # URI: serves the guest's /tmp/dir
	guest_start sessctl "mkdir -p /tmp/dir; exec sessctl listen --json --dir /tmp/dir '$1'"
	guest "for ((i = 0; i < 200; i++)); do
		grep -q listening /tmp/sessctl.out && exit 0; sleep 0.05; done; exit 1" ||
		fail "sessctl in the guest: $(guest_output sessctl | tail -n 1)"
}

# A file to or from sessctl in the guest, and its digest.
transfer() { # put|get OCTETS URI QUERY
	local uri=$3/file${4:+?$4}
	if [ "$1" = put ]; then
		head -c "$2" /dev/urandom >"$work/file"
		set -- put "$work/file" "$uri"
	else
		guest "head -c $2 /dev/urandom >/tmp/dir/file"
		set -- get "$uri" "$work/file"
	fi
	host timeout 250 "$sessctl" "$1" --json "$2" "$3" >"$work/$1.out" 2>"$work/$1.err" ||
		fail "$1: $(tail -n 1 "$work/$1.err")"
	same_digest "$work/file" /tmp/dir/file
	detail "$(printf '%s octets in %.2f s' "$(json "$work/$1.out" transfer bytes)" \
		"$(json "$work/$1.out" transfer seconds)")"
}

# An unmodified verbs program here, with our library in place of the system's.
verbs() { # COMMAND...
	host env LD_PRELOAD="$build/libddpsess-verbs.so" timeout 90 "$@" >"$work/verbs.out" \
		2>"$work/verbs.err" || fail "$1: $(verbs_said)"
}

verbs_start() { # COMMAND...
	host_start verbs env LD_PRELOAD="$build/libddpsess-verbs.so" timeout 90 "$@"
}

verbs_wait() {
	host_wait verbs || fail "the program here: $(verbs_said)"
}

verbs_said() {
	cat "$work/verbs.out" "$work/verbs.err" | grep . | tail -n 1
}

# One here calls one on siw, which listens at that port and goes on in the background.
verbs_calls() { # PORT 'COMMAND THERE' COMMAND...
	guest_start program "$2"
	guest_listens "$1"
	shift 2
	verbs "$@"
}

# One on siw calls one here, which listens at that port and goes on; what it says in $work/there, its
# exit status returned.
verbs_called() { # PORT 'COMMAND THERE' COMMAND...
	local port=$1 there=$2
	shift 2
	verbs_start "$@"
	host_listens "$port"
	guest "timeout 90 $there" >"$work/there" 2>&1
}

# perftest, either end as client; its table has a line for so many messages of 4096 octets.
perf_both_ways() { # COUNT COMMAND...
	local count=$1
	shift
	set -- "$@" -R -s 4096 -n "$count" -p "$PORT"
	verbs_calls "$PORT" "$*" "$@" "$GUEST"
	perf_result "$count" "$work/verbs.out" "here as client"
	# Each end destroys its queue pair without a word when it is done; the other may call that an error.
	verbs_called "$PORT" "$* $HOST" "$@" || true
	perf_result "$count" "$work/there" "there as client"
}

perf_result() { # COUNT FILE WHAT
	grep -qE "^ *4096 +$1 " "$2" || fail "no result $3: $(tail -n 2 "$2" | tr '\n' ' ')"
}

host_listens() { # PORT
	await 20 host_has_listener "$1" || fail "nothing listens here: $(verbs_said)"
}

host_has_listener() { # PORT
	host ss -Hltn | grep -qE "[]:.*0-9]:$1 "
}

# ---- sessctl conform ----

# Every case for which siw_hold is enough, each from a snapshot of its own, since siw can hang;
# CONFORM in the environment is a pattern for some of them.
# $work/conform.out has the results; fails on what the profile siw does not know.
conform() { # responder|initiator SESSCTL-OPTION... URI
	local role=$1 name new
	shift
	target
	"$lab" save conform
	"$sessctl" conform --list --case "${CONFORM:-*}" | awk -F '\t' -v role="$role" \
		'$2 ~ /tcp/ && $3 == role && $4 == "any" { print $1 }' >"$work/names"
	[ -s "$work/names" ] || skip "no case '${CONFORM-}' for a $role"
	while read -r name; do
		# 3 s are much, but not on every machine: what is not as expected is asked with patience
		conform_case "$name" 3 "$@" || again_if_down || conform_case "$name" 20 "$@" ||
			new+="$name: $(sed -nE 's/.*"why":"([^"]*)".*/\1/p' "$work/$name.out"), "
		cat "$work/$name.out" >>"$work/conform.out"
		! again_if_down || echo "lab: behind $name"
	done <"$work/names"
	[ ! -d "${CONFORM_KEEP-}" ] || cp "$work/conform.out" "$CONFORM_KEEP/${work##*/}.json"
	[ ! -e "$work/down" ] || new+="; these took the kernel down: $(tr '\n' ' ' <"$work/down")"
	[ -z "${new-}" ] || fail "not as in the profile: $new"
	detail "$(grep -c '"result":"pass"' "$work/conform.out") pass," \
		"$(grep -c '"result":"known"' "$work/conform.out") as in the profile" \
		"$([ ! -e "$work/gone" ] || echo "; of the profile, not seen:" "$(tr '\n' ' ' <"$work/gone")")"
}

# The octets of a case can take the guest's whole kernel down: then it starts again, and $work/down has
# the case.  False if it is up.
again_if_down() {
	! "$lab" status >/dev/null || return 1
	echo "$name" >>"$work/down"
	"$lab" up && guest_prepare && target && "$lab" save conform
}

# Of conform: what siw is called by, or nothing.
target() {
	if [ "$role" = responder ]; then
		guest_start hold "siw_hold -s $GUEST $PORT"
		guest_listens "$PORT"
	fi
}

# One case; what it says in $work/CASE.out.  False if it fails, or if siw does otherwise than the
# profile says and siw-seen.tsv shows.
conform_case() { # CASE SECONDS SESSCTL-OPTION... URI
	local name=$1 limit=$2 line seen
	shift 2
	"$lab" reset conform
	host timeout 90 "$sessctl" conform --profile siw --timeout "$limit" --pause 0.1 --json \
		--case "$name" "$@" </dev/null >"$work/$name.out" 2>"$work/$name.err" || true
	line=$(grep '"event":"case"' "$work/$name.out") || fail "$name: $(tail -n 1 "$work/$name.err")"
	case $line in
	*'"result":"fail"'*) return 1 ;;
	*'"result":"known"'*)
		line=${line#*\"why\":\"}
		while read -r seen; do
			# shellcheck disable=SC2053 # a pattern
			[[ ${line%%\",\"*} != $seen ]] || return 0
		done < <(sed -n "s/^$name\t//p" "${lab%/*}/siw-seen.tsv")
		return 1
		;;
	*'"result":"pass"'*'"known":'*) echo "$name" >>"$work/gone" ;;
	esac
}

# ---- what was said ----

# A field of the first event of a kind; keys of nested objects are plain keys.
json() { # FILE EVENT KEY
	grep -E "\"event\": ?\"$2\"" "$1" | head -n 1 |
		sed -nE "s/.*\"$3\": ?(\"([^\"]*)\"|([^,}]*)).*/\2\3/p"
}

expect() { # FILE EVENT KEY=VALUE...
	local file=$1 event=$2 pair got
	shift 2
	grep -qE "\"event\": ?\"$event\"" "$file" ||
		fail "no event $event; last: $(tail -n 1 "$file")"
	for pair; do
		got=$(json "$file" "$event" "${pair%%=*}")
		[ "$got" = "${pair#*=}" ] || fail "$event: ${pair%%=*} is '$got', not '${pair#*=}'"
	done
}

# From now on the guest loses and delays what it sends.
lossy() { # PERCENT
	guest "tc qdisc add dev eth0 root netem delay 5ms 2ms loss $1%"
}

# The same, with duplicates and packets that overtake others; and what it receives, by way of in0.
disorder() {
	guest "ip link add in0 type ifb && ip link set in0 up && tc qdisc add dev eth0 ingress &&
		tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev in0 &&
		for d in eth0 in0; do
			tc qdisc add dev \$d root netem delay 5ms 2ms loss 1% reorder 20% 50% \
				duplicate 2% || exit 1
		done"
}

some_lost() { # [DEVICE...]
	local device
	for device in "${@:-eth0}"; do
		guest "tc -s qdisc show dev $device root | grep -q 'dropped [1-9]'" ||
			fail "nothing was lost on $device"
	done
}

same_digest() { # FILE GUESTFILE
	local here there
	here=$(sha256sum <"$1")
	there=$(guest "sha256sum <'$2'")
	[ "$here" = "$there" ] || fail "digests differ: ${here%% *}, in the guest ${there%% *}"
}

# ---- captures ----

capture() { # [FILTER...]: from now on, into $work/wire.pcap
	[ $# != 0 ] || set -- tcp and not port 2323
	host_start capture tcpdump -Z root -i tap0 -p --immediate-mode -U -B 32768 -s 0 \
		-w "$work/wire.pcap" "$@"
	await 30 grep -q listening "$work/capture.err" || fail "tcpdump does not start"
}

# Stop when the last FIN or RST of both sides can have been seen.
capture_end() {
	await 5 wire_closed || true
	kill "$pid_capture"
	wait "$pid_capture" 2>/dev/null || true
	grep -q '^0 packets dropped' "$work/capture.err" || fail "tcpdump missed packets"
}

capture_resets() { # of the transfer's port, and nothing else: it can be large
	capture tcp port "$PORT" and 'tcp[tcpflags] & tcp-rst != 0'
}

reset_by() { # ADDRESS
	await 30 wire_has "tcp.flags.reset == 1 && ip.src == $1" || fail "no RST from $1"
}

wire_has() { # DISPLAY-FILTER
	[ -n "$(wire -Y "$1")" ]
}

wire_closed() { # asked again and again, and tshark takes its time
	[ "$(tcpdump -nr "$work/wire.pcap" 'tcp[13] & 5 != 0 or (ip6[6] == 6 and ip6[53] & 5 != 0)' \
		2>/dev/null | wc -l)" -ge 2 ]
}

wire() { # TSHARK-OPTION...
	tshark -n -r "$work/wire.pcap" "$@" 2>/dev/null
}

# Every octet of every TCP stream belongs to a setup frame or an FPDU that tshark knows.
wire_covered() {
	wire -T fields -e tcp.stream -e tcp.srcport -e tcp.seq -e tcp.len \
		-e iwarp_mpa.pdlength -e iwarp_mpa.ulpdulength |
		awk -F '\t' '
		{
			way = $1 " from port " $2
			if ($4 > 0 && $3 + $4 - 1 > sent[way])
				sent[way] = $3 + $4 - 1
			if ($5 != "")
				known[way] += 20 + $5
			n = split($6, fpdu, ",")
			for (i = 1; i <= n; i++)
				known[way] += int((fpdu[i] + 2 + 3) / 4) * 4 + 4
		}
		END {
			for (way in sent)
				if (sent[way] != known[way] + 0) {
					print "stream " way ": " known[way] + 0 " of " sent[way] " octets known"
					bad = 1
				}
			exit bad
		}'
}

wire_messages() { # as rping_peer -t has them, see messages.awk
	wire -Y iwarp_ddp -T pdml -J 'tcp iwarp_mpa iwarp_ddp_rdmap' |
		awk -f "${lab%/*}/messages.awk"
}

# tshark's opcodes, STags, offsets and lengths against the list of rping_peer -t: of ours what was
# posted and answers to what was asked; of siw's the Sends received, the answers to our Reads, and
# Reads and Writes of what we advertised, everything once and in order.
as_sent() { # LIST
	local ours
	wire_messages >"$work/messages"
	ours=$(wire -Y 'ip.src == '"$HOST"' && iwarp_ddp' -T fields -e tcp.srcport | sort -u)
	awk -v ours="$ours" '
		function expect(from, what) {
			want[from, ++wanted[from]] = what
		}
		FNR == NR && $1 ~ /^(send|write|read)$/ { expect("ours", $0) }
		FNR == NR && $1 == "read" { expect("siw", "response " $2 " " $3 " " $6) }
		FNR == NR && $1 == "received" { expect("siw", "send " $2) }
		FNR == NR && $1 == "advertised" { open[$2 " " $3 " " $4] = 1 }
		FNR == NR { next }
		{
			from = $1 == ours ? "ours" : "siw"
			sub(/^[0-9]+ /, "")
		}
		from == "ours" && $1 == "response" { from = "our answers" }
		from == "ours" && $1 == "write" && $4 == 0 { next } # the nudge
		from == "siw" && $1 == "read" && ($4 " " $5 " " $6) in open {
			expect("our answers", "response " $2 " " $3 " " $6)
			n++
			next
		}
		from == "siw" && $1 == "write" && ($2 " " $3 " " $4) in open { n++; next }
		{ got[from, ++seen[from]] = $0; n++ }
		END {
			split("ours,our answers,siw", sides, ",")
			for (j = 1; side = sides[j]; j++)
				for (i = 1; i <= wanted[side] || i <= seen[side]; i++)
					if (got[side, i] != want[side, i]) {
						print side ": \047" got[side, i] "\047 instead of \047" \
						      want[side, i] "\047"
						exit 1
					}
			print n + 0
		}' "$1" "$work/messages" >"$work/as_sent" || fail "tshark: $(cat "$work/as_sent")"
}

crcs_are_zero() { # each CRC field of the capture
	wire -T fields -e iwarp_mpa.crc | tr , '\n' | sort -u | grep . >"$work/crcs"
	[ "$(cat "$work/crcs")" = 0x00000000 ] || fail "CRC fields: $(tr '\n' ' ' <"$work/crcs")"
}

# The judgement of a dissector that is not ours.  Only without markers.
judge() { # [nocrc]
	local fpdus good bad
	capture_end
	bad=$(wire_covered) || fail "tshark: $bad"
	wire -V >"$work/wire.txt"
	fpdus=$(grep -c 'ULPDU length:' "$work/wire.txt") || fail "tshark: no FPDU seen"
	good=$(grep -c 'Good CRC32' "$work/wire.txt") || true
	[ "${1-}" = nocrc ] || [ "$fpdus" = "$good" ] || fail "tshark: $good of $fpdus CRCs good"
	if grep -qE 'Malformed|Bad CRC32|Bad length' "$work/wire.txt"; then
		fail "tshark: $(grep -m 1 -E 'Malformed|Bad CRC32|Bad length' "$work/wire.txt")"
	fi
	detail "$fpdus FPDUs judged by tshark"
}
