#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What shell scripts do at their end.  bash's child that is killed before it has become a program runs
# the traps of its parent: a script that kills what it started must ask there whose end it is.  With [[
# and not with [, which says no while a signal is taken.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash

# careless FILE...: scripts that kill, and have a trap at exit in which nobody asks
careless() {
	local f body
	for f; do
		grep -qE '\bkill\b.*[$]' "$f" || continue
		while read -r body; do
			[[ $body =~ ^\'?([a-z_]+)\'?$ ]] && body=$(sed -n "/^${BASH_REMATCH[1]}() {/,/^}/p" "$f" tests/*/lib.bash)
			# shellcheck disable=SC2016 # as it is written there
			grep -qF '[[ $BASHPID ' <<<"$body" || echo "$f: $body"
		done < <(sed -nE 's/^[[:space:]]*trap ([^-].*) EXIT.*/\1/p' "$f")
	done
}

# Not this one, whose example of the fault stands below.
mapfile -t scripts < <(git ls-files '*.sh' '*.bash' ':!tests/package/scripts.sh')
careless "${scripts[@]}" >"$work/log"
[ ! -s "$work/log" ] && [ "${#scripts[@]}" -gt 100 ]
result $? "a script that kills what it started asks at exit whether it is the script" "$work/log"

# The fault itself, and that such a script is found.
cat >"$work/bad.sh" <<'END'
trap 'rm -f "$0.there"' EXIT
: >"$0.there"
for ((i = 0; i < 300 && ! gone; i++)); do
	env --default-signal=INT sleep 5 &
	kill -INT $!
	wait $!
	[ -e "$0.there" ] || gone=1
done 2>/dev/null
exit $((!gone))
END
sed "s/trap '/trap '[[ \$BASHPID != \"\$\$\" ]] || /" "$work/bad.sh" >"$work/good.sh"
env --default-signal=INT timeout 60 bash "$work/bad.sh" && ! env --default-signal=INT timeout 60 bash "$work/good.sh"
result $? "without it a killed child removes the script's files, with it none does"
[ -n "$(careless "$work/bad.sh")" ] && [ -z "$(careless "$work/good.sh")" ]
result $? "the first of these is found"
