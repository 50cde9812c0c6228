# shellcheck shell=bash disable=SC2154 # variables of tests/interop/lib.sh
# SPDX-License-Identifier: BSD-2-Clause

measured() { # NAME COMMAND
	LAB_LIMIT=700 guest "export LD_LIBRARY_PATH=/opt/lib LLVM_PROFILE_FILE=/tmp/prof/guest-$1-%m.profraw
		timeout 680 $2" >"$work/$1" 2>&1 ||
		fail "$1: $(grep -a -m 1 '^\[FAIL\]\|^\[----\]\|^not ok' "$work/$1")"
}

# What only a kernel with SCTP runs, measured: our kernel backend, and the tester over the kernel's SCTP
# against our sessions on it, in both roles.  The profiles go to $build/prof.
# limit: 1500
# needs: unit e2e sessctl
case-kernel() {
	sctp_over_udp
	# One after the other: the guest has little memory.
	for f in unit e2e sessctl; do
		guest_install "$build/$f"
	done
	guest 'mkdir -p /tmp/prof'
	# Criterion starts its own file again, which must not be the dynamic linker.
	measured unit "/opt/libexec/unit --jobs 1 --color=never --filter 'sd_kernel/*'"
	measured e2e "/opt/libexec/e2e --jobs 1 --color=never --filter '*_kernel/*'"
	at="127.0.0.1:$PORT?backend=kernel"
	guest_start server "exec sessctl listen 'sctp://$at'"
	guest_listens "$PORT" sctp
	# Without the case of 65536 messages, for which the guest is too slow.
	measured responder "sessctl conform --timeout 60 --case '[!as]*' 'sctp://$at'"
	measured sessions "sessctl conform --timeout 60 --case 'sctp-[!s]*' 'sctp://$at'"
	measured initiator "sessctl conform --timeout 60 --case '[!as]*' --listen --then 'sessctl connect \"\$DDPS_URI\"' \
		'sctp://127.0.0.1:0?backend=kernel'"

	guest 'tar -C /tmp/prof -cf /tmp/prof.tar .'
	"$lab" pull /tmp/prof.tar "$work/prof.tar"
	tar -C "$build/prof" -xf "$work/prof.tar"
	detail "$(tar -tf "$work/prof.tar" | grep -c profraw) profiles"
}
