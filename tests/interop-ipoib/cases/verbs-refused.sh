# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# What --port verbs says where it cannot be: no such device, another P_Key, no ib_umad, ib_cm is loaded.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
verbs="sessctl ipoib bridge --tun ib9 --ip 10.88.0.2/24 --port verbs"

refused() { # TEXT ADVICE 'COMMAND'
	local text
	text=$(guest "$3 2>&1") && fail "it runs: $3"
	grep -qF -- "$1" <<<"$text" || fail "no '$1' in: $text"
	grep -qF -- "  try: $2" <<<"$text" || fail "no advice '$2' in: $text"
}

judge_at_end= # nothing need be on the wire
verbs_prepare
refused "no device 'mlx5_0'" "ibv_devices" "$verbs:mlx5_0"
refused "P_Key 0x8001 is not in the table" "the subnet manager" "$verbs --pkey 0x8001"
guest "modprobe ib_ipoib"
refused "the kernel's ib_cm has them" "modprobe -r ib_ipoib" "$verbs"
guest "modprobe -r ib_ipoib; modprobe -r ib_umad"
refused "rxe0:1 has no device for MADs" "modprobe ib_umad" "$verbs"
