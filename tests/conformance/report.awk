# SPDX-License-Identifier: BSD-2-Clause
# docs/conformance.md from three inputs, told apart by the variable "kind":
#   reqs    id, level, who, rule, why it cannot be tested or "-"	(tab separated, in order)
#   unit    suite::test id id ...			(ids.awk; all of them pass, or the build fails)
#   wire    case, wire, result, ids			(tab separated, from sessctl conform)
# Problems go to the file "problems", one a line.
BEGIN { FS = "\t" }
function trouble(text) { print text > problems }
function cover(id, what, bad) {
	if (!(id in rule)) {
		trouble(what " names " id ", which no table of requirements has")
		return
	}
	if (index(" " cases[id] " ", " " what " "))
		return
	cases[id] = cases[id] (cases[id] == "" ? "" : " ") what
	if (bad)
		failed[id] = 1
}
/^#/ && kind == "reqs" { next }
kind == "reqs" {
	if (NF != 5 || $5 == "")
		trouble("requirement row with " NF " fields: " $0)
	if ($1 in rule)
		trouble("requirement " $1 " is there twice")
	order[++n] = $1
	level[$1] = $2
	who[$1] = $3
	rule[$1] = $4
	why[$1] = $5
	next
}
kind == "unit" {
	m = split($0, part, " ")
	for (i = 2; i <= m; i++)
		cover(part[i], part[1], 0)
	next
}
kind == "wire" {
	m = split($4, part, " ")
	for (i = 1; i <= m; i++)
		cover(part[i], $1, $3 == "fail")
	onwire[$1] = onwire[$1] (onwire[$1] == "" ? "" : ", ") $2
	next
}
# Where an id comes from: an RFC, or another suite.
function source(x) {
	sub(/^0+/, "", x)
	return x == "etsi" ? "ETSI TS 102 369" : x == "pkdr" ? "packetdrill" : "RFC " x
}
function class(l) {
	return l ~ /MUST|purpose/ ? "MUST" : l ~ /SHOULD|RECOMMENDED/ ? "SHOULD" : "other"
}
function percent(a, b) { return b ? sprintf("%d of %d (%d %%)", a, b, int(100 * a / b)) : "none" }
# Said to be missing: it counts as a rule without a case, but is no surprise.
function undone(id) { return why[id] ~ /^not done/ }
function tick(id) {
	return failed[id] ? "**fails**" : cases[id] != "" ? "passes" : undone(id) ? "**not done**" : why[id] != "-" ? "not testable" : "no case"
}
function shown(id,   p, k, i, text) {
	if (cases[id] == "")
		return why[id] == "-" ? "" : why[id]
	k = split(cases[id], p, " ")
	for (i = 1; i <= k; i++)
		text = text (i == 1 ? "" : ", ") "`" p[i] "`"
	return text
}
END {
	print "# Conformance"
	print ""
	print "Every requirement of the RFCs that this project implements, and the cases that would fail"
	print "if it were broken. Made by `make conformance`; CI compares. A case such as `mpa-...` runs"
	print "over the wire: `sessctl conform --self tcp --case NAME` (or `sctp`, `shm`), and against others"
	print "with a URI; those of RFC 4391, 4392 and 4755 by `sessctl ipoib conform --self ours --case NAME`."
	print "A case such as `suite::test` is a unit or end-to-end test: `make unit T=suite`."
	print "The rules of RFC 7053 (the I bit) are rows of RFC 9260, which has taken their place. RFC 9260 has"
	print "no ECN any more: its chunks and its parameter are unknown ones, by 9260-3.2-d1 and 9260-3.2.1-d1."
	print "A rule that cannot be broken or seen here has its reason instead; one that is not done says so."
	print ""
	print "ETSI TS 102 369 has test purposes for SCTP, and packetdrill has scripts; each has a row here, in our words."
	print "Purposes that take minutes are unit tests with a clock of their own, the others run on the wire: in UDP by"
	print "`--self sctp`, directly on IP by `tests/netns/on_ip.sh`."
	print ""
	print "| source | MUST, MUST NOT and purposes, covered | SHOULD, covered | other, covered | not testable |"
	print "|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		id = order[i]
		rfc = substr(id, 1, 4)
		if (!(rfc in seen)) {
			seen[rfc] = 1
			rfcs[++nr] = rfc
		}
		c = class(level[id])
		if (why[id] != "-" && !undone(id) && cases[id] == "") {
			not_testable[rfc]++
			continue
		}
		all[rfc, c]++
		if (cases[id] != "")
			got[rfc, c]++
		else if (c == "MUST" && !undone(id))
			trouble("no case covers " id " (" level[id] "): " rule[id])
		else if (c == "SHOULD" && undone(id))
			later[rfc]++
		if (failed[id])
			trouble("a case of " id " fails")
	}
	for (r = 1; r <= nr; r++) {
		x = rfcs[r]
		printf "| %s | %s | %s | %s | %d |\n", source(x), percent(got[x, "MUST"], all[x, "MUST"]),
			percent(got[x, "SHOULD"], all[x, "SHOULD"]),
			percent(got[x, "other"], all[x, "other"]), not_testable[x]
		if (all[x, "SHOULD"] && got[x, "SHOULD"] < 0.9 * (all[x, "SHOULD"] - later[x]))
			trouble("RFC " x ": fewer than 90 % of the SHOULD rows are covered")
	}
	for (r = 1; r <= nr; r++) {
		print ""
		print "## " source(rfcs[r])
		print ""
		print "| id | level | rule | cases, or why there is none | result |"
		print "|---|---|---|---|---|"
		for (i = 1; i <= n; i++) {
			id = order[i]
			if (substr(id, 1, 4) == rfcs[r])
				printf "| %s | %s | %s | %s | %s |\n", id, level[id], rule[id], shown(id), tick(id)
		}
	}
}
