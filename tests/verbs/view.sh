#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl run's view of the folders in which programs look for devices, as whoever runs this and as
# somebody without rights; and UCX, which finds its device there, on it over both wires.
# usage: view.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/verbs/lib.sh
. tests/verbs/lib.sh
class=/sys/class/infiniband
unset XDG_RUNTIME_DIR
export DDPSESS_RETRY_MS=1000

result() { # STATUS NAME
	if [ "$1" = 0 ]; then echo "ok $2$who"; else
		echo "not ok $2$who: $(tr -c '[:print:]' ' ' <"$work/out" | tail -c 300)"
	fi
}

# A command of the shell in the program's place.
seen() { # NAME COMMANDS
	timeout 20 "${load[@]}" sh -euc "$2" >"$work/out" 2>&1
	result $? "view: $1"
}

folders() {
	seen "the device's name" "[ \$(ls $class) = ddp0 ] && [ \$(cat $class/ddp0/node_desc) = ddp0 ]"
	seen "a type, a revision and a board" "for f in hca_type hw_rev board_id; do [ -s $class/ddp0/\$f ]; done"
	seen "the guid of ibv_devinfo" "ibv_devinfo | tr -d '\t ' | grep -q \
		node_guid:\$(cat $class/ddp0/node_guid)"
	seen "what libibverbs looks for" "[ \$(cat ${class}_verbs/uverbs0/ibdev) = ddp0 ]"
	seen "the port" "grep -qx '4: ACTIVE' $class/ddp0/ports/1/state &&
		grep -qx Ethernet $class/ddp0/ports/1/link_layer &&
		grep -qx 0xffff $class/ddp0/ports/1/pkeys/0"
	seen "a GID and its interface" "grep -q ffff: $class/ddp0/ports/1/gids/0 &&
		dev=\$(cat $class/ddp0/ports/1/gid_attrs/ndevs/0) &&
		[ \$(cat $class/ddp0/device/net/\$dev/address) = \$(cat /sys/class/net/\$dev/address) ]"
	seen "a character device" "test -c /dev/infiniband/uverbs0 -a -r /dev/infiniband/uverbs0 \
		-a -w /dev/infiniband/uverbs0"
	seen "by other ways to the same" "cd $class && cd ddp0 && [ -e ports/1/gids ] &&
		[ \$(realpath /sys//class/./infiniband/ddp0) = $class/ddp0 ] &&
		[ \$(find $class -name link_layer | wc -l) = 1 ] &&
		python3 -c 'import os; os.listdir(\"$class/../infiniband\"); os.stat(\"/dev/infiniband\")'"
	seen "netlink: the link of rdma" "dev=\$(cat $class/ddp0/ports/1/gid_attrs/ndevs/0)
		rdma link | grep -qx \"link ddp0/1 state ACTIVE physical_state LINK_UP netdev \$dev \""
	seen "netlink: what rdma shows of the device is what its files have" "rdma -j dev | python3 -c '
import json, sys
(dev,) = json.load(sys.stdin)
read = lambda name: open(\"$class/ddp0/\" + name).read().strip()
assert dev[\"ifname\"] == \"ddp0\" and dev[\"node_type\"] == \"rnic\", dev
assert dev[\"fw\"] == read(\"fw_ver\"), dev
assert dev[\"node_guid\"] == read(\"node_guid\") and dev[\"sys_image_guid\"] == read(\"sys_image_guid\"), dev'"
	seen "netlink: rdma system" "rdma system | grep -q 'netns shared'"
	seen "netlink: what rdma cannot show or change says why" "
		for what in 'resource show' 'statistic qp show' 'link add x type siw netdev lo'; do
			rdma \$what 2>&1 >/dev/null | grep -q 'see sessctl stat'
		done"
	seen "nothing of another device" "[ ! -e $class/ddp1 ] && [ ! -e /sys/class/infiniband_mad ]"
}

# Counters of the port: of programs that run, that have ended, that hang and that were killed.
counters() {
	local port1=$class/ddp0/ports/1 server data reads now
	free_port
	data=$("${load[@]}" cat $port1/counters/port_xmit_data)
	reads=$("${load[@]}" cat $port1/hw_counters/iwInRdmaReads)
	"${load[@]}" rping -s -P -S 4000 -a 127.0.0.1 -p "$port" >"$work/server" 2>&1 &
	server=$!
	await_listener "$port"
	timeout 60 "${load[@]}" rping -c -C 10 -S 4000 -a 127.0.0.1 -p "$port" >"$work/out" 2>&1
	result $? "counters: rping"
	# Its Reads are of the client's memory, its Writes are the server's, which still runs.
	seen "counters move, of one that has ended and of one that runs" "
		[ \$((\$(cat $port1/counters/port_xmit_data) - $data)) -ge 20000 ] &&
		[ \$((\$(cat $port1/hw_counters/iwInRdmaReads) - $reads)) -ge 10 ]"
	seen "counters by whatever call, and in their folder" "cd $port1/counters &&
		[ \$(cat port_rcv_data) -gt 0 ] && [ \$(cat ../hw_counters/iwInRdmaSends) -gt 0 ] &&
		python3 -c 'import os
here = os.open(\"$port1\", os.O_PATH)
assert int(open(\"port_rcv_packets\").read()) > 0
assert int(os.read(os.open(\"counters/port_xmit_packets\", os.O_RDONLY, dir_fd=here), 30)) > 0'"
	seen "netlink: rdma statistic has all of them" "rdma -j statistic show | python3 -c '
import json, os, sys
(link,) = json.load(sys.stdin)
assert link[\"ifname\"] == \"ddp0\" and link[\"port\"] == 1, link
for folder in \"counters\", \"hw_counters\":
	for name in os.listdir(\"$port1/\" + folder):
		now = int(open(\"$port1/\" + folder + \"/\" + name).read())
		assert link[name] <= now, name
assert link[\"iwOutRdmaReads\"] >= 10, link'"
	seen "counters: one that ends while somebody reads is counted, and does not wait for him" "
		was=\$(cat $port1/hw_counters/iwInRdmaReads)
		(flock -s 9 && timeout 60 rping -c -C 10 -S 4000 -a 127.0.0.1 -p $port >/dev/null) 9<\$DDPSESS_VIEW/live/ended &&
		[ \$((\$(cat $port1/hw_counters/iwInRdmaReads) - was)) -ge 10 ]"
	now=$("${load[@]}" cat $port1/counters/port_xmit_data)
	seen "counters: a pipe in the place of one's own stops nobody" "
		rm \$DDPSESS_VIEW/live/$server.1.sum && mkfifo \$DDPSESS_VIEW/live/$server.1.sum &&
		timeout 20 cat $port1/counters/port_xmit_data >/dev/null &&
		[ \$(timeout 20 cat $port1/counters/port_xmit_data) -ge $now ]"
	kill -STOP "$server"
	seen "counters: one that hangs counts as it did" "[ \$(cat $port1/counters/port_xmit_data) -ge $now ]"
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	seen "counters: one that was killed, too" "[ \$(cat $port1/counters/port_xmit_data) -ge $now ]"
	seen "counters: and stays so" "[ \$(cat $port1/counters/port_xmit_data) -ge $now ] &&
		[ ! -e \$DDPSESS_VIEW/live/$server.1 ] && [ ! -e \$DDPSESS_VIEW/live/$server.1.sum ]"
}

# Options of sessctl run, before the program.
with() { # OPTION...
	load=("${rights[@]}" "$sessctl" run "$@" --)
}

options() {
	with --device-name rnic7
	seen "another name" "[ \$(ls $class) = rnic7 ]"
	with --mode soname
	seen "by soname" "[ \$(ls $class) = ddp0 ]"
	with --face roce
	seen "a RoCE face" "[ \"\$(cat $class/*/node_type)\" = '1: CA' ] &&
		[ \"\$(cat $class/*/ports/1/gid_attrs/types/0)\" = 'RoCE v2' ] &&
		ibv_devinfo | grep -q 'InfiniBand (0)' && rdma dev | grep -q ': node_type ca '"
	with --face ib
	seen "an InfiniBand face" "lid=\$(printf %d \$(cat $class/*/ports/1/lid)) && [ \$lid -gt 0 ] &&
		grep -qx InfiniBand $class/*/ports/1/link_layer &&
		ibv_devinfo | tr -d '\t ' | grep -qx port_lid:\$lid &&
		rdma link | grep -q \" lid \$lid sm_lid 0 lmc 0 state ACTIVE \" &&
		if command -v ibstat >/dev/null; then ibstat | grep -qx \".*Base lid: \$lid\"; fi"
	with --face roce
	# It shows no RNIC, of whatever make.
	if command -v ibstat >/dev/null; then
		seen "ibstat has a type to show" "ibstat | grep -qx '.CA type: ddpsess'"
	else
		echo "ok view: ibstat has a type to show # SKIP no ibstat: package infiniband-diags"
	fi
	printf '%s\n' 'device mlx5_0' 'face roce' 'vendor 0x0002c9' 'part 0x1017' >"$work/mlx5.profile"
	with --profile "$work/mlx5.profile"
	seen "the type of a profile's adapter" "[ \$(cat $class/mlx5_0/hca_type) = MT4119 ]"
	with --view off
	seen "none with --view off" "[ ! -e $class/ddp0 ] && ibv_devices | grep -q ddp0 &&
		! rdma link 2>&1 | grep -q ddp0"
	with
	DDPSESS_CRC=maybe seen "a bad setting is the drop-in's to tell" "! ibv_devinfo"
}

# The fixed name is useless: the view is in the one other folder, which nobody else can write to.
squatted() { # WHAT
	seen "contact: the name is $1" "[ \$(ls $class) = ddp0 ] &&
		[ \$(ls -d $work/run/ddpsess-view-$uid.* | wc -l) = 1 ] &&
		[ \$(stat -c %u:%a $work/run/ddpsess-view-$uid.*) = $uid:755 ] &&
		case \$DDPSESS_VIEW in $work/run/ddpsess-view-$uid.*) ;; *) false ;; esac"
}

# The folder is found again; what is missing of it comes back; somebody else's is not used.
upkeep() {
	local dir uid
	uid=$("${rights[@]}" id -u)
	mkdir -m 1777 "$work/run"
	export XDG_RUNTIME_DIR=$work/run
	seen "one folder for two runs" "true"
	seen "one folder for two runs, again" "[ \$(ls $work/run/ddpsess-view-\$(id -u) | wc -l) = 1 ]"
	dir=$(echo "$work"/run/ddpsess-view-*/*)
	rm -r "$dir/sys/class/infiniband/ddp0/ports"
	seen "what was removed is there again" "grep -q ACTIVE $class/ddp0/ports/1/state"
	chmod 777 "${dir%/*}"
	squatted "a folder that others can write to"
	squatted "again, the same folder of one's own"
	rm -r "$work/run"/*
	mkdir -m 777 "$work/run/ddpsess-view-$uid" # another user's, if this one may be somebody else
	[ ${#rights[@]} != 0 ] || chmod 777 "$work/run/ddpsess-view-$uid"
	squatted "another user's folder"
	rm -r "$work/run"/*
	: >"$work/run/ddpsess-view-$uid"
	squatted "a file"
	rm -r "$work/run"/*
	ln -s "$work" "$work/run/ddpsess-view-$uid"
	squatted "a link"
	XDG_RUNTIME_DIR=/dev/null/none seen "contact: a runtime directory that is not there" \
		"[ \$(ls $class) = ddp0 ]"
	unset XDG_RUNTIME_DIR
}

ucx() { # NAME OPTION...
	local port server c=0 s=0
	free_port
	with --face roce --transport "$wire"
	timeout 60 "${load[@]}" ucx_perftest -p "$port" -n 200 -w 10 "${@:2}" >"$work/server" 2>&1 &
	server=$!
	await_listener "$port"
	timeout 60 "${load[@]}" ucx_perftest -p "$port" -n 200 -w 10 "${@:2}" 127.0.0.1 \
		>"$work/out" 2>&1 || c=$?
	wait "$server" || s=$?
	[ "$c$s" = 00 ] && grep -q '^Final: *200' "$work/out"
	result $? "UCX's $1 over $wire: ${*:2}"
}

run_ucx() {
	with --face roce
	UCX_TLS=rc_verbs seen "ucx_info lists the device" "ucx_info -d | grep -q 'Transport: rc_verbs' &&
		ucx_info -d | grep -q 'Device: ddp0:1'"
	for wire in tcp sctp; do
		local rc="-d ddp0:1 -x rc_verbs -t"
		# shellcheck disable=SC2086 # words are meant
		{
			ucx rc_verbs $rc put_lat
			ucx rc_verbs $rc am_bw -D bcopy -s 4096
			ucx rc_verbs $rc get -D zcopy -s 4096
			ucx rc_verbs $rc fadd
			ucx rc_verbs $rc cswap
		}
		# its datagrams alone, and as the way to connections
		[ "$wire" = sctp ] || ucx ud_verbs -d ddp0:1 -x ud_verbs -t am_lat
		UCX_TLS=rc_verbs,ud_verbs ucx UCP -t tag_lat
		UCX_TLS=rc_verbs,ud_verbs ucx UCP -t ucp_put_bw
	done
}

with
folders
counters
options
drop_rights
with
[ ${#rights[@]} = 0 ] || folders
[ ${#rights[@]} = 0 ] || counters
[ ${#rights[@]} = 0 ] || options
upkeep
run_ucx
