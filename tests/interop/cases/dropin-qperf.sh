# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified qperf here on our verbs library and on siw, each as client: Sends one way at a time.
# rc_bi_bw has no flow control, and the guest is slower than we are: see docs/interop.md.  Its other
# tests end with an error between siw and siw too.
# needs: libddpsess-verbs.so
tests=(-cm 1 -t 1 -m 4096 rc_lat)
control=19765
figures() { # FILE
	[ "$(grep -cE '^ +latency +=' "$1")" = 1 ] || fail "no figures: $(tail -n 1 "$1")"
}

verbs_calls "$control" qperf qperf "$GUEST" "${tests[@]}"
figures "$work/verbs.out"
verbs_called "$control" "qperf $HOST ${tests[*]}" qperf ||
	fail "qperf in the guest: $(tail -n 1 "$work/there")"
figures "$work/there"
