# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified rping here on our verbs library serves siw's; data checked (-V).
# needs: libddpsess-verbs.so
verbs_start rping -s -a "$HOST" -p "$PORT" -S 65000 -C 10 -V
host_listens "$PORT"
guest "timeout 30 rping -c -a $HOST -p $PORT -S 65000 -C 10 -V" >"$work/there" ||
	fail "rping -c: $(tail -n 1 "$work/there")"
