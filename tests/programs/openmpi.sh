#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Open MPI: what make check runs of it over both wires, and the same program on Open MPI's own TCP.
# usage: openmpi.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs mpicc.openmpi mpirun.openmpi
for wire in ${WIRES:-tcp sctp plain}; do
	[ "$wire" = plain ] || bash tests/verbs/mpi.sh "$build" 1 "over $wire" || failed=1
done
[[ " ${WIRES:-plain} " == *" plain "* ]] || exit "$failed"
mpicc.openmpi -o "$work/exchange" tests/verbs/mpi_exchange.c >"$work/out" 2>&1 || {
	not_ok "Open MPI: its program does not build" "$work/out"
	exit 1
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$work
for ranks in 2 4; do
	name="mpi exchange, $ranks ranks, its own TCP"
	if timeout -k 5 100 mpirun.openmpi --oversubscribe -n "$ranks" --mca pml ob1 --mca btl tcp,self \
		"$work/exchange" >"$work/out" 2>&1 && grep -q "all $ranks ranks agree" "$work/out"; then
		ok "$name"
	else
		not_ok "$name" "$work/out"
	fi
done
exit "$failed"
