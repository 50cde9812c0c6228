# SPDX-License-Identifier: BSD-2-Clause
# What pages name and promise is there: of docs.sh.  job is page or promises; tests, words and paths are
# files with a name a line.
# usage: awk -v job=JOB -v tests=FILE -v words=FILE -v paths=FILE -f docs.awk INPUT
BEGIN {
	FS = "\t"
	while ((getline line <tests) > 0)
		test[line]
	while ((getline line <words) > 0)
		word[line]
	while ((getline line <paths) > 0) {
		path[line]
		while (sub(/\/[^\/]*$/, "", line))
			folder[line]
	}
}

# text(FILE): all of it without the stars of comments, on one line; "" if there is no such file
function text(file, line, all) {
	if (file in texts || !(file in path))
		return texts[file]
	while ((getline line <file) > 0) {
		sub(/^[ \t]*\/?\*+ ?/, "", line)
		sub(/\*\//, "", line)
		all = all " " line
	}
	close(file)
	gsub(/[ \t\r\n]+/, " ", all)
	return texts[file] = all " "
}

# exists(NAME): a test, a file, or FILE#WORD where FILE has the word, such as a case of a script
function exists(name, at, w) {
	if (name in test || name in path || name in folder || !(at = index(name, "#")))
		return name in test || name in path || name in folder
	w = substr(name, at + 1)
	gsub(/[].+*?(){}^$|\\[]/, "\\\\&", w)
	return text(substr(name, 1, at - 1)) ~ ("(^|[^A-Za-z0-9_])" w "([^A-Za-z0-9_]|$)")
}

job == "page" && /^[a-z0-9_.\/-]+\/[a-z0-9_.\/-]+$/ {
	if (!exists($0))
		print $0 ": no such test or file"
	next
}
job == "page" && (/^(struct )?(ddps_)?[a-z0-9_]+$/ || /^DDPSESS_/) {
	sub(/^struct /, "")
	if (!($0 in word))
		print $0 ": in no header"
}

job == "promises" && !/^#/ {
	if (!index(text($1), $3))
		print $1 ": " $2 ": not there: " $3
	if ($4 == "")
		print $1 ": " $2 ": no test"
	n = split($4, name, " ")
	for (i = 1; i <= n; i++)
		if (!exists(name[i]))
			print $1 ": " $2 ": no such test: " name[i]
}
