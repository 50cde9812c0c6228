#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The proofs: no undefined behaviour in the parsers, for inputs as each proof says.  Needs frama-c.
# usage: run.sh [NAME ...]
set -u
cd "$(dirname "$0")/../.." || exit 1
limit=${PROOF_SECONDS:-400} # of each
command -v frama-c >/dev/null || { echo "proof: frama-c is not installed (package frama-c-base)" >&2; exit 1; }

proofs=(
	"sctp sctp_heads" "sctp sctp_chunks" "sctp sctp_params" "sctp sctp_encoders" "sctp sctp_sacks"
	"sctp sctp_cookies" "wire session_messages" "wire ddp_headers" "wire mpa_encoder" "wire mpa_decoder"
	"wire rdmap_headers" "wire rdmap_terminates"
	"ipoib ipoib_addresses" "ipoib ipoib_options" "ipoib cm_messages"
	"uri uri_characters" "uri uri_schemes" "uri uri_names" "uri uri_long_names" "uri uri_lists"
	"uri uri_ports" "uri uri_options"
)
# Where a function says at which place something was found, each place goes on by itself.
declare -A options=([uri]="-eva-split-return full")

# What Eva says at the end: no alarm, and each assertion and precondition proven
prove() {
	local -a more

	read -ra more <<<"${options[$1]:-}"
	timeout "$limit" frama-c -machdep gcc_x86_64 \
		-cpp-extra-args="-Itests/proof/include -Itests/proof -Isrc -Iinclude -D_GNU_SOURCE \
			-include tests/proof/octets.h" \
		-eva -main "$2" -eva-precision 5 -eva-slevel 100000 -eva-auto-loop-unroll 3000 \
		"${more[@]}" \
		-eva-no-print -eva-no-show-progress "tests/proof/$1.c" 2>&1
}

one() { # FILE NAME
	local out
	# a part that is never reached, or calls what nobody declared: nothing is proven of it
	local unproven='stopping propagation|not terminat|NON TERMINATING|implicit-function-declaration'

	out=$(prove "$1" "$2")
	if grep -q '^  0 alarms generated' <<<"$out" && grep -q '^  100% of the logical' <<<"$out" &&
		! grep -qE "$unproven" <<<"$out"; then
		echo "ok $2"
	else
		echo "not ok $2"
		grep -A 1 -E "$unproven|alarms generated|Error|[1-9][0-9]* (unknown|invalid)|of the logical" <<<"$out" | sed 's/^/  /' | head -20
		return 1
	fi
}

failed=0 running=0
for p in "${proofs[@]}"; do
	[ $# -eq 0 ] || [[ " $* " == *" ${p#* } "* ]] || continue
	if [ "$running" = 2 ]; then # as many as there are cores on a small machine
		wait -n || failed=1
		running=1
	fi
	one "${p% *}" "${p#* }" &
	running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
	wait -n || failed=1
	running=$((running - 1))
done
exit $failed
