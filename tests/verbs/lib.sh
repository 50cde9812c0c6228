# SPDX-License-Identifier: BSD-2-Clause
# What the scripts that run unmodified programs over the drop-in share.  Their first argument is the
# build; $pattern chooses cases, $failed is what they exit with.
# shellcheck shell=bash disable=SC2034,SC2154
build=$(realpath "$1")
sessctl=$build/sessctl
work=$(mktemp -d)
failed=0
trap 'rm -rf "$work"' EXIT
# The server may not listen yet when the client asks: it asks again.
export DDPSESS_RETRY_MS=15000 DDPSESS_CONF=/dev/null LC_ALL=C
# How programs are started; cases add to it.
load=("$sessctl" run --)

# A port that is free now: one that the system has just given to somebody else.
free_port() {
	local line job
	coproc "$build/sessctl" listen --json tcp://127.0.0.1:0 2>/dev/null
	job=$COPROC_PID
	read -r -t 20 -u "${COPROC[0]}" line
	kill "$job"
	wait "$job" 2>/dev/null
	port=$(sed -n 's/.*tcp:\/\/127.0.0.1:\([0-9]*\).*/\1/p' <<<"$line")
}

report() { # NAME STATUS-OF-CLIENT STATUS-OF-SERVER
	if [ "$2" = 0 ] && [ "$3" = 0 ]; then
		echo "ok $1"
		return
	fi
	failed=1
	echo "not ok $1: client $2, server $3:" \
		"$(tail -q -n 2 "$work/client" "$work/server" | tr -c '[:print:]' ' ')"
}

# Until somebody listens at that port of TCP, or of UDP for SCTP: for programs that ask once.
await_listener() { # PORT
	local i
	for ((i = 0; i < 400; i++)); do
		[ -z "$(ss -Hltun "sport = :$1")" ] || return 0
		sleep 0.05
	done
}

# The host's address that is not loopback, if it has one.
host_address() {
	ip -4 -o addr show up scope global | awk '{ sub("/.*", "", $4); print $4; exit }'
}

# pair NAME SERVER CLIENT: @ stands for the port
pair() {
	local name=$1 c s
	[[ $name =~ $pattern ]] || return 0
	free_port
	# shellcheck disable=SC2086 # words are meant
	timeout 60 "${load[@]}" ${2//@/$port} >"$work/server" 2>&1 &
	s=$!
	[ -z "${asks_once:-}" ] || await_listener "$port"
	# shellcheck disable=SC2086
	timeout 60 "${load[@]}" ${3//@/$port} >"$work/client" 2>&1
	c=$?
	wait "$s"
	report "$name over $DDPSESS_TRANSPORT" "$c" "$?"
}

