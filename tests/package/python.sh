#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016 # backquotes of Markdown
# The Python package: its structures are those of the headers, its tests, its example.
set -u
: "${BUILD:?the release build}"
cd "$(dirname "$0")/../.." || exit 1
DDPSESS_LIBRARY=$(realpath "$BUILD/libddpsess.so")
export DDPSESS_LIBRARY PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash

# A line a member: structure, member, offset; and the sizes, by the compiler and by ctypes.
python3 - "$work" <<'EOT' >"$work/log" 2>&1
import sys
from ddpsess import _lib

names = {"Triple": "ddps_triple", "CError": "ddps_error", "ConnInfo": "ddps_conn_info",
         "Event": "ddps_event", "ConnParam": "ddps_conn_param", "EpAttr": "ddps_ep_attr",
         "Sge": "ddps_sge", "Atomic": "ddps_atomic", "Bind": "ddps_bind", "SendWr": "ddps_send_wr",
         "Wc": "ddps_wc"}
values = ["CONNECT_REQUEST", "SRQ_LIMIT", "OP_RECV", "WC_FLUSHED", "E_SYSTEM", "E_CLOSED", "E_REJECTED",
          "E_TERMINATED", "PD_MAX", "LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "WR_SOLICITED",
          "NO_RECV_STALL"]
prefix = {"CONNECT_REQUEST": "EV_", "SRQ_LIMIT": "EV_"}
with open(sys.argv[1] + "/c.c", "w") as c, open(sys.argv[1] + "/ctypes", "w") as ours:
    c.write("#include <ddpsess/ddpsess.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n")
    for name, struct in names.items():
        t = getattr(_lib, name)
        print(struct, t and _lib.c.sizeof(t), file=ours)
        c.write(f'\tprintf("{struct} %zu\\n", sizeof(struct {struct}));\n')
        for member, *_ in t._fields_:
            print(struct, member, getattr(t, member).offset, file=ours)
            c.write(f'\tprintf("{struct} {member} %zu\\n", offsetof(struct {struct}, {member}));\n')
    for v in values:
        print(v, getattr(_lib, v), file=ours)
        c.write(f'\tprintf("{v} %d\\n", (int)DDPS_{prefix.get(v, "")}{v});\n')
    c.write("\treturn 0;\n}\n")
EOT
gcc -Iinclude -o "$work/c" "$work/c.c" >>"$work/log" 2>&1 && "$work/c" >"$work/compiler" &&
	diff "$work/compiler" "$work/ctypes" >>"$work/log"
result $? "python structures and numbers are those of the headers" "$work/log"

if command -v mypy >/dev/null; then
	(cd python && timeout 120 mypy --strict --cache-dir="$work/mypy" ddpsess) >"$work/log" 2>&1
	result $? "python types" "$work/log"
else
	echo "ok python types # skipped: no mypy (Debian package mypy)"
fi

timeout 120 python3 -X dev -W error python/tests/test_ddpsess.py >"$work/log" 2>&1
result $? "python tests over both wires" "$work/log"
for uri in tcp://127.0.0.1:0 "sctp://127.0.0.1:0?backend=native&encap=0"; do
	timeout 20 python3 python/examples/hello.py "$uri" >"$work/log" 2>&1 &&
		grep -q ': "hello over RDMA"$' "$work/log"
	result $? "python example over ${uri%%:*}" "$work/log"
done
[ "$(wc -l <python/examples/hello.py)" -lt "$(wc -l <examples/hello.c)" ]
result $? "python example is shorter than the one in C" "$work/log"

sed -n '/^```python$/,/^```$/p' docs/python.md | sed '1d;$d' >"$work/shown"
sed '1,2d' python/examples/hello.py | diff - "$work/shown" >"$work/log"
result $? "python example is what docs/python.md shows" "$work/log"

# A wrong offset is noticed.
sed -i '0,/ddps_sge len 8/s//ddps_sge len 9/' "$work/ctypes"
! diff "$work/compiler" "$work/ctypes" >/dev/null
result $? "python check of structures can fail" "$work/log"
