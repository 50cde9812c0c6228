#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whatever cannot be written is reported and ends a command as failed: standard output and each file that --help names.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
export DDPSESS_WATCH=$work/watch
mkdir -m 700 watch
mkdir served got
echo something | tee sample >served/there
[ -c /dev/full ] || { echo "ok writes # skipped: no /dev/full" && exit 0; }
echo '{"message":"DREP","fields":{"local_id":7,"remote_id":8}}' >message
listen "$(uri_of tcp)" --dir served

# commands_of [WORD]: those that --help lists
commands_of() {
	"$SESSCTL" "$@" --help | awk '/^Commands:/ { on = 1; next } on && /^  [a-z]/ { print $1 } on && /^$/ { exit }'
}

# files_of COMMAND...: its options that name a file to be written
files_of() {
	"$SESSCTL" "$@" --help | grep -E '^ +--[a-z]+ FILE .*(write|draw)' | grep -oE -- '--[a-z]+ FILE' | cut -d ' ' -f 1
}

# words_of COMMAND: how it is run, in the array words
words_of() {
	case $1 in
	connect | ping) words=("$1" "$uri") ;;
	put) words=(put --force sample "$uri/new") ;;
	get) words=(get --force "$uri/there" got/there) ;;
	perf) words=(perf --size 64 --seconds 0.01 "$uri") ;;
	conform) words=(conform --self --case mpa-request-plain tcp) ;;
	listen) words=(listen "$(uri_of tcp)") ;;
	stat) words=(stat "$listener") ;;
	top) words=(top --count 1 "$listener") ;;
	run) words=(run --help) ;; # files: full_disk.sh
	keys) words=(keys ca --help) ;; # files: full_disk.sh
	check-keys) words=(check-keys --days 0 --tls-ca none.pem) ;;
	"ipoib service-id") words=(ipoib service-id --qpn 1) ;;
	"ipoib lladdr") words=(ipoib lladdr --qpn 1 --gid fe80::1) ;;
	"ipoib private-data") words=(ipoib private-data --qpn 1 --mtu 1500) ;;
	"ipoib mad") words=(ipoib mad message) ;;
	"ipoib sim") words=(ipoib sim) ;;
	"ipoib listen" | "ipoib connect" | "ipoib bridge") read -ra words <<<"$1 --help" ;; # nothing without a peer
	"ipoib conform") words=(ipoib conform --list) ;;
	*) words=("no way to run $1 is known here") ;;
	esac
}

run_words() {
	timeout -s TERM "$PATIENCE" "$SESSCTL" "${words[@]}"
}

# says_why WHY: it has failed, by itself, and said why
says_why() {
	why="${words[*]}: status $status: $(head -c 300 err)"
	[ "$status" -ge 1 ] && [ "$status" -lt 124 ] && says err "$1"
}

to_a_full_device() {
	run_words >/dev/full 2>err
	status=$?
	says_why "No space left on device"
}

to_nobody() {
	run_words 2>err >&-
	status=$?
	says_why "Bad file descriptor"
}

# Help and a listing may end as other programs do, which the signal shows.
to_a_pipe_without_reader() {
	exec {end}> >(:)
	wait $!
	run_words 2>err 1>&"$end"
	status=$?
	exec {end}>&-
	case "$status ${words[*]}" in
	"141 "*--help | "141 "*--list | "141 stat "* | "141 top "* | "141 ipoib sim"*) ;;
	*) says_why "Broken pipe" ;;
	esac
}

# run_with OPTION FILE: the command that writes it
run_with() {
	words+=("$1" "$2")
	[ "$1" != --pcap ] || words+=(--pcap-all)
}

file_to_a_full_device() { # OPTION
	run_with "$1" /dev/full
	run_words >out 2>err
	status=$?
	says_why "No space left on device"
}

# A limit of the shell's sends a signal that would end the program.  What is said goes through pipes.
file_of_limited_size() { # OPTION
	run_with "$1" "$work/limited"
	{ (ulimit -f 0 && run_words 2>&1 >/dev/null); echo "status $?"; } | cat >err
	status=$(sed -n 's/^status //p' err)
	says_why "File too large"
}

for command in $(commands_of) $(commands_of ipoib | sed 's/^/ipoib:/'); do
	command=${command/:/ }
	[ "$command" != ipoib ] || continue
	for where in to_a_full_device to_nobody to_a_pipe_without_reader; do
		words_of "$command"
		test_case "contact 7: $command: standard output $where" $where
	done
	[[ ${words[*]} != *--help ]] || continue
	# shellcheck disable=SC2086 # two words
	for option in $(files_of $command); do
		[ "$option" != --plot ] || continue # gnuplot's words: full_disk.sh
		for how in file_to_a_full_device file_of_limited_size; do
			words_of "$command"
			[ "$command" != "ipoib conform" ] || words=(ipoib conform --self ours --case link-join)
			rm -f limited
			test_case "contact 7: $command: $option: $how" $how "$option"
		done
	done
done
finish
