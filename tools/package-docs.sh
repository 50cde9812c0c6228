#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: package-docs.sh FOLDER: the pages as a distribution's package has them, in FOLDER: with the paths of
# what its packages install below /usr.
set -eu
out=$1

mkdir -p "$out"
cp -r README.md SECURITY.md CONTRIBUTING.md docs "$out"
find "$out" -name '*.md' -exec sed -i \
	-e 's:PYTHONPATH=/usr/local/share/ddpsess/python  *::' \
	-e "s:LD_PRELOAD=/usr/local/lib/libddpsess-verbs.so:LD_PRELOAD='/usr/\$LIB/libddpsess-verbs.so':" \
	-e 's:/usr/local/share/ddpsess:/usr/share/ddpsess:g' \
	-e 's:/usr/local/bin/sessctl:/usr/bin/sessctl:g' {} +
