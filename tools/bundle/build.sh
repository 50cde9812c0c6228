#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The bundle: one folder, and a tarball of it, that runs wherever it is unpacked and needs nothing but libc.
# The C library that it is linked with is an older one (SUITE, Debian 11), so that it runs on all later ones.
# usage: build.sh x86_64|aarch64 DIRECTORY	writes ddpsess-VERSION-linux-ARCH.tar.gz and a wheel into it
set -eu
cd "$(dirname "$0")/../.."
arch=$1 out=$2
case $arch in
x86_64) debian=amd64 cc=x86_64-linux-gnu-gcc ;;
aarch64) debian=arm64 cc=aarch64-linux-gnu-gcc ;;
*)
	echo "build.sh: no processor '$arch': x86_64 or aarch64" >&2
	exit 2
	;;
esac
triple=$arch-linux-gnu
cache=build/cache/sysroot-$debian # in the tree: names in CC must have no blanks
obj=$out/obj-$arch
suite=${SUITE:-bullseye}
tools/bundle/sysroot.sh "$suite" "$debian" "$cache" libc6 libc6-dev linux-libc-dev nettle-dev libjansson-dev libsctp-dev \
	libgnutls28-dev libgnutls30 || {
	echo "build.sh: SUITE=bookworm links with that release: the bundle then needs glibc 2.34" >&2
	exit 1
}
root=$cache/root
lib=$root/usr/lib/$triple

# Headers that are the same for all processors are this system's; the C library's are those of the root.
mkdir -p "$obj/inc" "$obj/lib"
for h in uthash.h infiniband rdma isa-l isa-l.h; do
	for from in /usr/include "/usr/include/$(gcc -print-multiarch)"; do
		[ ! -e "$from/$h" ] || ln -sfn "$from/$h" "$obj/inc/$h"
	done
done
flags="--sysroot=$root -B$lib/ -nostdinc -isystem $($cc -print-file-name=include) -isystem $obj/inc
	-isystem $root/usr/include/$triple -isystem $root/usr/include -include tools/bundle/old_libc.h"
# shellcheck disable=SC2086 # words are meant
{
	echo '#include <errno.h>' | $cc $flags -E -dM - | sed -nE 's/^#define (E[A-Z0-9]+) ([0-9]+)$/[\2] = "\1",/p' |
		sort -u >"$obj/errno_names.h"
	$cc $flags -I"$obj" -O2 -fPIC -fvisibility=hidden -Wall -Wextra -c -o "$obj/crc32c.o" tools/bundle/crc32c.c
}
rm -f "$obj/lib/libisal.a"
ar rcsD "$obj/lib/libisal.a" "$obj/crc32c.o"
for l in nettle jansson; do ln -sfn "$(realpath "$lib")/lib$l.a" "$obj/lib/lib$l.a"; done

flags=$(tr -s '\n\t' ' ' <<<"$flags")
# shellcheck disable=SC2016 # make expands it
env -u CFLAGS -u CPPFLAGS make -s -j"${JOBS:-2}" VARIANT=opt B="$obj" CC="${CCACHE:-} $cc $flags" CFLAGS=-g0 \
	LDFLAGS="-L$obj/lib -L$lib -Wl,--build-id=none" LIB_LIBS='-lisal -lnettle -pthread -ldl' LIBDIR=/usr/local/lib \
	'REAL_LIB=$(shell gcc -print-file-name=$(1).so.1)' bundle-parts

# The folder: nothing in it knows where it is.
folder=$obj/ddpsess-bundle
rm -rf "$folder"
umask 022
mkdir -p "$folder/bin" "$folder/lib/ddpsess/verbs" "$folder/profiles"
add() { # FOLDER FILE...
	install -m 755 -s --strip-program="$triple-strip" -t "$folder/$1" "${@:2}"
}
add bin "$obj/sessctl"
add lib "$obj/libddpsess-verbs.so"
add lib/ddpsess "$obj/ddpsess/libddpsess-view.so" "$obj/ddpsess/libddpsess-umad.so" "$obj/ddpsess/libddpsess-tls.so"
add lib/ddpsess/verbs "$obj/ddpsess/verbs/libibverbs.so.1" "$obj/ddpsess/verbs/librdmacm.so.1"
install -m 644 -t "$folder/profiles" profiles/*.profile
install -m 644 -t "$folder" tools/bundle/README LICENSE
for p in nettle-dev libjansson-dev; do
	printf '%s, which is linked into these files:\n\n' "${p%-dev}"
	cat "$root/usr/share/doc/$p/copyright"
done >"$folder/LICENSES-OF-LIBRARIES"

install -m 755 -s --strip-program="$triple-strip" "$obj/libddpsess.so.1" "$obj/stripped.so"

# What it needs: libc alone, and which one.  Secured wires take GnuTLS from the system that they run on: it has
# the corrections of its distribution.
needs=$(find "$folder" -type f -exec sh -c 'readelf -dW "$1" 2>/dev/null' sh {} ';' | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u |
	grep -vE '^(lib(c|dl|pthread)\.so\.[0-9]|ld-linux-.*|libibverbs\.so\.1|libgnutls\.so\.30)$' || :)
[ -z "$needs" ] || { echo "build.sh: the bundle needs more than libc: $needs" >&2; exit 1; }
find "$folder" -type f -perm -100 -exec "$triple-objdump" -T {} + | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1 |
	sed 's/GLIBC_//' >"$obj/glibc"

version=$(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' include/ddpsess/version.h)
when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
name=ddpsess-$version-linux-$arch.tar.gz
tar -c --format=ustar --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner -C "$obj" \
	--transform 's|^ddpsess-bundle|ddpsess|' ddpsess-bundle | gzip -9n >"$out/$name"

# The wheel, from the same files; and what the image has next to them
PYTHONDONTWRITEBYTECODE=1 python3 tools/bundle/wheel.py "$version" "$when" "$(cat "$obj/glibc")" "$arch" "$folder" \
	"$obj/stripped.so" "$out"
# shellcheck disable=SC2086 # words are meant
$cc $flags -D_GNU_SOURCE -O2 -Wall -Wextra "-L$lib" -s -Wl,--build-id=none -o "$obj/copy" tools/bundle/copy.c
echo "$out/$name: $(($(stat -c %s "$out/$name") / 1024)) KiB, for glibc $(cat "$obj/glibc") and later"
