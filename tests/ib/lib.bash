# SPDX-License-Identifier: BSD-2-Clause
# A simulated InfiniBand fabric (ibsim) with a subnet manager (opensm), and commands on its hosts.
# shellcheck shell=bash
# shellcheck disable=SC2154 # preload and umad2sim are run.sh's

work=$(mktemp -d)
pids=()
managers=()
failures=0
load=$preload:$umad2sim

fabric_stop() {
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	local pid
	# opensm would ask ibsim for leave, which may have gone
	[ ${#managers[@]} = 0 ] || kill -KILL "${managers[@]}" 2>/dev/null
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
	[ -z "${console-}" ] || exec {console}>&- 2>/dev/null
	rm -rf "$work"
}

# on HOST COMMAND...: with the host's port; in a directory of its own, where the simulator's
# client leaves files
on() {
	local host=$1
	shift
	mkdir -p "$work/$host.$BASHPID"
	cd "$work/$host.$BASHPID" || exit 1
	exec env SIM_HOST="$host" LD_PRELOAD="$load" "$@"
}

# until_ready SECONDS COMMAND...
until_ready() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return
		read -r -t 0.05 <>"$work/never" || :
	done
}

port_is() { # HOST STATE
	# without the preload, of which a host takes one client
	(load=$umad2sim && on "$1" timeout --foreground -k 1 5 ibstat) 2>/dev/null | grep -q "State: $2"
}

manager_start() { # HOST OPTION...: a subnet manager there; sets $manager
	local dir=$work/sm.$1 host=$1
	shift
	mkdir -p "$dir"
	(
		cd "$dir" || exit 1
		export OSM_TMP_DIR=$PWD OSM_CACHE_DIR=$PWD SIM_HOST=$host
		export LD_PRELOAD=${manager_load-$umad2sim}
		exec opensm -f "$PWD/osm.log" "$@" >"$work/opensm.out" 2>&1
	) &
	manager=$!
	pids+=("$manager")
	managers+=("$manager")
}

fabric_start() { # NETWORK OPTION...: with a subnet manager at HostS, that is given the options
	local network=$1
	shift
	mkfifo "$work/console" "$work/never"
	exec {console}<>"$work/console"
	export IBSIM_SOCKNAME="ddpsess-$$"
	ibsim -s "$network" <"$work/console" >"$work/ibsim.log" 2>&1 &
	pids+=($!)
	until_ready 10 grep -qs "^sim>" "$work/ibsim.log" || return
	manager_start HostS "$@"
	until_ready 20 port_is HostA Active && until_ready 10 port_is HostB Active
}

# console LINE: a command for the simulator, which reads them in order
console() {
	echo "$1" >&"$console"
}

# member FILE NAME: the values of a member in JSON lines
member() {
	sed -n "s/.*[{,]\"$2\":\(\"\([^\"]*\)\"\|\([^,}]*\)\).*/\2\3/p" "$1"
}

# listen_on HOST OPTION...: start it and wait for its first line; sets $peer and $listener
listen_on() {
	local host=$1
	shift
	rm -f "$work/listen"
	(on "$host" timeout --foreground -k 1 60 "$SESSCTL" ipoib listen --json "$@") \
		>"$work/listen" 2>"$work/listen.err" &
	listener=$!
	pids+=("$listener")
	until_ready 10 test -s "$work/listen"
	peer=$(member "$work/listen" lladdr)
	why="no listener: $(cat "$work/listen.err")"
	[ -n "$peer" ]
}

# end_listener: wait for it; its exit status
end_listener() {
	wait "$listener"
}

# connect_from HOST STATUS OPTION... PEER: its events in $work/connect
connect_from() {
	local host=$1 want=$2 status
	shift 2
	(on "$host" timeout --foreground -k 1 60 "$SESSCTL" ipoib connect --json "$@") \
		>"$work/connect" 2>"$work/connect.err"
	status=$?
	why="status $status, not $want: $(tail -n 2 "$work/connect.err")"
	[ "$status" = "$want" ]
}

# sequence FILE WORD...: the messages and events of one side, in order
sequence() {
	local have
	have=$(sed -n 's/.*"event":"mad".*"dir":"\(.\)[a-z]*".*"message":"\([A-Z_]*\)".*/\1:\2/p
		s/.*"event":"\([a-z-]*\)".*/\1/p' "$work/$1" | tr '\n' ' ')
	shift
	why="it went: $have"
	[ "$have" = "$* " ]
}

# seen FILE TEXT
seen() {
	why="no '$2' in $1: $(cut -c 1-300 "$work/$1" | tail -n 3)"
	grep -q -e "$2" "$work/$1"
}

# test_case NAME COMMAND...: one line
test_case() {
	local name=$1
	shift
	why=failed
	if "$@"; then
		echo "ok $name"
	else
		failures=$((failures + 1))
		echo "not ok $name: $why" | tr '\n' ' '
		echo
	fi
}
