#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The OCI image of the bundles in DIRECTORY, with the C library of Debian 12 and its security updates:
# DIRECTORY/ddpsess-VERSION-oci.tar.  The library stays in build/cache: without that folder a newer one is fetched.
# usage: image.sh DIRECTORY
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' include/ddpsess/version.h)
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
parts=()
for a in amd64/x86_64 arm64/aarch64; do
	libc=build/cache/libc-${a%/*}
	SECURITY=${SECURITY:-yes} tools/bundle/sysroot.sh bookworm "${a%/*}" "$libc" libc6
	parts+=("${a%/*}" "$1/ddpsess-$version-linux-${a#*/}.tar.gz" "$libc/root" "$1/obj-${a#*/}/copy")
done
out=$1/ddpsess-$version-oci.tar
python3 tools/bundle/image.py "$version" "$when" "$out" "${parts[@]}"
echo "$out: $(($(stat -c %s "$out") / 1024)) KiB, with $(zcat "$libc/root/usr/share/doc/libc6/changelog.Debian.gz" |
	head -n 1 | cut -d ';' -f 1)"
