#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The tests of attacks against a stack that has what they defend taken away, one line at a time:
# each must fail.  attacks.txt: file, sed expression, binary, test, separated by tabs; where each of
# two defences is enough, FILE+FILE and one expression that is for both.  In place of a binary there may
# be a script, which gets the build: then the test is what follows "not ok" in a line of it.
# usage: run.sh BUILD [PATTERN]		a finished build, which is copied; e.g. build/opt unit
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 pattern=${2:-.}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# Times are kept, so that make compiles only what a mutation touched.
mkdir -p "$tree/$(dirname "$build")"
cp -a Makefile mk src include tools tests "$tree/"
cp -a "$build" "$tree/$build"

make_it() { # BINARY | SCRIPT
	local targets=("$build/$1")
	[[ $1 != */* ]] || targets=("$build/libddpsess-verbs.so" "$build/ddpsess/verbs/librdmacm.so.1")
	(cd "$tree" && make -s -j2 VARIANT="$(basename "$build")" WERROR= "${targets[@]}") >"$tree/log" 2>&1
}

# How the test took it; nothing if it passed.
caught() { # BINARY | SCRIPT TEST
	local status
	if [[ $1 == */* ]]; then
		(cd "$tree" && timeout 150 bash "$1" "$build") | grep -q "^not ok $2" && echo "fails"
		return
	fi
	if [ "$1" = sched ]; then
		timeout -k 5 150 "$tree/$build/sched" "$2" >"$tree/out" 2>&1 || echo "fails"
		return
	fi
	LSAN_OPTIONS=exitcode=0 timeout -k 5 150 "$tree/$build/$1" --filter "$2" --color=never \
		>"$tree/out" 2>&1
	status=$?
	if ! grep -aq 'Tested: 1 ' "$tree/out" && [ "$status" -lt 124 ]; then
		echo "skipped"
	elif [ "$status" != 0 ]; then
		echo "fails"
	fi
}

mutated() { # EXPRESSION FILE...
	local expression=$1 f
	shift
	for f; do
		cp -p "$tree/$f" "$tree/$f.kept"
		sed -i -E "$expression" "$tree/$f"
		! cmp -s "$tree/$f" "$tree/$f.kept" || return 1
	done
}

restore() { # FILE...
	local f
	for f; do
		[ ! -e "$tree/$f.kept" ] || mv "$tree/$f.kept" "$tree/$f"
		touch "$tree/$f"
	done
}

one() { # FILE EXPRESSION BINARY TEST
	local how files
	IFS=+ read -ra files <<<"$1"
	if [[ $3 != */* ]] && ! grep -qxF "$4" "$tree/$3.list"; then
		how="no such test"
	elif ! mutated "$2" "${files[@]}"; then
		how="the expression changes nothing"
	elif ! make_it "$3"; then
		how="does not build: $(grep -m 1 error "$tree/log")"
	else
		how=$(caught "$3" "$4")
	fi
	restore "${files[@]}"
	case $how in
	fails)
		echo "ok $4 fails without $1: $2"
		;;
	skipped)
		echo "ok $4 # SKIP it does not run here"
		;;
	*)
		failures=$((failures + 1))
		echo "not ok $4: $1: $2: ${how:-passes}"
		;;
	esac
}

for binary in unit e2e verbs-test; do
	"$build/$binary" --list | awk '/^[a-z]/ { suite = $1; sub(":", "", suite) } NF == 2 { print suite "/" $2 }' \
		>"$tree/$binary.list"
done
"$build/sched" --list >"$tree/sched.list"
while IFS=$'\t' read -r file expression binary name; do
	[[ $file != \#* && $name =~ $pattern ]] || continue
	one "$file" "$expression" "$binary" "$name" </dev/null
done <"$tree/tests/mutate/attacks.txt"
exit $((failures > 0))
