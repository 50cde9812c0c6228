#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# DAPL's own test, dtest, through its provider for rdma_cm.  It has no TCP mode of its own.
# usage: dapl.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs dtest
export DAT_OVERRIDE=$work/dat.conf
echo 'ddp u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "127.0.0.1 0" ""' >"$work/dat.conf"

for wire in ${WIRES:-tcp sctp}; do
	status=0
	begin "$work/server" on "$wire" dtest -P ddp -b 65536 -B 200
	# its port is fixed, and its client does not ask twice
	until_true 20 grep -q 'Server waiting for connect' "$work/server"
	on "$wire" dtest -P ddp -b 65536 -B 200 -h 127.0.0.1 >"$work/client" 2>&1 || status=$?
	wait "${pids[0]}" || status=$?
	pids=()
	if [ "$status" = 0 ] && grep -q PASSED "$work/client" && grep -q PASSED "$work/server"; then
		ok "DAPL dtest, $wire"
	else
		not_ok "DAPL dtest, $wire" "$work"/{server,client}
	fi
done
exit "$failed"
