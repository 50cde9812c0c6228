#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Write down the ABI of the release that is being made: headers, a program, and what abidw says of the
# libraries.  Once the release has its tag its record stays; what later ones change has to be
# accepted: docs/abi.md.
# usage: record.sh BUILD              the record of this release, before its tag: make release
#        record.sh BUILD --accept     the changes since the recorded releases
set -eu
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
abi_work=$(mktemp -d)
trap 'rm -rf "$abi_work"' EXIT
# shellcheck source=tests/abi/lib.bash
. tests/abi/lib.bash

if [ "${2:-}" = --accept ]; then
	for record in tests/abi/[0-9]*/; do
		[ -d "$record" ] || {
			echo "record.sh: no release is recorded yet, so nothing has to be accepted" >&2
			exit 1
		}
		for lib in $abi_libs; do
			abi_changes "$record$lib.abi" include "$build/$lib.so" >"$record$lib.changes"
		done
	done
	exit
fi
release=$(abi_release)
if git rev-parse -q --verify "refs/tags/v$release.0" >/dev/null 2>&1; then
	echo "record.sh: $release is released, its record stays; see docs/abi.md" >&2
	exit 1
fi
abi_record "tests/abi/$release" "$build"
echo "tests/abi/$release"
