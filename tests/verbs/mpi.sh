#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An Open MPI program over libfabric's verbs provider and the drop-in.  One line a case.
# usage: mpi.sh BUILD [ROUNDS [PATTERN]]
set -u
rounds=${2:-1} pattern=${3:-.}
# shellcheck source=tests/verbs/lib.sh
. "$(dirname "$0")/lib.sh"

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
	echo "ok mpi # skipped: openmpi-bin and libopenmpi-dev are not installed"
	exit 0
fi
if [ -z "$(host_address)" ]; then
	# libfabric's verbs provider binds to a port of its own choice where the address is loopback
	echo "ok mpi # skipped: this host has loopback addresses only"
	exit 0
fi
mpicc -Wall -Wextra -Werror -o "$work/exchange" "$(dirname "$0")/mpi_exchange.c" || exit 1
failed=0
export FI_PROVIDER=verbs DDPSESS_STATS=on
# mpirun wants this twice where it runs as root, in containers mostly
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Its files go where ours go, and its name is short enough for a socket.
export TMPDIR=$work

# Every rank must have moved its messages through the drop-in.
exchange() { # RANKS
	local name="mpi exchange, $1 ranks, over $DDPSESS_TRANSPORT" moved
	[[ $name =~ $pattern ]] || return 0
	if timeout -k 5 100 mpirun --oversubscribe -n "$1" --mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include "verbs;ofi_rxm" \
		"${load[@]}" "$work/exchange" >"$work/out" 2>&1 &&
		grep -q "all $1 ranks agree" "$work/out" &&
		moved=$(grep -c 'messages sent: [1-9]' "$work/out") && [ "$moved" = "$1" ]; then
		echo "ok $name"
	else
		failed=1
		echo "not ok $name: $(tail -n 5 "$work/out" | tr '\n' ' ')"
	fi
}

for ((i = 0; i < rounds; i++)); do
	for DDPSESS_TRANSPORT in ${WIRES:-tcp sctp}; do
		export DDPSESS_TRANSPORT
		exchange 2
		exchange 4
	done
done
exit "$failed"
