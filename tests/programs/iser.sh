#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# iSCSI over RDMA (iSER): tgt's target, and qemu-img with libiscsi as its initiator.  An image is
# written and read back, and its digests compared; iSCSI over TCP next to it.
# usage: iser.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
PATH=$PATH:/usr/sbin
needs tgtd tgtadm qemu-img /usr/lib/x86_64-linux-gnu/libiscsi.so.7
export TGT_IPC_SOCKET=$work/tgt
target=iqn.2020-01.net.ddpsess:disk
name=iqn.2020-01.net.ddpsess:initiator
control=$((20000 + $$ % 10000))
patience=60
# tgtd takes no other port for iSER: what it says to "--iser port=" depends on errno, which it does not set
port=3260

admin() {
	timeout 10 tgtadm -C "$control" "$@" >>"$work/admin" 2>&1
}

# set_up DRIVER: one target with one disk, for this initiator.  The name is needed, too: an empty
# list of names is one that nobody is in.
set_up() {
	admin --lld "$1" --mode target --op new --tid 1 -T "$target" &&
		admin --lld "$1" --mode logicalunit --op new --tid 1 --lun 1 -b "$work/disk" &&
		admin --lld "$1" --mode target --op bind --tid 1 -I ALL &&
		admin --lld "$1" --mode target --op bind --tid 1 -Q "$name"
}

# libiscsi 1.19 has 256 KiB a request over iSER, and fails at more.
disk() { # TRANSPORT PORT
	local d=driver=raw,file.driver=blkdebug,file.max-transfer=262144
	d+=,file.image.driver=iscsi,file.image.transport=$1,file.image.portal=127.0.0.1:$2
	echo "$d,file.image.target=$target,file.image.lun=1,file.image.initiator-name=$name"
}

there_and_back() { # WIRE TRANSPORT PORT
	local d
	d=$(disk "$2" "$3")
	on "$1" qemu-img convert -n -f raw --target-image-opts "$work/in" "$d" &&
		on "$1" qemu-img convert --image-opts -O raw "$d" "$work/out"
}

try() { # WIRE
	local tgtd=(tgtd -f -C "$control" --iscsi "portal=127.0.0.1:$control")
	truncate -s 8M "$work/disk"
	: >"$work/admin"
	begin "$work/tgtd" on "$1" "${tgtd[@]}"
	until_true 20 timeout 5 tgtadm -C "$control" --mode sys --op show
	if [ "$1" = plain ]; then
		set_up iscsi && there_and_back plain tcp "$control" >"$work/client" 2>&1
	else
		set_up iser && there_and_back "$1" iser "$port" >"$work/client" 2>&1
	fi
}

end_target() { # SIGTERM does not end it, nor is it asked nicely while it has a target
	admin --lld "$1" --mode target --op delete --force --tid 1
	admin --mode sys --op delete
	wait "${pids[0]}"
	pids=()
}

for wire in ${WIRES:-tcp sctp plain}; do
	case=${wire/plain/"its own TCP"}
	driver=iser
	[ "$wire" != plain ] || driver=iscsi
	fill "$work/in"
	rm -f "$work"/{out,disk}
	if try "$wire" && cmp "$work/in" "$work/out" && cmp "$work/in" "$work/disk"; then
		ok "tgt and qemu-img over iSER, $case: $(sha256sum <"$work/out" | cut -c1-16)"
	else
		not_ok "tgt and qemu-img over iSER, $case" "$work"/{admin,tgtd,client}
	fi
	end_target "$driver"
done
exit "$failed"
