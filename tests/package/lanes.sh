#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What runs the suites learns of each that fails, hangs or leaves somebody behind, and still comes to its end.  The
# runner of the unit tests without Criterion notices what it should, and nothing else.
# shellcheck disable=SC2016 # what is to be expanded by the shells that this begins
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$(mktemp -d)
trap '[[ $BASHPID != "$$" ]] || rm -rf "$here"' EXIT
status=0

expect() { # PATTERN
	if grep -qxE -- "$1" "$here/said"; then
		echo "ok lanes: $1"
	else
		echo "not ok lanes: nothing says \"$1\""
		cat "$here/said"
		status=1
	fi
}

run() { # COMMANDS: with lanes.bash, in a shell of its own
	timeout 60 bash -uc ". tests/lanes.bash; $1" >"$here/said" 2>&1 </dev/null
}

run '
	suite lines good echo "ok it"
	suite lines bad echo "not ok it"
	suite lines silent true
	suite lines fails sh -c "echo ok it; exit 3"
	limit=1
	suite lines hangs sh -c "echo ok it; exec sleep 100"
	limit=20
	suite lines leaves sh -c "echo ok it; sleep 101 & exit 0"
	suite lines computes python3 -c "while __import__(\"time\").process_time() < 1.1: pass
print(\"ok it\")"
	suite lines after echo "ok it"
	wait
	summary "$work/failed-ones"; echo "status $?"; cat "$work/failed-ones"'
expect 'good: 1 of 1 passed, [0-9]+ s, 0 s computed'
expect 'bad: 0 of 1 passed, [0-9]+ s, 0 s computed'
expect '  fails: exit status 3'
expect '  hangs: exit status 124'
expect 'not ok left behind: +[0-9]+ sleep 101'
expect 'computes: 1 of 1 passed, [0-9]+ s, [1-9] s computed'
expect 'after: 1 of 1 passed, [0-9]+ s, 0 s computed'
expect '6 passed, 5 failed in [0-9]+ s, [0-9]+ s computed'
expect 'status 1'
for name in bad silent fails hangs leaves; do
	expect "$name"
done

# The one that is stopped from outside says what it was at.
run '
	suite lines good echo "ok it"
	wait
	suite lines long sh -c "echo ok it; exec sleep 102"
	suite lines longer sh -c "echo ok it; exec sleep 103"
	kill $$
	wait'
expect 'not ok stopped after [0-9]+ s, without a result: long longer'

run 'again=this; suite lines that echo "ok it"; suite lines this echo "ok it"; wait; summary "$work/none"'
expect '1 passed, 0 failed in [0-9]+ s, [0-9]+ s computed'

# Each of the first five waits for the next one, so all run next to each other; and of the last four that are idle
# only three may.
run '
	mkfifo "$work/a" "$work/b" "$work/c" "$work/d"
	idle_suite lines idler sh -c "cat $work/d; echo ok it"
	idle_suite lines idle sh -c "cat $work/c; echo >$work/d; echo ok it"
	idle_suite lines idle-too sh -c "cat $work/b; echo >$work/c; echo ok it"
	suite lines first sh -c "cat $work/a; echo >$work/b; echo ok it"
	suite lines second sh -c "echo >$work/a; echo ok it"
	wait
	place="mkdir $work/one || mkdir $work/two || mkdir $work/three"
	leave="sleep 0.3; rmdir $work/one || rmdir $work/two || rmdir $work/three"
	for i in 1 2 3 4; do
		idle_suite lines "alone$i" sh -c "{ $place; } && { $leave; } && echo ok it"
	done
	wait; summary "$work/none"'
expect '9 passed, 0 failed in [0-9]+ s, [0-9]+ s computed'

"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -Itests/cross -O0 -g -fsanitize=address,undefined \
	tests/cross/main.c tests/cross/checks.c tests/cross/bad_tests.c -o "$here/tests" || exit 1
runner() { # OPTION...: its exit status
	"$here/tests" --jobs 2 "$@" >"$here/said" 2>&1
}
ASAN_OPTIONS=detect_leaks=1:handle_segv=0 runner
[ $? = 1 ] || status=1
for t in fails leaves_early leaks overflows fails_at_its_end; do
	expect "not ok bad/$t: exit status (1|3|99)"
done
expect 'not ok bad/crashes: signal 11'
expect 'not ok bad/hangs: signal 14'
expect '# /proc/[0-9]+/task/[0-9]+'
expect '1 passed, 1 skipped, 7 failed'
runner well || status=1
expect '1 passed, 1 skipped, 0 failed'
runner none && status=1
expect '0 passed, 0 skipped, 0 failed'
exit $status
