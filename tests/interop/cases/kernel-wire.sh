# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# tshark judges SCTP: payload protocols 16 and 17, good CRC32c checksums, nothing malformed.
# quick
# needs: sessctl
judged_sctp
sessctl_in_guest "sctp://$GUEST:$PORT?backend=kernel&$ON_IP"
transfer put 300000 "sctp://$GUEST:$PORT" "backend=native&$ON_IP"
ids=$(wire -T fields -e sctp.data_payload_proto_id | tr , '\n' | grep . | sort -un | tr '\n' ' ')
[ "$ids" = "16 17 " ] || fail "payload protocols: $ids"
