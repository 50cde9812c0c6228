# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The corpus of a fuzz target is one archive, so that a checkout has few files.

unpack() { # NAME FOLDER, which then has just that; a target without an archive begins with nothing
	rm -rf "$2" && mkdir -p "$2" || return 1
	[ ! -e "tests/fuzz/corpus/$1.tar.gz" ] || tar -xzf "tests/fuzz/corpus/$1.tar.gz" -C "$2"
}
