#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The drop-in has what the installed libibverbs and librdmacm export: a function of theirs that it
# lacked would run on objects that are not theirs (attack 19).  One line a case.
# usage: exports.sh BUILD
set -u
build=$1
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

library() { # NAME: the installed one
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

exports() { # LIBRARY: NAME@NODE, defaults only, nodes' own names left out
	readelf -W --dyn-syms "$1" | awk '$7 != "UND" && $8 ~ /@@/ { sub("@@", "@", $8); print $8 }' |
		awk -F@ '$1 != $2' | sort -u
}

none_of() { # CASE FILE-OF-MISSING FILE-OF-ALL
	local n
	n=$(wc -l <"$3")
	if [ "$n" -lt 20 ]; then
		echo "not ok $1: only $n names to compare" && bad=1
	elif [ -s "$2" ]; then
		echo "not ok $1: missing: $(tr '\n' ' ' <"$2")" && bad=1
	else
		echo "ok $1, $n of $n"
	fi
}

# Also without one of ours, which has to be found.
compare() { # CASE
	local gone
	comm -23 "$work/real" "$work/ours" >"$work/missing"
	none_of "$1" "$work/missing" "$work/real"
	gone=$(comm -12 "$work/real" "$work/ours" | tail -n 1)
	[ "$(comm -23 "$work/real" <(grep -vxF -- "$gone" "$work/ours"))" = "$gone" ] ||
		{ echo "not ok $1: nobody notices that $gone is left out" && bad=1; }
}

# Not asked for: rsockets, which are librdmacm's own code and use the drop-in as programs do; the
# node of rdma-core's own drivers, which programs do not see; conversions of the kernel's structs.
preloaded() { # LIBRARY
	exports "$(library "$1")" | grep -v '@IBVERBS_PRIVATE_' | cut -d@ -f1 |
		grep -Ev '^r[^d]|^rd[^m]|^ibv_copy_.*_kern$' | sort >"$work/real"
	nm -D --defined-only "$build/libddpsess-verbs.so" | awk '{ print $3 }' | sort -u >"$work/ours"
	compare "attack_19 preloaded: $1"
}

# There is no other library behind it here: all names, in their nodes.
by_soname() { # LIBRARY
	exports "$(library "$1")" >"$work/real"
	exports "$build/ddpsess/verbs/libibverbs.so.1" >"$work/ours"
	compare "attack_19 by soname: $1"
}

for l in libibverbs.so.1 librdmacm.so.1; do
	preloaded "$l"
	by_soname "$l"
done
exit $bad
