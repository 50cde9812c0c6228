# SPDX-License-Identifier: BSD-2-Clause
# What the scripts of make programs share: whole programs over the drop-in, each over both wires and,
# where it has one, its own TCP mode next to them.  Their argument is the build.  One line a case.
# shellcheck shell=bash disable=SC2034,SC2154
. tests/verbs/lib.sh
export DDPSESS_RETRY_MS=15000
failed=0
pids=()
options=()

stop_all() { # those that were started, and nobody else
	local p
	for p in "${pids[@]}"; do
		kill "$p" 2>/dev/null
	done
	for p in "${pids[@]}"; do
		wait "$p" 2>/dev/null
	done
	pids=()
}
trap '[[ $BASHPID != "$$" ]] || { stop_all; rm -rf "$work"; }' EXIT

ok() {
	echo "ok $1"
}

not_ok() { # NAME FILE...: with what the files end with
	failed=1
	echo "not ok $1: $(tail -q -n 4 "${@:2}" 2>/dev/null | tr -c '[:print:]' ' ')"
}

# 8 MiB that begin with words which are found in a capture of a plain wire
mark="what is moved: words that anybody can read"
fill() { # FILE
	{ echo "$mark" && cat /dev/urandom; } 2>/dev/null | head -c 8M >"$1"
}

# needs PROGRAM...: without them the script ends, and says so.
needs() {
	local p
	for p in "$@"; do
		[ -n "$(type -P "$p")" ] || [ -e "$p" ] || {
			echo "# skipped ${0##*/}: there is no $p"
			exit 0
		}
	done
}

# begin FILE COMMAND...: in the background, until stop_all
begin() {
	rm -f "$1" # what an earlier one said is not to be taken for its word
	"${@:2}" >"$1" 2>&1 &
	pids+=($!)
}

# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	while ! "${@:2}" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# on WIRE COMMAND...: over the drop-in on that wire; "plain": without it, on the program's own TCP.
# The options of sessctl run are $options.
on() {
	if [ "$1" = plain ]; then
		timeout -k 5 "${patience:-120}" "${@:2}"
	else
		timeout -k 5 "${patience:-120}" "$sessctl" run --transport "$1" "${options[@]}" -- "${@:2}"
	fi
}
