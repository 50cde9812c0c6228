#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One fault for each checker of the simulations (plants.txt): the checker finds it, in a world in which nothing is
# found without it.  Worlds from 1 on are looked through, up to a bound; there is no seed to tend.
# usage: plants.sh BUILD [PATTERN]	a finished build, which is copied; of what is off, or what the checker says
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 pattern=${2:-.} list=tests/sim/plants.txt
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
# What is played at most, as the simulation counts; and ten minutes of processor time, whoever else computes here
declare -A most=([sim-sctp]=200000 [sim-session]=100000 [sim-ipoib]=6000 [sim-verbs]=6000 [sim-crossed]=12000)
sims=("${!most[@]}") number=0 found=0 rows=0

tests/mutate/off.py tree "$tree" "$build" "$list" || exit 1
make -s -C "$tree" -j2 VARIANT="$(basename "$build")" WERROR= CFLAGS=-w "${sims[@]/#/$build/}" >"$tree/log" 2>&1 || {
	echo "not ok the tree with faults does not build:"
	grep error "$tree/log"
	exit 1
}

# The world in which this is off and the checker says so; nothing if there is none.  Other checkers may be first.
world() { # NUMBER SIMULATION WORDS
	local seed=0 try sim=$tree/$build/$2
	for ((try = 0; try < 8; try++)); do
		(ulimit -t 600 && DDPS_OFF=$1 exec timeout -k 5 3600 "$sim" $((seed + 1)) "${most[$2]}") >"$tree/out" 2>&1 && return
		case $? in
		124 | 137 | 152) echo "not ok: its time ran out, at a seed above $seed" >>"$tree/out" ;;
		esac
		seed=$(grep -aoE 'again: .* world [0-9]+' "$tree/out" | head -n 1 | grep -oE '[0-9]+$')
		[ -n "$seed" ] || return
		if grep -aqE "$3" "$tree/out" && "$sim" world "$seed" >"$tree/without" 2>&1; then
			echo "$seed"
			return
		fi
	done
}

while IFS=$'\t' read -r what sim words; do
	number=$((number + 1))
	[[ $what$words =~ $pattern ]] || continue
	rows=$((rows + 1))
	seed=$(world "$number" "$sim" "$words" </dev/null)
	if [ -n "$seed" ]; then
		found=$((found + 1))
		echo "ok $sim: $words: world $seed, with this off: $what"
	else
		echo "not ok $sim: no world says '$words' with this off: $what; last: $(grep -am 1 '^seed \|^not ok' "$tree/out")"
	fi
done < <(grep -v '^#' "$list")
echo "# $found of $rows checkers find their fault"
[ "$found" = "$rows" ]
