# SPDX-License-Identifier: BSD-2-Clause
# What the scripts that run unmodified programs over the drop-in share.  Their first argument is the
# build; $pattern chooses cases; each runs $times times, in one of $lanes lanes, and prints one line.
# shellcheck shell=bash disable=SC2034,SC2154
build=$(realpath "$1")
sessctl=$build/sessctl
work=$(mktemp -d)
times=1
# A child that is killed before it has become a program runs this trap, too: it is not the child's folder.
trap '[[ $BASHPID != "$$" ]] || rm -rf "$work"' EXIT
# The server may not listen yet when the client asks: it asks again.
export DDPSESS_RETRY_MS=15000 DDPSESS_CONF=/dev/null LC_ALL=C
unset DDPSESS_SHM
# Whom programs run as, and how they are started; cases add to it.
rights=() who=""
load=("$sessctl" run --)

# From here on programs run as somebody without rights, in a group of nobody's, who may not be able
# to enter the directory of the build: it gets a copy.
drop_rights() {
	who=", unprivileged"
	[ "$(id -u)" = 0 ] || return 0
	mkdir "$work/build"
	cp -r "$build"/{sessctl,libddpsess-verbs.so,ddpsess,verbs-dlopen,verbs-plain,verbs-clock.so} \
		"$work/build" || exit 1
	build=$work/build sessctl=$work/build/sessctl
	chmod -R a+rX "$work"
	rights=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all
		--inh-caps=-all --no-new-privs)
	load=("${rights[@]}" "$sessctl" run --)
}

# A lane is a line in a pipe, taken while a case runs.
mkfifo "$work/lanes"
exec {lanes}<>"$work/lanes"
more_lanes() { # NUMBER
	local i
	for ((i = 0; i < $1; i++)); do
		echo >&"$lanes"
	done
}

# A thousand ports for this script alone, below those that the system gives away.
hold_ports() {
	local top dir=/tmp/ddpsess-test-ports.$UID
	read -r top _ </proc/sys/net/ipv4/ip_local_port_range
	[ "$top" -ge 16384 ] || top=32768
	mkdir -p "$dir"
	for ((first_port = top - 1000; first_port > 2000; first_port -= 1000)); do
		exec {lock}>"$dir/$first_port"
		! flock -n "$lock" || break
		exec {lock}>&-
	done
	if [ "$first_port" -le 2000 ]; then
		echo "not ok ports: all blocks below $top are locked in $dir; wait for other tests"
		exit 1
	fi
	echo 0 >"$work/port"
}

# The next of them; one that something else has, or that was closed lately, is left out.
free_port() {
	local n
	while :; do
		{
			flock 9
			read -r n <"$work/port"
			echo $(((n + 1) % 1000)) >"$work/port"
		} 9>>"$work/port.lock"
		port=$((first_port + n))
		[ -n "$(ss -Hantu "sport = :$port")" ] || return 0
	done
}

# Until somebody listens at that port, TCP's or the UDP port that carries SCTP.
await_listener() { # PORT
	local i
	for ((i = 0; i < 400; i++)); do
		[ -z "$(ss -Hltun "sport = :$1")" ] || return 0
		sleep 0.05
	done
}

# Until a queue pair is in the group 239.PORT, as inet_aton reads that.
await_member() { # PORT
	local i
	for ((i = 0; i < 400; i++)); do
		! ss -Hlun "sport = :24791" | grep -qF "239.0.$(($1 >> 8)).$(($1 & 255)):" || return 0
		sleep 0.05
	done
}

# The host's address that is not loopback, if it has one.
host_address() {
	ip -4 -o addr show up scope global | awk '{ sub("/.*", "", $4); print $4; exit }'
}

start() { # OUTPUT COMMAND-LINE
	# shellcheck disable=SC2086 # words are meant
	exec timeout -k 5 60 "${load[@]}" $2 >"$1" 2>&1
}

# One server and its clients.  For $fault see pair.
once_pair() { # SERVER CLIENT
	local port server c=0 s i
	free_port
	start server "${1//@/$port}" &
	server=$!
	[ -z "${listen_first:-}" ] || await_listener "$port"
	[ -z "${member_first:-}" ] || await_member "$port"
	for ((i = 0; i < ${clients:-1}; i++)); do
		(start "client$i" "${2//@/$port}") || c=$?
	done
	[ -z "${for_ever:-}" ] || kill "$server"
	wait "$server"
	s=$?
	# it must have been there to be ended
	[ -z "${for_ever:-}" ] || [ "$s" != 143 ] || s=0
	fault="client $c, server $s"
	[ "$c" = 0 ] && [ "$s" = 0 ] || return 1
	fault="${check:-}"
	eval "${check:-:}"
}

try_pair() { # SERVER CLIENT
	local n
	for n in 1 2 3; do
		once_pair "$@" && return
		[ -n "${its_own:-}" ] && grep -qs "$its_own" client* server || return 1
	done
	fault="$fault, $n times"
	return 1
}

try_alone() { # TEXT COMMAND
	(start client0 "$2")
	fault="status $?, expected '$1'"
	[ "${fault%%,*}" = "status 0" ] && grep -q "$1" client0
}

report() { # NAME FAULT FILE...: with what the files end with, if there is a fault
	if [ -z "$2" ]; then
		echo "ok $1"
		return
	fi
	: >"$work/failed"
	echo "not ok $1: $2: $(tail -q -n 3 "${@:3}" 2>/dev/null | tr -c '[:print:]' ' ')"
}

# Tries one after the other in a folder of their own, until one fails.
repeat() { # NAME TRY ARGUMENT...
	local i fault="" dir
	dir=$(mktemp -d "$work/case.XXXXXX")
	chmod 777 "$dir"
	cd "$dir" || exit 1
	for ((i = 1; i <= times; i++)); do
		"${@:2}" || break
	done
	if [ "$i" -gt "$times" ]; then
		report "$1, $times times$who" ""
	else
		report "$1, try $i of $times$who" "$fault" client* server
	fi
	cd "$work" && rm -rf "$dir"
	echo >&"$lanes"
}

# pair NAME SERVER CLIENT: @ stands for the port.  These may be set:
#   listen_first	the client starts when the server listens
#   member_first	... or when it is in a group
#   clients	how many, one after the other
#   for_ever	the server does not end by itself
#   its_own	what it says when it fails for a reason of its own: then it has two more tries
#   check	a command that says whether the files that they left are right
pair() {
	local name="$1 over $DDPSESS_TRANSPORT${DDPSESS_SHM:+ and shared memory}"
	[[ $name =~ $pattern ]] || return 0
	read -r -u "$lanes"
	repeat "$name" try_pair "$2" "$3" &
}

alone() { # TEXT COMMAND...
	local name="${2##*/} ${*:3}"
	name="${name% } over $DDPSESS_TRANSPORT"
	[[ $name =~ $pattern ]] || return 0
	read -r -u "$lanes"
	repeat "$name" try_alone "$1" "${*:2}" &
}

# Exit when all cases have ended, with what they came to.
finish() {
	wait
	[ ! -e "$work/failed" ]
	exit
}

hold_ports
