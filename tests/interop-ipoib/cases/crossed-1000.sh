# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl ipoib-starts
# limit: 400
# A thousand starts of nodes of ours towards Linux, ten simultaneously: both ends ask for a connection.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
up 1
linux_up
for ((n = 20; n < 70; n++)); do
	host ip addr add "10.77.0.$n/24" dev tap0
done
host "$build/ipoib-starts" 10.77.0 20 50 1 10.88.0 2 1000 >"$work/starts" 2>&1 ||
	fail "$(tail -n 1 "$work/starts")"
detail "$(tail -n 1 "$work/starts")"
clean 1
ended_well 1
