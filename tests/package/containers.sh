#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The commands of docs/containers.md and the steps of containers/Dockerfile, in a fresh clone.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
result() { # STATUS NAME
	if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2"; fi
}

# What is here now and not the last commit: a clone has no build directory.
here() { # DIRECTORY
	git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$1"
}

mkdir "$work/here" "$work/ci"
here "$work/here"
git -C "$work/here" init -q
git -C "$work/here" add -A
git -C "$work/here" -c user.name=t -c user.email=t@t commit -qm t

# The three lines, as they are.
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n '/^```sh$/,/^```$/p' docs/containers.md | sed '1d;$d' >"$work/lines"
[ "$(wc -l <"$work/lines")" = 3 ]
result $? "the snippet has three lines"
(
	cd "$work/ci" || exit 1
	export DDPSESS=file://$work/here PREFIX=$work/prefix PATH=$work/prefix/bin:$PATH
	unset MAKEFLAGS MAKELEVEL
	set -e
	# shellcheck disable=SC1091
	. "$work/lines"
) >"$work/log" 2>&1 && grep -q 'hca_id:.*ddp0' "$work/log"
result $? "the snippet shows the device" || tail -n 20 "$work/log"

# CI systems and images run the same.
while read -r line; do
	case $line in sessctl*) continue ;; esac
	[ "$(grep -cF -- "$line" docs/containers.md)" = 3 ]
	result $? "each CI system runs: ${line%% \"*}"
done <"$work/lines"

# The steps of the build stage, with another root.
sed -n '/ AS build$/,/^$/s/^RUN //p' containers/Dockerfile | sed "s|/out|$work/out|" >"$work/steps"
(
	cd "$work/ci/ddpsess" || exit 1
	unset MAKEFLAGS MAKELEVEL PREFIX
	set -e
	# shellcheck disable=SC1091
	. "$work/steps"
) >"$work/log" 2>&1
result $? "the build stage's steps run" || tail -n 20 "$work/log"

# What the second stage copies must find all its libraries among the packages that it installs.
needed=$(find "$work/out/usr/local" -type f \( -name '*.so*' -o -name sessctl \) -exec readelf -d {} + 2>/dev/null |
	sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
for lib in $needed; do
	case $lib in libc.so.6 | libibverbs.so.1 | ld-linux*) continue ;; esac
	package=$(dpkg -S "*/$lib" 2>/dev/null | head -n 1 | cut -d: -f1)
	grep -q "install.* $package\b" containers/Dockerfile
	result $? "the image has ${package:-no package} for $lib"
	grep -q "^RUN.* $package\b" docs/containers.md
	result $? "the documentation names ${package:-no package} for $lib"
done
LD_PRELOAD=$work/out/usr/local/lib/libddpsess-verbs.so timeout 20 ibv_devices | grep -q ddp0
result $? "the environment of the image shows the device"
