#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Which peer keeps which rule, and how well: docs/peers.md from tests/conformance/peers/*.tsv.
# usage: peers.sh SESSCTL [--write]		the page, to standard output or to its place
#        peers.sh --take NAME FILE...		the lines of sessctl conform --json become NAME.tsv
#        peers.sh --check SESSCTL		the tables, the page and the profiles agree
set -u
LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
here=tests/conformance/peers page=docs/peers.md

# A line a peer: its table, what it is, its profile, and how its table was made.
peers() {
	cat <<-'END'
		ours	this version	-	`make conformance`
		siw-5.10	Linux 5.10, soft-iWARP	-	`LAB_SUITE=bullseye make interop`, the same cases
		siw	Linux 6.1, soft-iWARP	siw	`make interop`, cases `conform-siw-*`
		siw-6.12	Linux 6.12, soft-iWARP	-	`LAB_SUITE=trixie make interop`, the same cases
		usrsctp	usrsctp 0.9.5, SCTP in UDP	usrsctp	`make conform-usrsctp`
		linux-sctp	Linux 6.1, SCTP of the kernel	linux-sctp	`make interop`, cases `conform-sctp-*`
		linux-ib_ipoib	Linux 6.1, ib_ipoib and ib_cm	linux-ib_ipoib	`make interop-ipoib`, case `conform`
	END
}

# CASE, GRADE, and what is known of it: a case of two wires or roles has the worse of its grades.
take() { # FILE...
	sed -n 's/^{"event":"case","case":"\([^"]*\)".*"grade":"\([^"]*\)"/\1\t\2\t/p' "$@" |
		sed 's/\t,.*"known":"\([^"]*\)".*/\t\1/; s/\t[,}].*/\t/' |
		awk -F '\t' 'BEGIN { n = split("strict passes harmless fails", g, " ")
				for (i = 1; i <= n; i++) rank[g[i]] = i }
			!($1 in r) || rank[$2] > r[$1] { r[$1] = rank[$2]; what[$1] = $3 }
			END { for (c in r) print c "\t" g[r[c]] "\t" what[c] }' | sort
}

counts() { # NAME
	awk -F '\t' '{ n[$2]++ } END { printf "%d | %d | %d | %d | %d", NR, n["strict"], n["passes"],
		n["harmless"], n["fails"] }' "$here/$1.tsv"
}

summary() {
	echo '| peer | what it is | cases | strict | passes | harmless | fails | made by |'
	echo '|---|---|---|---|---|---|---|---|'
	while IFS=$'\t' read -r name what _ how; do
		[ ! -e "$here/$name.tsv" ] || echo "| $name | $what | $(counts "$name") | $how |"
	done < <(peers)
}

# One table: the cases of a list that any of the peers ran and not all did strictly, in the order of the
# list; below it those that all did strictly, by who ran them.
matrix() { # LIST PEER...
	local list=$1 p there=()
	shift
	for p; do [ ! -s "$here/$p.tsv" ] || there+=("$p"); done
	set -- "${there[@]}"
	printf '| case | rule |'
	printf ' %s |' "$@"
	printf '\n|---|---|'
	for p; do printf -- '---|'; done
	echo
	local names="$*"
	for p; do set -- "$@" "$here/$p.tsv"; done
	shift $(($# / 2))
	awk -F '\t' -v names="$names" '
		BEGIN { split(names, name, " ") }
		FILENAME == ARGV[1] { order[++n] = $1; ids[$1] = $2; next }
		FNR == 1 { peer++ }
		{ got[$1, peer] = $2; any[$1] = 1 }
		END {
			for (i = 1; i <= n; i++) {
				if (!((c = order[i]) in any))
					continue
				split(ids[c], id, " ")
				line = "| `" c "` | " id[1] " |"
				who = ""
				other = 0
				for (p = 1; p <= peer; p++) {
					line = line " " ((c, p) in got ? got[c, p] : "-") " |"
					if ((c, p) in got) {
						who = who (who == "" ? "" : ", ") name[p]
						other += got[c, p] != "strict"
					}
				}
				if (other) {
					print line
					continue
				}
				if (!(who in all))
					group[++groups] = who
				wide[who] += length(c) + 4
				all[who] = all[who] (all[who] == "" ? "" : wide[who] > 110 ? ",\n" : ", ") "`" c "`"
				if (wide[who] > 110)
					wide[who] = length(c) + 4
			}
			for (g = 1; g <= groups; g++)
				printf "\nStrict with %s:\n\n%s.\n", group[g], all[group[g]]
		}' "$list" "$@"
}

make_page() { # SESSCTL
	local tmp
	tmp=$(mktemp -d) || exit
	"$1" conform --list | cut -f 1,5 >"$tmp/all"
	grep -v '^assoc-' "$tmp/all" >"$tmp/iwarp"
	grep '^assoc-' "$tmp/all" >"$tmp/assoc"
	"$1" ipoib conform --list | cut -f 1,2 >"$tmp/ib"
	cat "$here/head.md"
	summary
	printf '\n## iWARP\n\n'
	matrix "$tmp/iwarp" ours siw-5.10 siw siw-6.12
	printf '\n## SCTP itself\n\n'
	matrix "$tmp/assoc" ours usrsctp linux-sctp
	printf '\n## IP over InfiniBand\n\n'
	matrix "$tmp/ib" ours linux-ib_ipoib
	rm -rf "$tmp"
}

# CASE, GRADE ("-": none is given), and what the peer does, of the profile that is built in.
profile() { # NAME
	local name=${1#linux-ib_}
	case $1 in linux-*) name=linux_${name#linux-} ;; esac
	sed -nE 's/^\t"(.*)";?$/\1/p' "src/conform/profile/conform_$name.h" | tr -d '\n' |
		sed 's/\\n/\n/g' |
		awk '{ c = $1; g = "-"; sub(/^[^ ]+ /, "")
			if ($1 == "passes:" || $1 == "harmless:") { g = substr($1, 1, length($1) - 1); sub(/^[^ ]+ /, "") }
			print c "\t" g "\t" $0 }'
}

# What a profile says and its table does not show, or the other way round.  "may" in a profile: not in
# each run.
differ() { # NAME
	profile "$1" | awk -F '\t' '
		FILENAME == "-" { p[$1] = $2; may[$1] = $3 ~ /^may /; next }
		{ t[$1] = $2 }
		END {
			for (c in p)
				if (!may[c] && (!(c in t) || t[c] == "strict"))
					print c " is in the profile, and not seen"
				else if ((c in t) && t[c] != "strict" && p[c] != "-" && p[c] != t[c])
					print c " is " p[c] " in the profile, and was " t[c]
			for (c in t)
				if (t[c] != "strict" && !(c in p))
					print c " is " t[c] ", and not in the profile"
		}' - "$here/$1.tsv"
}

verify() { # SESSCTL
	local bad=0 name prof said
	while IFS=$'\t' read -r name _ prof _; do
		said=
		[ -s "$here/$name.tsv" ] || continue # nobody has asked it yet, and the page does not have it
		[ "$prof" = - ] || said=$(differ "$prof")
		[ -z "$said" ] || { echo "not ok peer $name: $said" && bad=1; }
	done < <(peers)
	said=$({ "$1" conform --list && "$1" ipoib conform --list; } | cut -f 1 | sort -u |
		comm -13 - <(cut -f 1 "$here"/*.tsv | sort -u))
	[ -z "$said" ] || { echo "not ok a peer has cases that there are not: $said" && bad=1; }
	if ! make_page "$1" | cmp -s - "$page"; then
		echo "not ok $page is not what the tables of $here say (peers.sh SESSCTL --write makes it)"
		bad=1
	fi
	[ "$bad" != 0 ] || echo "ok $page says what was seen of each peer, and so do the profiles"
	return "$bad"
}

case ${1-} in
--check)
	verify "$2"
	;;
--take)
	name=$2
	shift 2
	take "$@" >"$here/$name.tsv.new"
	[ -s "$here/$name.tsv.new" ] || { echo "peers.sh: no cases in $*" >&2 && exit 1; }
	mv "$here/$name.tsv.new" "$here/$name.tsv"
	;;
*)
	if [ "${2-}" = --write ]; then
		make_page "$1" >"$page.new" && mv "$page.new" "$page"
	else
		make_page "$1"
	fi
	;;
esac
