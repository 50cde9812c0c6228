# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# --port verbs, in the guest.
# needs: sessctl
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"

# --port verbs in one guest, Linux's ib_ipoib in a second one, the administration here: each reaches each.
case-verbs-linux() {
	more_guests 5
	up 1
	verbs_up
	linux_up connected 5
	reach 2 10.88.0.5 56
	pings 2 10.88.0.5 4 60000 || fail "60000 octets to Linux"
	pings 5 10.88.0.2 4 60000 || fail "60000 octets from Linux"
	pings 5 fd88::2 3 1000 || fail "IPv6 from Linux"
	[ "$(verbs_connections)" = 2 ] || fail "$(verbs_connections) connections, not one in each direction"
	pings 1 10.88.0.2 3 20000 || fail "ours to the adapter"
	pings 1 10.88.0.5 3 20000 || fail "ours to Linux"
	verbs_clean
	clean 1
	detail "$(verbs_count qp_tx) messages sent, $(verbs_count qp_rx) received"
	verbs_down
	await 10 eval 'at 5 "cat /sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/dreq" | grep -qv "^0$"' ||
		fail "no DREQ came to Linux"
	ended_well 1
}

# --port verbs, on the soft InfiniBand device of the guest without ib_ipoib and ib_cm, with --port ib.
# quick
case-verbs-ours() {
	up 1
	verbs_up
	reach 1 10.88.0.2 56
	pings 1 10.88.0.2 4 60000 || fail "60000 octets to the adapter"
	pings 2 10.88.0.1 4 60000 || fail "60000 octets from the adapter"
	[ "$(connections 1)" = 1 ] || fail "$(connections 1) connections, not one"
	pings 2 fd88::1 3 1000 || fail "IPv6"
	clean 1
	verbs_clean
	detail "$(verbs_count qp_tx) messages sent, $(verbs_count qp_rx) received," \
		"$(verbs_count ud_rx) datagrams received, $(verbs_count ud_rx_grh) of them with a GRH"
	verbs_down
	ended_well 1
}

# A link whose Q_Key has bit 31: --port verbs joins it with CAP_NET_RAW, and says what it lacks without.
case-verbs-qkey() {
	up 1 --qkey 0x80000b1b
	verbs_up
	reach 1 10.88.0.2 56
	pings 1 10.88.0.2 3 20000 || fail "20000 octets to the adapter"
	verbs_clean
	verbs_down
	command -v setpriv >/dev/null || skip "setpriv is missing"
	guest_install "$(command -v setpriv)"
	guest 'setpriv --bounding-set -net_raw --inh-caps -net_raw sessctl ipoib listen --port verbs --timeout 20 2>&1' \
		>"$work/text" && fail "it joins without CAP_NET_RAW"
	grep -q 'does not take the link.s Q_Key 0x80000b1b' "$work/text" || fail "$(cat "$work/text")"
	grep -q '  try: CAP_NET_RAW' "$work/text" || fail "no advice: $(cat "$work/text")"
	ended_well 1
}

refused() { # TEXT ADVICE 'COMMAND'
	local text
	text=$(guest "$3 2>&1") && fail "it runs: $3"
	grep -qF -- "$1" <<<"$text" || fail "no '$1' in: $text"
	grep -qF -- "  try: $2" <<<"$text" || fail "no advice '$2' in: $text"
}

# What --port verbs says where it cannot be: no such device, another P_Key, no ib_umad, ib_cm is loaded.
case-verbs-refused() {
	verbs="sessctl ipoib bridge --tun ib9 --ip 10.88.0.2/24 --port verbs"
	# shellcheck disable=SC2034 # lib.sh reads it
	judge_at_end= # nothing need be on the wire
	verbs_prepare
	refused "no device 'mlx5_0'" "ibv_devices" "$verbs:mlx5_0"
	refused "P_Key 0x8001 is not in the table" "the subnet manager" "$verbs --pkey 0x8001"
	guest "modprobe ib_ipoib"
	refused "the kernel's ib_cm has them" "modprobe -r ib_ipoib" "$verbs"
	guest "modprobe -r ib_ipoib; modprobe -r ib_umad"
	refused "rxe0:1 has no device for MADs" "modprobe ib_umad" "$verbs"
}

prepare() { # 2|5
	LAB_GUEST=10.77.0.$1 "$lab" push "$plain" /tmp/plain.ko
	at "$1" 'rdma link del rxe0; rmmod rdma_rxe; insmod /tmp/plain.ko && modprobe tun &&
		rdma link add rxe0 type rxe netdev eth0 &&
		for ((i = 0; i < 100; i++)); do
			ip -6 addr show dev eth0 scope link | grep -v tentative | grep -q fe80 && exit 0; sleep 0.1
		done; exit 1' || fail "no soft RoCE in guest $1"
	LAB_GUEST=10.77.0.$1 guest_install "$sessctl"
}

bridge_up() { # 2|5 [OPTION...]
	local n=$1
	shift
	LAB_GUEST=10.77.0.$n guest_start roce "sessctl ipoib bridge --json --tun ib0 --port verbs:rxe0 \
		--ip 10.88.0.$n/24 --ip fd88::$n/64 $*"
	at "$n" "for ((i = 0; i < 200; i++)); do
		sessctl ipoib bridge status --json --tun ib0 2>/dev/null | grep -q '\"state\":\"up\"' && exit 0
		[ -s /tmp/roce.rc ] && break; sleep 0.1; done; exit 1" ||
		fail "the bridge in guest $n does not come up: $(at "$n" 'tail -n 1 /tmp/roce.out')"
}

bridge_down() { # 2|5
	at "$1" "sessctl ipoib bridge down --tun ib0" >/dev/null || fail "there is no bridge in guest $1"
	LAB_GUEST=10.77.0.$1 guest_wait roce 20 ||
		fail "the bridge in guest $1 ends with an error: $(at "$1" 'tail -n 1 /tmp/roce.out')"
}

echoes() { # 2|5 ADDRESS OCTETS
	pings "$1" "$2" 5 "$3" || fail "$3 octets from $1"
}

clean_in() { # 2|5
	local name status
	status=$(at "$1" "sessctl ipoib bridge status --json --tun ib0")
	for name in rx_bad ud_failed mad_bad sac_bad sac_unanswered qp_failed; do
		grep -q "\"$name\":0[,}]" <<<"$status" || fail "$name in guest $1: $status"
	done
	[ "$(grep -o '"peer":"[^}]*"up":true' <<<"$status" | wc -l)" = 1 ] || fail "not one connection: $status"
}

# --port verbs on RoCE: Linux's soft RoCE driver as it is, in two guests; nodes are found by their GIDs.
case-verbs-roce() {
	# Linux sends RoCE over IPv6 without UDP checksums
	# shellcheck disable=SC2034 # lib.sh reads it
	bad_of='&& (_ws.malformed || _ws.expert.message ~= "Illegal checksum value (0)")'
	plain=$(find "${LAB_CACHE:-${lab%/*}/../interop/cache}"/{ipoib-"${LAB_SUITE-}"/,}kernel/ -name 'rdma_rxe.ko' 2>/dev/null |
		head -n 1)
	[ -n "$plain" ] || skip "the kernel's package has no rdma_rxe.ko"
	more_guests 5
	prepare 2
	prepare 5
	at 2 "sessctl ipoib bridge --tun ib0 --port verbs --ip 10.88.0.2/24 2>&1" >"$work/unnamed" &&
		fail "RoCE is taken though nobody named it"
	grep -q 'name this one if it is RoCE' "$work/unnamed" || fail "$(cat "$work/unnamed")"
	bridge_up 2
	bridge_up 5
	at 2 'for ((i = 0; i < 40; i++)); do ping -q -c 1 -W 1 10.88.0.5 >/dev/null && exit 0; done; exit 1' ||
		fail "no echo"
	echoes 2 10.88.0.5 60000
	echoes 5 10.88.0.2 60000
	echoes 5 10.88.0.2 56
	echoes 2 fd88::5 1000
	clean_in 2
	clean_in 5
	detail "$(at 2 'sessctl ipoib bridge status --tun ib0' | grep -E 'qp_tx|ud_rx ' | tr -s ' ' | tr '\n' ',')"
	bridge_down 2
	bridge_down 5
	# one REQ with fields of one's own, and what is answered
	LAB_GUEST=10.77.0.5 guest_start listen "sessctl ipoib listen --port verbs:rxe0 --count 1 --timeout 40 --json"
	at 5 "for ((i = 0; i < 200; i++)); do grep -q listening /tmp/listen.out && exit 0; sleep 0.1; done; exit 1" ||
		fail "it does not listen: $(at 5 'cat /tmp/listen.out')"
	peer=$(at 5 "sed -n 's/.*\"lladdr\":\"\([^\"]*\)\".*/\1/p' /tmp/listen.out" | head -n 1)
	at 2 "sessctl ipoib connect --port verbs:rxe0 --timeout 40 $peer" >"$work/connect" ||
		fail "connect: $(cat "$work/connect")"
	{ grep -q established "$work/connect" && grep -q disconnected "$work/connect"; } ||
		fail "$(cat "$work/connect")"
	LAB_GUEST=10.77.0.5 guest_wait listen 20 || fail "listen: $(at 5 'tail -n 3 /tmp/listen.out')"
}

# Unreliable connections: those of the guest's soft InfiniBand device with ours in UDP.
case-verbs-uc() {
	up 1 --mode uc
	verbs_up --mode uc
	reach 1 10.88.0.2 56
	pings 1 10.88.0.2 4 60000 || fail "60000 octets to the adapter"
	pings 2 10.88.0.1 4 60000 || fail "60000 octets from the adapter"
	status 1 | grep -q '"mode":"uc"' || fail "not a UC connection: $(status 1)"
	[ "$(connections 1)" = 1 ] || fail "$(connections 1) connections, not one"
	tshark -r "$work/wire.pcap" -Y 'infiniband.bth.opcode in {32, 34, 36}' 2>/dev/null >"$work/uc" || fail "tshark"
	[ -s "$work/uc" ] || fail "no packet of UC on the wire"
	clean 1
	verbs_clean
	detail "$(verbs_count qp_tx) messages sent, $(verbs_count qp_rx) received, $(wc -l <"$work/uc") packets of UC"
	verbs_down
	ended_well 1
}
