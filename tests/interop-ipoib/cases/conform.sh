# shellcheck shell=bash disable=SC2016,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# needs: sessctl
# limit: 420
# Every case of sessctl ipoib conform against Linux: what is not as it should be is in the profile.
# Each counts as a case.
# shellcheck source=/dev/null
source "$INTEROP_CASES/../lib.sh"
conform
