# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# Twenty megabytes each way, unchanged.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
reach 1 10.88.0.2 56
pings 1 10.88.0.2 2 56 || fail "no echo"
head -c 20971520 /dev/urandom >"$work/in"
guest_start sink 'nc -l -p 7000 >/tmp/in'
await 10 guest 'netstat -ltn | grep -q :7000' || fail "nobody listens"
host timeout 100 bash -c 'cat "$1" >/dev/tcp/10.88.0.2/7000' - "$work/in" || fail "sending"
guest_wait sink 60 || fail "receiving"
[ "$(guest 'sha256sum </tmp/in')" = "$(sha256sum <"$work/in")" ] || fail "changed on the way to Linux"
guest_start source 'nc -l -p 7001 </tmp/in'
await 10 guest 'netstat -ltn | grep -q :7001' || fail "nobody listens"
host timeout 100 bash -c 'cat </dev/tcp/10.88.0.2/7001 >"$1"' - "$work/out" || fail "fetching"
cmp "$work/in" "$work/out" || fail "changed on the way from Linux"
clean 1
detail "$(count 1 qp_again) packets repeated, $(count 1 conn_up) connections"
ended_well 1
