#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What siw does otherwise, as the table of docs/interop.md: the profile of sessctl conform, with the
# rules of its cases and what siw was seen to do (siw-seen.tsv, which conform-siw-* compare with).
# usage: profile-table.sh SESSCTL
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

profile() { # CASE<tab>WHAT
	sed -nE 's/^\t"(.*)";?$/\1/p' "$here/../../src/conform/profile/conform_siw.h" | tr -d '\n' |
		sed 's/\\n/\n/g' | sed 's/ /\t/'
}

echo '| case | rule | what siw does | seen |'
echo '|---|---|---|---|'
awk -F '\t' '
	FILENAME == ARGV[1] { ids[$1] = $5; next }
	FILENAME == ARGV[2] { seen[$1] = (seen[$1] ? seen[$1] ", or " : "") $2; next }
	{
		n = split(ids[$1], id, " ")
		rule = n ? id[1] : "?"
		for (i = 2; i <= n && i <= 3; i++)
			rule = rule " " id[i]
		if (n > 3)
			rule = rule " ..."
		what = seen[$1] ? seen[$1] : "?"
		gsub(/\*/, "...", what)
		print "| `" $1 "` | " rule " | " $2 " | " what " |"
	}' <("$1" conform --list) "$here/siw-seen.tsv" <(profile)
