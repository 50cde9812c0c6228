#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The packages alone in a new Debian 12, which is made with the mirror that apt has here: demo, rping
# over both wires, manuals, completion, dissectors, Python, what was built against -dev.
# usage: check.sh DIRECTORY-WITH-DEBS DIRECTORY	as root; DIRECTORY is made anew and removed
# shellcheck disable=SC2016 # what stands in single quotes is for others to expand
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/release/root.bash
. tests/release/root.bash
debs=$(realpath "$1")
bad=0
root_for "$2" release
trap 'rm -rf "$root"' EXIT

result() { # STATUS NAME
	if [ "$1" = 0 ]; then echo "ok $2"; else
		echo "not ok $2"
		tail -n 30 "$root.log"
		bad=1
	fi
}

inside() { # COMMAND: by a user who is not root
	chroot "$root" su -s /bin/bash -c "cd /tmp && PATH=/usr/bin:/bin; $1" nobody >"$root.log" 2>&1
}

# man-db and locales are for the manuals; the rest are programs that know nothing of the packages
rm -rf "$root"
mmdebstrap --quiet --variant=minbase --include=man-db,rdmacm-utils,tshark,bash-completion,gcc,libc6-dev,pkgconf,cmake,make \
	--aptopt='Apt::Install-Recommends "false"' \
	--customize-hook='mkdir "$1/debs"' --customize-hook="cp $debs/*.deb \"\$1/debs\"" \
	--customize-hook='rm -f "$1"/debs/*dbgsym*' \
	--customize-hook='cp /etc/resolv.conf "$1/etc"; chroot "$1" sh -c "apt-get install -y /debs/*.deb"' \
	bookworm "$root" - <<<"$sources" >"$root.log" 2>&1
result $? "a new Debian 12 with the packages alone"
[ $bad = 0 ] || exit 1
mkdir -p "$root/proc" "$root/dev/shm"
mount -t proc proc "$root/proc" 2>/dev/null && trap 'umount "$root/proc"; rm -rf "$root"' EXIT
cp -r examples python/examples/hello.py tools/demo.sh debian/tests/rping debian/tests/build "$root/tmp"
chmod -R a+rX "$root/tmp"

inside './demo.sh /usr/bin/sessctl'
result $? "demo"
inside 'mkdir r && cd r && AUTOPKGTEST_TMP=$PWD ../rping'
result $? "rping over TCP and SCTP"
inside 'python3 hello.py && python3 hello.py sctp://127.0.0.1:0 | grep "hello over RDMA"'
result $? "Python example"
for page in sessctl ddpsess ddpsess_api; do
	inside "man -P cat $page | grep -qi ddpsess"
	result $? "manual $page"
done
inside '. /usr/share/bash-completion/bash_completion; _completion_loader sessctl; complete -p sessctl'
result $? "completion"
inside 'sessctl conform --self sctp --case neg-enhanced --pcap c.pcap --pcap-all && tshark -r c.pcap -Y "rdma_setup.ird && ddp_sctp_session" | grep Session'
result $? "Wireshark finds the dissectors"
inside 'mkdir b && cd b && cp -r ../examples . && ../build'
result $? "programs build with pkg-config and CMake"
inside 'ldd /usr/bin/sessctl /usr/lib/*/libddpsess*.so*' && ! grep -q 'not found' "$root.log"
result $? "nothing is missing"
chroot "$root" sh -c 'apt-get purge -y sessctl "libddpsess*" python3-ddpsess ddpsess-doc' >"$root.log" 2>&1 &&
	[ -z "$(find "$root/usr" "$root/etc" -iname '*ddpsess*' ! -path '*/share/doc/*' | head -n 3)" ]
result $? "nothing is left when they are removed"
exit $bad
