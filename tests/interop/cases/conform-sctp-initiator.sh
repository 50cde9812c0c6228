# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform against the kernel's SCTP as initiator: what the profile knows and nothing else.
# limit: 900
# needs: sessctl
sctp_over_udp
# shellcheck disable=SC2016 # for the other shell
conform_sctp initiator --listen --then \
	'at=${DDPS_URI%%\?*}; exec '"$lab"' run "timeout 100 sctp_hold -c '"$HOST"' ${at##*:}" >>'"$work/hold 2>&1" \
	"sctp://$HOST:0?$IN_UDP"
