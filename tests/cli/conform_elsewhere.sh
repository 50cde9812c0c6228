#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform where neither end has a loopback address, in a network of its own.
# shellcheck source=/dev/null disable=SC2154 # variables of lib.bash
: "${SESSCTL:?the path of sessctl}"
if [ -z "${ELSEWHERE_INSIDE:-}" ]; then
	for how in "unshare -n" "unshare -rn"; do
		if $how sh -c 'ip link set lo up && ip addr add 198.18.0.1/32 dev lo' 2>/dev/null; then
			# shellcheck disable=SC2086 # words are meant
			ELSEWHERE_INSIDE=1 SESSCTL=$(realpath "$SESSCTL") exec $how bash "$0"
		fi
	done
	echo "ok conform-elsewhere # skipped: no network of its own can be had here"
	exit 0
fi
. "$(dirname "$0")/lib.bash"
ip link set lo up && ip addr add 198.18.0.1/32 dev lo || exit 1
at='sctp://198.18.0.1:0?backend=native&encap=0'

# An address of loopback would be passed over there, and be no new one.
responder() {
	listen "$at"
	run 0 conform --case 'assoc-restart-addresses' "$uri" && says out "1 passed, 0 failed"
	local res=$?
	stop_listener
	return "$res"
}

initiator() {
	# shellcheck disable=SC2016 # for the command's shell
	run 0 conform --listen --case 'assoc-i-*-addresses' --then \
		"$SESSCTL"' connect "$DDPS_URI" >/dev/null 2>&1' "$at" && says out " 0 failed" &&
		says out "pass  assoc-i-crossing-addresses"
}

test_case "conform brings a responder a new address" responder
test_case "conform brings an initiator a new address" initiator
finish
