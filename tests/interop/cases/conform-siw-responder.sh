# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# sessctl conform against siw as responder: what the profile knows and nothing else.
# limit: 1200
# needs: sessctl
target() {
	guest_start hold "siw_hold -s $GUEST $PORT"
	guest_listens "$PORT"
}
conform responder "tcp://$GUEST:$PORT"
