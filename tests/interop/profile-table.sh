#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a peer does otherwise, as a table of docs/interop.md: a profile of sessctl conform, the cases together
# that have the same reason.
# usage: profile-table.sh siw|usrsctp|linux_sctp PEER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

echo "| what $2 does | cases |"
echo '|---|---|'
sed -nE 's/^\t"(.*)";?$/\1/p' "$here/../../src/conform/profile/conform_$1.h" | tr -d '\n' | sed 's/\\n/\n/g' |
	awk '{
		name = $1
		sub(/^[^ ]+ /, "")
		if (!($0 in names))
			order[++n] = $0
		names[$0] = names[$0] (names[$0] == "" ? "" : ", ") "`" name "`"
	}
	END {
		for (i = 1; i <= n; i++)
			print "| " order[i] " | " names[order[i]] " |"
	}'
