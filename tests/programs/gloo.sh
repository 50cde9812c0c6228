#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Gloo's transport for verbs: three ranks, sums and broadcasts with known results.
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

# shellcheck disable=SC2317 # until_true calls it
all_right() {
	[ "$(cat "$work"/rank? | grep -c 'of 3: all right')" = 3 ]
}

for wire in ${WIRES:-tcp sctp plain}; do
	name="Gloo, 3 ranks, ${wire/plain/its own TCP}"
	device=ddp0
	[ "$wire" != plain ] || device=tcp
	mkdir "$work/store.$wire"
	for rank in 1 2 0; do
		begin "$work/rank$rank" on "$wire" "$work/gloo" "$rank" 3 "$work/store.$wire" "$device"
	done
	if until_true 30 all_right; then
		ok "$name"
	else
		not_ok "$name" "$work"/rank?
	fi
	stop_all
	rm -f "$work"/rank?
done
exit "$failed"
