#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Words that make pages, manuals, headers and comments hard to read do not come back:
# tests/package/words.tsv.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
table=$PWD/tests/package/words.tsv
# docs/conformance.md and docs/peers.md are made from tables of rules
mapfile -t files < <(git ls-files '*.md' 'docs/guides/*.md' 'man/*.scd' 'include/ddpsess/*.h' |
	grep -vE '^(docs/(conformance|peers)\.md|tests/|bench/)' | grep -vxFf <(sed -n 's/^skip\t//p' "$table"))

# strange FILE...: lines with such a word that the table does not allow
strange() {
	local pattern instead
	while IFS=$'\t' read -r kind pattern instead; do
		[ "$kind" = word ] || continue
		grep -niHE -- "$pattern" "$@" | sed "s|\$| (rather: $instead)|"
	done <"$table" | sort -u >"$work/hits"
	sed -n 's/^allow\t//p' "$table" >"$work/allowed"
	grep -vF -f "$work/allowed" "$work/hits"
}

# comments FILE...: what of sources is comment, line for line, in files that strange() can read
comments() {
	mkdir -p "$work/comments"
	awk -v to="$work/comments/" 'FNR == 1 { close(at); inside = 0; at = FILENAME; gsub("/", "!", at); at = to at }
	{
		text = ""
		for (rest = $0; rest != "";) {
			i = index(rest, inside ? "*/" : "/*")
			if (inside)
				text = text (i ? substr(rest, 1, i + 1) : rest)
			rest = i ? substr(rest, i + 2) : ""
			inside = i ? !inside : inside
		}
		print text >at
	}' "$@"
}

strange "${files[@]}" >"$work/log"
[ ! -s "$work/log" ]
result $? "pages, manuals and headers are in common words" "$work/log"
printf 'Both start at once.\nIt is for who reads.\nPeers are told of it.\nWho asks, gets.\n' >"$work/page"
[ "$(strange "$work/page" | cut -d : -f 2 | sort -u | wc -l)" = 4 ] && [ "${#files[@]}" -gt 40 ]
result $? "such words are found"

mapfile -t sources < <(git ls-files 'src/*.[ch]' 'tools/*.[ch]' 'examples/*.[ch]' 'bench/*.[ch]')
comments "${sources[@]}"
(cd "$work/comments" && strange ./*) | tr "!" / >"$work/log"
[ ! -s "$work/log" ]
result $? "comments are in common words" "$work/log"
printf 'int told; /* it is told\n * at once */ char *s = "is told";\n' >"$work/odd.c"
rm -r "$work/comments" && comments "$work/odd.c"
[ "$(strange "$work"/comments/* | wc -l)" = 2 ]
result $? "such words are found in comments, and only there"
