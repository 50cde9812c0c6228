#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Model-checks with spin.  The rules for crossed REQs: ours must hold, the bare rule of RFC 4755 must
# be refuted, and so must the claim that the rules beyond it are never used.  Sessions on an SCTP stream
# pair, and MPA's start: the library's own tables must hold, and what must not be done be refuted.
# DDPS_MODEL_FULL=1 adds a larger search (about a minute and 2 GB).
# Exit: 0 all as expected, 1 not, 77 spin or gcc is not installed.
set -u

command -v spin >/dev/null && command -v gcc >/dev/null || exit 77
top=$(cd "$(dirname "$0")/../.." && pwd)
model=$top/tests/model/crossed_req.pml
code=
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" || exit 1
failed=0

# search DEFINES...: runs pan, its words in ./out
search() {
	rm -f pan* ./*.trail out
	# shellcheck disable=SC2086 # a list of files
	spin -a "$@" "$model" >out 2>&1 &&
		gcc -w -O1 -DSAFETY -DNOREDUCE -DCOLLAPSE -DMEMLIM=3000 "$@" -I. -I"$top/src" \
			-I"$top/include" -o pan pan.c $code >>out 2>&1 &&
		timeout 300 ./pan -m200000 >>out 2>&1
}

verdict() { # ok|"not ok" TITLE
	printf '%-4s %s (%s)\n' "$1" "$2" \
		"$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1 states/p' out)"
	if [ "$1" = "not ok" ]; then
		cat out
		failed=1
	fi
}

# A search cut short proves nothing: no error, and neither depth nor memory at its limit.
holds() { # TITLE DEFINES...
	title=$1
	shift
	if search "$@" && grep -q 'errors: 0$' out &&
		! grep -Eq 'too small|Search not completed|out of memory|VECTORSZ' out; then
		verdict ok "$title"
	else
		verdict "not ok" "$title"
	fi
}

refuted() { # TITLE ASSERTION DEFINES...
	title=$1
	claim=$2
	shift 2
	search "$@"
	if grep -Fq "assertion violated $claim" out; then
		verdict ok "$title"
	else
		verdict "not ok" "$title"
	fi
}

holds "one connection: losses, duplicates, early timers" -DLOSS=2 -DDUP=2 -DEARLY=1 -DEXPIRE=1
holds "one connection: two exchanges give up" -DLOSS=2 -DDUP=2 -DEARLY=0 -DEXPIRE=2
[ -z "${DDPS_MODEL_FULL:-}" ] ||
	holds "one connection: all of it" -DLOSS=2 -DDUP=2 -DEARLY=1 -DEXPIRE=2
holds "one connection: the smaller node has the bare rule" -DLOSS=2 -DBARE1=1
holds "never none: the larger node has the bare rule" -DLOSS=2 -DBARE0=1 -DALLOW_TWO
refuted "the bare rule leaves two" "(live<2)" -DBARE0=1 -DBARE1=1
refuted "the bare rule leaves two, with nothing but losses" "(live<2)" \
	-DBARE0=1 -DBARE1=1 -DDUP=0 -DEARLY=0 -DEXPIRE=0
refuted "a second connection is closed at times" 0 -DSHOW_CLOSE
refuted "an own attempt is withdrawn at times" 0 -DSHOW_WITHDRAW

model=$top/tests/model/ends.pml
cp "$top/tests/model/sd_session.h" ends.h
code="$top/src/sctp_ddp/sd_sm.c"
holds "sessions on a stream pair" -DSESSIONS=4 -DSEGMENTS=2 -DSTALLS=2
holds "sessions on a stream pair, associations that end" -DSESSIONS=3 -DLOSSES=2
refuted "a pair is used again before its messages have arrived" "(bad==0)" -DEARLY_REUSE=1
refuted "either end begins sessions on the same pair" "(bad==0)" -DBOTH_ASK=1

cp "$top/tests/model/mpa_start.h" ends.h
code="$top/src/mpa_tcp/mpa_sm.c"
holds "MPA, client and server" -DRTR=0 -DPOSTS0=2 -DPOSTS1=2
holds "MPA, peer to peer: only the responder has something to send" -DPOSTS0=0
holds "MPA, peer to peer: both have" -DPOSTS0=2
refuted "without an RTR the responder speaks first" "done" -DRTR=0 -DPOSTS0=0
exit $failed
