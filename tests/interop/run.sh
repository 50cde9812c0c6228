#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Interop tests against the lab's guest: cases/PEER-WHAT.sh, each from a fresh snapshot.
# usage: run.sh [--quick] [--list] [--keep] [PATTERN...]
#   PATTERN   names of cases, shell wildcards allowed     --keep   leave output of failed cases
#
# A case's comment lines: "# quick" in the quick subset, "# limit: SECONDS" (60 if not given),
# "# needs: FILE..." of build/opt, else it is skipped.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=$here/lab.sh
build=${BUILD:-$here/../../build/opt}
export LAB_ID=run-$$
quick=0 list=0 keep=0 patterns=()
for arg; do
	case $arg in
	--quick) quick=1 ;;
	--list) list=1 ;;
	--keep) keep=1 ;;
	-*)
		sed -n 's/^# usage:/usage:/p' "$0" >&2
		exit 2
		;;
	*) patterns+=("$arg") ;;
	esac
done

chosen() { # NAME FILE
	local p
	[ "$quick" = 0 ] || grep -qx '# quick' "$2" || return 1
	[ ${#patterns[@]} != 0 ] || return 0
	for p in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # a pattern
		[[ $1 == $p ]] && return 0
	done
	return 1
}

names=()
for file in "$here"/cases/*.sh; do
	name=$(basename "$file" .sh)
	! chosen "$name" "$file" || names+=("$name")
done
if [ "$list" = 1 ]; then
	printf '%s\n' "${names[@]}"
	exit
fi
[ ${#names[@]} != 0 ] || {
	echo "run.sh: no such case" >&2
	exit 2
}

top=$(mktemp -d)
case_pid=
cleanup() {
	[ -z "$case_pid" ] || {
		kill "$case_pid"
		wait "$case_pid"
	} 2>/dev/null
	bash "$lab" down
	[ "$keep" = 1 ] || rm -rf "$top"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# In a shell of its own: the case's settings and failures stay there.
shell_of() { # CASE
	# shellcheck disable=SC2016 # for the other shell
	timeout -k 10 "$limit" env lab="$lab" build="$build" work="$work" bash -c \
		'set -eu; source "$0/lib.sh"; source "$1"' "$here" "$1" \
		>"$work/log" 2>&1 &
	case_pid=$!
	wait "$case_pid"
	local status=$?
	case_pid=
	return "$status"
}

setting() { # FILE KEY
	sed -n "s/^# $2: *//p" "$1"
}

missing() { # FILE: what the case needs and is not there
	local f
	for f in $(setting "$1" needs); do
		[ -x "$build/$f" ] || echo "$f is not built (make)"
	done | head -n 1
}

run_case() { # NAME
	local file=$here/cases/$1.sh status word lack
	work=$top/$1
	limit=$(setting "$file" limit)
	limit=${limit:-60}
	mkdir "$work"
	lack=$(missing "$file")
	SECONDS=0
	if [ -n "$lack" ]; then
		echo "$lack" >"$work/detail"
		status=77
	elif ! "$lab" reset >"$work/log" 2>&1; then
		echo "the guest cannot be reset" >"$work/detail"
		status=1
	else
		shell_of "$file"
		status=$?
	fi
	case $status in
	0) word=ok passed=$((passed + 1)) ;;
	77) word=skip skipped=$((skipped + 1)) ;;
	*) word=FAIL failed=$((failed + 1)) ;;
	esac
	[ "$status" != 124 ] || echo "not done within $limit s" >"$work/detail"
	printf '%-5s %-28s %3d s  %s\n' "$word" "$1" "$SECONDS" "$(cat "$work/detail" 2>/dev/null)"
	if [ "$word" = FAIL ]; then
		sed 's/^/      | /' "$work/log" | tail -n 15
		[ "$keep" = 0 ] || echo "      output in $work"
	fi
}

# What several cases need in the guest goes into the snapshot.
prepare() {
	local f programs=()
	for f in sessctl example-rping_peer example-rdma_peer; do
		[ ! -x "$build/$f" ] || programs+=("$build/$f")
	done
	[ ${#programs[@]} != 0 ] || return 0
	work=$top lab=$lab build=$build bash -c \
		'set -eu; source "$0/lib.sh"; guest_install "$@"' "$here" "${programs[@]}" &&
		"$lab" save
}

if ! "$lab" build || ! "$lab" up || ! prepare; then
	echo "run.sh: no guest, no interop test was run" >&2
	exit 1
fi
passed=0 failed=0 skipped=0
for name in "${names[@]}"; do
	run_case "$name"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
