# SPDX-License-Identifier: BSD-2-Clause
# Which requirements a Criterion test names: "suite::test id id ...", from test sources: RFC-section-number,
# or a purpose of another suite, etsi-... and pkdr-....
# A test starts at column 1 with Test(suite, name, or a macro of its file that stands for that,
# and ends at the brace of its body.
FNR == 1 { delete macro }
/^#define [A-Za-z]+\(name, ids\)/ {
	while (/\\$/ && (getline more) > 0)
		$0 = substr($0, 1, length($0) - 1) more
	split($0, part, /[ (,)]+/)
	macro[part[2]] = part[6]
}
/^[A-Za-z_][A-Za-z0-9_]*\(/ { text = ""; on = 1 }
on { text = text " " $0 }
on && (/^\{/ || /\{$/ || /^}/) {
	on = 0
	split(text, part, /[ (,)]+/)
	if (part[2] in macro)
		test = macro[part[2]] "::" part[3]
	else if (match(text, /\.description *=/)) {
		test = part[3] "::" part[4]
		text = substr(text, RSTART)
	} else {
		if (text ~ /^ [A-Za-z]+Test\(.*"[0-9][0-9][0-9][0-9]-[0-9]/) {
			print "not ok " FILENAME ": no macro of this file:" text >"/dev/stderr"
			exit 1
		}
		next
	}
	ids = ""
	while (match(text, /[0-9][0-9][0-9][0-9]-[0-9A-Za-z.]+-[0-9a-z]+|(etsi|pkdr)(-[0-9a-z]+)+/)) {
		ids = ids " " substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
	}
	if (ids != "")
		print test ids
}
