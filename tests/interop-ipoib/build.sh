#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Make what the guest of tests/interop needs to be a node of an InfiniBand subnet: Linux's soft RoCE
# driver with an InfiniBand link layer, from Debian's source of that kernel, and modules that the
# other guest does without.  All of it is one more archive behind that guest's initramfs.
# Does only what is missing or out of date.  Exit status: 77 if something cannot be had here.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
LAB_CACHE=${LAB_CACHE:-$here/../interop/cache}
export LAB_CACHE
"$here/../interop/build-guest.sh" "${1-build}"
[ "${1-build}" = build ] || exit 0
guest=$LAB_CACHE${LAB_SUITE:+/suite-$LAB_SUITE}
cache=$guest/ipoib
# shellcheck source=tests/interop/suite.sh
source "$here/../interop/suite.sh"
modules="ib_uverbs ib_umad ib_cm ib_ipoib tun udp_tunnel ip6_udp_tunnel sch_netem"
mkdir -p "$cache"

say() {
	echo "lab: $*"
}

cannot() {
	say "$*" >&2
	exit 77
}

# ---- the driver ----

driver() {
	local out=$cache/rdma_rxe.ko
	if [ -e "$out" ] && [ "$(modinfo -F vermagic "$out" | cut -d ' ' -f 1)" = "$kver" ] &&
		[ -z "$(find "$here/driver" -newer "$out")" ]; then
		return 0
	fi
	"$here/../interop/build-guest.sh" headers
	say "building the driver with an InfiniBand link layer"
	rm -rf "$cache/driver"
	cp -r "$guest/sw/rxe" "$cache/driver"
	python3 "$here/driver/edit-rxe.py" "$cache/driver"
	build_modules "$cache/driver" "$cache/driver.log" CONFIG_RDMA_RXE=m || {
		say "the driver does not build" >&2
		exit 1
	}
	strip --strip-debug -o "$out.new" "$cache/driver/rdma_rxe.ko"
	mv "$out.new" "$out"
}

# Those that the guest of tests/interop has and these, and one list of them all.
copy_modules() {
	local m f dir=lib/modules/$kver
	mkdir -p "$root/usr/$dir" "$root/usr/lib/soft-ib"
	(cd "$root" && cpio --quiet -idm "usr/$dir/*" <"$guest/initramfs.cpio")
	for m in $modules; do
		modprobe -d "$guest/kernel" -S "$kver" --show-depends "$m"
	done | sed -n "s|^insmod $guest/kernel\([^ ]*\).*|\1|p" | sort -u | while read -r f; do
		mkdir -p "$root/usr$(dirname "$f")"
		cp "$guest/kernel$f" "$root/usr$f"
	done
	depmod -b "$root/usr" "$kver"
	cp "$cache/rdma_rxe.ko" "$root/usr/lib/soft-ib/"
}

archive() {
	local out=$cache/initramfs.cpio
	if [ -e "$out" ] && [ -z "$(find "$here/guest" "$here/build.sh" "$cache/rdma_rxe.ko" \
		"$guest/initramfs.cpio" -newer "$out")" ]; then
		return 0
	fi
	say "packing the guest with InfiniBand"
	root=$cache/root
	rm -rf "$root"
	mkdir -p "$root"
	copy_modules
	install -m 755 "$here/guest/init" "$root/init"
	(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet --owner 0:0) >"$cache/more.cpio"
	cat "$guest/initramfs.cpio" "$cache/more.cpio" >"$out.new"
	rm -rf "$root" "$cache/more.cpio"
	mv "$out.new" "$out"
}

command -v python3 >/dev/null || cannot "python3 is missing"
kver=$(cat "$guest/kver")
driver
archive
