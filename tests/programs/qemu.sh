#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# QEMU's live migration by RDMA: a guest that writes to its memory all the time is moved, and both
# memories are compared.  Pre-copy, with all memory registered, and post-copy.
# Post-copy has two races of QEMU's own (docs/programs.md).  Rules of delay keep out of their way, and a
# run that shows one nevertheless is done again, three times more at most.
# usage: qemu.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs qemu-system-x86_64 python3

mib=64
# A boot sector that adds 1 to an octet of each of 128 pages, again and again.
boot=$work/boot.img
printf '\xbb\x00\x10\x8e\xdb\xfe\x06\x00\x00\x81\xc3\x00\x01\x81\xfb\x00\x90\x72\xf0\xeb\xeb' >"$boot"
truncate -s 510 "$boot"
printf '\x55\xaa' >>"$boot"
truncate -s 1440K "$boot"

qmp() { # SIDE COMMAND [ARGUMENTS]: what it returns, in JSON
	timeout 10 python3 - "$work/$1.sock" "$2" "${3:-{\}}" <<-'END'
		import json, socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		f = s.makefile("rw")
		def ask(command, arguments):
		    f.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
		    f.flush()
		    while True:
		        answer = json.loads(f.readline())
		        if "error" in answer:
		            sys.exit(answer["error"]["desc"])
		        if "return" in answer:
		            return answer["return"]
		f.readline()
		ask("qmp_capabilities", {})
		print(json.dumps(ask(sys.argv[2], json.loads(sys.argv[3]))))
	END
}

state() { # SIDE
	qmp "$1" query-migrate 2>/dev/null | sed -n 's/.*"status": "\([a-z-]*\)".*/\1/p'
}

# shellcheck disable=SC2317 # until_true calls it
is() { # SIDE STATE
	[ "$(state "$1")" = "$2" ]
}

echo 'on rdma_disconnect: delay 500ms' >"$work/from.rules"
echo 'on ibv_req_notify_cq: delay 4ms' >"$work/to.rules"

guest() { # SIDE WIRE OPTION...
	local options=()
	[ "$kind" != post-copy ] || options=(--faults "$work/$1.rules")
	begin "$work/$1.log" on "$2" qemu-system-x86_64 -accel tcg -m "$mib" -nodefaults -display none \
		-drive "file=$work/$1.img,format=raw,if=floppy" -qmp "unix:$work/$1.sock,server,nowait" "${@:3}"
	until_true 30 test -S "$work/$1.sock"
}

same_memory() {
	local side
	for side in from to; do
		qmp $side pmemsave "{\"val\": 0, \"size\": $((mib << 20)), \"filename\": \"$work/$side.mem\"}"
	done
	[ "$(stat -c %s "$work/from.mem")" = $((mib << 20)) ] && cmp "$work/from.mem" "$work/to.mem"
}

capability() { # NAME: of both sides
	local side
	for side in from to; do
		qmp $side migrate-set-capabilities \
			"{\"capabilities\": [{\"capability\": \"$1\", \"state\": true}]}" || return
	done
}

# The one that was moved is paused then, and so is the one that came (-S).
move() { # WIRE KIND
	local scheme=rdma port
	[ "$1" != plain ] || scheme=tcp
	rm -f "$work"/*.{sock,mem}
	cp "$boot" "$work/from.img" && cp "$boot" "$work/to.img"
	free_port
	guest from "$1" && guest to "$1" -S -incoming defer || return
	case $2 in
	pin-all) capability rdma-pin-all || return ;;
	post-copy) capability postcopy-ram || return ;;
	esac
	qmp to migrate-incoming "{\"uri\": \"$scheme:127.0.0.1:$port\"}" &&
		qmp from migrate "{\"uri\": \"$scheme:127.0.0.1:$port\"}" || return
	[ "$2" != post-copy ] || qmp from migrate-start-postcopy || return
	until_true 60 ended from && is from completed && until_true 20 ended to && is to completed && same_memory
}

# QEMU's own races: it swaps the octets of a READY twice, since it has two receives on one buffer; and it
# resumes a coroutine that has ended when it learns of the disconnect.
raced() {
	grep -q -e 'READY (2) control message.*(33554432)' -e 'process_incoming_migration_co: Assertion' \
		"$work/to.log"
}

# shellcheck disable=SC2317 # until_true calls it
ended() { # SIDE
	raced || is "$1" completed || is "$1" failed
}

# Four tries for post-copy over the drop-in, as long as what fails is one of its races; one otherwise.
one() { # WIRE KIND NAME
	local try races=""
	for try in 1 2 3 4; do
		if move "$1" "$2" >"$work/out" 2>&1; then
			ok "$3$races"
			return
		fi
		if [ "$1" = plain ] || [ "$2" != post-copy ] || [ "$try" = 4 ] || ! raced; then
			break
		fi
		races=", after $try of QEMU's own races"
		stop_all
	done
	not_ok "$3$races (from: $(state from), to: $(state to))" "$work"/{from.log,to.log,out}
}

for wire in ${WIRES:-tcp sctp plain}; do
	for kind in ${KINDS:-pre-copy pin-all post-copy}; do
		[ "$wire$kind" = plainpin-all ] ||
			one "$wire" "$kind" "QEMU live migration, $kind, ${wire/plain/its own TCP}"
		stop_all
	done
done
exit "$failed"
