#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The interop lab: a Linux guest in QEMU with soft-iWARP and kernel SCTP, see README.md.
# LAB_SUITE: with the kernel of another suite of Debian, see suite.sh.
set -uo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
cache=${LAB_CACHE:-$here/cache}${LAB_SUITE:+/suite-$LAB_SUITE}
id=${LAB_ID:-main}
# What its QEMU is called, so that it is distinguished from others.
name=ddpsess-$(cksum <<<"$cache" | cut -d ' ' -f 1)-$id
run=$cache/run/$id
accel=${LAB_ACCEL:-tcg,thread=multi,tb-size=128}

usage() {
	cat >&2 <<-END
		usage: lab.sh build            make the guest
		       lab.sh packages         what is needed for that and is not installed: root
		                               installs it, others are told
		       lab.sh up | down        start, end; LAB_ID=name for a second one
		       lab.sh status | lacking why there can be no lab here, fails if it can
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
		tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -qF -- "-name $name " && echo "$p"
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
	rm -rf "$run"
}

# A network namespace; without the right to make one, in a user namespace.
unshared() { # COMMAND...
	if unshare -n true 2>/dev/null; then
		unshare -n "$@"
	else
		unshare --user --map-root-user -n "$@"
	fi
}

inside() { # COMMAND...: in the lab's network, which lives as long as its QEMU
	local p
	p=$(pid) || die "$id is down; run: $0 up"
	if [ "$(readlink "/proc/$p/ns/user")" = "$(readlink /proc/self/ns/user)" ]; then
		exec nsenter -t "$p" -n -- "$@"
	fi
	exec nsenter -t "$p" -U -n --preserve-credentials -- "$@"
}

network() {
	ip link set lo up &&
		ip tuntap add dev tap0 mode tap &&
		ip addr add 10.77.0.1/24 dev tap0 &&
		ip addr add fd77::1/64 dev tap0 nodad &&
		ip link set tap0 mtu "${LAB_MTU:-1500}" up
}

# Offloads off, so that captures show what the peer saw.
start_qemu() {
	local off=csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off
	off+=,guest_ufo=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off
	local link=() at
	# A wire to another guest: eth1 of both.  LAB_LINK=NAME:on has to be up before NAME:off.
	if [ -n "${LAB_LINK-}" ]; then
		at="../${LAB_LINK%:*}.sock"
		[ "${LAB_LINK#*:}" = off ] || rm -f "$run/$at"
		link=(-netdev "stream,id=n1,server=${LAB_LINK#*:},addr.type=unix,addr.path=$at"
			-device "virtio-net-pci,netdev=n1,$off,mac=52:54:00:78:00:$(printf %02x $((RANDOM % 256)))")
	fi
	# Short relative paths: a socket's is limited to 108 octets.
	cd "$run" && qemu-system-x86_64 -name "$name" -daemonize \
		-accel "$accel" -cpu max -smp 2 -m 384 \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$cache/kernel/boot/vmlinuz-$(cat "$cache/kver")" \
		-initrd "${LAB_INITRD:-$cache/initramfs.cpio}" \
		-append "console=ttyS0 quiet panic=-1 loglevel=4" \
		-netdev tap,id=n0,ifname=tap0,script=no,downscript=no \
		-device "virtio-net-pci,netdev=n0,mac=52:54:00:77:00:02,$off" \
		"${link[@]}" -device virtio-rng-pci \
		-drive if=none,id=snapshots,format=qcow2,file=vm.qcow2 \
		-chardev socket,id=con,path=console.sock,server=on,wait=off,logfile=console.log \
		-serial chardev:con -monitor unix:mon.sock,server=on,wait=off \
		-pidfile qemu.pid </dev/null >qemu.log 2>&1
}

wait_ready() {
	until grep -aq 'LAB READY' "$run/console.log" 2>/dev/null; do
		[ "$SECONDS" -lt 240 ] || return
		[ -n "$(pid)" ] || return
		sleep 0.1
	done
	call 60 run true
}

up() {
	[ -z "$(pid)" ] || {
		echo "lab: $id is up already"
		return
	}
	[ -e "$cache/initramfs.cpio" ] || die "no guest yet; run: $0 build"
	if why=$(lacking); then
		die "$why"
	fi
	down
	mkdir -p "$run"
	trap '[[ $BASHPID != "$$" ]] || { down; exit 1; }' EXIT
	trap 'exit 130' INT TERM
	qemu-img create -q -f qcow2 "$run/vm.qcow2" 64M
	if ! unshared bash "$here/lab.sh" start || ! wait_ready || ! snapshot savevm; then
		tail -n 20 "$run/qemu.log" "$run/console.log" >&2
		die "the guest does not come up"
	fi
	trap - EXIT
	echo "lab: $id is up, $SECONDS s"
}

# Why there can be no lab on this machine or for this user; fails if it can.
lacking() {
	if ! unshared true 2>/dev/null; then
		echo "no network namespaces, nor user namespaces to have them in (user.max_user_namespaces)"
	elif [ ! -c /dev/net/tun ] || ! { : <>/dev/net/tun; } 2>/dev/null; then
		echo "/dev/net/tun cannot be opened"
	elif ! unshared ip tuntap add dev tap0 mode tap 2>/dev/null; then
		echo "a tap interface cannot be made"
	else
		return 1
	fi
}

status() {
	local p
	p=$(pid) || {
		echo "lab: $id is down"
		return 1
	}
	echo "lab: $id is up, pid $p," \
		"$(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$p/status") MiB"
}

call() { # SECONDS VERB ARGUMENT...
	(inside timeout --foreground "$(($1 + 5))" bash "$here/agent-call.sh" "$@")
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
build/0 | packages/0) exec bash "$here/build-guest.sh" "$verb" ;;
lacking/0) lacking ;;
up/0) up ;;
start/0) # of up, in the namespace
	network && start_qemu
	;;
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
ns/[1-9]*) inside "$@" ;;
console/0)
	must_be_up
	cd "$run" && exec socat - UNIX-CONNECT:console.sock
	;;
*) usage ;;
esac
