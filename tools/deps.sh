#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Name the Debian packages that are missing and the one line that installs them; --install does it.
# usage: deps.sh [--install] build|check|fast|bench|fuzz|ib|interop|programs|coverage|proof|lint|reference|deb|rpm|bundle|bundled|release|autopkgtest ...
set -eu

install=
if [ "${1:-}" = --install ]; then
	install=1
	shift
fi
want=
for group in "$@"; do
	case $group in
	build) want="$want gcc make pkg-config libisal-dev libsctp-dev libjansson-dev
		nettle-dev libgnutls28-dev uthash-dev systemtap-sdt-dev libibverbs-dev librdmacm-dev libibumad-dev scdoc python3" ;;
	check) want="$want libcriterion-dev libusrsctp-dev libssl-dev gnutls-bin openssl spin iproute2 nftables binutils ibverbs-utils rdmacm-utils
		perftest qperf fio python3-pyverbs libfabric-bin ucx-utils openmpi-bin libopenmpi-dev iperf3 iputils-ping udhcpc dnsmasq-base stunnel4
		valgrind abigail-tools g++ python3 python3-yaml python3-jsonschema libxml2-utils jq tshark mypy doxygen" ;;
	bench) want="$want libusrsctp-dev gnuplot-nox jq libfabric-dev libfabric-bin ucx-utils sockperf" ;;
	fast) want="$want libcriterion-dev libusrsctp-dev libssl-dev" ;;
	reference) want="$want doxygen" ;;
	deb) want="$want build-essential debhelper dpkg-dev dh-python python3 fakeroot lintian blhc libibverbs1 librdmacm1 libipsec-mb-dev" ;;
	cross) want="$want musl-tools gcc-aarch64-linux-gnu gcc-s390x-linux-gnu gcc-i686-linux-gnu
		libc6-dev-arm64-cross libc6-dev-s390x-cross libc6-dev-i386-cross qemu-user" ;;
	rpm) want="$want rpm python3" ;;
	bundle) want="$want gcc-aarch64-linux-gnu libc6-dev-arm64-cross debian-archive-keyring" ;;
	bundled) want="$want rdmacm-utils ibverbs-utils qemu-user umoci skopeo curl python3-venv python3-pip python3-yaml" ;;
	release) want="$want mmdebstrap apt-utils" ;;
	autopkgtest) want="$want mmdebstrap apt-utils autopkgtest" ;;
	fuzz) want="$want clang libclang-rt-dev llvm" ;;
	ib) want="$want ibsim-utils libumad2sim0 opensm infiniband-diags" ;;
	interop) want="$want qemu-system-x86 qemu-utils busybox-static kmod cpio iproute2 socat xz-utils
		gcc make tcpdump tshark ethtool procps rdmacm-utils ibverbs-utils ibverbs-providers
		perftest qperf lksctp-tools librdmacm-dev libibverbs-dev libc6-dev" ;;
	programs) want="$want qemu-system-x86 qemu-utils qemu-block-extra tgt python3 libgloo-dev g++ librpma-dev dapl2-utils
		openmpi-bin libopenmpi-dev mpich libmpich-dev ceph-mon ceph-osd ceph-common ucx-utils
		tshark rdmacm-utils perftest" ;;
	coverage) want="$want clang-19 llvm-19 libclang-rt-19-dev python3" ;;
	proof) want="$want frama-c-base" ;;
	lint) want="$want clang-format clang-tidy clang cppcheck shellcheck libcriterion-dev libusrsctp-dev openmpi-bin
		libopenmpi-dev libfabric-dev librpma-dev" ;;
	*) echo "deps.sh: unknown group: $group" >&2; exit 2 ;;
	esac
done

# also what another one provides: Debian 13 has librdmacm1t64 for librdmacm1
have=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}, ${Provides}\n' 2>/dev/null | sed -n 's/^ii *//p' |
	sed 's/([^)]*)//g' | tr -d ' ' | tr ',' '\n')
missing=
for p in $want; do
	# x86-64 alone has it
	[ "$p" != libipsec-mb-dev ] || [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || continue
	printf '%s\n' "$have" | grep -qxF -- "$p" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

line="apt-get update && apt-get install -y --no-install-recommends$missing"
if ! command -v apt-get >/dev/null; then
	echo "These packages (Debian's names) are missing:$missing" >&2
	exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
	sudo=sudo
	sudo -n true 2>/dev/null || install=
fi
if [ -z "$install" ]; then
	echo "Packages are missing.  This installs them:" >&2
	echo "  ${sudo:+sudo }sh -c '$line'" >&2
	exit 1
fi
echo "Installing missing packages:$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086 # a list of words
$sudo env DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends $missing >/dev/null
