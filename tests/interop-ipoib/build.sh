#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Make what the guest of tests/interop needs to be a node of an InfiniBand subnet: Linux's soft RoCE
# driver with an InfiniBand link layer, from Debian's source of that kernel, and modules that the
# other guest does without.  All of it is one more archive behind that guest's initramfs.
# LAB_SUITE=bullseye, bookworm-backports, ...: with the kernel of that suite of Debian instead.
# Does only what is missing or out of date.  Exit status: 77 if something cannot be had here.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
LAB_CACHE=${LAB_CACHE:-$here/../interop/cache}
export LAB_CACHE
"$here/../interop/build-guest.sh" "${1-build}"
[ "${1-build}" = build ] || exit 0
suite=${LAB_SUITE-}
cache=$LAB_CACHE/ipoib${suite:+-$suite}
kernel=${suite:+$cache/kernel}
kernel=${kernel:-$LAB_CACHE/kernel}
modules="ib_uverbs ib_umad ib_cm ib_ipoib tun udp_tunnel ip6_udp_tunnel crc32_generic sch_netem"
mkdir -p "$cache"

say() {
	echo "lab: $*"
}

cannot() {
	say "$*" >&2
	exit 77
}

# ---- the kernel of another suite, of whose packages none is installed ----

# With lists of packages that are not the system's.
of_suite() { # PROGRAM ARGUMENT...
	local program=$1
	shift
	"$program" -o Dir::Etc::sourcelist="$cache/apt/sources.list" -o Dir::Etc::sourceparts=none \
		-o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" "$@"
}

lists_of_suite() {
	local mirror
	# shellcheck disable=SC2016 # apt's own variable
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
		grep -m 1 '/debian/*$') || cannot "apt knows no mirror of Debian"
	mkdir -p "$cache/apt/lists/partial" "$cache/apt/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
		>"$cache/apt/sources.list"
	of_suite apt-get update -qq >"$cache/apt.log" 2>&1 || cannot "no package lists of $suite"
}

dependency() { # PACKAGE PATTERN: the first one that fits
	of_suite apt-cache depends "$1" | sed -n "s/.*Depends: \($2\)\$/\1/p" | head -n 1
}

unpack_of_suite() { # DIRECTORY PACKAGE...
	local out=$1 p
	shift
	mkdir -p "$cache/deb"
	for p; do
		say "downloading $p"
		(cd "$cache/deb" && of_suite apt-get download -qq "$p" 2>/dev/null) ||
			cannot "cannot download $p of $suite"
		dpkg -x "$cache/deb/${p}_"*.deb "$out"
		rm -f "$cache/deb/${p}_"*.deb
	done
}

# Programs of a newer Debian that need its C library get it.
# shellcheck disable=SC2016 # for the other shell
with_their_libc() { # DIRECTORY
	local p libs=/usr/lib/x86_64-linux-gnu
	find "$1" -name 'modpost.real-lsb-64' -o -name 'objtool.real-x86' | while read -r p; do
		ldd "$p" 2>&1 | grep -q "version .* not found" || continue
		[ -d "$cache/libc" ] || unpack_of_suite "$cache/libc" libc6
		mv "$p" "$p.bin"
		printf '#!/bin/sh\nexec %s --library-path %s "$0.bin" "$@"\n' \
			"$cache/libc$libs/ld-linux-x86-64.so.2" "$cache/libc$libs:$libs" >"$p"
		chmod +x "$p"
	done
}

kernel_of_suite() {
	local headers=$cache/headers.new
	[ ! -s "$cache/kver" ] || return 0
	rm -rf "$kernel.new" "$headers" "$cache/headers" "$kernel"
	lists_of_suite
	kver=$(dependency linux-image-amd64 'linux-image-.*')
	kver=${kver#linux-image-}
	[ -n "$kver" ] || cannot "no linux-image-amd64 in $suite"
	unpack_of_suite "$kernel.new" "linux-image-$kver"
	unpack_of_suite "$headers" "linux-headers-$kver" \
		"$(dependency "linux-headers-$kver" 'linux-headers-.*-common')" \
		"$(dependency "linux-headers-$kver" 'linux-kbuild-.*')"
	# they are not at the place that they are made for
	sed -i "s|include /usr/src|include $cache/headers/usr/src|" "$headers/usr/src/linux-headers-$kver/Makefile"
	with_their_libc "$headers"
	[ -d "$kernel.new/lib/modules" ] || ln -s usr/lib "$kernel.new/lib"
	depmod -b "$kernel.new" "$kver"
	mv "$headers" "$cache/headers"
	mv "$kernel.new" "$kernel"
	ln -sf "kernel/boot/vmlinuz-$kver" "$cache/vmlinuz"
	echo "$kver" >"$cache/kver"
}

# ---- the driver ----

source_package() { # SERIES: its file in the cache; downloaded if it is not there
	local deb=$cache/deb get=()
	mkdir -p "$deb"
	[ -z "$suite" ] || get=(of_suite)
	if ! compgen -G "$deb/linux-source-${1}_*.deb" >/dev/null; then
		say "downloading linux-source" >&2
		(cd "$deb" && "${get[@]}" apt-get download -qq "linux-source-$1" 2>/dev/null) ||
			cannot "cannot download linux-source-$1"
	fi
	find "$deb" -name "linux-source-${1}_*.deb" | head -n 1
}

driver_source() {
	local series deb
	series=$(cut -d . -f 1,2 <<<"$kver")
	[ ! -e "$cache/source/rxe_verbs.c" ] || return 0
	deb=$(source_package "$series")
	say "unpacking the soft RoCE driver"
	rm -rf "$cache/source" "$cache/source.new"
	mkdir "$cache/source.new"
	dpkg --fsys-tarfile "$deb" | tar xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$cache/source.new" --strip-components=5 --wildcards \
			'*/drivers/infiniband/sw/rxe/*'
	mv "$cache/source.new" "$cache/source"
	rm -f "$deb"
}

# The kernel's headers: their directory.
headers() {
	if [ -n "$suite" ]; then
		echo "$cache/headers/usr/src/linux-headers-$kver"
		return
	fi
	[ -d "/usr/src/linux-headers-$kver" ] || {
		[ "$(id -u)" = 0 ] || cannot "linux-headers-$kver is not installed"
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq \
			--no-install-recommends "linux-headers-$kver" >"$cache/apt.log" 2>&1 ||
			cannot "linux-headers-$kver cannot be installed"
	}
	echo "/usr/src/linux-headers-$kver"
}

driver() {
	local out=$cache/rdma_rxe.ko tree set=()
	if [ -e "$out" ] && [ "$(modinfo -F vermagic "$out" | cut -d ' ' -f 1)" = "$kver" ] &&
		[ -z "$(find "$here/driver" -newer "$out")" ]; then
		return 0
	fi
	tree=$(headers)
	# with the compiler that is here, and without what takes a newer one, or a program of that suite
	[ -z "$suite" ] || set=(CC=gcc CONFIG_DEBUG_INFO_BTF_MODULES= CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=)
	say "building the driver with an InfiniBand link layer"
	rm -rf "$cache/driver"
	cp -r "$cache/source" "$cache/driver"
	python3 "$here/driver/edit-rxe.py" "$cache/driver"
	make -s -C "$tree" M="$cache/driver" CONFIG_RDMA_RXE=m "${set[@]}" modules \
		>"$cache/driver.log" 2>&1 || {
		tail -n 20 "$cache/driver.log" >&2
		say "the driver does not build" >&2
		exit 1
	}
	strip --strip-debug -o "$out.new" "$cache/driver/rdma_rxe.ko"
	mv "$out.new" "$out"
}

# What the guest of tests/interop has, or the least of another kernel.
first_modules() {
	local dir=lib/modules/$kver
	if [ -z "$suite" ]; then
		(cd "$root" && cpio --quiet -idm "usr/$dir/*" <"$LAB_CACHE/initramfs.cpio")
		return
	fi
	modules="virtio_pci virtio_net virtio_rng ib_core $modules"
	mkdir -p "$root/usr/$dir"
	cp "$kernel/$dir"/modules.{builtin,builtin.modinfo,order} "$root/usr/$dir/"
}

# Those and these, and one list of them all.
copy_modules() {
	local m f dir=lib/modules/$kver
	mkdir -p "$root/usr/$dir" "$root/usr/lib/soft-ib"
	first_modules
	for m in $modules; do
		modprobe -d "$kernel" -S "$kver" --show-depends "$m"
	done | sed -n "s|^insmod $kernel\([^ ]*\).*|\1|p" | sort -u | while read -r f; do
		mkdir -p "$root/usr$(dirname "$f")"
		cp "$kernel$f" "$root/usr$f"
	done
	depmod -b "$root/usr" "$kver"
	cp "$cache/rdma_rxe.ko" "$root/usr/lib/soft-ib/"
}

# Queue pairs for programs (--port verbs): the driver's part of libibverbs.
copy_provider() {
	local so
	so=$(find /usr/lib -path '*/libibverbs/librxe-rdmav*.so' | head -n 1)
	[ -n "$so" ] || cannot "ibverbs-providers is not installed"
	mkdir -p "$root$(dirname "$so")" "$root/etc/libibverbs.d"
	cp "$so" "$root$(dirname "$so")/"
	cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
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
	copy_provider
	install -m 755 "$here/guest/init" "$root/init"
	(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet --owner 0:0) >"$cache/more.cpio"
	cat "$LAB_CACHE/initramfs.cpio" "$cache/more.cpio" >"$out.new"
	rm -rf "$root" "$cache/more.cpio"
	mv "$out.new" "$out"
}

command -v python3 >/dev/null || cannot "python3 is missing"
if [ -n "$suite" ]; then
	kernel_of_suite
	kver=$(cat "$cache/kver")
else
	kver=$(cat "$LAB_CACHE/kver")
fi
driver_source
driver
archive
