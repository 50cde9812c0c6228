#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# perftest over Linux's software devices, soft-iWARP and soft RoCE, and over ours, in turn, on the
# same processors of the guest of tests/interop: within one guest, and from one to another.  Beside
# latencies within a guest: round trips over its TCP of a program that only moves octets.
# usage: guest.sh OUT [--docs]    (BENCH=quick: once each, and the smallest and largest; BENCH_PART=within: that part)
#
# What counts is the ratio: the guest is emulated.  --docs: the table goes into docs/measurements.md, too.
# Exit status: 77 if there can be no guest here.
set -u
mkdir -p "$1"
out=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
lab=$here/../tests/interop/lab.sh
work=$(mktemp -d)
samples=$out/guest.tsv
kernel="siw rxe" plain=plain ours="tcp sctp shm" # plain, shm: within one guest
rounds=3 sizes="64 4096 65536 1048576" pairs="1 16"
[ "${BENCH-}" != quick ] || rounds=1 sizes="64 1048576"
export LAB_LIMIT=120

guest() { # NUMBER COMMAND
	LAB_ID=bench$1 "$lab" run "$2"
}

finish() {
	LAB_ID=bench1 "$lab" down
	LAB_ID=bench2 "$lab" down
	rm -rf "$work"
}

# Ours with the libraries that the guest lacks.
stage() {
	local f so
	make -s -C "$here/.." install DESTDIR="$work/all" prefix=/usr/local >"$work/log" 2>&1 || return
	make -s -C "$here/.." build/opt/peer_tcp >"$work/log" 2>&1 &&
		install -D "$here/../build/opt/peer_tcp" "$work/all/usr/local/bin/peer_tcp" || return
	for f in bin/sessctl bin/peer_tcp lib/libddpsess-verbs.so lib/ddpsess/libddpsess-view.so; do
		install -D -s "$work/all/usr/local/$f" "$work/stage/usr/local/$f" || return
		ldd "$work/all/usr/local/$f" | sed -nE 's/.*=> (\/[^ ]+) .*/\1/p'
	done | sort -u | while read -r so; do
		mkdir -p "$work/stage$(dirname "$so")"
		cp -L "$so" "$work/stage$so"
	done
	install -D "$here/guest_perf.sh" "$work/stage/usr/bin/guest_perf" &&
		tar -C "$work/stage" -cf "$work/stage.tar" .
}

boot() { # NUMBER on|off
	LAB_ID=bench$1 LAB_LINK=bench:$2 "$lab" up && LAB_ID=bench$1 "$lab" push "$work/stage.tar" /tmp/stage.tar &&
		guest "$1" "cd / && tar -tf /tmp/stage.tar | while read -r f; do
				[ -e \"\$f\" ] || tar -xf /tmp/stage.tar \"\$f\"; done
			rm /tmp/stage.tar
			modprobe -a crc32_generic udp_tunnel ip6_udp_tunnel && insmod /lib/siw/rdma_rxe.ko
			ip link set eth1 up && ip addr add 10.78.0.$1/24 dev eth1"
}

# one WHERE WIRE PROGRAM SIZE PAIRS: messages a second, or nothing
one() {
	local run="$2 $3 $4 $5" i value=
	for ((i = 0; i < 3; i++)); do
		if [ "$1" = within ]; then
			value=$(guest 1 "guest_perf both $run eth0 10.77.0.2" 2>"$work/why") && break
		else
			guest 2 "guest_perf serve $run eth1 10.78.0.2" &
			value=$(guest 1 "guest_perf ask $run eth1 10.78.0.2" 2>"$work/why") && break
			wait $!
		fi
	done
	wait
	value=$(grep -E '^[0-9.]+(e[+][0-9]+)?$' <<<"$value" | tail -n 1)
	[ -n "$value" ] || printf '  %s %s: %s\n' "$1" "$run" "$(tail -n 1 "$work/why")" >&2
	echo "$value"
}

measure() { # WHERE PROGRAM SIZE PAIRS
	local i wire
	for ((i = 0; i < rounds; i++)); do
		for wire in $kernel $plain $ours; do
			case $1,$wire,$2 in between,shm,* | between,plain,* | *,plain,*_bw) continue ;; esac
			printf '%s\t%s\t%s\n' "$1: $2, $3 octets, $4 queue pair$([ "$4" = 1 ] || echo s)" "$wire" "$(one "$1" "$wire" "$2" "$3" "$4")" \
				>>"$samples"
		done
	done
	printf '  %4d s  %s\n' "$SECONDS" "$*" >&2
}

# Median of each wire; ours as well as a multiple of the faster of the kernel's.
table() {
	awk -F'\t' -v kernel="$kernel" -v plain="$plain" -v ours="$ours" '
		function median(key, n, i, j, x, v) {
			for (i = 1; i <= n; i++) {
				x = of[key, i]
				for (j = i - 1; j > 0 && v[j] > x; j--)
					v[j + 1] = v[j]
				v[j + 1] = x
			}
			return n ? (n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2) : 0
		}
		{
			if (!($1 in seen)) {
				seen[$1]
				names[++cases] = $1
			}
			tried[$1, $2]
			if ($3 > 0)
				of[$1, $2, ++count[$1, $2]] = $3 + 0
		}
		END {
			wires = split(kernel " " plain " " ours, wire, " ")
			theirs = split(kernel, t, " ")
			head = "| messages a second |"
			line = "|---|"
			for (w = 1; w <= wires; w++) {
				head = head " " wire[w] " |"
				line = line "---:|"
			}
			print head "\n" line
			for (c = 1; c <= cases; c++) {
				best = 0
				row = "| " names[c] " |"
				for (w = 1; w <= wires; w++) {
					key = names[c] SUBSEP wire[w]
					m = median(key, count[names[c], wire[w]])
					if (w <= theirs && m > best)
						best = m
					row = row (m ? sprintf(" %.0f", m) : (names[c], wire[w]) in tried ? " none" : "")
					row = row (m && w > theirs && wire[w] != plain && best ? sprintf(" (%.2f)", m / best) : "") " |"
				}
				print row
			}
		}' "$samples"
}

"$lab" packages && "$lab" build || exit
if why=$("$lab" lacking); then
	echo "bench: no guest: $why" >&2
	exit 77
fi
trap finish EXIT
trap "exit 130" INT TERM
: >"$samples"
if ! stage || ! boot 1 on || ! boot 2 off; then
	tail -n 5 "$work/log" >&2
	echo "bench: the guests do not come up" >&2
	exit 1
fi
for where in ${BENCH_PART:-within between}; do
	for op in write read send; do
		for size in $sizes; do
			for n in $pairs; do
				measure "$where" "ib_${op}_bw" "$size" "$n"
			done
			measure "$where" "ib_${op}_lat" "$size" 1
		done
	done
done
table | tee "$out/guest.md"
if [ "${2-}" = --docs ]; then
	page=$here/../docs/measurements.md
	{
		printf 'Guests with 2 processors of QEMU (%s), Linux %s, on %s cores of %s; %s, median of %s.\n\n' \
			"$(guest 1 "sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1")" "$(guest 1 'uname -r')" "$(nproc)" \
			"$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)" "$(date -u +%F)" "$rounds"
		cat "$out/guest.md"
		echo
	} >"$out/guest.part"
	awk -v mark=guest -v file="$out/guest.part" -f "$here/between.awk" <"$page" >"$out/page" && mv "$out/page" "$page"
fi
