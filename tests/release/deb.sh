#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian packages from the tarball and debian/, built twice in folders of different names: the same
# octets each time, hardened (blhc), without a complaint of lintian.
# usage: deb.sh TARBALL DIRECTORY [--once]
set -eu
cd "$(dirname "$0")/../.."
tarball=$(realpath "$1") out=$2 once=${3:-}
rm -rf "$out"
mkdir -p "$out"
out=$(realpath "$out")
# debhelper fails in a folder with a space in its name, and this one may be
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -E 's/.*ddpsess-(.*)\.tar\.gz/\1/' <<<"$tarball")
bad=0

check() { # NAME COMMAND...
	if "${@:2}"; then echo "ok $1"; else
		echo "not ok $1"
		bad=1
	fi
}

said=$(dpkg-parsechangelog -SVersion -l debian/changelog)
check "debian/changelog is of version $version" [ "${said%-*}" = "$version" ]
check "CHANGELOG.md is of version $version" grep -q "^## $version" CHANGELOG.md

build() { # DIRECTORY
	rm -rf "$1"
	mkdir -p "$1"
	cp "$tarball" "$1/ddpsess_$version.orig.tar.gz"
	tar -xf "$tarball" -C "$1"
	git archive HEAD debian | tar -x -C "$1/ddpsess-$version"
	(cd "$1/ddpsess-$version" && env -u CCACHE_BASEDIR -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -F) \
		>"$out/log" 2>&1 || { tail -n 40 "$out/log"; return 1; }
}

check dpkg-buildpackage build "$work/one"
# src/view takes the place of functions that fortified headers would redirect, so it does without
check "compiled with hardening" blhc --all --ignore-line '.*src/view/.*' "$out/log"
check lintian lintian --allow-root --pedantic --fail-on error,warning,info,pedantic "$work"/one/*.changes
if [ "$once" != --once ]; then
	build "$work/another/folder"
	for d in "$work"/one/*.deb; do
		check "the same octets elsewhere: $(basename "$d")" cmp "$d" "$work/another/folder/$(basename "$d")"
	done
fi
find "$work/one" -maxdepth 1 -type f -exec cp -t "$out" {} +
exit $bad
