#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Host side of guest/bin/agent; runs inside the lab's network namespace (see lab.sh).
# usage: agent-call.sh SECONDS run COMMAND | push FILE GUESTFILE | pull GUESTFILE FILE
# Exit status: the guest's; 124 time is up, 125 no answer.
set -u
guest=${LAB_GUEST:-10.77.0.2}
limit=$1 verb=$2

status() { # print "|" lines, end with the "=" line
	local line left
	while left=$((limit - SECONDS)) && [ "$left" -gt 0 ]; do
		IFS= read -r -t "$left" -u 3 line || break
		case $line in
		'|'*) printf '%s\n' "${line#?}" ;;
		=*) return "${line#=}" ;;
		esac
	done
	[ $((limit - SECONDS)) -gt 0 ] && return 125
	echo "lab: no end within $limit s" >&2
	return 124
}

pull() {
	local octets
	read -r -t "$limit" -u 3 octets || return 125
	if [ "$octets" = -1 ]; then
		echo "lab: no file '$1' in the guest" >&2
		return 1
	fi
	timeout --foreground "$limit" head -c "$octets" <&3 >"$2" || return
	[ "$(stat -c %s "$2")" = "$octets" ]
}

exec 3<>"/dev/tcp/$guest/2323" || exit 125
case $verb in
run)
	printf 'RUN %s\n' "$(base64 -w 0 <<<"$3")" >&3
	status
	;;
push)
	mode=644
	[ ! -x "$3" ] || mode=755
	printf 'PUT %s %s %s\n' "$mode" "$(stat -L -c %s "$3")" "$4" >&3
	timeout --foreground "$limit" cat "$3" >&3 && status
	;;
pull)
	printf 'GET %s\n' "$3" >&3
	pull "$3" "$4"
	;;
esac
