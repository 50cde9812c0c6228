#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Model-checks the rules for crossed REQs with spin: ours must hold, the bare rule of
# RFC 4755 must be refuted, and so must the claim that the rules beyond it are never used.
# DDPS_MODEL_FULL=1 adds a larger search (about a minute and 2 GB).
# Exit: 0 all as expected, 1 not, 77 spin or gcc is not installed.
set -u

command -v spin >/dev/null && command -v gcc >/dev/null || exit 77
model=$(cd "$(dirname "$0")" && pwd)/crossed_req.pml
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" || exit 1
failed=0

# search DEFINES...: runs pan, its words in ./out
search() {
	rm -f pan* ./*.trail out
	spin -a "$@" "$model" >out 2>&1 &&
		gcc -w -O1 -DSAFETY -DNOREDUCE -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c >>out 2>&1 &&
		timeout 300 ./pan -m50000 >>out 2>&1
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
exit $failed
