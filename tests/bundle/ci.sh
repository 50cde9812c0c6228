#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/ci.md and the files that it names: the commands of the page, the steps of the action and of GitLab's
# template, the wheel in a new environment without a network, the image and the pod with the rights that it gives.
# usage: ci.sh DIRECTORY-WITH-BUNDLES
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
export LC_ALL=C
unset MAKEFLAGS MAKELEVEL
from=$(realpath "$1") top=$PWD
version=$(sed -n 's/.*VERSION_STRING "\(.*\)"/\1/p' include/ddpsess/version.h)
bundle=$from/ddpsess-$version-linux-$(uname -m).tar.gz
image=$from/ddpsess-$version-oci.tar
page() {
	PYTHONDONTWRITEBYTECODE=1 python3 tests/bundle/page.py "$@"
}

# shows NAME SHELL FILE: what is in FILE, as a job in a folder with blanks, ends with the device
shows() {
	rm -rf "$work/a job"
	mkdir -p "$work/a job/home" "$work/a job/temp"
	printf '#!/bin/sh\nibv_devinfo\n' >"$work/a job/your-rdma-test"
	chmod +x "$work/a job/your-rdma-test"
	(cd "$work/a job" && HOME="$PWD/home" timeout 200 "$2" -eu "$3") >"$work/log" 2>&1 && grep -q 'hca_id:.*ddp0' "$work/log"
	result $? "$1" "$work/log"
}

page block sh 0 | sed -n 's/ *#.*//p' | while read -r line; do
	make -n "${line#make }" >/dev/null
	result $? "the page's $line is a target"
done
page block sh 1 >"$work/one"
export DDPSESS=file://$bundle
shows "the two lines of the page" sh "$work/one"

export ACTION=$top/containers/action GITHUB_PATH=$work/path RUNNER_TEMP="$work/a job/temp"
page github >"$work/steps"
for at in "$bundle" "file://$bundle"; do
	: >"$GITHUB_PATH"
	export BUNDLE=$at
	shows "the steps of the GitHub job, with ${at%%/*}/..." bash "$work/steps"
done
BUNDLE=$work/nothing
! bash -eu "$work/steps" >"$work/log" 2>&1 && grep -q 'there is no bundle at' "$work/log"
result $? "the action says so where no bundle is" "$work/log"

page gitlab >"$work/steps"
for at in "$bundle" "file://$bundle"; do
	export DDPSESS_BUNDLE=$at
	shows "the steps of the GitLab job, with ${at%%/*}/..." sh "$work/steps"
done

# The wheel: pip takes nothing from the network.
WHEEL=$(echo "$from"/ddpsess-"$version"-*_"$(uname -m)".whl)
export WHEEL PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
page block sh 2 >"$work/steps"
echo "rdma/bin/sessctl --version; cd / && \"\$OLDPWD/rdma/bin/python\" $top/python/examples/hello.py" >>"$work/steps"
shows "the lines with the wheel" sh "$work/steps"
grep -q 'hello over RDMA' "$work/log"
result $? "the package of the wheel brings its own library" "$work/log"

# The image
for arch in amd64 arm64; do
	[ "$(skopeo inspect --override-arch $arch "oci-archive:$image" 2>"$work/log" | grep -o '"Architecture": ".*"')" = "\"Architecture\": \"$arch\"" ] &&
		skopeo copy -q --override-arch $arch "oci-archive:$image" "oci:$work/oci-$arch:x" >"$work/log" 2>&1 &&
		umoci unpack --rootless --image "$work/oci-$arch:x" "$work/$arch" >"$work/log" 2>&1
	result $? "skopeo and umoci take the image for $arch" "$work/log"
done
cp "$image" "$work/first.tar"
tools/bundle/image.sh "$1" >"$work/log" 2>&1 && cmp "$image" "$work/first.tar"
result $? "the image is the same octets when it is made again" "$work/log"
qemu-aarch64 -L "$work/arm64/rootfs" "$work/arm64/rootfs/ddpsess/bin/sessctl" --version | grep -q "$version"
result $? "sessctl of the image for arm64 begins"
host=amd64
[ "$(uname -m)" = x86_64 ] || host=arm64
rootfs=$work/$host/rootfs
[ "$(find "$rootfs" -type f | grep -cvE '/(ddpsess|lib|lib64|usr/share/doc)/|/bin/copy$')" = 0 ]
result $? "there is nothing in it but the bundle, libc and copy"
mkdir -p "$work/app/opt" && cp -r "$rootfs/ddpsess" "$work/app/opt/ddpsess"
read -r -a entry < <(page block dockerfile 0 | sed -n 's/^ENTRYPOINT //p' | tr -d '[],"')
page block dockerfile 0 | grep -q '^COPY .* /ddpsess /opt/ddpsess$' && "$work/app${entry[0]}" "${entry[@]:1}" ibv_devices | grep -q ddp0
result $? "another image takes the bundle from it"

if [ "$(id -u)" != 0 ]; then
	echo "ok the image and the pod run # skipped: only root can change the root folder"
	exit
fi
chmod a+x "$work"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs)
chroot --userspec 65534:65534 "$rootfs" /ddpsess/bin/sessctl conform --self sctp --case 'neg-*' >"$work/log" 2>&1
result $? "sessctl of the image runs with nothing else" "$work/log"

# The pod: each container in a mount namespace of its own, its root folder read-only
mkdir -m 777 "$work/volume" "$work/tmp"
mkdir "$rootfs/to"
init=$(page pod init) && containers=$(page pod containers) && [ "$(wc -l <<<"$containers")" = 3 ]
result $? "the pod asks for no right"
# shellcheck disable=SC2016,SC2086 # for that shell; words are meant
unshare -m --propagation private sh -ec 'mount --bind "$1" "$1"; mount --bind "$2" "$1/to"; mount -o remount,bind,ro "$1"
	root=$1; shift 2; exec chroot --userspec 65534:65534 "$root" "$@"' sh "$rootfs" "$work/volume" $init >"$work/log" 2>&1
status=$?
[ $status = 0 ] && diff -r "$rootfs/ddpsess" "$work/volume/ddpsess"
result $? "its init container copies the bundle" "$work/log"
chroot --userspec 65534:65534 "$rootfs" /bin/copy /ddpsess /to/none >"$work/log" 2>&1
[ $? = 1 ] && grep -q "'/to/none': Permission denied" "$work/log"
result $? "copy says where it may not write" "$work/log"
chroot "$rootfs" /bin/copy /ddpsess/ /slash >"$work/log" 2>&1 && diff -r "$rootfs/ddpsess" "$rootfs/slash"
result $? "copy takes a folder with a slash behind it" "$work/log"
rm -rf "$rootfs/slash" "$rootfs"/slash*
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
container() { # LINE
	local words
	eval "words=($(sed -n "$1p" <<<"${containers//7174/$port}"))"
	# shellcheck disable=SC2016 # for that shell
	unshare -m --propagation private sh -ec 'mount -t tmpfs none /opt; mkdir /opt/ddpsess
		mount --bind "$1/volume/ddpsess" /opt/ddpsess; mount -o remount,bind,ro /opt/ddpsess
		mount --bind "$1/tmp" /tmp; mount -o remount,bind,ro /; shift; exec "$@"' sh "$work" timeout 60 "${nobody[@]}" "${words[@]}"
}
container 1 >"$work/server" 2>&1 &
server=$!
container 2 >"$work/client" 2>&1
client=$?
wait $server
server=$?
[ $client = 0 ] && [ $server = 0 ] && [ "$(grep -c 'ping data' "$work/client")" = 20 ]
result $? "two containers of the pod talk ($client, $server)" "$work/client"
container 3 >"$work/log" 2>&1 && grep -q 'hca_id:.*ddp0' "$work/log"
result $? "and one sees the device" "$work/log"
