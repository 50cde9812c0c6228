#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl perf: each kind, what is reported and whether it adds up, the plot, on each wire.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

# Every line: numbers that agree with each other, in the order of the sizes.
adds_up() { # OP DEPTH SIZE...
	local op=$1 depth=$2 size i=0
	shift 2
	grep '"event":"perf"' out >lines
	why="$(wc -l <lines) lines for $# sizes"
	[ "$(wc -l <lines)" -eq $# ] || return
	for size in "$@"; do
		i=$((i + 1))
		sed -n "${i}p" lines >row
		has row op "$op" && has row size "$size" && has row depth "$depth" || return
		why="numbers: $(cat row)"
		sed 's/.*"seconds"/"seconds"/; s/"[a-z0-9_]*"://g; s/[{}]//g; s/,/ /g' row |
			awk -v size="$size" 'function near(a, b) { return a > b * 0.999 && a < b * 1.001 }
			{ exit !(NF == 11 && $1 > 0 && $2 >= 1 && near($3, $2 / $1) &&
				near($4, $3 * size) && $5 > 0 && $5 <= $6 * 1.001 &&
				$6 <= $7 && $7 <= $8 && $8 <= $9 && $9 <= $10 * 1.001 &&
				$11 >= 0) }' || return
	done
}

one() { # OP DEPTH
	run 0 perf --json --op "$1" --depth "$2" --size 1,64,65536 --seconds 0.1 "$uri" &&
		has out transport "$wire" && adds_up "$1" "$2" 1 64 65536
}

table() {
	run 0 perf --size 64,1M --seconds 0.01 "$uri" && says out "perf send, depth 16" &&
		says out "64 octets" && says out "1 MiB" && says out "p99 us"
}

# The table fits a terminal of so many columns.
fits() { # COLUMNS
	COLUMNS=$1 run 0 perf --size 64,1M --seconds 0.25 --interval 0.1 "$uri" && says out "p99 us" || return
	why="wider than $1: $(cat out)"
	! sed -n '/^perf /,/^closed/p' out | grep -E ".{$(($1 + 1))}"
}

ord_zero() {
	run 1 perf --op read --ord 0 "$uri" && says err "ORD is 0" && says err "--ord"
}

# Somebody else's gnuplot shows what it was given.
plot() {
	mkdir -p bin
	printf '#!/bin/sh\ncat >script\necho "<svg width=9 height=4></svg>"\n' >bin/gnuplot
	chmod +x bin/gnuplot
	PATH=$PWD/bin:$PATH run 0 perf --size 64,128 --seconds 0.01 --plot "it's.svg" "$uri" &&
		says "it's.svg" "</svg>" && says script "set terminal svg" || return
	why="rows: $(cat script)"
	[ "$(grep -cE '^(64|128) [0-9.e+]+ [0-9.e+]+ [0-9.e+]+$' script)" -eq 2 ] || return
	printf '#!/bin/sh\ncat >script\necho "<svg width=9 height=4>"\n' >bin/gnuplot
	PATH=$PWD/bin:$PATH run 1 perf --size 64 --seconds 0.01 --plot y.svg "$uri" &&
		says err "y.svg: gnuplot could not draw it" && [ ! -e y.svg ] || return
	printf '#!/bin/sh\nexit 3\n' >bin/gnuplot
	PATH=$PWD/bin:$PATH run 1 perf --size 64 --seconds 0.01 --plot x.png "$uri" &&
		says err "x.png: gnuplot could not draw it" || return
	run 2 perf --plot x.pdf "$uri" && says err ".svg or .png"
}

# What the link leads to stays, and what is there while nothing whole is drawn.
plot_links() {
	mkdir -p bin
	printf '#!/bin/sh\ncat >/dev/null\n[ ! -e broken ] && echo "<svg width=9 height=4></svg>"\n' >bin/gnuplot
	chmod +x bin/gnuplot
	echo precious >kept
	ln -sf kept link.svg
	PATH=$PWD/bin:$PATH run 1 perf --size 64 --seconds 0.01 --plot link.svg "$uri" &&
		says err "a link is not followed" && says kept precious && [ -L link.svg ] || return
	echo old >there.svg
	chmod 600 there.svg
	touch broken
	PATH=$PWD/bin:$PATH run 1 perf --size 64 --seconds 0.01 --plot there.svg "$uri" &&
		says there.svg old || return
	rm broken
	PATH=$PWD/bin:$PATH run 0 perf --size 64 --seconds 0.01 --plot ./there.svg "$uri" &&
		says there.svg "</svg>" || return
	why="mode $(stat -c %a there.svg)"
	[ "$(stat -c %a there.svg)" = 600 ]
}

# The units of the table and of the drawing are the same, and sizes have prefixes.
plot_labels() {
	mkdir -p bin
	printf '#!/bin/sh\ncat >script\necho "<svg width=9 height=4></svg>"\n' >bin/gnuplot
	chmod +x bin/gnuplot
	PATH=$PWD/bin:$PATH run 0 perf --json --size 1M --seconds 0.1 --plot l.svg "$uri" &&
		says script "set ylabel 'MiB/s'" && says script "set ylabel 'microseconds'" &&
		says script "set format x '%.0b %B'" || return
	why="drawn: $(grep '^1048576 ' script), measured: $(cat out)"
	grep '"event":"perf"' out >row
	jq -e --arg drawn "$(awk '$1 == 1048576 { print $2 }' script)" \
		'.bytes_per_second / 1048576 / ($drawn | tonumber) | . > 0.999 and . < 1.001' row >/dev/null
}

both_ways() {
	run 0 perf --json --bidir --size 4K --seconds 0.1 "$uri" && has out op both &&
		run 0 perf --json --reverse --size 4K --seconds 0.1 "$uri" && has out op read || return
	run 2 perf --bidir --reverse "$uri" && says err "--bidir excludes --reverse" &&
		run 2 perf --bidir --op ping "$uri" && says err "--bidir excludes another --op" || return
	run 1 perf --bidir --ord 0 "$uri" && says err "ORD is 0"
}

in_parallel() {
	run 0 perf --json --op write --parallel 3 --size 64,4096 --seconds 0.1 "$uri" || return
	why="sessions: $(cat out)"
	[ "$(grep -c '"event":"established"' out)" -eq 3 ] &&
		[ "$(grep -c '"event":"closed"' out)" -eq 3 ] && has out sessions 3 &&
		adds_up write 16 64 4096 || return
	run 0 perf --parallel 2 --size 64 --seconds 0.01 "$uri" &&
		says out "perf send, depth 16, 2 sessions"
}

# No more than 400 KiB a second and the first group; the time is what the line says.
paced() { # OP
	run 0 perf --json --op "$1" --rate 400K --size 4K --seconds 0.5 "$uri" || return
	why="more than --rate: $(cat out)"
	grep '"event":"perf"' out | jq -e '.ops <= 100 * .seconds + 8' >/dev/null || return
	why="it did not go on: $(cat out)"
	grep '"event":"perf"' out | jq -e '.ops >= 8' >/dev/null
}

# Lines that follow each other, and no more operations in them than in all.
intervals() {
	run 0 perf --json --op write --size 4K --seconds 0.5 --interval 0.1 "$uri" || return
	why="intervals: $(cat out)"
	jq -es '[.[] | select(.event == "interval")] as $i |
		([.[] | select(.event == "perf")][0].ops) as $all |
		($i | length) >= 1 and $i[0].from == 0 and
		all($i[]; .to - .from >= 0.1 and .ops >= 0) and
		all(range(1; $i | length); ($i[.].from - $i[. - 1].to | fabs) < 1e-6) and
		([$i[].ops] | add) <= $all' out >/dev/null || return
	run 0 perf --size 4K --seconds 0.3 --interval 0.1 "$uri" && says out "0.00 to 0."
}

# Who looks on at a terminal sees the progress without asking.
intervals_on_a_terminal() {
	PATIENCE=20 run 0 perf --size 4K --seconds 2.2 "$uri" && ! grep -q "0.00 to 1." out || return
	TERM=xterm timeout "$PATIENCE" script -qec "$SESSCTL perf --size 4K --seconds 2.2 '$uri'" /dev/null >out
	says out "0.00 to 1."
}

timed_out() {
	run 5 perf --json --seconds 60 --timeout 0.2 "$uri" && says err "not done within 0.2 s" &&
		has out code DDPS_E_TIMEDOUT
}

for wire in $WIRES; do
	listen "$(uri_of "$wire")"
	for op in send write read ping; do
		test_case "perf-$wire-$op-1" one "$op" 1
		test_case "perf-$wire-$op-16" one "$op" 16
	done
	test_case "perf-$wire-send-128" one send 128
	test_case "perf-$wire-table" table
	test_case "perf-$wire-ord-0" ord_zero
	test_case "perf-$wire-both-1" one both 1
	test_case "perf-$wire-both-16" one both 16
	test_case "perf-$wire-both-ways" both_ways
	test_case "perf-$wire-parallel" in_parallel
	test_case "perf-$wire-rate-send" paced send
	test_case "perf-$wire-rate-write" paced write
	test_case "perf-$wire-fits-80-columns" fits 80
	test_case "perf-$wire-fits-50-columns" fits 50
	test_case "perf-$wire-intervals" intervals
	if command -v script >/dev/null; then
		test_case "perf-$wire-intervals-on-a-terminal" intervals_on_a_terminal
	else
		ok "perf-$wire-intervals-on-a-terminal # skipped: no script"
	fi
	test_case "perf-$wire-plot" plot
	test_case "perf-$wire-plot-labels" plot_labels
	test_case "contact 19: $wire: a plot and links" plot_links
	test_case "perf-$wire-timeout" timed_out
	test_case "perf-$wire-listener-goes" listener_goes \
		1 perf --json --seconds 60 "$uri"
done
finish
