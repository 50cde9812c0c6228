# SPDX-License-Identifier: BSD-2-Clause
# Which requirements a Criterion test names: "suite::test id id ...", from test sources.
# A test starts at column 1 with MACRO(suite, name and ends at the brace of its body.
/^[A-Za-z_]+\(/ { text = ""; on = 1 }
on { text = text " " $0 }
on && (/^\{/ || /\{$/ || /^}/) {
	on = 0
	head = text
	sub(/^ *[A-Za-z_]+\( */, "", head)
	if (split(head, part, /[ ,)]+/) >= 2 && match(text, /\.description *=/)) {
		ids = ""
		rest = substr(text, RSTART)
		while (match(rest, /[0-9][0-9][0-9][0-9]-[0-9A-Za-z.]+-[0-9a-z]+/)) {
			ids = ids " " substr(rest, RSTART, RLENGTH)
			rest = substr(rest, RSTART + RLENGTH)
		}
		if (ids != "")
			print part[1] "::" part[2] ids
	}
}
