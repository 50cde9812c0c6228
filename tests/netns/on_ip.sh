#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The cases of SCTP itself, ETSI's purposes among them, directly on IP: in a network namespace that this
# script makes, against sessctl in both roles.  Prints one line a case.
# shellcheck disable=SC2317 # cleanup is called by a trap
# usage: SESSCTL=... on_ip.sh
set -u
if [ "${1:-}" != inside ]; then
	if ! unshare -n true 2>/dev/null; then
		echo "skip contact 15: SCTP directly on IP: no right to make a network namespace"
		exit 0
	fi
	exec unshare -n bash "$0" inside
fi
work=$(mktemp -d)
listener=
# shellcheck source=tests/support/json.bash
. "$(dirname "$0")/../support/json.bash"
cleanup() {
	local status=$?
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	[ -z "$listener" ] || kill "$listener"
	wait
	judge_json netns/on_ip "$work" || status=1
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
ip link set lo up || exit 1
bad=0

run() { # ROLE ARGUMENT...: one line a case that ran
	role=$1
	shift
	timeout 200 "$SESSCTL" conform --json --case 'assoc-*' "$@" >"$work/$role.json" 2>"$work/$role.err"
	sed -n 's/^{"event":"case","case":"\([^"]*\)","transport":"[^"]*","result":"\([^"]*\)".*/\2 \1/p' \
		"$work/$role.json" | while read -r result name; do
		# A port that this program does not have may be another's: it is silent there (docs/state.md).
		case $name/$result in
		assoc-nobody/fail) result=pass ;;
		assoc-nobody/pass) result=answered ;;
		esac
		case $result in
		pass) echo "ok contact 15: $name directly on IP" ;;
		skip) ;;
		*) echo "not ok contact 15: $name directly on IP: $(grep "\"case\":\"$name\"" "$work/$role.json" | cut -c 1-600)" ;;
		esac
	done >"$work/$role"
	cat "$work/$role"
	grep -q '^not ok' "$work/$role" && bad=1
	if [ "$(grep -c '^ok' "$work/$role")" -lt 75 ]; then
		echo "not ok contact 15: the $role ran $(grep -c '^ok' "$work/$role") cases: $(head -c 300 "$work/$role.err")"
		bad=1
	fi
}

"$SESSCTL" listen --json 'sctp://127.0.0.1:7174?encap=off&backend=native' >"$work/listen" 2>&1 &
listener=$!
for _ in {1..100}; do
	grep -q '"listening"' "$work/listen" && break
	sleep 0.1
done
run responder 'sctp://127.0.0.1:7174?encap=off&backend=native'
run initiator --listen 'sctp://127.0.0.1:7175?encap=off&backend=native' \
	--then "'$SESSCTL' connect --timeout 20 \"\$DDPS_URI\""
exit "$bad"
