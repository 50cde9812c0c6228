# shellcheck shell=bash disable=SC2154 # of build-guest.sh: cache, kver, say, cannot, fetch
# SPDX-License-Identifier: BSD-2-Clause
# What modules are built from: the source and headers of the guest's kernel.  LAB_SUITE=bullseye,
# bookworm-backports, ...: the kernel of that suite of Debian, of whose packages none is installed.
suite=${LAB_SUITE-}

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
	find "$1" -name 'modpost.real-lsb-64' -o -name 'objtool.real-x86' -o -name objtool -type f | while read -r p; do
		ldd "$p" 2>&1 | grep -q "version .* not found" || continue
		[ -d "$cache/libc" ] || unpack_of_suite "$cache/libc" libc6
		mv "$p" "$p.bin"
		printf '#!/bin/sh\nexec %s --library-path %s "$0.bin" "$@"\n' \
			"$cache/libc$libs/ld-linux-x86-64.so.2" "$cache/libc$libs:$libs" >"$p"
		chmod +x "$p"
	done
}

kernel_of_suite() {
	local headers=$cache/headers.new kernel=$cache/kernel
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
	echo "$kver" >"$cache/kver"
}

# ---- for modules, whatever the suite ----

kernel_headers() { # their directory
	if [ -n "$suite" ]; then
		echo "${guest:-$cache}/headers/usr/src/linux-headers-$kver"
	else
		echo "/usr/src/linux-headers-$kver"
	fi
}

# With the compiler that is here, and without what takes a newer one, or a program of that suite.
build_modules() { # DIRECTORY LOG SETTING...
	local dir=$1 log=$2 set=()
	shift 2
	[ -z "$suite" ] || set=(CC=gcc CONFIG_DEBUG_INFO_BTF_MODULES= CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=)
	make -s -C "$(kernel_headers)" M="$dir" "$@" "${set[@]}" modules >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		return 1
	}
}

# Soft-iWARP and soft RoCE from Debian's source of that kernel.
driver_sources() {
	local series deb=$cache/deb get=()
	[ ! -d "$cache/sw" ] || return 0
	series=$(cut -d . -f 1,2 <<<"$kver")
	rm -rf "$cache/sw.new"
	mkdir -p "$deb" "$cache/sw.new"
	[ -z "$suite" ] || get=(of_suite)
	if ! compgen -G "$deb/linux-source-${series}_*.deb" >/dev/null; then
		say "downloading linux-source-$series"
		if ! (cd "$deb" && "${get[@]}" apt-get download -qq "linux-source-$series" 2>/dev/null); then
			[ -z "$suite" ] || cannot "cannot download linux-source-$series of $suite"
			fetch "linux-source-$series"
		fi
	fi
	say "unpacking soft-iWARP and soft RoCE"
	dpkg --fsys-tarfile "$deb/linux-source-${series}"_*.deb |
		tar xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar xJ -C "$cache/sw.new" --strip-components=4 --wildcards '*/drivers/infiniband/sw/siw/*' \
			'*/drivers/infiniband/sw/rxe/*'
	if ! [ -e "$cache/sw.new/siw/siw_main.c" ] || ! [ -e "$cache/sw.new/rxe/rxe_verbs.c" ]; then
		cannot "linux-source-$series does not have the drivers"
	fi
	mv "$cache/sw.new" "$cache/sw"
	rm -f "$deb"/linux-source-*
}
