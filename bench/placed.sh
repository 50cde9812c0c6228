#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What completion that means placed costs (DDPSESS_PLACED, docs/verbs.md), by counts, which a busy
# machine does not change much: for each Write of 64 octets, at two depths and over both wires, the
# library's instructions (callgrind), system calls (strace) and messages of both ends together.
# One line for each, and their ratio.  usage: placed.sh BUILD
set -u
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SHORT=256 LONG=2304
gcc -O2 -o "$work/placed" "$here/placed.c" -libverbs || exit 1

# Self cost of the drop-in's functions; the line after "calls=" is what was called.
instructions() { # COUNT
	valgrind -q --tool=callgrind --callgrind-out-file="$work/out.%p" "$work/placed" "$depth" "$1" \
		>/dev/null 2>&1 || return 1
	cat "$work"/out.* | awk '
	/^ob=/ {
		split($0, part, /[()]/)
		if (part[3] != "")
			name[part[2]] = part[3]
		own = name[part[2]] ~ /libddpsess-verbs/
	}
	/^cob=/ {
		split($0, part, /[()]/)
		if (part[3] != "")
			name[part[2]] = part[3]
	}
	/^calls=/ { getline; next }
	/^[0-9+*-]/ && own { sum += $2 }
	END { printf "%.0f\n", sum }'
	rm -f "$work"/out.*
}

calls() { # COUNT
	strace -qq -f -c -U calls,name -o "$work/calls" "$work/placed" "$depth" "$1" >/dev/null 2>&1 || return 1
	awk '$2 == "total" { print $1 }' "$work/calls"
}

messages() { # COUNT
	DDPSESS_STATS=on "$work/placed" "$depth" "$1" 2>&1 | sed -n 's/.*messages sent: //p'
}

# A hundredth of one for each Write, set-up excluded: a long run less a short one.
each() { # WHAT
	local long short
	long=$("$1" $LONG) && short=$("$1" $SHORT) && echo $(((long - short) * 100 / (LONG - SHORT)))
}

export LD_PRELOAD=$build/libddpsess-verbs.so DDPSESS_CONF=/dev/null
for DDPSESS_TRANSPORT in tcp sctp; do
	for depth in 1 16; do
		for what in instructions calls messages; do
			export DDPSESS_TRANSPORT
			off=$(DDPSESS_PLACED=off each $what) on=$(DDPSESS_PLACED=writes each $what)
			if [ -z "$off" ] || [ -z "$on" ] || [ "$off" -le 0 ]; then
				echo "not ok placed: no count of $what, $DDPSESS_TRANSPORT, depth $depth"
				exit 1
			fi
			awk -v a="$off" -v b="$on" -v n="$DDPSESS_TRANSPORT, depth $depth, $what a Write" \
				'BEGIN { printf "%s: off %.2f, writes %.2f, ratio %.2f\n", n, a / 100, b / 100, b / a }'
		done
	done
done
