# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# Sessions with siw that end in mid-transfer.
# needs: example-rdma_peer

# Our client, within a short time.
ours_fails() {
	status=0
	host_wait rdma || status=$?
	[ "$status" = 1 ] || fail "status $status, not 1"
	detail "$(tail -n 1 "$work/rdma.err")"
}

next_is_served() {
	siw_peer_server -b 1000
	host timeout 90 "$build/example-rdma_peer" -c "tcp://$GUEST:$PORT" >"$work/out" 2>"$work/err" ||
		fail "the next session: $(tail -n 1 "$work/err")"
}

# Our program is killed in mid-transfer: siw takes it, and serves the next client.
# quick
case-abrupt-ours-killed() {
	siw_peer_server -b 67108864 -i 16 -o 16
	host_start rdma "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT"
	in_transfer
	kill -9 "$pid_rdma"
	guest_wait siw_peer 30 && fail "siw_peer took a killed client for an orderly one"
	grep -q siw_peer <<<"$(guest_output siw_peer)" || fail "siw_peer did not end by itself"
	next_is_served
}

# The connection of a program on siw is reset in mid-transfer: our side ends with an error, immediately.
# quick
case-abrupt-reset-by-siw() {
	siw_peer_server -b 67108864
	capture_resets
	host_start rdma timeout 90 "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT"
	in_transfer
	guest "ss -K -Hnt sport = :$PORT" >"$work/killed"
	[ -s "$work/killed" ] || fail "there was no connection to reset"
	ours_fails
	reset_by "$GUEST"
}

# We abort in the middle of a Write: a reset; the program on siw notices, and the next one is served.
# quick
case-abrupt-reset-by-us() {
	siw_peer_server -b 67108864
	capture_resets
	host timeout 90 "$build/example-rdma_peer" -N -a -c "tcp://$GUEST:$PORT" >"$work/out" \
		2>"$work/err" || fail "rdma_peer: $(tail -n 1 "$work/err")"
	guest_wait siw_peer 30 && fail "siw_peer took an abort for an orderly end"
	reset_by "$HOST"
	next_is_served
}

# The guest falls silent in mid-transfer: our side gives up by its own deadline.
# needs: example-rping_peer
case-abrupt-silence() {
	rping_server -S 1000
	host_start rping "$build/example-rping_peer" -c "tcp://$GUEST:$PORT" -S 1000 -C 1000000
	guest 'for ((i = 0; i < 200; i++)); do ss -Hnt | grep -q ESTAB.*:7174 && break; sleep 0.05; done
		{ sleep 0.5; tc qdisc add dev eth0 root netem loss 100%; } >/dev/null 2>&1 &'
	host_wait rping && fail "rping_peer took silence for success"
	grep -q 'waiting for the peer' "$work/rping.err" || fail "$(tail -n 1 "$work/rping.err")"
}

# The program on siw is killed in mid-transfer: our side ends with an error, immediately.
# quick
case-abrupt-siw-killed() {
	siw_peer_server -b 67108864 -i 16 -o 16
	host_start rdma timeout 90 "$build/example-rdma_peer" -N -c "tcp://$GUEST:$PORT"
	in_transfer
	# shellcheck disable=SC2016 # for the guest's shell
	guest 'kill -9 $(pidof siw_peer)'
	ours_fails
	grep -qiE 'lost|reset|clos|terminat' "$work/rdma.err" || fail "$(tail -n 1 "$work/rdma.err")"
}
