#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a newcomer does in the first hour, in new roots of Debian 12 and 13: the commands of README, the packages,
# every block of the pages for newcomers; as root, and as a user who has no sudo; hints are followed; in a
# folder with blanks, with umask 077; and once more without a network.  One line for each step, with its seconds.
# What is downloaded is kept.
# usage: run.sh DIRECTORY [SUITE/root|SUITE/user ...]	CHECK=yes: make check, too, which takes long
# shellcheck disable=SC2016 # what stands in single quotes is for other shells
set -u
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "$1"
at=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- bookworm/root bookworm/user trixie/root trixie/user
home="/home/new comer" bad=0 offline=
pages=(README.md docs/tutorial.md docs/guides/*.md docs/containers.md docs/verbs.md docs/faults.md docs/check.md)

# inside ID COMMAND...: in the root, with no file system of this one; without a network if $offline says so
inside() {
	timeout -k 5 "${LIMIT:-5400}" unshare -mpf $offline --propagation private sh -euc '
		root=$1 id=$2 archives=$3
		shift 3
		[ ! -e /sys/class/net/lo ] || ip link set lo up 2>/dev/null || :
		mount --bind "$root" "$root"
		cd "$root"
		mount --rbind /dev dev
		mount -t proc proc proc
		mount --bind "$archives" var/cache/apt/archives
		mkdir -p .old
		pivot_root . .old
		umount -l /.old
		cd /
		exec setpriv --reuid "$id" --regid "$id" --clear-groups env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			DEBIAN_FRONTEND=noninteractive HOME="/home/new comer" sh -euc "umask 077; cd \"\$HOME/ddpsess\" && $*"' \
		inside "$at/$suite" "$1" "$at/archives-$suite" "$2"
}

# step NAME COMMAND: by $id; what a hint says is done by root, and the command again
step() {
	local name=$1 command=$2 began=$SECONDS status hints=0 hint log="$at/$suite-$who-${1//[ \/]/_}$offline.log"
	while :; do
		inside "$id" "$command" >"$log" 2>&1 </dev/null
		status=$?
		hint=$(sed -nE "s/^ *(sudo )?sh -c '(.*)'\$/\2/p" "$log" | tail -n 1)
		{ [ $status != 0 ] && [ -n "$hint" ] && [ $hints -lt 5 ]; } || break
		hints=$((hints + 1))
		inside 0 "$hint" >"$log.hint" 2>&1 </dev/null || { tail -n 5 "$log.hint"; break; }
	done
	printf '%s %-9s %-4s %-34s %5d s%s%s\n' "$([ $status = 0 ] && echo "ok    " || echo "not ok")" "$suite" "$who" "$name" \
		$((SECONDS - began)) "$([ $hints = 0 ] || echo ", after $hints hints")" "${offline:+, without a network}"
	[ $status != 0 ] || return 0
	bad=1
	tail -n "${LINES_OF_LOG:-30}" "$log" | sed 's/^/	/'
	return 1
}

pages() {
	local page packages
	for page in "${pages[@]}"; do
		# what the page names to be installed
		packages=$(sed -n 's/.*`apt-get install \([a-z0-9 +.-]*\)`.*/\1/p' "$page" | tr '\n' ' ')
		[ -z "$packages" ] || [ -n "$offline" ] || inside 0 "apt-get install -y --no-install-recommends $packages" >"$at/log" 2>&1 ||
			{ echo "not ok $suite: $page names packages that are not there: $packages" && bad=1; }
		step "$page" "python3 tests/package/commands.py /usr tests/package/commands.tsv $page"
	done
}

for flow; do
	suite=${flow%/*} who=${flow#*/} id=0 offline=
	[ "$who" = root ] || id=1000
	tests/firsthour/root.sh "$suite" "$at" || { bad=1; continue; }
	root=$at/$suite
	mkdir -p "$root$home"
	echo "newcomer:x:1000:1000::$home:/bin/sh" >>"$root/etc/passwd"
	echo "newcomer:x:1000:" >>"$root/etc/group"
	git clone -q --no-hardlinks . "$root$home/ddpsess"
	chown -R $id:$id "$root$home"
	chmod 755 "$root$home"
	if step "make demo" "make demo" && grep -A 3 'warning:' "$at/$suite-$who-make_demo.log"; then
		echo "not ok $suite: the compiler warns"
		bad=1
	fi
	[ -z "${CHECK:-}" ] || step "make check" "make check"
	if step "make deb" "make deb"; then
		inside 0 "apt-get update -qq; apt-get install -y --no-install-recommends ./build/deb/*.deb iproute2" >"$at/log" 2>&1
		status=$?
		[ $status = 0 ] || { bad=1; tail -n 20 "$at/log"; }
		printf '%s %-9s %-4s packages are installed\n' "$([ $status = 0 ] && echo "ok    " || echo "not ok")" "$suite" "$who"
		pages
	fi
	offline=-n
	step "make demo" "rm -rf build/opt && make demo"
	pages
	rm -rf "${root:?}"
done
exit $bad
