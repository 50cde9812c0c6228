#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# From the samples of run.sh: the table, results.csv and the plots.  usage: report.sh OUT [--docs]
#
# --docs: the summary and plots go into docs/performance.md, too, and the table into docs/measurements/FAMILY.md.
set -u
out=$1
here=$(cd "$(dirname "$0")" && pwd)
docs=$here/../docs

# Whose processor: its page is docs/measurements/FAMILY.md
family() {
	case $(sed -n 's/^vendor_id\s*: //p' /proc/cpuinfo | head -n 1) in
	AuthenticAMD) echo amd ;;
	GenuineIntel) echo intel ;;
	*) uname -m ;;
	esac
}

# The page of this processor: what it was measured on, the table, the reasons for what it misses; and its
# summary in docs/performance.md.
into_docs() {
	local page=$docs/performance.md family name
	family=$(family)
	name=$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1 | sed 's/(R)//g; s/ *Processor//')
	awk -f "$here/missed.awk" "$here/reasons.tsv" "$out/table.md" >"$out/missed"
	{
		printf '# Measured on %s\n\n%s cores, Linux %s; %s, in %s.\n\n' "$name" "$(nproc)" "$(uname -r)" \
			"$(date -u +%F)" "$(cat "$out/took")"
		printf 'What the cases and the peers are, and how to read the table: [measurements](../measurements.md).\n\n'
		cat "$out/table.md"
		printf '\n## What is missed, and why\n\n'
		printf 'Each line has the ratio and the target. If the spread of a row includes its target, the target is reached on\n'
		# shellcheck disable=SC2016 # Markdown
		printf 'some days. The reasons are in `bench/reasons.tsv`.\n\n'
		sed '$d' "$out/missed"
	} >"$docs/measurements/$family.md"
	{
		printf '[%s](measurements/%s.md):\n\n' "$name" "$family"
		awk -f "$here/summary.awk" "$out/table.md"
		echo
	} >"$out/summary"
	grep -qx "<!-- summary $family -->" "$page" ||
		echo "$page has no place for $family: give it the marks <!-- summary $family --> and <!-- end of summary $family -->" >&2
	awk -v mark="summary $family" -v file="$out/summary" -f "$here/between.awk" <"$page" >"$out/page" && mv "$out/page" "$page"
	{ awk -v head=1 -f "$here/summary.awk" "$page" && echo; } >"$out/head"
	awk -v mark=head -v file="$out/head" -f "$here/between.awk" <"$page" >"$out/page" && mv "$out/page" "$page"
	cp "$out"/sizes.svg "$out"/sessions.svg "$out"/growth.svg "$docs"
}

jq -r '[.case, .peer, .target, .unit, .ours, .theirs, .missing] | @tsv' "$out/samples.json" |
	awk -F'\t' -v csv="$out/results.csv" -v md="$out/table.md" '
function sort(v, n,   i, j, x) {
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && v[j] > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
}
function median(v, n) {
	sort(v, n)
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function show(x, unit) {
	if (unit == "B")
		return sprintf("%.0f B", x)
	if (unit == "B/cpu")
		return sprintf("%.0f MB/cpu s", x / 1e6)
	if (unit == "s")
		return sprintf("%.1f ms", x * 1e3)
	if (unit == "s/M")
		return sprintf("%.2f s", x)
	if (unit == "each")
		return sprintf("%.1f", x)
	if (unit == "1")
		return sprintf("%.2f", x)
	return unit == "B/s" ? sprintf("%.0f MB/s", x / 1e6) : sprintf("%.1f k/s", x / 1e3)
}
{
	key = $1 FS $2
	if (!(key in n)) {
		order[++keys] = key
		n[key] = 0
	}
	target[key] = $3
	unit[key] = $4
	if ($7 != "")
		missing[key] = $7
	if ($5 == "" || $6 == "" || $5 <= 0 || $6 <= 0) {
		failed[key] += $7 == ""
		next
	}
	i = ++n[key]
	ours[key, i] = $5
	theirs[key, i] = $6
}
END {
	print "case,peer,unit,pairs,ours,theirs,ratio,ratio_low,ratio_high,target" >csv
	line = "%-23s %-14s %12s %12s %6s %13s %7s  %s\n"
	row = "| %s | %s | %s | %s | %s | %s | %s | %s |\n"
	printf line, "case", "peer", "ours", "peer", "ratio", "spread", "target", ""
	printf row, "case", "peer", "ours", "peer", "ratio", "spread", "target", "" >md
	print "|---|---|---:|---:|---:|---|---|---|" >md
	for (k = 1; k <= keys; k++) {
		key = order[k]
		split(key, name, FS)
		goal = target[key] ? ">= " target[key] : "-"
		if (!n[key]) {
			why = (key in missing) ? missing[key] : "no pair came about"
			printf line, name[1], name[2], "-", "-", "-", "-", goal, why
			printf row, name[1], name[2], "", "", "", "", goal, why >md
			continue
		}
		for (i = 1; i <= n[key]; i++) {
			a[i] = ours[key, i]
			b[i] = theirs[key, i]
			# of memory, time and switches less is better
			r[i] = unit[key] ~ /^(B|s|s.M|each)$/ ? b[i] / a[i] : a[i] / b[i]
		}
		ratio = median(r, n[key])
		am = median(a, n[key])
		bm = median(b, n[key])
		verdict = target[key] == 0 ? "" : ratio + 0.005 >= target[key] ? "met" : "MISSED"
		if (failed[key])
			verdict = verdict " (" failed[key] " samples failed)"
		spread = sprintf("%.2f..%.2f", r[1], r[n[key]])
		ratio_text = sprintf("%.2f", ratio)
		printf line, name[1], name[2], show(am, unit[key]), show(bm, unit[key]), ratio_text,
			spread, goal, verdict
		printf row, name[1], name[2], show(am, unit[key]), show(bm, unit[key]), ratio_text,
			spread, goal, verdict >md
		printf "\"%s\",\"%s\",%s,%d,%.6g,%.6g,%.4f,%.4f,%.4f,%s\n", name[1], name[2],
			unit[key], n[key], am, bm, ratio, r[1], r[n[key]], target[key] >csv
	}
}' | tee "$out/table.txt"

if ! command -v gnuplot >/dev/null; then
	echo "no plots: gnuplot is not installed"
	exit 0
fi
for op in write read send ping; do
	jq -r "select(.op == \"$op\") | [.size, .bytes_per_second / 1e6, .lat_us.p50,
		.cpu_seconds.local / (.bytes_per_second * .seconds / 1e9)] | @tsv" \
		"$out/sizes.json" >"$out/$op.tsv"
done
jq -r 'select(.peer == "best of them" and .ours) |
	[(.case | capture(", (?<n>[0-9]+)").n), .ours / 1e3] | @tsv' \
	"$out/samples.json" | sort -n >"$out/sessions.tsv"
for op in register write endpoint ping ping-assoc; do
	jq -r "select(.op == \"$op\") | [.size, .ns_each / 1e3] | @tsv" "$out/growth.json" >"$out/growth-$op.tsv"
done
gnuplot <<EOF
set terminal svg size 1100,400
set output '$out/sizes.svg'
set multiplot layout 1,3 title 'TCP, CRC on, loopback'
set logscale xy
set xlabel 'octets'
set grid
set key top left
set ylabel 'MB/s'
plot for [op in 'write read send ping'] '$out/'.op.'.tsv' using 1:2 with linespoints title op
set ylabel 'median latency, us'
plot for [op in 'write read send ping'] '$out/'.op.'.tsv' using 1:3 with linespoints title op
set ylabel 'CPU seconds per GB, one side'
plot for [op in 'write read send ping'] '$out/'.op.'.tsv' using 1:4 with linespoints title op
unset multiplot
set terminal svg size 500,350
set output '$out/sessions.svg'
unset logscale
set logscale x 2
set yrange [0:*]
set title 'Sends of 4 KiB, TCP, CRC on, loopback'
set xlabel 'sessions'
set ylabel 'thousand a second'
plot '$out/sessions.tsv' using 1:2 with points notitle
set output '$out/growth.svg'
set title 'An operation among others: median or mean, us'
set xlabel 'how many there are'
set ylabel 'us'
set logscale x 10
set logscale y
set yrange [*:*]
set key outside right
plot '$out/growth-register.tsv' with linespoints title 'region registered, of regions', \
	'$out/growth-write.tsv' with linespoints title 'Write to any of the regions', \
	'$out/growth-endpoint.tsv' with linespoints title 'endpoint made, of endpoints', \
	'$out/growth-ping.tsv' with linespoints title 'ping of one TCP session', \
	'$out/growth-ping-assoc.tsv' with linespoints title 'ping of one SCTP association'
EOF
[ "${2:-}" != --docs ] || into_docs
