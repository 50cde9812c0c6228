#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl ipoib: values as text, there and back, and what it refuses.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
tools=$(realpath "$here/../../tools")

commands="service-id lladdr private-data mad listen connect sim bridge conform"
address=c0:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:01:00:02

prints() { # TEXT ARGUMENT...: exactly this line
	local text=$1
	shift
	run 0 ipoib "$@" || return
	why="it printed $(cat out)"
	[ "$(cat out)" = "$text" ]
}

bad() { # TEXT ARGUMENT...
	local text=$1
	shift
	run 2 ipoib "$@" && says err "$text" && says err "try:"
}

help_of_all() {
	local c
	run 0 ipoib --help || return
	for c in $commands; do
		says out "  $c" || return
	done
	for c in $commands; do
		run 0 ipoib "$c" --help && says out "Usage: sessctl ipoib $c" && says out "--json" || return
	done
	run 0 ipoib lladdr --version && says out "libddpsess"
}

no_command() {
	run 2 ipoib && says err "Usage:"
}

service_id() {
	prints 0x0100000000000048 service-id --qpn 0x48 &&
		prints 0x1000000000000048 service-id --qpn 72 --linux &&
		prints 0x0100000000ffffff service-id --qpn 0xffffff &&
		prints '{"event":"service-id","service_id":"0x1000000000000048","form":"linux","qpn":72}' \
			service-id --decode 0x1000000000000048 --json &&
		run 0 ipoib service-id --decode 0x0100000000000048 && says out "RFC 4755" &&
		says out 0x000048
}

lladdr() {
	prints $address lladdr --flags rc,uc --qpn 0x48 --gid fe80::2:c903:1:2 &&
		prints "${address/c0/00}" lladdr --qpn 0x48 --gid fe80::2:c903:1:2 &&
		prints "{\"event\":\"lladdr\",\"lladdr\":\"$address\",\"flags\":\"rc,uc\",\"qpn\":72,\"gid\":\"fe80::2:c903:1:2\"}" \
			lladdr --decode $address --json &&
		run 0 ipoib lladdr --decode $address && says out "rc,uc" && says out fe80::2:c903:1:2
}

private_data() {
	prints 000000480000fff4 private-data --qpn 0x48 --mtu 65524 &&
		prints '{"event":"private-data","private_data":"00000048ffffffff","qpn":72,"rx_mtu":4294967295}' \
			private-data --qpn 0x48 --mtu 0xffffffff --json &&
		run 0 ipoib private-data --decode 000000480000fff4 && says out 65524
}

completion() {
	local want have
	PATH=$(dirname "$SESSCTL"):$PATH
	. "$tools/sessctl/completion.bash"
	COMP_WORDS=("$SESSCTL" ipoib "") COMP_CWORD=2
	_sessctl "$SESSCTL"
	why="commands: ${COMPREPLY[*]}"
	[ "${COMPREPLY[*]}" = "$commands" ] || return
	for c in $commands; do
		want=$("$SESSCTL" ipoib "$c" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' | sort)
		COMP_WORDS=("$SESSCTL" ipoib "$c" --) COMP_CWORD=3
		_sessctl "$SESSCTL"
		have=$(printf '%s\n' "${COMPREPLY[@]}" | sort)
		why="options of $c: $have"
		[ -n "$want" ] && [ "$have" = "$want" ] || return
	done
	COMP_WORDS=("$SESSCTL" ipoib bridge "") COMP_CWORD=3
	_sessctl "$SESSCTL"
	why="words: ${COMPREPLY[*]}"
	[ "${COMPREPLY[*]}" = "up status down" ] || return
	COMP_WORDS=("$SESSCTL" ipoib bridge --mode u) COMP_CWORD=4
	_sessctl "$SESSCTL"
	why="modes: ${COMPREPLY[*]}"
	[ "${COMPREPLY[*]}" = "uc ud" ] || return
	COMP_WORDS=("$SESSCTL" ipoib lladdr --flags u) COMP_CWORD=4
	_sessctl "$SESSCTL"
	why="values: ${COMPREPLY[*]}"
	[ "${COMPREPLY[*]}" = "uc ud" ]
}

# ---- mad ----

# One message each, no two fields alike.
messages() {
	cat <<'EOF'
{"message":"REQ","header":{"tid":"0x0102030405060708"},"fields":{"local_id":287454020,
 "service_id":"0x0100000000000049","ca_guid":"0x0002c90300001000","qkey":11,"qpn":1105,
 "resp_resources":4,"local_eecn":12,"init_depth":5,"remote_eecn":13,"remote_cm_timeout":20,
 "transport":1,"flow_control":1,"starting_psn":43981,"local_cm_timeout":19,"retry_count":6,
 "pkey":65535,"path_mtu":4,"rdc_exists":1,"rnr_retry":7,"max_cm_retries":15,"srq":1,
 "ext_transport":2,"primary.local_lid":3,"primary.remote_lid":7,
 "primary.local_gid":"fe80::2:c903:0:1001","primary.remote_gid":"fe80::2:c903:0:2002",
 "primary.traffic_class":21,"primary.hop_limit":22,"primary.sl":9,"primary.subnet_local":1,
 "primary.ack_timeout":18,"alternate.local_lid":5,"alternate.remote_lid":8,
 "alternate.traffic_class":23,"alternate.hop_limit":24,"alternate.sl":10,
 "alternate.ack_timeout":17,"private_data":"0000004a0000fff4"}}
{"message":"REP","fields":{"local_id":1432778632,"remote_id":287454020,"qkey":14,"qpn":1106,
 "local_eecn":15,"starting_psn":4660,"resp_resources":6,"init_depth":7,"target_ack_delay":15,
 "failover":2,"flow_control":1,"rnr_retry":5,"srq":1,"ca_guid":"0x0002c90300002000",
 "private_data":"0000004900008004"}}
{"message":"RTU","fields":{"local_id":287454020,"remote_id":1432778632,"private_data":"0a0b"}}
{"message":"REJ","fields":{"local_id":3,"remote_id":4,"msg":1,"info_len":8,"reason":28,
 "ari":"0002c90300001000","private_data":"0000004900008004"}}
{"message":"DREQ","fields":{"local_id":5,"remote_id":6,"remote_qpn":1106,"private_data":"0c"}}
{"message":"DREP","fields":{"local_id":7,"remote_id":8,"private_data":"0d"}}
{"message":"MRA","fields":{"local_id":9,"remote_id":10,"msg":2,"service_timeout":24}}
{"message":"LAP","fields":{"local_id":11,"remote_id":12,"alternate.rate":7}}
{"message":"APR","fields":{"local_id":13,"remote_id":14,"status":7}}
{"message":"SIDR_REQ","fields":{"request_id":15,"service_id":"0x0100000000000049"}}
{"message":"SIDR_REP","fields":{"request_id":16,"status":1,"vendor_id":70}}
EOF
}

mad_there_and_back() {
	messages >in.json
	run 0 ipoib mad in.json && cp out hex || return
	why="$(wc -l <hex) lines"
	[ "$(wc -l <hex)" = 11 ] || return
	run 0 ipoib mad --json --capture c.pcap hex && cp out out.json || return
	why="the mode of the capture is $(stat -c %a c.pcap)"
	[ "$(stat -c %a c.pcap)" = 600 ] || return
	run 0 ipoib mad out.json && same out hex || return
	run 0 ipoib mad --hex c.pcap && same out hex || return
	run 0 ipoib mad - <hex && says out "service_id               0x0100000000000049 (IPoIB, RFC form" &&
		says out "reason                   0x001c (consumer reject)" &&
		says out "0000004a0000fff4 and 84 zero octets (IPoIB: UD QPN 0x00004a, Receive MTU 65524)"
}

# The first 32 octets, by hand.
# A capture longer than any buffer: N records of a mebioctet that hold no CM message, and good ones around.
long_capture() { # N
	cat c.pcap
	for ((i = 0; i < $1; i++)); do cat record; done
	tail -c +25 c.pcap
}

mad_long_capture() {
	run 0 ipoib mad --hex c.pcap && cat out out >two || return
	{
		printf '\0\0\0\0\0\0\0\0\0\20\0\0\0\20\0\0'
		head -c 1048576 /dev/zero
	} >record
	run 0 ipoib mad --hex - < <(long_capture 260) && same out two || return
	says err "260 packets of the capture hold no CM message" || return
	long_capture 1 >long.pcap
	run 0 ipoib mad --hex long.pcap && same out two || return
	run 1 ipoib mad --capture long.pcap long.pcap && says err "cannot be read and be the --capture" || return
	head -c 99999 long.pcap >cut.pcap
	run 1 ipoib mad --hex cut.pcap && says err "ends in the middle of a record" || return
	run 1 ipoib mad --hex - < <(tr '\0' 0 </dev/zero) && says err "longer than 256 MiB" && says err "try:"
}

mad_octets() {
	messages | head -n 11 >req.json
	run 0 ipoib mad req.json || return
	why="it printed $(cat out)"
	[ "$(head -c 64 out)" = 0107020300000000010203040506070800100000000000001122334400000000 ]
}

# What tshark shows of a message is what was sent.
shown() { # ATTRIBUTE <<<"VALUE FIELD" lines
	local message=$1 ours theirs args=() want=() got i
	while read -r ours theirs; do
		args+=(-e "infiniband.cm.$theirs")
		want+=("$ours")
	done
	got=$(tshark -r c.pcap -Y "infiniband.mad.attributeid == $message" -T fields "${args[@]}" \
		2>/dev/null)
	IFS=$'\t' read -r -a got <<<"$got"
	for i in "${!want[@]}"; do
		ours=${want[i]} theirs=${got[i]}
		case $ours in
		hex:*) theirs=hex:${theirs//:/} && theirs=${theirs:0:${#ours}} ;;
		*:*) ;;
		*) theirs=$((theirs)) ours=$((ours)) ;;
		esac
		why="message $message, ${args[2 * i + 1]}: ${got[i]}, sent ${want[i]}"
		[ "$ours" = "$theirs" ] || return
	done
}

mad_capture_in_tshark() {
	messages >in.json
	run 0 ipoib mad --capture c.pcap in.json || return
	shown 0x10 <<'EOF' || return
287454020 req
0x0100000000000049 req.serviceid
0x0002c90300001000 req.localcaguid
11 req.localqkey
1105 req.localqpn
4 req.responderres
12 req.localeecn
5 req.initdepth
13 req.remoteeecn
20 req.remoteresptout
1 req.transpsvctype
1 req.e2eflowctrl
43981 req.startpsn
19 req.localresptout
6 req.retrcount
65535 req.pkey
4 req.pppmtu
1 req.rdcexist
7 req.rnrretrcount
15 req.maxcmretr
1 req.srq
2 req.ext_transport
3 req.prim_locallid
7 req.prim_remotelid
fe80::2:c903:0:1001 req.prim_localgid
fe80::2:c903:0:2002 req.prim_remotegid
21 req.prim_tfcclass
22 req.prim_hoplim
9 req.prim_sl
1 req.prim_subnetlocal
18 req.prim_localacktout
5 req.alt_locallid
8 req.alt_remotelid
23 req.alt_tfcclass
24 req.alt_hoplim
10 req.alt_sl
0 req.alt_subnetlocal
17 req.alt_localacktout
hex:0000004a0000fff400 req.private
EOF
	shown 0x13 <<'EOF' || return
1432778632 rep
287454020 rep.remotecommid
14 rep.localqkey
1106 rep.localqpn
15 rep.localeecn
4660 rep.startpsn
6 rep.respres
7 rep.initdepth
15 rep.tgtackdelay
2 rep.failoveracc
1 rep.e2eflowctrl
5 rep.rnrretrcount
1 rep.srq
0x0002c90300002000 rep.localcaguid
hex:000000490000800400 rep.private
EOF
	shown 0x14 <<'EOF' || return
287454020 rtu.localcommid
1432778632 rtu.remotecommid
hex:0a0b00 rtu.private
EOF
	shown 0x12 <<'EOF' || return
3 rej.localcommid
4 rej.remotecommid
1 rej.msgrej
8 rej.rejinfolen
28 rej.reason
hex:0002c9030000100000 rej.ari
hex:000000490000800400 rej.private
EOF
	shown 0x15 <<'EOF' || return
5 dreq.localcommid
6 dreq.remotecommid
1106 req.remoteqpneecn
hex:0c00 dreq.private
EOF
	shown 0x16 <<'EOF'
7 drsp.localcommid
8 drsp.remotecommid
hex:0d00 drsp.private
EOF
}

mad_fails() { # TEXT INPUT [OPTION...]
	printf '%s' "$2" >input
	run 1 ipoib mad "${@:3}" input && says err "$1"
}

# A bad message does not hide the good ones.
mad_goes_on() {
	{
		messages | tail -n 1
		echo '{"message":"REP","fields":{"qpn":16777216}}'
		messages | tail -n 1
	} >input
	run 1 ipoib mad input && says err "message 2: field qpn takes a number of 24 bits" || return
	why="$(wc -l <out) lines"
	[ "$(wc -l <out)" = 2 ]
}

mad_missing_file() {
	run 1 ipoib mad ./nothing && says err "No such file" || return
	run 1 ipoib mad --capture ./no/dir /dev/null && says err "capture './no/dir': No such file"
}

rdmacm_without_device() {
	run 1 ipoib connect --port rdmacm --set qpn=3 --peer-qpn 0x48 fe80::1 && says err "port rdmacm: " &&
		says err "try: modprobe rdma_ucm"
}

test_case ipoib-help help_of_all
test_case ipoib-no-command no_command
test_case ipoib-unknown-command bad "no command 'frob'" frob
test_case ipoib-unknown-option bad "--frob" lladdr --frob
test_case ipoib-option-of-another-command bad "another command" service-id --qpn 1 --mtu 3
test_case ipoib-argument-too-many bad "too many" service-id --qpn 1 x
test_case ipoib-service-id service_id
test_case ipoib-service-id-qpn-25-bits bad "0 to 16777215" service-id --qpn 0x1000000
test_case ipoib-service-id-no-number bad "not '0x'" service-id --qpn 0x
test_case ipoib-service-id-without-qpn bad "--qpn is missing" service-id
test_case ipoib-service-id-decode-alone bad "stands alone" service-id --decode 1 --qpn 3
test_case ipoib-service-id-not-of-ipoib bad "no service ID of IPoIB" service-id \
	--decode 0x0200000000000048
test_case ipoib-lladdr lladdr
test_case ipoib-lladdr-without-gid bad "--gid is missing" lladdr --qpn 1
test_case ipoib-lladdr-bad-gid bad "is no GID" lladdr --qpn 1 --gid fe80
test_case ipoib-lladdr-bad-flags bad "is no list of flags" lladdr --qpn 1 --gid :: --flags rd
test_case ipoib-lladdr-decode-19-octets bad "is no link-layer address" lladdr --decode "${address%:*}"
test_case ipoib-private-data private_data
test_case ipoib-private-data-without-mtu bad "--mtu is missing" private-data --qpn 1
test_case ipoib-private-data-mtu-33-bits bad "0 to 4294967295" private-data --qpn 1 --mtu 4294967296
test_case ipoib-private-data-decode-17-digits bad "is no private data" private-data \
	--decode 000000480000fff40
test_case ipoib-mad-there-and-back mad_there_and_back
test_case 'contact: ipoib-mad-long-capture' mad_long_capture
test_case ipoib-mad-octets mad_octets
if command -v tshark >/dev/null; then
	test_case ipoib-mad-capture-in-tshark mad_capture_in_tshark
else
	ok "ipoib-mad-capture-in-tshark # skipped: no tshark (Debian package tshark)"
fi
test_case ipoib-mad-cut mad_fails "message 1: 5 octets, a MAD has 256" 0107020300
test_case ipoib-mad-odd-digits mad_fails "odd number" 010
test_case ipoib-mad-no-hex mad_fails "neither hexadecimal text nor JSON nor a capture" frob
test_case ipoib-mad-empty mad_fails "holds no message" ""
test_case ipoib-mad-bad-json mad_fails "message 1: line 1" '{"message":'
test_case ipoib-mad-another-class mad_fails "class 0x03" "$(printf '01030203%0504d' 0)"
test_case ipoib-mad-goes-on mad_goes_on
test_case ipoib-mad-missing-file mad_missing_file
test_case ipoib-mad-json-and-hex bad "exclude each other" mad --json --hex
test_case ipoib-connect-without-peer bad "missing arguments" connect
test_case ipoib-connect-unknown-field bad "REQ has no field 'reason'" connect --set reason=3 ::1
test_case ipoib-connect-field-too-large bad "24 bits" connect --set qpn=0x1000000 ::1
test_case ipoib-connect-set-without-value bad "FIELD=VALUE" connect --set qpn ::1
test_case ipoib-listen-field-of-another-message bad "REP has no field 'service_id'" listen \
	--set service_id=1
if [ -e /dev/infiniband/rdma_cm ]; then
	ok "ipoib-rdmacm-without-device # skipped: this machine has one"
else
	test_case ipoib-rdmacm-without-device rdmacm_without_device
fi
test_case ipoib-rdmacm-field-of-the-kernel bad "the kernel chooses it" connect --port rdmacm \
	--set starting_psn=3 --peer-qpn 1 fe80::1
test_case ipoib-rdmacm-capture bad "does not show its messages" connect --port rdmacm \
	--capture c --peer-qpn 1 fe80::1
test_case ipoib-connect-gid-alone bad "does not say which UD queue pair" connect --port rdmacm fe80::1
test_case ipoib-connect-bad-peer bad "neither a link-layer address nor a GID" connect \
	--port rdmacm frob
test_case ipoib-listen-reject-0 bad "1 to 65535" listen --reject 0
test_case ipoib-listen-unknown-port bad "no port 'frob'" listen --port frob
test_case ipoib-listen-port-0 bad "no port 'umad:a:0'" listen --port umad:a:0
sim_chart() {
	run 0 ipoib sim --nodes 2 --seed 3 --count 4 && says out "REQ to" && says out "RTU of" &&
		says out "node 0 has 1 connection to node 1" && says out "4 packets delivered"
}

sim_repeats() {
	run 0 ipoib sim --seed 7 --loss 20 --json && cp out first && run 0 ipoib sim --seed 7 \
		--loss 20 --json && same first out && has out event end && has out double 0 &&
		run 0 ipoib sim --seed 8 --loss 20 --json && ! cmp -s first out
}

sim_scenario() {
	printf '%s\n' '# crossed' '100 send 0 1' '100 send 1 0 500' '' '2000 kill 1 # gone' \
		'2100 send 0 1' >scenario
	run 0 ipoib sim --nodes 2 scenario && says out "KILL" && says out "REQ to 1" &&
		says out "2 packets delivered"
}

sim_bad() { # TEXT LINE
	echo "$2" >scenario
	run 2 ipoib sim scenario && says err "scenario:1: $1"
}

# ---- connect and listen on a subnet whose packets travel in UDP ----

# The listener is the administration too, so both addresses are known before: a /24 of our own.
net=127.$((RANDOM % 200 + 20)).$(($$ % 250))
here=(--port ib --gid fe80::1 --udp "$net.1:7100" --sa "$net.2")
there=(--port ib --gid fe80::2 --udp "$net.2:7100" --sa "$net.2")

listen_ib() { # OPTION...: one that takes one request
	start_job listen.fifo listen.err ipoib listen --json "${there[@]}" --qpn 0x49 --count 1 \
		--timeout 60 "$@"
	why="no listener: $(cat listen.err)"
	has - event listening <<<"$line"
}

connect_ib() { # STATUS OPTION...
	run "$1" ipoib connect --json "${here[@]}" --peer-qpn 0x49 --timeout 60 "${@:2}" fe80::2
}

ib_exchange() {
	listen_ib --mtu 32772 --set starting_psn=0x1234 || return
	connect_ib 0 --set starting_psn=0xabcd --capture c.pcap && has out event disconnected || return
	end_job "$pid" "$fd" || return
	has rest event ended && has rest starting_psn 43981 && has out starting_psn 4660 || return
	has out remote_lid 2 || return
	grep '"dir":"received"' out | has - private_data '00000049000080[0-9a-f]*' || return
	run 0 ipoib mad --json c.pcap && why="messages: $(field message <out | tr '\n' ' ')" &&
		[ "$(field message <out | tr '\n' ' ')" = "REQ REP RTU DREQ DREP " ]
}

ib_reject() {
	listen_ib --reject 28 && connect_ib 3 && has out reason 28 && kill -TERM "$pid" &&
		end_job "$pid" "$fd"
}

# Its P_Key is the link's; a node with another does not get in.
ib_pkey() {
	listen_ib --pkey 0x8123 --qkey 0x80000001 --link-mtu 1024 --lifetime 14 || return
	run 1 ipoib connect "${here[@]}" --peer-qpn 0x49 fe80::2 &&
		says err "joining the link: the administration refuses it" && says err "try: see that --pkey" || return
	connect_ib 0 --pkey 0x8123 && has out mtu 3 && has out life 14 && end_job "$pid" "$fd"
}

# Two partitions next to the first: a limited member talks with a full one of its own, with no other.
ib_partitions() {
	local sa_pid sa_fd
	listen_ib --partition 0x8002 --partition 3 && sa_pid=$pid sa_fd=$fd || return
	start_job second.fifo second.err ipoib listen --json --port ib --gid fe80::3 --udp "$net.3:7100" \
		--sa "$net.2" --qpn 0x49 --count 1 --timeout 60 --pkey 0x8002
	why="no second listener: $(cat second.err)"
	has - event listening <<<"$line" || return
	run 1 ipoib connect "${here[@]}" --peer-qpn 0x49 --pkey 0x8003 fe80::3 && says err "no path to fe80::3" &&
		run 1 ipoib connect "${here[@]}" --peer-qpn 0x49 --pkey 0x8004 fe80::3 &&
		says err "joining the link: the administration refuses it" || return
	run 0 ipoib connect --json "${here[@]}" --peer-qpn 0x49 --timeout 60 --pkey 2 fe80::3 &&
		has out event disconnected && end_job "$pid" "$fd" || return
	kill -TERM "$sa_pid" && end_job "$sa_pid" "$sa_fd"
}

listen_for_a_while() { # without --count nobody has to come
	run 0 ipoib listen "${there[@]}" --timeout 0.2
}

ib_without_administration() {
	run 5 ipoib connect "${here[@]}" --peer-qpn 1 fe80::2 &&
		says err "port ib: joining the link: the administration does not answer" && says err "try: start the subnet"
}

ib_no_path() {
	listen_ib && run 1 ipoib connect "${here[@]}" --peer-qpn 1 fe80::3 &&
		says err "no path to fe80::3" && says err "try: start the peer" && kill -TERM "$pid" &&
		end_job "$pid" "$fd"
}

ib_address_of_another() {
	run 1 ipoib listen --port ib --gid fe80::1 --udp 192.0.2.99:4791 --sa 192.0.2.99 &&
		says err "port ib: UDP on 192.0.2.99:4791: Cannot assign" && says err "try: an address"
}

# examples/ib_accept.c, which is the agent by itself: on a subnet of its own, at the usual port
agent_alone() {
	local SESSCTL at=127.$((RANDOM % 200 + 20)).$(($$ % 250))
	SESSCTL=$(dirname "$sessctl_itself")/example-ib_accept
	start_job accept.fifo accept.err "$at.1" 1 10.9.0.1
	why="it says '$line': $(cat accept.err)"
	[ "$line" = waiting ] || return
	SESSCTL=$sessctl_itself
	run 0 ipoib connect --json --port ib --gid fe80::2 --udp "$at.2:4791" --sa "$at.1" --linux \
		--peer-qpn 0x48 --timeout 60 fe80::1 || return
	end_job "$pid" "$fd" && why="it said $(cat rest)" &&
		[ "$(cut -d, -f1 rest | tr '\n' ' ')" = "RX_REQ RX_RTU RX_DREQ " ]
}

# Each error of connect and listen says what to try; the exit status says which kind it is.
ib_errors_advise() {
	local reason word
	run 5 ipoib connect "${here[@]}" --timeout 0.3 --peer-qpn 0x49 fe80::2 &&
		says err "  try: " || return
	while read -r reason word; do
		listen_ib --reject "$reason" && connect_ib 3 && says err "reason $reason " &&
			grep -q "  try: .*$word" err && kill -TERM "$pid" && end_job "$pid" "$fd" || return
	done <<-END
		1 queue pair
		3 too many
		8 --linux, or
		10 again
		28 private data
		99 every field
	END
	run 5 ipoib listen "${there[@]}" --count 1 --timeout 0.2 && says err "0 of 1 connections came" &&
		says err "  try: a longer --timeout"
}

sessctl_itself=$SESSCTL
test_case ipoib-ib-errors-advise ib_errors_advise
test_case ipoib-ib-exchange ib_exchange
test_case ipoib-agent-alone agent_alone
test_case ipoib-ib-reject ib_reject
test_case ipoib-ib-pkey ib_pkey
test_case ipoib-ib-partitions ib_partitions
test_case ipoib-listen-for-a-while listen_for_a_while
test_case ipoib-ib-without-administration ib_without_administration
test_case ipoib-ib-no-path ib_no_path
test_case ipoib-ib-address-of-another ib_address_of_another
test_case ipoib-ib-without-options bad "needs --gid, --udp and --sa" connect --port ib \
	--peer-qpn 1 fe80::2
test_case ipoib-ib-bad-gid bad "--gid: 'fe80' is not written" listen --port ib --gid fe80 \
	--udp 127.0.0.1:4791 --sa 127.0.0.1
test_case ipoib-ib-without-sa bad "--sa is needed" listen --port ib --gid fe80::1 --udp 127.0.0.1:4791
test_case ipoib-umad-with-options-of-ib bad "go with --port ib" listen --gid fe80::1
test_case ipoib-umad-with-sa bad "go with --port ib" listen --sa 127.0.0.1

# ---- bridge ----

bridge() { # OPTION...: one that could run, but for what follows
	run "$expected" ipoib bridge --tun ddps0 --gid fe80::1 --udp "$net.9:4791" --sa "$net.9" --ip 10.9.0.1/24 "$@"
}

bridge_bad() { # TEXT OPTION...
	local text=$1 expected=2
	shift
	bridge "$@" && says err "$text" && says err "try: sessctl ipoib bridge --help"
}

bridge_fails() { # TEXT ADVICE OPTION...
	local text=$1 advice=$2 expected=1
	shift 2
	bridge "$@" && says err "$text" && says err "try: $advice"
}

bridge_address_in_use() {
	local port status input
	run 0 ipoib bridge --help || return
	coproc HOLDER { exec python3 -c 'import socket, sys
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("127.0.0.1", 0))
print(u.getsockname()[1], flush=True)
sys.stdin.read()'; }
	read -r port <&"${HOLDER[0]}"
	bridge_fails "UDP on 127.0.0.1:$port: Address already in use" "another port" \
		--udp "127.0.0.1:$port" --sa 127.0.0.1
	status=$?
	input=${HOLDER[1]}
	exec {input}>&-
	wait "$HOLDER_PID"
	return $status
}

bridge_no_permission() {
	local SESSCTL=$work/unprivileged
	printf '#!/bin/sh\nexec setpriv --bounding-set=-net_admin --inh-caps=-net_admin %q "$@"\n' \
		"$sessctl_itself" >"$SESSCTL"
	chmod +x "$SESSCTL"
	bridge_fails "ddps0: making the device: Operation not permitted" "run it as root or with CAP_NET_ADMIN"
}

bridge_nobody_there() {
	run 1 ipoib bridge status --tun ddps-none && says err "no bridge on ddps-none" &&
		run 1 ipoib bridge down --tun ddps-none && says err "no bridge on ddps-none" &&
		run 2 ipoib bridge status && says err "--tun is needed"
}

test_case ipoib-bridge-without-options bad "--tun is needed" bridge
test_case ipoib-bridge-unknown-word bad "'sideways' is nothing" bridge sideways
test_case ipoib-bridge-long-name bridge_bad "1 to 15 characters" --tun ddps012345678901
test_case ipoib-bridge-pattern-as-name bridge_bad "no name of a device" --tun ib%d
test_case ipoib-bridge-bad-gid bridge_bad "--gid: 'fe80' is not written" --gid fe80
test_case ipoib-bridge-bad-mode bridge_bad "--mode: 'rd' is not" --mode rd
bridge_verbs() { # STATUS TEXT OPTION...
	run "$1" ipoib bridge --tun ddps0 --ip 10.9.0.1/24 "${@:3}" && says err "$2"
}

test_case ipoib-bridge-verbs-without-such-a-device bridge_verbs 1 "port verbs: " --port verbs:none9
test_case ipoib-bridge-verbs-number bridge_verbs 2 "numbers its queue pairs" --port verbs --qpn 9
test_case ipoib-bridge-verbs-pkey bridge_verbs 2 "are no P_Keys" --port verbs --pkey 0x8000
test_case ipoib-bridge-verbs-with-options-of-ib bridge_bad "go with --port ib" --port verbs
test_case ipoib-bridge-verbs-port bridge_verbs 2 "is not ib, verbs" --port verbs:none9:0
test_case ipoib-listen-verbs-without-such-a-device run 1 ipoib listen --port verbs:none9
test_case ipoib-bridge-unknown-port bridge_bad "--port: 'usb' is not ib" --port usb
test_case ipoib-bridge-without-sa bad "--sa is needed" bridge --tun ddps0 --gid fe80::1 \
	--udp 127.0.0.1:4791 --ip 10.9.0.1/24
test_case ipoib-bridge-ib-other-net bridge_bad "no address in the same /24" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.1.2
test_case ipoib-bridge-ib-ipv6 bridge_bad "--port ib needs IPv4" --port ib --udp '[::1]:4791' --sa ::1
test_case ipoib-bridge-ib-link-mtu bridge_bad "1500 is not 256, 512" --port ib --udp 127.0.0.1:4791 \
	--sa 127.0.0.1 --link-mtu 1500
test_case ipoib-bridge-ib-qkey-of-others bridge_bad "that is elsewhere" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.0.2 --qkey 5
test_case ipoib-bridge-ib-lifetime-of-others bridge_bad "that is elsewhere" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.0.2 --lifetime 14
test_case ipoib-bridge-ib-lifetime-32 bridge_bad "from 0 to 31, not '32'" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.0.1 --lifetime 32
test_case ipoib-bridge-verbs-lifetime bridge_verbs 2 "go with --port ib" --port verbs --lifetime 14
test_case ipoib-bridge-ib-pkey bridge_bad "0 and 0x8000 are no P_Keys" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.0.1 --pkey 0x8000
test_case ipoib-bridge-partition-of-others bridge_bad "that is elsewhere" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.0.2 --partition 0x8002
test_case ipoib-bridge-partition-twice bridge_bad "bit 15 makes no other partition" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.0.1 --partition 0x8002 --partition 2
test_case ipoib-bridge-partition-no-key bridge_bad "'0x18002' is no P_Key" --port ib \
	--udp 127.0.0.1:4791 --sa 127.0.0.1 --partition 0x18002
test_case ipoib-bridge-mtu-1283 bridge_bad "1283 is not 1284 to 65524" --mtu 1283
test_case ipoib-bridge-mtu-65525 bridge_bad "65525 is not 1284 to 65524" --mtu 65525
test_case ipoib-bridge-qpn-1 bridge_bad "0, 1 and 0xffffff are taken" --qpn 1
test_case ipoib-bridge-name-as-address bridge_bad "'localhost:3' is no address and port" --udp localhost:3
test_case ipoib-bridge-without-address bridge_bad "':7000' is no address and port" --udp :7000
test_case ipoib-bridge-prefix-33 bridge_bad "'10.0.0.1/33' is not of the form" --ip 10.0.0.1/33
test_case ipoib-bridge-prefix-missing bridge_bad "'fd00::1' is not of the form" --ip fd00::1
test_case ipoib-bridge-two-ipv4 bridge_bad "one IPv4 and 4 IPv6" --ip 10.0.0.2/24
test_case ipoib-bridge-address-of-another bridge_fails "UDP on 192.0.2.99:7: Cannot assign" \
	"an address that" --udp 192.0.2.99:7 --sa 192.0.2.99
test_case ipoib-bridge-address-in-use bridge_address_in_use
if [ ! -c /dev/net/tun ]; then
	test_case ipoib-bridge-no-tun bridge_fails "/dev/net/tun: opening it: No such file" "modprobe tun"
elif [ "$(id -u)" != 0 ]; then
	test_case ipoib-bridge-no-permission bridge_fails "not permitted" "run it as root"
else
	test_case ipoib-bridge-no-permission bridge_no_permission
fi
test_case ipoib-bridge-no-capture bridge_fails "capture './no/dir': No such file" "a file in" \
	--capture ./no/dir
test_case ipoib-bridge-nobody-there bridge_nobody_there
test_case ipoib-sim-chart sim_chart
test_case ipoib-sim-repeats sim_repeats
test_case ipoib-sim-scenario sim_scenario
test_case ipoib-sim-bad-verb sim_bad "no such verb" "5 sned 0 1"
test_case ipoib-sim-bad-node sim_bad "no such node" "5 send 0 3"
test_case ipoib-sim-bad-length sim_bad "send takes two nodes" "5 send 0 1 65001"
test_case ipoib-sim-bad-time sim_bad "a line is" "x send 0 1"
test_case ipoib-sim-no-file run 1 ipoib sim missing
test_case ipoib-sim-one-node bad "2 to 200" sim --nodes 1
test_case ipoib-completion completion
finish
