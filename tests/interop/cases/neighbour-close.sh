# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# siw closes without a Terminate: an orderly end for us, no error.  siw sometimes sends a wrong CRC:
# if that is why a run ends, tshark has to find the same in the capture, and it is run again.
# quick
# needs: example-rdma_peer
one_run() {
	capture
	rdma_listen "tcp://$HOST:0" -b 100000
	there=0 here=0
	guest "timeout 90 siw_peer -c $HOST $port" >"$work/there" || there=$?
	host_wait rdma || here=$?
	[ "$there$here" = 00 ]
}

for ((run = 1; run <= 5; run++)); do
	if one_run; then
		detail "${wrong+$wrong wrong CRCs of siw before that}"
		exit 0
	fi
	grep -q 'MPA: CRC error' "$work/rdma.err" ||
		fail "siw_peer: $(tail -n 1 "$work/there"); here: $(tail -n 1 "$work/rdma.err")"
	capture_end
	cp "$work/wire.pcap" "$work/wire-$run.pcap"
	wire -Y "ip.src == $GUEST" -V | grep -q 'Bad CRC32' ||
		fail "a CRC error here, and tshark finds none: $(tail -n 1 "$work/rdma.err")"
	wrong=$((${wrong-0} + 1))
done
fail "$wrong wrong CRCs of siw in a row"
