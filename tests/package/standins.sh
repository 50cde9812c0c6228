#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What stands in for ISA-L in the bundle and where it is not packaged: it has every function that the libraries take
# of ISA-L, and each gives what ISA-L's gives.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
: "${BUILD:?the directory of a build}"
isal=$(gcc -print-file-name=libisal.so)
echo '#include <errno.h>' | gcc -E -dM - | sed -nE 's/^#define (E[A-Z0-9]+) ([0-9]+)$/[\2] = "\1",/p' >"$work/errno_names.h"
nm -D --defined-only "$isal" | awk '{ print $3 }' | sort -u >"$work/theirs"
nm -u "$BUILD"/libddpsess*.a 2>/dev/null | awk 'NF == 2 { print $2 }' | sort -u | comm -12 - "$work/theirs" >"$work/taken"
cat >"$work/same.c" <<'C'
#include <dlfcn.h>
#include <isa-l/crc.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	__typeof__(&crc32_iscsi) c = lib ? (__typeof__(c))dlsym(lib, "crc32_iscsi") : NULL;
	__typeof__(&crc32_gzip_refl) g = lib ? (__typeof__(g))dlsym(lib, "crc32_gzip_refl") : NULL;
	static unsigned char b[700];
	int other = 0;

	for (unsigned i = 0; i < sizeof b; i++)
		b[i] = (unsigned char)(i * i * 2654435761u >> 13);
	for (unsigned len = 0; c && g && len < 600; len++)
		for (unsigned at = 0; at < 9; at++) {
			uint32_t from = len * 2654435761u + at;

			other += c(b + at, (int)len, from) != crc32_iscsi(b + at, (int)len, from) ||
				 g(from, b + at, len) != crc32_gzip_refl(from, b + at, len);
		}
	printf("%d differ\n", other);
	return !c || !g || other;
}
C
gcc -o "$work/same" "$work/same.c" -lisal -ldl 2>"$work/log" && grep -q crc32_iscsi "$work/taken"
result $? "what the libraries take of ISA-L is known: $(tr '\n' ' ' <"$work/taken")" "$work/log"
for source in tools/bundle/crc32c.c tests/cross/missing.c; do
	so=$work/$(basename "$source" .c).so
	gcc -O2 -shared -fPIC -Itools/bundle -I"$work" -o "$so" "$source" 2>"$work/log" &&
		nm -D --defined-only "$so" | awk '{ print $3 }' | sort -u | comm -13 - "$work/taken" >"$work/log" && [ ! -s "$work/log" ]
	result $? "$source has all of it" "$work/log"
	"$work/same" "$so" >"$work/log" 2>&1
	result $? "$source: what ISA-L gives" "$work/log"
done
