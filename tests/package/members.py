#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Members of public structs and values of enums that no manual page has, as the compiler sees the headers.

members.py MANUALS INCLUDE
"""
import pathlib
import re
import subprocess
import sys
import tempfile

manuals, include = map(pathlib.Path, sys.argv[1:])
headers = sorted((include / "ddpsess").glob("*.h"))
named = {kind for h in headers for kind in re.findall(r"^((?:struct|enum) ddps_\w+) \{", h.read_text(), re.M)}
source = "".join(f"#include <ddpsess/{h.name}>\n" for h in headers)
source += "".join(f"{kind} v{i};\n" for i, kind in enumerate(sorted(named)))
with tempfile.NamedTemporaryFile(suffix=".o") as built:
    subprocess.run(["gcc", "-g", "-c", f"-I{include}", "-xc", "-", "-o", built.name], input=source, text=True, check=True)
    shown = subprocess.run(["readelf", "--debug-dump=info", built.name], capture_output=True, text=True, check=True).stdout

inside, seen = [], set()
for entry in re.split(r"\n(?= <\d+><)", shown):
    begin = re.match(r" <(\d+)><\w+>: .*\(DW_TAG_(\w+)\)", entry)
    if not begin:
        continue
    depth, tag = int(begin[1]), begin[2]
    name = re.search(r"DW_AT_name\s*:.*?(\w+)\s*$", entry, re.M)
    inside = [outer for outer in inside if outer[0] < depth]
    if tag in ("structure_type", "union_type", "enumeration_type"):
        inside.append((depth, name[1] if name else inside[-1][1] if inside else ""))
    elif tag in ("member", "enumerator") and name and inside and inside[-1][1].startswith("ddps_"):
        seen.add((inside[-1][1], name[1]))
for of, member in sorted(seen):
    page = manuals / f"{of}.3"
    text = page.read_text(encoding="utf-8").replace("\\-", "-") if page.exists() else ""
    if not re.search(rf"\b{member}\b", text):
        print(f"{of}: {member}")
if len(seen) < 700:
    print(f"only {len(seen)} members were found")
