#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# IPoIB against Linux's ib_ipoib and ib_cm, in a guest: the cases of cases/*.sh, each from a fresh snapshot.
# usage: run.sh [--quick] [--list] [--keep] [--times=N] [--lanes=N] [PATTERN...], as tests/interop/run.sh
# Two lanes where there are two processors: most of the time a case waits for a timer of Linux.
here=$(cd "$(dirname "$0")" && pwd)
export INTEROP_CASES=$here/cases INTEROP_LAB=$here/lab.sh INTEROP_PROGRAMS=
exec "$here/../interop/run.sh" "--lanes=$(($(nproc) > 1 ? 2 : 1))" "$@"
