#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# libfabric's verbs provider, unmodified, over the drop-in.  One line a case.
# usage: libfabric.sh BUILD [ROUNDS [PATTERN]]
set -u
rounds=${2:-1} pattern=${3:-.}
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

info() {
	local fault="no iWARP device of that name"
	if "${load[@]}" fi_info -p verbs >"$work/out" 2>&1 && grep -q 'domain: ddp0' "$work/out" &&
		grep -q 'protocol: FI_PROTO_IWARP' "$work/out"; then
		fault=""
	fi
	report fi_info "$fault" "$work/out"
}

# The port is that of fi_pingpong's own TCP connection, for which it asks once.
pingpong() { # PROVIDER TYPE OPTION...
	local opts="-p $1 -e $2 ${*:3}" listen_first=1
	pair "fi_pingpong $opts" "fi_pingpong $opts -B @" "fi_pingpong $opts -P @ $addr"
}

info
addr=$(host_address)
if [ -z "$addr" ]; then
	# the provider binds to port 0 instead of the program's where the address is loopback
	echo "ok fi_pingpong # skipped: this host has loopback addresses only"
	finish
fi
more_lanes 1
for ((i = 0; i < rounds; i++)); do
	for DDPSESS_TRANSPORT in tcp sctp; do
		export DDPSESS_TRANSPORT
		pingpong verbs msg -I 20 -c
		pingpong "verbs;ofi_rxm" rdm -I 20 -c
		load=("$sessctl" run --mode soname --)
		pingpong verbs msg -I 5 -S 4096
		load=("$sessctl" run --)
	done
	# datagrams are the same over either, and none of an iWARP device's
	export DDPSESS_TRANSPORT=tcp DDPSESS_FACE=roce
	pingpong verbs dgram -I 20
	pingpong "verbs;ofi_rxd" rdm -I 20 -c
	unset DDPSESS_FACE
done
finish
