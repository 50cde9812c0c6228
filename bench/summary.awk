# SPDX-License-Identifier: BSD-2-Clause
# The summary in docs/performance.md, of a table that make bench writes into docs/measurements/FAMILY.md:
# five jobs, each beside the strongest program that was measured with it, and beside the strongest library for RDMA or SCTP.
# usage: awk -f summary.awk TABLE
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
function show(key) {
	return key in ratio ? peer[key] ", " theirs[key] " | " ratio[key] : "not measured | "
}
END {
	print "| job | ours | strongest peer | ratio | strongest library | ratio |"
	print "|---|---:|---|---:|---|---:|"
	for (i = 1; i <= n; i++)
		print "| " names[i] " | " ours[jobs[i] ";any"] " | " show(jobs[i] ";any") " | " show(jobs[i] ";library") " |"
}
