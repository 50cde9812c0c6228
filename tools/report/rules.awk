# SPDX-License-Identifier: BSD-2-Clause
# The table of rules of the conformance reports, in C, from tests/conformance/reqs/*.tsv: id, how much it
# binds, whom, and the rule in words.
BEGIN {
	FS = "\t"
	print "/* made of tests/conformance/reqs by tools/report/rules.awk */"
}
/^#/ || NF < 4 { next }
{
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	printf "{ \"%s\", \"%s\", \"%s\", \"%s\" },\n", $1, $2, $3, $4
}
