#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Installed files work for a user: headers, pkg-config, shared library, exported symbols.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
make -s install DESTDIR="$work" PREFIX=/usr >"$work/log" 2>&1
result $? "install into DESTDIR" || cat "$work/log"
export PKG_CONFIG_SYSROOT_DIR=$work PKG_CONFIG_PATH=$work/usr/lib/pkgconfig

# Every example, as its first lines say.
compile() { # CC EXAMPLE LIBRARY
	# shellcheck disable=SC2046 # words
	"$1" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -o "$work/$2-$1" \
		"examples/$2.c" $(pkg-config --cflags --libs "$3")
	result $? "example $2: $1 against the installed $3"
}
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	for example in examples/*.c; do
		name=$(basename "$example" .c)
		case $name in
		conform) compile $cc "$name" libddpsess-conform ;;
		ib_accept | ipoib_pair) compile $cc "$name" libddpsess-ipoib ;;
		*) compile $cc "$name" libddpsess ;;
		esac
	done
done
LD_LIBRARY_PATH=$work/usr/lib timeout 20 "$work/ipoib_pair-gcc" |
	grep -qx 'second received 40000 octets from 10.0.0.1'
result $? "two interfaces talk, with the installed libddpsess-ipoib alone"
LD_LIBRARY_PATH=$work/usr/lib timeout 60 "$work/conform-gcc" tcp 'mpa-crc-*' |
	grep -q '^[1-9][0-9]* cases passed, 0 failed'
result $? "the suite runs in a program, with the installed libddpsess-conform"
timeout 20 "$work/usr/bin/sessctl" run true
result $? "sessctl runs from any PREFIX, and finds the drop-in there"
for uri in tcp://127.0.0.1:0 "sctp://127.0.0.1:0?backend=native&encap=0"; do
	LD_LIBRARY_PATH=$work/usr/lib timeout 20 "$work/hello-gcc" "$uri" | grep -q 'hello over RDMA'
	result $? "example runs over ${uri%%:*}"
done

if command -v cmake >/dev/null; then
	cat >"$work/CMakeLists.txt" <<'EOT'
cmake_minimum_required(VERSION 3.13)
project(hello C)
find_package(ddpsess 0.1 REQUIRED)
foreach(name ddpsess conform ipoib)
  if(NOT TARGET ddpsess::${name})
    message(FATAL_ERROR "no target ${name}")
  endif()
endforeach()
add_executable(hello ${SOURCE})
target_link_libraries(hello ddpsess::ddpsess)
EOT
	cmake -S "$work" -B "$work/cmake" -DSOURCE="$PWD/examples/hello.c" \
		-Dddpsess_DIR="$work/usr/lib/cmake/ddpsess" >"$work/cmake.log" 2>&1 &&
		cmake --build "$work/cmake" >>"$work/cmake.log" 2>&1 &&
		LD_LIBRARY_PATH=$work/usr/lib timeout 20 "$work/cmake/hello" | grep -q 'hello over RDMA'
	result $? "find_package(ddpsess) of CMake" || tail -n 20 "$work/cmake.log"
	sed -i 's/ddpsess 0.1/ddpsess 9.0/' "$work/CMakeLists.txt"
	! cmake -S "$work" -B "$work/cmake9" -DSOURCE="$PWD/examples/hello.c" \
		-Dddpsess_DIR="$work/usr/lib/cmake/ddpsess" >"$work/cmake.log" 2>&1
	result $? "find_package refuses a later release than there is"
else
	echo "ok find_package(ddpsess) of CMake # skipped: no cmake"
fi

# Each binary as its own headers say.  What has no code of its own needs no guard of the stack.
while read -r f; do
	case $f in */librdmacm.so.1) guards=0 ;; *) guards=1 ;; esac
	type=$(readelf -hW "$f" | awk '/Type:/ { print $2 }') && [ "$type" = DYN ] &&
		readelf -dW "$f" | grep -q 'Flags:.*NOW' && ! readelf -dW "$f" | grep -q TEXTREL &&
		readelf -lW "$f" | grep -q GNU_RELRO && readelf -lW "$f" | grep 'GNU_STACK.* RW ' >/dev/null &&
		{ [ $guards = 0 ] || readelf --dyn-syms -W "$f" | grep -q ' __stack_chk_fail'; } &&
		case $f in
		*/librdmacm.so.1 | */libddpsess-view.so) ;;
		*) readelf --dyn-syms -W "$f" | grep -q ' __snprintf_chk' ;;
		esac
	result $? "contact 20: ${f##*/} is hardened: position, relocations, stack, fortify"
done < <(find "$work/usr" -type f \( -path '*/bin/*' -o -name '*.so*' \))

# usrsctp is for the tests: nothing that is installed needs it.
find "$work/usr" -type f \( -path '*/bin/*' -o -name '*.so*' \) -exec ldd {} + >"$work/needs"
grep -q libisal "$work/needs" && ! grep usrsctp "$work/needs" "$work"/usr/lib/pkgconfig/*.pc
result $? "nothing installed needs libusrsctp"

# The README shows the example as it is.
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$work/shown"
sed '1,/command line\. \*\/$/d' examples/hello.c | sed '/./,$!d' | diff - "$work/shown"
result $? "README shows examples/hello.c"

# Only what the headers declare is exported, and all of it.
for lib in libddpsess libddpsess-ipoib libddpsess-conform; do
	nm -D --defined-only "$work/usr/lib/$lib.so.1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		sort >"$work/have"
	case $lib in
	libddpsess) headers="advert.h capture.h ctx.h err.h secure.h session.h stats.h watch.h wr.h version.h" ;;
	libddpsess-conform) headers="conform.h conform_ipoib.h" ;;
	*) headers="ipoib_cm.h ib_cm.h ib_cm_mad.h ipoib_port.h ipoib_if.h ipoib_agent.h ipoib_sim.h ib_udp.h ib_umad.h ib_verbs.h ib_rdmacm.h" ;;
	esac
	for h in $headers; do
		# without what it includes
		gcc -E "include/ddpsess/$h" -Iinclude 2>/dev/null |
			awk -v own="\"include/ddpsess/$h\"" '/^# / { mine = $3 == own; next } mine'
	done | tr '\n' ' ' | grep -o 'visibility("default")))[^;]*' | grep -o 'ddps_[a-z0-9_]*(' |
		tr -d '(' | sort -u >"$work/want"
	diff "$work/want" "$work/have"
	result $? "$lib exports exactly its headers' functions"
done
make -s uninstall DESTDIR="$work" PREFIX=/usr >>"$work/log" 2>&1
[ -z "$(find "$work/usr" -type f -o -type l | head -n 1)" ]
result $? "uninstall removes what install brought"

# Folders with a space in their names, and a umask that lets nobody else read.
mkdir "$work/My"
echo precious >"$work/My/precious"
(umask 077 && make -s install DESTDIR="$work/My Root" PREFIX="/opt/a b" PYTHONDIR="/opt/a b/py") >"$work/log" 2>&1
result $? "contact 20: install into folders with spaces" || cat "$work/log"
[ -x "$work/My Root/opt/a b/bin/sessctl" ] && [ "$(ls "$work/My")" = precious ]
result $? "contact 20: install goes nowhere else"
# DESTDIR's own folders are the packager's; all that is below the prefix is for everybody.
closed=$(find "$work/My Root/opt/a b" ! -type l ! -perm -044) && [ -z "$closed" ]
result $? "contact 20: whatever the umask, everybody can read what is installed"
make -s uninstall DESTDIR="$work/My Root" PREFIX="/opt/a b" PYTHONDIR="/opt/a b/py" >"$work/log" 2>&1
[ -e "$work/My/precious" ] && [ -z "$(find "$work/My Root" -type f -o -type l | head -n 1)" ]
result $? "contact 20: uninstall removes what it installed, and nothing else" || cat "$work/log"
