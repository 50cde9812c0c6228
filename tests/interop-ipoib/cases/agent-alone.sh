# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: example-ib_accept
# examples/ib_accept.c passes a REQ of Linux: the agent without an interface.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
host_start agent "$(dirname "$sessctl")/example-ib_accept" 10.77.0.1 1 10.88.0.1
await 10 grep -q '^waiting' "$work/agent.out" || fail "it does not start"
linux_up
guest "ping -q -c 3 -s 3000 -W 2 10.88.0.1" || true # nobody answers echoes
await 20 grep -q ' octets on queue pair' "$work/agent.out" || fail "no packet came: $(cat "$work/agent.out")"
grep -q '^RX_REQ, LID 2' "$work/agent.out" || fail "no REQ of Linux: $(cat "$work/agent.out")"
host_wait agent || fail "it ends with an error"
