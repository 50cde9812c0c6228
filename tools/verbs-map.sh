#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The drop-in under the names of libibverbs and librdmacm needs their version nodes, one of which
# (IBVERBS_PRIVATE_nn) moves with the release of rdma-core: they are read from the installed ones.
# usage: verbs-map.sh DROP-IN LIBIBVERBS LIBRDMACM DIRECTORY
#
# Writes verbs.map (the symbols of both libraries), rdmacm.map (nodes without symbols) and missing.c:
# what the drop-in does not have, but programs and vendor libraries want at load.  Such a function
# fails with EOPNOTSUPP; vendors' registration of drivers for kernel devices does nothing.
set -eu
drop=$1 verbs=$2 rdmacm=$3 dir=$4
export LC_ALL=C

symbols() { # LIBRARY: lines of NAME NODE KIND SIZE, defaults only
	readelf -W --dyn-syms "$1" | awk '$7 != "UND" && $8 ~ /@@/ {
		split($8, part, "@@")
		print part[1], part[2], $4, $3
	}' | sort -u
}

nodes() { # FILE of symbols: one version node for each that occurs
	awk '{ names[$2] = names[$2] "\t\t" $1 ";\n" }
		END { for (n in names) printf "%s {\n\tglobal:\n%s};\n", n, names[n] }' "$1"
}

stub() { # NAME KIND SIZE
	case $2,$1 in
	OBJECT,*) echo "VISIBLE char $1[$3];" ;;
	*,verbs_register_driver_* | *,ibv_register_driver) echo "VISIBLE void $1(void) {}" ;;
	*,ibv_import_*) echo "VISIBLE void *$1(void) { errno = EOPNOTSUPP; return NULL; }" ;;
	*,ibv_*) echo "VISIBLE int $1(void) { return errno = EOPNOTSUPP; }" ;;
	*) echo "VISIBLE int $1(void) { errno = EOPNOTSUPP; return -1; }" ;;
	esac
}

mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
symbols "$verbs" >"$work/verbs"
symbols "$rdmacm" >"$work/rdmacm"
if ! [ -s "$work/verbs" ] || ! [ -s "$work/rdmacm" ]; then
	echo "verbs-map.sh: no versioned symbols in $verbs or $rdmacm" >&2
	exit 1
fi
nm -D --defined-only "$drop" | awk '{ print $3 }' | sort -u >"$work/ours"
cat "$work/verbs" "$work/rdmacm" >"$work/all"
nodes "$work/all" >"$dir/verbs.map"
echo 'DDPSESS_VERBS { local: *; };' >>"$dir/verbs.map"
awk '{ print $2 }' "$work/rdmacm" | sort -u | sed 's/$/ { };/' >"$dir/rdmacm.map"
{
	echo '#include <errno.h>'
	echo '#include <stddef.h>'
	echo '#define VISIBLE __attribute__((visibility("default")))'
	while read -r name node kind size; do
		# a node's own name is a symbol too
		[ "$name" = "$node" ] || grep -qxF "$name" "$work/ours" || stub "$name" "$kind" "$size"
	done <"$work/all"
} >"$dir/missing.c"
