#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# C++ and Python programs link with the libraries and run.
set -u
: "${BUILD:?the release build}"
BUILD=$(realpath "$BUILD")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash

# build INCLUDE COMPILER: tests/package/cxx.cpp
build() {
	(cd "$1" && printf '#include <%s>\n' ddpsess/*.h) >"$work/all.h"
	"$2" -std=c++17 -Wall -Wextra -Werror -I"$1" -I"$work" -o "$work/cxx" \
		tests/package/cxx.cpp -L"$BUILD" -lddpsess -lddpsess-ipoib -lddpsess-conform -pthread >"$work/log" 2>&1
}

sed -n 's/^\t\(ddps_[a-z0-9_]*\);$/FUNCTION(\1)/p' src/libddpsess.map \
	src/ipoib_cm/libddpsess-ipoib.map src/conform/libddpsess-conform.map >"$work/functions.h"
want="functions: $(wc -l <"$work/functions.h")"
for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	build include $cxx
	result $? "a C++17 program with all headers builds with $cxx" "$work/log"
	got=$(LD_LIBRARY_PATH=$BUILD timeout 60 "$work/cxx" 2>"$work/log")
	[ "$got" = "$want" ]
	result $? "it runs and has every function ($cxx)" "$work/log"
done

# Without extern "C" in one header it must not link.
mkdir -p "$work/breach" && cp -r include/ddpsess "$work/breach"
sed -i 's/__cplusplus/NEITHER/' "$work/breach/ddpsess/version.h"
! build "$work/breach" g++ && grep -q 'undefined reference to .ddps_version()' "$work/log"
result $? "a header without extern \"C\" does not link" "$work/log"

timeout 60 python3 tests/package/ctypes_user.py "$BUILD/libddpsess.so" >"$work/log" 2>&1
result $? "Python calls the library through ctypes" "$work/log"
