# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified rping here on our verbs library, as client of siw's; data checked (-V).
# quick
# needs: libddpsess-verbs.so
verbs_calls "$PORT" "rping -s -a $GUEST -p $PORT -S 65000 -V" \
	rping -c -a "$GUEST" -p "$PORT" -S 65000 -C 10 -V
