#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The stack on other systems: musl instead of glibc, 32-bit x86, aarch64, and s390x, which is big endian.
# All is compiled; the unit tests run (not on i386, where they are compiled only), under qemu-user where the
# processor is another; so does a session over each wire.  One line a case.  usage: run.sh [musl|i386|aarch64|s390x ...]
#
# Libraries for other processors are taken from Debian's packages and unpacked in build/cross; nothing
# of this system is changed.  UNITS: prefixes of suites to run; by default all that need no sessctl,
# and under emulation the cores and codecs.
set -u
cd "$(dirname "$0")/../.." || exit 1
failures=0
jobs=${JOBS:-2}
cores="ddp_ error ib_pkt ip_frag ipoib_addr ipoib_mad ipoib_packet ipoib_cm log loop mpa_mulpdu mpa_rx mpa_sm
	mpa_tx mpa_wire negotiate rdmap_ record_ sctp_begin sctp_data sctp_setup sctp_wire sd_order sd_rx sd_sm sd_wire shares
	siphash sized spare stag_ uri"

case_line() { # STATUS NAME [LOG]
	if [ "$1" = 0 ]; then
		echo "ok $2"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $2"
	[ -z "${3:-}" ] || tail -n 20 "$3"
	return 1
}

# fetch ARCHITECTURE FOLDER: headers and archives of the libraries that the stack needs
fetch() {
	local at=$PWD/build/cross/apt-$1 options deb isal="libisal-dev libisal2"
	[ "$1" != i386 ] || isal= # Debian has none
	[ ! -e "$2/done" ] || return 0
	mkdir -p "$at/lists/partial" "$at/cache/archives/partial" "$2/inc/sys" "$2/lib"
	: >"$at/status"
	options=(-qq -o "APT::Architecture=$1" -o "APT::Architectures=$1" -o "Dir::State=$at"
		-o "Dir::State::Lists=$at/lists" -o "Dir::State::status=$at/status"
		-o "Dir::Cache=$at/cache" -o APT::Sandbox::User=root)
	# a mirror that is just being renewed may lack a part; what is needed says so
	apt-get "${options[@]}" update
	# shellcheck disable=SC2086 # words are meant
	(cd "$at" && apt-get "${options[@]}" download $isal nettle-dev libsctp-dev \
		libjansson-dev libnettle8 libsctp1 libjansson4) || return
	for deb in "$at"/*.deb; do
		dpkg-deb -x "$deb" "$2/root" || return
	done
	find "$2/root" '(' -name '*.so' -o -name '*.so.*' ')' -exec cp -a {} "$2/lib" \;
	cp -r "$2"/root/usr/include/* "$2/inc"
	[ ! -d "$2/inc/$3" ] || cp -r "$2/inc/$3"/* "$2/inc"
	own_headers "$2/inc" uthash.h utlist.h infiniband rdma
	[ -n "$isal" ] || { own_headers "$2/inc" isa-l isa-l.h && stand_in i686-linux-gnu-gcc "$2"; } || return
	touch "$2/done"
}

# own_headers FOLDER NAME...: of this system, which are the same everywhere
own_headers() {
	local to=$1 name from
	shift
	for name; do
		for from in /usr/include "/usr/include/$(gcc -print-multiarch)"; do
			[ ! -e "$from/$name" ] || ln -sfn "$from/$name" "$to/$name"
		done
	done
}

# musl has no packages of these: their headers are free of the C library, and so nearly are the archives.
for_musl() { # FOLDER
	mkdir -p "$1/inc/sys" "$1/inc/netinet" "$1/lib"
	own_headers "$1/inc" isa-l isa-l.h nettle linux asm asm-generic uthash.h utlist.h infiniband rdma \
		jansson.h jansson_config.h sys/queue.h netinet/sctp.h
	ln -sf "$(gcc -print-file-name=libnettle.a)" "$(gcc -print-file-name=libsctp.a)" "$1/lib"
	stand_in musl-gcc "$1"
}

# stand_in COMPILER FOLDER: for ISA-L, where it is not packaged
stand_in() {
	rm -f "$2/lib/libisal.a"
	$1 -O1 -c -o "$2/missing.o" tests/cross/missing.c && ar rcs "$2/lib/libisal.a" "$2/missing.o"
}

# built NAME COMPILER TARGET...: with the headers and archives of build/cross/NAME
built() {
	local name=$1 cc=$2 at=$PWD/build/cross/$1 flags=
	shift 2
	# control messages: musl has other types for their lengths, and macros that convert signs
	[ "$name" != musl ] || flags="-Wno-conversion -Wno-sign-conversion -Wno-sign-compare"
	# bounds of 64 bits hold by themselves there, and numbers that were checked become sizes
	[ "$name" != i386 ] || flags="-Wno-conversion -Wno-type-limits"
	CFLAGS=$flags CPPFLAGS="-isystem $at/inc" LDFLAGS="-L$at/lib" make -k -s -j"$jobs" B="build/cross/$name/obj" \
		VARIANT=cross CC="${CCACHE:-} $cc" WERROR=-Werror "$@" >"$at/log" 2>&1
}

try() { # NAME COMPILER RUNNER...
	local name=$1 cc=$2 at=build/cross/$1 obj=build/cross/$1/obj count units=${UNITS:-}
	shift 2
	[ "$1" = env ] || units=${UNITS:-$cores}
	built "$name" "$cc" "$obj/unit-cross" "$obj/example-hello"
	case_line $? "$name: libraries and unit tests compile" "$at/log" || return
	if [ "$name" != i386 ]; then
		# shellcheck disable=SC2086 # words are meant
		timeout "${PATIENCE:-1800}" "$@" "$obj/unit-cross" $units >"$at/units" 2>&1
		count=$?
		grep -B 2 '^not ok' "$at/units" | head -n 60
		case_line "$count" "$name: unit tests, $(tail -n 1 "$at/units")"
	fi
	for wire in tcp sctp; do
		timeout 60 "$@" "$obj/example-hello" "$wire://127.0.0.1:0" >"$at/hello" 2>&1 &&
			grep -q '"hello over RDMA"' "$at/hello"
		case_line $? "$name: a session over $wire" "$at/hello"
	done
	[ "$name" != musl ] || return 0
	built "$name" "$cc" "$obj/sessctl" && "$@" "$obj/sessctl" --version >"$at/version"
	case_line $? "$name: sessctl" "$at/log"
	return 0
}

tools/deps.sh build cross || exit
command -v ccache >/dev/null && CCACHE=ccache
for system in "${@:-musl i386 aarch64 s390x}"; do
	for name in $system; do
		mkdir -p "build/cross/$name"
		emulator=qemu-$name arch=$name cc=$name-linux-gnu-gcc triple=$name-linux-gnu
		case $name in
		musl)
			for_musl "build/cross/$name" && try musl musl-gcc env
			continue
			;;
		i386) cc=i686-linux-gnu-gcc triple=i686-linux-gnu ;;
		aarch64) arch=arm64 ;;
		s390x) ;;
		*)
			echo "run.sh: no system '$name'" >&2
			exit 2
			;;
		esac
		if fetch "$arch" "build/cross/$name" "$name-linux-gnu"; then
			try "$name" "$cc" "$emulator" -L "/usr/$triple" \
				-E "LD_LIBRARY_PATH=$PWD/build/cross/$name/lib"
		else
			case_line 1 "$name: packages for it"
		fi
	done
done
exit $((failures > 0))
