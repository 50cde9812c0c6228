#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A function of src or tools that is seen outside of its file is called from there, and by more than
# tests; one that a library exports has a user here; and that this check finds what it is there for.
# usage: callers.sh BUILD...	finished builds, one of them with the tests
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
result() { # STATUS NAME
	if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2" && bad=1; fi
}

# What only tests call, and is there for them.
for_tests=' ddps_cm_data_is_rtu ddps_cm_delay ddps_cm_private_data ddps_cm_state_name ddps_ipoib_sim_move ddps_sctp_acked ddps_sctp_hold_stream ddps_sctp_sent ddps_sctp_stats ddps_sd_use_backend '

# What programs plainly need and only tests call: the pair of ddps_cm_listen, and parts of the session
# API that the pages describe.
for_programs=' ddps_cm_unlisten ddps_cq_arm ddps_cq_fd ddps_ctx_flush ddps_ctx_secured_stats ddps_ep_set_primary ddps_has_backend '

# Hidden symbols are those that no library exports.  A source that has gone may have left its object.
symbols() { # BUILD...: WHAT NAME SOURCE
	local b sources
	sources=$(find src tools examples tests bench -name '*.c' 2>/dev/null)
	for b in "$@"; do
		find "$b"/{src,tools,examples,tests,bench,bare} -name '*.o' -print0 2>/dev/null |
			xargs -0 readelf -sW /dev/null 2>/dev/null |
			awk -v b="$b/" -v sources="$sources" 'BEGIN { n = split(sources, s, "\n"); while (n) there[s[n--]] = 1 }
				/^File: / { c = substr($2, length(b) + 1); sub(/o$/, "c", c); sub(/^bare\//, "", c); next }
				$5 != "GLOBAL" || !there[c] { next }
				$7 == "UND" { print "uses", $8, c; next }
				$4 == "FUNC" && $6 == "HIDDEN" && c ~ /^(src|tools)\// { print "has", $8, c }'
	done | sort -u
}

uncalled() { # BUILD...: FILE: NAME: WHAT IS WRONG
	symbols "$@" | awk '
		$1 == "has" { at[$2] = $3 }
		$1 == "uses" { used[$2] = 1; if ($3 !~ /^(tests|bench)\//) called[$2] = 1 }
		END { for (f in at) if (!called[f] && f !~ /^(__wrap_|main$)/) print f, at[f], used[f] + 0 }' |
		sort | while read -r name file tested; do
		if [[ $for_tests == *" $name "* ]]; then
			continue
		elif [ "$tested" = 0 ]; then
			echo "$file: $name: no other file uses it"
		elif [ "$(grep -ow "$name" "$file" | wc -l)" = 1 ]; then
			echo "$file: $name: only tests use it"
		fi
	done
}

# unwanted BUILD...: exported, and used by no tool, example, other library or Python
unwanted() {
	local name
	symbols "$@" | awk '$1 == "uses" && $3 ~ /^(tools|examples|src\/(conform|verbs|umad))\// { print $2 }' |
		sort -u >"$work/wanted"
	find src -name '*.map' -exec sed -nE 's/^\t(ddps_[a-z0-9_]+);$/\1/p' {} + | sort -u |
		comm -23 - "$work/wanted" | while read -r name; do
		[[ $for_programs == *" $name "* ]] || grep -rqw --include='*.py' --exclude=_headers.py "$name" python || echo "$name"
	done
}

uncalled "$@" >"$work/found"
sed 's/^/not ok callers: /' "$work/found"
[ ! -s "$work/found" ]
result $? "every function that a file shows is called by another"
unwanted "$@" >"$work/found"
sed 's/^/not ok callers: exported and without a user: /' "$work/found"
[ ! -s "$work/found" ]
result $? "every function that a library exports has a user"
for f in $for_tests $for_programs; do
	grep -rqw "$f" src || { result 1 "$f is not in src" && continue; }
done

# ---- the check, on a small tree ----

mkdir -p "$work"/tree/{src,tests,b}
cd "$work/tree" || exit 1
put() { printf '%s\n' "$2" >"$1"; }
build() {
	rm -rf b && mkdir -p b/src b/tests
	for c in src/*.c tests/*.c; do gcc -fPIC -fvisibility=hidden -c -o "b/${c%.c}.o" "$c" || exit 1; done
}
finds() { # NAME EXPECTED
	build
	[ "$(uncalled b)" = "$2" ]
	result $? "$1"
}
put src/one.c 'int one(void) { return 1; }'
put src/two.c 'int one(void); __attribute__((visibility("default"))) int two(void) { return one(); }'
put src/three.c 'int three(void) { return 3; } int four(void) { return three(); }
int five(void); int six(void) { return five(); }'
put src/five.c 'int six(void); int five(void) { return six(); }'
put tests/t.c 'int three(void), four(void); int main(void) { return three() + four(); }'
finds "what only tests call" 'src/three.c: four: only tests use it'
put src/two.c '__attribute__((visibility("default"))) int two(void) { return 2; }'
put src/three.c 'int three(void) { return 3; } static int four(void) { return three(); }
int five(void); int six(void) { return five() + four(); }'
put tests/t.c 'int three(void); int main(void) { return three(); }'
finds "what nobody calls" 'src/one.c: one: no other file uses it'
printf '\tddps_wanted;\n\tddps_called;\n\tddps_left;\n' >src/lib.map
mkdir -p python tools b/tools
put python/t.py 'lib.ddps_wanted()'
put tools/t.c 'int ddps_called(void); int main(void) { return ddps_called(); }'
build
mkdir -p b/tools && gcc -c -o b/tools/t.o tools/t.c
[ "$(unwanted b)" = ddps_left ]
result $? "what is exported and nobody uses"
exit "$bad"
