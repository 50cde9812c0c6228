#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl put and get: content, names, limits, refusals, on each wire.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

# a fresh directory to serve, with something outside of it
start() { # OPTION...
	stop_listener
	rm -rf served secret back there
	mkdir served served/sub
	echo secret >secret
	ln -s ../secret served/out
	ln -s "$work" served/up
	listen "$(uri_of "$wire")" --dir served "$@"
}

round_trip() { # OCTETS
	head -c "$1" /dev/urandom >sample
	rm -f back
	run 0 put --json sample "$uri/f$1" && has out event transfer && has out op put &&
		has out bytes "$1" && has out sha256 "$(sha256sum <sample | cut -c 1-64)" &&
		same sample "served/f$1" || return
	run 0 get --json "$uri/f$1" back && has out op get && has out bytes "$1" &&
		same sample back
}

# the other digest, whose value is that of "123456789"
by_crc() {
	printf 123456789 >sample
	rm -f back
	run 0 put --json --digest crc32c sample "$uri/by-crc" && has out crc32c e3069283 &&
		same sample served/by-crc || return
	run 0 get --json --digest crc32c "$uri/by-crc" back && has out crc32c e3069283 &&
		same sample back || return
	head -c 9000001 /dev/urandom >sample
	rm -f back
	run 0 put --digest crc32c sample "$uri/by-crc-too" && same sample served/by-crc-too &&
		run 0 get --digest crc32c "$uri/by-crc-too" back && same sample back || return
	run 2 get --digest md5 "$uri/by-crc" there && says err "sha256|crc32c"
}

default_names() {
	echo content >here
	run 0 put here "$uri" && same here served/here || return
	rm -rf into
	mkdir into
	run 0 get "$uri/here" into && same here into/here || return
	(cd into && rm here && timeout "$PATIENCE" "$SESSCTL" get "$uri/here" >/dev/null) &&
		same here into/here
}

subdirectory() {
	echo inner >here
	run 0 put here "$uri/sub/new" && same here served/sub/new &&
		run 0 get "$uri/sub/new" there && same here there
}

odd_names() {
	echo odd >here
	run 0 put here "$uri/a%3fb%25 c" && same here 'served/a?b% c'
}

existing() {
	echo old >served/taken
	echo new >here
	run 1 put here "$uri/taken" && says err "--force" && says served/taken old || return
	run 0 put --force here "$uri/taken" && says served/taken new || return
	echo kept >local
	run 1 get "$uri/taken" local && says local kept || return
	run 0 get --force "$uri/taken" local && says local new
}

# Each refusal is followed by what helps against it.
says_what_to_try() {
	start
	echo old >served/old
	echo another >sample
	run 1 put sample "$uri/old" && says err "try: --force, or another name" || return
	run 1 get "$uri/nowhere/f" fetched && says err "try: a name below the --dir of the listener" || return
	start --read-only --max-size 3
	echo old >served/old
	run 1 put sample "$uri/new" && says err "try: sessctl listen without --read-only there" || return
	run 1 get "$uri/old" fetched && says err "try: a larger --max-size of sessctl listen" || return
	stop_listener
	listen "$(uri_of "$wire")"
	run 1 put sample "$uri/new" && says err "try: sessctl listen --dir DIRECTORY there"
}

refused() { # REASON NAME: both ways
	rm -f there
	echo x >here
	run 1 put here "$uri/$2" && says err "$1" || return
	run 1 get "$uri/$2" there && says err "$1" && absent there
}

link_out() {
	rm -f there
	echo x >here
	run 1 get "$uri/out" there && says err "out of the directory" || return
	run 1 get "$uri/up/secret" there && says err "out of the directory" || return
	run 1 put here "$uri/up/new" && says err "out of the directory" && absent new || return
	run 1 put --force here "$uri/out" && says err "the name is a link" && says secret secret &&
		[ -L served/out ] || return
	ln -s secret there
	run 1 get --force "$uri/sub/x" there && says err "not a regular file" && [ -L there ] && rm there
}

not_regular() {
	rm -f there
	mkfifo served/fifo
	run 1 get "$uri/fifo" there && says err "not a regular file" || return
	run 1 get "$uri/sub" there && says err "not a regular file"
}

no_such_file() {
	run 1 get "$uri/nothing" there && says err "no such file" && absent there || return
	run 1 put sample "$uri/nothing/f" && says err "no such file"
}

limit() {
	start --max-size 1K
	head -c 1024 /dev/zero >fits
	head -c 1025 /dev/zero >over
	run 0 put fits "$uri/fits" && run 1 put over "$uri/over" && says err "limit" &&
		absent served/over || return
	cp over served/over
	run 1 get "$uri/over" there && says err "limit"
}

no_dir() {
	listen "$(uri_of "$wire")"
	run 1 put sample "$uri/f" && says err "--dir" && run 1 get "$uri/f" there && says err "--dir"
}

ord_zero() {
	start
	echo x >served/f
	run 1 get --json --ord 0 "$uri/f" there && says err "ORD is 0" && says err "--ord" &&
		absent there || return
	start --ird 0
	echo x >served/f
	run 1 get --json "$uri/f" there && says err "is 0" && absent there
}

one_read_at_a_time() {
	start --ird 1
	head -c 5000000 /dev/urandom >sample
	run 0 put sample "$uri/f" && run 0 get --ord 1 "$uri/f" back && same sample back
}

at_once() {
	local i jobs=() bad=0
	start --count 8
	head -c 3000000 /dev/urandom >sample
	for i in 1 2 3 4 5 6 7 8; do
		timeout "$PATIENCE" "$SESSCTL" put sample "$uri/p$i" >/dev/null 2>"err$i" &
		jobs+=($!)
	done
	for i in "${jobs[@]}"; do
		wait "$i" || bad=1
	done
	why="a put failed: $(cat err?)"
	[ "$bad" -eq 0 ] || return
	end_listener || return
	for i in 1 2 3 4 5 6 7 8; do
		same sample "served/p$i" || return
	done
}

# "-" is standard output and standard input, and what is printed goes to standard error
pipes() {
	start
	head -c 3000001 /dev/urandom >sample
	why="put from a pipe"
	timeout "$PATIENCE" "$SESSCTL" put --json - "$uri/piped" < <(cat sample) >out 2>err &&
		has out sha256 "$(sha256sum <sample | cut -c 1-64)" && same sample served/piped || return
	why="put from a file"
	timeout "$PATIENCE" "$SESSCTL" put - "$uri/filed" <sample >out 2>err && same sample served/filed || return
	why="put from the middle of a file"
	{ dd bs=1 count=10 status=none >first && timeout "$PATIENCE" "$SESSCTL" put - "$uri/rest"; } <sample >out 2>err &&
		cat first served/rest | cmp -s - sample || return
	why="put of nothing"
	timeout "$PATIENCE" "$SESSCTL" put - "$uri/nothing" </dev/null >out 2>err && same served/nothing /dev/null || return
	run 0 get --json "$uri/piped" - && same sample out && mv err out && has out event transfer &&
		has out sha256 "$(sha256sum <sample | cut -c 1-64)" || return
	why="get into a pipe"
	timeout "$PATIENCE" "$SESSCTL" get "$uri/piped" - 2>err | cmp -s - sample && says err sha256 || return
	run 0 get --digest crc32c "$uri/nothing" - && same out /dev/null
}

# Whole or not at all; a reader that leaves is no error to speak of, and one that stops holds up only itself.
pipes_that_fail() {
	start
	head -c 3000001 /dev/urandom >served/big
	run 1 get "$uri/none" - && same out /dev/null && says err "no such file" || return
	timeout "$PATIENCE" "$SESSCTL" get "$uri/big" - 2>err | head -c 5 | cmp -s - <(head -c 5 served/big)
	why="a reader left: $(cat err)"
	! grep -q "try:" err || return
	timeout "$PATIENCE" "$SESSCTL" get "$uri/big" - 2>err >/dev/full
	status=$? why="full: $(cat err)"
	[ "$status" = 1 ] && says err "standard output: No space left" || return
	TMPDIR=/nowhere run 1 get "$uri/big" - && says err "TMPDIR" || return
	timeout "$PATIENCE" "$SESSCTL" put - "$uri" </dev/null >out 2>err
	status=$? why="no name: $(cat err)"
	[ "$status" = 2 ] && says err "standard input has no name" || return
	timeout "$PATIENCE" "$SESSCTL" put - "$uri/closed" <&- >out 2>err
	status=$? why="closed: $(cat err)"
	[ "$status" = 1 ] && says err "standard input: Bad file descriptor" && absent served/closed
}

# A signal, and the command's own timeout, while a pipe brings nothing and takes nothing
pipes_that_stand_still() {
	local writer reader
	start
	head -c 3000001 /dev/urandom >served/big
	rm -f still
	mkfifo still
	exec {writer}<>still
	"$SESSCTL" put --timeout 0.3 - "$uri/still" <still >out 2>err
	status=$? why="timeout: status $status $(cat err)"
	[ "$status" = 5 ] && absent served/still || return
	start_job stopped.fifo err get "$uri/big" --timeout 0.5 - # its first octets are read, the rest is not
	reader=$fd
	wait "$pid"
	status=$? why="get: status $status $(cat err)"
	exec {reader}<&- {writer}>&-
	[ "$status" = 5 ]
}

no_leftovers() {
	start
	head -c 100 /dev/urandom >sample
	run 0 put sample "$uri/f" && run 1 put sample "$uri/f" && run 1 put sample "$uri/../f" &&
		only served f out sub up
}

for wire in $WIRES; do
	start
	run 0 connect --json "$uri"
	mulpdu=$(sed -n 's/.*"mulpdu":\([0-9]*\).*/\1/p' out)
	for octets in 0 1 1447 $((mulpdu - 15)) $((mulpdu - 14)) $((mulpdu - 13)) $((mulpdu - 1)) \
		"$mulpdu" $((mulpdu + 1)) 1048575 1048576 1048577 $((256 << 20)); do
		test_case "files-$wire-$octets-octets" round_trip "$octets"
	done
	test_case "files-$wire-default-names" default_names
	test_case "files-$wire-by-crc" by_crc
	test_case "files-$wire-subdirectory" subdirectory
	test_case "files-$wire-odd-names" odd_names
	test_case "files-$wire-existing" existing
	test_case "files-$wire-dotdot" refused "'..'" ../secret
	test_case "files-$wire-dotdot-inside" refused "'..'" sub/../../secret
	test_case "files-$wire-absolute" refused "absolute" "$work/secret"
	test_case "files-$wire-control-characters" refused "control characters" a%0ab
	test_case "files-$wire-not-utf8" refused "control characters" a%ffb
	test_case "files-$wire-too-long" refused "255" "$(printf '%0256d' 0)"
	test_case "files-$wire-reserved" refused "reserved" .f.00000000.part
	test_case "files-$wire-link-out" link_out
	test_case "files-$wire-not-regular" not_regular
	test_case "files-$wire-no-such-file" no_such_file
	test_case "files-$wire-limit" limit
	test_case "files-$wire-no-dir" no_dir
	test_case "files-$wire-what-to-try" says_what_to_try
	test_case "files-$wire-ord-0" ord_zero
	test_case "files-$wire-ird-1" one_read_at_a_time
	test_case "files-$wire-at-once" at_once
	test_case "files-$wire-pipes" pipes
	test_case "files-$wire-pipes-that-fail" pipes_that_fail
	test_case "files-$wire-pipes-that-stand-still" pipes_that_stand_still
	test_case "files-$wire-no-leftovers" no_leftovers
done
finish
