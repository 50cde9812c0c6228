# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# For the scripts here: a folder of their own, $work, and results, which the exit status follows.

work=$(mktemp -d)
# What else is to end with the script.
cleanup() { :; }
over() {
	local status=$?
	[[ $BASHPID = "$$" ]] || return # killed before it was a program of its own
	[ ! -e "$work/.not-ok" ] || status=1
	cleanup
	rm -rf "$work"
	exit "$status"
}
trap over EXIT

# result STATUS NAME [FILE]: FILE shows what went wrong
result() {
	if [ "$1" = 0 ]; then
		echo "ok $2"
		return
	fi
	echo "not ok $2"
	: >"$work/.not-ok" # also from a subshell
	[ -z "${3:-}" ] || head -n 40 "$3"
}
