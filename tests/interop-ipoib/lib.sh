# shellcheck shell=bash disable=SC2016,SC2034,SC2154 # shared with the cases and with tests/interop/lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# For the cases, after tests/interop/lib.sh: nodes of the subnet.
#
# Node N has 10.77.0.N on the wire, LID N, GID fe80::N (Linux: from its MAC), 10.88.0.N and
# fd88::N on its IPoIB interface.  1 is ours and has the subnet administration, 2 is Linux, 3 and 4
# are others of ours, 5 to 9 are more guests with Linux.

# ---- every case has a capture of the whole wire, and tshark finds nothing wrong in it ----

bad_of='' # what else it has to be, if some of it is wrong on purpose

# tshark does not put messages together that came in several packets, but takes each for a whole one; of
# these it says nothing here.  Nor of TCP, whose octets are not ours.
captured() {
	local parts='infiniband.bth.opcode in {0, 1, 2, 32, 33, 34}'
	[ -n "${pid_wire-}" ] || return 0
	kill "$pid_wire"
	host_wait wire || true
	tshark -r "$work/wire.pcap" --disable-protocol tcp \
		-Y "(_ws.malformed || _ws.expert.severity == error) && !($parts) $bad_of" \
		>"$work/wire.bad" 2>"$work/wire.log" || fail "tshark: $(tail -n 1 "$work/wire.log")"
	[ ! -s "$work/wire.bad" ] || fail "tshark finds an error: $(head -n 1 "$work/wire.bad")"
	[ "$(stat -c %s "$work/wire.pcap")" -gt 1000 ] || fail "nothing was captured"
}

if command -v tshark >/dev/null && command -v tcpdump >/dev/null; then
	host_start wire tcpdump -U -B 16384 -i tap0 -w "$work/wire.pcap" udp port 4791
	await 10 grep -q 'listening on' "$work/wire.err" || fail "no capture"
	judge_at_end=captured
fi

# ---- nodes ----

# on N COMMAND...: in the network that node N of ours is in
on() {
	local p=pid_net$1
	shift
	if [ -n "${!p-}" ]; then
		set -- nsenter -t "${!p}" -n -- "$@"
	fi
	host "$@"
}

# up N [OPTION...]: a bridge of ours on ibN
up() {
	local n=$1 p=pid_net$1 where=()
	shift
	if [ -n "${!p-}" ]; then
		where=(nsenter -t "${!p}" -n --)
	elif [ "$n" != 1 ]; then
		host ip addr replace "10.77.0.$n/24" dev tap0
	fi
	host_start "node$n" "${where[@]}" "$sessctl" ipoib bridge --json --tun "ib$n" --port ib \
		--udp "10.77.0.$n:4791" --sa 10.77.0.1 --gid "fe80::$n" --ip "10.88.0.$n/24" \
		--ip "fd88::$n/64" "$@"
	await 10 grep -q '"bridging"' "$work/node$n.out" || fail "bridge $n does not start"
	await 10 state_is "$n" up || fail "bridge $n does not join"
}

status() { # N: as JSON
	on "$1" "$sessctl" ipoib bridge status --json --tun "ib$1"
}

state_is() { # N STATE
	status "$1" | grep -q "\"state\":\"$2\""
}

# count N NAME: one of its counters
count() {
	status "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"
}

# Connections of N that are up.
connections() { # N
	status "$1" | grep -o '"peer":"[^}]*"up":true' | wc -l
}

down() { # N: its status is that of the bridge
	on "$1" "$sessctl" ipoib bridge down --tun "ib$1" && host_wait "node$1"
}

killed() { # N: immediately, without a word to anybody
	local p=pid_node$1
	kill -KILL "${!p}" || fail "bridge $1 is not killed"
	! wait "${!p}" 2>/dev/null || fail "bridge $1 ended well"
}

# With the status that a bridge has if all is well.
ended_well() { # N
	down "$1" >/dev/null || fail "bridge $1 ends with an error: $(tail -n 1 "$work/node$1.err")"
}

at() { # N 'COMMAND': in guest N
	LAB_GUEST=10.77.0.$1 guest "$2"
}

# linux_up [connected|datagram [N]]: ib0 of guest N, joined
linux_up() {
	local n=${2-2}
	at "$n" "modprobe ib_ipoib && echo ${1-connected} >/sys/class/net/ib0/mode &&
		{ [ ${1-connected} = datagram ] || ip link set ib0 mtu 65520; } &&
		ip addr add 10.88.0.$n/24 dev ib0 && ip -6 addr add fd88::$n/64 dev ib0 nodad &&
		ip link set ib0 up && for ((i = 0; i < 200; i++)); do
			[ \"\$(cat /sys/class/net/ib0/carrier 2>/dev/null)\" = 1 ] && exit 0; sleep 0.05; done; exit 1" ||
		fail "Linux does not join as $n"
}

is_guest() { # N
	[[ $1 == [25-9] ]]
}

# reach N ADDRESS OCTETS: one echo; what comes first may be lost.  Sets reached_ms.
reach() {
	local start i
	start=$(date +%s%N)
	for ((i = 0; i < 40; i++)); do
		if is_guest "$1"; then
			at "$1" "ping -q -c 1 -s $3 -W 1 $2" >/dev/null && break
		else
			on "$1" ping -q -c 1 -s "$3" -W 0.3 -I "ib$1" "$2" >/dev/null && break
		fi
	done
	reached_ms=$((($(date +%s%N) - start) / 1000000))
	[ "$i" -lt 40 ] || fail "no echo from $2 in $reached_ms ms"
}

# pings N ADDRESS COUNT OCTETS: from N; all have to come back.  One by one: behind the last of several,
# ping waits for two round trips only, and a guest that is emulated may take longer for one of them.
pings() {
	local i
	if is_guest "$1"; then
		at "$1" "for ((i = 1; i <= $3; i++)); do ping -q -c 1 -s $4 -W 3 $2 >/tmp/ping || exit; done" ||
			{ echo "an echo of $3 with $4 octets is not answered within 3 s" && return 1; }
		return
	fi
	for ((i = 1; i <= $3; i++)); do
		on "$1" ping -q -c 1 -s "$4" -W 3 -I "ib$1" "$2" >/dev/null || {
			echo "echo $i of $3 with $4 octets is not answered within 3 s"
			return 1
		}
	done
}

# One connection in each direction with Linux: it sends only on those that it has asked for.
both_connected() { # N
	await 10 eval '[ "$(connections '"$1"')" = 2 ]' || fail "$(connections "$1") connections, not 2"
}

# Nothing that was received was wrong.
clean() { # N
	local name
	for name in wire_icrc wire_bad rx_pkey rx_qkey qp_bad sac_bad sa_bad mad_bad; do
		[ "$(count "$1" "$name")" = 0 ] || fail "$name is $(count "$1" "$name")"
	done
}

# What the suite sends is wrong on purpose.
conforming() {
	bad_of='&& ip.src == 10.77.0.2'
}

# What is known of Linux, and of the driver of another kernel: a file that is named after its suite.
known_of_linux() {
	local more=$INTEROP_CASES/../known-${LAB_SUITE-} base=$INTEROP_CASES/../../../src/conform/profile
	[ -e "$more" ] || { echo linux-ib_ipoib && return; }
	sed -n 's/^\t"\(.*\)\\n".*/\1/p' "$base/conform_linux_ipoib.h" >"$work/known"
	[ -s "$work/known" ] || fail "no built-in profile in $base/conform_linux_ipoib.h"
	cat "$more" >>"$work/known"
	echo "$work/known"
}

# conform [OPTION...]: the suite as the subnet's administration against Linux; its cases into
# $work/cases, which run.sh shows and counts.
conform() {
	local status=0
	conforming
	host_start conform "$sessctl" ipoib conform --udp 10.77.0.1:4791 --gid fe80::1 \
		--ip 10.88.0.100 --ip6 fd88::2 --timeout 20 --profile "$(known_of_linux)" --json \
		--pcap "$work/conform.pcap" --junit "$work/conform.xml" "$@" 10.88.0.2
	linux_up connected
	host_wait conform || status=$?
	[ ! -d "${CONFORM_KEEP-}" ] || cp "$work"/conform.* "$CONFORM_KEEP/"
	sed -nE 's/.*"case":"([^"]*)".*"result":"(pass|fail|known)".*/\2 \1/p' "$work/conform.out" |
		while read -r result name; do
			echo "$result $name $(sed -nE "/\"case\":\"$name\"/s/.*\"why\":\"([^\"]*)\".*/\1/p" \
				"$work/conform.out")"
		done >"$work/cases"
	grep -q '"event":"summary"' "$work/conform.out" ||
		fail "it did not reach its end: $(tail -n 1 "$work/conform.err")"
	detail "$(sed -nE 's/.*"event":"summary","transport":"ib",(.*)}/\1/p' "$work/conform.out" | tr -d '"')"
	[ "$status" = 0 ] || fail "status $status: $(cat "$work/detail")"
}

# ---- --port verbs, in the guest ----

# sessctl there, with the libraries that it loads
verbs_prepare() {
	guest_install "$sessctl"
	guest 'modprobe tun && [ -c /dev/infiniband/umad0 ] && [ -c /dev/infiniband/uverbs0 ]' ||
		fail "the guest has no devices of InfiniBand"
}

# verbs_up [OPTION...]: the guest's soft InfiniBand device as node 2
verbs_up() {
	verbs_prepare
	guest_start verbs "sessctl ipoib bridge --json --tun ib0 --port verbs --ip 10.88.0.2/24 \
		--ip fd88::2/64 $*"
	guest "for ((i = 0; i < 200; i++)); do
		sessctl ipoib bridge status --json --tun ib0 2>/dev/null | grep -q '\"state\":\"up\"' && exit 0
		[ -s /tmp/verbs.rc ] && break; sleep 0.1; done; exit 1" ||
		fail "the bridge in the guest does not join: $(guest_output verbs | tail -n 1)"
}

verbs_status() {
	guest "sessctl ipoib bridge status --json --tun ib0"
}

verbs_count() { # NAME
	verbs_status | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}

verbs_connections() {
	verbs_status | grep -o '"peer":"[^}]*"up":true' | wc -l
}

verbs_clean() {
	local name status
	status=$(verbs_status)
	for name in rx_bad ud_failed mad_bad sac_bad qp_failed; do
		grep -q "\"$name\":0[,}]" <<<"$status" || fail "$name of --port verbs: $status"
	done
}

verbs_down() {
	guest "sessctl ipoib bridge down --tun ib0" >/dev/null || fail "there is no bridge in the guest"
	guest_wait verbs 20 ||
		fail "the bridge in the guest ends with an error: $(guest_output verbs | tail -n 1)"
}

# ---- more guests: nodes 5 to 9, on a bridge with the first ----

# They end with the case, and the network is that of one guest again.
more_guests() { # N...
	local n
	undo_at_end=one_guest
	host bash -c 'ip link add br0 type bridge && ip link set br0 mtu 4200 up &&
		ip addr flush dev tap0 && ip link set tap0 master br0 &&
		ip addr add 10.77.0.1/24 dev br0' || skip "no bridge on this host"
	for n; do
		start_guest "$n"
	done
	for n; do
		await 120 grep -aq 'LAB READY' "$work/guest$n/console" || fail "guest $n does not come up"
	done
}

start_guest() { # N
	local n=$1 dir=$work/guest$1 cache=${LAB_CACHE:-${lab%/*}/../interop/cache}${LAB_SUITE:+/suite-$LAB_SUITE} off
	mkdir "$dir"
	host bash -c "ip tuntap add dev tap$n mode tap && ip link set tap$n mtu 4200 master br0 up"
	off=csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off
	off+=,guest_ufo=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off
	host_start "guest$n" qemu-system-x86_64 -accel tcg,thread=multi,tb-size=128 -cpu max -smp 1 -m 256 \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$cache/kernel/boot/vmlinuz-$(cat "$cache/kver")" \
		-initrd "${LAB_INITRD:-$cache/ipoib/initramfs.cpio}" \
		-append "console=ttyS0 quiet panic=-1 loglevel=4 lab.host=$n" \
		-netdev "tap,id=n0,ifname=tap$n,script=no,downscript=no" \
		-device "virtio-net-pci,netdev=n0,mac=52:54:00:77:00:0$n,$off" -device virtio-rng-pci \
		-serial "file:$dir/console"
}

# Nodes of ours, each in a network of its own on that bridge: in one network they would reach each other
# without InfiniBand.
apart() { # N...
	local n p
	for n; do
		p=pid_net$n
		host_start "net$n" unshare -n sleep infinity
		await 10 eval '[ "$(host readlink /proc/self/ns/net)" != "$(readlink "/proc/'"${!p}"'/ns/net")" ] &&
			grep -qx sleep "/proc/'"${!p}"'/comm"' || fail "no network for $n"
		host ip link add "out$n" mtu 4200 type veth peer name in0 mtu 4200 netns "${!p}"
		host ip link set "out$n" master br0 up
		on "$n" ip link set lo up
		on "$n" ip link set in0 up
		on "$n" ip addr add "10.77.0.$n/24" dev in0
	done
}

one_guest() {
	host bash -c 'for at in $(ip -o link show master br0 | sed -nE "s/^[0-9]+: (tap[5-9]):.*/\1/p"); do
			ip link del "$at"
		done
		ip link del br0; ip addr replace 10.77.0.1/24 dev tap0
		ip addr replace fd77::1/64 dev tap0 nodad' || true
}
