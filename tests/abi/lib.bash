# SPDX-License-Identifier: BSD-2-Clause
# What the checks of the ABI and its record share.  $abi_work is a folder of the caller's.
# shellcheck shell=bash disable=SC2154,SC2034

abi_libs="libddpsess libddpsess-ipoib libddpsess-conform"

# abi_opaque INCLUDE: suppressions for the structs whose members no header shows
abi_opaque() {
	local names
	names=$(comm -23 <(grep -hoE '^struct ddps_[a-z0-9_]+;' "$1"/ddpsess/*.h | tr -d ';' | sort -u) \
		<(grep -hoE '^struct ddps_[a-z0-9_]+ \{' "$1"/ddpsess/*.h | tr -d ' {' |
			sed 's/^struct/struct /' | sort -u) | sed 's/^struct //' | paste -sd '|')
	[ -z "$names" ] || printf '[suppress_type]\n  name_regexp = ^(%s)$\n  drop_artifact = yes\n' "$names"
}

# abi_dump INCLUDE LIBRARY: its functions and every type they reach
abi_dump() {
	abi_opaque "$1" >"$abi_work/opaque.ini"
	abidw --suppressions "$abi_work/opaque.ini" --drop-undefined-syms --no-corpus-path \
		--no-comp-dir-path --no-show-locs --no-elf-needed --exported-interfaces-only \
		--no-parameter-names "$2"
}

# abi_changes RECORD INCLUDE LIBRARY: what a program of the record's release meets that is not as
# it was; nothing if all is.  New functions are no change.
abi_changes() {
	local status=0
	abi_dump "$2" "$3" >"$abi_work/now.abi" || return 2
	abidiff --no-added-syms "$1" "$abi_work/now.abi" >"$abi_work/report" 2>&1 ||
		status=$? # 4: something has changed; the caller may be one that ends at an error
	[ $((status & 3)) = 0 ] || { cat "$abi_work/report"; return 2; }
	# how many were added is still counted
	[ "$status" = 0 ] || sed -E 's/(0 Added) \([0-9]+ filtered out\)/\1/' "$abi_work/report"
	return 0
}

# abi_release: the release that this tree is, such as 0.2
abi_release() {
	sed -n 's/.*VERSION_STRING "\([0-9]*\.[0-9]*\)\..*/\1/p' include/ddpsess/version.h
}

# abi_record FOLDER BUILD: the record of a release
abi_record() {
	local lib
	mkdir -p "$1"
	rm -rf "$1/include"
	cp -r include "$1/include"
	cp tests/abi/program.c "$1"
	for lib in $abi_libs; do
		abi_dump include "$2/$lib.so" >"$1/$lib.abi"
		: >"$1/$lib.changes"
	done
}
