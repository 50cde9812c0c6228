#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The bundle of make bundle as somebody gets it: unpacked in a folder with blanks, by a user with a strict umask,
# it runs rping within seconds, and it is the same when it is built once more.  One line a case.
# usage: run.sh DIRECTORY-WITH-BUNDLES
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
export LC_ALL=C
unset MAKEFLAGS MAKELEVEL
from=$(realpath "$1") rel=${1%/}
version=$(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' include/ddpsess/version.h)
tarball() { # ARCH
	echo "$from/ddpsess-$version-linux-$1.tar.gz"
}

for arch in x86_64 aarch64; do
	size=$(stat -c %s "$(tarball $arch)")
	[ "$size" -lt 5000000 ]
	result $? "$arch: less than 5 MB ($size octets)"
	tools/bundle/build.sh $arch "$rel/again" >"$work/log" 2>&1 && cmp "$(tarball $arch)" "$rel/again/$(basename "$(tarball $arch)")"
	result $? "$arch: the same octets when it is built again, in another folder" "$work/log"
	mkdir "$work/$arch"
	tar -xzf "$(tarball $arch)" -C "$work/$arch"
	at=$work/$arch/ddpsess
	files=$(find "$at/bin" "$at/lib" -type f)
	newest=$(xargs -n 1 $arch-linux-gnu-objdump -T <<<"$files" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
	[ "$(printf 'GLIBC_2.31\n%s\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.31 ]
	result $? "$arch: no symbol newer than glibc 2.31 ($newest)"
	needed=$(xargs -n 1 readelf -dW <<<"$files" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | tr '\n' ' ')
	! tr ' ' '\n' <<<"$needed" | grep -qvE '^(lib(c|dl|pthread)\.so\.[0-9]|ld-linux-.*|libibverbs\.so\.1|)$'
	result $? "$arch: nothing but libc is needed ($needed)"
done

# As a user who is not root, with nothing of the project in the way; the clock begins at the tarball.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
chmod a+x "$work"
mkdir -m 777 "$work/a b"
nobody=()
[ "$(id -u)" != 0 ] || nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
cp "$(tarball "$(uname -m)")" "$work/bundle.tar.gz"
chmod a+r "$work/bundle.tar.gz"
began=$(date +%s%N)
# shellcheck disable=SC2016 # for that shell
"${nobody[@]}" env HOME="$work/a b" XDG_RUNTIME_DIR= timeout 60 bash -c '
	umask 077 && cd "$1/a b" && tar -xzf ../bundle.tar.gz || exit
	for wire in tcp sctp; do
		for mode in preload soname; do
			run=(ddpsess/bin/sessctl run --transport $wire --mode $mode --retry 20 --)
			"${run[@]}" rping -s -a 127.0.0.1 -p "$2" -C 3 & server=$!
			"${run[@]}" rping -c -a 127.0.0.1 -p "$2" -C 3 -v && wait $server || exit
			[ "$wire$mode" != tcppreload ] || date +%s%N >first
		done
	done
	ddpsess/bin/sessctl run -- cat /sys/class/infiniband/ddp0/node_type' sh "$work" "$(free_port)" >"$work/out" 2>&1
status=$?
first=$((($(cat "$work/a b/first" || echo 0) - began) / 1000000))
[ $status = 0 ] && [ "$(grep -c 'ping data' "$work/out")" = 12 ] && grep -q 'RNIC' "$work/out"
result $? "in a folder with blanks, with umask 077: rping over both wires, in both modes, and the view" "$work/out"
[ "$first" -gt 0 ] && [ "$first" -lt 10000 ]
result $? "from the tarball to the end of rping in less than 10 s ($first ms)"

# With the C library and the programs of the oldest system it is for, by their own loader; and on the other
# processor, emulated.
programs=(libc6 libgcc-s1 rdmacm-utils libibverbs1 librdmacm1 libnl-3-200 libnl-route-3-200)
for system in amd64/x86_64 arm64/aarch64; do
	arch=${system#*/}
	if ! tools/bundle/sysroot.sh "${SUITE:-bullseye}" "${system%/*}" "build/cache/programs-$arch" "${programs[@]}" >"$work/log" 2>&1; then
		result 1 "$arch: programs of an older system" "$work/log"
		continue
	fi
	guest=$PWD/build/cache/programs-$arch/root
	if [ "$arch" = x86_64 ]; then
		foreign=("$guest/lib64/ld-linux-x86-64.so.2" --library-path "$guest/lib/$arch-linux-gnu:$guest/usr/lib/$arch-linux-gnu")
	else
		foreign=("qemu-$arch" -L "$guest")
	fi
	timeout 100 "${foreign[@]}" "$work/$arch/ddpsess/bin/sessctl" conform --self tcp --case 'mpa-crc-*' >"$work/out" 2>&1
	result $? "$arch, older libc: sessctl talks to itself" "$work/out"
	[ "$arch" = x86_64 ] || foreign+=(-E "LD_PRELOAD=$work/$arch/ddpsess/lib/libddpsess-verbs.so")
	[ "$arch" != x86_64 ] || foreign+=(--preload "$work/$arch/ddpsess/lib/libddpsess-verbs.so")
	for wire in tcp sctp; do
		export DDPSESS_TRANSPORT=$wire DDPSESS_RETRY_MS=20000
		port=$(free_port)
		timeout 60 "${foreign[@]}" "$guest/usr/bin/rping" -s -a 127.0.0.1 -p "$port" -C 3 >"$work/server" 2>&1 &
		server=$!
		timeout 60 "${foreign[@]}" "$guest/usr/bin/rping" -c -a 127.0.0.1 -p "$port" -C 3 -v >"$work/out" 2>&1
		client=$?
		wait $server
		server=$?
		[ $client = 0 ] && [ $server = 0 ] && [ "$(grep -c 'ping data' "$work/out")" = 3 ]
		result $? "$arch, older libc: rping over $wire ($client, $server)" "$work/out"
	done
done
