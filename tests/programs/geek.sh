#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of the-geek-in-the-corner, which many have learned verbs from, as they are: messages,
# RDMA Writes and Reads into the peer's buffer, a file.  They have no TCP mode of their own.
# usage: SOURCES=FOLDER geek.sh BUILD: the folder has a clone of the repository
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/programs/lib.sh
. tests/programs/lib.sh
geek=${SOURCES:-/nonexistent}/the-geek-in-the-corner
needs make cc stdbuf "$geek"
cp -r "$geek" "$work/geek"
cd "$work/geek" || exit 1
for dir in 01_basic-client-server 02_read-write 03_file-transfer/rdma-file-transfer; do
	make -C "$dir" >"$work/make" 2>&1 || {
		not_ok "the geek in the corner, $dir is built" "$work/make"
		exit 1
	}
done

# pair_of_geeks TEXT SERVER... -- CLIENT...: both say what the other one has sent; the server prints its port
pair_of_geeks() {
	local status=0 text=$1 port="" server=() name
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	name="the geek in the corner, ${server[*]}, $wire"
	begin "$work/server" on "$wire" stdbuf -oL "${server[@]}"
	until_true 20 grep -q 'port [0-9]' "$work/server"
	port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/server")
	on "$wire" "$@" 127.0.0.1 "$port" >"$work/client" 2>&1 || status=$?
	until_true 20 grep -q 'peer disconnected' "$work/server" || status=1
	stop_all
	if [ "$status" = 0 ] && grep -q "$text from passive/server side" "$work/client" &&
		grep -q "$text from active/client side" "$work/server"; then
		ok "$name"
	else
		not_ok "$name" "$work"/{server,client}
	fi
}

send_a_file() {
	local status=0
	mkdir -p "$work/got"
	rm -f "$work/got/file"
	begin "$work/server" env -C "$work/got" "$sessctl" run --transport "$wire" -- stdbuf -oL \
		"$PWD/03_file-transfer/rdma-file-transfer/server"
	until_true 20 grep -q 'waiting for connections' "$work/server"
	on "$wire" 03_file-transfer/rdma-file-transfer/client 127.0.0.1 "$work/file" >"$work/client" 2>&1 || status=$?
	stop_all
	if [ "$status" = 0 ] && cmp -s "$work/file" "$work/got/file"; then
		ok "the geek in the corner, a file of 8 MiB, $wire"
	else
		not_ok "the geek in the corner, a file of 8 MiB, $wire" "$work"/{server,client}
	fi
}

fill "$work/file"
for wire in ${WIRES:-tcp sctp}; do
	pair_of_geeks "received message: message" 01_basic-client-server/server -- 01_basic-client-server/client
	for how in write read; do
		pair_of_geeks "remote buffer: message" 02_read-write/rdma-server $how -- 02_read-write/rdma-client $how
	done
	send_a_file
done
exit "$failed"
