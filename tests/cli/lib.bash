# SPDX-License-Identifier: BSD-2-Clause
# For the command line tests: temporary directory, listeners, and one line a case.
# shellcheck shell=bash
# shellcheck disable=SC2034 # variables are for the tests

: "${SESSCTL:?the path of sessctl}"
SESSCTL=$(realpath "$SESSCTL")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${WIRES:=tcp sctp}"
: "${PATIENCE:=60}" # seconds a command may take

# shellcheck source=tests/support/json.bash
. "$root/tests/support/json.bash"
work=$(mktemp -d)
failures=0
listener=
uri=
pid=
fd=

cleanup() {
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	stop_listener
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1

ok() { # NAME
	echo "ok $1"
}

not_ok() { # NAME WHY
	failures=$((failures + 1))
	echo "not ok $1: $2" | tr '\n' ' '
	echo
}

# keep_json FILE: its lines of JSON are judged by the schema at the end
keep_json() {
	grep '^{"' "$1" >>"$work/.lines.json" 2>/dev/null
	return 0
}

# What sessctl printed as JSON in this file of tests is as promised.
json_is_promised() {
	why=$(json_fault "$work/.lines.json")
}

finish() {
	if [ ! -s "$work/.lines.json" ]; then
		:
	elif find_python; then
		test_case "$(basename "$0" .sh): each line of JSON is as the schema says" json_is_promised
	else
		echo "skip python3-jsonschema is not here: lines of JSON are not judged"
	fi
	exit $((failures > 0))
}

# uri_of WIRE [ADDRESS]: where to listen
uri_of() {
	local at=${2:-127.0.0.1}
	case $1 in
	tcp) echo "tcp://$at:0" ;;
	sctp) echo "sctp://$at:0?backend=native&encap=0" ;;
	shm) echo "shm://@" ;;
	*) echo "$1" ;;
	esac
}

# start_job FIFO ERRORS COMMAND...: in the background, its first line in $line, the rest to be read
# from descriptor $fd; sets $pid
start_job() {
	local fifo=$1 errors=$2
	shift 2
	rm -f "$fifo"
	mkfifo "$fifo"
	"$SESSCTL" "$@" >"$fifo" 2>"$errors" &
	pid=$!
	exec {fd}<"$fifo"
	read -r -t "$PATIENCE" -u "$fd" line
	keep_json <(echo "$line")
}

# end_job PID FD: wait for it, what it still says in the file rest; its exit status returned
end_job() {
	timeout "$PATIENCE" cat <&"$2" >rest || kill -KILL "$1"
	keep_json rest
	local fd=$2
	exec {fd}<&-
	wait "$1" 2>/dev/null
}

# listen URI [OPTION...]: start a listener; sets $uri and $listener
listen() {
	local where=$1
	shift
	stop_listener
	if ! start_job listen.fifo listen.err listen --json "$@" "$where"; then
		echo "no listener on $where: $(cat listen.err)" >&2
		exit 1
	fi
	uri=$(field uri <<<"$line")
	listener=$pid
	listener_fd=$fd
}

# stop_listener: end it, if it runs; its events in listen.out, its exit status returned
stop_listener() {
	[ -n "$listener" ] || return 0
	kill -CONT "$listener" 2>/dev/null
	kill -TERM "$listener" 2>/dev/null
	end_listener
}

# end_listener: wait for one that ends by itself
end_listener() {
	local status
	end_job "$listener" "$listener_fd"
	status=$?
	mv rest listen.out
	listener=
	return "$status"
}

# listener_goes LINES COMMAND...: the listener ends after so many lines of the command, which says
# so and fails
listener_goes() {
	local lines=$1 client client_fd
	shift
	start_job client.fifo err "$@"
	client=$pid client_fd=$fd
	why="first line: $line"
	grep -q established <<<"$line" || return
	while ((--lines > 0)); do
		read -r -t "$PATIENCE" -u "$client_fd" line
	done
	stop_listener
	status=$?
	why="listener's status $status"
	[ "$status" -eq 0 ] || return
	end_job "$client" "$client_fd"
	status=$?
	why="client's status $status: $(cat err)"
	[ "$status" -eq 1 ] && says err "closed"
}

# field NAME: the values of a member in JSON lines, one a line
field() {
	sed -n "s/.*[{,]\"$1\":\(\"\([^\"]*\)\"\|\([^,}]*\)\).*/\2\3/p"
}

# run STATUS COMMAND...: out and err hold what it says; false if the status is another
run() {
	local want=$1
	shift
	timeout "$PATIENCE" "$SESSCTL" "$@" >out 2>err
	status=$?
	keep_json out
	[ "$status" -eq "$want" ] && return
	why="status $status, not $want: $(tail -n 2 err)"
	return 1
}

# says FILE TEXT: whether a line of it contains TEXT
says() {
	grep -qF -e "$2" "$1" && return
	why="no '$2' in $1: $(tail -n 3 "$1")"
	return 1
}

# has FILE NAME VALUE: whether a JSON line has the member
has() {
	grep -q "[{,]\"$2\":\"\?$3[\",}]" "$1" && return
	why="$2 is not $3 in $1: $(field "$2" <"$1" | tr '\n' ' ')"
	return 1
}

# same FILE FILE
same() {
	cmp -s "$1" "$2" && return
	why="$1 and $2 differ"
	return 1
}

# absent FILE
absent() {
	[ ! -e "$1" ] && return
	why="$1 exists"
	return 1
}

# only DIR NAME...: the directory holds exactly these, hidden ones included
only() {
	local dir=$1 have want
	shift
	have=$(ls -A "$dir")
	want=$(printf '%s\n' "$@" | LC_ALL=C sort)
	[ "$(LC_ALL=C sort <<<"$have")" = "$want" ] && return
	why="in $dir: $have"
	return 1
}

# is_junit FILE: a JUnit report as CI systems read it: the elements and attributes of Jenkins' schema, and right counts
is_junit() {
	why="$1 is no JUnit report"
	python3 - "$1" <<-'END' 2>junit.err || { why="$1: $(tail -n 1 junit.err)" && return 1; }
		import sys
		import xml.etree.ElementTree as tree

		suite = tree.parse(sys.argv[1]).getroot()
		counts = ("tests", "failures", "errors", "skipped")
		assert suite.tag == "testsuite" and set(suite.attrib) == {"name", "time", *counts}, suite.attrib
		cases = list(suite)
		assert cases and len({case.get("name") for case in cases}) == len(cases)
		states = []
		for case in cases:
		    assert case.tag == "testcase" and set(case.attrib) | {"time"} == {"classname", "name", "time"}, case.attrib
		    assert len(case) < 2 and all(set(state.attrib) == {"message"} for state in case), case.get("name")
		    states += [state.tag for state in case]
		assert set(states) <= {"failure", "error", "skipped"}, states
		found = [len(cases), *(states.count(tag) for tag in ("failure", "error", "skipped"))]
		assert found == [int(suite.get(name)) for name in counts], (found, suite.attrib)
		took = sum(float(case.get("time", 0)) for case in cases)
		assert abs(took - float(suite.get("time"))) <= 0.001 * len(cases), (took, suite.attrib)
	END
}

# test_case NAME COMMAND...: the case's one line; the command sets $why when it fails
test_case() {
	local name=$1
	shift
	why="failed"
	if "$@"; then
		ok "$name"
	else
		not_ok "$name" "$why"
	fi
}

# took_less BEGIN SECONDS LOADED: since $SECONDS was BEGIN, or LOADED of them if the machine has other things to do
took_less() {
	why="it took $((SECONDS - $1)) s"
	[ $((SECONDS - $1)) -lt "$2" ] ||
		{ [ $((SECONDS - $1)) -lt "$3" ] && [ "$(cut -d . -f 1 /proc/loadavg)" -ge "$(nproc)" ]; }
}
