#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# debian/tests as Debian runs them: autopkgtest, with the packages that were built, in a new Debian 12 that
# has nothing else.  One line a test.
# usage: autopkgtest.sh DIRECTORY-WITH-DEBS DIRECTORY	as root; DIRECTORY is made anew and removed
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/release/root.bash
. tests/release/root.bash
debs=$(realpath "$1")
root_for "$2" autopkgtest
clean() {
	umount "$root/proc" 2>/dev/null
	rm -rf "$root" "$root.out" "$root.source"
}
trap clean EXIT
clean
mmdebstrap --quiet --variant=minbase --include=dpkg-dev,procps,apt-utils \
	--aptopt='Apt::Install-Recommends "false"' bookworm "$root" - <<<"$sources" >"$root.log" 2>&1 || {
	echo "not ok a new Debian 12"
	tail -n 30 "$root.log"
	exit 1
}
cp /etc/resolv.conf "$root/etc"
mount -t proc proc "$root/proc"

# The source package's files are what is committed.
mkdir -p "$root.source"
git archive HEAD | tar -x -C "$root.source"
for deb in "$debs"/*.deb; do
	case $deb in *-dbgsym_*) continue ;; esac
	set -- "$@" "$deb"
done
shift 2
autopkgtest --output-dir "$root.out" --setup-commands 'apt-get update' "$@" "$root.source" \
	-- chroot "$root" >"$root.log" 2>&1
status=$?
# TEST PASS|FAIL|SKIP ...
sed -E 's/^([^ ]+) +PASS.*/ok autopkgtest \1/; t; s/^/not ok autopkgtest /' "$root.out/summary"
want=$(grep -cE '^(Test-Command|Tests):' debian/tests/control)
have=$(grep -c ' PASS' "$root.out/summary")
[ "$status" = 0 ] && [ "$have" = "$want" ] && exit
echo "not ok autopkgtest: status $status, $have of $want tests passed"
tail -n 60 "$root.log"
exit 1
