#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Build and install ddpsess in a CI job, whichever system it is, and see that a program finds the
# device.  As root, or whoever may install packages and write to PREFIX.
# usage: setup.sh [PREFIX]
set -eu
prefix=${1:-/usr/local}
cd "$(dirname "$0")/../.."
make deps
make -j2 install PREFIX="$prefix" >/dev/null
"$prefix/bin/sessctl" run -- ibv_devices | grep -q ddp0
# later steps of a GitHub job find it by its name
[ -z "${GITHUB_PATH:-}" ] || echo "$prefix/bin" >>"$GITHUB_PATH"
echo "ddpsess is in $prefix: $prefix/bin/sessctl run -- PROGRAM"
