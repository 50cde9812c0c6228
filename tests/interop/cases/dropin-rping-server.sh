# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified rping here on our verbs library serves siw's; data checked (-V).
# needs: libddpsess-verbs.so
verbs_called "$PORT" "rping -c -a $HOST -p $PORT -S 65000 -C 10 -V" \
	rping -s -a "$HOST" -p "$PORT" -S 65000 -C 10 -V || fail "rping -c: $(tail -n 1 "$work/there")"
