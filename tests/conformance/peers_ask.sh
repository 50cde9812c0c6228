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

ask() { # NAME 'FILES' COMMAND...
	local name=$1 files=$2 status=0
	shift 2
	"$@" || status=$?
	# shellcheck disable=SC2086 # several
	if [ "$status" = 77 ]; then
		echo "skip $name: it cannot be had here"
	elif cd "$CONFORM_KEEP" && ls $files >/dev/null 2>&1; then
		cd - >/dev/null || exit 1
		"$here/peers.sh" --take "$name" $(printf "$CONFORM_KEEP/%s " $files)
	else
		cd - >/dev/null || exit 1
		echo "not ok $name: its run left no results"
		bad=1
	fi
	case $status in 0 | 77) ;; *) bad=1 ;; esac
}

self() {
	"$build/sessctl" conform --self tcp --json >"$CONFORM_KEEP/self-tcp" &&
		"$build/sessctl" conform --self sctp --json >"$CONFORM_KEEP/self-sctp" &&
		"$build/sessctl" ipoib conform --self ours --json >"$CONFORM_KEEP/self-ib"
}

ask ours 'self-tcp self-sctp self-ib' self
ask usrsctp usrsctp.json "$here/usrsctp.sh" "$build"
ask siw 'conform-siw-responder.json conform-siw-initiator.json' tests/interop/run.sh 'conform-siw-*'
ask linux-ib_ipoib conform.out tests/interop-ipoib/run.sh conform
"$here/peers.sh" "$build/sessctl" --write
"$here/peers.sh" --check "$build/sessctl" || bad=1
exit "$bad"
