#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two programs of one host, and who of them goes through shared memory: one user and one network namespace.
# One line a case.
# usage: near.sh BUILD
# shellcheck disable=SC2154 # variables of lib.sh
set -u
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"
drop_rights
here=ddps-near-$$-a there=ddps-near-$$-b
unset DDPSESS_TRANSPORT DDPSESS_FAULTS
export DDPSESS_LOG=mpa:info

if [ "$(id -u)" != 0 ] || ! ip netns add "$here" 2>/dev/null; then
	echo "ok programs of one host # skipped: no namespaces here"
	exit 0
fi
trap '[[ $BASHPID != "$$" ]] || { ip netns del "$here"; ip netns del "$there"; rm -rf "$work"; }' EXIT
ip netns add "$there"
ip -n "$here" link add v0 type veth peer name v1 netns "$there"
ip -n "$here" addr add 192.0.2.1/24 dev v0
ip -n "$there" addr add 192.0.2.2/24 dev v1
for at in "$here:lo" "$there:lo" "$here:v0" "$there:v1"; do
	ip -n "${at%:*}" link set "${at#*:}" up
done

# ends WAY SERVER-USER SERVER-SETTING CLIENT-NAMESPACE CLIENT-USER CLIENT-SETTING NAME; WAY: moves or stays
ends() {
	local server moved=0 fault=
	ip netns exec "$here" setpriv --reuid "$2" --clear-groups timeout -k 5 60 "$sessctl" run --shm "$3" -- \
		rping -s -C 10 -a 192.0.2.1 >"$work/server" 2>&1 &
	server=$!
	ip netns exec "$4" setpriv --reuid "$5" --clear-groups timeout -k 5 60 "$sessctl" run --shm "$6" -- \
		rping -c -v -C 10 -a 192.0.2.1 >"$work/client" 2>&1 || fault="client $?"
	wait "$server" || fault+=" server $?"
	! grep -q "through shared memory" "$work/server" || moved=1
	! grep -q "through shared memory" "$work/client" || moved=$((moved + 1))
	if [ "$1" = stays ]; then # whoever wants it learns why not
		[ "$3" = off ] || grep -q "shared memory.*: over TCP" "$work/server" || fault+=" the server does not say why"
		[ "$6" = off ] || grep -q "shared memory.*: over TCP" "$work/client" || fault+=" the client does not say why"
	fi
	[ "$moved" = "$([ "$1" = moves ] && echo 2 || echo 0)" ] || fault+=" $moved of 2 have moved"
	report "$7" "$fault" "$work/client" "$work/server"
}

ends moves 65534 auto "$here" 65534 auto "programs of one user go through shared memory"
ends stays 65534 auto "$there" 65534 auto "those of another network namespace stay on TCP"
ends stays 65534 auto "$here" 12345 auto "another user stays on TCP"
ends stays 65534 off "$here" 65534 auto "a server without the setting stays on TCP"
ends stays 65534 auto "$here" 65534 off "a client without the setting stays on TCP"
[ ! -e "$work/failed" ]
