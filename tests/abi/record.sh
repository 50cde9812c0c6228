#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Write down the ABI of the release that is being made: headers and what abidw says of the
# libraries.  Once the release has its tag its record stays; what later ones change has to be
# accepted: docs/abi.md.
# usage: record.sh BUILD              the record of this release, before its tag
#        record.sh BUILD --accept     the changes since the last record's release
set -eu
cd "$(dirname "$0")/../.."
build=$1
abi_work=$(mktemp -d)
trap 'rm -rf "$abi_work"' EXIT
# shellcheck source=tests/abi/lib.bash
. tests/abi/lib.bash

if [ "${2:-}" = --accept ]; then
	for record in tests/abi/[0-9]*/; do
		for lib in $abi_libs; do
			abi_changes "$record$lib.abi" include "$build/$lib.so" >"$record$lib.changes"
		done
	done
	exit
fi
release=$(sed -n 's/.*VERSION_STRING "\([0-9]*\.[0-9]*\)\..*/\1/p' include/ddpsess/version.h)
to=tests/abi/$release
if git rev-parse -q --verify "refs/tags/v$release.0" >/dev/null 2>&1; then
	echo "record.sh: $release is released, its record stays; see docs/abi.md" >&2
	exit 1
fi
mkdir -p "$to"
rm -rf "$to/include"
cp -r include "$to/include"
for lib in $abi_libs; do
	abi_dump include "$build/$lib.so" >"$to/$lib.abi"
	: >"$to/$lib.changes"
done
