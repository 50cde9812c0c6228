# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# --port verbs on RoCE: Linux's soft RoCE driver as it is, in two guests; nodes are found by their GIDs.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
# Linux sends RoCE over IPv6 without UDP checksums
# shellcheck disable=SC2034 # lib.sh reads it
bad_of='&& (_ws.malformed || _ws.expert.message ~= "Illegal checksum value (0)")'
plain=$(find "${LAB_CACHE:-${lab%/*}/../interop/cache}"/{ipoib-"${LAB_SUITE-}"/,}kernel/ -name 'rdma_rxe.ko' 2>/dev/null |
	head -n 1)
[ -n "$plain" ] || skip "the kernel's package has no rdma_rxe.ko"

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
