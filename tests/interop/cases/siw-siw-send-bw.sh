# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# What docs/verbs.md says of ib_send_bw between two siw devices: with -R both ends are content,
# without it they do not get as far as to measure.
run_both() { # OPTION...
	guest "cd /tmp
		(timeout 30 ib_send_bw -d siw0 $* >s.out 2>&1; echo \$? >s.rc) &
		for ((i = 0; i < 100; i++)); do ss -Hltn | grep -q :18515 && break; sleep 0.1; done
		timeout 30 ib_send_bw -d siw0 $* $GUEST >c.out 2>&1; echo \$? >c.rc
		wait; echo \$(cat s.rc c.rc)"
}

[ "$(run_both -R -n 200 -s 4096)" = "0 0" ] || fail "with -R: $(guest 'tail -n 3 /tmp/[sc].out')"
[ "$(run_both -n 200 -s 4096)" = "1 1" ] || fail "without -R it ends otherwise than the page says"
guest "grep -c '^ 4096 ' /tmp/s.out /tmp/c.out" >"$work/measured" || true
grep -q ':0' "$work/measured" || fail "without -R it measures: $(cat "$work/measured")"
detail "without -R: $(guest 'grep -ihm 1 "fail\|unable\|error\|couldn" /tmp/c.out')"
