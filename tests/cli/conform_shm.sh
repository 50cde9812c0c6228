#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform over shm://: our listener, our initiator and this build itself, with a second implementation of the
# rings in the peer.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

# passed NUMBER: so many at least, and none failed
passed() {
	local n
	n=$(sed -n 's/^\([0-9]*\) passed, 0 failed.*over shm$/\1/p' out)
	why="$(grep -a '^FAIL\|passed' out | tr '\n' ' ')"
	[ "${n:-0}" -ge "$1" ]
}

# Area by area: what the listener prints for all of them is more than a pipe holds.
responder() {
	local area
	for area in mpa:20 neg:8 ddp:15 rdmap:15; do
		listen "$1" && run 0 conform --case "${area%:*}-*" "$uri" && passed "${area#*:}" || return
		stop_listener
	done
}

initiator() {
	# shellcheck disable=SC2016 # for the command's shell
	run 0 conform --listen --then "$SESSCTL connect --wait"' "$DDPS_URI" >/dev/null 2>&1' "$1" && passed 30
}

# With the target's application in hand there are more.
itself() {
	run 0 conform --self shm && passed 370
}

# An initiator whose memory has holes has failed, and the peer says why.
holes() {
	${CC:-cc} -shared -fPIC -O1 -Wall -Wextra -D_GNU_SOURCE -o unpopulated.so "$here/unpopulated.c" || return
	# shellcheck disable=SC2016 # for the command's shell
	run 1 conform --listen --case mpa-i-request --then "LD_PRELOAD=$PWD/unpopulated.so \
		ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 $SESSCTL connect"' "$DDPS_URI" >/dev/null 2>&1' \
		"shm://@ddpsess-holes-$$" && says out "not allocated whole"
}

test_case conform-shm-responder-file responder "shm://$PWD/socket"
test_case conform-shm-responder-abstract responder shm://@
test_case conform-shm-initiator-file initiator "shm://$PWD/there"
test_case conform-shm-initiator-abstract initiator "shm://@ddpsess-conform-$$"
test_case conform-shm-self itself
test_case conform-shm-memory-with-holes holes
finish
