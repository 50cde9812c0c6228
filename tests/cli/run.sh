#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl run: what it hands to the program, what it refuses, and the file of settings.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
BUILD=$(realpath "${BUILD:?the build with the drop-in}" 2>/dev/null) || BUILD=$(dirname "$SESSCTL")
[ -e "$BUILD/libddpsess-verbs.so" ] || BUILD=$(realpath "$here/../../build/opt")
with_drop=$BUILD/sessctl
export DDPSESS_CONF=$work/conf
: >conf
unset DDPSESS_CHECK DDPSESS_STRICT DDPSESS_SUPPRESS DDPSESS_PROFILE DDPSESS_FAULTS DDPSESS_SEED DDPSESS_TRACE DDPSESS_TRANSPORT DDPSESS_DEVICE DDPSESS_CRC DDPSESS_SHM DDPSESS_NO_RECV DDPSESS_RETRY_MS LD_PRELOAD

dropped() { # STATUS ARGUMENT...: sessctl run of the build that has the drop-in
	local SESSCTL=$with_drop
	run "$1" run "${@:2}"
}

refuses() { # STATUS TEXT ARGUMENT...: and says what to try
	dropped "$1" "${@:3}" && says err "$2" && says err "try:"
}

usage() { # TEXT ARGUMENT...
	run 2 run "${@:2}" && says err "$1" && says err "try:"
}

environment() {
	dropped 0 --transport sctp --device-name rnic7 --crc off --shm auto --no-recv strict --retry 2.5 \
		--capture here.pcapng -- env ||
		return
	for want in DDPSESS_TRANSPORT=sctp DDPSESS_DEVICE=rnic7 DDPSESS_CRC=off DDPSESS_SHM=auto \
		DDPSESS_NO_RECV=strict DDPSESS_RETRY_MS=2500 "DDPSESS_CAPTURE=$work/here.pcapng" \
		"LD_PRELOAD=$BUILD/libddpsess-verbs.so"; do
		says out "$want" || return
	done
}

# the keys of secured wires, too; which are for no other wire
keys() {
	local o
	: >own.conf
	: >cert
	dropped 0 --tls own.conf --tls-cert cert --tls-peer dns:node-a,fp:00 --tls-psk-identity me -- env || return
	for o in "=$PWD/own.conf" "_CERT=$PWD/cert" _PEER=dns:node-a,fp:00 _PSK_IDENTITY=me; do
		says out "DDPSESS_TLS$o" || return
	done
	for o in cert key ca crl psk peers hosts; do
		refuses 126 "--tls-$o 'none': No such file" "--tls-$o" none -- true || return
	done
	usage "the option --tls is for --transport tls and sctps: tcp would be plain" --transport tcp \
		--tls own.conf -- true &&
		usage "the option --tls-peer is for --transport tls and sctps: sctp would be plain" --transport sctp --tls-peer dns:x -- true
}

# the drop-in says why, and nothing is plain instead
bad_keys() {
	run 0 keys psk pair && chmod 644 pair.psk || return
	dropped 13 --tls-psk pair.psk -- rping -c -a 127.0.0.1 -C 1 &&
		says err "pair.psk has mode 0644, so that others can read or write it" && says err "the device cannot be opened"
}

# another library in the place of the drop-in
fabric() {
	local bad
	for bad in 192.0.2.9 192.0.2.9:4791,198.51.100.1,fe80::9 192.0.2.9:0,192.0.2.1,fe80::9 192.0.2.9:4791,192.0.2.1,x \
		"192.0.2.9:4791,192.0.2.1,fe80::9,"; do
		usage "--fabric takes" --fabric "$bad" -- true || return
	done
	dropped 0 --fabric 192.0.2.9:4791,192.0.2.1,fe80::9 -- env &&
		says out DDPSESS_FABRIC=192.0.2.9:4791,192.0.2.1,fe80::9 &&
		says out "LD_PRELOAD=$BUILD/ddpsess/libddpsess-umad.so"
}

# files are named so that the program finds them from wherever it goes
faults() {
	echo "on ibv_open_device: fail ENOMEM" >rules
	dropped 0 --faults rules --seed 7 --trace traced -- sh -c 'cd / && env; ibv_devinfo; :' || return
	for want in "DDPSESS_FAULTS=$PWD/rules" DDPSESS_SEED=7 "DDPSESS_TRACE=$PWD/traced"; do
		says out "$want" || return
	done
	why="the trace is not what the rules say"
	grep -qx '1 ibv_open_device: line 1: fail ENOMEM' traced
}

faults_are_read() {
	refuses 126 "No such file" --faults nowhere -- true || return
	printf 'at 1s: reset\non completion: explode\n' >rules
	dropped 0 --faults rules -- sh -c 'ibv_devinfo || :' || return
	says err "$PWD/rules:2:16: expected fail, status"
}

# the lines of an earlier run are nowhere, whatever is refused
trace_is_emptied() {
	echo "on completion: explode" >rules
	printf 'device a\nface opa\n' >wrong
	local way
	for way in "--faults rules" "--profile wrong" --check; do
		echo "1 ibv_open_device: line 1: fail ENOMEM" >traced
		# shellcheck disable=SC2086 # words are meant
		dropped 0 $way --trace traced -- sh -c 'ibv_devinfo || :' || return
		why="$way: the trace has the lines of an earlier run"
		[ -e traced ] && [ ! -s traced ] || return
	done
}

profile() {
	local f
	for f in "$here"/../../profiles/*.profile; do
		dropped 0 --profile "$f" -- ibv_devices || return
		while read -r name; do
			says out "$name" || return
		done < <(sed -n 's/^device //p' "$f")
	done
	refuses 126 "No such file" --profile nowhere -- true || return
	printf 'device a\nface opa\n' >wrong
	dropped 0 --profile wrong -- sh -c 'ibv_devinfo || :' || return
	says err "$PWD/wrong:2:6: expected iwarp, roce or ib, not 'opa'"
}

checks() {
	: >known
	dropped 0 --check --suppress known -- env && says out DDPSESS_CHECK=on &&
		says out "DDPSESS_SUPPRESS=$PWD/known" || return
	refuses 126 "No such file" --check --suppress nowhere -- true || return
	dropped 0 --strict -- env && says out DDPSESS_STRICT=on
}

# what is not asked for stays as the environment or the file has it
nothing_asked() {
	DDPSESS_CRC=off dropped 0 env && says out DDPSESS_CRC=off || return
	why="a variable that nobody asked for"
	! grep -q DDPSESS_TRANSPORT out
}

# options of the program are its own, with or without --
program_options() {
	dropped 0 printf '%s.' --transport -x && says out "--transport.-x." || return
	dropped 0 -- printf '%s.' --help && says out "--help."
}

exit_status_is_the_programs() {
	dropped 7 sh -c 'exit 7'
}

static_program() {
	local machine
	# a program's header without any interpreter, for this machine
	machine=$(head -c 64 "$SESSCTL" | od -An -v -tx1 -j18 -N2 | tr -d ' \n')
	printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0%b' "\\x${machine:0:2}\\x${machine:2:2}" >bare
	head -c 64 /dev/zero >>bare
	printf '\70\0' | dd of=bare bs=1 seek=54 conv=notrunc 2>/dev/null
	chmod +x bare
	refuses 126 "statically linked" ./bare
}

foreign_program() {
	printf '\177ELF\1\1\1' >foreign
	head -c 64 /dev/zero >>foreign
	chmod +x foreign
	refuses 126 "another architecture" ./foreign
}

# setgid is refused like setuid, and a group that is not ours is at hand only for root
setgid_program() {
	[ "$(id -u)" = 0 ] || return 0
	cp "$(type -P true)" privileged && chgrp 1 privileged && chmod 2755 privileged || return
	refuses 126 "setgid" ./privileged
}

not_executable() {
	: >plain
	refuses 126 "may execute" ./plain
}

# without the library nothing starts: the program would look for hardware
library_missing() {
	[ -e /usr/local/lib/libddpsess-verbs.so ] && return 0
	mkdir -p alone && cp "$with_drop" alone/sessctl || return
	local SESSCTL=$work/alone/sessctl
	run 126 run env && says err libddpsess-verbs.so && says err "make install"
}

# next to sessctl comes first, and what lies there must be a library
library_broken() {
	mkdir -p broken && cp "$with_drop" broken/sessctl && : >broken/libddpsess-verbs.so || return
	local SESSCTL=$work/broken/sessctl
	run 126 run env && says err "not a library" && says err "try:"
}

shows_device() {
	dropped 0 --device-name rnic7 -- ibv_devinfo -v && says out rnic7 && says out iWARP
}

conf_names_device() {
	printf '# a comment\n\n DDPSESS_DEVICE = conf1 \r\n' >conf
	dropped 0 ibv_devices && says out conf1 || return
	DDPSESS_DEVICE=env1 dropped 0 ibv_devices && says out env1
}

conf_last_line_counts() {
	printf 'DDPSESS_DEVICE=one\nDDPSESS_DEVICE=two' >conf
	dropped 0 ibv_devices && says out two
}

conf_bad_lines() {
	printf 'nonsense\nDDPSESS_DEVCIE=x\nDDPSESS_DEVICE=good\n' >conf
	dropped 0 ibv_devices && says err "conf:1: not KEY=VALUE" &&
		says err "conf:2: no setting has the name 'DDPSESS_DEVCIE': did you mean DDPSESS_DEVICE" && says out good || return
	printf 'DDPSESS_NONSENSE=x\nDDPSESS_TLS_PEERSS=x\n' >conf
	dropped 0 ibv_devices && says err "conf:1: no setting has the name 'DDPSESS_NONSENSE'; sessctl-run(1) lists them" &&
		says err "conf:2: no setting has the name 'DDPSESS_TLS_PEERSS': did you mean DDPSESS_TLS_PEERS"
}

conf_size() { # OCTETS TEXT-IN-ERR
	printf 'DDPSESS_DEVICE=big\n#%*s' $(($1 - 20)) '' >conf
	dropped 0 ibv_devices || return
	if [ -n "$2" ]; then says err "$2" && says out ddp0; else says out big; fi
}

conf_missing() {
	rm -f conf
	dropped 0 ibv_devices && says err "conf: No such file" && says out ddp0
}

# in a folder with blanks, or with a colon, and there is another one in lib next to bin
elsewhere() {
	local SESSCTL="a b/bin/sessctl" mode
	rm -rf "a b" a:b
	mkdir -p "a b/bin" "a b/lib" a:b
	cp "$with_drop" "a b/bin" && cp -r "$BUILD/libddpsess-verbs.so" "$BUILD/ddpsess" "a b/lib" && cp -r "a b/." a:b || return
	for mode in preload soname; do
		run 0 run --mode "$mode" -- ibv_devices && says out ddp0 || return
		run 0 run --mode "$mode" -- cat /sys/class/infiniband/ddp0/ports/1/state && says out ACTIVE || return
	done
	run 0 run -- sh -c 'grep -o "/.*libddpsess-verbs.so" /proc/self/maps' && says out "$PWD/a b/lib/" || return
	SESSCTL=a:b/bin/sessctl
	run 126 run -- true && says err "the loader cannot take" && says err "no colon"
}

test_case run-environment environment
test_case run-elsewhere elsewhere
test_case run-nothing-asked nothing_asked
test_case run-faults faults
test_case run-faults-read faults_are_read
test_case 'contact: run-trace-emptied' trace_is_emptied
test_case run-profile profile
test_case 'contact 34: run-fabric' fabric
test_case run-check checks
test_case run-program-options program_options
test_case run-exit-status exit_status_is_the_programs
test_case run-no-program usage "missing arguments"
test_case run-bad-transport usage "tcp, sctp, tls or sctps, not 'udp'" --transport udp true
test_case run-keys keys
test_case run-bad-keys bad_keys
test_case run-bad-crc usage "on or off" --crc maybe true
test_case run-bad-shm usage "auto or off" --shm on true
test_case run-bad-mode usage "preload or soname" --mode static true
test_case run-bad-device usage "1 to 63" --device-name a/b true
test_case run-device-64 usage "1 to 63" --device-name "$(printf '%064d' 0)" true
test_case run-device-63 dropped 0 --device-name "$(printf '%063d' 0)" true
test_case run-bad-retry usage "seconds" --retry soon true
test_case run-not-found refuses 127 "no program in PATH" no-such-program
test_case run-path-not-found refuses 127 "No such file" ./no-such-program
test_case run-directory refuses 126 "may execute" /
test_case run-not-executable not_executable
test_case run-static static_program
test_case run-foreign foreign_program
test_case run-setgid setgid_program
test_case run-library-missing library_missing
test_case run-library-broken library_broken
test_case run-shows-device shows_device
test_case run-conf-device conf_names_device
test_case run-conf-last-line conf_last_line_counts
test_case run-conf-bad-lines conf_bad_lines
test_case run-conf-4096 conf_size 4096 ""
test_case run-conf-4097 conf_size 4097 "too long"
test_case run-conf-missing conf_missing
finish
