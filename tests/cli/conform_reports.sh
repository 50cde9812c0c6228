#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What sessctl conform says of broken peers, so that somebody who has read no RFC knows what to tell the
# vendor; in the table, TAP, JSON, JUnit and HTML, which parsers accept whatever the peer sends.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"

broken=
end_broken() {
	[ -z "$broken" ] || { kill "$broken" && wait "$broken"; } 2>/dev/null
	broken=
}
end_reports() {
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	end_broken
	cleanup
}
trap end_reports EXIT

serve() { # KIND: sets $uri
	end_broken
	rm -f port
	mkfifo port
	python3 "$here/broken_peer.py" "$1" >port 2>peer.err &
	broken=$!
	read -r -t "$PATIENCE" number <port
	uri=tcp://127.0.0.1:$number
}

# The page and the JUnit report are what parsers take, with nothing of the peer's that is not text.
parsed() { # HTML JUNIT
	why="a parser does not take it"
	python3 - "$1" <<-'END' 2>parse.err || { why="$(tail -n 1 parse.err)" && return 1; }
		import html.parser, re, sys

		class Page(html.parser.HTMLParser):
		    single = {"meta", "br"}
		    def __init__(self):
		        super().__init__()
		        self.open, self.seen = [], set()
		    def handle_starttag(self, tag, attrs):
		        assert all(name not in ("src", "href") and not name.startswith("on") for name, _ in attrs)
		        self.seen.add(tag)
		        if tag not in self.single:
		            self.open.append(tag)
		    def handle_endtag(self, tag):
		        assert self.open and self.open.pop() == tag, (tag, self.getpos())

		text = open(sys.argv[1], encoding="utf-8").read()
		page = Page()
		page.feed(text)
		page.close()
		assert not page.open, page.open
		assert not page.seen & {"script", "img", "link", "iframe", "a"}, page.seen
		assert "h1" in page.seen and ("table" in page.seen or "Nothing was tested." in text)
		assert not re.search("url\\(|@import|https?:", text)
		assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)
	END
	is_junit "$2" || return
	! command -v xmllint >/dev/null || xmllint --noout "$2"
}

reports() { # KIND CAUSE TEXT...: each text is in the table, and the page has the cause
	local kind=$1 cause=$2
	serve "$kind"
	run 1 conform --timeout 1 --case 'mpa-request-*' --html r.html --junit r.xml "$uri" || return
	says out "$cause: " && says r.html "$cause: " || return
	shift 2
	for text; do says out "$text" || return; done
	parsed r.html r.xml || return
	why="the summary is not in front of the list"
	[ "$(grep -n '^area ' out | cut -d: -f1)" -lt "$(grep -n '^FAIL' out | head -n 1 | cut -d: -f1)" ] ||
		return
	run 1 conform --timeout 1 --case 'mpa-request-plain' --tap "$uri" || return
	why="a line that is no TAP"
	! grep -qvE '^(TAP version |1\.\.|ok |not ok |#)' out || return
	run 1 conform --timeout 1 --case 'mpa-request-plain' --json "$uri" &&
		says out '"text":"RFC 5044 section 7.1.1 (MUST, responder): a Reply has the Reply'"'"'s key"'
}

crashes() {
	serve crashes
	run 1 conform --timeout 1 --case 'mpa-request-*' --html r.html --junit r.xml "$uri" && parsed r.html r.xml &&
		says out "this peer is no longer there: " && says r.html "this peer is no longer there: " &&
		says out "came      connecting to the target: Connection refused" && says out "Has its program ended?"
}

# A Reply that comes where a Reply was sent is no echo.
accepts_all() {
	serve once
	run 1 conform --case 'mpa-key-*' --html r.html --junit r.xml "$uri" && parsed r.html r.xml &&
		says out "this peer goes on where it has to end the session: 3 cases" || return
	why="it is called an echo"
	! grep -q "sends back" out
}

# It is not said of it that it should have gone on.
says_nothing() {
	serve mute
	run 1 conform --timeout 1 --case 'mpa-crc-*-bit' --html r.html --junit r.xml "$uri" &&
		says out "this peer ends the session without the Terminate that is due: " &&
		says r.html "without the Terminate that is due: " && says r.html '<span class="bad">failed</span> (grade: passes) <code>mpa-' && says out "expected  a Terminate 2/0/02" &&
		parsed r.html r.xml && ! grep -q "where an answer is due" out r.html
}

# Over SCTP there is no connection before the peer has answered right: the error says how far it came.
no_association() { # KIND TEXT
	serve "$1"
	run 1 conform --timeout 0.3 --case 'neg-*' --junit r.xml "sctp://127.0.0.1:7174?encap=$number" && says err "$2" &&
		says r.xml "$2" && says err "try: "
}

# With an association.
associated() { # KIND CAUSE TEXT...
	local cause=$2
	serve "$1"
	run 1 conform --timeout 0.3 --case 'neg-*' --html r.html --junit r.xml "sctp://127.0.0.1:7174?encap=$number" &&
		says out "  $cause: " && says r.html "$cause: " && parsed r.html r.xml || return
	shift 2
	for text; do says out "$text" || return; done
}

# Nobody is at the port any more: none of the cases waits for an answer, and each says why.
gone_halfway() {
	local pid began=$SECONDS res
	listen "$(uri_of sctp)"
	timeout 60 "$SESSCTL" conform --json "$uri" >cases 2>err &
	pid=$!
	until [ "$(grep -c '"result":"pass"' cases)" -gt 5 ] || [ $((SECONDS - began)) -gt "$PATIENCE" ]; do sleep 0.02; done
	kill -KILL "$listener"
	wait "$listener" 2>/dev/null
	wait "$pid"
	res=$?
	stop_listener
	why="status $res, and not all that came later says that the target is gone"
	[ $res = 1 ] && python3 - cases <<-'END'
		import json, sys
		failed = [c for c in map(json.loads, open(sys.argv[1])) if c.get("result") == "fail"]
		assert len(failed) > 100, len(failed)
		# the case that was under way may have waited for something else
		assert all(c["cause"] == "gone" and c["seconds"] < 4 for c in failed[1:]), failed[1:]
	END
}

not_ddp() {
	serve sctp-plain
	run 1 conform --timeout 0.3 --case 'neg-*' --html r.html --junit r.xml "sctp://127.0.0.1:7174?encap=$number" &&
		says out "this peer answers nothing to the set-up: " && says out "its INIT ACK does not name DDP" &&
		parsed r.html r.xml || return
	listen "$(uri_of sctp)" # one that does
	kill -STOP "$listener"
	run 1 conform --timeout 0.3 --case 'neg-*' "$uri" && says err "nothing has come from it"
	local res=$?
	stop_listener
	return "$res"
}

# A few cases ask for nothing but a close, which is to nobody's credit who always closes.
idle() {
	serve close
	run 1 conform --html r.html --junit r.xml "$uri" && says out "  12 passed nevertheless:" &&
		says out "a peer that takes nothing passes" && says r.html "<b>12 passed nevertheless:</b>" || return
	serve dead
	run 1 conform --timeout 0.2 --case 'ddp-*' "$uri" && why="it is said of one that takes sessions" &&
		! grep -q nevertheless out
}

# Every rule that a case covers has words, and says where it stands.
words() {
	why="a rule without words"
	serve silent
	run 1 conform --timeout 0.1 --json "$uri"
	! grep -o '{"id":"[^}]*}' out | grep -v '"text":"[^"]*(.*): ' | grep -v 'test purpose\|packetdrill' || return
	says out '"text":"RFC 6581 section 9.1 ('
}

# A peer that never answers is given up in seconds, with the waits that are the default.
dead_soon() { # KIND CAUSE
	local begin=$SECONDS
	serve "$1"
	run 1 conform "$uri" || return
	says out "$2: " || return
	took_less "$begin" 20 120
}

# What answers late is waited for, though it was silent before.
patient() {
	listen "$(uri_of tcp)"
	run 0 conform --case 'ddp-write-*' "$uri" && says out " 0 failed"
	local res=$?
	stop_listener
	return "$res"
}

nothing() {
	listen "$(uri_of tcp)"
	run 7 conform --case mpa-reply-pd --html r.html --junit r.xml "$uri" && says out "1 skipped" &&
		says r.html "Nothing was tested" && parsed r.html r.xml
	local res=$?
	stop_listener
	return "$res"
}

# In every state: all passed, some known, some undecided is in conform.sh.
passing() {
	listen "$(uri_of tcp)"
	run 0 conform --case 'ddp-write-*' --html r.html --junit r.xml "$uri" && parsed r.html r.xml &&
		says r.html "<h2>Passed</h2>" || return
	stop_listener
	listen "$(uri_of tcp)" --reject
	printf 'ddp-write-zero harmless: <&>"%b]]>\n' '\xef\xbf\xbf' >profile
	run 0 conform --case ddp-write-zero --profile profile --html r.html --junit r.xml "$uri" &&
		says r.html "Known of this target" && parsed r.html r.xml
	local res=$?
	stop_listener
	return "$res"
}

# Each output says why there are no cases in it.
unreachable() {
	listen "$(uri_of tcp)"
	local gone=$uri why_not="connecting to the target: Connection refused"
	stop_listener
	run 1 conform --html r.html --junit r.xml "$gone" && says err "$gone: $why_not" &&
		says err "try: is the target running" || return
	why="standard output has a summary of nothing"
	[ ! -s out ] || return
	says r.html "Not all cases were run: $gone: $why_not<br>Try: is the target" &&
		says r.xml "<error message=\"$gone: $why_not\">try: is the target" && parsed r.html r.xml || return
	run 1 conform --tap "$gone" && says out "Bail out! $gone: $why_not" || return
	why="a plan of no cases"
	! grep -q '^1\.\.' out || return
	run 1 conform --json "$gone" && has out event error && has out code DDPS_E_REFUSED &&
		says out "\"message\":\"$gone: $why_not\"" && has out event summary
}

# What was stopped is no whole run, whoever reads the report later.
interrupted() {
	serve dead
	"$SESSCTL" conform --timeout 0.2 --html r.html --junit r.xml --pcap-all --pcap r.pcap "$uri" >out 2>err &
	local pid=$! began=$SECONDS
	until [ -s r.pcap ] || [ $((SECONDS - began)) -gt "$PATIENCE" ]; do sleep 0.02; done
	kill -INT "$pid" && wait "$pid"
	says err "interrupted, not all cases were run" && says r.html "Not all cases were run: interrupted" &&
		says r.xml '<error message="interrupted, not all' && parsed r.html r.xml
}

# Whoever is killed says no more: what was done is in the reports, and each that anybody finds meanwhile is whole.
killed() {
	serve dead
	rm -f r.html r.xml
	"$SESSCTL" conform --timeout 0.2 --html r.html --junit r.xml "$uri" >out 2>err &
	local pid=$! began=$SECONDS cases=0 res
	until [ -s r.html ] || [ $((SECONDS - began)) -gt "$PATIENCE" ]; do sleep 0.02; done
	while [ "$cases" -le 2 ] && [ $((SECONDS - began)) -le "$PATIENCE" ]; do
		if ! cp r.html seen.html || ! cp r.xml seen.xml || ! parsed seen.html seen.xml; then
			break
		fi
		cases=$(grep -c '<testcase' seen.xml)
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	res=$?
	why="status $res, $cases cases"
	[ $res = 137 ] && [ "$cases" -gt 2 ] && parsed r.html r.xml &&
		says r.html "Not all cases were run: the run was cut off" &&
		says r.xml '<error message="the run was cut off">'
}

# Where no other file can be made in its folder, here for the length of its name, and into a pipe a report comes at the end.
written_at_the_end() {
	local long
	long=$(printf 'r%.0s' {1..251}).xml
	mkfifo pipe
	cat pipe >r.html &
	local reader=$!
	run 0 conform --self --case mpa-request-plain --junit "$long" --html pipe tcp || return
	wait "$reader"
	parsed r.html "$long" && says "$long" 'tests="1"'
}

unwritable() {
	run 1 conform --case mpa-request-plain --self --html /nowhere/r.html tcp &&
		says err "HTML report '/nowhere/r.html': No such file"
}

# A file that its owner may not write is kept.  Root may write any, so here without that right.
write_protected() {
	local -a as=()
	[ "$(id -u)" != 0 ] || as=(setpriv --bounding-set -dac_override --inh-caps -dac_override)
	echo kept >kept.xml && chmod 444 kept.xml || return
	timeout "$PATIENCE" "${as[@]}" "$SESSCTL" conform --case mpa-request-plain --self --junit kept.xml tcp \
		>out 2>err
	why="status $?" && says err "JUnit report 'kept.xml': Permission denied" && says kept.xml kept
}

# A page that is opened shows what it has on wide and on narrow screens; not everywhere is a browser.
shown() { # WIDTH
	timeout "$PATIENCE" chromium --headless --no-sandbox --disable-gpu --window-size="$1,1200" \
		--user-data-dir="$work/profile.d" --dump-dom "file://$work/r.html" >dom 2>/dev/null
	says dom "<h2>What failed</h2>" || return
	timeout "$PATIENCE" chromium --headless --no-sandbox --disable-gpu --window-size="$1,1200" \
		--user-data-dir="$work/profile.d" --screenshot="$work/shot-$1.png" "file://$work/r.html" \
		>/dev/null 2>&1
	why="no picture"
	[ -s "shot-$1.png" ]
}

if ! command -v python3 >/dev/null; then
	echo "skip python3 is not here: no broken peers"
	finish
fi
test_case "conform says what an echo server is" reports echo "this peer sends back the octets that it gets" \
	"MPA Request, Rev 1, CRC, 5 octets of private data" "expected  an MPA Reply"
test_case "conform says what an echo of single octets is" reports echo1 "this peer sends back the octets that it gets" \
	"expected  an MPA Reply"
test_case "conform says what another server is" reports ssh "this peer answers in another protocol than iWARP" \
	'not an MPA frame: it begins with "SSH-2.0-OpenSSH_9.2p1 Debian-2", not with' "Is that the right address"
test_case "conform says what a web server is" reports http "this peer answers in another protocol than iWARP" \
	'it begins with "HTTP/1.1 400 Bad Request"'
test_case "conform says what a generator of text is" reports chargen "this peer answers in another protocol than iWARP" \
	"it begins with \" !\"#"
test_case "conform says that a peer speaks TLS" reports tls "this peer speaks TLS" "tls://" "it begins with other octets"
test_case "conform says that a peer closes behind its Reply" reports leaves \
	"this peer ends the session where an answer is due"
test_case "conform says that a peer did not survive" crashes
test_case "conform says that a peer accepts everything" accepts_all
test_case "conform says that a peer closes at the set-up" reports close \
	"this peer closes instead of answering the set-up" "came      the target "
test_case "conform says what a pass is worth of a peer that closes" idle
test_case "conform says which checksum is wrong" reports crc "the checksum of this peer's own FPDUs is wrong" \
	"it is the CRC-32 of Ethernet: MPA uses CRC32c" "RFC 5044 section 7.1.1 (MUST, responder): "
test_case "conform says that a set-up message is cut short" reports partial \
	"this peer stops in the middle of its MPA Request or Reply" \
	"ms for the rest: 8 of 20 octets came" "8 octets of an MPA frame that is not whole"
test_case "conform says that a revision does not exist" reports wrongrev \
	"this peer's own MPA Request or Reply is wrong" "MPA Reply, Rev 9" \
	"expected  an MPA Reply of Rev 1 or 2 that accepts the request"
test_case "conform says that reserved bits are set" reports reserved \
	"this peer sets reserved bits in its MPA Request or Reply" "reserved bits 01"
test_case "conform says that what comes is no FPDU" reports rubbish "this peer sends no FPDUs after the set-up" \
	"not an FPDU: behind its length there is no header of DDP and RDMAP"
test_case "conform says that a Reply announces more than it has" reports longpd \
	"this peer stops in the middle of its MPA Request or Reply" "ms for the rest: 4 of 12 octets came"
test_case "conform says that a Reply announces less than it has" reports shortpd \
	"this peer sends no FPDUs after the set-up" "private data, of which the Reply announces less" \
	"73 75 72 70 72 69 73 65"
test_case "conform says that a peer is gone in a session" reports dies "this peer ends the session where an answer is due" \
	"the target reset the connection where octets of it were due"
test_case "conform says that no Terminate comes" says_nothing
test_case "conform says that an FPDU is not whole" reports half "this peer stops in the middle of an FPDU" \
	"24 octets of an FPDU that is not whole"
test_case "conform says that nothing comes over SCTP" no_association sctp-silent "nothing has come from it"
test_case "conform over SCTP says that the target is gone" gone_halfway
test_case "conform says that packets come back" no_association sctp-echo "it sends back what it gets"
test_case "conform says that SCTP is refused" no_association sctp-abort "the target sent ABORT"
test_case "conform says how far a set-up came" no_association sctp-half "it has answered INIT, and not COOKIE ECHO"
test_case "conform says which checksum SCTP has" no_association sctp-sum "it sends packets whose checksum is wrong: CRC32c"
test_case "conform says that another server has the port" no_association sctp-text \
	"it answers with what is no packet of SCTP: another program has that port"
test_case "conform says that a peer over SCTP knows no DDP" not_ddp
test_case "conform says what an echo over SCTP is" associated sctp-mirror "this peer sends back the octets that it gets"
test_case "conform says that a set-up over SCTP is not answered" associated sctp-deaf \
	"this peer answers nothing to the set-up" "Does a program listen for iWARP there"
test_case "conform says that a session over SCTP is not answered" associated sctp-dead \
	"this peer answers nothing after the set-up"
test_case "conform says that an association ends behind its Accept" associated sctp-leaves \
	"this peer ends the session where an answer is due"
test_case "conform says that sessions over SCTP are rejected" associated sctp-rejects \
	"the application of this peer rejects the session"
test_case "conform shows hostile octets as text" reports hostile \
	"this peer answers in another protocol than iWARP" "not an MPA frame"
if command -v chromium >/dev/null; then
	test_case "the report is shown on a wide screen" shown 1280
	test_case "the report is shown on a narrow screen" shown 390
fi
test_case "conform has words for every rule" words
test_case "conform gives up on a dead peer soon" dead_soon dead "this peer answers nothing after the set-up"
test_case "conform gives up on a silent peer soon" dead_soon silent "this peer answers nothing to the set-up"
test_case "conform gives up on half a Reply soon" dead_soon partial \
	"this peer stops in the middle of its MPA Request or Reply"
test_case "conform gives up on rubbish soon" dead_soon rubbish "this peer sends no FPDUs after the set-up"
test_case "conform gives up on a wrong revision soon" dead_soon wrongrev "this peer's own MPA Request or Reply is wrong"
end_broken
test_case "conform waits for what answers" patient
test_case "conform has a status for nothing tested" nothing
test_case "conform's files are whole when all is well" passing
test_case "conform says in each output that there is no target" unreachable
test_case "conform says in each output that it was interrupted" interrupted
test_case "conform's reports are whole at any time, and when it is killed" killed
test_case "conform writes a report at the end where it cannot be replaced" written_at_the_end
test_case "conform says that a page cannot be written" unwritable
test_case "conform keeps a report that is write-protected" write_protected
finish
