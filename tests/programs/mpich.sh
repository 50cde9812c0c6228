#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# MPICH through UCX, by datagrams (ud_verbs) and by sessions (rc_verbs): an exchange whose results are
# known, and UCX's own TCP next to it.  Datagrams go over UDP, whatever the wire of sessions is.
# usage: mpich.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs mpicc.mpich mpirun.mpich
mpicc.mpich -o "$work/exchange" tests/verbs/mpi_exchange.c >"$work/out" 2>&1 || {
	not_ok "MPICH: its program does not build" "$work/out"
	exit 1
}
export TMPDIR=$work

exchange() { # NAME TRANSPORTS COMMAND...
	if UCX_TLS=$2 timeout -k 5 100 mpirun.mpich -n 2 "${@:3}" "$work/exchange" >"$work/out" 2>&1 &&
		grep -q 'all 2 ranks agree' "$work/out"; then
		ok "MPICH, 2 ranks, $1"
	else
		not_ok "MPICH, 2 ranks, $1" "$work/out"
	fi
}

UCX_NET_DEVICES=ddp0:1 exchange "UCX's ud_verbs" ud_verbs,self "$sessctl" run --face roce --
for wire in tcp sctp; do # its queue pairs are also their own peers
	UCX_NET_DEVICES=ddp0:1 exchange "UCX's rc_verbs over $wire" rc_verbs,ud_verbs \
		"$sessctl" run --transport "$wire" --face roce --
done
exchange "UCX's own TCP" tcp,self
exit "$failed"
