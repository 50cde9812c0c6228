# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Nobody asks for CRCs.
# needs: sessctl
siw vanilla
listen "tcp://$HOST:0" --count 1 --crc off
# It does not speak sessctl's protocol, so only the set-up is of interest here.
guest "timeout 20 rping -c -a $HOST -p $port -C 1" >/dev/null || true
await 10 grep -q '"established"' "$work/listen.out" ||
	fail "not established: $(tail -n 1 "$work/listen.out" "$work/listen.err")"
expect "$work/listen.out" established transport=tcp role=responder enhanced=true crc=false
