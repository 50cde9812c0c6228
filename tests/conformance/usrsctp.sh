#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The cases of SCTP itself against usrsctp as responder and as initiator, with the profile of that
# name: nothing else fails, and all that the profile says is seen, but for what it says may be.
# usage: usrsctp.sh BUILD
set -u
build=$(realpath "$1")
profile=$(dirname "$0")/../../src/conform/profile/conform_usrsctp.h
work=$(mktemp -d)
listener=
trap '[[ $BASHPID != "$$" ]] || { [ -z "$listener" ] || kill "$listener"; rm -rf "$work"; }' EXIT
bad=0

cases() { # ROLE ARGUMENT...
	local role=$1
	shift
	timeout 600 "$build/sessctl" conform --json --timeout 2 --profile usrsctp "$@" \
		>"$work/$role.json" 2>"$work/$role.err"
	sed -n 's/^{"event":"case","case":"\([^"]*\)","transport":"sctp","result":"\([^"]*\)".*"why":"\([^"]*\)".*/\2\t\1\t\3/p;
		s/^{"event":"case","case":"\([^"]*\)","transport":"sctp","result":"\(pass\)".*/\2\t\1/p' \
		"$work/$role.json" >"$work/$role"
	awk -F '\t' -v role="$role" '
		$1 == "pass" { print "ok " $2 " of usrsctp as " substr(role, 1, 9) }
		$1 == "known" { print "ok " $2 " of usrsctp as " substr(role, 1, 9) " fails as it is known to: " $3 }
		$1 == "fail" { print "not ok " $2 " of usrsctp as " substr(role, 1, 9) ": " $3 }' "$work/$role"
	if grep -q '^fail' "$work/$role" || ! grep -q '"event":"summary"' "$work/$role.json"; then
		bad=1
	fi
}

"$build/sessctl-usrsctp" listen --json 'sctp://127.0.0.1:0?encap=0' >"$work/listen" 2>&1 &
listener=$!
for ((i = 0; i < 100; i++)); do
	uri=$(sed -n 's/.*"event":"listening","uri":"\([^"]*\)".*/\1/p' "$work/listen")
	[ -z "$uri" ] || break
	sleep 0.1
done
[ -n "$uri" ] || { echo "not ok usrsctp does not listen: $(cat "$work/listen")" && exit 1; }
cases responder --case 'assoc-[!i]*' "$uri"
cases responder-init --case 'assoc-init*' "$uri"
cases initiator --case 'assoc-i-*' --listen 'sctp://127.0.0.1:0?encap=0' --then \
	"timeout 10 '$build/sessctl-usrsctp' connect \"\$DDPS_URI\" </dev/null >/dev/null 2>&1"

[ ! -d "${CONFORM_KEEP-}" ] || cat "$work"/*.json >"$CONFORM_KEEP/usrsctp.json"
# A line of the profile that nothing shows any more is no evidence.
cat "$work/responder" "$work/responder-init" "$work/initiator" | sed -n 's/^known\t\([^\t]*\).*/\1/p' |
	sort >"$work/seen"
sed -n 's/^\t"\([^ ]*\) .*/\1/p' "$profile" | sort >"$work/all"
sed -nE 's/^\t"([^ ]*) ([a-z]+: )?may .*/\1/p' "$profile" | sort >"$work/may"
lacks=$(comm -23 "$work/all" "$work/seen" | comm -23 - "$work/may" | tr '\n' ' ')
if [ -n "$lacks" ]; then
	echo "not ok the profile says what was not seen: $lacks"
	bad=1
else
	echo "ok all $(wc -l <"$work/all") deviations of the profile but those that may be were seen"
fi
exit $bad
