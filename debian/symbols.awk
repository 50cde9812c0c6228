# SPDX-License-Identifier: BSD-2-Clause
# A symbols file from a linker's version script, whose nodes say since which release they are.
# usage: awk -v lib=LIBRARY -f symbols.awk MAP
BEGIN { print lib ".so.1 " lib "1 #MINVER#"; print "* Build-Depends-Package: libddpsess-dev" }
/^DDPSESS[A-Z_]*_[0-9.]+ *\{/ {
	node = $1
	sub(/\{.*/, "", node)
	since = node
	sub(/.*_/, "", since)
	print " " node "@" node " " since ".0"
}
/^[ \t]+ddps_[a-z0-9_]+;/ { sub(/;.*/, "", $1); print " " $1 "@" node " " since ".0" }
