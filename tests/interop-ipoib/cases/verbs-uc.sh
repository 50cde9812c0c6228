# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# Unreliable connections: those of the guest's soft InfiniBand device with ours in UDP.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1 --mode uc
verbs_up --mode uc
reach 1 10.88.0.2 56
pings 1 10.88.0.2 4 60000 || fail "60000 octets to the adapter"
pings 2 10.88.0.1 4 60000 || fail "60000 octets from the adapter"
status 1 | grep -q '"mode":"uc"' || fail "not a UC connection: $(status 1)"
[ "$(connections 1)" = 1 ] || fail "$(connections 1) connections, not one"
tshark -r "$work/wire.pcap" -Y 'infiniband.bth.opcode in {32, 34, 36}' 2>/dev/null >"$work/uc" || fail "tshark"
[ -s "$work/uc" ] || fail "no packet of UC on the wire"
clean 1
verbs_clean
detail "$(verbs_count qp_tx) messages sent, $(verbs_count qp_rx) received, $(wc -l <"$work/uc") packets of UC"
verbs_down
ended_well 1
