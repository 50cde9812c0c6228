#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Gloo's transport for verbs: three ranks, sums and broadcasts with known results; and all of them end.
# usage: gloo.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs g++ /usr/include/gloo/transport/ibverbs/device.h
g++ -O1 -o "$work/gloo" tests/programs/gloo.cc -lgloo -libverbs -lpthread >"$work/out" 2>&1 || {
	not_ok "Gloo: it does not build" "$work/out"
	exit 1
}

all_right() {
	local p ends=0
	for p in "${pids[@]}"; do
		wait "$p" || ends=1
	done
	pids=()
	[ "$ends" = 0 ] && [ "$(cat "$work"/rank? | grep -c 'of 3: all right')" = 3 ]
}

run() { # WIRE DEVICE
	local rank
	rm -rf "$work"/rank? "$work/store"
	mkdir "$work/store"
	for rank in 1 2 0; do
		begin "$work/rank$rank" on "$1" "$work/gloo" "$rank" 3 "$work/store" "$2"
	done
	all_right
}

patience=15
for wire in ${WIRES:-tcp sctp plain}; do
	name="Gloo, 3 ranks, ${wire/plain/its own TCP}"
	device=ddp0
	[ "$wire" != plain ] || device=tcp
	# Once in a hundred times or so a rank waits for ever, by a fault of Gloo's: docs/programs.md
	if run "$wire" "$device" || run "$wire" "$device"; then
		ok "$name"
	else
		not_ok "$name" "$work"/rank?
	fi
	stop_all
done
exit "$failed"
