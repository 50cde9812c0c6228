# SPDX-License-Identifier: BSD-2-Clause
# The summary in docs/performance.md, of a table that make bench writes into docs/measurements/FAMILY.md:
# five jobs, each beside the strongest program that was measured with it, and beside the strongest library for RDMA or SCTP.
# With head=1 of that page itself: its first lines, from the least to the largest ratio of all its summaries.
# usage: awk -f summary.awk TABLE
#        awk -v head=1 -f summary.awk docs/performance.md
BEGIN {
	FS = " *[|] *"
	n = split("write 1M, crc off;send 64, depth 128;ping 64;send 4K, 256 sessions;write 64K, sctp, 1500", jobs, ";")
	split("bulk: RDMA Writes of 1 MiB, CRC off;small messages: Sends of 64 octets, 128 under way;" \
		"latency: round trips of 64 octets, both sides poll;many sessions: Sends of 4 KiB on 256 sessions;" \
		"SCTP: Writes of 64 KiB, packets of 1500 octets", names, ";")
}
$6 ~ /^[0-9.]+$/ && $3 != "best of them" {
	least($2 ";any")
	if ($3 ~ /^(libfabric|ucx|usrsctp)$/)
		least($2 ";library")
}
function least(key) {
	if (!(key in ratio) || $6 + 0 < ratio[key] + 0) {
		ratio[key] = $6
		peer[key] = $3
		theirs[key] = $5
		ours[key] = $4
	}
}
head && /^<!-- summary / { inside = 1 }
head && /^<!-- end of summary / { inside = 0 }
head && inside && $5 ~ /^[0-9.]+$/ {
	job = $2
	sub(/:.*/, "", job)
	if (!(job in seen))
		heads[++jobs_seen] = job
	seen[job]
	range(job, $6, $7)
	range(job ";any", $4, $5)
}
# The least and the largest ratio, and against whom.
function range(key, against, by) {
	sub(/, [0-9.]+ [A-Za-z\/]+$/, "", against)
	if (!(key in low) || by + 0 < low[key])
		low[key] = by + 0
	if (!(key in high) || by + 0 > high[key])
		high[key] = by + 0
	if (!(key in who))
		who[key] = against
	else if (!index("; " who[key] "; ", "; " against "; "))
		who[key] = who[key] "; " against
}
function span(key,   form) {
	form = low[key] < 2 ? "%.2f to %.2f" : low[key] < 10 ? "%.1f to %.1f" : "%.0f to %.0f"
	return sprintf(form (low[key] < 1 ? " of" : " times"), low[key], high[key])
}
function show_head(job,   any) {
	any = job ";any"
	printf "* **%s%s**: %s the rate of the strongest library (%s)", toupper(substr(job, 1, 1)), substr(job, 2), span(job), who[job]
	if (span(any) who[any] != span(job) who[job])
		printf ";\n  %s that of the strongest program of any kind (%s)", span(any), who[any]
	print "."
}
function show(key) {
	return key in ratio ? peer[key] ", " theirs[key] " | " ratio[key] : "not measured | "
}
END {
	if (head) {
		for (i = 1; i <= jobs_seen; i++)
			show_head(heads[i])
		exit
	}
	print "| job | ours | strongest peer | ratio | strongest library | ratio |"
	print "|---|---:|---|---:|---|---:|"
	for (i = 1; i <= n; i++)
		print "| " names[i] " | " ours[jobs[i] ";any"] " | " show(jobs[i] ";any") " | " show(jobs[i] ";library") " |"
}
