# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform against siw and against the kernel's SCTP: what the profile knows and nothing else.
# needs: sessctl

# sessctl conform against the kernel's SCTP as initiator.
# limit: 900
case-conform-sctp-initiator() {
	sctp_over_udp
	# shellcheck disable=SC2016 # for the other shell
	conform_sctp initiator --listen --then \
		'at=${DDPS_URI%%\?*}; exec '"$lab"' run "timeout 100 sctp_hold -c '"$HOST"' ${at##*:}" >>'"$work/hold 2>&1" \
		"sctp://$HOST:0?$IN_UDP"
}

# sessctl conform against the kernel's SCTP as responder.
# limit: 900
case-conform-sctp-responder() {
	sctp_over_udp
	guest_start hold "sctp_hold -s $GUEST $PORT"
	guest_listens "$PORT" sctp
	conform_sctp responder "sctp://$GUEST:$PORT?$IN_UDP"
}

# sessctl conform against siw as initiator.
# limit: 800
case-conform-siw-initiator() {
	# shellcheck disable=SC2016 # for the other shell
	conform initiator --listen --then \
		"exec $lab run \"timeout 90 siw_hold -c $HOST \${DDPS_URI##*:}\"" "tcp://$HOST:0"
}

# sessctl conform against siw as responder.
# limit: 1200
case-conform-siw-responder() {
	conform responder "tcp://$GUEST:$PORT"
}
