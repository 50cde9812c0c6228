#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The lab of tests/interop with another guest: a node of an InfiniBand subnet.  Same commands.
# LAB_SUITE: with the kernel of another suite of Debian, see tests/interop/suite.sh.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export LAB_CACHE=${LAB_CACHE:-$here/../interop/cache}
export LAB_INITRD=$LAB_CACHE${LAB_SUITE:+/suite-$LAB_SUITE}/ipoib/initramfs.cpio LAB_MTU=4200 LAB_ID=${LAB_ID:-ipoib}
case ${1-} in
build | packages) exec bash "$here/build.sh" "$1" ;;
*) exec "$here/../interop/lab.sh" "$@" ;;
esac
