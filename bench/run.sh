#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ours and each peer in turn, in the same minute on the same cores; what counts is the ratio
# pair by pair.  usage: run.sh BUILD OUT   (BENCH=quick: a short one; BENCH_PART=sctp_cases: that part)
set -u
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # samples.bash uses them
if [ "${BENCH:-}" = quick ]; then rounds=3 seconds=0.3 effort=3; else rounds=5 seconds=0.5 effort=6; fi
samples=$out/samples.json
work=$(mktemp -d)
uri= # of the listener
group=
# shellcheck source=/dev/null
. "$here/samples.bash"
trap '[[ $BASHPID != "$$" ]] || { stop; behind; rm -rf "$work"; }' EXIT

# Ahead of what else the machine does, if that is allowed.  Where sessions are scheduled as groups
# (sched_autogroup_enabled) the group's value counts, which is given back at the end.
ahead() {
	renice -n -10 -p $$ || return
	group=$(sed -n 's/.* nice //p' /proc/self/autogroup)
	[ -z "$group" ] || echo -15 >/proc/self/autogroup
} >/dev/null 2>&1

behind() {
	[ -z "$group" ] || echo "$group" >/proc/self/autogroup
} 2>/dev/null

# sample CASE PEER TARGET UNIT OURS THEIRS
sample() {
	echo "{\"case\":\"$1\",\"peer\":\"$2\",\"target\":$3,\"unit\":\"$4\",\"ours\":${5:-null},\"theirs\":${6:-null}}" >>"$samples"
}

missing() { # CASE PEER TARGET UNIT WHAT
	echo "{\"case\":\"$1\",\"peer\":\"$2\",\"target\":$3,\"unit\":\"$4\",\"missing\":\"$5\"}" >>"$samples"
}

# What is done, and when
done_with() {
	printf '  %4d s  %s\n' "$SECONDS" "$*" >&2
}

# Whether more pairs would say the same.  settled TARGET UNIT "OURS THEIRS"...
settled() {
	printf '%s\n' "${@:3}" | awk -v target="$1" -v unit="$2" -f "$here/settled.awk"
}

# pair CASE PEER TARGET UNIT "OURS..." "THEIRS..." [PROGRAM]: A B A B ... until it is settled; without a target, three
# times
pair() {
	local a b i need=${7:-} rounds=$rounds pairs=()
	[ "$3" != 0 ] || rounds=3
	if [ -n "$need" ] && ! command -v "$need" >/dev/null && [ ! -x "$build/$need" ]; then
		missing "$1" "$2" "$3" "$4" "$need is not there"
		return
	fi
	for ((i = 0; i < rounds; i++)); do
		a=$($5)
		b=$($6)
		sample "$1" "$2" "$3" "$4" "$a" "$b"
		pairs+=("${a:-0} ${b:-0}")
		! settled "$3" "$4" "${pairs[@]}" || break
	done
	done_with "$1 / $2"
}

# More and shorter pairs, where the machine is at times faster and at times slower for a second.
short() { # pair ...
	# shellcheck disable=SC2034 # samples.bash uses it
	local rounds=$((rounds * 2)) seconds=0.4
	"$@"
}

# Both figures of each run: octets a second, and octets for each second of processor time of both
# sides.  both CASE PEER TARGET TARGET_CPU OP SIZE OPTION...: against $strongest
both() {
	local a b i case=$1 peer=$2 target=$3 target_cpu=$4 rounds=$rounds moved=() cpu=()
	shift 4
	[ "$target" != 0 ] || rounds=3
	for ((i = 0; i < rounds; i++)); do
		read -ra a <<<"$(perf_both "$1" "$2" 16 "${@:3}")"
		read -ra b <<<"$(strongest_both)"
		sample "$case" "$peer" "$target" B/s "${a[0]:-}" "${b[0]:-}"
		sample "$case, CPU" "$peer" "$target_cpu" B/cpu "${a[1]:-}" "${b[1]:-}"
		moved+=("${a[0]:-0} ${b[0]:-0}") cpu+=("${a[1]:-0} ${b[1]:-0}")
		! settled "$target" B/s "${moved[@]}" || ! settled "$target_cpu" B/cpu "${cpu[@]}" || break
	done
	done_with "$case / $peer"
}

# Round trips while another session writes: median, slowest of a hundred, and what the Writes carry.
# beside TARGET TARGET_P99
beside() {
	local a b i case="ping during writes, tcp" peer="epoll, both" median=() slow=()
	for ((i = 0; i < rounds; i++)); do
		read -ra a <<<"$(beside_both sessions beside-tcp 2)"
		read -ra b <<<"$(beside_both peer_beside beside 65536)"
		sample "$case" "$peer" "$1" 1/s "${a[0]:-}" "${b[0]:-}"
		sample "$case, p99" "$peer" "$2" 1/s "${a[1]:-}" "${b[1]:-}"
		sample "writes during ping, tcp" "$peer" 0 B/s "${a[2]:-}" "${b[2]:-}"
		median+=("${a[0]:-0} ${b[0]:-0}") slow+=("${a[1]:-0} ${b[1]:-0}")
		! settled "$1" 1/s "${median[@]}" || ! settled "$2" 1/s "${slow[@]}" || break
	done
	done_with "$case / $peer"
}

# What both sides take of the machine: use CASE PEER "OURS..." "THEIRS..."; who polls is not switched
use() {
	local a b i
	for ((i = 0; i < 3; i++)); do
		read -ra a <<<"$($3)"
		read -ra b <<<"$($4)"
		sample "$1, CPU of 1M" "$2" 0 s/M "${a[0]:-}" "${b[0]:-}"
		[[ $1 != *waiting* ]] ||
			sample "$1, switches of 1000" "$2" 0 each "${a[1]:-}" "${b[1]:-}"
	done
	done_with "$1, what it takes / $2"
}

MB=1048576
bw=bytes_per_second
rate=ops_per_second
tcp="program peer_tcp $bw bw $MB"
# shellcheck disable=SC2034 # samples.bash uses it
strongest= # way and size of the plain program that moves most today: see find_strongest
fi="program peer_fi $bw"
native='sctp://127.0.0.1:0?encap=0'

# Records of TLS alone, on both sides, against a library's: whether ours are worth having.
record_cases() {
	local lib name
	for lib in gnutls:GnuTLS openssl:OpenSSL; do
		name=${lib#*:} lib=${lib%:*}
		pair "records of TLS, 1M" "$name" 1.5 B/s "program peer_tls $bw own:bw $MB" \
			"program peer_tls $bw $lib:bw $MB" peer_tls
		short pair "records of TLS, ping 64" "$name" 1 1/s "program peer_tls $rate own:ping 64" \
			"program peer_tls $rate $lib:ping 64" peer_tls
	done
	pair "records of TLS, 1M, by GnuTLS's AEAD" "GnuTLS" 1.2 B/s "program peer_tls $bw own-gnutls:bw $MB" \
		"program peer_tls $bw gnutls:bw $MB" peer_tls
}

tcp_cases() {
	local off="$MB 16 --crc off" ping="perf_ping 64 --crc off"
	listen tcp://127.0.0.1:0 --crc off
	pair "write 1M, crc off" "plain tcp" 0.95 B/s "perf $bw write $off" "$tcp"
	pair "write 1M, crc off" "libfabric" 1.05 B/s "perf $bw write $off" "$fi write $MB 16" peer_fi
	pair "read 1M, crc off" "plain tcp" 0.90 B/s "perf $bw read $off" "$tcp"
	pair "read 1M, crc off" "libfabric" 1.10 B/s "perf $bw read $off" "$fi read $MB 16" peer_fi
	short pair "ping 64" "plain tcp" 0.96 1/s "$ping" "program peer_tcp $rate ping 64"
	short pair "read 64" "plain ping" 0.96 1/s "program sessions $rate read 1" \
		"program peer_tcp $rate ping 64"
	short pair "write 64 and flush" "plain ping" 0.96 1/s "program sessions $rate flush 1" \
		"program peer_tcp $rate ping 64"
	short pair "ping 64, p99" "plain tcp" 0.77 1/s "perf_ping_p99 64 --crc off" "peer_ping_p99 64"
	pair "ping 64" "libfabric" 1 1/s "$ping" "program peer_fi $rate ping 64" peer_fi
	pair "ping 64" "fi_pingpong" 1 1/s "$ping" fi_ping fi_pingpong
	pair "ping 64" "ucx" 1 1/s "$ping" ucx_ping ucx_perftest
	pair "ping 64" "sockperf" 0 1/s "$ping" sock_ping sockperf
	pair "send 64, depth 128" "libfabric" 3 1/s "perf $rate send 64 128 --crc off" \
		"program peer_fi $rate send 64 128" peer_fi
	pair "send 64, depth 128" "ucx" 1 1/s "perf $rate send 64 128 --crc off" ucx_rate ucx_perftest
	pair "write 64, depth 16" "libfabric" 1 1/s "perf $rate write 64 16 --crc off" \
		"program peer_fi $rate write 64 16" peer_fi
	pair "read 64, depth 16" "libfabric" 1 1/s "perf $rate read 64 16 --crc off" \
		"program peer_fi $rate read 64 16" peer_fi
	pair "write 64, depth 16" "ucx" 0 1/s "perf $rate write 64 16 --crc off" ucx_put ucx_perftest
	pair "read 64, depth 16" "ucx" 0 1/s "perf $rate read 64 16 --crc off" ucx_get ucx_perftest
	listen tcp://127.0.0.1:0
	pair "write 1M, crc on" "plain tcp" 0.80 B/s "perf $bw write $MB 16" "$tcp"
	listen tcp://127.0.0.1:0 --markers on
	pair "write 1M, crc, markers" "plain tcp" 0.60 B/s "perf $bw write $MB 16 --markers on" "$tcp"
	stop
	short beside 0.67 0.5
	pair "set-up, tcp" "plain tcp" 0.92 1/s "program sessions $rate setup-tcp 1000000" \
		"program peer_tcp $rate setup 1"
}

# Both sides' keys: settings files $x509 and $psk
make_keys() {
	(cd "$work" && "$build/sessctl" keys ca bench && "$build/sessctl" keys host bench localhost 127.0.0.1 &&
		"$build/sessctl" keys psk bench) >/dev/null || return
	x509=$work/bench.conf psk=$work/psk.conf
	printf 'cert bench.pem\nkey bench.key\nca ca.pem\n' >"$x509"
	printf 'psk bench.psk\n' >"$psk"
}

# Secured wires: whole sessions, compared with programs of the libraries and with the plain wires.
secured_cases() {
	local lib name x509 psk kind keys
	make_keys || return
	keys=(--tls "$x509")
	listen tcp://127.0.0.1:0
	listen_too tls://127.0.0.1:0 "${keys[@]}"
	for lib in gnutls:GnuTLS openssl:OpenSSL; do
		name=${lib#*:} lib=${lib%:*}
		pair "write 1M, tls" "$name" 1.8 B/s "perf $bw write $MB 16 ${keys[*]}" "program peer_tls $bw $lib:bw $MB" \
			peer_tls
	done
	pair "write 1M, tls" "our tcp" 0.5 B/s "perf $bw write $MB 16 ${keys[*]}" "over other perf $bw write $MB 16"
	short pair "ping 64, tls" "our tcp" 0.88 1/s "perf_ping 64 ${keys[*]}" "over other perf_ping 64"
	short pair "ping 64, tls" "OpenSSL" 1.2 1/s "perf_ping 64 ${keys[*]}" "program peer_tls $rate openssl:ping 64" \
		peer_tls
	listen "$native"
	listen_too sctps://127.0.0.1:0 "${keys[@]}"
	pair "write 64K, sctps" "our sctp" 0.35 B/s "perf $bw write 65536 16 ${keys[*]}" \
		"over other perf $bw write 65536 16"
	pair "write 64K, sctps" "OpenSSL" 1 B/s "perf $bw write 65536 16 ${keys[*]}" \
		"program peer_dtls $bw bw 16340" peer_dtls
	short pair "ping 64, sctps" "our sctp" 0.88 1/s "perf_ping 64 ${keys[*]}" "over other perf_ping 64"
	stop
	for kind in x509 psk; do
		pair "set-up, tls, $kind" "GnuTLS" 0.85 1/s "secured_program ${!kind} sessions $rate setup-tcp 1000000" \
			"program peer_tls $rate gnutls:setup-$kind 1" peer_tls
	done
	pair "ping 64, tls, p99, 200 set-ups/s" "without" 0.5 1/s "shaken_ping_p99 -shaking" shaken_ping_p99
	pair "idle session, heap and keys, tls" "plain and 4 KiB" 1 B "secured_program $x509 sessions bytes_each idle 2000" \
		"plain_and_4096"
}

# In a network of its own, as path_1500.
secured_1500() {
	local x509 psk
	make_keys || return
	listen "$native"
	listen_too sctps://127.0.0.1:0 --tls "$x509"
	pair "write 64K, sctps, 1500, CPU" "our sctp" 0.75 B/cpu "perf_cpu write 65536 16 --tls $x509" \
		"over other perf_cpu write 65536 16"
	pair "write 64K, sctps, 1500" "OpenSSL" 1 B/s "perf $bw write 65536 16 --tls $x509" \
		"program peer_dtls $bw bw 1435" peer_dtls
	stop
}

# Through shared memory.  A round trip is twice one way: 0.7 us are 714 286 round trips a second.
shm_cases() {
	listen tcp://127.0.0.1:0 --crc off
	listen_too shm://@
	short pair "ping 64, shm" "0.7 us one way" 1 1/s "perf_ping 64" "echo 714286"
	pair "ping 64, shm" "ucx, posix" 0.4 1/s "perf_ping 64" ucx_shm_ping ucx_perftest
	pair "send 64, depth 128, shm" "8M/s" 1 1/s "perf $rate send 64 128" "echo 8000000"
	pair "send 64, depth 128, shm" "ucx, posix" 1 1/s "perf $rate send 64 128" ucx_shm_rate ucx_perftest
	for op in write read; do
		pair "$op 1M, shm" "our tcp" 1.2 B/s "perf $bw $op $MB 16" "over other perf $bw $op $MB 16 --crc off"
	done
	pair "write 1M, shm" "ucx, posix and cma" 0.9 B/s "perf $bw write $MB 16" ucx_shm_put ucx_perftest
	pair "read 1M, shm" "ucx, posix and cma" 0.9 B/s "perf $bw read $MB 16" ucx_shm_get ucx_perftest
	stop
	for n in 2 16 256; do
		pair "ping 64, shm, $n in turn" "ping 64, shm, 1" 0 1/s "program sessions $rate ping-shm-turns $n" \
			"program sessions $rate ping-shm-turns 1"
	done
	pair "ping 64, shm, waiting" "unix socket" 1 1/s "program sessions $rate ping-shm-waiting 1" \
		"program peer_tcp $rate ping-unix-waiting 64"
}

# Raw usrsctp carried 1/18.4 and 1/4.8 of what our backend on it did, which these targets are
# 1.7 and 2 times of.
sctp_cases() {
	listen tcp://127.0.0.1:0
	listen_too "$native"
	pair "write 64K, sctp" "usrsctp" 31 B/s "perf $bw write 65536 16" \
		"program peer_usrsctp $bw bw 65536" peer_usrsctp
	pair "write 64K, sctp" "our tcp" 0 B/s "perf $bw write 65536 16" \
		"over other perf $bw write 65536 16"
	pair "write 64K, sctp, CPU" "plain tcp" 0.77 B/cpu "perf_cpu write 65536 16" \
		"program peer_tcp bytes_per_cpu_second bw 65536"
	pair "read 64K, sctp" "write, sctp" 0.9 B/s "perf $bw read 65536 16" \
		"perf $bw write 65536 16"
	short pair "ping 64, sctp" "our tcp" 0.87 1/s "perf_ping 64" "over other perf_ping 64"
	pair "send 64, depth 128, sctp" "our tcp" 0.5 1/s "perf $rate send 64 128" \
		"over other perf $rate send 64 128"
	stop
	pair "set-up, sctp, new" "1400/s" 10 1/s "program sessions $rate setup-new 100000" "echo 1400"
	pair "set-up, sctp, shared" "new assoc." 0 1/s "program sessions $rate setup-shared 1000000" \
		"program sessions $rate setup-new 100000"
	pair "ping during writes, sctp" "1 ms" 1 1/s "program sessions $rate beside 2" "echo 1000"
}

# In a network of its own, whose loopback has a smaller packet.
path_1500() {
	listen tcp://127.0.0.1:0
	short pair "ping 64, 1500" "plain tcp" 0.91 1/s "perf_ping 64" "program peer_tcp $rate ping 64"
	pair "send 64, depth 128, 1500" "libfabric" 3 1/s "perf $rate send 64 128" \
		"program peer_fi $rate send 64 128" peer_fi
	pair "send 4K, 16 sessions, 1500" "plain, in turn" 0.95 1/s "program sessions $rate active 16" \
		"program peer_many $rate turns 16"
	listen "$native"
	pair "write 64K, sctp, 1500" "usrsctp" 9.6 B/s "perf $bw write 65536 16" \
		"program peer_usrsctp $bw bw 65536" peer_usrsctp
	pair "write 64K, sctp, 1500" "udp gso" 0.8 B/s "perf $bw write 65536 16" \
		"program peer_gso $bw bw 1472" peer_gso
	pair "write 64K, 1500, CPU" "plain tcp" 0.4 B/cpu "perf_cpu write 65536 16" \
		"program peer_tcp bytes_per_cpu_second bw 65536"
	against_strongest ", 1500" 0.9 0.85 0.91 0.77
}

# Against whatever plain program is the fastest one of the day.  The CPU of Reads has no target: who
# waits for them polls.
against_strongest() { # SUFFIX OFF ON OFF_CPU ON_CPU: suffix of the cases, targets
	# shellcheck disable=SC2034 # samples.bash uses it
	local rounds=$((rounds < 5 ? rounds : 5)) seconds=0.5 name host=${BENCH_HOST:-127.0.0.1}
	listen "tcp://$host:0" --crc off
	find_strongest
	name=$(strongest_name)
	both "write 1M$1, crc off" "$name" "$2" "$4" write "$MB" --crc off
	both "read 1M$1, crc off" "$name" "$2" 0 read "$MB" --crc off
	listen "tcp://$host:0"
	both "write 1M$1, crc on" "$name" "$3" "$5" write "$MB"
	both "read 1M$1, crc on" "$name" "$3" 0 read "$MB"
	stop
}

# Between two network namespaces, this one and a second one: packets of 1500 octets, which the kernel
# takes together, and two devices.
path_veth() {
	local i
	unshare -n sleep 600 >/dev/null 2>&1 &
	there=$!
	trap '[[ $BASHPID != "$$" ]] || { kill $there; stop; rm -rf "$work"; }' EXIT
	for ((i = 0; i < 100; i++)); do
		[ "$(readlink /proc/$there/ns/net)" = "$(readlink /proc/self/ns/net)" ] || break
		sleep 0.05
	done
	inside="nsenter -t $there -n"
	ip link add near type veth peer name far netns "/proc/$there/ns/net" &&
		ip addr add 10.9.0.1/24 dev near && ip link set near up &&
		$inside ip addr add 10.9.0.2/24 dev far && $inside ip link set far up || return
	export BENCH_SERVE_NS=/proc/$there/ns/net BENCH_HOST=10.9.0.2
	against_strongest ", veth" 0 0 0 0
	listen "tcp://$BENCH_HOST:0"
	pair "send 64, depth 128, veth" "libfabric" 3 1/s "perf $rate send 64 128" \
		"program peer_fi $rate send 64 128" peer_fi
	pair "send 4K, 16 sessions, veth" "plain, in turn" 0.95 1/s "program sessions $rate active 16" \
		"program peer_many $rate turns 16"
	short pair "ping 64, veth" "plain tcp" 0.91 1/s "perf_ping 64" "program peer_tcp $rate ping 64"
	listen "sctp://$BENCH_HOST:0?encap=0"
	pair "write 64K, sctp, veth" "plain tcp" 0 B/s "perf $bw write 65536 16" \
		"program peer_tcp $bw bw 65536"
	stop
}

# IP packets through two bridges of IPoIB on a veth pair, compared with the pair alone
bridge_cases() {
	local label got pair=''
	SESSCTL=$build/sessctl bash "$here/../tests/netns/bench.sh" 3 rc 2>/dev/null >"$work/bridge" || {
		missing "ipoib bridge, 65520" "the veth pair" 0.7 B/s "no network namespace, TUN or iperf3"
		return
	}
	while IFS='|' read -r _ label got _; do
		got=$(awk -v g="$got" 'BEGIN { print g * 125000000 }')
		case $label in
		*"veth pair alone"*) pair=$got ;;
		*"connections, MTU 65520"*) sample "ipoib bridge, 65520" "the veth pair" 0.7 B/s "$got" "$pair" ;;
		*"connections, MTU 2044"*) sample "ipoib bridge, 2044" "the veth pair" 0.3 B/s "$got" "$pair" ;;
		esac
	done <"$work/bridge"
	done_with "ipoib bridge / the veth pair"
}

# A thread for each context, compared with one thread; what counts is how it grows with the second
thread_cases() {
	# shellcheck disable=SC2034 # samples.bash uses it
	local rounds=5 seconds=0.6
	pair "2 contexts, 2 threads, polled" "one" 1 1/s "program contexts $rate polled 2" \
		"program contexts $rate polled 1"
	pair "2 contexts, 2 threads, polled" "plain, 2 threads" 0 1/s "program contexts $rate polled 2" \
		"program contexts $rate plain-polled 2"
	pair "2 contexts, 2 threads, waiting" "one" 1.2 1/s "program contexts $rate waiting 2" \
		"program contexts $rate waiting 1"
	pair "2 contexts, 2 threads, waiting" "plain, 2 threads" 0 1/s "program contexts $rate waiting 2" \
		"program contexts $rate plain-waiting 2"
}

strongest_cases() {
	against_strongest "" 1 0.9 0 0
}

# Sessions on one association, associations; the best of a round is what one of them made.  Who is behind
# for a second is ahead in the next one: shares are those of two seconds.
many_sctp() {
	local r c list=("active-shared 1" "active-shared 16" "active-shared 256" "active-assoc 256")
	local rounds=3 seconds=$seconds
	local -A got
	pair "idle association, heap" "5 KiB" 1 B "program sessions bytes_each idle-assoc 1000" \
		"echo 5120"
	pair "ping 64 of 10000, sctp" "ping 64 of 1" 0.9 1/s "program sessions $rate ping-assoc 10000" \
		"program sessions $rate ping-assoc 1"
	seconds=2
	for ((r = 0; r < rounds; r++)); do
		got=([best]=0)
		for c in "${list[@]}"; do
			timeout 90 "$build/sessions" "${c% *}" "${c#* }" "$seconds" >"$work/active" 2>/dev/null
			got[$c]=$(value $rate <"$work/active")
			got[best]=$(awk -v a="${got[best]}" -v b="${got[$c]:-0}" 'BEGIN { print (a + 0 > b + 0 ? a : b) }')
			sample "least share, $(name_of "$c")" "equal share" 0.8 1 \
				"$(value least_share <"$work/active")" 1
		done
		for c in "${list[@]}"; do
			sample "send 4K, $(name_of "$c")" "best of them" 0.7 1/s "${got[$c]}" "${got[best]}"
		done
	done
	done_with "active sessions over sctp"
}

name_of() {
	case $1 in
	active-shared*) echo "${1#* } of one assoc." ;;
	*) echo "${1#* } assoc." ;;
	esac
}

many_cases() {
	local n r list=(2 16 256 4096)
	local -A got of_turns=([2]=0 [16]=0.95 [256]=0.9 [4096]=0.85)
	local -A of_placed=([2]=0 [16]=0.95 [256]=0.92 [4096]=0.92)
	local rounds=3
	pair "idle session, heap" "4 KiB" 1 B "program sessions bytes_each idle 9500" "echo 4096"
	pair "ping 64 of 9500" "ping 64 of 1" 0.9 1/s "program sessions $rate ping 9500" \
		"program sessions $rate ping 1"
	for ((r = 0; r < rounds; r++)); do
		got=([best]=0)
		for n in "${list[@]}"; do
			got[$n]=$(program sessions $rate active "$n")
			sample "send 4K, $n sessions" "plain tcp" 0 1/s "${got[$n]}" \
				"$(program peer_many $rate active "$n")"
			sample "send 4K, $n sessions" "plain, in turn" "${of_turns[$n]}" 1/s "${got[$n]}" \
				"$(program peer_many $rate turns "$n")"
			sample "send 4K, $n sessions" "plain, placed" "${of_placed[$n]}" 1/s "${got[$n]}" \
				"$(program peer_many $rate placed "$n")"
			[ "$n" = 4096 ] || sample "send 4K, $n sessions" "libfabric" 1 1/s "${got[$n]}" \
				"$(program peer_fi_many $rate send "$n")"
			got[best]=$(awk -v a="${got[best]}" -v b="${got[$n]:-0}" 'BEGIN { print (a + 0 > b + 0 ? a : b) }')
		done
		for n in "${list[@]}"; do
			sample "send 4K, $n sessions" "best of them" 0.7 1/s "${got[$n]}" "${got[best]}"
		done
	done
	done_with "active sessions"
}

# A file in memory, there and back, and the same octets without file and digest.
file_cases() {
	# shellcheck disable=SC2034 # samples.bash uses it
	local rounds=3 seconds=0.5 files digest target plain
	if ! files=$(mktemp -d /dev/shm/bench-XXXXXX 2>/dev/null); then
		missing "put 256M, sha256" "write 1M" 0.35 B/s "no /dev/shm"
		return
	fi
	head -c $((256 * MB)) /dev/urandom >"$files/file"
	mkdir "$files/served"
	listen tcp://127.0.0.1:0 --dir "$files/served"
	for digest in sha256 crc32c; do
		[ $digest = sha256 ] && target=0.35 plain=sha256 || target=0.8 plain=none
		pair "put 256M, $digest" "write 1M" $target B/s "put_file $files $digest" \
			"perf $bw write $MB 16"
		pair "get 256M, $digest" "read 1M" $target B/s "get_file $files $digest" \
			"perf $bw read $MB 16"
		pair "put 256M, $digest" "plain, $plain" 0 B/s "put_file $files $digest" \
			"program peer_file $bw $plain $((64 * MB))"
		pair "get 256M, $digest" "plain, $plain" 0 B/s "get_file $files $digest" \
			"program peer_file $bw $plain $((64 * MB))"
	done
	stop
	rm -rf "$files"
}

use_cases() {
	pair "ping 64, waiting" "plain, waiting" 0 1/s "program sessions $rate ping-waiting 1" \
		"program peer_tcp $rate ping-waiting 64"
	use "ping 64, waiting" "plain, waiting" "used sessions ping-waiting 1" "used peer_tcp ping-waiting 64"
	use "send 4K, 16 sessions" "plain, in turn" "used sessions active 16" "used peer_many turns 16"
	use "send 4K, 16 sessions" "libfabric" "used sessions active 16" "used peer_fi_many send 16"
	use "2 contexts, 2 threads, waiting" "plain, 2 threads" "used contexts waiting 2" \
		"used contexts plain-waiting 2"
}

machine_cases() {
	local n
	for n in 64 4096 65536; do
		pair "crc32c $n" "isa-l" 0.9 B/s "program bench-speed $bw crc $n" \
			"program bench-speed $bw isal $n"
	done
	pair "crc32c 65536" "memcpy" 0 B/s "program bench-speed $bw crc 65536" \
		"program bench-speed $bw memcpy 65536"
	pair "sse code behind a crc" "sse code alone" 0.95 B/s "program bench-speed $bw behind 65536" \
		"program bench-speed $bw sse 65536"
}

verbs_cases() {
	local waits=0.8
	pair "ib_write_bw 1M, drop-in" "plain tcp" 0 B/s verbs_bw "$tcp" ib_write_bw
	pair "ib_send_lat 64, drop-in" "plain tcp" 0.94 1/s "verbs_ping ib_send_lat" \
		"program peer_tcp $rate ping 64" ib_send_lat
	pair "ib_read_lat 64, drop-in" "plain tcp" 0.94 1/s "verbs_read_ping" \
		"program peer_tcp $rate ping 64" ib_read_lat
	# both programs watch memory, while their libraries' threads move the data: four threads
	[ "$(nproc)" -ge 4 ] || waits=0
	pair "ib_write_lat 64, drop-in" "plain tcp" $waits 1/s "verbs_ping ib_write_lat" \
		"program peer_tcp $rate ping 64" ib_write_lat
	pair "ib_write_lat 64, any core" "plain tcp" $waits 1/s "unpinned verbs_ping ib_write_lat" \
		"program peer_tcp $rate ping 64" ib_write_lat
	pair "ib_send_lat 64, drop-in, shm" "1.5 us one way" 1 1/s "near verbs_ping ib_send_lat" "echo 333333" ib_send_lat
	pair "ib_send_lat 64, drop-in, shm" "drop-in, tcp" 1 1/s "near verbs_ping ib_send_lat" \
		"verbs_ping ib_send_lat" ib_send_lat
	pair "ib_write_bw 1M, drop-in, shm" "drop-in, tcp" 1.2 B/s "near verbs_bw" verbs_bw ib_write_bw
	listen tcp://127.0.0.1:0
	pair "ib_send_bw 64, drop-in" "native API" 0.5 1/s "verbs_rate 1" \
		"perf $rate send 64 128" ib_send_bw
	pair "ib_send_bw 64 -l 16, drop-in" "native API" 0.85 1/s "verbs_rate 16" \
		"perf $rate send 64 128" ib_send_bw
	stop
}

# Against size, for the plots; CRC on
curves() {
	local op sizes=64,256,1K,4K,16K,64K,256K,1M
	: >"$out/sizes.json"
	for op in write read send ping; do
		listen tcp://127.0.0.1:0
		timeout 60 taskset -c 1 "$build/sessctl" perf --json --op "$op" --size "$sizes" \
			--seconds 0.3 "$uri" 2>/dev/null | grep '"event":"perf"' >>"$out/sizes.json"
	done
	stop
}

# Against the number of objects, for the plot: nanoseconds of an operation
growth() {
	local n kind
	: >"$out/growth.json"
	for n in 1 10 100 1000 10000 100000; do
		for kind in register write endpoint; do
			timeout 60 "$build/growth" "$kind" "$n" 0.2 >>"$out/growth.json"
		done
		[ "$n" = 100000 ] || for kind in ping ping-assoc; do
			timeout 60 "$build/sessions" "$kind" "$((n < 9500 ? n : 9500))" 0.3 2>/dev/null |
				jq -c '{ op, size, ns_each: (1e9 / .ops_per_second) }' >>"$out/growth.json"
		done
	done
}

# A part in a network of its own
apart() { # PART COMMAND
	# shellcheck disable=SC2016 # the inner shell expands them
	BENCH_PART=$1 unshare -rn bash -c "$2"' && exec "$0" "$@"' "$here/run.sh" "$build" "$out"
}

# One part alone, added to the samples
if [ -n "${BENCH_PART:-}" ]; then
	"$BENCH_PART"
	exit
fi
ahead || echo "  other programs run here, and this one may not go ahead of them" >&2
: >"$samples"
tcp_cases
shm_cases
record_cases
secured_cases
strongest_cases
sctp_cases
if unshare -rn true 2>/dev/null; then
	apart path_1500 'ip link set lo mtu 1500 && ip link set lo up'
	apart secured_1500 'ip link set lo mtu 1500 && ip link set lo up'
	apart path_veth 'ip link set lo up'
else
	missing "write 64K, sctp, 1500" "usrsctp" 9.6 B/s "no network namespace (unshare -rn)"
	missing "write 1M, 1500, crc off" "plain tcp" 0.9 B/s "no network namespace (unshare -rn)"
	missing "write 1M, veth, crc off" "plain tcp" 0 B/s "no network namespace (unshare -rn)"
fi
many_cases
many_sctp
"$here/paths.sh" "$build" "$out"
bridge_cases
thread_cases
use_cases
file_cases
machine_cases
verbs_cases
curves
growth
echo "$((SECONDS / 60)) minutes $((SECONDS % 60)) seconds" >"$out/took"
"$here/report.sh" "$out"
