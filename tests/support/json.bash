# SPDX-License-Identifier: BSD-2-Clause
# What sessctl prints as JSON in tests is as docs/sessctl.schema.json promises.
# shellcheck shell=bash

json_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Python with jsonschema, which need not be the first one in PATH.
find_python() {
	for json_python in python3 /usr/bin/python3; do
		"$json_python" -c 'import jsonschema' 2>/dev/null && return 0 # by a trap, too
	done
	return 1
}

# json_fault FILE: what is wrong with its lines of JSON; fails if something is
json_fault() {
	"$json_python" "$json_root/tests/package/json_lines.py" "$json_root/docs/sessctl.schema.json" "$1" 2>&1
}

# judge_json NAME DIRECTORY: the lines of JSON in its files, each of which is printed by sessctl; a line for them all
judge_json() {
	local why
	find "$2" -type f -exec grep -hE '^\{"event":.*\}$' {} + 2>/dev/null >"$2/.lines.json"
	[ -s "$2/.lines.json" ] || return 0
	if ! find_python; then
		echo "skip python3-jsonschema is not here: lines of JSON are not judged"
	elif why=$(json_fault "$2/.lines.json"); then
		echo "ok $1: each line of JSON is as the schema says"
	else
		echo "not ok $1: each line of JSON is as the schema says: $why" | tr '\n' ' '
		echo
		return 1
	fi
}
