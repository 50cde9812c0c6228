#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What git keeps is written by hand or is a seed of a test: nothing that a build or a run leaves behind.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
most=400 # KiB; the longest page has 306

# strange FOLDER: files that git keeps in it, too large or of a kind that programs leave behind
strange() {
	(cd "$1" && git ls-files -z | while IFS= read -r -d '' f; do
		[ -f "$f" ] || continue
		case $f in
		*.o | *.a | *.so | *.profraw | *.profdata | *.gc?? | *.pyc | core | *.log | *.orig | *.rej) echo "$f: made" ;;
		tests/fuzz/corpus/*) ;;
		*) ! head -c 4 "$f" | grep -q ELF || echo "$f: a program" ;;
		esac
		[ "$(stat -c %s "$f")" -le $((most * 1024)) ] || echo "$f: more than $most KiB"
	done)
}

strange . >"$work/log"
[ ! -s "$work/log" ] && [ "$(git ls-files | wc -l)" -gt 1000 ]
result $? "git keeps nothing that was made" "$work/log"
mkdir "$work/repo" && git -C "$work/repo" init -q && head -c 500000 /dev/zero >"$work/repo/big" &&
	cp /bin/true "$work/repo/prog" && : >"$work/repo/a.profraw" && : >"$work/repo/fine.c" && git -C "$work/repo" add -f .
[ "$(strange "$work/repo" | cut -d : -f 1 | sort -u | xargs)" = "a.profraw big prog" ]
result $? "what was made is found" "$work/log"
