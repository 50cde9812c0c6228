#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Interop tests against the lab's guest: the cases of cases/*.sh, each from a fresh snapshot.
# usage: run.sh [--quick] [--list] [--keep] [--times=N] [--lanes=N] [PATTERN...]
#   PATTERN   names of cases, shell wildcards allowed     --keep   leave output of failed cases
#   --times   all of that so often, with one guest
#   --lanes   so many guests, each in a network of its own, that take the cases by turns
#
# A case is a function case-NAME.  Lines of the comment above it: "# quick" in the quick subset, "# limit: SECONDS"
# (300 if not given), "# needs: FILE..." of build/opt, else it is skipped.  Those at the head of a file are for all
# its cases.
# Exit status: 0 all passed or were skipped, 1 some failed, 77 none can be run here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=${INTEROP_LAB:-$here/lab.sh}
cases=${INTEROP_CASES:-$here/cases}
build=${BUILD:-$here/../../build/opt}
cache=${LAB_CACHE:-$here/cache}${LAB_SUITE:+/suite-$LAB_SUITE}
quick=0 list=0 keep=0 times=1 lanes=1 patterns=()
for arg; do
	case $arg in
	--quick) quick=1 ;;
	--list) list=1 ;;
	--keep) keep=1 ;;
	--times=[1-9]*) times=${arg#*=} ;;
	--lanes=[1-9]*) lanes=${arg#*=} ;;
	-*)
		sed -n 's/^# usage:/usage:/p' "$0" >&2
		exit 2
		;;
	*) patterns+=("$arg") ;;
	esac
done

chosen() { # NAME QUICK
	local p
	[ "$quick" = 0 ] || [ "$2" = yes ] || return 1
	[ ${#patterns[@]} != 0 ] || return 0
	for p in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # a pattern
		[[ $1 == $p ]] && return 0
	done
	return 1
}

# Each case: name, file, limit, whether it is quick, what it needs.
all_cases() {
	awk '
	FNR == 1 { split("", head); split("", own); begun = 0 }
	/^#/ && match($0, /^# (quick$|limit: |needs:)/) {
		key = substr($2, 1, 5)
		sub(/^# [a-z]*:? */, "")
		own[key] = key == "quick" ? "yes" : $0
		next
	}
	/^#/ { next }
	!begun { for (key in own) head[key] = own[key]; begun = 1 }
	/^case-.*\(\) *\{/ {
		name = substr($1, 6, length($1) - 7)
		if (seen[name]++)
			bad = "case " name " is there twice"
		print name, FILENAME, value("limit", 300), value("quick", "no"), value("needs", "")
	}
	{ split("", own) }
	function value(key, otherwise) {
		return key in own ? own[key] : key in head ? head[key] : otherwise
	}
	END {
		if (bad)
			print "run.sh: " bad >"/dev/stderr"
		exit bad != ""
	}' "$cases"/*.sh | sort -k 1,1
}

table=$(all_cases) || exit 2
names=()
declare -A file_of limit_of needs_of
while read -r name file limit is_quick needs; do
	file_of[$name]=$file limit_of[$name]=$limit needs_of[$name]=$needs
	! chosen "$name" "$is_quick" || names+=("$name")
done <<<"$table"
if [ "$list" = 1 ]; then
	printf '%s\n' "${names[@]}"
	exit
fi
[ ${#names[@]} != 0 ] || {
	echo "run.sh: no such case" >&2
	exit 2
}

# ---- outside ----

# No case, but no failure either.
nothing() { # WHY
	echo "interop: skipped, $1" >&2
	exit 77
}

# What a run that was killed has left: files; its processes went with it.
sweep() {
	local d
	for d in "$cache"/run/{run*,cases}-[0-9]*; do
		[ -d "/proc/${d##*-}" ] || rm -rf "$d"
	done
}

# The cases run in namespaces of their own, for processes too: however this ends, the kernel ends
# everything in there.  A normal user has them in a user namespace, with all rights in it.
outside() {
	local why user=()
	"$lab" packages || nothing "packages are missing"
	if why=$("$lab" lacking); then
		nothing "$why"
	fi
	[ "$(id -u)" = 0 ] || user=(--user --map-current-user --keep-caps)
	unshare "${user[@]}" --pid --mount-proc --fork true 2>/dev/null ||
		nothing "no process namespaces"
	sweep
	export INTEROP_ID=$$
	if [ "$keep" = 1 ]; then
		INTEROP_TOP=$(mktemp -d)
	else
		INTEROP_TOP=$cache/run/cases-$$
		mkdir -p "$INTEROP_TOP"
	fi
	export INTEROP_TOP
	trap leave EXIT
	trap 'exit 130' INT TERM HUP
	setpriv --pdeathsig KILL unshare "${user[@]}" --pid --mount-proc --fork --kill-child \
		bash "$0" "$@" &
	inner=$!
	wait "$inner"
}

leave() {
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	kill -KILL "$inner" 2>/dev/null && wait "$inner" 2>/dev/null
	rm -rf "$cache/run"/run*-$$
	[ "$keep" = 1 ] || rm -rf "$INTEROP_TOP"
}

if [ -z "${INTEROP_TOP-}" ]; then
	outside "$@"
	exit
fi

# ---- inside ----

top=$INTEROP_TOP
# In a shell of its own: the case's settings and failures stay there.
shell_of() { # FILE FUNCTION
	# shellcheck disable=SC2016 # for the other shell
	timeout -k 10 "$limit" env lab="$lab" build="$build" work="$work" bash -c \
		'set -eu; source "$0/lib.sh"; source "$0/sctp.sh"; source "$1"; "$2"; ended' "$here" "$@" \
		>"$work/log" 2>&1 &
	local status=0 group=$!
	wait "$group" || status=$?
	# what it has started, if it could not see to that itself
	kill -KILL -- "-$group" 2>/dev/null
	return "$status"
}

missing() { # NAME: what the case needs and is not there
	local f
	for f in ${needs_of[$1]}; do
		[ -x "$build/$f" ] || echo "$f is not built (make)"
	done | head -n 1
}

# A case that is made of many lists them in $work/cases: "pass", "known" (to its profile) or "fail", the
# name, and what there is to say.
parts() {
	local result name text
	while read -r result name text; do
		case $result in
		pass | known) passed=$((passed + 1)) ;;
		*) failed=$((failed + 1)) ;;
		esac
		printf '  %-5s %-32s %s\n' "${result/#fail/FAIL}" "$name" "$text"
	done <"$work/cases"
}

run_case() { # NAME
	local status word lack limit=${limit_of[$1]}
	work=$top/$1
	[ ! -e "$work" ] || work+=-$run
	mkdir "$work"
	lack=$(missing "$1")
	SECONDS=0
	if [ -n "$lack" ]; then
		echo "$lack" >"$work/detail"
		status=77
	elif ! "$lab" reset >"$work/log" 2>&1; then
		echo "the guest cannot be reset" >"$work/detail"
		status=1
	else
		shell_of "${file_of[$1]}" "case-$1"
		status=$?
	fi
	case $status in
	0) word=ok passed=$((passed + 1)) ;;
	77) word=skip skipped=$((skipped + 1)) ;;
	*) word=FAIL failed=$((failed + 1)) ;;
	esac
	[ "$status" != 124 ] || echo "not done within $limit s" >"$work/detail"
	printf '%-5s %-28s %3d s  %s\n' "$word" "$1" "$SECONDS" "$(cat "$work/detail" 2>/dev/null)"
	[ ! -s "$work/cases" ] || parts
	if [ "$word" = FAIL ]; then
		sed 's/^/      | /' "$work/log" | tail -n 15
		[ "$keep" = 0 ] || echo "      output in $work"
	fi
}

prepare() {
	work=$top lab=$lab build=$build bash -c 'set -eu; source "$0/lib.sh"; guest_prepare' "$here"
}

# The next case that no lane has taken: sets name and run.
next_case() {
	local n
	# shellcheck disable=SC2016 # for awk
	n=$(flock "$top/next" awk -v file="$top/next" '{ print; print $1 + 1 >file }' "$top/next")
	run=$((n / ${#names[@]} + 1)) name=${names[n % ${#names[@]}]}
	[ "$run" -le "$times" ]
}

# One guest and the cases that it comes to.
lane() { # NUMBER
	export LAB_ID=run$1-$INTEROP_ID
	passed=0 failed=0 skipped=0
	if ! "$lab" up || ! prepare; then
		echo "interop: the guest does not work, no case was run" >&2
		return 1
	fi
	while next_case; do
		run_case "$name" >"$top/said$1" 2>&1
		flock "$top/next" cat "$top/said$1"
	done
	echo "$passed $failed $skipped" >"$top/counts$1"
}

"$lab" build || {
	[ $? != 77 ] || nothing "the guest cannot be made here"
	exit 1
}
echo 0 >"$top/next"
started=()
for ((i = 1; i <= lanes; i++)); do
	lane "$i" &
	started+=($!)
done
good=1
for p in "${started[@]}"; do
	wait "$p" || good=0
done
cat "$top"/counts* | awk -v good="$good" '{ passed += $1; failed += $2; skipped += $3 } END {
	print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
	exit !(good && passed && !failed) }'
