#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The plug-in for TLS is found from wherever sessctl was started, and by whatever name; and none that lies in the
# working folder.
# shellcheck source=/dev/null disable=SC2154,SC2034,SC2016 # variables of lib.bash, and of other shells
. "$(dirname "$0")/lib.bash"
unset DDPSESS_TLS_LIBRARY LD_LIBRARY_PATH

mkdir -p tree/ddpsess tree/in/here trap/ddpsess trap/lib/ddpsess trap/bin
folder=$(dirname "$SESSCTL")
cp "$SESSCTL" tree/sessctl && cp "$folder/ddpsess/libddpsess-tls.so" tree/ddpsess/ || exit 1
echo "no library" | tee trap/libddpsess-tls.so trap/ddpsess/libddpsess-tls.so >trap/lib/ddpsess/libddpsess-tls.so
cp trap/libddpsess-tls.so .

# makes FOLDER COMMAND...: started there, it makes a key, for which the plug-in is needed
makes() {
	local from=$1
	shift
	rm -rf "$work/keys" && mkdir "$work/keys"
	(cd "$from" && "$@" keys ca --dir "$work/keys" lab) >out 2>err && return
	why="from $from, $*: $(tail -n 2 err)"
	return 1
}

relative() {
	makes . tree/sessctl && makes . ./tree/sessctl && makes tree ./sessctl && makes tree/in ../sessctl &&
		makes tree/in/here ../../in/../sessctl
}

through_path() {
	PATH="$work/tree:$PATH" makes / sessctl && PATH="tree:$PATH" makes . sessctl && PATH=".:$PATH" makes tree sessctl
}

by_link() {
	ln -sf "$work/tree/sessctl" trap/link && ln -sf ../tree/sessctl trap/relative &&
		makes trap ./link && makes trap "$work/trap/link" && makes . trap/relative && makes / "$work/trap/relative"
}

not_from_here() {
	makes trap ../tree/sessctl && makes trap "$work/tree/sessctl" &&
		makes trap bash -c 'exec -a ./sessctl "$0" "$@"' "$work/tree/sessctl" &&
		makes / bash -c 'exec -a "$0" "$@"' "$work/trap/sessctl" "$work/tree/sessctl"
}

not_there() {
	mkdir -p far/alone && cp tree/sessctl far/alone/ && ! makes trap ../far/alone/sessctl || return
	says err "neither near $work/far/alone nor in " && says err "install it"
}

test_case "plug-in: found by a relative name" relative
test_case "plug-in: found through PATH" through_path
test_case "plug-in: found behind a link" by_link
test_case "plug-in: none of the working folder, or of the name that was given" not_from_here
test_case "plug-in: where it was looked for is said" not_there
finish
