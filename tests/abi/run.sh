#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of every recorded release work with today's library: what abidiff says of it, and a
# program compiled against that release's headers.  A record is made with its release (record.sh).
# Then the checks themselves, against a record of today: a library with a member in the midst of a
# struct must fail, one whose struct grew at its end must not hurt once that is accepted.
# usage: BUILD=build/opt run.sh
set -u
: "${BUILD:?the release build}"
BUILD=$(realpath "$BUILD")
cd "$(dirname "$0")/../.." || exit 1
abi_work=$(mktemp -d)
trap 'rm -rf "$abi_work"' EXIT
# shellcheck source=tests/abi/lib.bash
. tests/abi/lib.bash
failures=0

result() { # STATUS NAME [FILE]
	if [ "$1" = 0 ]; then
		echo "ok $2"
		return
	fi
	echo "not ok $2"
	failures=$((failures + 1))
	[ -z "${3:-}" ] || head -n 40 "$3"
}

# same RECORD LIBRARY INCLUDE FILE: the changes are those that were accepted
same() {
	abi_changes "$1.abi" "$3" "$2" >"$abi_work/changes" || return 1
	diff "$1.changes" "$abi_work/changes"
}

# run_old RECORD LIBDIR: its program, compiled against its headers, with another library
run_old() {
	${CC:-gcc} -std=c11 -Wall -Wextra -Werror -I"$1include" -o "$abi_work/program" "$1program.c" \
		-L"$2" -lddpsess &&
		LD_LIBRARY_PATH=$2 timeout 60 "$abi_work/program" tcp://127.0.0.1:0 \
			"sctp://127.0.0.1:0?backend=native&encap=0"
}

# today's record, in a tree of its own, as the release makes it
tree=$abi_work/tree
mkdir -p "$tree/tests/abi" && cp -r include "$tree" && cp tests/abi/*.* "$tree/tests/abi"
now=$tree/tests/abi/$(abi_release)/
bash "$tree/tests/abi/record.sh" "$BUILD" --accept >"$abi_work/log" 2>&1
[ $? = 1 ] && grep -q 'no release is recorded yet' "$abi_work/log"
result $? "without a release there is nothing to accept" "$abi_work/log"
bash "$tree/tests/abi/record.sh" "$BUILD" >"$abi_work/log" 2>&1
result $? "a release can be recorded" "$abi_work/log"

for record in tests/abi/[0-9]*/ "$now"; do
	[ -d "$record" ] || continue
	release=$(basename "$record")
	[ "$record" != "$now" ] || release=today
	for lib in $abi_libs; do
		same "$record$lib" "$BUILD/$lib.so" include >"$abi_work/log" 2>&1
		result $? "$lib: nothing changed for programs of $release" "$abi_work/log"
	done
	run_old "$record" "$BUILD" >"$abi_work/log" 2>&1
	result $? "a program of $release runs with this library" "$abi_work/log"
done
missing=
for tag in $(git tag --list 'v[0-9]*.0' 2>/dev/null); do
	release=${tag#v}
	[ -d "tests/abi/${release%.0}" ] || missing="$missing $tag"
done
[ -z "$missing" ]
result $? "each release is recorded$missing"

! grep -nE '\*' src/libddpsess.map src/ipoib_cm/libddpsess-ipoib.map \
	src/conform/libddpsess-conform.map |
	grep -vE '^[^:]*:[0-9]+:(/\*| \*|	\*;$)' >"$abi_work/log"
result $? "maps list symbols by name" "$abi_work/log"

# Languages that cannot call an inline function have another one.
missing=
while read -r f; do
	grep -qE "^DDPS_API .*\b${f}_sized\(" include/ddpsess/*.h || missing="$missing $f"
done < <(grep -hoE '^static inline [a-z ]*ddps_[a-z0-9_]+\(' include/ddpsess/*.h |
	grep -oE 'ddps_[a-z0-9_]+')
[ -z "$missing" ]
result $? "inline functions of headers have an exported one$missing"

# altered NAME SED-SCRIPT FILE...: another library, in $abi_work/NAME
altered() {
	local to=$abi_work/$1 script=$2
	shift 2
	mkdir -p "$to" && cp -r include src Makefile mk tools "$to"
	(cd "$to" && sed -i "$script" "$@" && make -s -j2 WERROR= OPT_opt='-O0 -g' lib >log 2>&1) ||
		tail -n 5 "$to/log"
}

altered breach '/^struct ddps_ep_attr {/,/^};/s/^\tstruct ddps_cq \*send_cq;.*/\tuint64_t intruder;\n&/' \
	include/ddpsess/session.h
[ -e "$abi_work/breach/build/opt/libddpsess.so.1" ] &&
	! same "${now}libddpsess" "$abi_work/breach/build/opt/libddpsess.so" "$abi_work/breach/include" \
		>"$abi_work/log" 2>&1 && grep -q intruder "$abi_work/log"
result $? "abidiff sees a member put into a struct" "$abi_work/log"
! run_old "$now" "$abi_work/breach/build/opt" >"$abi_work/log" 2>&1
result $? "and an older program fails with it" "$abi_work/log"

# A member at the end, as docs/abi.md has it; 42 is its default and all that is taken.
altered grown '/^struct ddps_ep_attr {/,/^};/s/^\tuint8_t reserved\[[0-9]*\];.*/&\n\tuint64_t grown;/
	s/^DDPS_SIZED_FUNCTIONS(ddps_ep_attr, reserved, /DDPS_SIZED_FUNCTIONS(ddps_ep_attr, grown, offsetof(struct ddps_ep_attr, grown), /
	/^static struct ddps_ep_attr /,/^}/s/\.max_sge = /.grown = 42, &/
	s/if (!attr->pd || /&attr->grown != 42 || /' \
	include/ddpsess/session.h src/session/param.c src/session/ep.c
grep -q grown "$abi_work/grown/src/session/ep.c" && grep -q 'grown = 42' "$abi_work/grown/src/session/param.c"
result $? "(the altered library has the member)"
! same "${now}libddpsess" "$abi_work/grown/build/opt/libddpsess.so" "$abi_work/grown/include" \
	>"$abi_work/log" 2>&1 && grep -q grown "$abi_work/log"
result $? "a member at the end of a struct has to be accepted" "$abi_work/log"
run_old "$now" "$abi_work/grown/build/opt" >"$abi_work/log" 2>&1
result $? "an older program has the default of a later member" "$abi_work/log"
# Accepted, the change is no news any more; what is not accepted still is.
rm -rf "$tree/include" && cp -r "$abi_work/grown/include" "$tree"
bash "$tree/tests/abi/record.sh" "$abi_work/grown/build/opt" --accept >"$abi_work/log" 2>&1 &&
	grep -q grown "${now}libddpsess.changes" &&
	same "${now}libddpsess" "$abi_work/grown/build/opt/libddpsess.so" "$abi_work/grown/include" \
		>"$abi_work/log" 2>&1
result $? "record.sh --accept writes what has changed down" "$abi_work/log"
! same "${now}libddpsess" "$abi_work/breach/build/opt/libddpsess.so" "$abi_work/breach/include" \
	>"$abi_work/log" 2>&1
result $? "and nothing else is accepted by that" "$abi_work/log"
exit $((failures > 0))
