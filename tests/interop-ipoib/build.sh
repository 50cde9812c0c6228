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
cache=$LAB_CACHE/ipoib
kver=$(cat "$LAB_CACHE/kver")
modules="ib_uverbs ib_umad ib_cm ib_ipoib udp_tunnel ip6_udp_tunnel crc32_generic sch_netem"
mkdir -p "$cache"

say() {
	echo "lab: $*"
}

cannot() {
	say "$*" >&2
	exit 77
}

source_package() { # its file in the cache; downloaded if it is not there
	local deb=$LAB_CACHE/deb
	mkdir -p "$deb"
	if ! compgen -G "$deb/linux-source-${series}_*.deb" >/dev/null; then
		say "downloading linux-source" >&2
		(cd "$deb" && apt-get download -qq "linux-source-$series" 2>/dev/null) ||
			cannot "cannot download linux-source-$series"
	fi
	find "$deb" -name "linux-source-${series}_*.deb" | head -n 1
}

driver_source() {
	local series=${kver%.*} deb
	[ ! -e "$cache/source/rxe_verbs.c" ] || return 0
	deb=$(source_package)
	say "unpacking the soft RoCE driver"
	rm -rf "$cache/source" "$cache/source.new"
	mkdir "$cache/source.new"
	dpkg --fsys-tarfile "$deb" | tar xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$cache/source.new" --strip-components=5 --wildcards \
			'*/drivers/infiniband/sw/rxe/*'
	mv "$cache/source.new" "$cache/source"
	rm -f "$deb"
}

driver() {
	local out=$cache/rdma_rxe.ko
	if [ -e "$out" ] && [ "$(modinfo -F vermagic "$out" | cut -d ' ' -f 1)" = "$kver" ] &&
		[ -z "$(find "$here/driver" -newer "$out")" ]; then
		return 0
	fi
	[ -d "/usr/src/linux-headers-$kver" ] || {
		[ "$(id -u)" = 0 ] || cannot "linux-headers-$kver is not installed"
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq \
			--no-install-recommends "linux-headers-$kver" >"$cache/apt.log" 2>&1 ||
			cannot "linux-headers-$kver cannot be installed"
	}
	say "building the driver with an InfiniBand link layer"
	rm -rf "$cache/driver"
	cp -r "$cache/source" "$cache/driver"
	python3 "$here/driver/edit-rxe.py" "$cache/driver"
	make -s -C "/usr/src/linux-headers-$kver" M="$cache/driver" CONFIG_RDMA_RXE=m modules \
		>"$cache/driver.log" 2>&1 || {
		tail -n 20 "$cache/driver.log" >&2
		say "the driver does not build" >&2
		exit 1
	}
	strip --strip-debug -o "$out.new" "$cache/driver/rdma_rxe.ko"
	mv "$out.new" "$out"
}

# The other guest's modules and these, and one list of them all.
copy_modules() {
	local m f dir=lib/modules/$kver
	mkdir -p "$root/usr/$dir" "$root/usr/lib/soft-ib"
	(cd "$root" && cpio --quiet -idm "usr/$dir/*" <"$LAB_CACHE/initramfs.cpio")
	for m in $modules; do
		modprobe -d "$LAB_CACHE/kernel" -S "$kver" --show-depends "$m"
	done | sed -n "s|^insmod $LAB_CACHE/kernel\([^ ]*\).*|\1|p" | sort -u | while read -r f; do
		mkdir -p "$root/usr$(dirname "$f")"
		cp "$LAB_CACHE/kernel$f" "$root/usr$f"
	done
	depmod -b "$root/usr" "$kver"
	cp "$cache/rdma_rxe.ko" "$root/usr/lib/soft-ib/"
}

archive() {
	local out=$cache/initramfs.cpio
	if [ -e "$out" ] && [ -z "$(find "$here/guest" "$here/build.sh" "$cache/rdma_rxe.ko" \
		"$LAB_CACHE/initramfs.cpio" -newer "$out")" ]; then
		return 0
	fi
	say "packing the guest with InfiniBand"
	root=$cache/root
	rm -rf "$root"
	mkdir -p "$root"
	copy_modules
	install -m 755 "$here/guest/init" "$root/init"
	(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet --owner 0:0) >"$cache/more.cpio"
	cat "$LAB_CACHE/initramfs.cpio" "$cache/more.cpio" >"$out.new"
	rm -rf "$root" "$cache/more.cpio"
	mv "$out.new" "$out"
}

command -v python3 >/dev/null || cannot "python3 is missing"
driver_source
driver
archive
