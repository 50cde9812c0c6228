#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A new Debian with what every Debian has, git and make, in a folder; a copy of it and what apt downloads are kept.
# usage: root.sh SUITE DIRECTORY	makes DIRECTORY/SUITE, as root
set -eu
suite=$1
[ "$(id -u)" = 0 ] || { echo "root.sh: only root can make a root folder" >&2; exit 2; }
mkdir -p "$2/archives-$suite/partial"
at=$(realpath "$2")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck disable=SC2016 # apt expands it
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sort -u | head -n 1)
[ -n "$mirror" ] || { echo "root.sh: apt knows no mirror of Debian here" >&2; exit 2; }
if [ ! -e "$at/$suite.tar" ]; then
	mmdebstrap --quiet --format=tar --variant=minbase --include=git,make,ca-certificates --keyring="$keyring" "$suite" "$at/$suite.tar.new" \
		"deb $mirror $suite main" >"$at/$suite.log" 2>&1 || {
		echo "root.sh: no root of Debian '$suite' from apt's mirror:" >&2
		tail -n 5 "$at/$suite.log" >&2
		exit 1
	}
	mv "$at/$suite.tar.new" "$at/$suite.tar"
fi
rm -rf "${at:?}/$suite"
mkdir "$at/$suite"
tar -xf "$at/$suite.tar" -C "$at/$suite" --exclude='./dev/*'
cp /etc/resolv.conf "$at/$suite/etc/resolv.conf"
echo 'Binary::apt-get::APT::Keep-Downloaded-Packages "true"; APT::Keep-Downloaded-Packages "true";' \
	>"$at/$suite/etc/apt/apt.conf.d/99keep"
[ ! -e /etc/apt/auth.conf.d ] || cp -r /etc/apt/auth.conf.d "$at/$suite/etc/apt"
