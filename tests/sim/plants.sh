#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Faults of the past, put back one at a time into a copy of the tree (plants.txt): the simulations find
# each one, by a world that finds nothing without it.
# usage: plants.sh [PATTERN]	of what is wrong then; finished builds in build/opt and build/asan make it faster
set -u
cd "$(dirname "$0")/../.." || exit 1
pattern=${1:-.}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
rows=0 found=0 failures=0

# Times are kept, so that make compiles only what a fault touched.
cp -a Makefile mk src include tests "$tree/"
mkdir "$tree/build" "$tree/tools"
for variant in opt asan; do
	[ ! -d "build/$variant" ] || (mkdir "$tree/build/$variant" && cd "build/$variant" &&
		cp -a --parents src tests/sim tests/sched tests/unit/sctp_net_fixture.* "$tree/build/$variant/" 2>/dev/null)
done

built() { # VARIANT SIMULATION
	(cd "$tree" && make -s -j2 VARIANT="$1" WERROR= "build/$1/$2") >"$tree/log" 2>&1
}

# What the simulation says; nothing if it finds nothing.
finding() { # VARIANT SIMULATION SEEDS...
	local variant=$1 sim=$2 status
	shift 2
	timeout -k 5 900 "$tree/build/$variant/$sim" "$@" >"$tree/out" 2>&1
	status=$?
	[ "$status" != 0 ] && [ "$status" -lt 124 ] || return
	grep -aE -m 1 '^seed |ERROR: |^not ok' "$tree/out" || echo "exit status, and not a word"
}

# Does the world that found it find something without the fault, too?
found_anyway() { # VARIANT SIMULATION
	local seed
	seed=$(grep -aoE -m 1 'seed [0-9]+' "$tree/out")
	[ -n "$seed" ] && ! "$tree/whole/$1/$2" world "${seed#seed }" >/dev/null 2>&1
}

# The simulation as it is, kept.
whole() { # VARIANT SIMULATION
	[ -x "$tree/whole/$1/$2" ] && return
	built "$1" "$2" && mkdir -p "$tree/whole/$1" && cp "$tree/build/$1/$2" "$tree/whole/$1/"
}

one() { # FILE EXPRESSION VARIANT SIMULATION SEEDS WHAT
	local how seeds
	read -ra seeds <<<"$5"
	whole "$3" "$4"
	cp -p "$tree/$1" "$tree/kept"
	sed -i -E "$2" "$tree/$1"
	if cmp -s "$tree/$1" "$tree/kept"; then
		how="" && echo "# the expression changes nothing in $1"
	elif ! built "$3" "$4"; then
		how="" && echo "# does not build: $(grep -m 1 error "$tree/log")"
	else
		how=$(finding "$3" "$4" "${seeds[@]}")
		[ -z "$how" ] || ! found_anyway "$3" "$4" ||
			{ echo "# without the fault, too: $how" && how=""; }
	fi
	cp "$tree/kept" "$tree/$1" # newer than what was made of the other
	if [ -n "$how" ]; then
		found=$((found + 1))
		echo "ok $6: $how"
	else
		failures=$((failures + 1))
		echo "not ok $6: $3 $4 $5 finds nothing"
	fi
}

while IFS=$'\t' read -r _ file expression variant sim seeds what; do
	[[ $file != file && $what =~ $pattern ]] || continue
	rows=$((rows + 1))
	one "$file" "$expression" "$variant" "$sim" "$seeds" "$what" </dev/null
done < <(grep -v '^#' tests/sim/plants.txt)
echo "# $found of $rows faults are found"
exit $((failures > 0))
