#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A name of a static function says where it is: no two files have one of the same name.  But for
# what Criterion calls, the two models of one interface, and the records of releases.
set -u
cd "$(dirname "$0")/.." || exit 1
slots='init|fini|setup|teardown'

# twice TREE FILE...: names that stand in more than one of the files, each with all of them.  Attributes may stand
# before the name or before "static", the name on the next line.
twice() {
	(cd "$1" && shift && awk '
		FNR == 1 { head = "" }
		{ gsub(/__attribute__\(\([^()]*(\([^()]*\)[^()]*)*\)\) */, ""); $0 = head $0; head = "" }
		/^static [^=;(){}]*$/ { head = $0 " "; next }
		/^static [^=;(){}]*[ *][a-z_0-9]+\(/ {
			sub(/\(.*/, "")
			n = split($0, words, /[ *]+/)
			print words[n], FILENAME
		}' "$@") | grep -vE "^($slots) " | sort -u |
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
tee "$tree/a.c" >"$tree/b.c" <<-'END'
	static void init(void)
	static struct a *find_it(int x)
	static __attribute__((noinline, cold)) void drop_it(void)
	__attribute__((format(printf, 1, 2))) static void say_it(const char *how, ...)
	static inline struct a *
	make_it(int x)
END
[ "$(twice "$tree" a.c b.c)" = "$(printf '%s: a.c b.c\n' drop_it find_it make_it say_it)" ]
result $? "a name that two files have is found, wherever it stands"
exit "$bad"
