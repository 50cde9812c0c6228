#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The tests of attacks against a stack that has what they defend switched off: each must fail.  attacks.txt: what
# is off (off.py), binary, test, separated by tabs.  All is compiled once; a number in the environment says what
# is off.
# Of a fuzz target the test is its corpus.
# usage: run.sh BUILD [PATTERN]		a finished build, which is copied; e.g. build/opt unit
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 pattern=${2:-.} list=tests/mutate/attacks.txt
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
binaries=(unit e2e verbs-test sched fuzz-shm)
# shellcheck source=tests/fuzz/corpus.bash
. tests/fuzz/corpus.bash

tests/mutate/off.py tree "$tree" "$build" "$list" || exit 1
make -s -C "$tree" -j2 VARIANT="$(basename "$build")" WERROR= CFLAGS=-w "${binaries[@]/#/$build/}" >"$tree/log" 2>&1 || {
	echo "not ok the tree with switches does not build:"
	grep error "$tree/log"
	exit 1
}

# How the test took it; nothing if it passed.
caught() { # NUMBER BINARY TEST
	local status out=$tree/out.$1.$BASHPID program=$tree/$build/$2
	export DDPS_OFF=$1
	if [ "$2" = sched ]; then
		timeout -k 5 150 "$program" "$3" >"$out" 2>&1 || echo "fails"
		return
	fi
	if [[ $2 = fuzz-* ]]; then
		timeout -k 5 150 "$program" "$tree/seeds/$2" >"$out" 2>&1 || echo "fails"
		return
	fi
	LSAN_OPTIONS=exitcode=0 timeout -k 5 150 "$program" --filter "$3" --color=never >"$out" 2>&1
	status=$?
	if ! grep -aq 'Tested: 1 ' "$out" && [ "$status" -lt 124 ]; then
		echo "skipped"
	elif [ "$status" != 0 ]; then
		echo "fails"
	fi
}

one() { # NUMBER WHAT BINARY TEST
	local how="no such test" try
	if grep -qxF "$4" "$tree/$3.list"; then
		how=$(caught 0 "$3" "$4") # with nothing off it passes, or it shows nothing
		if [ "$how" = fails ]; then
			how="fails with nothing off, too;"
		else
			for ((try = 1; try <= 8; try++)); do # who wins a race without its defence is chance
				how=$(caught "$1" "$3" "$4")
				[ -z "$how" ] || break
			done
		fi
	fi
	case $how in
	fails) echo "ok $4 fails with this off: $2" ;;
	skipped) echo "ok $4 # SKIP it does not run here" ;;
	*) echo "not ok $4: ${how:-passes} with this off: $2" ;;
	esac
}

for binary in unit e2e verbs-test; do
	"$build/$binary" --list | awk '/^[a-z]/ { suite = $1; sub(":", "", suite) } NF == 2 { print suite "/" $2 }' \
		>"$tree/$binary.list"
done
"$build/sched" --list >"$tree/sched.list"
echo corpus >"$tree/fuzz-shm.list"
unpack shm "$tree/seeds/fuzz-shm" || exit 1
number=0
while IFS=$'\t' read -r what binary name; do
	number=$((number + 1))
	[[ $name =~ $pattern ]] || continue
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
	one "$number" "$what" "$binary" "$name" </dev/null &
done < <(grep -v '^#' "$list") >"$tree/results"
wait
cat "$tree/results"
! grep -q '^not ok' "$tree/results"
