#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Who includes whom, by the compiler's own dependency files, and who calls whom, by the symbols of the
# objects, against tools/layers.txt; and that this check finds what it is there for.
# usage: layers.sh BUILD...	finished builds
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
result() { # STATUS NAME
	if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2" && bad=1; fi
}

symbols() { # BUILD...: what the objects define and need, what the system has, what is public
	for b in "$@"; do
		(cd "$b" && find src tools examples -name '*.o' -print0 2>/dev/null | xargs -0 nm -Ag 2>/dev/null)
	done
	nm -D --defined-only "$(${CC:-cc} -print-file-name=libc.so.6)" | sed 's/@.*//; s/.* /system: - /'
	grep -rhoE '\b[a-z_0-9]+ ?\(' include | sed 's/ *(//; s/^/public: - /' | sort -u
}
holds() { # ROOT BUILD...: prints every breach
	(
		cd "$1" && shift
		symbols "$@" >"$work/symbols"
		find "$@" -name '*.d' -print0 | sort -z |
			xargs -0 awk -v symbols="$work/symbols" -f tools/layers.awk tools/layers.txt
	)
}

# ---- this tree ----

holds . "$@" >"$work/faults" 2>"$work/files" || sed 's/^/not ok layers: /' "$work/faults"
[ ! -s "$work/faults" ]
result $? "every include and call follows tools/layers.txt ($(tail -n 1 "$work/files"))"

# A source that no build has compiled would not have been looked at.
# (make bundle has a few lines of its own, for an older libc.)
missing=$(find src tools examples -name '*.c' ! -path 'tools/bundle/*' | while read -r c; do
	for b in "$@"; do [ -e "$b/${c%.c}.d" ] && continue 2; done
	echo "$c"
done)
[ -z "$missing" ]
result $? "every source was compiled${missing:+, but not: $missing}"

# The picture in docs/design.md has every layer that is a folder.
absent=$(sed 's/#.*//' tools/layers.txt | awk 'NF && $1 != "except" { print $1 }' |
	while read -r l; do ! [ -d "$l" ] || grep -qE "(^|[^a-z_/])$l([^a-z_/]|\$)" docs/design.md || echo "$l"; done)
[ -z "$absent" ]
result $? "docs/design.md shows every layer${absent:+, but not: $absent}"

# Whoever looks for a test finds its folder.
absent=$(for d in tests/*/; do
	d=$(basename "$d")
	grep -q "\`$d\`" tests/README.md || echo "$d"
done)
[ -z "$absent" ]
result $? "tests/README.md has every folder of tests${absent:+, but not: $absent}"

# A folder is read at a glance, a file in one sitting.  Whoever goes beyond that is warned, not stopped.
full() { # ROOT: folders of more than 25 files, files of more than 500 lines
	(
		cd "$1" || exit
		find src tools -type f -printf '%h\n' | sort | uniq -c | awk '$1 > 25 { print $2 "/: " $1 " files" }'
		find src tools -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 500 { print $2 ": " $1 " lines" }'
	)
}
full . | sed 's/^/# warning: consider a split: /'

# A thread that holds a lock is not cancelled, and keeps the order: both are in one place.
raw_locks() { # ROOT
	(cd "$1" && grep -rlE 'pthread_mutex_(try|timed|clock)?lock *\(' src --include='*.[ch]' |
		grep -v '^src/common/system/lock\.h$')
}
raw=$(raw_locks .)
[ -z "$raw" ]
result $? "locks of src are taken by common/system/lock.h${raw:+, but: $raw}"

# Other processors and C libraries are shown the unit tests of src, and not those in tests/unit/tools.
strays() { # ROOT
	(
		cd "$1" || exit
		grep -rHoE '^#include "[^"]+' tests/unit --include='*.[ch]' | sed 's/:#include "/ /' | grep -v '^tests/unit/tools/' |
			while read -r f h; do [ -e "src/$h" ] || [ ! -e "tools/$h" ] || echo "$f"; done | sort -u
	)
}
stray=$(strays . | xargs)
[ -z "$stray" ]
result $? "unit tests that include headers of tools are in tests/unit/tools${stray:+, but not: $stray}"

# ---- the check, on a small tree ----

tree=$work/tree
mkdir -p "$tree"/{include/p,src/low,src/high,tools/t,tests}
cp tools/layers.awk "$tree/tools"
compile() { (cd "$tree" && gcc -Iinclude -Isrc -Itools -Itests -MMD -MP -c -o "build/${1%.c}.o" "$1"); }
compile_all() { for c in src/low/low.c src/high/high.c tools/t/t.c; do compile "$c"; done; }
fresh() { # a tree without a breach
	rm -rf "$tree"/build
	mkdir -p "$tree"/build/{src/{low,high},tools/t}
	printf '%s\n' 'include/p' 'src/low include/p' 'src/high include/p src/low' \
		'tools/t include/p' >"$tree/tools/layers.txt"
	printf '%s\n' '#define P 1' 'void p_high(void);' >"$tree/include/p/p.h"
	echo '#include <p/p.h>' >"$tree/src/low/low.h"
	echo '#include "low/low.h"' >"$tree/src/high/high.h"
	echo '#define UP 1' >"$tree/src/high/up.h"
	printf '%s\n' '/* a source */' '#include "low/low.h"' 'void low(void) {} int close(int n) { return n; }' \
		'__attribute__((weak)) void front(void) {} void g(void) { front(); }' \
		>"$tree/src/low/low.c"
	printf '%s\n' '#include <stdio.h>' '#include "high/high.h"' '#include "low/low.h"' \
		'void low(void); void p_high(void) { low(); } void high(void) { p_high(); } void front(void) {}' >"$tree/src/high/high.c"
	printf '%s\n' '#include <p/p.h>' '#include <unistd.h>' 'void t(void) { p_high(); close(0); }' \
		>"$tree/tools/t/t.c"
	echo '#define T 1' >"$tree/tests/help.h"
}
# What is found once @FILE has got one line more: LINE-OF-FILE and what was included.
breach() { # NAME FILE ADDED EXPECTED
	fresh
	echo "$3" >>"$tree/$2"
	compile_all
	holds "$tree" build >"$work/found" 2>/dev/null && result 1 "$1: nothing was found" && return
	[ "$(wc -l <"$work/found")" = 1 ] && grep -qF "$4" "$work/found"
	result $? "$1" || cat "$work/found"
}

fresh
compile_all
holds "$tree" build >"$work/found" 2>&1
result $? "a tree without a breach passes"
breach "a call that runs upward" src/low/low.c 'void high(void); void f(void) { high(); }' \
	'src/low/low.c:5: uses high, but src/low may not call src/high'
breach "one of what is public" src/low/low.c 'void f(void) { p_high(); }' \
	'src/low/low.c:5: uses p_high, but src/low may not call src/high'
breach "one that a table holds" src/low/low.c 'void high(void); void (*f)(void) = high;' \
	'src/low/low.c:5: uses high,'
breach "a tool that calls what is not public" tools/t/t.c 'void low(void); void f(void) { low(); }' \
	'tools/t/t.c:4: uses low, but tools/t may not call src/low'
breach "an include that runs upward" src/low/low.c '#include "high/high.h"' \
	'src/low/low.c:5: includes src/high/high.h'
breach "one in a header" src/low/low.h '#include "../high/up.h"' \
	'src/low/low.h:2: includes src/high/up.h'
breach "one by a long way round" tools/t/t.c '#include "../../tests/help.h"' \
	'tools/t/t.c:4: includes tests/help.h'
breach "a tool that reaches into src" tools/t/t.c '#include "low/low.h"' \
	'tools/t/t.c:4: includes src/low/low.h'
breach "an include from tests" tools/t/t.c '  #  include "help.h"' \
	'tools/t/t.c:4: includes tests/help.h'
breach "a layer that may include one above it" tools/layers.txt 'src/more src/most' \
	'tools/layers.txt:5: src/more stands above src/most'
breach "an exception that nothing needs" tools/layers.txt 'except src/low src/high' \
	'tools/layers.txt:5: src/low does not need src/high'
fresh
[ -z "$(full "$tree")" ]
result $? "a small tree is not too full"
yes '#define LONG 1' | head -n 501 >"$tree/src/low/long.h"
mkdir "$tree/src/wide"
touch "$tree"/src/wide/{a..z}.h
[ "$(full "$tree")" = "$(printf '%s\n' 'src/wide/: 26 files' 'src/low/long.h: 501 lines')" ]
result $? "a long file and a full folder are found"
rm -r "$tree/src/low/long.h" "$tree/src/wide"
[ -z "$(raw_locks "$tree")" ]
result $? "a small tree takes no lock"
echo 'pthread_mutex_lock(&m);' >"$tree/src/low/raw.h"
[ "$(raw_locks "$tree")" = src/low/raw.h ]
result $? "a lock that is taken elsewhere is found"
rm "$tree/src/low/raw.h"
mkdir -p "$tree"/tests/unit/{tools,low}
echo '#define T 1' >"$tree/tools/t/t.h"
echo '#include "t/t.h"' | tee "$tree/tests/unit/tools/t_test.c" >"$tree/tests/unit/low/low_test.c"
echo '#include "low/low.h"' >"$tree/tests/unit/low/fine_test.c"
[ "$(strays "$tree")" = tests/unit/low/low_test.c ]
result $? "a unit test that includes a header of tools and stands elsewhere is found"
mkdir "$tree/src/new"
echo >"$tree/src/new/new.h"
breach "a folder without a line" src/high/high.c '#include "new/new.h"' 'src/new/new.h:1: its folder'
exit "$bad"
