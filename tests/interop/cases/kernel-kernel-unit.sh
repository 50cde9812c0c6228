# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# The unit tests of our kernel backend, in the guest, where the kernel has SCTP: over IP, and in UDP
# with our engine at the other end.  None may be skipped but the one for a kernel without SCTP.
# quick
# needs: unit
sctp_over_udp
guest_install "$build/unit"
# Criterion starts its own file again, which must not be the dynamic linker.
run="LD_LIBRARY_PATH=/opt/lib timeout 100 /opt/libexec/unit --jobs 1 --color=never --verbose"
LAB_LIMIT=110 guest "$run --filter 'sd_kernel/*'" >"$work/unit" ||
	fail "$(grep -a -m 1 '^\[FAIL\]' "$work/unit")"
passed=$(grep -ac '^\[PASS\]' "$work/unit") || true
skipped=$(grep -ac '^\[SKIP\] sd_kernel::' "$work/unit") || true
all=$(grep -c '^Test(sd_kernel,' "${lab%/*}/../unit/sctp_ddp/sd_kernel_test.c")
[ $((passed + skipped)) = "$all" ] || fail "$passed of $all passed"
[ "$skipped" = 1 ] || fail "$skipped skipped: $(grep -a '^\[SKIP\] sd_kernel::' "$work/unit" | tr '\n' ' ')"
detail "$passed tests passed"
