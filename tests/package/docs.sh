#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What docs/security.md and tests/promises.tsv name exists: tests, counters, parameters, files, and
# the sentences of headers and pages that promise something.  Then the checks themselves.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash

# every test as suite/name
grep -rhozE '\b(Test|VT_TEST|VT_TLS_TEST|E2E_WIRES)\([a-z0-9_]+,\s*[a-z0-9_]+' tests --include='*.c' | tr -d '\0\n' |
	sed -E 's/(Test|VT_TEST|VT_TLS_TEST|E2E_WIRES)\(/\n/g' | sed 's/,[[:space:]]*/\//' >"$work/found"
echo >>"$work/found"
# and those of a file's own macro, such as RxTest(name, ids)
grep -rlE '^#define [A-Z][a-z]+Test\(name' tests --include='*.c' | while read -r file; do
	sed -nE 's/^#define ([A-Z][a-z]+Test)\(name.*\) *Test\(([a-z0-9_]+), name.*/\1 \2/p' "$file" |
		while read -r macro suite; do
			sed -nE "s:^$macro\\(([a-z0-9_]+).*:$suite/\\1:p" "$file"
		done
done >>"$work/found"
sort -u "$work/found" >"$work/tests"
# every word of the headers that a page may name
{
	cat include/ddpsess/*.h src/sctp/sctp.h | grep -oE '[A-Za-z_][A-Za-z0-9_]*'
	grep -hoE '^VD_API .*\(' src/verbs/*/*.c src/edge/*.c | grep -oE '[a-z_]+\(' | tr -d '('
	grep -oE '\([a-z_]+\)' src/verbs/verbs_calls.def | tr -d '()'
	grep -oE 'DDPSESS_[A-Z0-9_]+' src/verbs/vd_config.c
} | sort -u >"$work/words"

git ls-files --cached --others --exclude-standard >"$work/paths"

# page FILE: what it names in backticks and is not there
# shellcheck disable=SC2016 # backquotes of Markdown
page() {
	grep -oE '`[^`]+`' "$1" | tr -d '`' | sort -u |
		awk -v job=page -v tests="$work/tests" -v words="$work/words" -v paths="$work/paths" -f tests/package/docs.awk
}

# promises FILE: sentences that are not where it says, and tests that are not there
promises() {
	awk -v job=promises -v tests="$work/tests" -v words="$work/words" -v paths="$work/paths" -f tests/package/docs.awk "$1"
}

# functions FILE: public ones that no promise of FILE is about
functions() {
	cut -f 2 "$1" | sort -u >"$work/held"
	cat include/ddpsess/*.h | tr '\n' ' ' | grep -oE 'DDPS_API [^;(]*\(' |
		grep -oE 'ddps_[a-z0-9_]+\(' | tr -d '(' | sort -u | comm -23 - "$work/held"
}

# without the wire, which some names have and some macros add
bare() { # FILE
	sed -E 's/_over_(tcp|sctp)$//' "$1" | sort -u
}

# mutations FILE: tests of attacks that it lacks, and tests of it that are not there
mutations() {
	local binary name
	grep -v '^#' "$1" >"$work/rows"
	awk -F'\t' '$2 != "sched" && $2 !~ /^fuzz-/ { print $3 }' "$work/rows" >"$work/noticed"
	comm -13 <(bare "$work/noticed") <(bare "$work/tests" | grep '/attack_') | sed 's/$/: no mutation/'
	comm -23 <(bare "$work/noticed") <(bare "$work/tests") | sed 's/$/: no such test/'
	while IFS=$'\t' read -r _ binary name; do
		[[ $binary != sched ]] || grep -qF -- "\"$name\"" tests/sched/*.c || echo "$name: no such world"
	done <"$work/rows"
}

# verdicts FILE: rows of measurements whose last word is not what ratio and target say, and cases
# that nothing measures
verdicts() {
	grep -E '^\|.*\| (>= [0-9.]+|-) \|' "$1" >"$work/rows"
	awk -F' *\\| *' '{
		goal = $8
		sub(">= ", "", goal)
		sub(/ \([0-9]+ samples failed\)$/, "", $9)
		want = goal == "-" ? "" : $6 + 0.005 >= goal + 0 ? "met" : "MISSED"
		if ($9 != want)
			print $2 ": " $6 " of " $8 " is not " ($9 == "" ? "nothing" : $9)
	}' "$work/rows"
	awk -F' *\\| *' '{ sub(/[ ,].*/, "", $2); print $2 }' "$work/rows" | sort -u | while read -r word; do
		grep -rqF -- "\"$word" bench/*.sh bench/samples.bash || echo "$word: measured by nothing"
	done
}

git ls-files >"$work/files"
git ls-files 'src/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'tools/*.[ch]' tests/layers.sh | xargs cat |
	tr -cs 'A-Za-z0-9_' '\n' | LC_ALL=C sort -u >"$work/identifiers"

# code FILE: files and functions of ours that it names in backticks and that are not there
# shellcheck disable=SC2016 # backquotes of Markdown
code() {
	local name
	grep -oE '`[^`]+`' "$1" | tr -d '`' | sort -u | while read -r name; do
		name=${name#struct }
		if [[ $name =~ ^(/|build/) ]]; then
			continue
		elif [[ $name =~ ^[a-z0-9_./-]+[./][a-z0-9_]+$ ]]; then
			grep -qE "(^|/)${name//./\\.}(/|\$)" "$work/files" || echo "$name: no such file or folder"
		elif [[ $name =~ ^[a-z0-9]+_[a-z0-9_]+$ ]]; then
			grep -qxF "$name" "$work/identifiers" || grep -qF "/fuzz_$name.c" "$work/files" ||
				echo "$name: no such function"
		fi
	done
	sed -n 's:^tests/fuzz/fuzz_\(.*\)\.c$:\1:p' "$work/files" | while read -r name; do
		grep -qF "\`$name\`" "$1" || echo "$name: a fuzz target that is not told of"
	done
}

# packages FILE: those that tools/deps.sh installs and that FILE gives no reason for
# shellcheck disable=SC2016 # a variable of that script
packages() {
	local name
	sed -E '1,/case \$group/d; /unknown group/,$d; s/^\t[a-z]+\) want="\$want//; s/" ;;//' tools/deps.sh |
		tr -s '[:space:]' '\n' | sort -u | while read -r name; do
		[ -z "$name" ] || grep -E '^\| .* \| .+ \|$' "$1" | cut -d '|' -f 2 | tr ',;' '  ' |
			grep -qF -- " $name " || echo "$name: why?"
	done
}

page docs/security.md >"$work/log"
! [ -s "$work/log" ]
result $? "what docs/security.md names exists" "$work/log"
[ "$(wc -l <"$work/tests")" -gt 500 ]
result $? "the tests were found"
sed 's/half_open_full/half_open_fool/; s/values_are_random/values_are_secret/' docs/security.md >"$work/page"
[ "$(page "$work/page" | wc -l)" -ge 2 ]
result $? "a counter and a test that do not exist are found"
code docs/design.md >"$work/log"
! [ -s "$work/log" ]
result $? "files, functions and fuzz targets that docs/design.md names exist" "$work/log"
# shellcheck disable=SC2016
sed 's/mpa_io_listen\.c/mpa_io_listens.c/; s/ddps_ddp_cut/ddps_ddp_slice/; s/`conform_sctp`/that/' docs/design.md >"$work/page"
[ "$(code "$work/page" | grep -cE '^(mpa_io_listens.c|ddps_ddp_slice|conform_sctp):')" = 3 ]
result $? "a file and a function that do not exist and a target that is left out are found"
packages docs/building.md >"$work/log"
! [ -s "$work/log" ]
result $? "docs/building.md has a reason for each package of tools/deps.sh" "$work/log"
sed '/^| libisal-dev /d; s/| scdoc | .* |/| scdoc |  |/' docs/building.md >"$work/page"
[ "$(packages "$work/page" | grep -cE '^(libisal-dev|scdoc):')" = 2 ]
result $? "a package that is left out and one without a reason are found"
promises tests/promises.tsv >"$work/log"
! [ -s "$work/log" ]
result $? "what tests/promises.tsv quotes is said, and its tests exist" "$work/log"
functions tests/promises.tsv >"$work/log"
! [ -s "$work/log" ]
result $? "each public function keeps a promise that has a test" "$work/log"
sed 's/Calling it again does nothing/Calling it twice is fine/; s/ddps_cq_fd/ddps_cq_df/' \
	tests/promises.tsv >"$work/promises"
promises "$work/promises" | grep -q 'Calling it twice is fine' && functions "$work/promises" | grep -qx ddps_cq_fd
result $? "a sentence that was changed and a function without a promise are found"
mutations tests/mutate/attacks.txt >"$work/log"
! [ -s "$work/log" ]
result $? "each test of an attack has a mutation that it notices (make mutate)" "$work/log"
sed 's:attack_9_every_wait_ends:attack_9_no_wait_ends:; s:post here, wait there:post there, wait here:' \
	tests/mutate/attacks.txt >"$work/mutations"
[ "$(mutations "$work/mutations" | wc -l)" = 5 ]
result $? "a test without a mutation, and a mutation without its test, are found"
for page in docs/measurements/*.md; do
	verdicts "$page" >"$work/log"
	! [ -s "$work/log" ] && [ "$(wc -l <"$work/rows")" -gt 40 ]
	result $? "the table of $page says met where the target is met" "$work/log"
done
sed -E 's/^(\| write 1M, crc off \| plain tcp \|[^|]*\|[^|]*\|) [0-9.]+ /\1 0.10 /; s/^\| ping 64 \| ucx/| pong 64 | ucx/' \
	docs/measurements/amd.md >"$work/page"
[ "$(verdicts "$work/page" | grep -cE '^(write 1M|pong)')" = 2 ]
result $? "a wrong verdict and a case that nothing measures are found"
# settled TARGET UNIT PAIR...: what bench/run.sh asks before each further pair of a row
settled() { printf '%s\n' "${@:3}" | awk -v target="$1" -v unit="$2" -f bench/settled.awk; }
settled 0 B/s '100 50' '103 50' '101 50' && settled 1.5 1/s '100 50' '120 50' '101 50' &&
	settled 1 B '5000 4000' '5600 4000' '5000 4100'
result $? "pairs that agree, or leave no doubt of the target, are enough"
! settled 0 B/s '100 50' '100 50' && ! settled 1 B/s '100 50' '100 50' '' && ! settled 1 B/s '0 50' '100 50' '100 50' '100 50' &&
	! settled 0 B/s '100 50' '120 50' '101 50' && ! settled 1.9 1/s '100 50' '120 50' '101 50' &&
	! settled 1 1/s '100 50' '160 50' '101 50'
result $? "two pairs, one that failed, pairs that differ or lie at the target are not"
# reasons REASONS PAGE...: what is missed without a reason, what a list does not have, reasons for no row
reasons() {
	local list=$1 page
	shift
	for page; do
		awk -f bench/missed.awk "$list" "$page" | sed '$d' >"$work/missed"
		grep -B 2 '^Why is not known' "$work/missed"
		grep -qF '(not measured)' "$work/missed" && echo "$page: a reason quotes a row that is not there"
		sed -n '/^\* \*\*/,$p' "$page" | cmp -s - "$work/missed" || echo "$page: its list is not that of the table and $list"
	done
	awk -F'\t+' 'NR == FNR { if (!/^#/) { c[++n] = $1; p[n] = $2 } next }
		{ split($0, f, / *[|] */); for (i = 1; i <= n; i++) if (f[2] ~ "^(" c[i] ")$" && f[3] ~ "^(" p[i] ")$") used[i] = 1 }
		END { for (i = 1; i <= n; i++) if (!used[i]) print c[i] ": a reason for no row" }' "$list" "$@"
}
# begins PAGE FAMILY: its first lines for this processor are those of the table
begins() {
	awk -f bench/summary.awk "docs/measurements/$2.md" >"$work/summary"
	sed -n "/^<!-- summary $2 -->/,/^<!-- end of summary $2 -->/p" "$1" | grep '^|' | cmp - "$work/summary"
}
for page in docs/measurements/*.md; do
	begins docs/performance.md "$(basename "$page" .md)" >"$work/log" 2>&1 && ! grep -q 'not measured' "$work/summary"
	result $? "docs/performance.md begins with five jobs, with the figures of $page" "$work/log"
done
sed '/^| latency/s/ 0[.][0-9]* |/ 0.50 |/' docs/performance.md >"$work/page"
! begins "$work/page" amd >"$work/log" 2>&1
result $? "first lines of another run are found" "$work/log"
# head_of PAGE: the lines above its tables have the figures of these
head_of() {
	sed -n '/^<!-- head -->/,/^<!-- end of head -->/p' "$1" | sed '/^$/d; /^<!--/d' |
		cmp - <(awk -v head=1 -f bench/summary.awk "$1")
}
head_of docs/performance.md >"$work/log" 2>&1 && [ "$(grep -c '^\* \*\*' docs/performance.md)" -ge 5 ]
result $? "the lines above the tables of docs/performance.md have their figures" "$work/log"
! head_of "$work/page" >"$work/log" 2>&1 && sed '/^<!-- head/,/^<!-- end/s/[0-9] times/9 times/' docs/performance.md >"$work/page" &&
	! cmp -s "$work/page" docs/performance.md && ! head_of "$work/page" >>"$work/log" 2>&1
result $? "a figure there that is not the tables' is found" "$work/log"
# figures README: its figures are those of the pages that it names, from the least to the largest
figures() {
	local gb times cases
	gb=$(sed -nE 's/^\| bulk[^|]*\| ([0-9]+) MB.*/\1/p' docs/performance.md | sort -n | sed -n '1p; $p')
	times=$(sed -nE 's/^\| small messages.*\| ([0-9]+)\.[0-9]+ \|$/\1/p' docs/performance.md | sort -nu | sed -n '1p; 1!{$p}')
	cases=$(sed -nE 's/^\| ours \| this version \| ([0-9]+) \| \1 \|.*/\1/p' docs/peers.md)
	tr '\n' ' ' <"$1" | tr -s ' ' >"$work/words"
	grep -qF "$(awk 'BEGIN { printf "%.0f to %.0f GB/s", '"${gb/$'\n'/ / 1000, } / 1000"' }')" "$work/words" &&
		grep -qF "${times/$'\n'/ to } times as many small messages" "$work/words" && grep -qF "All $cases cases" "$1"
}
figures README.md && sed 's/776 cases/700 cases/' README.md >"$work/readme" && ! figures "$work/readme"
result $? "the figures of README.md are those of the pages; others are found"
reasons bench/reasons.tsv docs/measurements/*.md >"$work/log"
! [ -s "$work/log" ]
result $? "each target that is missed in docs/measurements is in its list, with a reason" "$work/log"
sed -E '/^ping during writes, tcp/s/tcp/udp/' bench/reasons.tsv >"$work/reasons"
sed '/^\* \*\*ping 64/s/compared/as compared/' docs/measurements/amd.md >"$work/page"
reasons "$work/reasons" "$work/page" docs/measurements/*.md >"$work/log"
grep -qF "$work/page: its list" "$work/log" && grep -q 'udp.*a reason for no row' "$work/log"
result $? "a list that is not the table's and a reason for nothing are found" "$work/log"

# unlinked: pages that no other page leads to
unlinked() { # FILE...: the pages that may lead to one
	local page
	for page in docs/*.md docs/guides/*.md docs/measurements/*.md; do
		grep -lE "\\]\\(([a-z./]*/)?$(basename "$page" .md)\\.md[)#]" "$@" | grep -qvxF "$page" || echo "$page"
	done
}
unlinked README.md CONTRIBUTING.md docs/*.md docs/guides/*.md docs/measurements/*.md >"$work/log"
! [ -s "$work/log" ]
result $? "each page of docs/ is linked from another one" "$work/log"
[ "$(unlinked README.md | grep -c 'abi\|porting')" = 0 ] && unlinked docs/abi.md | grep -q '^docs/abi.md$'
result $? "a page that no page leads to is found"
python3 tests/package/links.py ./*.md docs/*.md docs/guides/*.md docs/measurements/*.md >"$work/log"
! [ -s "$work/log" ]
result $? "each link of a page leads to a file and to a heading" "$work/log"
printf '# A page\n[a](#a-page) [b](#b) [c](c.md)\n' >"$work/page.md"
[ "$(python3 tests/package/links.py "$work/page.md" | wc -l)" = 2 ]
result $? "a link that leads nowhere is found"

# Pages of a package name what packages install.
tools/package-docs.sh "$work/package" && (cd "$work/package" && grep -rnE '/usr/local/(share|bin|lib)' . |
	grep -v '^./docs/containers.md') >"$work/log"
[ ! -s "$work/log" ] && grep -q '/usr/share/ddpsess/profiles/' "$work/package/docs/profiles.md"
result $? "pages of a package have the paths of the package" "$work/log"

# Programs here that end without what the guide says of it.  hello.c has both sides in one context, and what
# probes a peer for conform may leave it as it likes.
unsettled() { # FILE...
	grep -lE 'ddps_ctx_free\b' "$@" | grep -vE '(^|/)(hello|conform_probe)\.c$' | xargs grep -LE '(ctx|link)_settle\b'
}
mapfile -t programs < <(git ls-files 'examples/*.c' 'tools/*.c' 'python/ddpsess/*.py')
unsettled "${programs[@]}" >"$work/log"
! [ -s "$work/log" ] && grep -q 'ddps_ctx_settle` before the program ends' docs/guides/program.md
result $? "examples, sessctl and Python end their sessions in order, as docs/guides/program.md says" "$work/log"
sed 's/ctx_settle/ctx_free/' examples/many_peer.c >"$work/many.c"
[ "$(unsettled "$work/many.c")" = "$work/many.c" ]
result $? "a program that does not is found"

# not_installed FILE: packages that debian/control builds with and tools/deps.sh does not install for that
not_installed() {
	sed -n '/^Build-Depends:/,/^[^ ]*:/s/^ \([a-z0-9.+-]*\).*/\1/p' debian/control | grep -v '^debhelper-compat$' | while read -r p; do
		sed -n '/^\t\(build\|deb\)) /,/;;/p' "$1" | grep -qE "[[:space:]\"]$p(\"| |$)" || echo "$p"
	done
}
not_installed tools/deps.sh >"$work/log"
! [ -s "$work/log" ]
result $? "tools/deps.sh installs what the packages are built with" "$work/log"
sed 's/libipsec-mb-dev/libipsec-mb/' tools/deps.sh >"$work/deps.sh"
[ "$(not_installed "$work/deps.sh")" = libipsec-mb-dev ]
result $? "a package that it lacks is found"
