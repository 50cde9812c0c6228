# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ipoib conform against Linux.
# needs: sessctl
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"

# The suite next to another's subnet administration: it joins, and looks for the path to Linux.
case-conform-client() {
	conforming
	up 1
	linux_up
	host ip addr replace 10.77.0.9/24 dev tap0
	host "$sessctl" ipoib conform --udp 10.77.0.9:4791 --sa 10.77.0.1 --gid fe80::9 --ip 10.88.0.100 \
		--profile "$(known_of_linux)" --case '[ae]*-[du]*' 10.88.0.2 >"$work/conform.out" ||
		fail "$(grep -A 1 -E 'FAIL|failed' "$work/conform.out" | head -n 2 | tr -s ' \n' ' ')"
	grep -q '^pass  end-dreq ' "$work/conform.out" || fail "end-dreq did not pass"
	detail "$(tail -n 1 "$work/conform.out")"
	clean 1
	ended_well 1
}

# The tester by --port verbs on the soft InfiniBand device of one guest, against Linux's ib_ipoib in a
# second one.  The administration is here.
# limit: 420
case-conform-verbs() {
	conforming
	# shellcheck disable=SC2034 # lib.sh reads it
	bad_of='&& ip.src == 10.77.0.5'
	more_guests 5
	up 1
	verbs_prepare
	linux_up connected 5
	profile=$(known_of_linux)
	[ "$profile" = linux-ib_ipoib ] || { "$lab" push "$profile" /tmp/known && profile=/tmp/known; }
	guest_start conform "sessctl ipoib conform --port verbs --ip 10.88.0.100 --ip6 fd88::5 --timeout 20 \
		--profile $profile --json ${CONFORM_CASES:+--case '$CONFORM_CASES'} 10.88.0.5"
	status=0
	LAB_LIMIT=380 guest_wait conform 360 || status=$?
	guest_output conform >"$work/conform.out"
	[ ! -d "${CONFORM_KEEP-}" ] || cp "$work"/conform.* "$CONFORM_KEEP/"
	sed -nE 's/.*"case":"([^"]*)".*"result":"(pass|fail|known)".*/\2 \1/p' "$work/conform.out" |
		while read -r result name; do
			echo "$result $name $(sed -nE "/\"case\":\"$name\"/s/.*\"why\":\"([^\"]*)\".*/\1/p" "$work/conform.out")"
		done >"$work/cases"
	grep -q '"event":"summary"' "$work/conform.out" ||
		fail "it did not reach its end: $(tail -n 1 "$work/conform.out")"
	detail "$(sed -nE 's/.*"event":"summary","transport":"ib",(.*)}/\1/p' "$work/conform.out" | tr -d '"')"
	[ "$(grep -c 'this port cannot' "$work/conform.out")" -ge 20 ] || fail "what it cannot do is not said"
	[ "$status" = 0 ] || fail "status $status: $(cat "$work/detail")"
}

# Every case of sessctl ipoib conform against Linux: what is not as it should be is in the profile.
# Each counts as a case.
# limit: 420
case-conform() {
	conform
}
