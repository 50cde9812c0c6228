#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Make the lab's guest from Debian packages: kernel, soft-iWARP modules, initramfs, in cache/.
# Does only what is missing or out of date; what is there is whole, however an earlier run ended.
# usage: build-guest.sh build|packages|headers, the latter two for packages alone
# LAB_SUITE: with the kernel of another suite of Debian, see suite.sh
# Exit status: 77 if something cannot be had here.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
cache=${LAB_CACHE:-$here/cache}${LAB_SUITE:+/suite-$LAB_SUITE}
mkdir -p "$cache"
# shellcheck source=tests/interop/suite.sh
source "$here/suite.sh"

packages="qemu-system-x86 qemu-utils busybox-static kmod cpio iproute2 socat xz-utils gcc make
	tcpdump tshark ethtool procps
	rdmacm-utils ibverbs-utils ibverbs-providers perftest qperf lksctp-tools
	librdmacm-dev libibverbs-dev libc6-dev"
modules="virtio_pci virtio_net virtio_rng ib_core ib_uverbs rdma_cm rdma_ucm iw_cm
	sctp sctp_diag tcp_diag udp_tunnel ip6_udp_tunnel
	crc32_generic crc32c_generic crc32c_intel libcrc32c sha1_generic sha256_generic hmac
	sch_netem sch_ingress cls_matchall act_mirred ifb"
programs="bash timeout kmod ip rdma ss tc ethtool tcpdump sysctl
	rping ucmatose rdma_server rdma_client rcopy ibv_devices ibv_devinfo
	ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat qperf
	checksctp sctp_darn sctp_test sctp_status withsctp"
own="siw_peer siw_hold sctp_hold"

say() {
	echo "lab: $*"
}

die() {
	say "$*" >&2
	exit 1
}

cannot() {
	say "$*" >&2
	exit 77
}

# Install what is not there yet.
need() {
	local p missing=()
	for p; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' ||
			missing+=("$p")
	done
	[ ${#missing[@]} != 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "lab: packages are missing; run this first:" >&2
		echo "sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
		exit 77
	fi
	say "installing ${missing[*]}"
	lists
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq \
		--no-install-recommends "${missing[@]}" >"$cache/apt.log" 2>&1 || {
		tail -n 5 "$cache/apt.log" >&2
		cannot "apt-get install failed"
	}
}

# Package lists, once per build.
lists() {
	[ -z "${lists_done-}" ] || return 0
	lists_done=1
	[ "$(id -u)" != 0 ] || apt-get -o DPkg::Lock::Timeout=600 update -qq >/dev/null || true
}

download() { # PACKAGE
	(cd "$cache/deb" && apt-get download -qq "$1" 2>/dev/null)
}

# The lists that are there will mostly do.
fetch() { # PACKAGE: to cache/deb, not installed
	mkdir -p "$cache/deb"
	say "downloading $1"
	download "$1" || { lists && download "$1"; } || cannot "cannot download $1"
}

candidate() {
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/.*Depends: linux-image-//p' | head -n 1 || true
}

kernel_version() {
	if [ -n "$suite" ]; then
		kernel_of_suite
		kver=$(cat "$cache/kver")
		return
	fi
	kver=$(cat "$cache/kver" 2>/dev/null) || kver=$(candidate)
	[ -n "$kver" ] || { lists && kver=$(candidate); }
	[ -n "$kver" ] || cannot "no linux-image-amd64 in the package lists"
}

kernel() {
	if [ ! -e "$cache/kernel/boot/vmlinuz-$kver" ]; then
		fetch "linux-image-$kver"
		rm -rf "$cache/kernel" "$cache/kernel.new"
		dpkg -x "$cache"/deb/linux-image-"$kver"_*.deb "$cache/kernel.new"
		[ -d "$cache/kernel.new/lib/modules" ] || ln -s usr/lib "$cache/kernel.new/lib"
		depmod -b "$cache/kernel.new" "$kver"
		mv "$cache/kernel.new" "$cache/kernel"
	fi
	[ -s "$cache/kver" ] || echo "$kver" >"$cache/kver"
	rm -f "$cache"/deb/linux-image-*
}

# Debian leaves soft-iWARP out of its kernel; its source package has it.  siw's knobs are compile-time constants; make module parameters of them.
siw_parameters() { # DIR
	local bool='zcopy_tx|try_gso|loopback_enabled|mpa_crc_required|mpa_crc_strict'
	bool+='|siw_tcp_nagle|peer_to_peer'
	sed -i -E 's/^extern const bool/extern bool/' "$1/siw.h"
	sed -i -E "s/^const (bool ($bool)( = [a-z]+)?;)/\1 module_param(\2, bool, 0644);/
		s/^u_char mpa_version .*/& module_param(mpa_version, byte, 0644);/" "$1/siw_main.c"
	sed -i -E '0,/^#include/s//#include <linux\/module.h>\n&/
		s/^static __be16 rtr_type .*/& module_param(rtr_type, ushort, 0644);/
		s/^static const (bool (relaxed_ird_negotiation) .*)/static \1 module_param(\2, bool, 0644);/' \
		"$1/siw_cm.c"
}

siw_module() { # vanilla | param
	local dir=$cache/siw/$1 out=$cache/siw/siw-$1.ko
	[ ! -e "$out" ] || [ "$(modinfo -F vermagic "$out" | cut -d ' ' -f 1)" != "$kver" ] || return 0
	say "building soft-iWARP, $1"
	rm -rf "$dir"
	mkdir -p "$cache/siw"
	cp -r "$cache/sw/siw" "$dir"
	[ "$1" = vanilla ] || siw_parameters "$dir"
	build_modules "$dir" "$cache/siw/$1.log" CONFIG_RDMA_SIW=m || die "soft-iWARP does not build"
	strip --strip-debug -o "$dir/stripped.ko" "$dir/siw.ko"
	[ "$1" = vanilla ] || [ "$(modinfo -p "$dir/stripped.ko" | wc -l)" = 10 ] ||
		die "soft-iWARP's source has changed: not all parameters were made"
	mv "$dir/stripped.ko" "$out"
}

copy_libraries() { # FILE...: what they are linked with, at the same place
	local so
	{ ldd "$@" 2>/dev/null || true; } |
		sed -nE 's/.*=> (\/[^ ]+) .*/\1/p; s/^\t(\/[^ ]+) .*/\1/p' | sort -u |
		while read -r so; do
			mkdir -p "$root$(dirname "$so")"
			[ -e "$root$so" ] || cp -L "$so" "$root$so"
		done
}

# Debian leaves soft RoCE out of its kernel as well.
rxe_module() {
	local dir=$cache/siw/rxe out=$cache/siw/rdma_rxe.ko
	[ ! -e "$out" ] || [ "$(modinfo -F vermagic "$out" | cut -d ' ' -f 1)" != "$kver" ] || return 0
	say "building soft RoCE"
	rm -rf "$dir"
	cp -r "$cache/sw/rxe" "$dir"
	build_modules "$dir" "$cache/siw/rxe.log" CONFIG_RDMA_RXE=m || die "soft RoCE does not build"
	strip --strip-debug -o "$dir/stripped.ko" "$dir/rdma_rxe.ko"
	mv "$dir/stripped.ko" "$out"
}

# Our programs for siw and for SCTP.
own_programs() {
	local p source
	for p in $own; do
		source=$here/guest/src/$p.c
		[ ! "$cache/$p" -nt "$source" ] || continue
		gcc -O2 -Wall -Wextra -o "$cache/$p.new" "$source" -lrdmacm -libverbs ||
			die "$p does not build"
		mv "$cache/$p.new" "$cache/$p"
	done
}

copy_programs() {
	local p f files=()
	cp "$(command -v busybox)" "$root/bin/busybox"
	for p in $(busybox --list); do
		ln -s busybox "$root/bin/$p" 2>/dev/null || true
	done
	for p in $programs; do
		f=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$p") || die "no program $p"
		rm -f "$root/bin/$p"
		cp -L "$f" "$root/bin/$p"
		files+=("$f")
	done
	for p in $own; do
		install -m 755 "$cache/$p" "$root/bin/"
		files+=("$cache/$p")
	done
	for p in modprobe insmod rmmod lsmod modinfo depmod; do
		ln -sf kmod "$root/bin/$p"
	done
	copy_libraries "${files[@]}"
}

# What programs load at run time and ldd does not know.
copy_plugins() {
	local lib=/usr/lib/x86_64-linux-gnu
	mkdir -p "$root$lib/libibverbs" "$root$lib/lksctp-tools" "$root/etc/libibverbs.d"
	cp "$lib"/libibverbs/lib{siw,rxe}-rdmav*.so "$root$lib/libibverbs/"
	cp /etc/libibverbs.d/{siw,rxe}.driver "$root/etc/libibverbs.d/"
	cp -a "$lib"/lksctp-tools/. "$root$lib/lksctp-tools/"
	copy_libraries "$lib"/libibverbs/lib{siw,rxe}-rdmav*.so "$lib"/lksctp-tools/*.so*
	# pthread_exit loads it; rping aborts without
	cp -L "$lib/libgcc_s.so.1" "$root$lib/" 2>/dev/null ||
		cp -L /lib/x86_64-linux-gnu/libgcc_s.so.1 "$root$lib/"
}

copy_modules() {
	local m f dir=lib/modules/$kver
	mkdir -p "$root/$dir" "$root/lib/siw"
	for m in $modules; do
		modprobe -d "$cache/kernel" -S "$kver" --show-depends "$m" || die "no module $m"
	done | sed -n "s|^insmod $cache/kernel\([^ ]*\).*|\1|p" | sort -u | while read -r f; do
		mkdir -p "$root$(dirname "$f")"
		cp "$cache/kernel$f" "$root$f"
	done
	for f in "$cache/kernel/$dir"/modules.{builtin,builtin.modinfo,order}; do
		cp "$f" "$root/$dir/"
	done
	depmod -b "$root" "$kver"
	cp "$cache"/siw/{siw-vanilla,siw-param,rdma_rxe}.ko "$root/lib/siw/"
}

initramfs() {
	local out=$cache/initramfs.cpio d
	[ ! -e "$out" ] || [ -n "$(find "$here/guest" "$here/build-guest.sh" "$cache"/siw/*.ko \
		"$cache/kver" -newer "$out")" ] || return 0
	say "packing the guest"
	root=$cache/root
	rm -rf "$root"
	mkdir -p "$root"/{usr/{bin,lib,lib64},etc,proc,sys,dev,tmp,root,run,var/log}
	for d in bin lib lib64; do
		ln -s "usr/$d" "$root/$d"
	done
	ln -s usr/bin "$root/sbin"
	ln -s bin "$root/usr/sbin"
	copy_programs
	copy_plugins
	copy_modules
	install -m 755 "$here"/guest/bin/* "$root/bin/"
	install -m 755 "$here/guest/init" "$root/init"
	printf '%s\n' 'root:x:0:0:root:/root:/bin/bash' 'tcpdump:x:1:1::/:/bin/false' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	printf '%s\n' '127.0.0.1 localhost' '10.77.0.2 guest' '10.77.0.1 host' >"$root/etc/hosts"
	ldconfig -r "$root"
	(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet --owner 0:0) >"$out.new"
	rm -rf "$root"
	mv "$out.new" "$out"
}

[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] ||
	cannot "the guest is made from Debian packages on amd64"
# shellcheck disable=SC2086 # a list of words
need $packages
[ "${1-build}" != packages ] || exit 0
kernel_version
[ -e "$cache/siw/siw-param.ko" ] && [ -e "$cache/siw/rdma_rxe.ko" ] && [ "${1-build}" != headers ] || [ -n "$suite" ] || need "linux-headers-$kver"
[ "${1-build}" != headers ] || exit 0
driver_sources &
kernel
wait $!
siw_module vanilla &
siw_module param
wait $!
rxe_module
own_programs
initramfs
say "guest ready: kernel $kver, $(($(stat -c %s "$cache/initramfs.cpio") >> 20)) MiB"
