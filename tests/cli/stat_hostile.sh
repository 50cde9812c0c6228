#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl stat where other users, or broken programs, have put what they like.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
: "${BUILD:?the directory of a build}"
BUILD=$(realpath "$BUILD")
if ! command -v python3 >/dev/null; then
	echo "ok contact 17 # skipped: no python3"
	exit 0
fi

# /tmp and /run/user are nobody else's: in a mount namespace of its own.
if [ -z "${HOSTILE_INSIDE:-}" ]; then
	for how in "unshare -m" "unshare -rm"; do
		# shellcheck disable=SC2016 # it is the inner shell's
		if $how sh -c 'mount -t tmpfs none /tmp && test -x "$1"' - "$(realpath "$SESSCTL")" 2>/dev/null; then
			# shellcheck disable=SC2086 # words are meant
			HOSTILE_INSIDE=1 SESSCTL=$(realpath "$SESSCTL") exec $how --propagation private bash "$0"
		fi
	done
	echo "ok contact 17 # skipped: nothing can be mounted over /tmp here"
	exit 0
fi
mount -t tmpfs -o mode=1777 none /tmp || exit 1
[ ! -d /run/user ] || mount -t tmpfs none /run/user || exit 1
. "$(dirname "$0")/lib.bash"
chmod 755 "$work"
fakes=()
cleanup() {
	[[ $BASHPID = "$$" ]] || return
	stop_listener
	no_fakes
	rm -rf "$work"
}

# A program that listens at N sockets below a directory, from 1.FIRST on, as a user.  endless: an answer
# without end, of which it says how much was taken; silent: none.
cat >fake.py <<'EOF'
import os, socket, sys
mode, uid, where, first, n = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
if uid:
    os.setuid(uid)
all = []
for i in range(first, first + n):
    all.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if mode == "packets" else socket.SOCK_STREAM))
    all[-1].bind("%s/1.%d" % (where, i))
    all[-1].listen(16)
print("ready", flush=True)
if mode in ("silent", "packets"):
    sys.stdin.read()
if mode.startswith("say:"):
    c = all[0].accept()[0]
    c.sendall(mode[4:].encode())
    c.close()
    sys.stdin.read()
while mode == "controls":
    c = all[0].accept()[0]
    c.sendall('{"pid":1,"program":"\\u009b2J\\u202e\\u007f\u009b\u202e\x7f","sessions":[]}'.encode())
    c.close()
while mode == "endless":
    c = all[0].accept()[0]
    sent = 0
    try:
        c.sendall(b'{"pid":1,"listeners":[')
        while sent < 300000000:
            c.sendall(b"[]," * 100000)
            sent += 300000
    except OSError:
        pass
    print(sent, flush=True)
    c.close()
EOF

# fake MODE UID DIRECTORY FIRST N: its words from ${fakes[-1]}
fake() {
	coproc FAKE { exec python3 fake.py "$@"; }
	fakes+=("$FAKE_PID")
	exec {from}<&"${FAKE[0]}" {to}>&"${FAKE[1]}"
	why="no fake"
	read -r -t "$PATIENCE" -u "$from" line && [ "$line" = ready ]
}

no_fakes() {
	for one in "${fakes[@]}"; do
		kill "$one" 2>/dev/null && wait "$one" 2>/dev/null
	done
	fakes=()
}

fresh() {
	stop_listener
	no_fakes
	rm -rf watch elsewhere /tmp/ddpsess-*
	mkdir -m 700 watch elsewhere
	export DDPSESS_WATCH=$work/watch
}

# It hangs up after some of it, and the others are shown.
endless() {
	fresh
	listen "$(uri_of tcp)"
	fake endless 0 watch 1 1 || return
	run 0 stat --json && has out pid "$listener" &&
		says err "$work/watch/1.1: the answer is too long" && says err "try: " || return
	read -r -t "$PATIENCE" -u "$from" line
	why="$line octets were taken"
	[ "$line" -lt 50000000 ]
}

# What a terminal would obey is in no form of output as it came; JSON has all of it.
controls() {
	local how
	for how in "" --metrics "--interval 0.01 --count 1"; do
		fresh
		fake controls 0 watch 1 1 || return
		# shellcheck disable=SC2086 # words are meant
		run 0 stat $how || return
		why="stat $how: $(cat -v out)"
		! LC_ALL=C grep -q $'\x9b\|\x7f\|\xae' out || return
	done
	fresh
	fake controls 0 watch 1 1 || return
	run 0 stat --json && says out '\u009B2J\u202E\u007f\u009B\u202E\u007f' &&
		! LC_ALL=C grep -q $'[\x7f-\xff]' out
}

# Many that say nothing take the time of one, and hide nobody.
silent() {
	fresh
	listen "$(uri_of tcp)"
	fake silent 0 watch 1 30 || return
	run 0 stat --json && has out pid "$listener" && says err "no whole answer in time" && says err "and 29 more" || return
	run 1 stat tcp://127.0.0.1:1 && says err "listens on tcp" && says err "no whole answer in time"
}

# What is no answer at all is not called one that ended early.
no_answer() {
	local text
	for text in x0x '[1,2]' '"pid"'; do
		fresh
		fake "say:$text" 0 watch 1 1 || return
		run 1 stat && says err "what it answered is no state" && says err "try: asking its owner" || return
	done
	fresh
	fake 'say:{"pid":1,' 0 watch 1 1 || return
	run 1 stat && says err "no whole answer" && says err "try: again" || return
	fresh
	fake packets 0 watch 1 1 || return
	run 1 stat && says err "not asked: a link, not a socket" && says err "try: removing it"
}

# What the name stands for is not a socket that lies there.
links() {
	fresh
	DDPSESS_WATCH=$work/elsewhere listen "$(uri_of tcp)"
	ln -s ../elsewhere/"$listener".1 watch/"$listener".1
	echo >watch/1.2
	mkfifo watch/1.3
	run 1 stat && says err "there is no process" && says err "and 2 more: not asked: a link" || return
	ln -s elsewhere link
	DDPSESS_WATCH=$work/link run 1 stat && says err "$work/link: not asked" && rm link || return
	chmod 770 elsewhere
	DDPSESS_WATCH=$work/elsewhere run 1 stat && says err "$work/elsewhere: not asked"
}

# Root's: somebody else's socket in it, one of root on which somebody else listens.
foreign() {
	fresh
	chmod 711 watch
	mkdir -m 777 watch/of
	fake silent 65534 watch/of 1 2 || return
	mv watch/of/1.* watch
	chown 0 watch/1.2
	run 1 stat && says err "and 1 more: not asked"
}

# A listener of the user 65532.
# shellcheck disable=SC2317 # start_job calls other
start_other() {
	local own=$SESSCTL
	SESSCTL=other
	other() { exec setpriv --reuid 65532 --clear-groups "$own" "$@"; }
	SESSCTL=other
	start_job other.fifo other.err listen --json "$(uri_of tcp)"
	other=$pid other_fd=$fd SESSCTL=$own
	why="no listener: $(cat other.err)"
	grep -q listening <<<"$line"
}

# A user who stands in every way that he can hides no other.
others() {
	fresh
	unset DDPSESS_WATCH
	mkdir -m 700 /tmp/ddpsess-65533 && chown 65533 /tmp/ddpsess-65533 || return
	mkdir -m 700 /tmp/ddpsess-065533 /tmp/ddpsess-4711
	chown 65533 /tmp/ddpsess-4711
	ln -s /tmp/ddpsess-65533 /tmp/ddpsess-4712
	fake silent 65533 /tmp/ddpsess-65533 1 600 || return
	mkdir -m 700 /tmp/ddpsess-65532 && chown 65532 /tmp/ddpsess-65532
	listen "$(uri_of tcp)"
	start_other || return
	run 0 stat --json && has out pid "$listener" && has out pid "$other" &&
		says err "no whole answer in time" && says err "/tmp/ddpsess-471" && says err "and 1 more: not asked"
	status=$?
	kill "$other"
	end_job "$other" "$other_fd"
	return "$status"
}

# So many directories that each is asked one socket at a time: all sockets in each are asked.
many_directories() {
	local uid
	fresh
	unset DDPSESS_WATCH
	for uid in {30000..30300}; do
		mkdir -m 700 "/tmp/ddpsess-$uid" && chown "$uid" "/tmp/ddpsess-$uid" || return
	done
	listen "$(uri_of tcp)"
	others=()
	for uid in 1 2 3 4 5; do
		start_job more.fifo more.err listen --json "$(uri_of tcp)"
		others+=("$pid $fd")
	done
	run 0 stat --json && has_all && why= || why=${why:-no}
	for uid in "${others[@]}"; do
		kill "${uid% *}"
		end_job "${uid% *}" "${uid#* }"
	done
	[ -z "$why" ]
}

# A position of one stream of a directory means nothing to another stream.
positions() {
	why=$(nm -Du "$SESSCTL" | grep -E 'telldir|seekdir|rewinddir')
	[ -z "$why" ]
}

# A directory with more names than are read: that is said, and the others are shown.
many_names() {
	local uid
	fresh
	unset DDPSESS_WATCH
	for uid in {30000..30001}; do
		mkdir -m 700 "/tmp/ddpsess-$uid" || return
	done
	(cd /tmp/ddpsess-30000 && seq 300000 | xargs touch) && chown 30000 /tmp/ddpsess-30000 &&
		chown 30001 /tmp/ddpsess-30001 || return
	listen "$(uri_of tcp)"
	run 0 stat --json && has out pid "$listener" && says err "/tmp/ddpsess-30000: it has too many names"
	status=$?
	rm -rf /tmp/ddpsess-30000
	return "$status"
}

# More directories than descriptors: root's own listener is shown.
few_descriptors() {
	local uid own=$SESSCTL status
	fresh
	unset DDPSESS_WATCH
	for uid in {30000..30100}; do
		mkdir -m 700 "/tmp/ddpsess-$uid" && chown "$uid" "/tmp/ddpsess-$uid" || return
	done
	fake silent 30000 /tmp/ddpsess-30000 1 100 || return
	listen "$(uri_of tcp)"
	printf '#!/bin/sh\nulimit -n 64 && exec "%s" "$@"\n' "$own" >limited && chmod 755 limited
	SESSCTL=./limited
	run 0 stat --json && has out pid "$listener" && says err "no whole answer in time"
	status=$?
	SESSCTL=$own
	[ "$status" = 0 ] || return
	why=$(grep -i 'too many' err)
	[ -z "$why" ]
}

# All of the listeners are shown, and nothing was late.
has_all() {
	local one
	has out pid "$listener" || return
	for one in "${others[@]}"; do
		has out pid "${one% *}" || return
	done
	why=$(cat err)
	[ -z "$why" ]
}

# Nobody is kept from being seen without a word.
taken() {
	local way
	fresh
	unset DDPSESS_WATCH
	for way in owner link; do
		rm -rf /tmp/ddpsess-0
		[ $way = link ] && ln -s "$work/elsewhere" /tmp/ddpsess-0
		[ $way = owner ] && { mkdir /tmp/ddpsess-0 && chown 65534 /tmp/ddpsess-0; }
		listen "$(uri_of tcp)"
		run 0 ping --count 1 "$uri" &&
			says listen.err "will not show this listener: /tmp/ddpsess-0: it is somebody else's" &&
			says listen.err "try: DDPSESS_WATCH=" &&
			run 1 stat && says err "/tmp/ddpsess-0: not asked" || return
	done
	DDPSESS_WATCH=/nowhere/at/all listen "$(uri_of tcp)"
	says listen.err "/nowhere/at/all: No such file or directory" || return
	[ -e "$BUILD/libddpsess-verbs.so" ] && command -v ibv_devinfo >/dev/null || return 0
	timeout "$PATIENCE" "$BUILD/sessctl" run -- ibv_devinfo >out 2>err
	says err "ddpsess: /tmp/ddpsess-0: it is somebody else's"
}

test_case "contact 17: an answer without end" endless
test_case "contact 19: texts that a terminal obeys" controls
test_case "contact 17: answers that do not come" silent
test_case "contact 17: what is no answer" no_answer
test_case "contact 17: names that are no sockets" links
if [ "$(awk '{ print $3 }' /proc/self/uid_map)" -gt 65534 ]; then
	test_case "contact 17: sockets of somebody else" foreign
	test_case "contact 17: one user among others" others
	test_case "contact 17: more directories than questions at a time" many_directories
	test_case "contact 7: positions of a directory belong to one stream" positions
	test_case "contact 7: more names than are read" many_names
	test_case "contact 17: more directories than descriptors" few_descriptors
	test_case "contact 17: a directory that is taken" taken
else
	ok "contact 17: sockets of somebody else # skipped: there is one user only"
fi
finish
