# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# A link whose Q_Key has bit 31: --port verbs joins it with CAP_NET_RAW, and says what it lacks without.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1 --qkey 0x80000b1b
verbs_up
reach 1 10.88.0.2 56
pings 1 10.88.0.2 3 20000 || fail "20000 octets to the adapter"
verbs_clean
verbs_down
command -v setpriv >/dev/null || skip "setpriv is missing"
guest_install "$(command -v setpriv)"
guest 'setpriv --bounding-set -net_raw --inh-caps -net_raw sessctl ipoib listen --port verbs --timeout 20 2>&1' \
	>"$work/text" && fail "it joins without CAP_NET_RAW"
grep -q 'does not take the link.s Q_Key 0x80000b1b' "$work/text" || fail "$(cat "$work/text")"
grep -q '  try: CAP_NET_RAW' "$work/text" || fail "no advice: $(cat "$work/text")"
ended_well 1
