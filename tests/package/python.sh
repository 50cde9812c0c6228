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

# A line a member: structure, member, offset; and the sizes and all constants, by the compiler and by ctypes.
python3 - "$work" <<'EOT' >"$work/log" 2>&1
import ctypes
import pathlib
import re
import sys
from ddpsess import _headers as h

text = "".join(pathlib.Path(f"include/ddpsess/{n}.h").read_text() for n in ("err", "ctx", "wr", "session", "secure"))
structs = re.findall(r"^struct (ddps_\w+) \{", text, re.M)
with open(sys.argv[1] + "/c.c", "w") as c, open(sys.argv[1] + "/ctypes", "w") as ours:
    c.write("#include <ddpsess/ddpsess.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n")
    for struct in structs:
        t = getattr(h, "".join(part.capitalize() for part in struct[5:].split("_")))
        print(struct, ctypes.sizeof(t), file=ours)
        c.write(f'\tprintf("{struct} %zu\\n", sizeof(struct {struct}));\n')
        for member, *_ in t._fields_:
            members = [m[0] for m in h.WcU._fields_] if member == "u" else [member]
            for m in members:
                print(struct, m, getattr(t, m).offset, getattr(t, m).size, file=ours)
                c.write(f'\tprintf("{struct} {m} %zu %zu\\n", offsetof(struct {struct}, {m}), '
                        f'sizeof(((struct {struct} *)0)->{m}));\n')
    for name, value in vars(h).items():
        if name.isupper() and isinstance(value, int):
            print(name, value, file=ours)
            c.write(f'\tprintf("{name} %d\\n", (int)DDPS_{name});\n')
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

SESSCTL=$(realpath "$BUILD/sessctl") timeout 120 python3 -X dev -W error python/tests/test_ddpsess.py >"$work/log" 2>&1
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
