# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform against siw as initiator: what the profile knows and nothing else.
# limit: 800
# needs: sessctl
# shellcheck disable=SC2016 # for the other shell
conform initiator --listen --then \
	"exec $lab run \"timeout 90 siw_hold -c $HOST \${DDPS_URI##*:}\"" "tcp://$HOST:0"
