#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The maker of the image, with a bundle and a C library that are not real: tests/bundle has the real ones.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash

mkdir -p "$work/ddpsess/bin" "$work/libc/lib/x86_64-linux-gnu" "$work/libc/lib64" "$work/libc/usr/share/doc/libc6"
touch "$work/libc/lib/x86_64-linux-gnu"/{libc.so.6,libdl.so.2,libpthread.so.0} "$work/libc/lib64/ld-linux-x86-64.so.2" \
	"$work/libc/usr/share/doc/libc6/copyright" "$work/copy"
echo program >"$work/ddpsess/bin/sessctl"
ln -s sessctl "$work/ddpsess/bin/other"
ln "$work/ddpsess/bin/sessctl" "$work/ddpsess/bin/same"
tar -C "$work" -czf "$work/bundle.tar.gz" ddpsess

# image GROUP...: writes $work/image.tar
image() {
	python3 tools/bundle/image.py 1.0 0 "$work/image.tar" "$@" >"$work/log" 2>&1
}
group=(amd64 "$work/bundle.tar.gz" "$work/libc" "$work/copy")

image "${group[@]}" && mkdir "$work/layout" "$work/root" && tar -C "$work/layout" -xf "$work/image.tar" &&
	for blob in "$work"/layout/blobs/sha256/*; do
		if gzip -t "$blob" 2>/dev/null; then
			tar -C "$work/root" -xzf "$blob" || break
		fi
	done
[ "$(readlink "$work/root/ddpsess/bin/other")" = sessctl ] && [ "$(cat "$work/root/ddpsess/bin/same")" = program ] &&
	[ "$work/root/ddpsess/bin/same" -ef "$work/root/ddpsess/bin/sessctl" ]
result $? "links of the bundle are links in the image" "$work/log"

! image "${group[@]}" arm64 "$work/bundle.tar.gz" && grep -q "four arguments" "$work/log"
result $? "a processor that lacks an argument is no image that lacks a processor" "$work/log"

mkfifo "$work/ddpsess/bin/pipe"
tar -C "$work" -czf "$work/bundle.tar.gz" ddpsess
! image "${group[@]}" && grep -q "ddpsess/bin/pipe: neither" "$work/log"
result $? "what an image cannot have is refused" "$work/log"
