# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Whole sessions on our kernel backend, in the guest, where the kernel has SCTP: lists of addresses,
# paths and the primary one, and a session that stalls.
# needs: e2e
guest_install "$build/e2e"
# Criterion starts its own file again, which must not be the dynamic linker.
run="LD_LIBRARY_PATH=/opt/lib timeout 160 /opt/libexec/e2e --jobs 1 --color=never --verbose"
LAB_LIMIT=170 guest "$run --filter '*_kernel/*'" >"$work/e2e" ||
	fail "$(grep -a -m 1 '^\[FAIL\]\|^\[----\]' "$work/e2e")"
passed=$(grep -ac '^\[PASS\]' "$work/e2e") || true
all=$(cat "${lab%/*}"/../e2e/*_test.c | grep -c '^Test([a-z0-9]*_kernel,')
[ "$passed" = "$all" ] || fail "$passed of $all passed"
detail "$passed tests passed"
