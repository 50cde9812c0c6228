#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# ddpsess in a CI job, whichever system it is: from a bundle, or built and installed from this repository,
# which needs root, or whoever may install packages and write to PREFIX.
# usage: setup.sh [PREFIX [BUNDLE]]	BUNDLE: a file or an address
set -eu
prefix=${1:-} bundle=${2:-}
if [ -n "$bundle" ]; then
	prefix=${prefix:-${RUNNER_TEMP:-$HOME}/ddpsess}
	mkdir -p "$prefix"
	case $bundle in
	*://*) if command -v curl >/dev/null; then curl -fsSL "$bundle"; else wget -qO- "$bundle"; fi ;;
	*) cat "$bundle" ;;
	esac | tar -xz -C "$prefix" --strip-components=1 || {
		echo "setup.sh: there is no bundle at '$bundle': make bundle makes one" >&2
		exit 1
	}
	"$prefix/bin/sessctl" --version
else
	prefix=${prefix:-/usr/local}
	cd "$(dirname "$0")/../.."
	make deps
	make -j2 install PREFIX="$prefix" >/dev/null
	"$prefix/bin/sessctl" run -- ibv_devices | grep -q ddp0
fi
# later steps of a GitHub job find it by its name
[ -z "${GITHUB_PATH:-}" ] || echo "$prefix/bin" >>"$GITHUB_PATH"
echo "ddpsess is in $prefix: $prefix/bin/sessctl run -- PROGRAM"
