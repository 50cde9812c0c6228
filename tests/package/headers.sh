#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What is made of the public headers and kept is what they say.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash

# python/ddpsess/_headers.py is made of the headers.  made HEADERS: how the one that is there differs
made() {
	python3 tools/reference/python.py "$1"/{err_codes,err,ctx,wr,session,secure,version}.h | diff python/ddpsess/_headers.py -
}
made include/ddpsess >"$work/log" 2>&1 || echo "make python" >>"$work/log"
! [ -s "$work/log" ]
result $? "python has what the headers declare (else: make python)" "$work/log"
cp -r include/ddpsess "$work/headers" && sed -i 's/^struct ddps_conn_param {/&\n\tuint32_t later_ms;/' "$work/headers/session.h"
[ "$(made "$work/headers" | grep '^[<>]')" = '>         ("later_ms", c.c_uint32),' ]
result $? "a member that python lacks is found" "$work/log"
