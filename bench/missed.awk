# SPDX-License-Identifier: BSD-2-Clause
# The rows of a table of report.sh whose target is missed, each with its figures and the reason.
# usage: awk -f missed.awk REASONS TABLE
#
# A line of REASONS has a pattern of cases, one of peers, and a text, between tabs.  The first that fits is
# taken; rows with the same one stand together.  {CASE|PEER} in a text is the ratio of that row of the table.

FNR == NR {
	if (/^#/ || NF == 0)
		next
	split($0, f, "\t+")
	of_case[++reasons] = f[1]
	of_peer[reasons] = f[2]
	text[reasons] = f[3]
	next
}

/^\| .* \| .* \|/ && !/^\| case / {
	split($0, f, / *[|] */)
	ratio[f[2] "|" f[3]] = f[6]
	if (f[9] !~ /^MISSED/)
		next
	r = 0
	for (i = 1; i <= reasons && !r; i++)
		if (f[2] ~ "^(" of_case[i] ")$" && f[3] ~ "^(" of_peer[i] ")$")
			r = i
	asked = f[8]
	sub(/^>= /, "", asked)
	if (!(r in rows) || !r)
		order[++groups] = r
	if (!r)
		alone[groups] = row(f)
	else
		rows[r] = rows[r] row(f)
}

function row(f) {
	return sprintf("* **%s**, compared with *%s*: %s of %s\n", f[2], f[3], f[6], asked)
}

# The text with its figures, in lines that are not too long
function filled(s,   name) {
	while (match(s, /\{[^}]*\}/)) {
		name = substr(s, RSTART + 1, RLENGTH - 2)
		s = substr(s, 1, RSTART - 1) ((name in ratio) && ratio[name] != "" ? ratio[name] : "(not measured)") \
			substr(s, RSTART + RLENGTH)
	}
	return folded(s)
}

function folded(s,   n, w, i, line, out) {
	n = split(s, w, " ")
	for (i = 1; i <= n; i++) {
		if (length(line) + length(w[i]) > 108) {
			out = out line "\n"
			line = ""
		}
		line = line (line == "" ? "" : " ") w[i]
	}
	return out line "\n"
}

END {
	if (!groups)
		print "Each target is met.\n"
	for (i = 1; i <= groups; i++) {
		r = order[i]
		printf "%s\n%s\n", r ? rows[r] : alone[i], r ? filled(text[r]) : "Why is not known.\n"
	}
}
