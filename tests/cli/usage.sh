#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl: help, version, usage errors, exit statuses, completion. No session is set up.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
tools=$(realpath "$here/../../tools")

commands="listen connect put get ping perf conform stat top"

help_of_all() {
	local c
	run 0 --help && says out ipoib || return
	for c in $commands; do
		says out "$c" || return
	done
	for c in $commands; do
		run 0 "$c" --help && says out "Usage: sessctl $c" && says out "--json" || return
	done
}

version() {
	run 0 --version && says out "sessctl 0." && run 0 ping --version && says out "libddpsess"
}

bad() { # TEXT ARGUMENT...
	local text=$1
	shift
	run 2 "$@" && says err "$text" && says err "try:"
}

# A directory where a file is to be named, by each that opens one.
directories() {
	local dir=$work
	run 1 listen --capture "$dir" tcp://127.0.0.1:0 && says err "Is a directory" && says err "try:" &&
		run 1 conform --self tcp --case mpa-request-res --junit "$dir" && says err "Is a directory" &&
		says err "try:" && run 1 conform --self tcp --case mpa-request-res --pcap "$dir" &&
		says err "Is a directory" && says err "try:" &&
		run 1 ipoib mad --capture "$dir" /dev/null && says err "Is a directory" && says err "try:" &&
		bad "Is a directory" connect --private-data "@$dir" tcp://127.0.0.1:1
}

# Nothing listens: by each wire, and by the tester.
nothing_listens() {
	run 1 connect tcp://127.0.0.1:1 && says err "is a listener running" &&
		run 1 connect --timeout 5 'sctp://127.0.0.1:1?encap=1' && says err "try:" &&
		run 1 conform --case mpa-request-res tcp://127.0.0.1:1 && says err "is the target running"
}

no_command() {
	run 2 && says err "Usage:"
}

long_private_data() { # OCTETS LIMIT OPTION...
	local data
	data=$(printf '%*s' "$1" '' | tr ' ' p)
	bad "$2" connect "${@:3}" --private-data "$data" tcp://127.0.0.1:1
}

# "sessctl help perf" is "sessctl perf --help", of every command.
help_command() {
	local c
	for c in $commands ipoib run keys check-keys; do
		run 0 help "$c" && mv out helped && run 0 "$c" --help && same helped out || return
	done
	run 2 help nothing-such && says err "no command 'nothing-such'"
}

guesses() {
	run 2 prf && says err "try: sessctl perf" && run 2 confrom && says err "try: sessctl conform" &&
		run 2 frobnicate && says err "try: sessctl --help" && run 2 keys hots x && says err "try: sessctl keys host" &&
		run 2 ipoib bridj && says err "try: sessctl ipoib bridge" && run 2 ipoib frob && says err "try: sessctl ipoib --help" &&
		run 2 pi/foo && says err "try: sessctl COMMAND URI" && run 2 get pi/foo && says err "write tcp://HOST:PORT/NAME" &&
		bad "did you mean --size?" perf --sise 64 tcp://127.0.0.1:1 &&
		bad "did you mean --tun?" ipoib bridge --tunn x &&
		run 2 perf --frobnicate tcp://127.0.0.1:1 && says err "unknown or ambiguous option" &&
		! grep -q "did you mean" err
}

# A stranger's mistakes: what is wrong, and what it has to be.
strangers_words() {
	bad "--self needs a wire: it is sessctl conform --self tcp, sctp or shm" conform --self &&
		bad "did you mean --case?" conform --only mpa-crc tcp://127.0.0.1:1 &&
		bad "did you mean --seconds?" perf --duration 5 tcp://127.0.0.1:1 &&
		bad "did you mean --tls-cert?" connect --cert a.pem tls://127.0.0.1:1 &&
		bad "the file comes first, and then the URI" put tcp://127.0.0.1:1 hello &&
		bad "the URI comes first, and then the file" get hello tcp://127.0.0.1:1/hello &&
		bad "no file is named: it is SETTINGS, or --tls-cert" check-keys &&
		bad "no file is named" check-keys --tls-peer node-a || return
	why="another command's option is offered"
	run 2 perf --only 5 tcp://127.0.0.1:1 && ! grep -q "did you mean" err
}

# What would have no effect is refused, and who can do it is named.
without_effect() {
	bad "tls:// has crc=1 in the URI" connect --crc on tls://127.0.0.1:1 &&
		bad "shared memory needs none" connect --crc on shm://@none
}

# What begins as several do is none of them.
ambiguous() {
	bad "ambiguous option '--tls-p'" ping --tls-p x tcp://127.0.0.1:1 && bad "ambiguous option '--tls-c'" check-keys --tls-c x &&
		bad "ambiguous option '--p'" ping --p tcp://127.0.0.1:1 && bad "'--json' takes no value" ping --json=1 tcp://127.0.0.1:1 &&
		bad "option '--size' needs a value" ping tcp://127.0.0.1:1 --size && run 2 ping --cou 1 --siz 64 tcp://127.0.0.1 &&
		says err "port is missing"
}

one_dash_and_a_path() {
	bad "did you mean --op?" perf -op write tcp://127.0.0.1:1 && bad "did you mean --seconds?" perf -seconds=1 x &&
		bad "unknown option '-x'" perf -x tcp://127.0.0.1:1 && ! grep -q "did you mean" err || return
	for c in connect ping perf; do
		run 2 "$c" tcp://127.0.0.1:1/f && says err '"/f" behind the port: a session has no path' &&
			says err "try: without a path: only get and put name a file" || return
	done
	run 1 get "tcp://none.invalid:1/f" there && says err "check the name"
}

# Whoever takes a URI knows all five schemes, offers them, and names them where one is wrong.
schemes() {
	local c s file=()
	run 0 --help && says out "tls:// and sctps://" || return
	for c in listen connect put get ping perf conform stat top; do
		file=()
		[ "$c" != put ] || file=(/etc/hostname)
		for s in tcp tls sctp sctps; do
			run 2 "$c" "${file[@]}" "$s://127.0.0.1/f" && says err "port is missing" || return
		done
		why="$c: not all are offered"
		[ "$("$SESSCTL" complete "$c" "" | grep -c '^[a-z]*://')" = 5 ] || return
		run 2 "$c" "${file[@]}" http://127.0.0.1:1/f && says err "tcp://, tls://, sctp://, sctps:// or shm://" || return
	done
}

# Letters, alone, joined and with their values; one dash and a whole name is no letter.
letters() {
	listen tcp://127.0.0.1:0
	run 0 ping -jc 2 -i0 -s 1K "$uri" -w 30 && has out event ping && has out count 2 && has out size 1024 &&
		run 0 perf -Rjt 0.1 -P2 -s 64 "$uri" && has out op read && has out sessions 2 &&
		run 0 ping -V && says out "sessctl 0." && run 0 ping -h && says out "--size, -s SIZE" &&
		bad "option '-s' needs a value" ping "$uri" -s && bad "did you mean --size?" ping -size 4 "$uri" &&
		bad "did you mean --size?" ping -size=4 "$uri" && bad "did you mean --json?" ping -json "$uri" &&
		bad "unknown option '-f'" ping -f "$uri" && bad "--count" ping -cx "$uri"
	status=$?
	stop_listener
	return "$status"
}

suffixes() {
	run 1 perf --size 1k,2KiB tcp://127.0.0.1:1 && says err "Connection refused" &&
		bad "K, M, G or T may follow" perf --size 1KB tcp://127.0.0.1:1 &&
		bad "K, M, G or T may follow" listen --max-size 1KB tcp://127.0.0.1:0
}

brackets() {
	bad "an IPv6 address needs brackets, as in [::1]:7174" connect tcp://::1:7174 &&
		bad "an IPv6 address needs brackets" ping "sctp://fe80::1:7174" &&
		bad "name the interface, as in [fe80::1%eth0]" connect "tcp://[fe80::1]:7174"
}

# No line of a help is wider than is asked for.
widths() { # COLUMNS
	local c
	for c in "" $commands ipoib run "ipoib bridge" "ipoib conform"; do
		# shellcheck disable=SC2086 # two words are two arguments
		COLUMNS=$1 run 0 $c --help || return
		why="$c: $(awk -v w="$1" 'length($0) > w && NF > 1' out | head -n 1)"
		! awk -v w="$1" 'length($0) > w && NF > 1' out | grep -q . || return
	done
}

# Who reads no further has enough: that is no error to speak of.
reader_leaves() {
	"$SESSCTL" ipoib sim --json 2>err | head -n 1 >out
	says out '{"event"' || return
	"$SESSCTL" conform --list 2>>err | head -n 1 >out
	says out mpa- || return
	"$SESSCTL" --help 2>>err | true
	"$SESSCTL" --help 2>&1 >/dev/full | grep -q "No space left" || { why="a full disk is silent" && return 1; }
	why="it said $(cat err)"
	! grep -q . err
}

no_folder_for_plot() {
	run 2 perf --plot /nowhere/x.svg tcp://127.0.0.1:1 && says err "--plot /nowhere/x.svg: No such file"
}

json_error() {
	run 2 put --json /etc/hostname nowhere && has out event error && says out '"try":'
}

bad_uri() {
	run 2 connect http://h:1 && says err "tcp://HOST:PORT" || return
	run 2 listen tcp://127.0.0.1 && says err "tcp://HOST:PORT" && says err "port is missing"
}

missing_file() {
	run 1 put ./nothing tcp://127.0.0.1:1 && says err "No such file" &&
		says err "check the path" || return
	run 1 get tcp://127.0.0.1:1/x ./nothing/x && says err "check the path" || return
	run 1 ipoib sim ./nothing && says err "No such file" && says err "try:" || return
	run 1 ipoib sim . && says err "Is a directory" || return
	run 1 put /dev/null tcp://127.0.0.1:1 && says err "not a regular file" || return
	run 1 put . tcp://127.0.0.1:1/x && says err "a folder" && says err "tar -c"
}

missing_dir() {
	run 1 listen --dir ./nothing tcp://127.0.0.1:0 && says err "No such file"
}

existing_file_is_not_fetched_over() {
	echo keep >kept
	run 1 get tcp://127.0.0.1:1/x kept && says err "--force" && says kept keep
}

# a rename would put a file where a FIFO, or a device, was
only_a_file_is_replaced() {
	mkfifo pipe
	run 1 get --force tcp://127.0.0.1:1/x pipe && says err "not a regular file" || return
	why="it is no FIFO any more"
	[ -p pipe ]
}

unknown_host() {
	run 1 connect tcp://bad..name:7 && says err "check the name" || return
	run 1 listen tcp://bad..name:0 && says err "looked up"
}

# one message, not one of each case
no_target() {
	run 2 conform tcp://127.0.0.1:0 && says err "port other than 0" || return
	run 1 conform tcp://127.0.0.1:1 && says err "Connection refused" && says err "try:" &&
		[ ! -s out ] || return # nothing was run: there is nothing to count
	run 1 conform tcp://bad..name:7 && says err "no address"
}

# Two listeners over SCTP share the UDP port of the URI, whatever their ports are.
udp_port_taken() {
	listen 'sctp://127.0.0.1:0?backend=native&encap=0'
	run 1 listen "sctp://127.0.0.1:0?backend=native&encap=${uri##*encap=}" &&
		says err "Address already in use" && says err "try: another UDP port: encap=PORT"
	status=$?
	stop_listener
	return "$status"
}

raw_ip_without_the_right() {
	if [ "$(id -u)" = 0 ]; then
		timeout "$PATIENCE" setpriv --bounding-set=-net_raw "$SESSCTL" listen \
			'sctp://127.0.0.1:0?encap=off' >out 2>err
		status=$?
	else
		run 1 listen 'sctp://127.0.0.1:0?encap=off'
	fi
	why="status $status"
	[ "$status" -eq 1 ] && says err "CAP_NET_RAW"
}

full() { # COMMAND...: standard output cannot be written
	timeout "$PATIENCE" "$SESSCTL" "$@" >/dev/full 2>err
	status=$?
	why="$*: status $status"
	[ "$status" -eq 1 ] && says err "standard output: No space left"
}

full_output() {
	[ -c /dev/full ] || return 0
	full --help && full ipoib sim && full conform --list &&
		full listen tcp://127.0.0.1:0 && full listen --json tcp://127.0.0.1:0 || return
	run 1 conform --self --case mpa-request-plain --junit /dev/full tcp &&
		says err "could not be written: No space left"
}

# A socket does not take the number of a standard descriptor that is closed, and what is printed does
# not go to the peer.
closed_output() {
	listen tcp://127.0.0.1:0
	timeout "$PATIENCE" "$SESSCTL" ping --count 1 "$uri" >&- 2>err
	status=$?
	why="status $status"
	[ "$status" -eq 1 ] && says err "standard output: Bad file descriptor" &&
		timeout "$PATIENCE" "$SESSCTL" ping --count 1 "$uri" >out 2>&- <&- && says out "round trip"
	status=$?
	stop_listener
	return "$status"
}

# each command, with those of commands that have some
each_command() {
	local c
	for c in $commands run check-keys; do
		echo "$c"
	done
	for c in keys ipoib; do
		COLUMNS=9999 "$SESSCTL" $c --help | sed -n "/^Commands:/,/^$/s/^  \([a-z-]*\) .*/$c \1/p"
	done
}

# every option and command in the help is offered, and nothing else
completion() {
	local c words want
	why="commands"
	"$SESSCTL" complete "" | cut -f 1 >out
	[ "$(tr '\n' ' ' <out)" = "$commands keys check-keys ipoib run --help --version " ] || return
	while read -ra words; do
		want=$("$SESSCTL" "${words[@]}" --help | sed -n 's/^  \(--[a-z0-9-]*\)\(, \(-.\)\)\{0,1\}.*/\1\n\3/p' | grep -)
		why="${words[*]}: $(diff <("$SESSCTL" complete "${words[@]}" - | cut -f 1) - <<<"$want")" || return
	done < <(each_command)
	"$SESSCTL" complete ping --size 4 --op w >out
	why="values: $(cat out)"
	[ "$(cut -f 1 out)" = write ] || return
	why="no next word of a list"
	[ "$("$SESSCTL" complete connect --rtr send, | cut -f 1 | tr '\n' ' ')" = "send,send send,write send,read " ] &&
		[ "$("$SESSCTL" complete connect --rtr=send,wr | cut -f 1)" = --rtr=send,write ] || return
	"$SESSCTL" complete conform --case=mpa-i- >out
	why="names of cases: $(head -n 3 out)"
	[ "$(cut -f 1 out)" = "$("$SESSCTL" conform --list | cut -f 1 | sed -n 's/^mpa-i-/--case=&/p')" ] || return
	"$SESSCTL" complete ipoib conform --case "" >out
	why="names of cases of IPoIB: $(head -n 3 out)"
	[ "$(cut -f 1 out)" = "$("$SESSCTL" ipoib conform --list | cut -f 1)" ] || return
	"$SESSCTL" complete ping --frob= >out
	why="values of no option: $(head -n 3 out)"
	[ ! -s out ] || return
	"$SESSCTL" complete run --crc on ls -l >out
	why="arguments of a program: $(cat out)"
	[ "$(cat out)" = :files ]
}

# The lines behind which Tab is pressed: all options of a command, each one's values, what may stand there.
each_line() {
	local c option
	printf '%s\n' "sessctl " "sessctl pi" "sessctl run sessc" "sessctl ping s"
	each_command | while read -r c; do
		echo "sessctl $c -"
		[ "$c" != perf ] || echo "sessctl $c --op="
		[ "$c" = run ] || echo "sessctl $c "
		# shellcheck disable=SC2086 # two words are two arguments
		"$SESSCTL" $c --help | sed -n 's/^  \(--[a-z0-9-]*\)\(, -.\)\{0,1\} [^ ].*/\1/p' | while read -r option; do
			echo "sessctl $c $option "
		done
	done
}

offered_by_bash() { # FILE: lines, each followed by what is offered
	local line
	# shellcheck source=/dev/null
	. "$tools/sessctl/completion.bash"
	# shellcheck disable=SC2317 # _sessctl calls it, which may be done inside a completion only
	compopt() { :; }
	while IFS= read -r line; do
		read -ra COMP_WORDS <<<"$line"
		[ "$line" = "${line% }" ] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_sessctl sessctl
		echo "=$line"
		[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}" | sort
	done <"$1"
}

offered_by_fish() {
	# shellcheck disable=SC2016 # for fish
	fish --no-config -c 'source $argv[1]
		while read -l line
			echo "=$line"
			complete -C "$line" | string replace -r "\t.*" "" | sort
		end' "$tools/sessctl/completion.fish" <"$1"
}

# zsh's own functions only print; complete.zsh uses the real ones
offered_by_zsh() {
	# shellcheck disable=SC2016 # for zsh
	zsh -f -c 'compadd() { print -rl -- "${@[-1]}" }
		_describe() { print -rl -- "${(@P)2%%:*}" }
		_files() { [[ $1 = -/ ]] && print -rl -- *(/) || print -rl -- * }
		compset() { : }
		_command_names() { print -rl -- ${(k)commands[(I)$PREFIX*]} }
		while IFS= read -r line; do
			print -r -- "=$line"
			words=("${(@s: :)line}") CURRENT=$#words PREFIX=$words[-1]
			. "$0" | sort
		done' "$tools/sessctl/completion.zsh" <"$1"
}

# fish and zsh hand on what bash does
completion_alike() { # SHELL
	mkdir -p tab && touch tab/a-file && mkdir -p tab/a-folder && each_line >lines && cd tab || return
	# shellcheck disable=SC2030,SC2031 # for these two only
	(PATH=$(dirname "$SESSCTL"):$PATH && offered_by_bash ../lines >../by-bash && offered_by_"$1" ../lines >../by-other)
	cd .. && sed -i 's:/$::' by-bash by-other
	why="$(wc -l <lines) lines: $(diff by-bash by-other | head -n 5)"
	[ "$(wc -l <lines)" -gt 200 ] && grep -qx a-file by-bash && cmp -s by-bash by-other
}

# the same in a terminal of its own, by the shell's own functions
completion_in() { # zsh|bash
	local line became
	mkdir -p functions
	cp "$tools/sessctl/completion.zsh" functions/_sessctl
	touch a-file
	while IFS='>' read -r line became; do
		became=${became%|}
		# shellcheck disable=SC2031 # not changed there
		why="'$line' became '$(PATH=$(dirname "$SESSCTL"):$PATH timeout "$PATIENCE" zsh -f "$here/complete.zsh" \
			"$1" "$([ "$1" = zsh ] && echo "$PWD/functions" || echo "$tools/sessctl/completion.bash")" "$line")'"
		[ "$why" = "'$line' became '$became'" ] || return
	done <<-END
		sessctl pin>sessctl ping |
		sessctl ping tc>sessctl ping tcp://|
		sessctl ping tcp:>sessctl ping tcp://|
		sessctl ping --cou>sessctl ping --count |
		sessctl ping --op w>sessctl ping --op write |
		sessctl ping --op=w>sessctl ping --op=write |
		sessctl ipoib bri>sessctl ipoib bridge |
		sessctl conform --case mpa-request-spl>sessctl conform --case mpa-request-split |
		sessctl conform --case=mpa-request-spl>sessctl conform --case=mpa-request-split |
		sessctl conform --html a-fi>sessctl conform --html a-file |
		sessctl conform --html=a-fi>sessctl conform --html=a-file |
	END
}

test_case usage-help help_of_all
test_case usage-version version
test_case usage-no-command no_command
test_case usage-directories directories
test_case usage-nothing-listens nothing_listens
test_case usage-unknown-command bad "no command 'frob'" frob
test_case usage-unknown-option bad "--frob" connect --frob tcp://h:1
test_case usage-option-of-another-command bad "another command" connect --dir d tcp://h:1
test_case usage-missing-argument bad "missing arguments" connect
test_case usage-too-many-arguments bad "too many" connect a b
test_case usage-ird-limit bad "16382" connect --ird 16383 tcp://h:1
test_case usage-rtr-without-p2p bad "--p2p" connect --rtr send tcp://h:1
test_case usage-private-data-509 long_private_data 509 508
test_case usage-private-data-513-plain long_private_data 513 512 --plain
test_case usage-bad-uri bad_uri
test_case usage-get-without-name bad "names no file" get tcp://h:1
test_case usage-json-error json_error
test_case usage-missing-file missing_file
test_case usage-missing-dir missing_dir
test_case usage-existing-local-file existing_file_is_not_fetched_over
test_case usage-only-a-file-is-replaced only_a_file_is_replaced
test_case usage-unknown-host unknown_host
test_case usage-conform-without-target no_target
test_case usage-udp-port-taken udp_port_taken
test_case usage-raw-ip-without-the-right raw_ip_without_the_right
test_case usage-full-output full_output
test_case usage-closed-output closed_output
test_case usage-completion completion
if command -v fish >/dev/null; then
	test_case usage-completion-fish completion_alike fish
else
	ok "usage-completion-fish # skipped: no fish"
fi
if command -v zsh >/dev/null; then
	test_case usage-completion-zsh completion_in zsh
	test_case usage-completion-bash completion_in bash
	test_case usage-completion-zsh-alike completion_alike zsh
else
	ok "usage-completion-zsh # skipped: no zsh"
fi
test_case help-of-a-command help_command
test_case what-was-meant guesses
test_case schemes schemes
test_case letters letters
test_case ambiguous ambiguous
test_case strangers-words strangers_words
test_case without-effect without_effect
test_case one-dash-and-a-path one_dash_and_a_path
test_case suffixes-are-named suffixes
test_case brackets-are-asked-for brackets
test_case help-fits-80-columns widths 80
test_case help-fits-50-columns widths 50
test_case a-reader-that-leaves reader_leaves
test_case plot-without-a-folder no_folder_for_plot
finish
