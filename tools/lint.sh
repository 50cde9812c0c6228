#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# clang-format, both compilers' warnings, clang-tidy, cppcheck, shellcheck.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
step() {
	name=$1
	shift
	if "$@"; then echo "ok   $name"; else echo "FAIL $name"; status=1; fi
}
sources=$(git ls-files '*.c' | tr '\n' ' ')
flags="-std=gnu11 -D_GNU_SOURCE -Iinclude -Isrc -Itests"
# shellcheck disable=SC2046,SC2086 # lists of words
{
	step clang-format clang-format --dry-run -Werror $(git ls-files '*.c' '*.h')
	step "clang warnings" sh -c "for f in $sources; do
		clang $flags -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror \
			-fsyntax-only \$f || exit 1; done"
	step clang-tidy clang-tidy --quiet --warnings-as-errors='*' \
		$(git ls-files 'src/*.c' 'tools/*.c' 'examples/*.c') -- $flags
	step cppcheck cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		-D_GNU_SOURCE -Iinclude -Isrc src tools examples
	step shellcheck shellcheck $(git ls-files '*.sh' .ci/run)
}
exit $status
