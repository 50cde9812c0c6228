#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every citation leads somewhere: ids of rules cited in src/ and include/ have a row in
# tests/conformance/reqs, and a test or the reason why there is none in docs/conformance.md.
# Nothing cites notes that are not in this repository, nor a section without its document; and each source file that a
# comment names exists.  Then: that this check can fail.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

result() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok $2"
		return
	fi
	echo "not ok $2"
	failures=$((failures + 1))
	head -n 30 "$work/log"
}

# rows ROOT: every id that the tables have, ranges of report.awk's tables included
rows() {
	cut -f 1 "$1"/tests/conformance/reqs/*.tsv | grep -v '^#' | sort -u
}

# cited ROOT: "ID FILE:LINE"
cited() {
	(cd "$1" && grep -rnoE '\[?\b[0-9]{4}-[0-9]+(\.[0-9]+)*-d?[0-9]+\b' src include --include='*.[ch]') |
		sed -E 's/^([^:]*:[0-9]*):\[?(.*)$/\2 \1/' | sort
}

# without_row ROOT, without_test ROOT, notes ROOT: print what is wrong
without_row() {
	rows "$1" >"$work/rows"
	cited "$1" | awk 'NR == FNR { row[$1]; next } !($1 in row)' "$work/rows" -
}
without_test() {
	awk -F ' *[|] *' '/^\| [0-9]{4}-/ || /^\| [0-9][0-9][0-9][0-9]-/ {
		if ($6 ~ /passes|not testable|not done/) print $2 }' "$1/docs/conformance.md" | sort >"$work/told"
	cited "$1" | awk 'NR == FNR { told[$1]; next } !($1 in told)' "$work/told" -
}
notes() {
	(cd "$1" && grep -rnE '\b[Tt]rap [0-9]|\[[0-9]+\.[0-9]+\]|\b[Rr]eference,? (section )?[0-9]|\b(in|of) the reference\b' \
		src include tools examples tests --include='*.[ch]' --exclude-dir=cache)
}
# no_file ROOT: names of source files in comments of C that no file has; a system's header stands in <>
no_file() {
	# shellcheck disable=SC2016 # for awk
	(cd "$1" && find src include tools examples bench tests -name cache -prune -o -name '*.[ch]' -print | sort | tee "$work/files" | xargs awk '
		FNR == NR { # the first of them is the list
			for (name = $0; ; name = substr(name, index(name, "/") + 1)) {
				has[name]
				if (!index(name, "/"))
					next
			}
		}
		FNR == 1 { inside = 0 }
		{
			said = ""
			for (left = $0; ; inside = !inside) {
				at = index(left, inside ? "*/" : "/*")
				if (inside)
					said = said " " (at ? substr(left, 1, at - 1) : left)
				if (!at)
					break
				left = substr(left, at + 2)
			}
			gsub(/<[^<>]*>/, " ", said)
			n = split(said, word, /[^A-Za-z0-9_.\/\[\]-]+/)
			for (i = 1; i <= n; i++) {
				sub(/[.]+$/, "", word[i])
				if (word[i] !~ /^[a-z0-9_\/-]+[.]([ch]|\[ch\])$/)
					continue
				c = h = word[i]
				sub(/\[ch\]$/, "c", c)
				sub(/\[ch\]$/, "h", h)
				if (!(c in has) || !(h in has))
					print word[i], FILENAME ":" FNR
			}
		}' "$work/files")
}

without_row . >"$work/log"
[ ! -s "$work/log" ]
result $? "every id cited in src and include has a row"
without_test . >"$work/log"
[ ! -s "$work/log" ]
result $? "and a test, or the reason why there is none"
notes . >"$work/log"
[ ! -s "$work/log" ]
result $? "nothing cites notes that are not here"
no_file . >"$work/log" 2>&1
[ ! -s "$work/log" ] && [ "$(wc -l <"$work/files")" -gt 1000 ]
result $? "each source file that a comment names exists"
[ "$(cited . | wc -l)" -gt 100 ]
result $? "(ids were found)"

# A small tree with one breach of each kind.
tree=$work/tree
mkdir -p "$tree"/{src,include,tools,examples,bench,tests/conformance/reqs,docs}
printf '# id\n5040-1-1\tMUST\tx\ty\t-\n5040-1-2\tMUST\tx\ty\t-\n' >"$tree/tests/conformance/reqs/r.tsv"
# shellcheck disable=SC2016 # backquotes of Markdown
printf '| 5040-1-1 | MUST | y | `a::b` | passes |\n' >"$tree/docs/conformance.md"
printf '/* [5040-1-1] as in a.[ch], src/a.c and <b.h>.\n * v.c.h is a field.  */ int x = b.c;\n' >"$tree/src/a.c"
: >"$tree/src/a.h"
{ without_row "$tree"; without_test "$tree"; notes "$tree"; no_file "$tree"; } >"$work/log"
[ ! -s "$work/log" ]
result $? "a tree without a breach passes"
printf '/* [5040-1-2] */\n/* [5040-9-9] */\n/* trap 27 */\n/* (reference 5.7) */\n/* Reference 6.4 */\n/* why [4.7] */\n' >"$tree/src/b.c"
[ "$(without_row "$tree")" = "5040-9-9 src/b.c:2" ]
result $? "an id without a row is found"
[ "$(without_test "$tree")" = "5040-1-2 src/b.c:1
5040-9-9 src/b.c:2" ]
result $? "an id without a test is found"
[ "$(notes "$tree" | wc -l)" = 4 ]
result $? "a citation of notes is found"
printf '/* a.c,\n * e.h. */ int b; /* d.c and b.[ch], tools/a.c */\n' >"$tree/src/b.c"
[ "$(no_file "$tree" | xargs)" = "e.h src/b.c:2 d.c src/b.c:2 b.[ch] src/b.c:2 tools/a.c src/b.c:2" ]
result $? "a file that is not there is found"
exit $((failures > 0))
