# SPDX-License-Identifier: BSD-2-Clause
# For run.sh: suites run in lanes, two of them, and three next to these for suites that hardly compute.  Each is
# bounded in time, and nothing of it stays behind: what it says comes in one piece, and its numbers go into a file.
# shellcheck shell=bash
lanes=2 idle_lanes=3
work=$(mktemp -d)
trap '[[ $BASHPID != "$$" ]] || rm -rf "$work"' EXIT
mkdir "$work/results" "$work/logs" "$work/said"
: >"$work/begun"
: >"$work/idlers"
# a line for each place of those that hardly compute
mkfifo "$work/idle"
exec 7<>"$work/idle"
for ((i = 0; i < idle_lanes; i++)); do
	echo >&7
done
# again: the suites to run, a line each; unset: all

# A suite's numbers, and what went wrong: that is said once more where it is read first, at the end.
result() { # NAME PASSED FAILED WHAT
	local file=$work/results/${1//\//:}
	echo "$2 $3 $1" >"$file"
	[ "$3" = 0 ] && return
	[ -z "$4" ] || echo "  $1: $4" >>"$file"
	grep -aE '^not ok|ERROR: |runtime error' "$log" | grep -av Warning |
		head -n 20 | sed "s|^|  $1: |" >>"$file"
}

# The processes of a group that still run; a moment is theirs to end.
left_in() { # GROUP
	local i left
	for ((i = 0; i < 20; i++)); do
		left=$(ps -eo pgid=,stat=,pid=,args= | awk -v g="$1" '$1 == g && $2 !~ /^Z/ { $1 = $2 = ""; print }')
		[ -n "$left" ] || return
		sleep 0.1
	done
	echo "$left"
}

# What a shell starts in its background ignores SIGINT, and tests send it: it is made usual again.
# timeout makes a group of what it runs: nobody of it stays behind.
bounded() { # SECONDS COMMAND...
	local child status left
	env --default-signal=INT,QUIT timeout -k 10 "$@" >"$log" 2>&1 </dev/null &
	child=$!
	trap 'kill $child' TERM
	wait "$child"
	status=$?
	trap - TERM
	left=$(left_in "$child")
	[ -n "$left" ] || return "$status"
	kill -KILL -- "-$child"
	printf 'not ok left behind: %s\n' "${left//$'\n'/; }" >>"$log"
	return 1
}

# The end of a line, with how long it took and how much of that processors computed, for this shell's children: the
# rest is waiting.  Not in $(), a shell without children.
took() { # LINE SECONDS
	local user system ms=0 t
	times >"$work/times.$BASHPID"
	{ read -r _ && read -r user system; } <"$work/times.$BASHPID"
	for t in "$user" "$system"; do
		t=${t//[.,s]/} # minutes m milliseconds
		ms=$((ms + 60000 * ${t%m*} + 10#${t#*m}))
	done
	echo "$1 $2 s, $((ms / 1000)) s computed"
}

bare() { # NAME BINARY SECONDS JOBS: tests/cross/main.c
	local line ok bad status begun=$SECONDS
	bounded "$3" "$2" --jobs "$4"
	status=$?
	line=$(grep -aE '^[0-9]+ passed, [0-9]+ skipped, [0-9]+ failed$' "$log" | tail -n 1)
	read -r ok _ _ _ bad _ <<<"$line"
	[ "$status" = 0 ] || cat "$log"
	if [ -z "$line" ]; then
		ok=0 bad=1
		echo "not ok $1: no result (exit status $status)"
	fi
	took "$1: ${line:-no result}," $((SECONDS - begun))
	[ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
	result "$1" "$ok" "$bad" "exit status $status"
}

lines() { # NAME COMMAND...: prints "ok ..." and "not ok ..." lines
	local name=$1 status good bad begun=$SECONDS
	shift
	bounded "${limit:-480}" "$@"
	status=$?
	good=$(grep -ac '^ok ' "$log")
	bad=$(grep -ac '^not ok ' "$log")
	if [ "$bad" != 0 ] || [ "$status" != 0 ] || [ "$good" = 0 ]; then
		[ "$bad" != 0 ] || bad=1
		cat "$log"
	fi
	grep -a '# skipped' "$log"
	took "$name: $good of $((good + bad)) passed," $((SECONDS - begun))
	result "$name" "$good" "$bad" "exit status $status"
}

wanted() { # NAME
	[ -z "${again+x}" ] || grep -qxF -- "$1" <<<"$again"
}

begin() { # KIND NAME ...
	local file=${2//\//:}
	echo "$2" >>"$work/begun"
	(
		log=$work/logs/$file
		[ -z "${idle:-}" ] || read -r -u 7
		"$@" >"$work/said/$file" 7>&- 9>&-
		[ -z "${idle:-}" ] || echo >&7
		flock 9
		cat "$work/said/$file"
	) 9>"$work/said.lock" &
}

# In a lane of its own; what it says comes in one piece, when it is done.
suite() { # KIND NAME ...
	wanted "$2" || return 0
	while [ "$(jobs -rp | grep -vcxFf "$work/idlers")" -ge "$lanes" ]; do
		wait -n
	done
	begin "$@"
}

# One that waits for nearly all of its time (a third is computed at most): three of them at a time, and they take
# no lane from those that compute.
idle_suite() { # KIND NAME ...
	wanted "$2" || return 0
	idle=yes begin "$@"
	echo "$!" >>"$work/idlers"
}

has_begun() { # NAME
	grep -qxF -- "$1" "$work/begun"
}

unfinished() {
	local name
	while read -r name; do
		[ -s "$work/results/${name//\//:}" ] || printf ' %s' "$name"
	done <"$work/begun"
}

stop() {
	local left
	trap '' INT TERM
	left=$(unfinished)
	# shellcheck disable=SC2046 # words are meant
	kill $(jobs -p) 2>/dev/null
	wait
	echo "not ok stopped after $SECONDS s, without a result:$left"
	exit 130
}
trap stop INT TERM

# How many passed and failed, of all that were begun.  A suite without a result is one that failed.
# summary LIST: that file gets the names of those that failed
summary() {
	local name file good bad passed=0 failed=0
	: >"$work/failed"
	while read -r name; do
		file=$work/results/${name//\//:}
		[ -s "$file" ] || echo "0 1 $name" >"$file"
		read -r good bad _ <"$file"
		passed=$((passed + good)) failed=$((failed + bad))
		[ "$bad" = 0 ] || echo "$name" >>"$work/failed"
	done <"$work/begun"
	mv "$work/failed" "$1"
	if [ "$failed" != 0 ]; then
		echo "failed (make check-failed runs these again):"
		while read -r name; do
			tail -n +2 "$work/results/${name//\//:}"
		done <"$1"
	fi
	took "$passed passed, $failed failed in" "$SECONDS"
	[ "$failed" = 0 ]
}
