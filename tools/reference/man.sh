#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: man.sh FOLDER: a manual page for each public function, struct and header, as FOLDER/NAME.3
set -eu

out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pages() { # LIBRARY HEADER...
	library=$1
	shift
	python3 tools/reference/man.py "$work" "$library" "$@"
}

h=include/ddpsess
pages ddpsess $h/ctx.h $h/session.h $h/wr.h $h/advert.h $h/stats.h $h/err.h $h/err_codes.h $h/version.h $h/capture.h $h/watch.h $h/secure.h
pages ddpsess-ipoib $h/ipoib_*.h $h/ib_*.h
pages ddpsess-conform $h/conform*.h
mkdir -p "$out"
for page in "$work"/*.scd; do
	tools/reference/page.sh <"$page" >"${page%.scd}"
done
mv "$work"/*.3 "$out"
