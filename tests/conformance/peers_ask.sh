#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Asks each peer of docs/peers.md that can be had here, and writes the page.  Those in guests take some
# minutes; one that cannot run keeps the table that it has.
# usage: peers_ask.sh BUILD
set -u
build=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
here=tests/conformance
CONFORM_KEEP=$(mktemp -d) || exit 1
export CONFORM_KEEP
trap 'rm -rf "$CONFORM_KEEP"' EXIT
bad=0

# The rest of the arguments are a command, which leaves those files in CONFORM_KEEP.
ask() { # NAME 'FILES' COMMAND...
	local name=$1 status=0 f files=()
	for f in $2; do files+=("$CONFORM_KEEP/$f"); done
	shift 2
	"$@" || status=$?
	if [ "$status" = 77 ]; then
		echo "skip $name: it cannot be had here"
		return
	fi
	[ "$status" = 0 ] || bad=1
	if [ -s "${files[-1]}" ]; then
		"$here/peers.sh" --take "$name" "${files[@]}"
	else
		echo "not ok $name: its run left no results"
		bad=1
	fi
}

# shellcheck disable=SC2317 # ask calls it
self() {
	"$build/sessctl" conform --self tcp --json >"$CONFORM_KEEP/self-tcp" &&
		"$build/sessctl" conform --self sctp --json >"$CONFORM_KEEP/self-sctp" &&
		"$build/sessctl" ipoib conform --self ours --json >"$CONFORM_KEEP/self-ib"
}

# The cases fail by what differs from 6.1, which the table shows.
# shellcheck disable=SC2317 # ask calls it
other_kernel() { # SUITE
	local status=0
	LAB_SUITE=$1 tests/interop/run.sh 'conform-siw-*' || status=$?
	[ "$status" = 77 ] && return 77
	return 0
}

ask ours 'self-tcp self-sctp self-ib' self
ask usrsctp usrsctp.json "$here/usrsctp.sh" "$build"
siw='conform-siw-responder.json conform-siw-initiator.json'
ask siw "$siw" tests/interop/run.sh 'conform-siw-*'
rm -f "$CONFORM_KEEP"/conform-siw-*.json
ask siw-5.10 "$siw" other_kernel bullseye
rm -f "$CONFORM_KEEP"/conform-siw-*.json
ask siw-6.12 "$siw" other_kernel trixie
ask linux-sctp 'conform-sctp-responder.json conform-sctp-initiator.json' \
	tests/interop/run.sh 'conform-sctp-*'
ask linux-ib_ipoib conform.out tests/interop-ipoib/run.sh conform
"$here/peers.sh" "$build/sessctl" --write
"$here/peers.sh" --check "$build/sessctl" || bad=1
exit "$bad"
