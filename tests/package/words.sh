#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Words that make pages, manuals, headers, comments and names of tests hard to read do not come back:
# tests/package/words.tsv.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
table=$PWD/tests/package/words.tsv
# docs/conformance.md and docs/peers.md are made from tables of rules
mapfile -t files < <(git ls-files '*.md' 'docs/guides/*.md' 'man/*.scd' 'include/ddpsess/*.h' |
	grep -vE '^(docs/(conformance|peers)\.md|tests/|bench/)' | grep -vxFf <(sed -n 's/^skip\t//p' "$table"))

# strange FILE...: lines with such a word that the table does not allow; with KIND=name: with such a name
strange() {
	local kind pattern instead
	while IFS=$'\t' read -r kind pattern instead; do
		[ "$kind" = "${KIND:-word}" ] || continue
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

# names FILE...: of tests, with spaces
names() {
	sed -nE 's/^(Test|VT_TEST|VT_TLS_TEST)\(\w+, (\w+).*/\2/p' "$@" | tr _ " "
}

# hashes FILE...: what is comment in scripts, like comments()
hashes() {
	mkdir -p "$work/comments"
	awk -v to="$work/comments/" 'FNR == 1 { close(at); at = FILENAME; gsub("/", "!", at); at = to at }
	{ print match($0, /(^|[ \t])# .*/) ? substr($0, RSTART) : "" >at }' "$@"
}

# Headers of earlier releases stay as they were.
mapfile -t sources < <(git ls-files {src,tools,examples,bench,tests}/'*.[ch]' ':!tests/abi')
mapfile -t scripts < <(git ls-files tests/'*.'{sh,bash,py} ':!tests/package/words.sh')
comments "${sources[@]}"
hashes "${scripts[@]}"
(cd "$work/comments" && strange ./*) | tr "!" / >"$work/log"
[ ! -s "$work/log" ]
result $? "comments are in common words" "$work/log"
printf 'int told; /* it is told\n * at once */ char *s = "is told";\n' >"$work/odd.c"
rm -r "$work/comments" && comments "$work/odd.c"
[ "$(strange "$work"/comments/* | wc -l)" = 2 ]
result $? "such words are found in comments, and only there"
printf "ask 'is told' # it is told\n" >"$work/odd.sh"
rm -r "$work/comments" && hashes "$work/odd.sh"
[ "$(strange "$work"/comments/* | wc -l)" = 1 ]
result $? "such words are found in comments of scripts"

mapfile -t sources < <(git ls-files 'tests/*.c')
names "${sources[@]}" >"$work/names"
strange "$work/names" >"$work/log"
[ ! -s "$work/log" ] && [ "$(wc -l <"$work/names")" -gt 3000 ]
result $? "tests have names in common words" "$work/log"
printf 'Test(a, it_is_told)\nVT_TEST(b, who_is_there)\n' >"$work/odd.c"
names "$work/odd.c" >"$work/names"
[ "$(strange "$work/names")" = "$work/names:1:it is told (rather: reported, informed, printed)" ]
result $? "such words are found in names of tests"

mapfile -t sources < <(git ls-files {src,tools,include}/'*.'{c,h,map,sh,bash,awk,py,txt})
KIND=name strange "${sources[@]}" >"$work/log"
[ ! -s "$work/log" ] && [ "${#sources[@]}" -gt 400 ]
result $? "sources have names in common words" "$work/log"
printf 'int be_hushed;\nint Doomed;\nint brothers;\nint wait_beside(void);\nbool at_once; /* besides */\nint flush_that_once;\n' \
	>"$work/odd.c"
[ "$(KIND=name strange "$work/odd.c" | cut -d : -f 2 | sort -u | tr '\n' ' ')" = "1 2 3 4 5 " ]
result $? "such names are found"
