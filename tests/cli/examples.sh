#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of examples/ against each other, and the interop guest's siw_peer on the drop-in
# against them: what each end says it moved, and that their checks can fail.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
: "${BUILD:?the release build}"
BUILD=$(realpath "$BUILD")
. "$(dirname "$0")/lib.bash"
built=$(dirname "$SESSCTL")
server=

# serve PROGRAM OPTION...: an example listens; sets $uri
serve() {
	local SESSCTL=$built/example-$1
	shift
	start_job serve.fifo serve.err "$@"
	server=$pid server_fd=$fd uri=${line#listening on }
	why="no listener: $(cat serve.err)"
	[ "$uri" != "$line" ]
}

# served STATUS: it has ended by itself; its output in served
served() {
	local status
	end_job "$server" "$server_fd"
	status=$?
	server=
	mv rest served
	why="server's status $status, not $1: $(tail -n 2 serve.err)"
	[ "$status" -eq "$1" ]
}

# call STATUS PROGRAM OPTION...
call() {
	local want=$1 SESSCTL=$built/example-$2
	shift 2
	run "$want" "$@" && return
	[ -z "$server" ] || kill "$server"
	return 1
}

# guest_peer STATUS OPTION...: siw_peer, with our library in place of the system's
guest_peer() {
	local want=$1 SESSCTL=$BUILD/sessctl
	shift
	run "$want" run -- "$BUILD/verbs-siw_peer" "$@" && return
	[ -z "$server" ] || kill "$server"
	return 1
}

port_of() { # URI
	local at=${1%%\?*}
	echo "${at##*:}"
}

# ---- rping_peer ----

# lists_agree PINGS: what one end lists as advertised, the other read and wrote, in that order; what
# one sent, the other received.
lists_agree() {
	sed -n 's/^advertised //p' client.list >advertised
	sed -nE 's/^read [0-9a-f]+ [0-9a-f]+ //p; s/^write //p' server.list >used
	why="advertised $(tr '\n' ' ' <advertised), used $(tr '\n' ' ' <used)"
	[ "$(wc -l <advertised)" -eq $((2 * $1)) ] && cmp -s advertised used || return
	local way
	for way in "client server" "server client"; do
		sed -n 's/^send //p' "${way% *}.list" >sent
		sed -n 's/^received //p' "${way#* }.list" >received
		why="$way: $(wc -l <sent) sent, $(wc -l <received) received"
		[ "$(wc -l <sent)" -eq $((2 * $1)) ] && cmp -s sent received || return
	done
}

rping() { # WIRE OCTETS PINGS OPTION...
	local wire=$1 size=$2 count=$3
	shift 3
	serve rping_peer -s "$(uri_of "$wire")" -t server.list -v &&
		call 0 rping_peer -c "$uri" -S "$size" -C "$count" -t client.list -v "$@" &&
		served 0 && says out "$count pings of $size octets" &&
		says served "$count pings served" || return
	# both ends show each ping's beginning
	grep '^ping ' out >pings_here
	grep '^ping ' served >pings_there
	why="pings: $(head -n 1 pings_here pings_there)"
	cmp -s pings_here pings_there && says out "ping 0: $size octets, rdma-ping-0: AB" &&
		lists_agree "$count"
}

# Somebody else may have made a link of that name.
links_kept() {
	echo mine >target
	ln -sf target a_link
	call 2 rping_peer -c tcp://127.0.0.1:1 -t a_link && says err "a_link" && says target mine || return
	call 1 rping_peer -c tcp://127.0.0.1:1 -t /dev/stdout
}

# ---- rdma_peer and many_peer ----

# The digest (FNV-1a) of the first octets of rdma_peer's sequence; the shell's numbers have 64 bits.
digest_of() { # OCTETS
	local i state=3 h=$((0xcbf29ce484222325))
	for ((i = 0; i < $1; i++)); do
		state=$((state * 6364136223846793005 + 1442695040888963407))
		h=$(((h ^ (state >> 33 & 255)) * 0x100000001b3))
	done
	printf 'digest %016x\n' "$h"
}

rdma() { # WIRE OCTETS OPTION...
	local wire=$1 octets=$2 want
	shift 2
	want=$(digest_of "$octets")
	serve rdma_peer -s "$(uri_of "$wire")" -b "$octets" "$@" &&
		call 0 rdma_peer -c "$uri" "$@" && served 0 &&
		says out "$want" && says served "$want"
}

bulk() { # WIRE
	serve rdma_peer -s "$(uri_of "$1")" -b 1000000 && call 0 rdma_peer -c "$uri" && served 0 ||
		return
	why="digests: $(cat out), $(cat served)"
	says out digest && [ "$(cat out)" = "$(tail -n 1 served)" ]
}

# Who calls while another one is served waits for its turn.
turns() { # WIRE CLIENTS
	local i clients=() bad=0
	serve rdma_peer -s "$(uri_of "$1")" -b 3000 -n "$2" || return
	for ((i = 0; i < $2; i++)); do
		timeout "$PATIENCE" "$built/example-rdma_peer" -c "$uri" >"client.$i" 2>&1 &
		clients+=($!)
	done
	for i in "${clients[@]}"; do
		wait "$i" || bad=$((bad + 1))
	done
	why="$bad of $2 clients failed: $(tail -q -n 1 client.* | grep -v digest | head -n 1)"
	if [ "$bad" != 0 ]; then
		kill "$server" 2>/dev/null
		return 1
	fi
	served 0 || return
	why="digests: $(cat client.* served | sort | uniq -c | tr '\n' ' ')"
	[ "$(cat client.* served | grep -cx "$(digest_of 3000)")" -eq $((2 * $2)) ]
	local res=$?
	rm client.*
	return "$res"
}

rejects() { # WIRE
	serve rdma_peer -s "$(uri_of "$1")" -r && call 3 rdma_peer -c "$uri" && served 0 || return
	why="client: $(cat -A out)"
	grep -qa "^rejected: not today" out
}

# The server has a region larger than what a socket takes in one call, so the Write is cut short.
aborts() { # WIRE
	serve rdma_peer -s "$(uri_of "$1")" -b 64000000 && call 0 rdma_peer -a -c "$uri" && served 1 ||
		return
	why="server printed a digest"
	! grep -q digest served && says serve.err "rdma_peer: "
}

many() { # WIRE SESSIONS
	serve many_peer -s "$(uri_of "$1")" -n "$2" -b 5000 && call 0 many_peer -c "$uri" -n "$2" &&
		served 0 && says out "$2 sessions, $2 at once" &&
		says served "$2 sessions, $2 at once"
}

many_and_rdma() { # WIRE
	local want
	want=$(digest_of 700)
	serve many_peer -s "$(uri_of "$1")" -b 700 && call 0 rdma_peer -c "$uri" && served 0 &&
		says out "$want" && says served "1 sessions, 1 at once" || return
	serve rdma_peer -s "$(uri_of "$1")" -b 3000 && call 0 many_peer -c "$uri" && served 0 &&
		says out "1 sessions, 1 at once" && says served "digest"
}

# ---- what they refuse ----

# rping's client has no private data, sessctl's listener has none in its answer.
strangers() {
	serve rdma_peer -s tcp://127.0.0.1:0 && call 1 rping_peer -c "$uri" && served 1 &&
		says serve.err "private data" || return
	serve many_peer -s tcp://127.0.0.1:0 && call 1 rping_peer -c "$uri" && served 1 &&
		says serve.err "private data" || return
	listen tcp://127.0.0.1:0
	call 1 rdma_peer -c "$uri" && says err "server's advert" &&
		call 1 many_peer -c "$uri" && says err "server's advert"
	local res=$?
	stop_listener
	return "$res"
}

usage() {
	local program
	for program in rping_peer rdma_peer many_peer; do
		call 2 "$program" && says err "usage: $program -s URI" &&
			call 2 "$program" -s tcp://127.0.0.1:0 -c tcp://127.0.0.1:1 &&
			call 2 "$program" -c tcp://127.0.0.1:1 -Z || return
	done
	call 2 rping_peer -c tcp://127.0.0.1:1 -S 25 && call 2 rping_peer -c tcp://127.0.0.1:1 -S 65536 &&
		call 2 rping_peer -c tcp://127.0.0.1:1 -R atomic &&
		call 2 many_peer -s tcp://127.0.0.1:0 -b 65537
}

# ---- the guest's program ----

guest_calls() {
	local want
	want=$(digest_of 3000)
	serve rdma_peer -s tcp://127.0.0.1:0 -b 3000 &&
		guest_peer 0 -c 127.0.0.1 "$(port_of "$uri")" && served 0 &&
		says out "$want" && says served "$want"
}

guest_rejected() {
	serve rdma_peer -s tcp://127.0.0.1:0 -r &&
		guest_peer 3 -c 127.0.0.1 "$(port_of "$uri")" && served 0 || return
	why="client: $(cat -A out)"
	grep -qa "^rejected: not today" out
}

# Connected, it does nothing as long as the file is there.
guest_waits() {
	local SESSCTL=$BUILD/sessctl client client_fd
	serve rdma_peer -s tcp://127.0.0.1:0 -b 3000 || return
	touch hold
	start_job guest.fifo guest.err run -- "$BUILD/verbs-siw_peer" -c 127.0.0.1 -w hold \
		"$(port_of "$uri")"
	client=$pid client_fd=$fd why="said '$line': $(cat guest.err)"
	[ "$line" = connected ] || return
	why="did not wait"
	! read -r -t 0.3 -u "$client_fd" line || return
	rm hold
	end_job "$client" "$client_fd"
	status=$?
	why="client's status $status: $(cat guest.err)"
	[ "$status" -eq 0 ] && says rest "$(digest_of 3000)" && served 0 &&
		says served "$(digest_of 3000)"
}

for wire in $WIRES; do
	test_case "examples-rping-$wire-26" rping "$wire" 26 1
	test_case "examples-rping-$wire-1000" rping "$wire" 1000 50
	test_case "examples-rping-$wire-65535" rping "$wire" 65535 3
	for type in send write read; do
		test_case "examples-rping-$wire-p2p-$type" rping "$wire" 64 2 -R "$type"
	done
	test_case "examples-rdma-$wire-1" rdma "$wire" 1
	test_case "examples-rdma-$wire-2000" rdma "$wire" 2000 -i 1 -o 1
	test_case "examples-rdma-$wire-bulk" bulk "$wire"
	test_case "examples-rdma-$wire-turns" turns "$wire" 8
	test_case "examples-rdma-$wire-reject" rejects "$wire"
	test_case "examples-rdma-$wire-abort" aborts "$wire"
	test_case "examples-many-$wire-1" many "$wire" 1
	test_case "examples-many-$wire-20" many "$wire" 20
	test_case "examples-many-$wire-rdma" many_and_rdma "$wire"
done
test_case "contact 7: rping_peer -t follows no link" links_kept
test_case "examples-rping-no-crc" rping tcp 1000 2 -N
test_case "examples-rdma-no-crc" rdma tcp 1000 -N
test_case "examples-strangers" strangers
test_case "examples-usage" usage
if [ -x "$BUILD/verbs-siw_peer" ]; then
	test_case "examples-guest-peer-calls" guest_calls
	test_case "examples-guest-peer-rejected" guest_rejected
	test_case "examples-guest-peer-waits" guest_waits
else
	not_ok "examples-guest-peer" "no $BUILD/verbs-siw_peer, try: make verbs-programs"
fi
finish
