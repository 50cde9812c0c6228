#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Packages of a release of Debian for one processor, unpacked in a folder of its own and not installed:
# what is there is not fetched again.  The mirror is that of apt here.
# With SECURITY=yes they have the security updates, too: for what is not only linked with, but shipped.
# usage: [SECURITY=yes] sysroot.sh SUITE amd64|arm64 DIRECTORY PACKAGE...
set -eu
suite=$1 arch=$2
mkdir -p "$3"
at=$(realpath "$3")
shift 3
security=${SECURITY:-no}
[ "$suite $security $*" != "$(cat "$at/done" 2>/dev/null)" ] || exit 0
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck disable=SC2016 # apt expands it
mirrors() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Label: $1" | sort -u | head -n 1; }
mirror=$(mirrors Debian) updates=
[ "$security" = no ] || updates=$(mirrors Debian-Security)
if [ "$security" != no ] && [ -z "$updates" ]; then
	echo "sysroot.sh: apt has no mirror of Debian's security updates here; SECURITY=no does without them" >&2
	exit 1
fi
if [ -z "$mirror" ] || ! [ -e "$keyring" ]; then
	echo "sysroot.sh: apt has no mirror of Debian here, or debian-archive-keyring is not installed" >&2
	exit 1
fi
rm -rf "$at"
mkdir -p "$at/lists/partial" "$at/cache/archives/partial" "$at/debs" "$at/root" "$at/none"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$at/sources"
[ -z "$updates" ] || echo "deb [signed-by=$keyring] $updates $suite-security main" >>"$at/sources"
: >"$at/status"
# apt reads blanks in a name as its end unless the settings are in a file
cat >"$at/conf" <<CONF
APT::Architecture "$arch";
APT::Architectures "$arch";
APT::Sandbox::User "root";
Acquire::Check-Valid-Until "false";
Dir::State "$at";
Dir::State::Lists "$at/lists";
Dir::State::status "$at/status";
Dir::Cache "$at/cache";
Dir::Etc::SourceList "$at/sources";
Dir::Etc::SourceParts "$at/none";
CONF
export APT_CONFIG=$at/conf
if ! { apt-get -qq update && cd "$at/debs" && apt-get -qq download "$@"; }; then
	echo "sysroot.sh: apt's mirror does not have all of these packages of '$suite' for $arch: $*" >&2
	exit 1
fi
for deb in *.deb; do
	dpkg-deb -x "$deb" "$at/root"
done
# Links from the root are meant within this one.
find "$at/root" -type l -lname '/*' -printf '%l\t%p\n' | while IFS=$'\t' read -r to link; do
	ln -sfn -r "$at/root$to" "$link"
done
rm -rf "$at/lists" "$at/cache" "$at/debs"
echo "$suite $security $*" >"$at/done"
