#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What manuals and pages name exists, and what exists is in the manuals: options, commands,
# environment variables, functions, files, make targets.  Then whether the checks can fail.
set -u
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:?the build whose sessctl is asked}"
sessctl=$(realpath "$BUILD/sessctl")
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
manual=$work/manual
cat man/sessctl*.scd >"$manual"
pages=(docs/*.md docs/guides/*.md README.md)

commands_of() { # COMMAND...: what its help lists
	"$sessctl" "$@" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p'
}

# every command, one a line
all_commands() {
	local c
	for c in $(commands_of); do
		echo "$c"
		case $c in ipoib | keys) commands_of "$c" | sed "s/^/$c /" ;; esac
	done
}

options() { # FILE: the long options in it, and those that have a letter with it
	{
		grep -oE -- '--[a-z][a-z0-9-]*' "$1"
		tr -d '*' <"$1" | grep -oE -- '--[a-z][a-z0-9-]*, -[a-zA-Z]\b'
	} | sort -u
}

# Help is made from the tables that the options are parsed by, so what is there is taken.
all_commands >"$work/commands"
while read -r command; do
	# shellcheck disable=SC2086 # words are meant
	"$sessctl" $command --help
done <"$work/commands" >"$work/help" 2>&1
"$sessctl" --help >>"$work/help"
options "$work/help" >"$work/offered"

strange_options() { # MANUAL: those that no command offers, and those that it lacks
	options "$1" | comm -3 - "$work/offered"
}

missing_commands() { # MANUAL
	local c text
	text=$(tr -d '*_[]|' <"$1" | tr -s '[:space:]' ' ')
	while read -r c; do
		grep -qF -- "$c" <<<"$text" || echo "sessctl $c"
	done <"$work/commands"
}

missing_pages() { # FOLDER: commands that have no page there
	local c
	grep -v ' ' "$work/commands" | while read -r c; do
		[ -s "$1/sessctl-$c.1.scd" ] || grep -qE "^sessctl-[a-z, -]*sessctl-$c\b" "$1"/*.scd || echo "sessctl $c"
	done
}

variables() { # FILE...
	grep -ohE 'DDPSESS_[A-Z0-9_]+' "$@" | sort -u
}

strange_variables() { # FILE...: read by nobody, or reported by nobody
	variables "$@" >"$work/told"
	{
		find src tools python/ddpsess '(' -name '*.c' -o -name '*.py' ')' -exec grep -ohE '"DDPSESS_[A-Z0-9_]+"' {} +
		# shellcheck disable=SC2016
		grep -ohE '\$DDPSESS_[A-Z0-9_]+' containers/*.yml
	} | tr -d '"$' | sort -u | comm -3 - "$work/told"
}

strange_names() { # FILE...: of functions, types and constants
	local name
	grep -ohE '\b(ddps_[a-z0-9_]+[a-z0-9]|DDPS_[A-Z0-9_]+[A-Z0-9])\b' "$@" | sort -u |
		while read -r name; do
			grep -rqw -- "$name" include/ddpsess src tests/unit tests/conformance || echo "$name"
		done
}

# shellcheck disable=SC2016 # backquotes of Markdown
strange_files() { # FILE...: in backquotes, or the targets of links
	local page name
	for page in "$@"; do
		grep -oE '`(src|tests|tools|docs|include|bench|examples|man)/[a-z0-9_./*-]+`' "$page" |
			tr -d '`' | sort -u | while read -r name; do
			compgen -G "$name*" >/dev/null || echo "$page: $name"
		done
		grep -oE '\]\([a-z][^)#:]*' "$page" | sed 's/](//' | sort -u | while read -r name; do
			[ -e "$(dirname "$page")/$name" ] || [ -e "docs/$name" ] || echo "$page: $name"
		done
	done
}

# shellcheck disable=SC2016
strange_targets() { # FILE...: of make
	local name
	grep -ohE '(`|^)make [a-z][a-z-]+' "$@" | sed 's/.*make //' | sort -u | while read -r name; do
		grep -qE "^([a-z -]* )?$name( [a-z -]*)?:" Makefile mk/*.mk || echo "make $name"
	done
}

# what symbol maps export and no manual page of section 3 has
unmanned() { # FOLDER
	local name
	sed -nE 's/^\t(ddps_[a-z0-9_]+);.*/\1/p' src/*.map src/*/*.map | sort -u | while read -r name; do
		[ -s "$1/$name.3" ] || echo "$name"
	done
}

none() { # NAME COMMAND...: it prints nothing
	"${@:2}" >"$work/log"
	! [ -s "$work/log" ]
	result $? "$1" "$work/log"
}

[ "$(wc -l <"$work/offered")" -gt 50 ] && [ "$(wc -l <"$work/commands")" -gt 15 ]
result $? "options and commands were found"
none "sessctl's manual pages have the options that there are" strange_options "$manual"
none "sessctl's manual pages have the commands that there are" missing_commands "$manual"
none "each command has a manual page" missing_pages man
none "variables of the environment are those that are read" strange_variables man/*.scd "${pages[@]}"
none "functions, types and constants in manuals and pages exist" \
	strange_names man/*.scd "${pages[@]}"
none "files that pages name exist" strange_files "${pages[@]}"
none "targets of make that pages name exist" strange_targets "${pages[@]}"
tools/reference/man.sh "$work/man3" >"$work/log" 2>&1
result $? "the headers make manual pages" "$work/log"
none "each public function has a manual page" unmanned "$work/man3"
none "each member of a public struct and each value of an enum is in a manual page" \
	python3 tests/package/members.py "$work/man3" include
undocumented() { # SCHEMA
	python3 tests/package/json_manual.py "$1" man/sessctl-json.5.scd man/sessctl-stat.1.scd
}
none "each member that sessctl prints as JSON is in a manual page" undocumented docs/sessctl.schema.json
sed 's/"peer_pid": /"peer_pidgin": /; s/{"const": "pong"}/{"const": "ping-pong"}/' docs/sessctl.schema.json >"$work/schema"
[ "$(undocumented "$work/schema" | xargs)" = "peer_pidgin ping-pong" ]
result $? "a member without a manual page is found, and an event"
cp -r include "$work/more" && sed -i 's/^struct ddps_conn_param {/&\n	int one_more, and_one;/' "$work/more/ddpsess/session.h" &&
	sed -i 's/^	X(RTR, -68/	X(NEW, -69, "new") &/' "$work/more/ddpsess/err_codes.h"
[ "$(python3 tests/package/members.py "$work/man3" "$work/more" | xargs)" = \
	'ddps_conn_param: and_one ddps_conn_param: one_more ddps_err: DDPS_E_NEW' ]
result $? "a member without a manual page is found"
grep -q 'int ddps_cq_wait(struct ddps_cq' "$work/man3/ddps_cq_wait.3" &&
	grep -qA 2 '^.SH RETURN VALUE' "$work/man3/ddps_cq_wait.3"
result $? "a manual page has the call and what it returns"
grep -qF 'shm://@NAME' "$work/man3/ddps_listen.3" && grep -qF '\fItimeout_ms\fR' "$work/man3/ddps_cq_wait.3"
result $? "a manual page underlines arguments, and no name that an example has behind an @"
sed -n '/^.SH RETURN VALUE/,/^.SH SEE ALSO/p' "$work/man3/ddps_event_wait.3" >"$work/log"
[ "$(grep -cE '^DDPS_E_[A-Z]+' "$work/log")" = 4 ] && grep -q '^0, or' "$work/log"
result $? "each error has an item of its own in a manual page" "$work/log"
for name in ddps_post_send ddps_send_wr; do # what its flags are, and of each what is said of it
	for flag in SILENT SOLICITED INVALIDATE FENCE MORE PLACED; do
		grep -A 3 "^.fBDDPS_WR_$flag" "$work/man3/$name.3" | grep -qE '^[A-Za-z].{20}' || echo "$name $flag"
	done
done >"$work/log"
[ ! -s "$work/log" ] && grep -q '^ATOMIC_WRITE writes the 8 octets' "$work/man3/ddps_post_send.3" &&
	grep -A 2 '^.fBDDPS_FLUSH_REGION.* (0x4)$' "$work/man3/ddps_post_send.3" | grep -q '^the whole region' &&
	grep -A 2 '^.SH CONSTANTS' "$work/man3/ddps_conn_param.3" | grep -q '^Types of ready-to-receive'
result $? "a manual page has the constants that it names by what they begin with" "$work/log"
grep -A 1 '^if (!ddps_conform_run' "$work/man3/ddpsess_conform.3" >"$work/log"
grep -qE '^ {8}printf.* failed\\\\n"' "$work/log"
result $? "a manual page has the example of its header, indented, with its backslash" "$work/log"
tools/reference/html.sh "$work/reference" >"$work/log" 2>&1
result $? "doxygen makes the reference without a warning" "$work/log"
unnamed() { # PAGE: headers that the first page of the reference does not lead to
	local h
	for h in include/ddpsess/*.h; do
		grep -qE "<a [^>]*>$(basename "$h" .h)\\.h</a>" "$1" || echo "$h"
	done
}
none "the reference begins with a page that leads to each header" unnamed "$work/reference/html/index.html"
sed 's:>wr.h</a>::' "$work/reference/html/index.html" >"$work/first"
[ "$(unnamed "$work/first")" = include/ddpsess/wr.h ] &&
	[ "$(grep -oE '>[1-4]\. [A-Z]' "$work/reference/html/modules.html" | tr -d '\n')" = ">1. S>2. C>3. T>4. I" ]
result $? "a header that it leaves out is found; the groups are in reading order"

sed 's/--legacy-retry/--legacy-retries/; s/ipoib lladdr/ipoib address/' "$manual" >"$work/altered"
# shellcheck disable=SC2016
echo '`DDPSESS_COLOUR` ddps_ctx_paint `src/paint/paint.c` [page](paint.md) `make paint`' >"$work/page"
[ "$(strange_options "$work/altered" | wc -l)" = 2 ] &&
	[ "$(missing_commands "$work/altered")" = "sessctl ipoib lladdr" ] &&
	[ "$(strange_variables man/*.scd "${pages[@]}" "$work/page")" = $'\tDDPSESS_COLOUR' ] &&
	[ "$(strange_names "$work/page")" = ddps_ctx_paint ] &&
	[ "$(strange_files "$work/page" | wc -l)" = 2 ] &&
	[ "$(strange_targets "$work/page")" = "make paint" ]
result $? "what is wrong is found"
# uncoded PAGE: codes that ERRORS of ddpsess(7) does not have
uncoded() {
	sed -n 's/.*X(\([A-Z0-9_]*\), \(-[0-9]*\), .*/\1 \2/p' include/ddpsess/err_codes.h |
		while read -r name value; do
		grep -A1 -Fx "|  DDPS\\_E\\_${name//_/\\_}" "$1" | grep -qFx ":  $value" || echo "$name"
	done
}
uncoded man/ddpsess.7.scd >"$work/log"
[ ! -s "$work/log" ]
result $? "ddpsess(7) has each code of an error" "$work/log"
sed 's/CERT\\_CA$/CERT/' man/ddpsess.7.scd >"$work/page"
[ "$(uncoded "$work/page")" = CERT_CA ]
result $? "a code that the page does not have is found"
rm "$work/man3/ddps_connect.3"
[ "$(unmanned "$work/man3")" = ddps_connect ]
result $? "a function without a page is found"
mkdir "$work/include"
sed '/^ \* @depth:/d' include/ddpsess/wr.h >"$work/include/wr.h"
! tools/reference/html.sh "$work/bad" "$work/include" >"$work/log" 2>&1 && grep -q depth "$work/log"
result $? "a parameter that no comment names is found" "$work/log"
cp -r man "$work/pages" && rm "$work/pages/sessctl-perf.1.scd"
[ "$(missing_pages "$work/pages")" = "sessctl perf" ]
result $? "a command without a page is found"
