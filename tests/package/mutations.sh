#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each check that a test needs switched off is there under its name (tests/mutate/off.py).  make mutate, make
# plants and the conformance mutations run them; only the last of these is part of make check.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
lists=(tests/mutate/attacks.txt tests/conformance/mutations.txt tests/sim/plants.txt)

off() { # LIST...
	PYTHONDONTWRITEBYTECODE=1 tests/mutate/off.py check "$@"
}

off "${lists[@]}" >"$work/log"
result $? "each check that a test needs switched off is there: $(sed -n 's/^ok //p' "$work/log")" "$work/log"

# floors FILE: folders of the wires without a floor, floors without a folder
floors() {
	cut -f 1 "$1" | grep -v '^#' | sort >"$work/floors"
	find src/ddp src/rdmap src/negotiate src/mpa_tcp src/sctp src/sctp_ddp src/secure/dtls src/secure/record \
		-name '*.c' -printf '%h\n' | sort -u |
		grep -vxF "$(sed -n 's/^LEFT_OUT = "\(.*\)"$/\1/p' tests/mutate/changes.py)" | comm -3 - "$work/floors"
}
floors tests/mutate/floors.tsv >"$work/log"
! [ -s "$work/log" ]
result $? "each folder of the wires has a floor for the changes that tests notice" "$work/log"
sed 's:^src/rdmap\t:src/rdma\t:' tests/mutate/floors.tsv >"$work/changed"
[ "$(floors "$work/changed" | wc -l)" = 2 ]
result $? "a folder without a floor and a floor without a folder are found"
# The floor itself, a few below it by chance, as few as that of very many; 0 and all.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/mutate python3 - <<'PYTHON'
import changes
for tried, survived, below in ((1000, 30, False), (1000, 35, False), (1000, 60, True), (5000, 200, True),
                               (20, 2, False), (20, 8, True), (1, 1, False), (300, 0, False)):
    assert changes.is_below(97, tried, survived) == below, (tried, survived)
PYTHON
result $? "a score below its floor is found, unless it may be chance"
# With so many survivors of so many: the bound of Clopper and Pearson, from a table.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/mutate python3 - <<'PYTHON'
import changes
for tried, survived, least in ((300, 0, 99.0), (300, 10, 94.4), (20, 1, 78.4), (10, 10, 0)):
    assert abs(changes.least_share(tried, survived) - least) < 0.06, (tried, survived)
PYTHON
result $? "what a sample promises of all is known"

# A tree in which a function has another name, a check has gone, and all else has moved.
mkdir -p "$work/tree/src/sctp" "$work/tree/tests/mutate"
cp tests/mutate/{off.py,changes.py,floors.tsv} "$work/tree/tests/mutate/"
grep -E '^(open_cookie|must_be_alone|quoted): ' tests/mutate/attacks.txt >"$work/tree/list"
sed '/^#include/d; s/\t/ /g; s/ {$/\n{/' src/sctp/sctp_echo.c >"$work/tree/src/sctp/other.c"
cat src/sctp/sctp_packet.c src/sctp/sctp_oob.c >>"$work/tree/src/sctp/other.c"
(cd "$work/tree" && off list) >"$work/log"
result $? "where a function is, and how its lines are broken, does not matter" "$work/log"
sed -i 's/\<must_be_alone\>/may_not_follow/; s/tag == p->a->peer_tag/tag == p->own/' "$work/tree/src/sctp/other.c"
(cd "$work/tree" && off list) >"$work/log"
[ "$(wc -l <"$work/log")" = 2 ] && grep -q 'no must_be_alone() in src: if it has another name now' "$work/log" &&
	grep -q 'quoted() in\|quoted() has == p->a->peer_tag 0 times' "$work/log"
result $? "a function of another name and a check that has gone are found, and what to do is said" "$work/log"
