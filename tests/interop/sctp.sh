# shellcheck shell=bash disable=SC2034,SC2154 # shared with lib.sh and the cases
# SPDX-License-Identifier: BSD-2-Clause
# What the cases of the kernel's SCTP are made of; run.sh sources this behind lib.sh.

ENCAP=9899
IN_UDP="encap=$ENCAP"
ON_IP="encap=off"

sctp_over_udp() { # the guest's kernel SCTP, encapsulated
	guest "sysctl -q -w net.sctp.udp_port=$ENCAP net.sctp.encap_port=$ENCAP" ||
		fail "the guest's kernel has no SCTP over UDP"
}

# Every SCTP packet from now on is captured, and judged when the case has passed.
judged_sctp() {
	capture sctp or udp port "$ENCAP" or 'ip6 proto 132'
	judge_at_end=judge_sctp
}

# tshark's judgement: each checksum is good, nothing is malformed.
judge_sctp() {
	local packets bad='_ws.malformed or _ws.expert.group == "Malformed"'
	kill "$pid_capture"
	wait "$pid_capture" 2>/dev/null || true
	grep -q '^0 packets dropped' "$work/capture.err" || fail "tcpdump missed packets"
	bad+=' or sctp.checksum.status != "Good" or sctp.chunk_length.bad or sctp.parameter_length.bad'
	wire -o sctp.checksum:CRC-32C -Y sctp -T fields -e sctp.checksum.status |
		wc -l >"$work/packets"
	packets=$(cat "$work/packets")
	[ "$packets" -gt 8 ] || fail "tshark: only $packets SCTP packets seen"
	wire -o sctp.checksum:CRC-32C -Y "sctp and ($bad)" >"$work/bad.txt"
	[ ! -s "$work/bad.txt" ] ||
		fail "tshark: $(wc -l <"$work/bad.txt") bad packets, $(head -n 1 "$work/bad.txt")"
	[ ! -e "$work/detail" ] || packets="$(cat "$work/detail"); $packets"
	detail "$packets packets judged by tshark"
}

# In the capture: packets that came twice, and TSNs that came late.
some_disordered() {
	wire -Y "ip.src == $GUEST && sctp.data_tsn" -T fields -e ip.id -e sctp.data_tsn_raw |
		awk -F '\t' '
		{
			split($2, tsn, ",")
			twice += seen[$0]++ > 0
			late += last != "" && tsn[1] < last
			last = tsn[1]
		}
		END {
			print twice + 0 " twice, " late + 0 " late"
			exit !(twice && late)
		}' >"$work/disorder" || fail "no disorder: $(cat "$work/disorder")"
}

