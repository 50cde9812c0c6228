#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A name of a static function says where it is: no two files have one of the same name.  But for
# what Criterion calls, the two models of one interface, and the records of releases.
set -u
cd "$(dirname "$0")/.." || exit 1
slots='init|fini|setup|teardown'

# twice TREE FILE...: names that stand in more than one of the files, each with all of them
twice() {
	(cd "$1" && shift && grep -HoE '^static [^=;(){}]*[ *][a-z_0-9]+\(' "$@") |
		sed -E 's/^([^:]+):.*[ *]([a-z_0-9]+)\($/\2 \1/' | grep -vE "^($slots) " | sort -u |
		awk '{ n[$1]++; at[$1] = at[$1] " " $2 } END { for (f in n) if (n[f] > 1) print f ":" at[f] }' |
		sort
}

result() { # STATUS TITLE
	[ "$1" = 0 ] || bad=1
	[ "$1" = 0 ] && echo "ok names: $2" || echo "not ok names: $2"
}

bad=0
mapfile -t files < <(git ls-files '*.c' '*.h' ':!tests/model' ':!tests/abi/*/include' ':!tests/proof')
found=$(twice . "${files[@]}")
[ -z "$found" ] || echo "$found"
[ -z "$found" ] && [ "${#files[@]}" -gt 500 ]
result $? "each static function has a name of its own"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
printf 'static void init(void)\n{\n}\nstatic struct a *find_it(int x)\n{\n}\n' | tee "$tree/a.c" >"$tree/b.c"
[ "$(twice "$tree" a.c b.c)" = "find_it: a.c b.c" ]
result $? "a name that two files have is found"
exit "$bad"
