# SPDX-License-Identifier: BSD-2-Clause
# Holds includes and symbols against the table of layers and prints "FILE:LINE: what is wrong".
# usage: awk -v symbols=FILE -f tools/layers.awk tools/layers.txt FILE.d...	from the root of the repository
# A line of symbols is what nm -Ag prints; "system: - NAME" is the system's, "public: - NAME" stands in a
# header of include/.

# The layer of a path: the file, it with all that has its name, or the longest folder that it lies in.
function layer(path) {
	while (path != "" && !(path in rank))
		if (!sub(/\.[^.\/]*$/, "", path) && !sub(/\/[^\/]*$/, "", path))
			path = ""
	return path
}

# a/../b is b
function normal(path) {
	while (sub(/[^\/.]+\/\.\.\//, "", path))
		;
	return path
}

function fault(where, what) {
	print where ": " what
	bad++
}

# The file that an include of @from means: one that the compiler has read.
function found(from, name,    dir, n, root, i) {
	dir = substr(from, 1, match(from, /[^\/]*$/) - 1)
	n = split(dir " include/ src/ tools/ tests/", root, " ")
	for (i = 1; i <= n; i++)
		if ((root[i] name) in read)
			return normal(root[i] name)
	return ""
}

# Its lines once, each include once for each file that it turned out to mean.
function check(file,    own, i, to, up) {
	own = layer(file)
	if (!(file in lines)) {
		while ((getline text <file) > 0)
			if (++lines[file] && sub(/^[ \t]*#[ \t]*include[ \t]*[<"]/, "", text)) {
				sub(/[>"].*/, "", text)
				include[file, lines[file]] = text
			}
		close(file)
		files++
	}
	for (i = 1; i <= lines[file]; i++) {
		if (!((file, i) in include) || (to = found(file, include[file, i])) == "" || seen[file, i, to]++)
			continue
		up = layer(to)
		if (up == "" && to ~ /^(src|tools)\//)
			nowhere[to] = 1
		else if (up == own || (own, up) in may)
			;
		else if ((own, up) in except)
			used[own, up] = 1
		else
			fault(file ":" i, "includes " to ", but " own " may not include " (up ? up : "that") \
				" (tools/layers.txt)")
	}
}

# One dependency file: "object: source header..." with continuation lines; other rules are phony.
function rule(text,    n, part, i) {
	n = split(text, part, " ")
	split("", read)
	for (i = 2; i <= n; i++)
		read[part[i]] = 1
	if (n < 2 || (getline first <part[2]) < 0)
		return # of a source that is gone
	close(part[2])
	for (i = 2; i <= n; i++)
		if (layer(part[i]) != "")
			check(normal(part[i]))
		else if (part[i] ~ /^(src|tools)\//)
			nowhere[part[i]] = 1
}

# The line of a source that names @name.
function line_of(file, name,    text, n, at) {
	while (!at && (getline text <file) > 0)
		if (++n && text ~ "(^|[^A-Za-z0-9_])" name "([^A-Za-z0-9_]|$)")
			at = n
	close(file)
	return at ? at : 1
}

# One line of symbols: @file defines @name or needs it.
function symbol(file, kind, name) {
	if (file == "system" || file == "public") {
		known[file, name] = 1
		return
	}
	sub(/\.o$/, ".c", file)
	if (!(file in exists)) { # of a source that is gone
		exists[file] = (getline text <file) > 0
		close(file)
	}
	if (!exists[file])
		return
	if (kind ~ /[Uwv]/)
		needs[name, file] = 1
	else
		owner[name] = owner[name] " " layer(file)
}

# Whether @own may call what @to defines: its own, what it may include, and what is public from below.
function callable(own, to, name) {
	if (to == own || (own, to) in may || ("public", name) in known && rank[to] < rank[own])
		return 1
	if ((own, to) in except)
		return used[own, to] = 1
	return 0
}

# What several define is weak in all but one of them: one that may be called is enough.
function call(name, file,    own, n, to, i) {
	own = layer(file)
	n = split(owner[name], to, " ")
	for (i = 1; i <= n; i++)
		if (("system", name) in known || callable(own, to[i], name))
			return
	fault(file ":" line_of(file, name), "uses " name ", but " own " may not call " to[1] " (tools/layers.txt)")
}

FNR == 1 { table++; whole = 0 }
table == 1 {
	sub(/#.*/, "")
	if (!NF)
		next
	if ($1 == "except") {
		except[$2, $3] = FNR
		next
	}
	rank[$1] = FNR
	for (i = 2; i <= NF; i++)
		if ($i in rank && $i != $1)
			may[$1, $i] = 1
		else
			fault(FILENAME ":" FNR, $1 " stands above " $i " and so may not include it")
	next
}
whole { next }
{
	all = (FNR == 1 ? "" : all) $0
	whole = !sub(/\\$/, " ", all)
	if (whole)
		rule(all)
}
END {
	while ((getline <symbols) > 0) {
		sub(/:.*/, "", $1)
		symbol($1, $(NF - 1), $NF)
	}
	for (i in needs) {
		split(i, pair, SUBSEP)
		if (pair[1] in owner)
			call(pair[1], pair[2])
	}
	for (i in nowhere)
		fault(i ":1", "its folder has no line in tools/layers.txt")
	for (i in except)
		if (!(i in used)) {
			split(i, pair, SUBSEP)
			fault("tools/layers.txt:" except[i], pair[1] " does not need " pair[2] \
				": the exception can go")
		}
	print files + 0 " files" >"/dev/stderr"
	exit bad != 0
}
