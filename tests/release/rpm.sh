#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Packages for RPM systems, from the tarball.  What the build needs is not looked up in RPM's data
# base, which a Debian machine does not have.
# usage: rpm.sh TARBALL DIRECTORY
set -eu
tarball=$(realpath "$1") out=$2
mkdir -p "$out/SOURCES" "$out/SPECS"
out=$(realpath "$out")
version=$(sed -E 's/.*ddpsess-(.*)\.tar\.gz/\1/' <<<"$tarball")
cp "$tarball" "$out/SOURCES"
tar -xOf "$tarball" "ddpsess-$version/rpm/ddpsess.spec.in" | sed "s/@VERSION@/$version/" >"$out/SPECS/ddpsess.spec"
rpmbuild --quiet --nodeps --define "_topdir $out" --define "debug_package %{nil}" \
	-ba "$out/SPECS/ddpsess.spec" >"$out/log" 2>&1 || { tail -n 40 "$out/log"; exit 1; }
find "$out/RPMS" "$out/SRPMS" -name '*.rpm' | sort
