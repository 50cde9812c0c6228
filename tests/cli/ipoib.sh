#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ipoib: values as text, there and back, and what it refuses.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
tools=$(realpath "$here/../../tools")

commands="service-id lladdr private-data"
address=c0:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:01:00:02

prints() { # TEXT ARGUMENT...: exactly this line
	local text=$1
	shift
	run 0 ipoib "$@" || return
	why="it printed $(cat out)"
	[ "$(cat out)" = "$text" ]
}

bad() { # TEXT ARGUMENT...
	local text=$1
	shift
	run 2 ipoib "$@" && says err "$text" && says err "try:"
}

help_of_all() {
	local c
	run 0 ipoib --help || return
	for c in $commands; do
		says out "  $c" || return
	done
	for c in $commands; do
		run 0 ipoib "$c" --help && says out "Usage: sessctl ipoib $c" && says out "--json" || return
	done
	run 0 ipoib lladdr --version && says out "libddpsess"
}

no_command() {
	run 2 ipoib && says err "Usage:"
}

service_id() {
	prints 0x0100000000000048 service-id --qpn 0x48 &&
		prints 0x1000000000000048 service-id --qpn 72 --linux &&
		prints 0x0100000000ffffff service-id --qpn 0xffffff &&
		prints '{"event":"service-id","service_id":"0x1000000000000048","form":"linux","qpn":72}' \
			service-id --decode 0x1000000000000048 --json &&
		run 0 ipoib service-id --decode 0x0100000000000048 && says out "RFC 4755" &&
		says out 0x000048
}

lladdr() {
	prints $address lladdr --flags rc,uc --qpn 0x48 --gid fe80::2:c903:1:2 &&
		prints "${address/c0/00}" lladdr --qpn 0x48 --gid fe80::2:c903:1:2 &&
		prints "{\"event\":\"lladdr\",\"lladdr\":\"$address\",\"flags\":\"rc,uc\",\"qpn\":72,\"gid\":\"fe80::2:c903:1:2\"}" \
			lladdr --decode $address --json &&
		run 0 ipoib lladdr --decode $address && says out "rc,uc" && says out fe80::2:c903:1:2
}

private_data() {
	prints 000000480000fff4 private-data --qpn 0x48 --mtu 65524 &&
		prints '{"event":"private-data","private_data":"00000048ffffffff","qpn":72,"rx_mtu":4294967295}' \
			private-data --qpn 0x48 --mtu 0xffffffff --json &&
		run 0 ipoib private-data --decode 000000480000fff4 && says out 65524
}

completion() {
	local want have
	PATH=$(dirname "$SESSCTL"):$PATH
	. "$tools/sessctl/completion.bash"
	COMP_WORDS=("$SESSCTL" ipoib "") COMP_CWORD=2
	_sessctl "$SESSCTL"
	why="commands: ${COMPREPLY[*]}"
	[ "${COMPREPLY[*]}" = "$commands --help" ] || return
	for c in $commands; do
		want=$("$SESSCTL" ipoib "$c" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' | sort)
		COMP_WORDS=("$SESSCTL" ipoib "$c" --) COMP_CWORD=3
		_sessctl "$SESSCTL"
		have=$(printf '%s\n' "${COMPREPLY[@]}" | sort)
		why="options of $c: $have"
		[ -n "$want" ] && [ "$have" = "$want" ] || return
	done
	COMP_WORDS=("$SESSCTL" ipoib lladdr --flags u) COMP_CWORD=4
	_sessctl "$SESSCTL"
	why="values: ${COMPREPLY[*]}"
	[ "${COMPREPLY[*]}" = "uc ud" ]
}

test_case ipoib-help help_of_all
test_case ipoib-no-command no_command
test_case ipoib-unknown-command bad "no command 'frob'" frob
test_case ipoib-unknown-option bad "--frob" lladdr --frob
test_case ipoib-option-of-another-command bad "another command" service-id --qpn 1 --mtu 3
test_case ipoib-argument-too-many bad "too many" service-id --qpn 1 x
test_case ipoib-service-id service_id
test_case ipoib-service-id-qpn-25-bits bad "0 to 16777215" service-id --qpn 0x1000000
test_case ipoib-service-id-no-number bad "not '0x'" service-id --qpn 0x
test_case ipoib-service-id-without-qpn bad "--qpn is missing" service-id
test_case ipoib-service-id-decode-alone bad "stands alone" service-id --decode 1 --qpn 3
test_case ipoib-service-id-not-of-ipoib bad "no service ID of IPoIB" service-id \
	--decode 0x0200000000000048
test_case ipoib-lladdr lladdr
test_case ipoib-lladdr-without-gid bad "--gid is missing" lladdr --qpn 1
test_case ipoib-lladdr-bad-gid bad "is no GID" lladdr --qpn 1 --gid fe80
test_case ipoib-lladdr-bad-flags bad "is no list of flags" lladdr --qpn 1 --gid :: --flags rd
test_case ipoib-lladdr-decode-19-octets bad "is no link-layer address" lladdr --decode "${address%:*}"
test_case ipoib-private-data private_data
test_case ipoib-private-data-without-mtu bad "--mtu is missing" private-data --qpn 1
test_case ipoib-private-data-mtu-33-bits bad "0 to 4294967295" private-data --qpn 1 --mtu 4294967296
test_case ipoib-private-data-decode-17-digits bad "is no private data" private-data \
	--decode 000000480000fff40
test_case ipoib-completion completion
finish
