#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ceph with its messenger for RDMA: one monitor, one object store in memory.  `rados bench` writes and reads
# objects that it compares, and an object is put and got back; Ceph's own TCP next to it.
# usage: ceph.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
needs ceph-mon ceph-osd ceph rados monmaptool
fsid=5a3f0c1e-7d0b-4a6e-9f57-2f1f0c0f4d11
patience=60

# Buffers are few: by default each process registers 4 GiB of them.
settings() { # WIRE WAY
	cat <<-END
		[global]
		fsid = $fsid
		mon_host = [v2:127.0.0.1:$port]
		ms_bind_msgr1 = false
		public_addr = 127.0.0.1
		cluster_addr = 127.0.0.1
		run_dir = $work/ceph
		log_file = $work/ceph/\$name.log
		admin_socket = $work/ceph/\$name.\$pid.asok
		mon_data = $work/ceph/mon
		osd_data = $work/ceph/osd
		keyring = $work/ceph/none
		crash_dir = $work/ceph
		auth_cluster_required = none
		auth_service_required = none
		auth_client_required = none
		osd_objectstore = memstore
		memstore_device_bytes = 1073741824
		enable_experimental_unrecoverable_data_corrupting_features = memstore
		osd_crush_chooseleaf_type = 0
		osd_pool_default_size = 1
		osd_pool_default_min_size = 1
		osd_pool_default_pg_autoscale_mode = off
		mon_allow_pool_size_one = true
		ms_async_op_threads = 1
	END
	[ "$1" = plain ] || cat <<-END
		ms_type = async+rdma
		ms_async_rdma_device_name = ddp0
		ms_async_rdma_receive_buffers = 1024
		ms_async_rdma_receive_queue_len = 512
		ms_async_rdma_send_buffers = 256
		ms_async_rdma_buffer_size = 65536
	END
	[ "$2" != rdma_cm ] || printf '%s\n' 'ms_async_rdma_cm = true' 'ms_async_rdma_type = iwarp'
}

start() { # WIRE WAY
	rm -rf "$work/ceph"
	mkdir -p "$work/ceph/mon" "$work/ceph/osd"
	free_port
	settings "$1" "$2" >"$work/ceph.conf"
	monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$port]" "$work/ceph/monmap" &&
		ceph-mon -c "$work/ceph.conf" --mkfs -i a --monmap "$work/ceph/monmap" || return
	begin "$work/mon" on "$1" ceph-mon -c "$work/ceph.conf" -f -i a
	on "$1" ceph -c "$work/ceph.conf" osd new "$fsid" &&
		on "$1" ceph-osd -c "$work/ceph.conf" --mkfs -i 0 --osd-uuid "$fsid" || return
	begin "$work/osd" on "$1" ceph-osd -c "$work/ceph.conf" -f -i 0
	on "$1" ceph -c "$work/ceph.conf" osd pool create p 8
}

count() { # WORDS: a number that rados bench has printed
	sed -n "s/^Total $1: *\\([0-9]*\\)$/\\1/p" "$work/client"
}

# What the store has received by queue pairs, in octets.
by_rdma() {
	timeout 20 ceph --admin-daemon "$work"/ceph/osd.0.*.asok perf dump |
		sed -n '/RDMAWorker-0/,/}/s/.*"rx_bytes": \([0-9]*\).*/\1/p'
}

# An object first: that waits until the store is up.
there_and_back() { # WIRE
	local rados=(rados -c "$work/ceph.conf" -p p) written
	on "$1" "${rados[@]}" put big "$work/in" && on "$1" "${rados[@]}" get big "$work/out" &&
		on "$1" "${rados[@]}" bench 2 write -t 8 -b 262144 --no-cleanup &&
		on "$1" "${rados[@]}" bench 2 seq -t 8 && cmp "$work/in" "$work/out" || return
	written=$(count 'writes made')
	[ "$written" -gt 16 ] && [ "$(count 'reads made')" -gt 16 ] || return
	[ "$1" = plain ] || [ "$(by_rdma)" -gt $((written * 262144)) ]
}

try() { # WIRE [WAY]
	local name="Ceph, rados bench and an object, ${1/plain/its own TCP}${2:+, by $2}"
	fill "$work/in"
	rm -f "$work/out"
	if start "$1" "${2:-}" >"$work/start" 2>&1 && there_and_back "$1" >"$work/client" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "$work"/{start,mon,osd,client}
	fi
	stop_all
}

for wire in ${WIRES:-tcp sctp plain}; do
	[[ ${WAYS:-own} != *own* ]] || try "$wire"
	[ "$wire" = plain ] || [[ ${WAYS:-rdma_cm} != *rdma_cm* ]] || try "$wire" rdma_cm
done
exit "$failed"
