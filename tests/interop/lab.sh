#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The interop lab: a Linux guest in QEMU with soft-iWARP and kernel SCTP, see README.md.
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
cache=$here/cache
id=${LAB_ID:-main}
# One namespace per checkout and lab; the tap lives inside it.
ns=ddpsess-$(cksum <<<"$here" | cut -d ' ' -f 1)-$id
run=$cache/run/$id
accel=${LAB_ACCEL:-tcg,thread=multi,tb-size=128}

usage() {
	cat >&2 <<-END
		usage: lab.sh build            make the guest (installs packages)
		       lab.sh up | down        start, end; LAB_ID=name for a second one
		       lab.sh status
		       lab.sh run 'COMMAND'    in the guest; LAB_LIMIT=seconds, 60 if not set
		       lab.sh push FILE GUESTFILE | pull GUESTFILE FILE
		       lab.sh save | reset     snapshot; go back to it (up takes the first one);
		                               both take a name, to have several
		       lab.sh ns COMMAND...    on the host, in the lab's network
		       lab.sh console          the guest's serial line, Ctrl-C leaves
	END
	exit 2
}

die() {
	echo "lab: $*" >&2
	exit 1
}

# The guest's process, and only if it is this lab's.
pid() {
	local p
	p=$(cat "$run/qemu.pid" 2>/dev/null) && [ -n "$p" ] &&
		tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -qF -- "-name $ns " && echo "$p"
}

down() {
	local p i
	if p=$(pid); then
		kill "$p"
		for ((i = 0; i < 50; i++)); do
			kill -0 "$p" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$p" 2>/dev/null
	fi
	! [ -e "/run/netns/$ns" ] || ip netns del "$ns"
	rm -rf "$run"
}

network() {
	ip netns add "$ns" &&
		ip -n "$ns" link set lo up &&
		ip -n "$ns" tuntap add dev tap0 mode tap &&
		ip -n "$ns" addr add 10.77.0.1/24 dev tap0 &&
		ip -n "$ns" addr add fd77::1/64 dev tap0 nodad &&
		ip -n "$ns" link set tap0 mtu "${LAB_MTU:-1500}" up
}

# All in the namespace; offloads off, so that captures show what the peer saw.
start_qemu() {
	local off=csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off
	off+=,guest_ufo=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off
	# Short relative paths: a socket's is limited to 108 octets.
	cd "$run" && ip netns exec "$ns" qemu-system-x86_64 -name "$ns" -daemonize \
		-accel "$accel" -cpu max -smp 2 -m 256 \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$cache/kernel/boot/vmlinuz-$(cat "$cache/kver")" \
		-initrd "$cache/initramfs.cpio" \
		-append "console=ttyS0 quiet panic=-1 loglevel=4" \
		-netdev tap,id=n0,ifname=tap0,script=no,downscript=no \
		-device "virtio-net-pci,netdev=n0,mac=52:54:00:77:00:02,$off" \
		-device virtio-rng-pci \
		-drive if=none,id=snapshots,format=qcow2,file=vm.qcow2 \
		-chardev socket,id=con,path=console.sock,server=on,wait=off,logfile=console.log \
		-serial chardev:con -monitor unix:mon.sock,server=on,wait=off \
		-pidfile qemu.pid </dev/null >qemu.log 2>&1
}

wait_ready() {
	until grep -aq 'LAB READY' "$run/console.log" 2>/dev/null; do
		[ "$SECONDS" -lt 90 ] || return
		[ -n "$(pid)" ] || return
		sleep 0.1
	done
	call 20 run true
}

up() {
	[ -z "$(pid)" ] || {
		echo "lab: $id is up already"
		return
	}
	[ "$(id -u)" = 0 ] || die "network namespaces need root: run it with sudo"
	[ -e "$cache/initramfs.cpio" ] || die "no guest yet; run: $0 build"
	down
	mkdir -p "$run"
	trap 'down; exit 1' EXIT
	trap 'exit 130' INT TERM
	network || die "cannot set up the network"
	qemu-img create -q -f qcow2 "$run/vm.qcow2" 64M
	if ! (start_qemu) || ! wait_ready || ! snapshot savevm; then
		tail -n 20 "$run/qemu.log" "$run/console.log" >&2
		die "the guest does not come up"
	fi
	trap - EXIT
	echo "lab: $id is up, $SECONDS s, namespace $ns"
}

status() {
	local p
	p=$(pid) || {
		echo "lab: $id is down"
		return 1
	}
	echo "lab: $id is up, namespace $ns, pid $p," \
		"$(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$p/status") MiB"
}

call() { # SECONDS VERB ARGUMENT...
	timeout --foreground "$(($1 + 5))" ip netns exec "$ns" bash "$here/agent-call.sh" "$@"
}

snapshot() { # savevm|loadvm [NAME]
	local answer
	answer=$(cd "$run" && printf '%s %s\ninfo status\n' "$1" "${2:-ready}" |
		socat -t 60 - UNIX-CONNECT:mon.sock)
	case $answer in
	*Error*) die "$1: ${answer##*Error: }" ;;
	*'VM status: running'*) ;;
	*) die "$1: the guest does not run" ;;
	esac
}

must_be_up() {
	[ -n "$(pid)" ] || die "$id is down; run: $0 up"
}

verb=${1-}
[ $# = 0 ] || shift
case $verb/$# in
build/0) exec bash "$here/build-guest.sh" ;;
up/0) up ;;
down/0) down ;;
status/0) status ;;
run/1 | push/2 | pull/2)
	must_be_up
	call "${LAB_LIMIT:-60}" "$verb" "$@"
	;;
save/[01])
	must_be_up
	snapshot savevm "$@"
	;;
reset/[01])
	must_be_up
	snapshot loadvm "$@"
	;;
ns/[1-9]*)
	must_be_up
	exec ip netns exec "$ns" "$@"
	;;
console/0)
	must_be_up
	cd "$run" && exec socat - UNIX-CONNECT:console.sock
	;;
*) usage ;;
esac
