#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# librpma: remote memory written, flushed, read back and compared.  It has no TCP mode of its own.
# usage: rpma.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs gcc /usr/include/librpma.h
gcc -O1 -Wall -Wextra -o "$work/rpma" tests/programs/rpma.c -lrpma -libverbs >"$work/out" 2>&1 || {
	not_ok "librpma: it does not build" "$work/out"
	exit 1
}

for wire in ${WIRES:-tcp sctp}; do
	free_port
	status=0
	begin "$work/server" on "$wire" "$work/rpma" server "$port"
	on "$wire" "$work/rpma" client "$port" >"$work/client" 2>&1 || status=$?
	[ "$status" = 0 ] || stop_all
	[ ${#pids[@]} = 0 ] || wait "${pids[0]}" || status=$?
	pids=()
	if [ "$status" = 0 ] && grep -q 'there and back' "$work/client"; then
		ok "librpma, 16 MiB written, flushed and read back, $wire"
	else
		not_ok "librpma, 16 MiB written, flushed and read back, $wire" "$work"/{server,client}
	fi
done
exit "$failed"
