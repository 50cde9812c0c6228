#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/interop.md against what is there: the tables of deviations, and every interop case.
# shellcheck source=/dev/null disable=SC2154,SC2034,SC2016 # variables of lib.bash, backquotes
. "$(dirname "$0")/lib.bash"
top=$(cd "$here/../.." && pwd)
page=$top/docs/interop.md
lab=$top/tests/interop

profile_in_page() { # PROFILE PEER
	"$lab/profile-table.sh" "$1" "$2" >table || return
	sed -n "/^| what $2 does |/,/^\$/p" "$page" | sed '/^$/d' >shown
	why="$(diff table shown | grep -m 1 '^[<>]') (tests/interop/profile-table.sh makes the table)"
	[ "$(wc -l <table)" -gt 10 ] && cmp -s table shown || return
	grep -o '`[a-z0-9-]*`' table | tr -d '`' | sort >"names_$1"
	"$SESSCTL" conform --list | awk -F '\t' '$5 != "" { print $1 }' | sort >cases
	why="without a rule: $(comm -23 "names_$1" cases)"
	[ -z "$(comm -23 "names_$1" cases)" ]
}

# The page names only what was seen.
profile_known() {
	cut -f 1 "$lab/siw-seen.tsv" | sort -u >evidence
	why="names: $(diff names_siw evidence | grep -m 1 '^[<>]')"
	cmp -s names_siw evidence
}

# Between backquotes in the page: a case, or a pattern of cases.
named() { # CASE
	local word
	while read -r word; do
		# shellcheck disable=SC2053 # a pattern
		[[ $1 == $word ]] && return
	done <words
	return 1
}

cases_in_page() {
	local name
	grep -o '`[a-z0-9*-]*`' "$page" | tr -d '`' | grep -x '[a-z0-9]*-.*' >words
	for name in $("$lab/run.sh" --list); do
		why="$name is not in docs/interop.md"
		named "$name" || return
	done
}

counts_in_page() {
	local all quick
	all=$("$lab/run.sh" --list | wc -l)
	quick=$("$lab/run.sh" --quick --list | wc -l)
	why="$all cases, $quick quick ones"
	grep -qF "There are $all cases." "$page" && grep -qF "the $quick cases of \`run.sh --quick\`" "$page"
}

test_case "docs/interop.md says how many cases there are" counts_in_page
test_case "docs/interop.md has siw's profile" profile_in_page siw siw
test_case "siw's profile and its evidence name the same cases" profile_known
test_case "docs/interop.md has usrsctp's profile" profile_in_page usrsctp usrsctp
test_case "docs/interop.md has the profile of Linux's SCTP" profile_in_page linux_sctp "Linux's SCTP"
test_case "docs/interop.md has every interop case" cases_in_page
finish
