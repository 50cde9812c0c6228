#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# IPoIB against Linux's ib_ipoib and ib_cm, in a guest: cases/*.sh, each from a fresh snapshot.
# usage: run.sh [--quick] [--list] [--keep] [--times=N] [PATTERN...], as tests/interop/run.sh
here=$(cd "$(dirname "$0")" && pwd)
export INTEROP_CASES=$here/cases INTEROP_LAB=$here/lab.sh INTEROP_PROGRAMS=
exec "$here/../interop/run.sh" "$@"
