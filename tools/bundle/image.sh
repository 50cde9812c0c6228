#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The OCI image of the bundles in DIRECTORY, with the C library of Debian 12: DIRECTORY/ddpsess-VERSION-oci.tar
# usage: image.sh DIRECTORY
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' include/ddpsess/version.h)
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
parts=()
for a in amd64/x86_64 arm64/aarch64; do
	libc=build/cache/libc-${a%/*}
	tools/bundle/sysroot.sh bookworm "${a%/*}" "$libc" libc6
	parts+=("${a%/*}" "$1/ddpsess-$version-linux-${a#*/}.tar.gz" "$libc/root" "$1/obj-${a#*/}/copy")
done
out=$1/ddpsess-$version-oci.tar
python3 tools/bundle/image.py "$version" "$when" "$out" "${parts[@]}"
echo "$out: $(($(stat -c %s "$out") / 1024)) KiB"
