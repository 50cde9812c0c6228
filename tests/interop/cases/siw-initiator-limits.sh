# shellcheck shell=bash disable=SC2154 # variables of lib.sh
# SPDX-License-Identifier: BSD-2-Clause
# IRD and ORD at the edges with siw as initiator: it asks for 0, 1 and 128, we have 0 to 16382; what is
# in force is the smaller one.  129 its library refuses itself, its "as many as there are" is 128.
# A Reply that leaves the numbers to the applications (0x3FFF) it takes for an error.
# needs: sessctl
call() { # SIW'S OURS: one session; what siw_peer says is in $said
	listen "tcp://$HOST:0" --count 1 --ird "$2" --ord "$2"
	# sessctl gives no advert: siw_peer ends when it has the Reply
	said=$(guest "timeout 90 siw_peer -c $HOST -i $1 -o $1 $port" 2>&1 | tail -n 1) || true
}

in_force() { # SIW'S OURS SIW'S-CUT
	call "$1" "$2"
	[[ $said = *'no advert'* ]] || fail "$1 and $2: $said"
	host_wait listen || fail "$1 and $2: $(tail -n 1 "$work/listen.err")"
	expect "$work/listen.out" established role=responder enhanced=true peer_ird="$3" \
		peer_ord="$3" ird="$2" ord=$(($3 < $2 ? $3 : $2))
}

for theirs in 0 1 128; do
	for ours in 0 1 128 129 16382; do
		in_force $theirs $ours $theirs
	done
done
in_force 255 129 128
call 129 129
[[ $said = *'connect: Invalid argument' ]] || fail "129 asked for: $said"
kill "$pid_listen"
call 1 ulp
[[ $said = *'connect: Invalid argument' ]] || fail "0x3FFF in our Reply: $said"
expect "$work/listen.out" established peer_ird=1 peer_ord=1
