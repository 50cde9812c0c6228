# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# quick
# needs: sessctl
# --port verbs, on the soft InfiniBand device of the guest without ib_ipoib and ib_cm, with --port ib.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
verbs_up
reach 1 10.88.0.2 56
pings 1 10.88.0.2 4 60000 || fail "60000 octets to the adapter"
pings 2 10.88.0.1 4 60000 || fail "60000 octets from the adapter"
[ "$(connections 1)" = 1 ] || fail "$(connections 1) connections, not one"
pings 2 fd88::1 3 1000 || fail "IPv6"
clean 1
verbs_clean
detail "$(verbs_count qp_tx) messages sent, $(verbs_count qp_rx) received," \
	"$(verbs_count ud_rx) datagrams received, $(verbs_count ud_rx_grh) of them with a GRH"
verbs_down
ended_well 1
