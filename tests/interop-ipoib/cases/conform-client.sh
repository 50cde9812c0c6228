# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# The suite next to another's subnet administration: it joins, and looks for the path to Linux.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
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
