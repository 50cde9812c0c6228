#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Valkey's own test of RDMA, which looks for the device below /sys and starts server and client.
# usage: SOURCES=FOLDER valkey.sh BUILD: the folder has a clone of the repository, built (docs/programs.md)
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
valkey=${SOURCES:-/nonexistent}/valkey
needs "$valkey/src/valkey-server" "$valkey/src/valkey-rdma.so" cc
/usr/bin/python3 -c 'import netifaces' 2>/dev/null || {
	echo "# skipped valkey.sh: there is no module netifaces"
	exit 0
}
for wire in ${WIRES:-tcp sctp}; do
	status=0
	DDPSESS_STATS=on on "$wire" /usr/bin/python3 "$valkey/tests/rdma/run.py" >"$work/out" 2>&1 || status=$?
	if [ "$status" = 0 ] && grep -q 'Valkey Over RDMA test in .*OK' "$work/out" &&
		grep -q 'messages sent: [1-9]' "$work/out"; then
		ok "Valkey over RDMA, its own test, $wire"
	else
		not_ok "Valkey over RDMA, its own test, $wire" "$work/out"
	fi
done
exit "$failed"
