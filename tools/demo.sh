#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The main job, over TCP and then over SCTP: set a session up, show what was negotiated, put a
# 64 MiB file, get it back, compare digests.
# usage: demo.sh SESSCTL
set -eu
sessctl=$(realpath "$1")
work=$(mktemp -d)
listener=
cleanup() {
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	[ -z "$listener" ] || kill "$listener" 2>/dev/null || true
	[ -z "$listener" ] || wait "$listener" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
head -c $((64 << 20)) /dev/urandom >sample
want=$(sha256sum <sample)

show() { # SESSCTL-ARGUMENTS...: the command as one would type it, then what it does
	local a line='$ sessctl'
	for a; do
		case $a in *[?\&]*) line+=" '$a'" ;; *) line+=" $a" ;; esac
	done
	echo "$line"
	"$sessctl" "$@"
}

one() { # TITLE URI
	echo
	echo "== $1"
	rm -rf served listen.json
	mkdir served
	: >listen.json
	"$sessctl" listen --json --dir served "$2" >listen.json &
	listener=$!
	until grep -q '"listening"' listen.json; do
		kill -0 "$listener" || exit 1
		read -rt 0.05 <> <(:) || true
	done
	uri=$(sed -n 's/.*"uri": *"\([^"]*\)".*/\1/p' listen.json | head -n 1)
	echo "\$ sessctl listen --dir served '$2' &"
	show connect --p2p --private-data hello "$uri"
	show ping --count 1000 --interval 0 "$uri"
	show put sample "$uri/sample"
	show get "$uri/sample" back
	if [ "$(sha256sum <back)" != "$want" ] || [ "$(sha256sum <served/sample)" != "$want" ]; then
		echo "digests differ" >&2
		exit 1
	fi
	echo "digests equal: ${want%% *}"
	kill "$listener"
	wait "$listener"
	listener=
	rm -f back
}

one "TCP (MPA)" tcp://127.0.0.1:0
one "SCTP" "sctp://127.0.0.1:0?encap=0"
