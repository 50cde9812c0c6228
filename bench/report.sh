#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# From the samples of run.sh: the table, results.csv and the plots.  usage: report.sh OUT
set -u
out=$1

jq -r '[.case, .peer, .target, .unit, .ours, .theirs, .missing] | @tsv' "$out/samples.json" |
	awk -F'\t' -v csv="$out/results.csv" '
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
	printf line, "case", "peer", "ours", "peer", "ratio", "spread", "target", ""
	for (k = 1; k <= keys; k++) {
		key = order[k]
		split(key, name, FS)
		if (!n[key]) {
			printf line, name[1], name[2], "-", "-", "-", "-", ">= " target[key],
				key in missing ? missing[key] " is not there" : "no pair came about"
			continue
		}
		for (i = 1; i <= n[key]; i++) {
			a[i] = ours[key, i]
			b[i] = theirs[key, i]
			r[i] = a[i] / b[i]
		}
		ratio = median(r, n[key])
		am = median(a, n[key])
		bm = median(b, n[key])
		verdict = target[key] == 0 ? "" : ratio >= target[key] ? "met" : "MISSED"
		if (failed[key])
			verdict = verdict " (" failed[key] " samples failed)"
		printf line, name[1], name[2], show(am, unit[key]), show(bm, unit[key]),
			sprintf("%.2f", ratio), sprintf("%.2f..%.2f", r[1], r[n[key]]),
			target[key] ? ">= " target[key] : "-", verdict
		printf "\"%s\",\"%s\",%s,%d,%.6g,%.6g,%.4f,%.4f,%.4f,%s\n", name[1], name[2],
			unit[key], n[key], am, bm, ratio, r[1], r[n[key]], target[key] >csv
	}
}' | tee "$out/table.txt"

command -v gnuplot >/dev/null || {
	echo "no plots: gnuplot is not installed"
	exit 0
}
for op in write read send ping; do
	jq -r "select(.op == \"$op\") | [.size, .bytes_per_second / 1e6, .lat_us.p50,
		.cpu_seconds.local / (.bytes_per_second * .seconds / 1e9)] | @tsv" \
		"$out/sizes.json" >"$out/$op.tsv"
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
EOF
