#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# clang-format, clang's warnings, clang-tidy, cppcheck, shellcheck.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
# the proofs are for Frama-C, with its own headers
mapfile -t all < <(git ls-files '*.c' ':!tests/proof')
# but for the records of releases, which stay as they were
mapfile -t headers < <(git ls-files '*.h' ':!tests/abi')
mapfile -t ours < <(git ls-files 'src/*.c' 'tools/*.c' 'examples/*.c')
mapfile -t scripts < <(git ls-files '*.sh' '*.bash' .ci/run)
mapfile -t mpi < <(mpicc --showme:incdirs | tr ' ' '\n' | sed 's/^/-isystem/')
flags=(-std=gnu11 -D_GNU_SOURCE -Iinclude -Isrc -Itools -Itests "${mpi[@]}")

step() { # NAME COMMAND...
	local name=$1
	shift
	if "$@"; then echo "ok   $name"; else echo "FAIL $name" && status=1; fi
}

# shellcheck disable=SC2317 # called through step
warnings() {
	printf '%s\n' "${all[@]}" | xargs -n 1 -P 2 clang "${flags[@]}" -Wall -Wextra -Wshadow \
		-Wconversion -Wstrict-prototypes -Werror -fsyntax-only
}

# One file a run: with several, version 14 takes every va_list for uninitialised.
# shellcheck disable=SC2317 # called through step
tidy() {
	printf '%s\n' "${ours[@]}" | xargs -I{} -P 2 clang-tidy --quiet --warnings-as-errors='*' {} \
		-- "${flags[@]}" 2>/dev/null
}

step clang-format clang-format --dry-run -Werror "${all[@]}" "${headers[@]}"
step "clang warnings" warnings
step clang-tidy tidy
step cppcheck cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
	--enable=warning,performance,portability --suppress=missingIncludeSystem \
	-D_GNU_SOURCE '-DTAILQ_HEAD(name,type)=struct type *' '-DTAILQ_FOREACH(var,head,field)=while ((var = (head)->first))' \
	'-DSTAILQ_HEAD(name,type)=struct type *' '-DSTAILQ_FOREACH(var,head,field)=while ((var = (head)->first))' \
	-Iinclude -Isrc -Itools src tools examples
step shellcheck shellcheck "${scripts[@]}"
exit $status
